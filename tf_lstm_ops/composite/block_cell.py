"""The block cell's ops. Equations: cc/core/lstm_cell.h."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops.composite.common import (
    cast,
    compute_dtype,
    straight_through_clip,
    valid_steps,
    with_unused,
    zero_where_not,
)
from tf_lstm_ops.composite.scan import scan


class Gates(NamedTuple):
    """The pre-activations, or the gradients of the loss with respect to them, [..., H] each."""

    i: Any
    c: Any
    f: Any
    o: Any

    @classmethod
    def split(cls, z: tf.Tensor, order: str) -> Gates:
        """From [..., 4H] with the gates in this order, such as "ICFO"."""
        return cls(**dict(zip(order.lower(), tf.split(z, 4, axis=-1), strict=True)))

    def concat(self, order: str) -> tf.Tensor:
        """[..., 4H] with the gates in this order."""
        return tf.concat([getattr(self, gate) for gate in order.lower()], axis=-1)


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


def _cell_forward(z: Gates, cs_prev: Any, peephole: Peephole | None, cell_clip: float) -> Steps:
    """The outputs; z.f contains forget_bias. See LstmCell::Forward."""
    if peephole:
        z = z._replace(i=z.i + peephole.i * cs_prev, f=z.f + peephole.f * cs_prev)
    i, f, ci = tf.sigmoid(z.i), tf.sigmoid(z.f), tf.tanh(z.c)
    cs = straight_through_clip(i * ci + f * cs_prev, cell_clip)
    o = tf.sigmoid(z.o + peephole.o * cs if peephole else z.o)
    co = tf.tanh(cs)
    return Steps(i, cs, f, o, ci, co, o * co)


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


def _split_weights(w: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The rows of w for x, then those for h."""
    inputs = tf.shape(x)[-1] if x.shape[-1] is None else x.shape[-1]
    return w[:inputs], w[inputs:]


def lstm_block_cell(
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    *,
    forget_bias: float,
    cell_clip: float,
    use_peephole: bool,
) -> list[Any]:
    """LSTMBlockCell."""
    dtype = x.dtype
    values = cast((x, cs_prev, h_prev, w, wci, wcf, wco, b), compute_dtype(dtype))
    x, cs_prev, h_prev, w, *weights, b = values
    b = b if use_peephole else with_unused(b, *weights)
    z = Gates.split(tf.matmul(tf.concat([x, h_prev], axis=-1), w) + b, "ICFO")
    peephole = Peephole(*weights) if use_peephole else None
    return cast(_cell_forward(z._replace(f=z.f + forget_bias), cs_prev, peephole, cell_clip), dtype)


def block_lstm(
    seq_len_max: Any,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    *,
    order: str,
    forget_bias: float = 0.0,
    cell_clip: float,
    use_peephole: bool,
) -> list[Any]:
    """BlockLSTM and BlockLSTMV2, by the order of the gates."""
    dtype = x.dtype
    values = cast((x, cs_prev, h_prev, w, wci, wcf, wco, b), compute_dtype(dtype))
    x, cs_prev, h_prev, w, *weights, b = values
    b = b if use_peephole else with_unused(b, *weights)
    peephole = Peephole(*weights) if use_peephole else None
    of_x, of_h = _split_weights(w, x)

    def cell(z: Any, _: Any, cs: Any, h: Any) -> list[Any]:
        gates = Gates.split(z + tf.matmul(h, of_h), order)
        y = _cell_forward(gates._replace(f=gates.f + forget_bias), cs, peephole, cell_clip)
        return [tf.concat(y, axis=-1), y.cs, y.h]

    valid = valid_steps(x, seq_len_max)
    z = tf.einsum("tbi,iz->tbz", zero_where_not(valid, x), of_x) + b
    nothing = tf.zeros_like(tf.tile(cs_prev, [1, _STEPS]))
    initial = [nothing, cs_prev, h_prev]
    steps, _, _ = scan(cell, z, valid, initial, reverse=False, zero_output=True)
    return cast(tf.split(steps, _STEPS, axis=-1), dtype)


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
    of_x, of_h = _split_weights(w, x)
    valid = valid_steps(x, steps)

    def before(initial: Any, values: Any) -> Any:
        """The values of the steps before."""
        return tf.concat([initial[tf.newaxis], values], axis=0)[:-1]

    cs_before, h_before = before(cs_prev, rows[1]), before(h_prev, rows[6])
    x, cs_before, h_before, *rows = (
        zero_where_not(valid, v) for v in (x, cs_before, h_before, *rows)
    )

    def backward_step(now: Any, _: Any, dcs: Any, dh: Any) -> list[Any]:
        *rows, cs_prev = tf.unstack(now, num=2 * _STEPS + 1)
        bar = Steps(*rows[_STEPS:])
        bar = bar._replace(cs=bar.cs + dcs, h=bar.h + dh)
        gates, dcs = _cell_backward(Steps(*rows[:_STEPS]), cs_prev, bar, peephole)
        dz = gates.concat(order)
        return [dz, dcs, tf.matmul(dz, of_h, transpose_b=True)]

    per_step = tf.stack([*rows, cs_before], axis=1)  # [T, 15, B, H]
    zero = tf.zeros_like(cs_prev)
    initial = [tf.tile(zero, [1, 4]), zero, tf.zeros_like(h_prev)]
    dz, _, (_, dcs, dh) = scan(
        backward_step, per_step, valid, initial, reverse=True, zero_output=True
    )
    dz = tf.reverse(dz, [0])
    dx = tf.einsum("tbz,iz->tbi", dz, of_x)
    dw = tf.einsum("tbk,tbz->kz", tf.concat([x, h_before], axis=-1), dz)
    peephole_grads = _peephole_grads(
        Gates.split(dz, order), cs_before, rows[1], weights, use_peephole
    )
    return cast([dx, dcs, dh, dw, *peephole_grads, tf.reduce_sum(dz, axis=[0, 1])], dtype)
