"""Each kind of file beyond each of its limits, and the words of the error."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from checkpoints import written
from old_files import writer
from old_files.writer import layer
from tf_lstm_ops.files import limits
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import load_h5
from tf_lstm_ops.weights import LSTMWeights

SMALL = 1000  # bytes or numbers, in place of the true limits: the files stay small
CELL = "rnn/basic_lstm_cell"
DEEP = "[" * 300 + "]" * 300


def read_torch(path: Path) -> Any:
    pytest.importorskip("torch")
    return Session.from_torch(path, ["ReLU"])


def read_onnx(path: Path) -> Any:
    pytest.importorskip("onnx")
    return Session.from_onnx(path, check=False)


def read_safetensors(path: Path) -> Any:
    pytest.importorskip("safetensors")
    return LSTMWeights.from_safetensors(path)


READERS: dict[str, Callable[[Path], Any]] = {
    "load_h5 m.h5": load_h5,
    "load_h5 m.keras": load_h5,
    "from_checkpoint m.h5": LSTMWeights.from_checkpoint,
    "from_checkpoint m.keras": LSTMWeights.from_checkpoint,
    "from_checkpoint m.pb": LSTMWeights.from_checkpoint,
    "from_checkpoint m.safetensors": LSTMWeights.from_checkpoint,
    "from_safetensors m.safetensors": read_safetensors,
    "from_torch m.safetensors": read_torch,
    "from_torch m.pt": read_torch,
    "from_onnx m.onnx": read_onnx,
    "from_rtneural m.json": Session.from_rtneural,
    "load m.session": Session.load,
}
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n"


def linked_fifo(path: Path) -> None:
    os.mkfifo(f"{path}_")
    path.symlink_to(f"{path}_")


NO_FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "nothing": (lambda path: None, "No such file|neither a file"),
    "empty": (Path.touch, "the file is empty"),
    "FIFO": (os.mkfifo, "Not a regular file"),
    "link to a FIFO": (
        lambda path: (os.mkfifo(f"{path}_"), path.symlink_to(f"{path}_")),
        "regular",
    ),
    "pointer": (lambda path: path.write_bytes(LFS), "pointer of Git LFS.*git lfs pull"),
}


@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize("reader", READERS)
def test_what_no_reader_opens(reader: str, what: str, tmp_path: Path) -> None:
    make, words = NO_FILES[what]
    path = tmp_path / reader.split()[1]
    make(path)
    with pytest.raises((OSError, ValueError), match=words):
        READERS[reader](path)


def keras_2(path: Path, *more: tuple[str, Any], **parts: Any) -> None:
    """A .keras file of Keras 2; some of its parts may be others, and more may follow."""
    layers = [layer("InputLayer", "i", (None, None, 3)), layer("LSTM", "l", units=2)]
    texts = {
        "config.json": {"class_name": "Sequential", "config": {"name": "s", "layers": layers}},
        "metadata.json": {"keras_version": "2.13.1"},
    }
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        for k, shape in enumerate([(3, 8), (2, 8), (8,)]):
            file[f"layers/lstm/cell/vars/{k}"] = np.zeros(shape, "f")
    all_parts = {name: json.dumps(text) for name, text in texts.items()}
    all_parts |= {"model.weights.h5": weights.getvalue(), **parts}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (*all_parts.items(), *more):
            archive.writestr(name, content)


def h5(path: Path) -> None:
    layers = [layer("InputLayer", "i", (None, None, 3)), layer("LSTM", "l", units=2)]
    own = {"i": [], "l": writer.arrays("l", 2, 3, 4, [8])}
    writer.write(path, "2.9.0", {"name": "s", "layers": layers}, own)


def changed_h5(change: Callable[[h5py.File], Any]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        h5(path)
        with h5py.File(path, "r+") as file:
            change(file)

    return make


def compressed(file: h5py.File) -> None:
    group = file["model_weights/l"]
    del group["l/kernel:0"]
    group.create_dataset("l/kernel:0", data=np.zeros((99, 999), "f4"), compression="gzip")


def set_config(text: str) -> Callable[[Path], None]:
    return changed_h5(lambda file: file.attrs.__setitem__("model_config", text))


def set_layers(file: h5py.File) -> None:
    file["model_weights"].attrs["layer_names"] = [b"i", b"l", b"l"]


def graph(shape: tuple[int, ...], count: int) -> Callable[[Path], None]:
    """A frozen graph of a cell, whose kernel is one number that is repeated."""

    def make(path: Path) -> None:
        import tensorflow as tf

        made = tf.compat.v1.GraphDef()
        for name, size in (("kernel", shape), *[("bias", shape[1:])] * count):
            node = made.node.add(name=f"{CELL}/{name}", op="Const")
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(1.0, shape=size))
            node.attr["dtype"].type = 1
        path.write_bytes(made.SerializeToString())

    return make


def index_without_data(path: Path) -> None:
    """A checkpoint whose index says more than its data has."""
    kernel, bias = np.ones((150, 400), "f"), np.ones(400, "f")
    written.checkpoint(path, {f"{CELL}/kernel": kernel, f"{CELL}/bias": bias})
    Path(f"{path}.data-00000-of-00001").write_bytes(b"x")


def pointer_for_data(path: Path) -> None:
    index_without_data(path)
    Path(f"{path}.data-00000-of-00001").write_bytes(LFS)


def torch_save(path: Path) -> None:
    """A tensor that stands for more than the file has, by a stride of 0."""
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.zeros(1).expand(10**5)}, path)


def torch_twice(path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.zeros(1)}, path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(archive.namelist()[0], b"x")


def header_beyond_the_file(path: Path) -> None:
    path.write_bytes((10**6).to_bytes(8, "little") + b"{}")


def nested(path: Path) -> None:
    """If in If, 20 deep."""
    helper = pytest.importorskip("onnx").helper
    made = helper.make_graph([helper.make_node("Identity", ["x"], ["y0"])], "g", [], [])
    for number in range(20):
        node = helper.make_node("If", ["c"], [f"y{number + 1}"], then_branch=made, else_branch=made)
        node.attribute.pop()  # one of both, else they would be a million
        made = helper.make_graph([node], "g", [], [])
    inputs = [helper.make_tensor_value_info(name, 1, [1]) for name in "xc"]
    made.input.extend(inputs)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def constants(path: Path) -> None:
    """A ConstantOfShape of 4 MB."""
    helper = pytest.importorskip("onnx").helper
    one, inputs = (
        helper.make_tensor("v", 1, [1], [1.0]),
        [helper.make_tensor_value_info("x", 1, [1, 3])],
    )
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["k"], value=one),
        helper.make_node("MatMul", ["x", "k"], ["y"]),
    ]
    sizes = helper.make_tensor("s", 7, [2], [3, 10**6])
    outputs = [helper.make_tensor_value_info("y", 1, None)]
    made = helper.make_graph(nodes, "g", inputs, outputs, [sizes])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def rtneural(text: str) -> Callable[[Path], Any]:
    return lambda path: path.write_text(text)


# The kind and the limit; the name of the file, what makes it, and what the error says.
BEYOND: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "HDF5, bytes": ("m.h5", changed_h5(compressed), "kernel:0 of .* has 395604 bytes, with which"),
    "HDF5, names": ("m.h5", changed_h5(set_layers), "layer_names of .* has the name 'l' twice"),
    "HDF5, JSON bytes": ("m.h5", set_config(" " * 2000), "too many for the description"),
    "HDF5, JSON depth": ("m.h5", set_config(DEEP), "model_config .* more than 200 levels deep"),
    "HDF5, JSON names": ("m.h5", set_config('{"a": 1, "a": 2}'), "has the name 'a' twice"),
    "keras, JSON bytes": (
        "m.keras",
        lambda path: keras_2(path, **{"metadata.json": " " * 2000}),
        "metadata.json of .* is too large",
    ),
    "keras, JSON depth": (
        "m.keras",
        lambda path: keras_2(path, **{"config.json": DEEP}),
        "config.json is more than 200 levels deep",
    ),
    "keras, bytes": (
        "m.keras",
        lambda path: keras_2(path, **{"model.weights.h5": bytes(10**5)}),
        "model.weights.h5 of .* is too large",
    ),
    "keras, names": (
        "m.keras",
        lambda path: keras_2(path, ("config.json", "{}")),
        "has the name 'config.json' twice",
    ),
    "checkpoint, pointer": ("m.ckpt", pointer_for_data, "data-00000-of-00001 is a pointer of Git"),
    "graph, bytes": ("m.pb", graph((150, 400), 1), "with which the file of"),
    "graph, names": ("m.pb", graph((5, 8), 2), "has the name 'rnn/basic_lstm_cell/bias' twice"),
    "checkpoint, bytes": (
        "m.ckpt",
        index_without_data,
        "m.ckpt has .* stands for more than",
    ),
    "safetensors, bytes": ("m.safetensors", header_beyond_the_file, "no valid .safetensors file"),
    "torch, bytes": ("m.pt", torch_save, "stands for 400000 bytes, more than"),
    "torch, names": ("m.pt", torch_twice, "has the name .* twice"),
    "onnx, depth": ("m.onnx", nested, "inside each other more than 16 deep"),
    "onnx, made bytes": ("m.onnx", constants, "of 12000000 bytes is larger than the limit of"),
    "rtneural, depth": ("m.json", rtneural(DEEP), "more than 200 levels deep"),
    "rtneural, names": ("m.json", rtneural('{"layers": 1, "layers": 2}'), "'layers' twice"),
    "rtneural, size": (
        "m.json",
        rtneural('{"in_shape": [null, null, 16777217], "layers": [1]}'),
        "in_shape must be a list of 2 or 3 sizes",
    ),
}
READER_OF = {
    ".h5": load_h5,
    ".keras": load_h5,
    ".pb": LSTMWeights.from_checkpoint,
    ".ckpt": LSTMWeights.from_checkpoint,
    ".safetensors": read_safetensors,
    ".pt": read_torch,
    ".onnx": read_onnx,
    ".json": Session.from_rtneural,
}


@pytest.mark.parametrize("case", BEYOND)
def test_a_file_beyond_a_limit(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits of bytes are lower here. Both readers of a file have the same."""
    from tf_lstm_ops.onnx_graph import budget

    name, make, words = BEYOND[case]
    make(tmp_path / name)
    monkeypatch.setattr(limits, "FREE_BYTES", SMALL)
    monkeypatch.setattr(limits, "JSON_BYTES", 1500)
    monkeypatch.setattr(budget, "MADE_MORE", SMALL)
    readers = [READER_OF[Path(name).suffix]]
    if Path(name).suffix in (".h5", ".keras"):
        readers.append(LSTMWeights.from_checkpoint)
    for read in readers:
        with pytest.raises(ValueError, match=words):
            read(tmp_path / name)


@pytest.mark.parametrize("name", ["m.h5", "m.keras"])
def test_numbers_of_layers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras makes no more of them than the file has."""
    make = h5 if name == "m.h5" else keras_2
    make(tmp_path / name)
    assert load_h5(tmp_path / name).count_params() == 8 * (3 + 2 + 1)
    monkeypatch.setattr(limits, "KERAS_MORE", 0)
    monkeypatch.setattr(limits, "KERAS_TIMES", 0)
    with pytest.raises(ValueError, match="larger than those of the file, 48 numbers"):
        load_h5(tmp_path / name)
