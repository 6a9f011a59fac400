"""Warns of a model for weights of Keras 1 or 2 whose layers compute something else in Keras 3."""

from __future__ import annotations

import re
import warnings
from typing import Any

import keras

from tf_lstm_ops import _keras_private
from tf_lstm_ops.keras.old_files import masks
from tf_lstm_ops.weights.h5_file import H5File

_GATED = (
    *(keras.layers.LSTM, keras.layers.GRU, keras.layers.LSTMCell, keras.layers.GRUCell),
    *(keras.layers.ConvLSTM1D, keras.layers.ConvLSTM2D, keras.layers.ConvLSTM3D),
)
_CONVOLUTIONS = (keras.layers.ConvLSTM1D, keras.layers.ConvLSTM2D, keras.layers.ConvLSTM3D)


def warn_of_others(model: Any, file: H5File) -> None:
    """Warns if a layer has a default of Keras 3 where the version of the file had another.

    The file has no arguments of layers. So a layer may have been made with what is now the default.

    Args:
      model: the model, with the weights of the file.
      file: the file.
    """
    parts = _keras_private.layers_of(model)
    gated = [each for each in parts if isinstance(each, _GATED) and _has_sigmoid(each, file)]
    names = list(dict.fromkeys(each.name for each in gated))
    if names:
        warnings.warn(
            f"{file.path} is of Keras {file.version}, where recurrent_activation was "
            f'"hard_sigmoid" by default, and {_listed(names)} has "sigmoid". If the model was '
            'made with the default, make the layer with recurrent_activation="hard_sigmoid" and '
            "load the weights again",
            UserWarning,
            stacklevel=3,
        )
    if names := masks.without_mask(model):
        warnings.warn(
            f"{_listed(names)} gets initial states and a sequence with a mask. In Keras "
            f"{file.version} the layer used the mask, in Keras 3 it does not: pass mask= in the "
            "call of the layer, such as embedding.compute_mask(words)",
            UserWarning,
            stacklevel=3,
        )


def _has_sigmoid(layer: Any, file: H5File) -> bool:
    """Whether a layer has Keras 3's default, and had another one in the version of the file."""
    if getattr(layer, "recurrent_activation", None) is not keras.activations.sigmoid:
        return False
    return isinstance(layer, _CONVOLUTIONS) or _is_before_2_3(file.version)


def _is_before_2_3(version: str) -> bool:
    """Keras before 2.3, and tf.keras of TensorFlow 1, whose last version is 2.2.4-tf."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    return (*numbers, 0)[:2] < (2, 3)


def _listed(names: list[str]) -> str:
    return "layer " + ", ".join(names[:5]) + ("" if len(names) < 6 else " and others")
