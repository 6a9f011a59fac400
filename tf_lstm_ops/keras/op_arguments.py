"""What the op of a recurrent layer gets from the layer itself: its name, weights and attributes.

The call of the layer, sessions and exports take them from here. All functions take the layers of
this package and those of ``keras.layers``, also ``RNN`` of one cell: the options are the cell's.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops import op_definitions
from tf_lstm_ops._activations import DEFAULTS, OF_PLAIN_RNN
from tf_lstm_ops.keras import layer_norm, lstm_cell
from tf_lstm_ops.keras.activations import described, name_of
from tf_lstm_ops.keras.fused import own_option

# The inputs that are weights, besides those of all ops.
_OWN_WEIGHTS = {
    "KerasLSTM": ("peephole", "projection"),
    "KerasLayerNormLSTM": ("input_gamma", "recurrent_gamma", "state_gamma", "state_beta"),
    "KerasLayerNormGRU": ("input_gamma", "recurrent_gamma"),
}
# The own arguments of LSTM that an op computes together and with every activation of the op.
# The others have a fused op if it has an attribute of their name, and if nothing else is given.
_COMBINED = {"KerasLSTM": {"use_peephole", "cell_clip", "projection_size", "proj_clip"}}
_NAMES_IN_CELLS = {"peephole": "peephole_kernel", "projection": "projection_kernel"}


def op_of(layer: Any) -> str:
    """The op of a layer.

    Args:
      layer: an LSTM, a GRU or a SimpleRNN.

    Returns:
      The op's name without its namespace.
    """
    if isinstance(layer.cell, keras.layers.SimpleRNNCell):
        return "KerasSimpleRNN"
    is_lstm = isinstance(layer.cell, keras.layers.LSTMCell)
    if own_option(layer, "layer_normalization") is not None:
        return "KerasLayerNormLSTM" if is_lstm else "KerasLayerNormGRU"
    if is_lstm:
        return "KerasLSTM"
    return "KerasGRU" if layer.cell.reset_after else "KerasResetBeforeGRU"


def has_default_activations(layer: Any) -> bool:
    """Whether the activations are the same as in cuDNN.

    Args:
      layer: an LSTM, a GRU or a SimpleRNN.

    Returns:
      True if they are tanh and sigmoid.
    """
    return all(name_of(getattr(layer.cell, name)) == only for name, only in DEFAULTS.items())


def unrolled_differs(layer: Any) -> bool:
    """Whether Keras computes something else for masked steps because the layer is unrolled.

    Keras then reverses the outputs in another order than the mask. The ops compute what Keras does
    without ``unroll``.

    Args:
      layer: a layer of ``keras.layers``.

    Returns:
      True for example for the backward layer of a Bidirectional with ``unroll`` and
      ``return_sequences``.
    """
    return bool(
        layer.unroll
        and layer.go_backwards
        and layer.return_sequences
        and layer.zero_output_for_mask
    )


def why_no_op(layer: Any) -> str | None:
    """Why the ops do not have the options of a layer.

    Args:
      layer: an LSTM, a GRU or a SimpleRNN.

    Returns:
      The reason; None if an op has them.
    """
    if op_of(layer) == "KerasSimpleRNN":
        if name_of(layer.cell.activation) in OF_PLAIN_RNN:
            return None
        return f"activation is {described(layer.cell.activation)}, neither tanh nor relu"
    has_all_activations = "activation" in op_definitions.attributes(op_of(layer))
    for name, only in DEFAULTS.items():
        function = getattr(layer.cell, name)
        if has_all_activations and name_of(function) is None:
            return f"{name} is {described(function)}, which has no fused op"
        if not has_all_activations and name_of(function) != only:
            return f"{name} is {described(function)}, not {only}"
    return _why_not_together(layer)


def _why_not_together(layer: Any) -> str | None:
    """Why the op does not compute the layer's own arguments beside each other."""
    op = op_of(layer)
    given = [n for n in lstm_cell.given_own_arguments(layer) if n not in layer_norm.ARGUMENTS]
    if own_option(layer, "layer_normalization") is not None:
        lacks, beside = given, ["layer_normalization"]
    else:
        lacks = [name for name in given if name not in _COMBINED.get(op, ())]
        beside = [name for name in given if name not in lacks]
        beside += [
            name for name in DEFAULTS if name_of(getattr(layer.cell, name)) != DEFAULTS[name]
        ]
    if lacks and (beside or lacks[1:] or lacks[0] not in op_definitions.attributes(op)):
        with_others = f"{' and '.join(beside)} with " if beside else ""
        return f"{with_others}{' and '.join(lacks)} has no fused op"
    return None


def weights(cell: Any, op: str) -> dict[str, Any]:
    """The weights of an op.

    Args:
      cell: the cell of a built layer.
      op: what `op_of` returned for the layer.

    Returns:
      The weights by the names of the op's inputs: variables, or a tensor; None if one is absent.
    """
    names = ("kernel", "recurrent_kernel", "bias", *_OWN_WEIGHTS.get(op, ()))
    found = {name: getattr(cell, _NAMES_IN_CELLS.get(name, name), None) for name in names}
    if getattr(cell, "input_beta", None) is not None:
        biases = [cell.input_beta, cell.recurrent_beta, cell.bias]
        # One op: TensorFlow makes other ops of two additions in a graph, which round otherwise.
        found["bias"] = tf.add_n([tf.convert_to_tensor(b) for b in biases if b is not None])
    return found


def arrays(cell: Any, op: str) -> dict[str, np.ndarray]:
    """The values of the weights of an op.

    Args:
      cell: as of `weights`.
      op: as of `weights`.

    Returns:
      Copies of the weights that exist, by the names of the op's inputs.
    """
    return {
        name: np.array(keras.ops.convert_to_numpy(weight))
        for name, weight in weights(cell, op).items()
        if weight is not None
    }


def attributes(layer: Any) -> dict[str, Any]:
    """The attributes of a layer's op that only this op has.

    Args:
      layer: an LSTM, a GRU or a SimpleRNN for which `why_no_op` returns None.

    Returns:
      The attributes by name.
    """
    op, found = op_of(layer), dict[str, Any]()
    for name in op_definitions.attributes(op):
        if name in DEFAULTS:
            found[name] = name_of(getattr(layer.cell, name))
        elif name == "epsilon":
            found[name] = own_option(layer, "layer_normalization_epsilon")
        elif name == "carries_normalized_state":
            found[name] = own_option(layer, "layer_normalization") == "addons"
        elif name in lstm_cell.OWN_ARGUMENTS:
            found[name] = own_option(layer, name) or op_definitions.defaults(op)[name]
    return found
