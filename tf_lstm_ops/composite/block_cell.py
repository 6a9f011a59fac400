"""The block cell's ops.

B batch, T time, I input size, H cell size. Inputs have the names of the ops' inputs; functions of
gradient ops take them by position. A gate_order is "ICFO", or "IFCO" for the ops V2.
"""
# Equations: cc/core/lstm_cell.h, docs/reference/block_cell.md.

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops import _cells
from tf_lstm_ops.composite.common import (
    Composite,
    cast,
    compute_dtype,
    straight_through_clip,
    valid_steps,
    with_unused,
    zero_where_not,
)
from tf_lstm_ops.composite.scan import scan


class Gates(NamedTuple):
    """The gate pre-activations, or their gradients.

    Attributes:
      i, c, f, o: [..., H] each: input gate, candidate, forget gate, output gate.
    """

    i: tf.Tensor
    c: tf.Tensor
    f: tf.Tensor
    o: tf.Tensor

    @classmethod
    def split(cls, z: tf.Tensor, gate_order: str) -> Gates:
        """Splits the gates of one tensor.

        Args:
          z: [..., 4H].
          gate_order: the order of the gates in z, such as "ICFO".

        Returns:
          The four gates.
        """
        return cls(**dict(zip(gate_order.lower(), tf.split(z, 4, axis=-1), strict=True)))

    def concat(self, gate_order: str) -> tf.Tensor:
        """Joins the gates in one tensor.

        Args:
          gate_order: the order of the gates in the result, such as "ICFO".

        Returns:
          [..., 4H].
        """
        return tf.concat([getattr(self, gate) for gate in gate_order.lower()], axis=-1)


class CellOutputs(NamedTuple):
    """The seven outputs of a cell, or their gradients.

    Attributes:
      i, cs, f, o, ci, co, h: [..., H] each, as the ops name them.
    """

    i: tf.Tensor
    cs: tf.Tensor
    f: tf.Tensor
    o: tf.Tensor
    ci: Any
    co: Any
    h: tf.Tensor


class Peephole(NamedTuple):
    """The peephole weights.

    Attributes:
      i, f, o: wci, wcf and wco, [H] each.
    """

    i: tf.Tensor
    f: tf.Tensor
    o: tf.Tensor


_OUTPUTS = len(CellOutputs._fields)


def _cell_forward(
    z: Gates, cs_prev: tf.Tensor, peephole: Peephole | None, cell_clip: float
) -> CellOutputs:
    """The outputs of a step. z.f includes forget_bias. See LstmCell::Forward."""
    if peephole:
        z = z._replace(i=z.i + peephole.i * cs_prev, f=z.f + peephole.f * cs_prev)
    i, f, ci = tf.sigmoid(z.i), tf.sigmoid(z.f), tf.tanh(z.c)
    cs = straight_through_clip(i * ci + f * cs_prev, cell_clip)
    o = tf.sigmoid(z.o + peephole.o * cs if peephole else z.o)
    co = tf.tanh(cs)
    return CellOutputs(i, cs, f, o, ci, co, o * co)


def _cell_backward(
    y: CellOutputs, cs_prev: tf.Tensor, grads: CellOutputs, peephole: Peephole | None
) -> tuple[Gates, tf.Tensor]:
    """Gradients of the pre-activations and of cs_prev; see LstmCell::Backward."""
    o_grad = y.o * (1 - y.o) * (grads.h * y.co + grads.o)
    cs_grad = (grads.h * y.o + grads.co) * (1 - y.co * y.co) + grads.cs
    if peephole:
        cs_grad += peephole.o * o_grad
    c_grad = (1 - y.ci * y.ci) * (cs_grad * y.i + grads.ci)
    f_grad = y.f * (1 - y.f) * (cs_grad * cs_prev + grads.f)
    i_grad = y.i * (1 - y.i) * (cs_grad * y.ci + grads.i)
    cs_prev_grad = cs_grad * y.f
    if peephole:
        cs_prev_grad += peephole.i * i_grad + peephole.f * f_grad
    return Gates(i_grad, c_grad, f_grad, o_grad), cs_prev_grad


def _peephole_grads(
    z_grad: Gates, cs_prev: tf.Tensor, cs: tf.Tensor, weights: Peephole, used: bool
) -> list[tf.Tensor]:
    """wci_grad, wcf_grad, wco_grad: sums over all but the last axis."""
    if not used:
        return [tf.zeros_like(w) for w in weights]
    axes = list(range(len(cs.shape) - 1))
    products = (z_grad.i * cs_prev, z_grad.f * cs_prev, z_grad.o * cs)
    return [tf.reduce_sum(p, axis=axes) for p in products]


def _split_weights(w: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The rows of w for x, and the rows for h."""
    inputs = tf.shape(x)[-1] if x.shape[-1] is None else x.shape[-1]
    return w[:inputs], w[inputs:]


def _operands(inputs: dict[str, tf.Tensor], use_peephole: bool) -> list[Any]:
    """x, cs_prev, h_prev, w, b and the peepholes, which may be None, in the type to compute in."""
    names = ("x", "cs_prev", "h_prev", "w", "b", "wci", "wcf", "wco")
    dtype = compute_dtype(inputs["x"].dtype)
    *values, b, wci, wcf, wco = cast([inputs[name] for name in names], dtype)
    if use_peephole:
        return [*values, b, Peephole(wci, wcf, wco)]
    return [*values, with_unused(b, wci, wcf, wco), None]


def _lstm_block_cell(
    *, forget_bias: float, cell_clip: float, use_peephole: bool, **inputs: tf.Tensor
) -> list[tf.Tensor]:
    """LSTMBlockCell: its seven outputs."""
    x, cs_prev, h_prev, w, b, peephole = _operands(inputs, use_peephole)
    z = Gates.split(tf.matmul(tf.concat([x, h_prev], axis=-1), w) + b, _cells.BLOCK)
    y = _cell_forward(z._replace(f=z.f + forget_bias), cs_prev, peephole, cell_clip)
    return cast(y, inputs["x"].dtype)


def _block_lstm(
    *,
    gate_order: str,
    seq_len_max: Any,
    forget_bias: float = 0.0,
    cell_clip: float,
    use_peephole: bool,
    **inputs: tf.Tensor,
) -> list[tf.Tensor]:
    """BlockLSTM and V2, which has no forget_bias: their seven outputs."""
    x, cs_prev, h_prev, w, b, peephole = _operands(inputs, use_peephole)
    kernel, recurrent_kernel = _split_weights(w, x)

    def cell(z: tf.Tensor, _: Any, cs: tf.Tensor, h: tf.Tensor) -> list[tf.Tensor]:
        gates = Gates.split(z + tf.matmul(h, recurrent_kernel), gate_order)
        y = _cell_forward(gates._replace(f=gates.f + forget_bias), cs, peephole, cell_clip)
        return [tf.concat(y, axis=-1), y.cs, y.h]

    valid = valid_steps(x, seq_len_max)
    z = tf.einsum("tbi,iz->tbz", zero_where_not(valid, x), kernel) + b
    zero = tf.zeros_like(tf.tile(cs_prev, [1, _OUTPUTS]))
    initial = [zero, cs_prev, h_prev]
    outputs, _, _ = scan(cell, z, valid, initial, reverse=False, zero_output=True)
    return cast(tf.split(outputs, _OUTPUTS, axis=-1), inputs["x"].dtype)


def _lstm_block_cell_grad(*inputs: Any, use_peephole: bool, gate_order: str) -> list[tf.Tensor]:
    """LSTMBlockCellGrad: cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad."""
    dtype = inputs[0].dtype
    values = cast(inputs, compute_dtype(dtype))
    cs_prev, weights = values[1], Peephole(*values[4:7])
    i, cs, f, o, ci, co, cs_grad, h_grad = values[8:]
    zero = tf.zeros_like(cs)
    y = CellOutputs(i, cs, f, o, ci, co, zero)
    grads = CellOutputs(zero, cs_grad, zero, zero, zero, zero, h_grad)
    z_grad, cs_prev_grad = _cell_backward(y, cs_prev, grads, weights if use_peephole else None)
    peephole_grads = _peephole_grads(z_grad, cs_prev, cs, weights, use_peephole)
    return cast([cs_prev_grad, z_grad.concat(gate_order), *peephole_grads], dtype)


def _block_lstm_grad(*inputs: Any, use_peephole: bool, gate_order: str) -> list[tf.Tensor]:
    """BlockLSTMGrad and V2: the gradients of the inputs from x to b."""
    zero = tf.zeros_like(inputs[10])
    outputs, cs_grad, h_grad = inputs[9:16], inputs[16], inputs[17]
    grads = CellOutputs(zero, cs_grad, zero, zero, zero, zero, h_grad)
    return _block_lstm_full_grad(
        *inputs[:9], *outputs, *grads, use_peephole=use_peephole, gate_order=gate_order
    )


def _lstm_block_cell_full_grad(
    *inputs: Any, use_peephole: bool, gate_order: str
) -> list[tf.Tensor]:
    """LSTMBlockCellFullGrad: BlockLSTMFullGrad of a sequence of one step."""
    x, states_and_weights, outputs = inputs[0], inputs[1:8], inputs[8:]
    grads = _block_lstm_full_grad(
        tf.constant(1, tf.int64),
        x[tf.newaxis],
        *states_and_weights,
        *[value[tf.newaxis] for value in outputs],
        use_peephole=use_peephole,
        gate_order=gate_order,
    )
    return [grads[0][0], *grads[1:]]


def _block_lstm_full_grad(*inputs: Any, use_peephole: bool, gate_order: str) -> list[tf.Tensor]:
    """BlockLSTMFullGrad: the gradients of the inputs from x to b.

    Its inputs are seq_len_max, the other eight inputs of BlockLSTM, its seven outputs and their
    gradients.
    """
    dtype = inputs[1].dtype
    length, x, cs_prev, h_prev, w, wci, wcf, wco, _, *values = cast(inputs, compute_dtype(dtype))
    weights = Peephole(wci, wcf, wco)
    peephole = weights if use_peephole else None
    kernel, recurrent_kernel = _split_weights(w, x)
    valid = valid_steps(x, length)
    cs_before = _previous(cs_prev, values[1])
    h_before = _previous(h_prev, values[6])
    x, cs_before, h_before, *values = (
        zero_where_not(valid, v) for v in (x, cs_before, h_before, *values)
    )

    def backward_step(
        now: tf.Tensor, _: Any, cs_grad: tf.Tensor, h_grad: tf.Tensor
    ) -> list[tf.Tensor]:
        *values, cs_prev = tf.unstack(now, num=2 * _OUTPUTS + 1)
        grads = CellOutputs(*values[_OUTPUTS:])
        grads = grads._replace(cs=grads.cs + cs_grad, h=grads.h + h_grad)
        outputs = CellOutputs(*values[:_OUTPUTS])
        gates, cs_grad = _cell_backward(outputs, cs_prev, grads, peephole)
        z_grad = gates.concat(gate_order)
        return [z_grad, cs_grad, tf.matmul(z_grad, recurrent_kernel, transpose_b=True)]

    per_step = tf.stack([*values, cs_before], axis=1)  # [T, 15, B, H]
    zero = tf.zeros_like(cs_prev)
    initial = [tf.tile(zero, [1, 4]), zero, tf.zeros_like(h_prev)]
    z_grad, _, (_, cs_grad, h_grad) = scan(
        backward_step, per_step, valid, initial, reverse=True, zero_output=True
    )
    z_grad = tf.reverse(z_grad, [0])
    x_grad = tf.einsum("tbz,iz->tbi", z_grad, kernel)
    w_grad = tf.einsum("tbk,tbz->kz", tf.concat([x, h_before], axis=-1), z_grad)
    gates = Gates.split(z_grad, gate_order)
    peephole_grads = _peephole_grads(gates, cs_before, values[1], weights, use_peephole)
    b_grad = tf.reduce_sum(z_grad, axis=[0, 1])
    return cast([x_grad, cs_grad, h_grad, w_grad, *peephole_grads, b_grad], dtype)


def _previous(initial: Any, values: Any) -> Any:
    """The values [T, B, H] of the previous steps; the first one is the initial value [B, H]."""
    return tf.concat([initial[tf.newaxis], values], axis=0)[:-1]


def _by_name(function: Callable[..., list[tf.Tensor]], gate_order: str | None = None) -> Composite:
    """A composite with named inputs, from a function that takes them by position.

    The gate order is fixed, or an attribute of the op.
    """

    def composite(*, use_peephole: bool, **arguments: Any) -> list[tf.Tensor]:
        order = gate_order or arguments.pop("gate_order")
        return function(*arguments.values(), use_peephole=use_peephole, gate_order=order)

    return composite


COMPOSITES: dict[str, Composite] = {
    "LSTMBlockCell": _lstm_block_cell,
    "BlockLSTM": functools.partial(_block_lstm, gate_order=_cells.BLOCK),
    "BlockLSTMV2": functools.partial(_block_lstm, gate_order=_cells.BLOCK_V2),
    "LSTMBlockCellGrad": _by_name(_lstm_block_cell_grad, _cells.BLOCK),
    "BlockLSTMGrad": _by_name(_block_lstm_grad, _cells.BLOCK),
    "BlockLSTMGradV2": _by_name(_block_lstm_grad, _cells.BLOCK_V2),
    "LSTMBlockCellFullGrad": _by_name(_lstm_block_cell_full_grad),
    "BlockLSTMFullGrad": _by_name(_block_lstm_full_grad),
}
