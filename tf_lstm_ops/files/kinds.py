"""What files of models are, and what opens them: the one table for all commands and messages.

The content of a file decides, then the end of its name. This module imports nothing that takes
long, and reads the first bytes of a file, its last ones, and the names in a zip archive.
"""

from __future__ import annotations

import itertools
import os
import re
import zipfile
from typing import NamedTuple

from tf_lstm_ops.files import protobuf

_SESSION = "tf_lstm_ops.inference.Session"
_WEIGHTS = "`tf-lstm-ops checkpoint` lists its recurrent layers, and LSTMWeights.from_checkpoint"
_EXPORT = "Export the model to ONNX with its own program, and use Session.from_onnx"
_GUIDE = "see the guide 'Models of PyTorch and ONNX'"


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
      ends: a regular expression of the ends of names.
      what: what such a file is.
      instead: which call or command opens it, or what to do.
      must_end: the end that the call requires; empty: it takes any name.
    """

    ends: str
    what: str
    instead: str
    must_end: str = ""

    @property
    def advice(self) -> str:
        """Sentences, behind the path and " is "."""
        return f"{self.what}. {self.instead}"


TABLE = {
    "git-lfs": Kind(
        "",
        "a pointer of Git LFS, not the file itself",
        "`git lfs pull` in the repository fetches the file; or download the file itself",
    ),
    "onnx": Kind(
        r"\.onnx",
        "an ONNX file",
        f"{_SESSION}.from_onnx reads it, and `tf-lstm-ops convert` writes it as a .session file",
    ),
    "torchscript": Kind(
        "",
        "a TorchScript file",
        "Pass its weights: Session.from_torch(torch.jit.load(path).state_dict(), layers=...); "
        f"{_GUIDE}",
    ),
    "torch": Kind(
        r"\.(pt|pth|bin|ckpt\.pt)",
        "a file of PyTorch, which has weights without the modules that compute with them",
        f"In Python, {_SESSION}.from_torch(module), or from_torch(path, layers=...) of a state "
        "dict, makes a session; torch.jit.load(path).state_dict() is that of a TorchScript file; "
        f"{_GUIDE}",
    ),
    "safetensors": Kind(
        r"\.safetensors",
        "a file of weights without the modules that compute with them",
        f"In Python, {_SESSION}.from_torch(path, layers=...) makes a session; {_GUIDE}. "
        "LSTMWeights.from_safetensors reads one layer, and `tf-lstm-ops checkpoint` lists all",
    ),
    "session": Kind(r"\.session", "a session", f"{_SESSION}.load reads it"),
    "saved_model": Kind(
        "",
        "the graph of a SavedModel",
        "Pass its folder: `tf-lstm-ops doctor` examines it, tf_lstm_ops.keras.load_h5 makes a "
        "model of it if Keras 2 wrote it, and `tf-lstm-ops checkpoint` lists its recurrent layers",
    ),
    "graph": Kind(r"\.pb", "a graph of TensorFlow", f"{_WEIGHTS} reads them from a frozen graph"),
    "checkpoint": Kind(
        r"\.ckpt(-\d+)?(\.(index|meta|data-\d+-of-\d+))?|\.(index|meta|data-\d{5}-of-\d{5})",
        "a checkpoint of TensorFlow or PyTorch Lightning",
        f"{_WEIGHTS} reads those of TensorFlow; {_SESSION}.from_torch(torch.load(path)["
        "'state_dict'], layers=...) those of Lightning",
    ),
    "keras-json": Kind(
        "",
        "the description of a Keras model without its weights",
        "tf_lstm_ops.keras.load_h5(weights, config=path) makes the model if Keras 1 or 2 wrote "
        "both files; keras.models.model_from_json makes that of Keras 3, to which "
        "tf_lstm_ops.keras.load_h5_weights gives its weights",
    ),
    "rtneural": Kind("", "a model of RTNeural or GuitarML", f"{_SESSION}.from_rtneural reads it"),
    "json": Kind(
        r"\.json",
        "a text of JSON",
        "keras.models.model_from_json makes the model that Keras 3 described, to which "
        f"tf_lstm_ops.keras.load_h5_weights gives its weights; {_SESSION}.from_rtneural reads "
        "models of RTNeural",
    ),
    "tflite": Kind(
        r"\.tflite",
        "a .tflite file of TensorFlow Lite (LiteRT)",
        "It runs in the package ai-edge-litert; to use it here, take the model that it was made of",
    ),
    "coreml": Kind(r"\.(mlmodel|mlpackage)", "a model of CoreML", _EXPORT),
    "paddle": Kind(r"\.(pdmodel|pdiparams|pdparams|pdopt)", "a file of PaddlePaddle", _EXPORT),
    "pickle": Kind(
        r"\.(pkl|pickle|joblib)",
        "a pickle, which is code",
        "Load it with its own program, and pass its modules or arrays: "
        f"{_SESSION}.from_torch, LSTMWeights.from_torch or from_keras",
    ),
    "arrays": Kind(
        r"\.(npz|npy)",
        "a file of NumPy arrays",
        f"numpy.load reads it; {_SESSION}.from_torch takes a dictionary of arrays with PyTorch's "
        "names, LSTMWeights.from_keras those of a Keras layer",
    ),
    "keras": Kind(
        r"\.keras",
        "a file of Keras",
        "keras.models.load_model reads it, and tf_lstm_ops.keras.load_h5 one of Keras 2",
        ".keras",
    ),
    "hdf5": Kind(
        r"\.(h5|hdf5)",
        "a file of Keras",
        "keras.models.load_model reads it, and tf_lstm_ops.keras.load_h5 one of Keras 1 or 2; "
        "`tf-lstm-ops checkpoint` lists the recurrent layers of any HDF5 file",
        ".h5",
    ),
}
_HDF5 = b"\x89HDF\r\n\x1a\n"  # also behind a block of 512 bytes, or twice as many, and so on
GIT_LFS = b"version https://git-lfs.github.com/spec/"
# The first bytes of files. Those of torch.save before PyTorch 1.6 are a pickle of a number.
_STARTS = (
    (GIT_LFS, "git-lfs"),
    (_HDF5, "hdf5"),
    (b"\x89TLOS\r\n\x1a", "session"),
    (b"\x93NUMPY", "arrays"),
    (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "torch"),
    *((b"\x80" + bytes([protocol]), "pickle") for protocol in range(2, 6)),
)
_TABLE_END = bytes.fromhex("57fb808b247547db")  # of TensorFlow's checkpoints
_HEAD = 1 << 13  # bytes that are looked at


def by_content(path: str | bytes | os.PathLike[str]) -> str:
    """The kind of a file by its content.

    Args:
      path: its path.

    Returns:
      A key of `TABLE`; empty if there is no such regular file, or its content does not say it.
    """
    name = os.fsdecode(path)
    try:
        if not os.path.isfile(name):  # to open a FIFO would wait
            return ""
        with open(name, "rb") as file:
            start, size = file.read(_HEAD), os.path.getsize(name)
            file.seek(max(size - len(_TABLE_END), 0))
            end = file.read()
    except OSError:
        return ""
    if found := next((kind for magic, kind in _STARTS if start.startswith(magic)), ""):
        return found
    if any(start[at : at + len(_HDF5)] == _HDF5 for at in (512, 1024, 2048, 4096)):
        return "hdf5"
    if end == _TABLE_END:
        return "checkpoint"
    if start.startswith(b"PK"):
        return _of_archive(name)
    if start[4:8] == b"TFL3":
        return "tflite"
    if start[8:9] == b"{" and 2 <= int.from_bytes(start[:8], "little") <= size - 8:
        return "safetensors"
    if start.lstrip()[:1] in (b"{", b"["):
        return _of_text(start)
    try:
        return _of_message([*protobuf.fields(start, size)])
    except ValueError:  # it is none
        return ""


def by_name(path: str | bytes | os.PathLike[str]) -> str:
    """The kind of a file or folder by the end of its name.

    Args:
      path: its path, which need not exist.

    Returns:
      A key of `TABLE`; empty for an unknown kind.
    """
    name = os.path.basename(os.fsdecode(path)).lower()
    ends = ((kind, row.ends) for kind, row in TABLE.items() if row.ends)
    return next((kind for kind, end in ends if re.search(f"(?:{end})$", name)), "")


def kind_of(path: str | bytes | os.PathLike[str]) -> str:
    """The kind of a file, by its content where that says it.

    Args:
      path: its path.

    Returns:
      A key of `TABLE`; empty for an unknown kind.
    """
    return by_content(path) or by_name(path)


def advice(path: str | bytes | os.PathLike[str]) -> str:
    """What opens a file.

    Args:
      path: its path.

    Returns:
      Sentences, behind the path and " is "; empty for an unknown kind.
    """
    kind = kind_of(path)
    if not kind:
        return ""
    end = TABLE[kind].must_end
    more = f". Give it a name that ends in {end}" if end and by_name(path) != kind else ""
    return TABLE[kind].advice + more


def _of_archive(name: str) -> str:
    try:
        with zipfile.ZipFile(name) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError):
        return ""
    if any(each.endswith("/constants.pkl") for each in names):
        return "torchscript"
    if any(each.endswith("/data.pkl") for each in names):
        return "torch"
    if {"config.json", "metadata.json"} <= {*names}:
        return "keras"
    return "arrays" if names and all(each.endswith(".npy") for each in names) else ""


def _of_text(start: bytes) -> str:
    """The kind of a text of JSON, by its first names."""
    if b'"class_name"' in start:
        return "keras-json"
    is_rtneural = b'"in_shape"' in start or b'"model_data"' in start
    return "rtneural" if is_rtneural else "json"


def _of_message(fields: list[tuple[int, int | bytes]]) -> str:
    """The kind of a message of protobuf, by its first fields."""
    (first, version), (second, _) = (*fields, (0, 0), (0, 0))[:2]
    if first != 1:
        return ""
    if isinstance(version, bytes):  # nodes of a GraphDef, which begin with a name and an op
        inner = [*itertools.islice(protobuf.fields(version), 2)]
        is_node = [number for number, _ in inner] == [1, 2]
        op = inner[1][1] if is_node else b""
        return "graph" if isinstance(op, bytes) and op.isalnum() else ""
    if version == 1 and second == 2:
        return "saved_model"
    messages = [number for number, value in fields if isinstance(value, bytes)]
    if version >= 3 and 7 in messages:
        return "onnx"
    return "coreml" if max(messages, default=0) >= 200 else ""
