"""Converters of models that trace a layer and do not know the fused ops.

Keras traces a model in the same way for each format and does not tell the layers which. Without the
error below, ``model.export(path, format="onnx")`` writes a file that no program can run, and the
formats "litert" and "openvino" fail without saying what to do. ``tf.lite.TFLiteConverter`` is not
among these converters: it catches errors of layers and then names the op that it does not know.
"""

from __future__ import annotations

import sys
import types

# The call by the module that traces the model, and what converts a portable SavedModel instead.
_CONVERTERS = {
    "keras.src.export.litert": (
        'model.export(path, format="litert")',
        "tf.lite.TFLiteConverter.from_saved_model(folder)",
    ),
    "keras.src.export.onnx": ('model.export(path, format="onnx")', "tf2onnx"),
    "keras.src.export.openvino": ('model.export(path, format="openvino")', "OpenVINO"),
    "tf2onnx.convert": ("tf2onnx", "tf2onnx"),
}


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
            call, converter = _CONVERTERS[name]
            raise ValueError(
                f"{call} does not know the op TfLstmOps>{op}. Call tf_lstm_ops.export.saved_model("
                f"model, folder, portable=True) and convert its SavedModel with {converter}"
            )
        frame = frame.f_back
