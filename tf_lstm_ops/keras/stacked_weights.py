"""The weights of stacked layers: how they are made, and cuDNN's buffer of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from tf_lstm_ops import _cells
from tf_lstm_ops.cudnn_layout import GATES

_DEFAULTS = {
    "kernel_initializer": "glorot_uniform",
    "recurrent_initializer": "orthogonal",
    "bias_initializer": "zeros",
    **{
        f"{kind}_{what}": None
        for what in ("regularizer", "constraint")
        for kind in ("kernel", "recurrent", "bias")
    },
}
_MODULES = {
    "initializer": keras.initializers,
    "regularizer": keras.regularizers,
    "constraint": keras.constraints,
}
# Keras' gates in cuDNN's order.
_BLOCKS = {
    mode: tuple(map(cell.gates.index, cell.output_major)) for mode, cell in _cells.BY_MODE.items()
}


@dataclasses.dataclass
class Cell:
    """The variables of one direction of one layer, in the order of ``get_weights``.

    Attributes:
      kernel: [in, G*H], the gates in Keras' order.
      recurrent_kernel: [P, G*H].
      bias: [4H]; of a GRU [2, 3H], rows of the input side and of the recurrent side; or None.
      projection_kernel: [H, P] or None.
    """

    kernel: tf.Tensor
    recurrent_kernel: tf.Tensor
    bias: tf.Tensor | None = None
    projection_kernel: Any = None

    def arrays(self) -> list[Any]:
        """The values of the variables that exist.

        Returns:
          NumPy arrays, in the order of the attributes.
        """
        return [ops.convert_to_numpy(v) for v in vars(self).values() if v is not None]


class WeightOptions:
    """Initializers, regularizers and constraints of the weights of all layers.

    Args:
      options: by the names of the arguments of a Keras layer, such as "kernel_initializer".
      unit_forget_bias: whether the bias of the forget gate of an LSTM starts at one.
    """

    NAMES = tuple(_DEFAULTS)

    def __init__(self, options: dict[str, Any], unit_forget_bias: bool) -> None:
        self._unit_forget_bias = unit_forget_bias
        self._of = {
            name: _MODULES[name.rpartition("_")[2]].get(value) for name, value in options.items()
        }

    @classmethod
    def taken_from(cls, arguments: dict[str, Any], unit_forget_bias: bool) -> WeightOptions:
        """Takes the options out of the arguments of a layer.

        Args:
          arguments: by name; the options are removed.
          unit_forget_bias: as of the class.

        Returns:
          The options.
        """
        taken = {name: arguments.pop(name, value) for name, value in _DEFAULTS.items()}
        return cls(taken, unit_forget_bias)

    def of(self, weight: str, units: int) -> dict[str, Any]:
        """The options of one weight.

        Args:
          weight: its name, without the number of the layer.
          units: H.

        Returns:
          Arguments of ``add_weight``. A projection has the initializer of ``kernel``, and the
          regularizer and the constraint of ``recurrent_kernel``.
        """
        kind = weight.removesuffix("_kernel")
        kinds = {what: kind for what in _MODULES}
        if kind == "projection":
            kinds = {"initializer": "kernel", "regularizer": "recurrent", "constraint": "recurrent"}
        options = {what: self._of[f"{kinds[what]}_{what}"] for what in _MODULES}
        if kind == "kernel" or kind == "recurrent":
            options["initializer"] = keras.initializers.get(options["initializer"]).clone()
        if kind == "bias" and self._unit_forget_bias:
            options["initializer"] = _forget_bias_of_one(options["initializer"], units)
        return options

    def serialised(self) -> dict[str, Any]:
        """The options as a layer's configuration has them.

        Returns:
          The arguments of the layer by name.
        """
        return {
            name: _MODULES[name.rpartition("_")[2]].serialize(value)
            for name, value in self._of.items()
        }


def _forget_bias_of_one(initializer: Any, units: int) -> Any:
    def initial(shape: Any, *args: Any, **kwargs: Any) -> Any:
        bias = initializer(shape, *args, **kwargs)
        forget = ops.ones_like(bias[:units])
        return ops.concatenate([bias[:units], forget, bias[2 * units :]])

    return initial


def params_of(mode: str, cells: list[Cell], dtype: tf.DType) -> tf.Tensor:
    """cuDNN's buffer of some cells.

    Args:
      mode: the rnn_mode of the op, "lstm" or "gru".
      cells: the directions of all layers.
      dtype: the type of the op.

    Returns:
      [params_size], in the layout of `cudnn_layout`.
    """
    matrices, biases = [], []
    for cell in cells:
        kernels = [cell.kernel, cell.recurrent_kernel]
        matrices += [_output_major(mode, tf.cast(kernel, dtype)) for kernel in kernels]
        if cell.projection_kernel is not None:
            projection = tf.cast(cell.projection_kernel, dtype)
            matrices.append(tf.reshape(tf.transpose(projection), [-1]))
        biases.append(_both_biases(mode, cell, dtype))
    return tf.concat([*matrices, *biases], axis=0)


def _output_major(mode: str, kernel: tf.Tensor) -> tf.Tensor:
    """[G*H*in] of a kernel [in, G*H]."""
    gates = tf.split(tf.transpose(kernel), GATES[mode])
    if mode == "lstm":
        return tf.reshape(tf.transpose(kernel), [-1])
    return tf.reshape(tf.concat([gates[g] for g in _BLOCKS[mode]], axis=0), [-1])


def _both_biases(mode: str, cell: Cell, dtype: tf.DType) -> tf.Tensor:
    """[2*G*H]. The bias of an LSTM is the recurrent one, as in `weights`."""
    if cell.bias is None:
        return tf.zeros([2 * cell.kernel.shape[1]], dtype)
    bias = tf.cast(cell.bias, dtype)
    if mode == "lstm":
        return tf.concat([tf.zeros_like(bias), bias], axis=0)
    gates = tf.split(bias, GATES[mode], axis=1)
    return tf.reshape(tf.concat([gates[g] for g in _BLOCKS[mode]], axis=1), [-1])
