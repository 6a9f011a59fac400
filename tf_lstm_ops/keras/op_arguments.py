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
from tf_lstm_ops._activations import DEFAULTS
from tf_lstm_ops._targets import OWN
from tf_lstm_ops.keras import options
from tf_lstm_ops.keras.activations import name_of
from tf_lstm_ops.keras.fused import own_option

# The inputs that are weights, besides those of all ops.
_OWN_WEIGHTS = {
    "KerasLSTM": ("peephole", "projection"),
    "KerasLayerNormLSTM": ("input_gamma", "recurrent_gamma", "state_gamma", "state_beta"),
    "KerasLayerNormGRU": ("input_gamma", "recurrent_gamma"),
}
_NAMES_IN_CELLS = {"peephole": "peephole_kernel", "projection": "projection_kernel"}


def weights(cell: Any, op: str) -> dict[str, Any]:
    """The weights of an op.

    Args:
      cell: the cell of a built layer.
      op: what `options.op_of` returned for the layer.

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
      layer: an LSTM, a GRU or a SimpleRNN that `_targets.CPU` computes.

    Returns:
      The attributes by name.
    """
    op, found = options.op_of(layer), dict[str, Any]()
    for name in op_definitions.attributes(op):
        if name in DEFAULTS:
            found[name] = name_of(getattr(layer.cell, name))
        elif name == "epsilon":
            found[name] = own_option(layer, "layer_normalization_epsilon")
        elif name == "carries_normalized_state":
            found[name] = own_option(layer, "layer_normalization") == "addons"
        elif name in OWN:
            found[name] = own_option(layer, name) or op_definitions.defaults(op)[name]
    return found
