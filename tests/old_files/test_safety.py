"""What a file may not do: run code, read other files, fill the memory, or not end."""

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest

from old_files import writer
from old_files.writer import layer
from tf_lstm_ops.files import hdf5
from tf_lstm_ops.files import json as json_files
from tf_lstm_ops.keras import load_h5
from tf_lstm_ops.weights import LSTMWeights

SHAPE = (None, 4)


def load(folder: Path, *layers: Any, version: str = "2.9.0") -> Any:
    """Loads a Sequential without weights."""
    inputs = layer("InputLayer", "i", SHAPE)
    config = {"name": "s", "layers": [inputs, *layers]}
    path = folder / "a.h5"
    writer.write(path, version, config, {each["config"]["name"]: [] for each in layers})
    return load_h5(path)


CODE = {"class_name": "__lambda__", "config": {"code": "4wAA", "defaults": None, "closure": None}}
SAVED_MODEL = layer("TFSMLayer", "t", filepath="/tmp/model", call_endpoint="serve")
PARTS: dict[str, tuple[Any, str]] = {
    "TFSMLayer": (SAVED_MODEL, "may run Python code"),
    "qualified": ({**SAVED_MODEL, "class_name": "Any>TFSMLayer"}, "may run Python code"),
    "wrapped": (layer("TimeDistributed", "d", layer=SAVED_MODEL), "may run Python code"),
    "constraint": (
        layer("Dense", "d", units=2, kernel_constraint={**SAVED_MODEL, "module": "keras.layers"}),
        "may run Python code",
    ),
    "JaxLayer": (layer("JaxLayer", "j", call_fn=CODE), "may run Python code"),
    "Lambda": (layer("Lambda", "f", function=CODE), "Python code in the file"),
    "function": (layer("Dense", "d", units=2, activation=CODE), "Python code in the file"),
    "StringLookup": (layer("StringLookup", "s", vocabulary="/etc/hostname"), "path of another"),
    "IntegerLookup": (layer("IntegerLookup", "s", vocabulary="/etc/hostname"), "path of another"),
    "TextVectorization": (layer("TextVectorization", "s", vocabulary="/x"), "path of another"),
}


@pytest.mark.parametrize("version", ["2.9.0", "3.0.5"])
@pytest.mark.parametrize("name", PARTS)
def test_a_layer_that_is_not_made(name: str, version: str, tmp_path: Path) -> None:
    part, message = PARTS[name]
    with pytest.raises(ValueError, match=message):
        load(tmp_path, part, version=version)


def test_an_object_of_another_kind_as_an_argument(tmp_path: Path) -> None:
    """Keras would look for it in the module that the file names."""
    inner = {"module": "keras.losses", "class_name": "Huber", "config": {}}
    for value in ({"class_name": "L2", "config": {"l2": inner}}, {"a": 1}):
        with pytest.raises(ValueError, match=r"layer d .*load_h5 does not make"):
            load(tmp_path, layer("Dense", "d", units=2, kernel_regularizer=value))


def test_a_configuration_that_is_deep(tmp_path: Path) -> None:
    value: list[Any] = []
    for _ in range(500):
        value = [value]
    with pytest.raises(ValueError, match="levels deep"):
        load(tmp_path, layer("Dense", "d", units=2, kernel_constraint=value))


def test_weights_that_the_file_does_not_have(tmp_path: Path) -> None:
    """A hundred thousand million numbers: the test ends only if they are not made."""
    with pytest.raises(ValueError, match="larger than those of the file"):
        load(tmp_path, layer("Dense", "d", units=25_000_000_000))


def test_heaps_within_a_heap_are_read_once(tmp_path: Path) -> None:
    """Half a million of them in 16 MB. It ends today only if no byte is read as often."""
    heap = b"GCOL\x01\0\0\0" + struct.pack("<Q", 1 << 40)
    block = struct.pack("<HHIQ", 1, 0, 0, 16) + heap
    hdf5.check_heaps("a.h5", heap + block * 500_000)


@pytest.mark.parametrize("part", ["metadata.json", "config.json", "model.weights.h5"])
def test_a_part_that_is_too_large(part: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.keras", "w", zipfile.ZIP_DEFLATED) as archive:
        metadata = {"keras_version": "2.13.1"}
        config = {
            "class_name": "Sequential",
            "config": {"layers": [layer("InputLayer", "i", (1,))]},
        }
        texts = {"metadata.json": json.dumps(metadata), "config.json": json.dumps(config)}
        for name in ("metadata.json", "config.json", "model.weights.h5"):
            archive.writestr(name, bytes(1 << 26) if name == part else texts.get(name, "{}"))
    content = bytearray((tmp_path / "a.keras").read_bytes())
    if part == "model.weights.h5":  # says that it is larger than it can be
        at = content.index(b"PK\x01\x02")
        for _ in range(2):
            at = content.index(b"PK\x01\x02", at + 1)
        content[at + 24 : at + 28] = b"\xff\xff\xff\x7f"
        (tmp_path / "a.keras").write_bytes(content)
    with pytest.raises(ValueError, match=f"{part} of .* is too large"):
        load_h5(tmp_path / "a.keras")


def test_names_that_keras_gives_to_masks(tmp_path: Path) -> None:
    """The mask of a Concatenate has operations of the same default names as layers."""
    for number in range(2):
        names = [f"concatenate_{number}", f"logical_or_{number}", f"any_{number}", "not_equal"]
        parts = [
            layer("InputLayer", "x", (None, 5)),
            layer("Embedding", "e", input_dim=9, output_dim=4, mask_zero=True),
            *(layer("GRU", name, units=3, return_sequences=True) for name in names[1:3]),
            layer("Concatenate", names[0]),
            layer("GRU", names[3], units=2),
        ]
        calls = [[], ["x"], ["e"], ["e"], names[1:3], names[:1]]
        for part, inputs in zip(parts, calls, strict=True):
            part["name"] = part["config"]["name"]
            part["inbound_nodes"] = [[[name, 0, 0, {}] for name in inputs]] if inputs else []
        config = {"name": "m", "layers": parts, "input_layers": [["x", 0, 0]]}
        config["output_layers"] = [[names[3], 0, 0]]
        own: dict[str, Any] = {part["name"]: [] for part in parts}
        own["e"] = [("e/embeddings:0", np.ones((9, 4)))]
        for name, (features, units) in zip(names[1:], ((4, 3), (4, 3), (6, 2)), strict=True):
            own[name] = writer.arrays(name, units, features, 3, [3 * units])
        path = writer.write(tmp_path / f"{number}.h5", "2.1.0", config, own, class_name="Model")
        assert load_h5(path).output_shape == (None, 2)


def test_a_file_of_keras_3_with_words(tmp_path: Path) -> None:
    """A vocabulary that the file has is no path."""
    words = keras.layers.StringLookup(vocabulary=["a", "b"])
    model = keras.Sequential([keras.Input((2,), dtype="string"), words])
    model.save(tmp_path / "a.keras")
    assert load_h5(tmp_path / "a.keras").layers[-1].get_vocabulary() == words.get_vocabulary()


def test_an_h5_file_without_a_version_has_no_code_either(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Python code in the file"):
        load(tmp_path, layer("Lambda", "f", function=["4wAA", None, None]))
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        del file["model_weights"].attrs["keras_version"]
    with pytest.raises(ValueError, match="Python code in the file"):
        load_h5(tmp_path / "a.h5")


def bomb(group: h5py.Group, name: str) -> None:
    """128 MB of zeros in 128 KB."""
    group.create_dataset(name, data=np.zeros((2**23, 4), "f4"), compression="gzip")


def test_arrays_that_are_compressed(tmp_path: Path) -> None:
    path = writer.write(tmp_path / "a.h5", "2.9.0", None, {"l": writer.arrays("l", 2, 3, 4, [8])})
    with h5py.File(path, "r+") as file:
        del file["l/l/kernel:0"]
        bomb(file["l"], "l/kernel:0")
    for read in (hdf5.read_model, LSTMWeights.from_checkpoint):
        with pytest.raises(ValueError, match=r"kernel:0 of .* has 134217728 bytes, with which"):
            read(path)


def test_an_array_of_many_names(tmp_path: Path) -> None:
    """Each name counts, since each is read."""
    own = [("l/kernel:0", np.zeros((2**20, 4), "f4"))]
    path = writer.write(tmp_path / "a.h5", "2.9.0", None, {"l": own})
    with h5py.File(path, "r+") as file:
        file["l"].attrs["weight_names"] = [b"l/kernel:0"] * 6
    with pytest.raises(ValueError, match="stands for more than"):
        hdf5.read_model(path)


def test_a_large_description(tmp_path: Path) -> None:
    """Whose objects in Python are 25 times as large."""
    with pytest.raises(ValueError, match="too many for the description of a model"):
        json_files.config("config", "[" + "[]," * 3_000_000 + "[]]")


def test_a_damaged_file_of_keras_3(tmp_path: Path) -> None:
    """Keras raises TypeError and others."""
    path = tmp_path / "a.h5"
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]).save(path)
    with h5py.File(path, "r+") as file:
        config = json.loads(file.attrs["model_config"])
        config["config"]["layers"][1]["config"] = [1]
        file.attrs["model_config"] = json.dumps(config)
    with pytest.raises(ValueError, match=r"Keras does not read .*a\.h5: \w+Error: "):
        load_h5(path)


def test_a_long_version(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.keras", "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "x" * 10**6}))
        archive.writestr("config.json", "{}")
    with pytest.raises(ValueError, match="of Keras, which is none") as raised:
        load_h5(tmp_path / "a.keras")
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("what", ["units", "arrays"])
@pytest.mark.parametrize("end", ["h5", "keras"])
def test_a_large_file_of_keras_3(end: str, what: str, tmp_path: Path) -> None:
    """Keras would make weights of any size, and ends with the process where memory is short."""
    path = tmp_path / f"a.{end}"
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, name="dense")]).save(path)
    parts: dict[str, bytes] = {}
    if end == "keras":
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        if what == "units":
            text = parts["config.json"].decode().replace('"units": 2', '"units": 25000000000')
            parts["config.json"] = text.encode()
    held = io.BytesIO(parts["model.weights.h5"]) if parts else path
    with h5py.File(held, "r+") as file:
        if what == "arrays":
            name = next(n for n in names_of(file) if n.endswith(("/kernel", "/vars/0")))
            del file[name]
            bomb(file, name)
        elif not parts:
            text = file.attrs["model_config"].replace('"units": 2', '"units": 25000000000')
            file.attrs["model_config"] = text
    if parts:
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in parts.items():
                archive.writestr(name, held.getvalue() if name.endswith(".h5") else content)
    message = "stands for more than" if what == "arrays" else "larger than those of the file"
    with pytest.raises(ValueError, match=message):
        load_h5(path)


def names_of(file: h5py.File) -> list[str]:
    found: list[str] = []
    file.visit(found.append)
    return found
