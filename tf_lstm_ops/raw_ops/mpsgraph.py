"""The LSTM of Apple's MPSGraph, on any device.

T time, N batch, I input size, H cell size, D directions. All tensors have one type: half, bfloat16,
float or double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops import op_definitions
from tf_lstm_ops.raw_ops.common import as_written, call, common_dtype

if TYPE_CHECKING:
    from tf_lstm_ops.raw_ops.types import TensorLike


class Results(NamedTuple):
    """The results of MPSGraphLSTM.

    Attributes:
      output: [T, N, D*H], the outputs of all steps.
      cell: [T, N, D*H], the cell states of all steps; None unless requested.
      z_state: [T, N, D*4H], the gates of all steps after their activations; None unless training.
    """

    output: tf.Tensor
    cell: Any
    z_state: tf.Tensor


class Gradients(NamedTuple):
    """The results of MPSGraphLSTMGradients.

    Attributes:
      source, recurrent_weight, input_weight, bias, peephole, init_state, init_cell: the gradients
        of the arguments of these names, shaped as they are; None where the argument is None.
    """

    source: Any
    recurrent_weight: tf.Tensor
    input_weight: tf.Tensor
    bias: tf.Tensor
    peephole: tf.Tensor
    init_state: tf.Tensor
    init_cell: tf.Tensor


_OPTIONAL = ("input_weight", "bias", "init_state", "init_cell", "mask", "peephole")
_OUTPUT_GRADS = ("state_gradient", "cell_gradient", "cell_output_gradient", "z_state_gradient")


def _tensors(arguments: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The arguments. None in an argument of `names` is replaced by an empty tensor."""
    inputs = op_definitions.inputs("MPSGraphLSTMGradients")
    dtype = common_dtype(arguments.get(name) for name in inputs) or tf.float32
    absent = {name: tf.zeros([0], dtype) for name in names if arguments[name] is None}
    return {**arguments, **absent}


def _set_static_shapes(
    results: Results, source: Any, recurrent_weight: tf.Tensor, bidirectional: bool
) -> None:
    """Sets the static shapes that depend on attributes, which shape functions cannot read."""
    sequence = tf.TensorShape(getattr(source, "shape", None))
    units = tf.TensorShape(getattr(recurrent_weight, "shape", None))
    if tf.executing_eagerly() or sequence.rank != 3 or not units.rank or units[-1] is None:
        return
    width = (2 if bidirectional else 1) * units[-1]
    if 4 * width > tf.int64.max:  # not a shape; the kernel refuses the call
        return
    for result, size in zip(results, (width, width, 4 * width), strict=True):
        if result is not None:
            result.set_shape([*sequence[:2], size])


@as_written
def MPSGraphLSTM(
    *,
    source: TensorLike,
    recurrent_weight: TensorLike,
    input_weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    init_state: TensorLike | None = None,
    init_cell: TensorLike | None = None,
    mask: TensorLike | None = None,
    peephole: TensorLike | None = None,
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

    The gate order is i, f, z, o; with `forget_gate_last` it is i, z, f, o. Activations are "none",
    "relu", "tanh", "sigmoid" or "hard_sigmoid".

    Gradients: of all inputs except the mask, from the gradients of all outputs.

    Args:
      source: [T, N, I]; or, without `input_weight`, [T, N, D*4H], added to the pre-activations.
      recurrent_weight: [4H, H]; [2, 4H, H] if `bidirectional`.
      input_weight: [D*4H, I] or None.
      bias: [D*4H], or None for zero.
      init_state, init_cell: [N, D*H], the initial output and cell state, or None for zero.
      mask: multipliers of the previous output, [N, D*H] or a shape that broadcasts to it, or None.
      peephole: [4H], [2, 4H] if `bidirectional`, or None. All gates read the previous cell state.
      reverse: whether to run from the last step to the first; ignored if `bidirectional`.
      bidirectional: whether to run in both directions; the outputs are concatenated, forward first.
      produce_cell: whether to return `cell`.
      training: whether to return `cell` and `z_state`.
      forget_gate_last: the gate order, see above.
      input_gate_activation, forget_gate_activation, cell_gate_activation, output_gate_activation:
        the activations of the gates i, f, z and o.
      activation: the activation of the cell state in the output.
      name: of the op in a graph.

    Returns:
      Results(output, cell, z_state). Each step's results are at the index of its input.

    Raises:
      InvalidArgumentError: an argument of wrong rank, size or type.
    """
    found = call("MPSGraphLSTM", _tensors(locals(), _OPTIONAL))
    results = Results(
        found.output,
        found.cell if produce_cell or training else None,
        found.z_state if training else None,
    )
    _set_static_shapes(results, source, recurrent_weight, bidirectional)
    return results


@as_written
def MPSGraphLSTMGradients(
    *,
    source: TensorLike,
    recurrent_weight: TensorLike,
    source_gradient: TensorLike,
    z_state: TensorLike,
    cell_output_fwd: TensorLike,
    input_weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    init_state: TensorLike | None = None,
    init_cell: TensorLike | None = None,
    mask: TensorLike | None = None,
    peephole: TensorLike | None = None,
    state_gradient: TensorLike | None = None,
    cell_gradient: TensorLike | None = None,
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
        MPSGraphLSTM took them.
      source_gradient: [T, N, D*H], the gradient of its output.
      z_state, cell_output_fwd: its outputs z_state and cell, with `training`.
      state_gradient, cell_gradient: the gradients of h and c after the final step of each
        direction, [N, D*H] or [1, N, D*H], or None. The backward direction's final step is the
        first in time.
      reverse, bidirectional, forget_gate_last, input_gate_activation, forget_gate_activation,
        cell_gate_activation, output_gate_activation, activation: as MPSGraphLSTM took them.
      name: of the op in a graph.

    Returns:
      Gradients(source, recurrent_weight, input_weight, bias, peephole, init_state, init_cell),
      shaped as the arguments of these names; None where the argument is None.

    Raises:
      InvalidArgumentError: an argument of wrong rank, size or type.
    """
    # The op also takes gradients of cell and z_state, for the derivative of MPSGraphLSTM.
    arguments = {**locals(), "cell_output_gradient": None, "z_state_gradient": None}
    found = call("MPSGraphLSTMGradients", _tensors(arguments, (*_OPTIONAL, *_OUTPUT_GRADS)))
    given = (source, recurrent_weight, input_weight, bias, peephole, init_state, init_cell)
    pairs = zip(found, given, strict=True)
    return Gradients(*(None if argument is None else grad for grad, argument in pairs))
