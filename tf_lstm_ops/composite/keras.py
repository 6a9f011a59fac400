"""The ops behind tf_lstm_ops.keras. Equations: cc/core/lstm_cell.h."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_lstm_ops.composite.common import cast, compute_dtype


def straight_through_clip(cs: tf.Tensor, cell_clip: float) -> tf.Tensor:
    """cs within [-cell_clip, cell_clip] where that is positive; the gradient is the identity."""
    if cell_clip <= 0:
        return cs
    return tf.grad_pass_through(lambda v: tf.clip_by_value(v, -cell_clip, cell_clip))(cs)


def is_absent(argument: tf.Tensor) -> bool:
    """An optional argument that is not given has the shape [0]."""
    return argument.shape.rank == 1 and argument.shape[0] == 0


def _per_gate(value: tf.Tensor, dropout: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """value times weights, each gate seeing the value through its own multipliers."""
    if is_absent(dropout):
        return tf.matmul(value, weights)
    columns = tf.split(weights, 4, axis=-1)
    return tf.concat(
        [tf.matmul(value * dropout[g], column) for g, column in enumerate(columns)], axis=-1
    )


def keras_lstm(
    x: Any,
    mask: Any,
    initial_h: Any,
    initial_c: Any,
    kernel: Any,
    recurrent_kernel: Any,
    bias: Any,
    peephole: Any,
    input_dropout: Any,
    recurrent_dropout: Any,
    *,
    cell_clip: float,
    go_backwards: bool,
    zero_output_for_mask: bool,
    return_sequences: bool,
) -> list[Any]:
    """KerasLSTM: output, final_h, final_c."""
    dtype = x.dtype
    arguments = (x, initial_h, initial_c, kernel, recurrent_kernel, bias, peephole)
    arguments = cast((*arguments, input_dropout, recurrent_dropout), compute_dtype(dtype))
    x, initial_h, initial_c, kernel, recurrent_kernel, bias, peephole, *dropouts = arguments
    input_dropout, recurrent_dropout = dropouts
    time = tf.shape(x)[1]

    def rows(sequence: tf.Tensor) -> tf.TensorArray:
        """Batch-major [B, T, ...] by step, in the order of processing."""
        axes = [1, 0, *range(2, sequence.shape.rank)]
        steps = tf.transpose(sequence, axes)
        steps = tf.reverse(steps, [0]) if go_backwards else steps
        return tf.TensorArray(steps.dtype, size=time, clear_after_read=False).unstack(steps)

    x_rows = rows(x)
    mask_rows = None if is_absent(mask) else rows(mask)
    wci, wcf, wco = (0.0, 0.0, 0.0) if is_absent(peephole) else tf.unstack(peephole)

    def step(t: Any, h: Any, c: Any, output: Any, outputs: Any) -> Any:
        z = _per_gate(x_rows.read(t), input_dropout, kernel)
        z += _per_gate(h, recurrent_dropout, recurrent_kernel)
        if not is_absent(bias):
            z += bias
        zi, zf, zc, zo = tf.split(z, 4, axis=-1)
        c_new = tf.sigmoid(zi + wci * c) * tf.tanh(zc) + tf.sigmoid(zf + wcf * c) * c
        c_new = straight_through_clip(c_new, cell_clip)
        h_new = tf.sigmoid(zo + wco * c_new) * tf.tanh(c_new)
        if mask_rows is None:
            return t + 1, h_new, c_new, h_new, outputs.write(t, h_new)
        valid = mask_rows.read(t)[:, tf.newaxis]
        output = tf.where(valid, h_new, tf.zeros_like(h) if zero_output_for_mask else output)
        h, c = tf.where(valid, h_new, h), tf.where(valid, c_new, c)
        return t + 1, h, c, output, outputs.write(t, output)

    outputs = tf.TensorArray(x.dtype, size=time, element_shape=initial_h.shape)
    start = (0, initial_h, initial_c, tf.zeros_like(initial_h), outputs)
    _, h, c, output, outputs = tf.while_loop(
        lambda t, *_: t < time, step, start, maximum_iterations=time
    )
    last_only = output[:, tf.newaxis]
    output = tf.transpose(outputs.stack(), [1, 0, 2]) if return_sequences else last_only
    return cast([output, h, c], dtype)


def keras_lstm_grad(inputs: list[Any], output_gradients: list[Any], **attributes: Any) -> list[Any]:
    """KerasLSTMGrad: gradients of x, the states, the kernels, bias and peephole."""
    wanted = [inputs[n] for n in (0, 2, 3, 4, 5, 6, 7)]
    with tf.GradientTape() as tape:
        tape.watch(wanted)
        outputs = keras_lstm(*inputs, **attributes)
    return tape.gradient(
        outputs, wanted, output_gradients, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
