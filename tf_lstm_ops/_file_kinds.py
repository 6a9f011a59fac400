"""What files of models are, and what opens them: the one table for all messages.

The end of a name decides. This module reads nothing and imports nothing that takes long.
"""

from __future__ import annotations

import os
import re

_SESSION = "tf_lstm_ops.inference.Session"
_WEIGHTS = "`tf-lstm-ops checkpoint` lists its recurrent layers, and LSTMWeights.from_checkpoint"
_EXPORT = "Export the model to ONNX with its own program, and use Session.from_onnx"
# The end of a name, what such a file is, and what to do with it.
_KINDS = (
    (
        r"\.onnx",
        "an ONNX file",
        f"{_SESSION}.from_onnx reads it, and `tf-lstm-ops convert` writes it as a .session file",
    ),
    (
        r"\.(pt|pth|bin|ckpt\.pt)",
        "a file of PyTorch, which has weights without the modules that compute with them",
        f"In Python, {_SESSION}.from_torch(module), or from_torch(path, layers=...) of a state "
        "dict, makes a session; torch.jit.load(path).state_dict() is that of a TorchScript file; "
        "see the guide 'Models of PyTorch and ONNX'",
    ),
    (
        r"\.safetensors",
        "a file of weights without the modules that compute with them",
        f"In Python, {_SESSION}.from_torch(path, layers=...) makes a session; see the guide "
        "'Models of PyTorch and ONNX'. LSTMWeights.from_safetensors reads one layer",
    ),
    (r"\.session", "a session", f"{_SESSION}.load reads it"),
    (r"\.pb", "a graph of TensorFlow", f"{_WEIGHTS} reads them from a frozen graph"),
    (
        r"\.ckpt(-\d+)?(\.(index|meta|data-\d+-of-\d+))?|\.(index|meta|data-\d{5}-of-\d{5})",
        "a checkpoint of TensorFlow or PyTorch Lightning",
        f"{_WEIGHTS} reads those of TensorFlow; {_SESSION}.from_torch(torch.load(path)["
        "'state_dict'], layers=...) those of Lightning",
    ),
    (
        r"\.json",
        "a text of JSON",
        "keras.models.model_from_json makes the model that Keras 3 described, to which "
        f"tf_lstm_ops.keras.load_h5_weights gives its weights; {_SESSION}.from_rtneural reads "
        "models of RTNeural",
    ),
    (
        r"\.tflite",
        "a .tflite file of TensorFlow Lite (LiteRT)",
        "It runs in the package ai-edge-litert; to use it here, take the model that it was made of",
    ),
    (r"\.(mlmodel|mlpackage)", "a model of CoreML", _EXPORT),
    (r"\.(pdmodel|pdiparams|pdparams|pdopt)", "a file of PaddlePaddle", _EXPORT),
    (
        r"\.(pkl|pickle|joblib)",
        "a pickle, which is code",
        "Load it with its own program, and pass its modules or arrays: "
        f"{_SESSION}.from_torch, LSTMWeights.from_torch or from_keras",
    ),
    (
        r"\.(npz|npy)",
        "a file of NumPy arrays",
        f"numpy.load reads it; {_SESSION}.from_torch takes a dictionary of arrays with PyTorch's "
        "names, LSTMWeights.from_keras those of a Keras layer",
    ),
    (
        r"\.(keras|h5|hdf5)",
        "a file of Keras",
        "keras.models.load_model reads it, and tf_lstm_ops.keras.load_h5 one of Keras 1 or 2",
    ),
)


def advice(path: str | bytes | os.PathLike[str]) -> str:
    """What opens a file.

    Args:
      path: its path.

    Returns:
      Sentences, behind the path and " is "; empty for an unknown kind.
    """
    name = os.path.basename(os.fsdecode(path)).lower()
    for end, what, call in _KINDS:
        if re.search(f"(?:{end})$", name):
            return f"{what}. {call}"
    return ""
