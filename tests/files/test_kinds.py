"""What the commands say of each kind of file, under any name."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tf_lstm_ops import __main__
from tf_lstm_ops.files import kinds
from tf_lstm_ops.inference import Session, layers
from tf_lstm_ops.weights import LSTMWeights

COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "doctor": lambda path: ["doctor", str(path)],
    "checkpoint": lambda path: ["checkpoint", str(path)],
    "convert": lambda path: ["convert", str(path), f"{path}.session"],
}


def archive(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as made:
        for name in names:
            made.writestr(name, b"x")
    return content.getvalue()


def weights() -> LSTMWeights:
    arrays = [np.ones(shape, "f") for shape in ((3, 8), (2, 8), (8,))]
    return LSTMWeights.from_keras(arrays)


def session() -> bytes:
    made = Session.from_layers([layers.LSTM(weights())])
    return bytes(made._opened.content)


def saved(name: str) -> bytes:
    """A file that the package for it writes."""
    content = io.BytesIO()
    if name == "torch":
        torch = pytest.importorskip("torch")
        torch.save({"a": torch.zeros(1)}, content)
    elif name == "torch before 1.6":
        torch = pytest.importorskip("torch")
        torch.save({"a": torch.zeros(1)}, content, _use_new_zipfile_serialization=False)
    elif name == "npy":
        np.save(content, np.zeros(1))
    elif name == "npz":
        np.savez(content, a=np.zeros(1))
    elif name in ("hdf5", "user block"):
        size = 512 if name == "user block" else 0
        with h5py.File(content, "w", userblock_size=size) as file:
            file["a"] = np.zeros(1)
    elif name == "onnx":
        helper = pytest.importorskip("onnx").helper
        x, y = (helper.make_tensor_value_info(each, 1, ["b", "t", 3]) for each in "xy")
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
        opset = helper.make_opsetid("", 17)
        model = helper.make_model(
            graph, opset_imports=[opset], ir_version=8, producer_name="p", doc_string="d"
        )
        return bytes(model.SerializeToString())
    return content.getvalue()


def graph_def() -> bytes:
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="a")
    return bytes(graph.as_graph_def().SerializeToString())


PROTOCOL_4 = b"\x80\x04N."
# The kind, its content, what doctor and convert say, and what checkpoint says.
TORCH = "Session.from_torch(module)"
NO_CELLS = "There is no LSTM or GRU of a known family."
CONTENTS: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "torch": (lambda: saved("torch"), TORCH, TORCH),
    "torch before 1.6": (lambda: saved("torch before 1.6"), TORCH, TORCH),
    "TorchScript": (
        lambda: archive("net/data.pkl", "net/constants.pkl", "net/code/a.py"),
        "a TorchScript file. Pass its weights: Session.from_torch(torch.jit.load(path)",
        "torch.jit.load(path).state_dict()",
    ),
    "safetensors": (
        lambda: (2).to_bytes(8, "little") + b"{}",
        "Session.from_torch(path, layers=...)",
        NO_CELLS,
    ),
    "session": (session, "is a session", "Session.load reads it"),
    "graph": (graph_def, "a graph of TensorFlow. `tf-lstm-ops checkpoint` lists", NO_CELLS),
    "graph of a SavedModel": (
        lambda: b"\x08\x01\x12\x02\x0a\x00",
        "the graph of a SavedModel. Pass its folder",
        "Pass its folder",
    ),
    "checkpoint": (
        lambda: bytes(40) + bytes.fromhex("57fb808b247547db"),
        "a checkpoint of TensorFlow",
        "is damaged",
    ),
    "Keras' JSON": (
        lambda: json.dumps({"class_name": "Sequential", "config": {}}).encode(),
        "load_h5(weights, config=path) makes the model",
        "keras.models.model_from_json",
    ),
    "RTNeural": (
        lambda: json.dumps({"in_shape": [None, None, 1], "layers": []}).encode(),
        "a model of RTNeural or GuitarML. tf_lstm_ops.inference.Session.from_rtneural reads it",
        "from_rtneural",
    ),
    "GuitarML": (lambda: b' {"model_data": {}}', "Session.from_rtneural", "from_rtneural"),
    "JSON": (lambda: b"[1]", "a text of JSON", "a text of JSON"),
    "tflite": (lambda: b"\x1c\0\0\0TFL3" + bytes(8), "ai-edge-litert", "ai-edge-litert"),
    "CoreML": (
        lambda: b"\x08\x04\x12\x02\x0a\x00\xa2\x1f\x02\x0a\x00",
        "a model of CoreML. Export the model to ONNX",
        "Export the model to ONNX",
    ),
    "pickle": (lambda: PROTOCOL_4, "a pickle, which is code", "a pickle, which is code"),
    "npy": (lambda: saved("npy"), "numpy.load reads it", "numpy.load reads it"),
    "npz": (lambda: saved("npz"), "numpy.load reads it", "numpy.load reads it"),
    "keras": (
        lambda: archive("config.json", "metadata.json", "model.weights.h5"),
        "a file of Keras. keras.models.load_model reads it",
        "config.json is no JSON",
    ),
    "HDF5": (lambda: saved("hdf5"), "a file of Keras. keras.models.load_model reads it", NO_CELLS),
    "HDF5 with a user block": (
        lambda: saved("user block"),
        "a file of Keras. keras.models.load_model reads it",
        NO_CELLS,
    ),
    "Git LFS": (
        lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "a pointer of Git LFS, not the file itself. `git lfs pull`",
        "`git lfs pull`",
    ),
}


def said(arguments: list[str], capsys: Any) -> str:
    """What a command prints, on one line."""
    try:
        __main__.main(arguments)
    except SystemExit as usage:
        assert usage.code == 2
    printed = capsys.readouterr()
    return " ".join((printed.out + printed.err).split())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", CONTENTS)
def test_the_content_decides(kind: str, command: str, tmp_path: Path, capsys: Any) -> None:
    """Where the name says nothing, or something else."""
    content, words, of_checkpoint = CONTENTS[kind]
    for end in ("dat", "pt" if "torch" not in kind.lower() else "onnx"):
        path = tmp_path / f"net.{end}"
        path.write_bytes(content())
        if command == "convert" and kind == "session":
            words = "is a session already"
        expected = of_checkpoint if command == "checkpoint" else words
        assert expected in said(COMMANDS[command](path), capsys)
        assert not Path(f"{path}.session").exists()


# The ends of names, where the content says nothing.
NAMES = {
    "onnx": "Session.from_onnx reads it",
    "pth": TORCH,
    "bin": TORCH,
    "safetensors": "Session.from_torch(path, layers=...)",
    "pb": "a graph of TensorFlow",
    "ckpt": "a checkpoint of TensorFlow or PyTorch Lightning",
    "json": "a text of JSON",
    "tflite": "ai-edge-litert",
    "mlmodel": "Export the model to ONNX",
    "pdmodel": "a file of PaddlePaddle. Export the model to ONNX",
    "pkl": "a pickle, which is code",
    "joblib": "a pickle, which is code",
    "npz": "numpy.load reads it",
    "abc": "is no .keras file, no .h5 file and no folder with a SavedModel",
}


@pytest.mark.parametrize("end", NAMES)
def test_else_the_name_decides(end: str, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / f"net.{end}"
    path.write_bytes(b"x" * 64)
    assert NAMES[end] in said(["doctor", str(path)], capsys)
    path.unlink()
    path.mkdir()  # such as a .mlpackage
    expected = "is no SavedModel" if end == "abc" else NAMES[end]
    assert expected in said(["doctor", str(path)], capsys)


def test_convert_takes_an_onnx_file_of_any_name(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "net.dat"
    path.write_bytes(saved("onnx"))
    target = tmp_path / "net.session"
    assert f"{target} was written" in said(["convert", str(path), str(target)], capsys)
    x = np.random.default_rng(0).normal(size=(1, 2, 3)).astype("f")
    np.testing.assert_array_equal(Session.load(target)(x), np.maximum(x, 0))
    assert "Session.from_onnx reads it" in said(["doctor", str(path)], capsys)


def test_from_torch_takes_a_file_of_any_name(tmp_path: Path) -> None:
    """As from_checkpoint does."""
    for kind, write in (("safetensors", True), ("torch", False)):
        package, path = pytest.importorskip(kind), tmp_path / f"{kind}.dat"
        if write:
            weights().to_safetensors(path)
        else:
            state = weights().to_torch()
            package.save({name: package.from_numpy(a) for name, a in state.items()}, path)
        made = Session.from_torch(path, [("", "LSTM")], check=False)
        x = np.random.default_rng(0).normal(size=(1, 4, 3)).astype("f")
        want = Session.from_layers([layers.LSTM(weights(), return_sequences=True)])(x)
        np.testing.assert_array_equal(made(x), want)


def test_a_name_that_keras_requires(tmp_path: Path, capsys: Any) -> None:
    """Keras decides by the name only."""
    path = tmp_path / "net.h5"
    path.write_bytes(archive("config.json", "metadata.json", "model.weights.h5"))
    assert "Give it a name that ends in .keras" in said(["doctor", str(path)], capsys)
    path = tmp_path / "net.keras"
    path.write_bytes(saved("hdf5"))
    assert "Give it a name that ends in .h5" in said(["doctor", str(path)], capsys)


@pytest.mark.parametrize("kind", [*CONTENTS, "onnx"])
def test_a_file_that_is_cut_off(kind: str, tmp_path: Path) -> None:
    """It is of this kind or of an unknown one, and no error comes."""
    content = saved("onnx") if kind == "onnx" else CONTENTS[kind][0]()
    path = tmp_path / "net.dat"
    path.write_bytes(content)
    whole = kinds.kind_of(path)
    for size in {*range(0, len(content), max(len(content) // 50, 1)), len(content) - 1}:
        path.write_bytes(content[:size])
        assert kinds.kind_of(path) in (whole, "", "json", "pickle")


def test_every_kind_has_one_row() -> None:
    rows = [row.what for row in kinds.TABLE.values()]
    assert len({*rows}) == len(rows) - 1  # both files of Keras
    assert all(row.advice.count(". ") >= 1 for row in kinds.TABLE.values())
