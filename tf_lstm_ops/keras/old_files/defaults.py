"""Warns of a model for weights of Keras 1 or 2 whose layers compute something else in Keras 3."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import keras

from tf_lstm_ops import _keras_private
from tf_lstm_ops.files.contents import Contents, NamedArray
from tf_lstm_ops.keras.old_files import masks

_CONVOLUTIONS = (keras.layers.ConvLSTM1D, keras.layers.ConvLSTM2D, keras.layers.ConvLSTM3D)
_GATED = (keras.layers.LSTM, keras.layers.GRU, *_CONVOLUTIONS)
_CELLS = (keras.layers.LSTMCell, keras.layers.GRUCell)


def warn_of_others(
    model: Any, file: Contents, pairs: Sequence[tuple[Any, Sequence[NamedArray]]]
) -> None:
    """Warns if a layer has a default of Keras 3 where the version of the file had another.

    The file has no arguments of layers. So a layer may have been made with what is now the default.

    Args:
      model: the model, with the weights of the file.
      file: the file.
      pairs: its layers, each with its arrays in the file.
    """
    found = [part.name for layer, arrays in pairs for part in _with_sigmoid(layer, arrays, file)]
    if names := list(dict.fromkeys(found)):
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


def _with_sigmoid(layer: Any, arrays: Sequence[NamedArray], file: Contents) -> Iterator[Any]:
    """The layers in a layer that have Keras 3's default where the file's version had another."""
    parts = _keras_private.layers_of(layer)
    of_layers = {id(part.cell) for part in parts if isinstance(part, _GATED)}
    shapes = [array.value.shape for array in arrays]
    for part in parts:
        is_part = isinstance(part, _GATED) or (
            isinstance(part, _CELLS) and id(part) not in of_layers
        )
        if not is_part or part.recurrent_activation is not keras.activations.sigmoid:
            continue
        if isinstance(part, _CONVOLUTIONS):
            yield part
        elif _is_before_2_3(file.version):
            gates = 3 if isinstance(part, keras.layers.GRU | keras.layers.GRUCell) else 4
            if (2 * gates * part.units,) not in shapes:  # CuDNNLSTM and CuDNNGRU have sigmoid
                yield part


def _is_before_2_3(version: str) -> bool:
    """Keras before 2.3, and tf.keras of TensorFlow 1, whose last version is 2.2.4-tf."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    return (*numbers, 0)[:2] < (2, 3)


def _listed(names: list[str]) -> str:
    return "layer " + ", ".join(names[:5]) + ("" if len(names) < 6 else " and others")
