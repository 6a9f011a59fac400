"""What the recurrent layers of Keras 2 computed otherwise than those of Keras 3.

The arrays are lists of a direction of a layer, in the order of `get_weights`. The functions import
NumPy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_lstm_ops import _cells, _keras_private
from tf_lstm_ops._arrays import Array
from tf_lstm_ops._refusal import require

# Keras 2: clip(0.2 z + 0.5, 0, 1). Keras 3: clip(z / 6 + 0.5, 0, 1). So Keras 3's function of
# 1.2 z is Keras 2's function of z.
HARD_SIGMOID_RATIO = 1.2


def _is_of_keras_2(layer: Any) -> bool:
    """Whether a layer is one of tf_keras, or of tf.keras in TensorFlow before 2.16."""
    packages = _keras_private.MODULES_OF_KERAS_2
    return any(base.__module__.startswith(packages) for base in type(layer).__mro__)


def is_cudnn_layer(layer: Any) -> bool:
    """Whether a layer is CuDNNLSTM or CuDNNGRU, whose `cell` is no cell.

    Args:
      layer: a layer of any class.

    Returns:
      True if it is one of them.
    """
    return type(layer).__name__ in ("CuDNNLSTM", "CuDNNGRU") and _is_of_keras_2(layer)


def cell_of(layer: Any) -> Any:
    """The part of a layer that has the functions of a step.

    Args:
      layer: a layer of any class.

    Returns:
      The cell of a recurrent layer, also of an RNN around a cell; any other layer itself.
    """
    return layer if is_cudnn_layer(layer) else getattr(layer, "cell", layer)


def has_hard_sigmoid(layer: Any) -> bool:
    """Whether a layer has the hard_sigmoid of Keras 2 as recurrent_activation.

    Args:
      layer: a layer of any class.

    Returns:
      True if it is a layer of Keras 2 with this function.
    """
    function = getattr(cell_of(layer), "recurrent_activation", None)
    return _is_of_keras_2(layer) and getattr(function, "__name__", None) == "hard_sigmoid"


def from_cudnn_layer(arrays: Sequence[Array], gates: int) -> list[Array]:
    """Converts the arrays of CuDNNLSTM and CuDNNGRU, if they are such.

    These layers keep each gate's block as cuDNN does: the block of the kernel row-major as
    [H, I], the block of the recurrent kernel transposed, and two biases one after the other.

    Args:
      arrays: kernel [I, G*H], recurrent kernel [H, G*H] and further ones.
      gates: G.

    Returns:
      The arrays of LSTM, or of GRU with reset_after=True, where the third array is [2*G*H]; else
      the same arrays.

    Raises:
      ValueError: the bias has this size, and the kernels have other shapes.
    """
    is_like = len(arrays) == 3 and arrays[0].ndim == 2 and gates > 1
    if not is_like or arrays[2].shape != (2 * arrays[0].shape[1],):
        return list(arrays)
    kernel, recurrent_kernel, bias = arrays
    require(
        kernel.shape[1] % gates == 0
        and recurrent_kernel.shape == (kernel.shape[1] // gates, *kernel.shape[1:]),
        f"the arrays are those of a layer of cuDNN, but their shapes {kernel.shape} and "
        f"{recurrent_kernel.shape} are not (I, {gates}*H) and (H, {gates}*H)",
    )
    blocks = [a.T.reshape(a.shape, order="F") for a in np.hsplit(kernel, gates)]
    recurrent_blocks = [a.T for a in np.hsplit(recurrent_kernel, gates)]
    biases = bias.reshape(2, -1)
    return [np.hstack(blocks), np.hstack(recurrent_blocks), biases if gates == 3 else biases.sum(0)]


def with_hard_sigmoid_of_keras_3(arrays: Sequence[Array], gates: int) -> list[Array]:
    """Scales the gates of recurrent_activation so that Keras 3's hard_sigmoid is Keras 2's.

    Args:
      arrays: the arrays of a layer; the last axis of each is G*H, also of a layer with
        convolutions.
      gates: G, 3 for a GRU, 4 for an LSTM.

    Returns:
      New arrays.
    """
    ratios = np.where(_cells.BY_GATES[gates].recurrent, HARD_SIGMOID_RATIO, 1.0)
    return [_scaled(a, np.repeat(ratios, a.shape[-1] // gates)) for a in arrays]


def _scaled(array: Array, ratios: Any) -> Array:
    return np.asarray(array * ratios, array.dtype)
