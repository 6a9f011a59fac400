"""The LSTM of Apple's MPSGraph, on any device.

T time, N batch, I input size, H cell size, D directions. All tensors have one type: half, bfloat16,
float or double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops import op_definitions
from tf_lstm_ops.raw_ops.common import call, common_dtype, public

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
    cell: tf.Tensor | None
    z_state: tf.Tensor | None


class Gradients(NamedTuple):
    """The results of MPSGraphLSTMGradients.

    Attributes:
      source, recurrent_weight, input_weight, bias, peephole, init_state, init_cell: the gradients
        of the arguments of these names, shaped as they are; None where the argument is None.
    """

    source: tf.Tensor
    recurrent_weight: tf.Tensor
    input_weight: tf.Tensor | None
    bias: tf.Tensor | None
    peephole: tf.Tensor | None
    init_state: tf.Tensor | None
    init_cell: tf.Tensor | None


_OPTIONAL = ("input_weight", "bias", "init_state", "init_cell", "mask", "peephole")
_OUTPUT_GRADS = ("state_gradient", "cell_gradient", "cell_output_gradient", "z_state_gradient")


def _tensors(arguments: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The arguments. None in an argument of `names` is replaced by an empty tensor."""
    inputs = op_definitions.inputs("MPSGraphLSTMGradients")
    dtype = common_dtype(arguments.get(name) for name in inputs) or tf.float32
    absent = {name: tf.zeros([0], dtype) for name in names if arguments[name] is None}
    return {**arguments, **absent}


def _set_static_shapes(
    results: Results, source: TensorLike, recurrent_weight: TensorLike, bidirectional: bool
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


@public
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

    All inputs except the mask have gradients, computed from the gradients of all outputs.

    >>> import tensorflow as tf
    >>> from tf_lstm_ops import raw_ops
    >>> T, N, I, H = 5, 2, 3, 4
    >>> result = raw_ops.MPSGraphLSTM(
    ...     source=tf.ones([T, N, I]),
    ...     recurrent_weight=tf.ones([4 * H, H]),
    ...     input_weight=tf.ones([4 * H, I]),
    ...     produce_cell=True,
    ... )
    >>> result.output.shape, result.cell.shape
    (TensorShape([5, 2, 4]), TensorShape([5, 2, 4]))
    """
    found = call("MPSGraphLSTM", _tensors(locals(), _OPTIONAL))
    results = Results(
        found.output,
        found.cell if produce_cell or training else None,
        found.z_state if training else None,
    )
    _set_static_shapes(results, source, recurrent_weight, bidirectional)
    return results


@public
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
    """Gradients of MPSGraphLSTM as MPSGraph defines them."""
    # The op also takes gradients of cell and z_state, for the derivative of MPSGraphLSTM.
    arguments = {**locals(), "cell_output_gradient": None, "z_state_gradient": None}
    found = call("MPSGraphLSTMGradients", _tensors(arguments, (*_OPTIONAL, *_OUTPUT_GRADS)))
    given = (source, recurrent_weight, input_weight, bias, peephole, init_state, init_cell)
    pairs = zip(found, given, strict=True)
    return Gradients(*(None if argument is None else grad for grad, argument in pairs))
