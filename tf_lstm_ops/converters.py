"""Converters of models that trace a layer and do not know the fused ops.

Keras traces a model in the same way for each format and does not tell the layers which. Without the
error below, ``model.export(path, format="onnx")`` writes a file that no program can run, and the
formats "litert" and "openvino" fail without saying what to do. ``tf.lite.TFLiteConverter`` is not
among these converters: it catches errors of layers and then names the op that it does not know.
"""

from __future__ import annotations

import sys
import types

_LITE = "tf_lstm_ops.export.tflite(model, path)"
_ONNX = "tf_lstm_ops.export.onnx(model, path)"
# The call, and what replaces it, by the module that traces the model.
_CONVERTERS = {
    "keras.src.export.litert": ('model.export(path, format="litert")', _LITE),
    "keras.src.export.onnx": ('model.export(path, format="onnx")', _ONNX),
    "keras.src.export.openvino": (
        'model.export(path, format="openvino")',
        f"{_ONNX}, whose files OpenVINO reads,",
    ),
    "tf2onnx.convert": ("tf2onnx", _ONNX),
}


def require_none(op: str) -> None:
    """Checks that no converter traces the current call of an op.

    The converter is found by the modules of the calling functions.

    Args:
      op: the op's name without its namespace.

    Raises:
      ValueError: a converter does; the text says which function to call instead.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if name in _CONVERTERS:
            call, instead = _CONVERTERS[name]
            raise ValueError(
                f"{call} does not know the op TfLstmOps>{op}. Call {instead} instead, or convert "
                "the SavedModel that tf_lstm_ops.export.saved_model(model, path, portable=True) "
                "writes"
            )
        frame = frame.f_back
