"""Which composite takes the place of which op."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tf_lstm_ops.composite import block_cell, cudnn_ops, keras, mpsgraph

# Takes tensors and attributes by the names of the op's arguments, in the op's order, and returns
# all of its results, one after the other.
Composite = Callable[..., list[Any]]


def _positional(function: Callable[..., list[Any]], **fixed: Any) -> Composite:
    """For a function that takes the op's tensors without their names."""

    def composite(*, use_peephole: bool, **tensors: Any) -> list[Any]:
        return function(*tensors.values(), use_peephole=use_peephole, **fixed)

    return composite


def _sizes_first(function: Callable[..., list[Any]]) -> Composite:
    def composite(*, num_layers: Any, num_units: Any, input_size: Any, **others: Any) -> list[Any]:
        return function(num_layers, num_units, input_size, **others)

    return composite


def _with_reserve(function: Callable[..., list[Any]]) -> Composite:
    """A layer's op: the reserve, which only its gradient op would read, is empty."""

    def composite(*, training: bool, **arguments: Any) -> list[Any]:
        results = function(**arguments)
        return [*results, tf.zeros([0], results[0].dtype)]

    return composite


def _params_to_canonical(*sizes: Any, num_params: int, **others: Any) -> list[Any]:
    counts = {"num_params_weights": num_params, "num_params_biases": num_params}
    return cudnn_ops.params_to_canonical(*sizes, **counts, **others)


_MPSGRAPH_INPUTS = (
    *("source", "recurrent_weight", "input_weight", "bias"),
    *("init_state", "init_cell", "mask", "peephole"),
)
_MPSGRAPH_UPSTREAM = (
    *("source_gradient", "state_gradient", "cell_gradient"),
    *("cell_output_gradient", "z_state_gradient"),
)


def _mpsgraph_lstm(*, produce_cell: bool, training: bool, **arguments: Any) -> list[Any]:
    output, cell, z_state = mpsgraph.mpsgraph_lstm(**arguments)
    none = tf.zeros([0], output.dtype)
    return [output, cell if produce_cell or training else none, z_state if training else none]


def _mpsgraph_lstm_gradients(*, z_state: Any, cell_output_fwd: Any, **arguments: Any) -> list[Any]:
    """The forward op's results are calculated again."""
    inputs = [arguments.pop(name) for name in _MPSGRAPH_INPUTS]
    upstream = [arguments.pop(name) for name in _MPSGRAPH_UPSTREAM]
    return mpsgraph.mpsgraph_lstm_gradients(inputs, upstream, **arguments)


# By the name of the generated function.
COMPOSITES: dict[str, Composite] = {
    "tf_lstm_ops_lstm_block_cell": block_cell.lstm_block_cell,
    "tf_lstm_ops_block_lstm": functools.partial(block_cell.block_lstm, order="ICFO"),
    "tf_lstm_ops_block_lstmv2": functools.partial(block_cell.block_lstm, order="IFCO"),
    "tf_lstm_ops_lstm_block_cell_grad": _positional(block_cell.lstm_block_cell_grad),
    "tf_lstm_ops_block_lstm_grad": _positional(block_cell.block_lstm_grad, order="ICFO"),
    "tf_lstm_ops_block_lstm_grad_v2": _positional(block_cell.block_lstm_grad, order="IFCO"),
    "tf_lstm_ops_keras_lstm": _with_reserve(keras.keras_lstm),
    "tf_lstm_ops_keras_gru": _with_reserve(keras.keras_gru),
    "tf_lstm_ops_mps_graph_lstm": _mpsgraph_lstm,
    "tf_lstm_ops_mps_graph_lstm_gradients": _mpsgraph_lstm_gradients,
    "tf_lstm_ops_cudnn_rnn": functools.partial(cudnn_ops.rnn, version=1),
    "tf_lstm_ops_cudnn_rnnv2": functools.partial(cudnn_ops.rnn, version=2),
    "tf_lstm_ops_cudnn_rnnv3": functools.partial(cudnn_ops.rnn, version=3),
    "tf_lstm_ops_cudnn_rnn_backprop": cudnn_ops.rnn_backprop,
    "tf_lstm_ops_cudnn_rnn_backprop_v2": cudnn_ops.rnn_backprop,
    "tf_lstm_ops_cudnn_rnn_backprop_v3": cudnn_ops.rnn_backprop,
    "tf_lstm_ops_cudnn_rnn_params_size": _sizes_first(cudnn_ops.params_size),
    "tf_lstm_ops_cudnn_rnn_canonical_to_params": _sizes_first(cudnn_ops.canonical_to_params),
    "tf_lstm_ops_cudnn_rnn_canonical_to_params_v2": _sizes_first(cudnn_ops.canonical_to_params),
    "tf_lstm_ops_cudnn_rnn_params_to_canonical": _sizes_first(_params_to_canonical),
    "tf_lstm_ops_cudnn_rnn_params_to_canonical_v2": _sizes_first(cudnn_ops.params_to_canonical),
}
