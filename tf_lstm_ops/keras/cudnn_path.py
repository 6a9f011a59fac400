"""The ops of the layers as calls of CudnnRNNV3: of TensorFlow's own on an NVIDIA GPU (see
`raw_ops.stock_cudnn`), and of this package's on a Mac's GPU, which has no other kernel for a layer.

Any mask is possible: the valid steps of each row are moved to its
beginning, as in a stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tf_lstm_ops import _cells, _placement, _targets, op_definitions
from tf_lstm_ops._targets import CUDNN
from tf_lstm_ops.composite.common import is_absent
from tf_lstm_ops.converters import plain_ops_required
from tf_lstm_ops.keras import stacked_masks
from tf_lstm_ops.keras.op_inputs import is_recorded
from tf_lstm_ops.keras.stacked_weights import Cell, params_of
from tf_lstm_ops.raw_ops import common, cudnn_rnn, stock_cudnn


def _covers(op: str, arguments: dict[str, Any]) -> bool:
    """Whether cuDNN has what a call asks for: inputs, attributes and sizes that `_run` takes."""
    has_elements = 0 not in arguments["x"].shape
    return has_elements and _targets.computes(CUDNN, op, _targets.of_call(arguments))


def run(op: str, arguments: dict[str, Any]) -> list[Any]:
    """Calls an op of a layer, or CudnnRNNV3 instead.

    Args:
      op: the op's name without its namespace.
      arguments: its inputs and attributes by name. The op also saves activations without
        ``training`` if a tape records the call: its gradient would run the forward pass again.

    Returns:
      The output, [B, T, P] or [B, 1, P], and the final states.
    """
    forward = _forward(op, arguments["x"].dtype)
    if forward and _covers(op, arguments):
        return _run(forward, _cells.BY_OP[op].modes[0], **arguments)
    saves = arguments["training"] or is_recorded(arguments[n] for n in op_definitions.inputs(op))
    results = common.run(op, {**arguments, "training": saves})
    return list(results)[:-1]  # without the reserve


def _forward(op: str, dtype: tf.DType) -> Callable[..., Any] | None:
    """The function that computes a layer instead of its own op; None where that op runs."""
    if stock_cudnn.is_used(dtype):
        return stock_cudnn.forward
    if op != "KerasLSTM" or not _placement.may_use_metal(dtype) or plain_ops_required():
        return None
    return _on_metal


def _on_metal(
    sequence: tf.Tensor,
    h: tf.Tensor,
    c: tf.Tensor,
    params: tf.Tensor,
    lengths: tf.Tensor | None,
    **options: Any,
) -> Any:
    """CudnnRNNV3 of this package. Without dropout, training saves nothing on Metal."""
    batch, time = tf.unstack(tf.shape(sequence)[:2])
    lengths = tf.fill([batch], time) if lengths is None else lengths
    return cudnn_rnn.CudnnRNNV3(
        input=sequence, input_h=h, input_c=c, params=params, sequence_lengths=lengths, **options
    )


def _run(
    forward: Callable[..., Any],
    mode: str,
    x: tf.Tensor,
    mask: tf.Tensor,
    kernel: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    bias: tf.Tensor,
    initial_h: tf.Tensor,
    initial_c: tf.Tensor | None = None,
    *,
    go_backwards: bool,
    zero_output_for_mask: bool,
    return_sequences: bool,
    **absent: Any,
) -> list[Any]:
    # Sizes that are unknown while tracing are those of the weights.
    x = tf.ensure_shape(x, [None, None, kernel.shape[0]])
    state = [None, recurrent_kernel.shape[0]]
    initial_h = tf.ensure_shape(initial_h, state)
    initial_c = None if initial_c is None else tf.ensure_shape(initial_c, state)
    mask = None if is_absent(mask) else mask
    steps = stacked_masks.Steps.of(x, mask, go_backwards)
    cell = Cell(kernel, recurrent_kernel, None if is_absent(bias) else bias)
    output, h, c, *_ = forward(
        steps.sequence,
        initial_h[:, tf.newaxis],
        tf.zeros([], x.dtype) if initial_c is None else initial_c[:, tf.newaxis],
        params_of(mode, [cell], x.dtype),
        None if mask is None else steps.lengths,
        rnn_mode=mode,
        time_major=False,
    )
    states = [state[:, 0] for state in ((h,) if initial_c is None else (h, c))]
    if return_sequences:
        return [steps.outputs(output, 1, zero_output_for_mask), *states]
    last = steps.last(states[:1])
    if zero_output_for_mask and mask is not None:
        [is_valid] = stacked_masks.last_steps(x, mask, 1, go_backwards)
        last = tf.where(is_valid, last, tf.zeros([], last.dtype))
    return [last[:, tf.newaxis], *states]
