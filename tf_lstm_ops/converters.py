"""Converters of models that trace a layer and do not know the fused ops.

Keras traces a model in the same way for each format and does not tell the layers which. Without the
error below, ``model.export(path, format="onnx")`` writes a file that no program can run, and the
formats "litert" and "openvino" fail without saying what to do. ``tf.lite.TFLiteConverter`` is not
among these converters: it catches errors of layers and then fails with another one. It gets plain
ops instead, which it converts to a loop.
"""

from __future__ import annotations

import sys
import types

_PORTABLE = "tf_lstm_ops.export.saved_model(model, folder, portable=True)"
_TO_ONNX = "tf_lstm_ops.export.onnx(model, path)"

# By the module that traces the model: the call, and what to call instead.
_CONVERTERS = {
    "keras.src.export.litert": (
        'model.export(path, format="litert")',
        "tf_lstm_ops.export.tflite(model, path)",
    ),
    "keras.src.export.onnx": ('model.export(path, format="onnx")', _TO_ONNX),
    "keras.src.export.openvino": (
        'model.export(path, format="openvino")',
        f"{_PORTABLE} and convert its SavedModel with OpenVINO",
    ),
    "tf2onnx.convert": ("tf2onnx", _TO_ONNX),
}

_PLAIN = "tensorflow.lite.python.lite"  # TFLiteConverter.from_keras_model


def takes_plain_ops() -> bool:
    """Whether a converter traces the current call of an op that must get plain ops.

    Returns:
      True for a trace by ``tf.lite.TFLiteConverter.from_keras_model``.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == _PLAIN:
            return True
        frame = frame.f_back
    return False


def require_none(op: str) -> None:
    """Checks that no converter traces the current call of an op.

    The converter is found by the modules of the calling functions.

    Args:
      op: the op's name without its namespace.

    Raises:
      ValueError: a converter does; the text says what to do instead.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if name in _CONVERTERS:
            call, instead = _CONVERTERS[name]
            raise ValueError(f"{call} does not know the op TfLstmOps>{op}. Call {instead}")
        frame = frame.f_back
