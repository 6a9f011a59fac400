"""Checks of what must be of Keras 3."""

from __future__ import annotations

from typing import Any

import keras

from tf_lstm_ops import _received

_KERAS_2 = (
    "is of Keras 2 (tf_keras). The layers and functions of tf_lstm_ops are for Keras 3 only. With "
    "Keras 2, use the ops under their stock names: after `import tf_lstm_ops`, "
    "tf.raw_ops.CudnnRNNV3 and the layers CuDNNLSTM and CuDNNGRU run on the CPU, and "
    "tf_lstm_ops.stock.override() replaces the kernels of the block cell"
)


def require_keras_3(name: str, value: Any) -> None:
    """Checks that an argument is not an object of Keras 2.

    Args:
      name: the argument's name.
      value: the argument. Its class is of Keras 2 if it or a base is defined in tf_keras, which is
        not imported for this check.

    Raises:
      TypeError: the argument is a layer, a model or a tensor of tf_keras.
    """
    if any(cls.__module__.partition(".")[0] == "tf_keras" for cls in type(value).__mro__):
        raise TypeError(f"{name} {_KERAS_2}. Received: {value!r}")


def require_model(model: keras.Model, allowed: type = keras.Model) -> None:
    """Checks the argument ``model`` of a function.

    Args:
      model: the argument.
      allowed: the class that the argument must have: ``keras.Model`` or ``keras.Layer``.

    Raises:
      TypeError: model is not of this class.
    """
    require_keras_3("model", model)
    if not isinstance(model, allowed):
        raise TypeError(
            f"model must be a keras.{allowed.__name__}. Received: {_received.text(model)}"
            f"{_received.instead_of_model(model)}"
        )
