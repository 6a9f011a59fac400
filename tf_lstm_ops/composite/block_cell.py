"""The gradients of the block cell's ops. Equations: cc/core/lstm_cell.h."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops.composite.common import cast, compute_dtype


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
    values = cast(inputs, compute_dtype(dtype))
    cs_prev, weights = values[1], Peephole(*values[4:7])
    i, cs, f, o, ci, co, cs_grad, h_grad = values[8:]
    zero = tf.zeros_like(cs)
    y = Steps(i, cs, f, o, ci, co, zero)
    bar = Steps(zero, cs_grad, zero, zero, zero, zero, h_grad)
    dz, cs_prev_grad = _cell_backward(y, cs_prev, bar, weights if use_peephole else None)
    peephole_grads = _peephole_grads(dz, cs_prev, cs, weights, use_peephole)
    return cast([cs_prev_grad, dz.concat("ICFO"), *peephole_grads], dtype)


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
    steps, x, cs_prev, h_prev, w, wci, wcf, wco, _, *rows = cast(inputs, compute_dtype(dtype))
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
    return cast([dx, dcs, dh, dw, *peephole_grads, db], dtype)


def _empty_rows(w: Any, state: Any, n: Any) -> tf.TensorArray:
    """n rows [B, 4H] to write, which stack even where n is 0."""
    return tf.TensorArray(
        w.dtype, size=n, element_shape=[state.shape[0], w.shape[1]], clear_after_read=False
    )
