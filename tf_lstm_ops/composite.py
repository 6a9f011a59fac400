"""The ops' mathematics in plain TensorFlow ops, differentiable any number of times.

The fused kernels give values and first derivatives; second and higher ones go through here. Each
function takes what the op it stands for takes. 16-bit types are computed in float32, as in the
kernels. Equations: cc/core/lstm_cell.h.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf


class Gates(NamedTuple):
    """Gradients of the pre-activations, [..., H] each."""

    i: Any
    c: Any
    f: Any
    o: Any

    def concat(self, order: str) -> tf.Tensor:
        """[..., 4H] with the gates in this order, such as "ICFO"."""
        return tf.concat([getattr(self, gate.lower()) for gate in order], axis=-1)


class Steps(NamedTuple):
    """The seven outputs of a cell, or the gradients of the loss with respect to them."""

    i: Any
    cs: Any
    f: Any
    o: Any
    ci: Any
    co: Any
    h: Any


class Peephole(NamedTuple):
    """wci, wcf, wco, [H] each."""

    i: Any
    f: Any
    o: Any


_STEPS = len(Steps._fields)


def _compute_dtype(dtype: tf.DType) -> tf.DType:
    return tf.float64 if dtype == tf.float64 else tf.float32


def _cast(values: Any, dtype: tf.DType) -> Any:
    """Casts floating-point tensors of a flat sequence; others are left alone."""
    return [tf.cast(v, dtype) if v.dtype.is_floating else v for v in values]


def _cell_backward(
    y: Steps, cs_prev: Any, bar: Steps, peephole: Peephole | None
) -> tuple[Gates, tf.Tensor]:
    """Gradients of the pre-activations and of cs_prev; see LstmCell::Backward."""
    dzo = y.o * (1 - y.o) * (bar.h * y.co + bar.o)
    dcs = (bar.h * y.o + bar.co) * (1 - y.co * y.co) + bar.cs
    if peephole:
        dcs += peephole.o * dzo
    dzc = (1 - y.ci * y.ci) * (dcs * y.i + bar.ci)
    dzf = y.f * (1 - y.f) * (dcs * cs_prev + bar.f)
    dzi = y.i * (1 - y.i) * (dcs * y.ci + bar.i)
    dcs_prev = dcs * y.f
    if peephole:
        dcs_prev += peephole.i * dzi + peephole.f * dzf
    return Gates(dzi, dzc, dzf, dzo), dcs_prev


def _peephole_grads(dz: Gates, cs_prev: Any, cs: Any, weights: Peephole, used: bool) -> list[Any]:
    """wci_grad, wcf_grad, wco_grad: sums over all but the last axis."""
    if not used:
        return [tf.zeros_like(w) for w in weights]
    axes = list(range(len(cs.shape) - 1))
    products = (dz.i * cs_prev, dz.f * cs_prev, dz.o * cs)
    return [tf.reduce_sum(p, axis=axes) for p in products]


def lstm_block_cell_grad(*inputs: Any, use_peephole: bool) -> list[Any]:
    """LSTMBlockCellGrad: cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad."""
    dtype = inputs[0].dtype
    values = _cast(inputs, _compute_dtype(dtype))
    cs_prev, weights = values[1], Peephole(*values[4:7])
    i, cs, f, o, ci, co, cs_grad, h_grad = values[8:]
    zero = tf.zeros_like(cs)
    y = Steps(i, cs, f, o, ci, co, zero)
    bar = Steps(zero, cs_grad, zero, zero, zero, zero, h_grad)
    dz, cs_prev_grad = _cell_backward(y, cs_prev, bar, weights if use_peephole else None)
    peephole_grads = _peephole_grads(dz, cs_prev, cs, weights, use_peephole)
    return _cast([cs_prev_grad, dz.concat("ICFO"), *peephole_grads], dtype)


def block_lstm_grad(*inputs: Any, use_peephole: bool, order: str) -> list[Any]:
    """BlockLSTMGrad and BlockLSTMGradV2, by the order of the gates."""
    zero = tf.zeros_like(inputs[10])
    outputs, cs_grad, h_grad = inputs[9:16], inputs[16], inputs[17]
    bar = Steps(zero, cs_grad, zero, zero, zero, zero, h_grad)
    return block_lstm_full_grad(*inputs[:9], *outputs, *bar, use_peephole=use_peephole, order=order)


def lstm_block_cell_full_grad(*inputs: Any, use_peephole: bool, order: str) -> list[Any]:
    """LSTMBlockCellFullGrad: a sequence of one step."""
    x, states_and_weights, rows = inputs[0], inputs[1:8], inputs[8:]
    grads = block_lstm_full_grad(
        tf.constant(1, tf.int64),
        x[tf.newaxis],
        *states_and_weights,
        *[r[tf.newaxis] for r in rows],
        use_peephole=use_peephole,
        order=order,
    )
    return [grads[0][0], *grads[1:]]


def block_lstm_full_grad(*inputs: Any, use_peephole: bool, order: str) -> list[Any]:
    """BlockLSTMFullGrad: seq_len_max, 8 inputs, 7 outputs, 7 upstream gradients."""
    dtype = inputs[1].dtype
    steps, x, cs_prev, h_prev, w, wci, wcf, wco, _, *rows = _cast(inputs, _compute_dtype(dtype))
    weights = Peephole(wci, wcf, wco)
    peephole = weights if use_peephole else None
    time, input_size = tf.shape(x)[0], tf.shape(x)[2]
    n = tf.cast(steps, tf.int32)
    y = Steps(*rows[:_STEPS])
    cs_before = tf.concat([cs_prev[tf.newaxis], y.cs], axis=0)[:n]
    h_before = tf.concat([h_prev[tf.newaxis], y.h], axis=0)[:n]
    recurrent = w[input_size:]

    def backward_step(t: Any, dcs: Any, dh: Any, dz_rows: Any) -> Any:
        now = tf.unstack(per_step.read(t), num=2 * _STEPS + 1)
        bar = Steps(*now[_STEPS:-1])
        bar = bar._replace(cs=bar.cs + dcs, h=bar.h + dh)
        gates, dcs = _cell_backward(Steps(*now[:_STEPS]), now[-1], bar, peephole)
        dz = gates.concat(order)
        dcs.set_shape(cs_prev.shape)
        dh = tf.matmul(dz, recurrent, transpose_b=True)
        dh.set_shape(h_prev.shape)
        return t - 1, dcs, dh, dz_rows.write(t, dz)

    stacked = tf.stack([r[:n] for r in rows] + [cs_before], axis=1)  # [n, 15, B, H]
    per_step = tf.TensorArray(stacked.dtype, size=n, clear_after_read=False).unstack(stacked)
    _, dcs, dh, dz_rows = tf.while_loop(
        lambda t, *_: t >= 0,
        backward_step,
        (n - 1, tf.zeros_like(cs_prev), tf.zeros_like(h_prev), _empty_rows(w, cs_prev, n)),
        maximum_iterations=n,
    )
    dz = dz_rows.stack()
    dz.set_shape([None, cs_prev.shape[0], w.shape[1]])
    gates = dict(zip(order, tf.split(dz, 4, axis=-1), strict=True))
    dx = tf.pad(tf.einsum("tbz,iz->tbi", dz, w[:input_size]), [[0, time - n], [0, 0], [0, 0]])
    dw = tf.einsum("tbk,tbz->kz", tf.concat([x[:n], h_before], axis=-1), dz)
    peephole_grads = _peephole_grads(
        Gates(*(gates[g] for g in "ICFO")), cs_before, y.cs[:n], weights, use_peephole
    )
    db = tf.reduce_sum(dz, axis=[0, 1])
    return _cast([dx, dcs, dh, dw, *peephole_grads, db], dtype)


def _empty_rows(w: Any, state: Any, n: Any) -> tf.TensorArray:
    """n rows [B, 4H] to write, which stack even where n is 0."""
    return tf.TensorArray(
        w.dtype, size=n, element_shape=[state.shape[0], w.shape[1]], clear_after_read=False
    )


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
    arguments = _cast((*arguments, input_dropout, recurrent_dropout), _compute_dtype(dtype))
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
    return _cast([output, h, c], dtype)


def keras_lstm_grad(inputs: list[Any], output_gradients: list[Any], **attributes: Any) -> list[Any]:
    """KerasLSTMGrad: gradients of x, the states, the kernels, bias and peephole."""
    wanted = [inputs[n] for n in (0, 2, 3, 4, 5, 6, 7)]
    with tf.GradientTape() as tape:
        tape.watch(wanted)
        outputs = keras_lstm(*inputs, **attributes)
    return tape.gradient(
        outputs, wanted, output_gradients, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
