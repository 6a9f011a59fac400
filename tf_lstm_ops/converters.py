"""Converters of models that trace a layer and do not know the fused ops.

Keras traces a model in the same way for each format and does not tell the layers which. Without the
error below, ``model.export(path, format="onnx")`` writes a file that no program can run, and the
formats "litert" and "openvino" fail without saying what to do. `export.by_keras` replaces Keras'
functions for "onnx" and "litert", but for models with layers of ours only, not for a function of
the user's that calls an op. ``tf.lite.TFLiteConverter`` is not
among these converters: it catches errors of layers and then fails with another one. It gets plain
ops instead, which it converts to a loop.
"""

from __future__ import annotations

import sys
import types

import tensorflow as tf

from tf_lstm_ops import _keras_private, _tf_private, composite

_PORTABLE = "tf_lstm_ops.export.saved_model(model, folder, portable=True)"
_TO_ONNX = "tf_lstm_ops.export.onnx(model, path)"

# By the module that traces the model: the call, and what to call instead.
_CONVERTERS = {
    _keras_private.EXPORT_MODULES["litert"]: (
        'model.export(path, format="litert")',
        "tf_lstm_ops.export.tflite(model, path)",
    ),
    _keras_private.EXPORT_MODULES["onnx"]: ('model.export(path, format="onnx")', _TO_ONNX),
    _keras_private.EXPORT_MODULES["openvino"]: (
        'model.export(path, format="openvino")',
        f"{_PORTABLE} and convert its SavedModel with OpenVINO",
    ),
    "tf2onnx.convert": ("tf2onnx", _TO_ONNX),
}

_KNOWN = {*_CONVERTERS, _tf_private.LITE_CONVERTER}


def plain_ops_required(op: str | None = None) -> bool:
    """Whether a call that is made or traced here must consist of plain TensorFlow ops.

    A converter is found by the modules of the calling functions.

    Args:
      op: the name, without its namespace, of the op that is called otherwise; None: another op.

    Returns:
      True within `composite.plain_ops`, while tracing for XLA, and in a trace by
      ``tf.lite.TFLiteConverter.from_keras_model``.

    Raises:
      ValueError: a converter that does not know the op traces the call; the text says what to do
        instead.
    """
    if composite.plain_ops_required():
        return True
    if tf.executing_eagerly():
        return False
    found = _callers()
    if op is not None and (known := found & _CONVERTERS.keys()):
        call, instead = _CONVERTERS[known.pop()]
        raise ValueError(f"{call} does not know the op TfLstmOps>{op}. Call {instead}")
    return _tf_private.LITE_CONVERTER in found


def _callers() -> set[str]:
    """The modules of the calling functions, of those that trace models."""
    found = set()
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if name in _KNOWN:
            found.add(name)
        frame = frame.f_back
    return found
