"""``model.export`` in the formats whose converters do not know the fused ops."""

from __future__ import annotations

from typing import Any

from tf_lstm_ops import _keras_private
from tf_lstm_ops.keras.counterparts import is_ours


def replace() -> None:
    """Makes ``model.export`` write models with layers of ours as `tf_lstm_ops.export` does.

    All other models, and all other formats, stay with Keras.
    """
    functions = {"onnx": _onnx, "litert": _litert}
    _keras_private.replace_exports(functions, _has_ours)


def _has_ours(model: Any) -> bool:
    return any(map(is_ours, _keras_private.layers_of(model)))


def _onnx(*args: Any, **kwargs: Any) -> None:
    from tf_lstm_ops.export import by_keras  # which imports this package

    by_keras.onnx(*args, **kwargs)


def _litert(*args: Any, **kwargs: Any) -> None:
    from tf_lstm_ops.export import by_keras

    by_keras.litert(*args, **kwargs)
