"""The LSTM of Apple's MPSGraph, on any device. Equations and rules: docs/mpsgraph.md.

T time, N batch, I input size, H cell size, D directions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops.raw_ops.common import as_written, call, dtype_of, optional


class Results(NamedTuple):
    """What MPSGraphLSTM returns."""

    output: Any
    cell: Any
    z_state: Any


class Gradients(NamedTuple):
    """What MPSGraphLSTMGradients returns."""

    source: Any
    recurrent_weight: Any
    input_weight: Any
    bias: Any
    peephole: Any
    init_state: Any
    init_cell: Any


_OPTIONAL = ("input_weight", "bias", "init_state", "init_cell", "mask", "peephole")
_UPSTREAM = ("state_gradient", "cell_gradient", "cell_output_gradient", "z_state_gradient")


def _tensors(arguments: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The arguments with those of `names` that are None as the op takes them."""
    dtype = dtype_of(arguments["source"]) or tf.float32
    given = {name: optional(arguments[name], dtype) for name in names}
    return {**arguments, **given}


def _set_steps(results: Results, source: Any, recurrent_weight: Any, bidirectional: bool) -> None:
    """Sets what a graph can know of the shapes; the op's own shape function sees no attributes."""
    sequence = tf.TensorShape(getattr(source, "shape", None))
    units = tf.TensorShape(getattr(recurrent_weight, "shape", None))
    if tf.executing_eagerly() or sequence.rank != 3 or not units.rank or units[-1] is None:
        return
    width = (2 if bidirectional else 1) * units[-1]
    for steps, size in zip(results, (width, width, 4 * width), strict=True):
        if steps is not None:
            steps.set_shape([*sequence[:2], size])


@as_written
def MPSGraphLSTM(
    *,
    source: Any,
    recurrent_weight: Any,
    input_weight: Any = None,
    bias: Any = None,
    init_state: Any = None,
    init_cell: Any = None,
    mask: Any = None,
    peephole: Any = None,
    reverse: bool = False,
    bidirectional: bool = False,
    produce_cell: bool = False,
    training: bool = False,
    forget_gate_last: bool = False,
    input_gate_activation: str = "sigmoid",
    forget_gate_activation: str = "sigmoid",
    cell_gate_activation: str = "tanh",
    output_gate_activation: str = "sigmoid",
    activation: str = "tanh",
    name: str | None = None,
) -> Results:
    """An LSTM over sequences as MPSGraph defines it.

    Gates stand in the order i, f, z, o, with `forget_gate_last` i, z, f, o. Activations are "none",
    "relu", "tanh", "sigmoid" or "hard_sigmoid". None stands for zero states, bias and peepholes.

    Args:
      source: [T, N, I]; or, without `input_weight`, [T, N, D*4H], added to the gates as it is.
      recurrent_weight: [4H, H]; [2, 4H, H] if `bidirectional`.
      input_weight: [D*4H, I] or None.
      bias: [D*4H] or None.
      init_state, init_cell: [N, D*H] or None.
      mask: multipliers of the previous output, [N, D*H] or what broadcasts to it, or None.
      peephole: [4H], [2, 4H] if `bidirectional`, or None. All gates see the previous cell state.
      reverse: from the last step to the first; ignored if `bidirectional`.
      produce_cell: whether `cell` is returned.
      training: whether `cell` and `z_state` are.

    Returns:
      namedtuple (output [T, N, D*H]; cell, the cell state of all steps, [T, N, D*H], or None;
      z_state, the gates after their activations, [T, N, D*4H], or None), each step where its input
      stands.

    Gradients: of all inputs but the mask, from those of all outputs.
    """
    found = call("tf_lstm_ops_mps_graph_lstm", _tensors(locals(), _OPTIONAL))
    results = Results(
        found.output,
        found.cell if produce_cell or training else None,
        found.z_state if training else None,
    )
    _set_steps(results, source, recurrent_weight, bidirectional)
    return results


@as_written
def MPSGraphLSTMGradients(
    *,
    source: Any,
    recurrent_weight: Any,
    source_gradient: Any,
    z_state: Any,
    cell_output_fwd: Any,
    input_weight: Any = None,
    bias: Any = None,
    init_state: Any = None,
    init_cell: Any = None,
    mask: Any = None,
    peephole: Any = None,
    state_gradient: Any = None,
    cell_gradient: Any = None,
    reverse: bool = False,
    bidirectional: bool = False,
    forget_gate_last: bool = False,
    input_gate_activation: str = "sigmoid",
    forget_gate_activation: str = "sigmoid",
    cell_gate_activation: str = "tanh",
    output_gate_activation: str = "sigmoid",
    activation: str = "tanh",
    name: str | None = None,
) -> Gradients:
    """Gradients of MPSGraphLSTM as MPSGraph defines them.

    Args:
      source, recurrent_weight, input_weight, bias, init_state, init_cell, mask, peephole: as
        MPSGraphLSTM took them, as are the arguments from `reverse` on.
      source_gradient: [T, N, D*H], of its output.
      z_state, cell_output_fwd: its outputs z_state and cell, with `training`.
      state_gradient, cell_gradient: of h and c after the final step of each direction, [N, D*H] or
        [1, N, D*H], or None. The backward direction's final step is the first in time.

    Returns:
      namedtuple (source, recurrent_weight, input_weight, bias, peephole, init_state, init_cell),
      gradients shaped as the arguments they are named after; None where the argument is.
    """
    # The op also takes gradients of cell and z_state, for the derivative of MPSGraphLSTM.
    arguments = {**locals(), "cell_output_gradient": None, "z_state_gradient": None}
    found = call(
        "tf_lstm_ops_mps_graph_lstm_gradients", _tensors(arguments, (*_OPTIONAL, *_UPSTREAM))
    )
    given = (source, recurrent_weight, input_weight, bias, peephole, init_state, init_cell)
    pairs = zip(found, given, strict=True)
    return Gradients(*(None if argument is None else gradient for gradient, argument in pairs))
