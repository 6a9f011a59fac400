"""What load_h5 and load_h5_weights refuse, and how they say it."""

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest

from old_files import writer
from old_files.writer import UNITS, arrays, layer
from tf_lstm_ops.keras import load_h5, load_h5_weights
from tf_lstm_ops.weights import LSTMWeights

FEATURES = 3
SHAPE = (None, None, FEATURES)
LSTM = arrays("l", UNITS, FEATURES, 4, [4 * UNITS])


def one(config: Any, own: writer.Arrays = LSTM, version: str = "2.8.0") -> Callable[[Path], Any]:
    """Writes a Sequential of one layer."""
    config["config"].setdefault("batch_input_shape", SHAPE)
    return lambda path: writer.write(path, version, [config], {config["config"]["name"]: own})


def changed(change: Callable[[Any], None]) -> Callable[[Path], Any]:
    """Writes a file of an LSTM, then changes it."""

    def write(path: Path) -> Any:
        one(layer("LSTM", "l"))(path)
        with h5py.File(path, "r+") as file:
            change(file)

    return write


def set_config(text: str) -> Callable[[Path], Any]:
    return changed(lambda file: file.attrs.__setitem__("model_config", text))


def replaced(array: Callable[[Any, str], Any]) -> Callable[[Path], Any]:
    """The kernel's data set is another."""

    def change(file: Any) -> None:
        group = file["model_weights/l"]
        del group["l/kernel:0"]
        array(group, "l/kernel:0")

    return changed(change)


def external(group: Any, name: str) -> None:
    group.create_dataset(name, (FEATURES, 4 * UNITS), "f4", external=[("/etc/passwd", 0, 400)])


def huge(group: Any, name: str) -> None:
    group.create_dataset(name, (10**6, 10**6), "f4", chunks=(1000, 1000))


def soft_link(group: Any, name: str) -> None:
    group[name] = h5py.SoftLink("/model_weights/l/l/bias:0")


def external_link(group: Any, name: str) -> None:
    group[name] = h5py.ExternalLink("other.h5", "/x")


code = ["4wEAAAAAAAAAAQAAAAEAAABTAAAA", None, None]
FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "Lambda": (one(layer("Lambda", "f", function=code)), r"layer f \(Lambda\) .*Python code"),
    "Merge": (one(layer("Merge", "m", mode="cos")), r"layer m \(Merge\) .*from_checkpoint"),
    "op": (one(layer("TFOpLambda", "m", function="math.add")), r"layer m \(TFOpLambda\)"),
    "code": (one(layer("Dense", "d", units=2, activation=code)), r"layer d .*Python code"),
    "class": (one(layer("CRF", "crf")), r"custom_objects=\{'CRF': your_class\}"),
    "time_major": (one(layer("LSTM", "l", time_major=True)), r"layer l .*time_major=True"),
    "argument": (one(layer("LSTM", "l", skip=2)), r"layer l \(LSTM\) .*skip=2"),
    "activation": (one(layer("LSTM", "l", activation="mine")), r"layer l .*mine"),
    "no activation": (one({"class_name": "LSTM", "config": {"name": "l", "units": 8}}), "layer l"),
    "inner": (
        one(layer("Bidirectional", "b", layer=layer("LSTM", "l", skip=2), merge_mode="sum")),
        r"^layer l \(LSTM\)",
    ),
    "shape": (one(layer("LSTM", "l", units=9)), r"kernel of layer l must be \(3, 36\).*\(3, 32\)"),
    "bias": (
        one(layer("GRU", "g", reset_after=True), arrays("g", 8, 3, 3, [24])),
        r"bias of layer g .*\(24,\).* reset_after=False",
    ),
    "too few": (one(layer("LSTM", "l"), LSTM[:2]), r"layer l has 3 weights"),
    "swapped": (
        one(layer("LSTM", "l"), [LSTM[1], LSTM[0], LSTM[2]]),
        r"arrays of layer l are recurrent_kernel, kernel, bias in the file",
    ),
    "no input": (
        lambda path: writer.write(path, "2.8.0", [layer("LSTM", "l")], {"l": LSTM}),
        "does not say the shape of the input .*load_h5_weights",
    ),
    "weights only": (
        lambda path: writer.write(path, "2.8.0", None, {"l": LSTM}),
        "load_h5_weights",
    ),
    "no JSON": (set_config("{"), "model_config of .* is no JSON"),
    "deep JSON": (set_config("[" * 10**5), "model_config of .* is no JSON"),
    "no model": (set_config("[1]"), "does not name the class"),
    "no layers": (set_config('{"class_name": "Model", "config": {}}'), "model without layers"),
    "number": (set_config('{"class_name": "Sequential", "config": {"layers": [1]}}'), "no layer"),
    "version": (
        changed(lambda file: file["model_weights"].attrs.__setitem__("keras_version", "new")),
        "version 'new' of Keras",
    ),
    "huge": (replaced(huge), "has 4000000000000 bytes, with which the file of"),
    "external": (replaced(external), "has its data in another file"),
    "soft link": (replaced(soft_link), "is a link"),
    "external link": (replaced(external_link), "is a link"),
    "group": (replaced(lambda group, name: group.create_group(name)), "is no Dataset"),
    "texts": (replaced(lambda group, name: group.__setitem__(name, ["a"])), "array of numbers"),
    "other": (lambda path: h5py.File(path, "w").close(), "has no model of Keras 1 or 2"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_refused(name: str, tmp_path: Path) -> None:
    write, message = FILES[name]
    write(tmp_path / "a.h5")
    with pytest.raises(ValueError, match=message) as raised:
        load_h5(tmp_path / "a.h5")
    assert len(str(raised.value)) < 1000


def test_a_path_that_is_no_hdf5_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.h5"):
        load_h5(tmp_path / "none.h5")
    (tmp_path / "text.h5").write_text("text")
    with pytest.raises(OSError, match=r"text\.h5 cannot be read as an HDF5 file"):
        load_h5(tmp_path / "text.h5")


def graph(nodes: dict[str, Any], outputs: Any) -> Any:
    """A functional model of an input x and Dense layers a and b."""
    dense = [
        layer("Dense", name, units=FEATURES, activation="linear", use_bias=False) for name in "ab"
    ]
    parts = [layer("InputLayer", "x", (None, FEATURES)), *dense]
    for part in parts:
        part["name"] = part["config"]["name"]
        part["inbound_nodes"] = nodes.get(part["name"], [])
    return {"name": "m", "layers": parts, "input_layers": [["x", 0, 0]], "output_layers": outputs}


@pytest.mark.parametrize(
    ("nodes", "outputs", "message"),
    [
        (
            {"a": [[["b", 0, 0, {}]]], "b": [[["a", 0, 0, {}]]]},
            [["b", 0, 0]],
            "layer . of the file",
        ),
        ({"a": [[["x", 0, 0, {}]]], "b": [[["c", 0, 0, {}]]]}, [["b", 0, 0]], "input c, which"),
        ({"a": [[["x", 0, 0, {}]]], "b": [[["a", 0, 3, {}]]]}, [["b", 0, 0]], "no result 3"),
        ({"a": [[["x", 0, 0, {}]]], "b": [[["a", 0, -1, {}]]]}, [["b", 0, 0]], "no result -1"),
        ({"a": [[["x", 0, 0, {}]]], "b": []}, [["b", 0, 0]], "layer b .*no inputs"),
        ({"a": [[["x", 0, 0, {}]]], "b": [[1]]}, [["b", 0, 0]], "no tensors"),
        (
            {"a": [[["x", 0, 0, {}]]], "b": [[["a", 0, 0, {}]]]},
            [["c", 0, 0]],
            "result 0 .* layer c",
        ),
    ],
)
def test_a_graph_that_is_none(nodes: Any, outputs: Any, message: str, tmp_path: Path) -> None:
    own = {n: [(f"{n}/kernel:0", np.eye(FEATURES))] for n in "ab"}
    path, config = tmp_path / "a.h5", graph(nodes, outputs)
    writer.write(path, "2.8.0", config, {"x": [], **own}, class_name="Model")
    with pytest.raises(ValueError, match=message):
        load_h5(path)


def model(*layers: Any) -> keras.Model:
    return keras.Sequential([keras.Input(SHAPE[1:]), *layers])


def test_weights_of_another_model_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    writer.write(path, "2.1.0", None, {"l": LSTM, "d": [("d/kernel:0", np.ones((5, 5)))]})
    own = model(keras.layers.LSTM(UNITS), keras.layers.Dense(2, use_bias=False))
    before = own.get_weights()
    with pytest.raises(ValueError, match=r"kernel of layer dense.* must be \(8, 2\)"):
        load_h5_weights(own, path)
    for one_, other in zip(before, own.get_weights(), strict=True):
        np.testing.assert_array_equal(one_, other)
    with pytest.raises(ValueError, match=r"weights of 2 layers \(l, d\), and the model .* has 1"):
        load_h5_weights(model(keras.layers.LSTM(UNITS)), path)
    with pytest.raises(ValueError, match="is not built"):
        load_h5_weights(keras.Sequential([keras.layers.LSTM(UNITS)]), path)
    with pytest.raises(TypeError, match=r"keras\.Model"):
        load_h5_weights(LSTM, path)


def test_a_hard_sigmoid_that_scaled_weights_cannot_express(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    writer.write(path, "2.1.0", None, {"l": LSTM})
    with pytest.raises(ValueError, match="keras_2_hard_sigmoid"):
        load_h5_weights(model(keras.layers.LSTM(UNITS, activation="hard_sigmoid")), path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no FIFO")
def test_a_fifo_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.h5")
    with pytest.raises(OSError, match="Not a regular file"):
        load_h5(tmp_path / "a.h5")


def test_a_heap_without_end(tmp_path: Path) -> None:
    """The HDF5 library reads such a file for ever."""
    path = tmp_path / "a.h5"
    one(layer("LSTM", "l"))(path)
    content = path.read_bytes()
    at = content.index(b"GCOL") + 16
    path.write_bytes(content[:at] + bytes(16) + content[at + 16 :])
    for read in (load_h5, LSTMWeights.from_checkpoint):
        with pytest.raises(ValueError, match="a gap of no bytes"):
            read(path)


def test_a_damaged_keras_file(tmp_path: Path) -> None:
    path = tmp_path / "a.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("metadata.json", "config.json", "model.weights.h5"):
            archive.writestr(name, "{" + " " * 1000 + "}")
    content = bytearray(path.read_bytes())
    at = content.index(b"metadata.json") + len("metadata.json")
    content[at : at + 8] = b"\xff" * 8  # the compressed bytes
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.keras is damaged"):
        load_h5(path)
