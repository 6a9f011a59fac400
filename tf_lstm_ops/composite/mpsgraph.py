"""The LSTM of MPSGraph. Equations and layouts: docs/mpsgraph.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops.composite.common import cast, compute_dtype, is_absent
from tf_lstm_ops.composite.scan import scan


def _hard_sigmoid(x: tf.Tensor) -> tf.Tensor:
    """Its derivative at a kink is 0, which that of tf.clip_by_value is not."""
    y = 0.2 * x + 0.5
    return tf.where(y <= 0, tf.zeros_like(y), tf.where(y >= 1, tf.ones_like(y), y))


_ACTIVATIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "none": tf.identity,
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "hard_sigmoid": _hard_sigmoid,
}


class _Results(NamedTuple):
    """Of one direction or of both; the order in which gradients of them are given."""

    output: tf.Tensor  # [T, N, D*H]
    state: tf.Tensor  # [N, D*H], after the last step
    final_cell: tf.Tensor  # [N, D*H]
    cell: tf.Tensor  # [T, N, D*H]
    z_state: tf.Tensor  # [T, N, D*4H]


class _Direction(NamedTuple):
    """What one direction works on."""

    x: tf.Tensor  # [T, N, 4H], with the bias
    recurrent_weight: tf.Tensor  # [4H, H]
    h: tf.Tensor  # [N, H]
    c: tf.Tensor  # [N, H]
    mask: tf.Tensor | float  # [N, H]
    peephole: tf.Tensor | float  # [4H]


def _directions(inputs: list[Any], count: int) -> list[_Direction]:
    values: list[Any] = [None if is_absent(value) else value for value in inputs]
    source, recurrent, weight, bias, h, c, mask, peephole = values
    units = recurrent.shape[-1]
    if units is None:
        raise ValueError("recurrent_weight.shape[-1] must be known here; set it with set_shape")
    batch = source.shape[1]
    states = [tf.shape(source)[1] if batch is None else batch, count * units]
    x = source if weight is None else tf.einsum("tni,gi->tng", source, weight)
    x = x if bias is None else x + tf.reshape(bias, [count * 4 * units])
    h, c = (tf.zeros(states, x.dtype) if value is None else value for value in (h, c))
    if mask is not None:
        mask = tf.split(tf.stop_gradient(tf.broadcast_to(mask, states)), count, axis=1)
    if peephole is not None:
        peephole = tf.unstack(tf.reshape(peephole, [count, 4 * units]))
    parts = [
        tf.split(x, count, axis=2),
        tf.unstack(tf.reshape(recurrent, [count, 4 * units, units])),
        tf.split(h, count, axis=1),
        tf.split(c, count, axis=1),
        mask or [1.0] * count,
        peephole or [0.0] * count,
    ]
    return [_Direction(*direction) for direction in zip(*parts, strict=True)]


def _run_direction(
    d: _Direction, backwards: bool, order: str, activations: dict[str, str]
) -> _Results:
    act = {name: _ACTIVATIONS[activation] for name, activation in activations.items()}
    units = d.recurrent_weight.shape[-1]

    def step(x: tf.Tensor, before: tf.Tensor) -> list[Any]:
        """All that a step calculates is its output: h, c and the gates, [N, 6H]."""
        h, c = before[:, :units], before[:, units : 2 * units]
        z = x + tf.matmul(h * d.mask, d.recurrent_weight, transpose_b=True)
        z += tf.tile(c, [1, 4]) * d.peephole
        parts = zip(order, tf.split(z, 4, axis=-1), strict=True)
        gates = {gate: act[gate](value) for gate, value in parts}
        c = gates["f"] * c + gates["i"] * gates["z"]
        h = gates["o"] * act["output"](c)
        return [tf.concat([h, c, *gates.values()], axis=-1)]

    start = tf.concat([d.h, d.c, tf.zeros_like(tf.tile(d.h, [1, 4]))], axis=-1)
    rows, _, (last,) = scan(step, d.x, None, [start], reverse=backwards, zero_output=False)
    rows = tf.reverse(rows, [0]) if backwards else rows
    output, cell, z_state = tf.split(rows, [units, units, 4 * units], axis=-1)
    return _Results(output, last[:, :units], last[:, units : 2 * units], cell, z_state)


def _run(
    inputs: list[Any],
    *,
    reverse: bool,
    bidirectional: bool,
    forget_gate_last: bool,
    input_gate_activation: str,
    forget_gate_activation: str,
    cell_gate_activation: str,
    output_gate_activation: str,
    activation: str,
) -> _Results:
    activations = {
        "i": input_gate_activation,
        "f": forget_gate_activation,
        "z": cell_gate_activation,
        "o": output_gate_activation,
        "output": activation,
    }
    dtype = inputs[0].dtype
    order = "izfo" if forget_gate_last else "ifzo"
    directions = [False, True] if bidirectional else [reverse]
    parts = _directions(cast(inputs, compute_dtype(dtype)), len(directions))
    runs = [
        _run_direction(part, backwards, order, activations)
        for part, backwards in zip(parts, directions, strict=True)
    ]
    both = [tf.concat(results, axis=-1) for results in zip(*runs, strict=True)]
    return _Results(*cast(both, dtype))


def mpsgraph_lstm(
    source: Any,
    recurrent_weight: Any,
    input_weight: Any,
    bias: Any,
    init_state: Any,
    init_cell: Any,
    mask: Any,
    peephole: Any,
    **attributes: Any,
) -> list[Any]:
    """MPSGraphLSTM: output, cell, z_state. The mask has no gradient.

    Raises:
      ValueError: the cell size is not static.
    """
    inputs = [source, recurrent_weight, input_weight, bias, init_state, init_cell, mask, peephole]
    results = _run(inputs, **attributes)
    return [results.output, results.cell, results.z_state]


def mpsgraph_lstm_gradients(inputs: list[Any], upstream: list[Any], **attributes: Any) -> list[Any]:
    """MPSGraphLSTMGradients: gradients of source, recurrent_weight, input_weight, bias, peephole,
    init_state and init_cell, [0] for those that are absent.

    Args:
      inputs: those of mpsgraph_lstm.
      upstream: gradients of output, the final state and cell of each direction, cell and z_state;
        all but the first may be absent.
    """
    differentiated = [inputs[n] for n in (0, 1, 2, 3, 7, 4, 5)]
    present = [value for value in differentiated if not is_absent(value)]
    with tf.GradientTape() as tape:
        tape.watch(present)
        results = _run(inputs, **attributes)
    given = [
        (result, tf.reshape(gradient, tf.shape(result)))  # that of a final state may be [1, N, D*H]
        for result, gradient in zip(results, upstream, strict=True)
        if not is_absent(gradient)
    ]
    targets, gradients = zip(*given, strict=True)
    zero = tf.UnconnectedGradients.ZERO
    found = iter(tape.gradient(targets, present, gradients, unconnected_gradients=zero))
    return [value if is_absent(value) else next(found) for value in differentiated]
