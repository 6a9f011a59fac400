"""The LSTM of MPSGraph.

T time, N batch, I input size, H cell size, D directions.
"""
# Equations and layouts: docs/reference/mpsgraph.md.

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops import op_definitions
from tf_lstm_ops.composite.activations import MPSGRAPH as ACTIVATIONS
from tf_lstm_ops.composite.common import Composite, cast, compute_dtype, gradients, is_absent
from tf_lstm_ops.composite.scan import scan


class _Results(NamedTuple):
    """Results of one direction or of both, in the order in which their gradients are given."""

    output: tf.Tensor  # [T, N, D*H]
    state: tf.Tensor  # [N, D*H], after the last step
    final_cell: tf.Tensor  # [N, D*H]
    cell: tf.Tensor  # [T, N, D*H]
    z_state: tf.Tensor  # [T, N, D*4H]


class _Direction(NamedTuple):
    """The operands of one direction."""

    x: tf.Tensor  # [T, N, 4H], with the bias
    recurrent_weight: tf.Tensor  # [4H, H]
    h: tf.Tensor  # [N, H]
    c: tf.Tensor  # [N, H]
    mask: tf.Tensor | float  # [N, H]
    peephole: tf.Tensor | float  # [4H]


def _directions(inputs: list[tf.Tensor], count: int) -> list[_Direction]:
    values: list[tf.Tensor] = [None if is_absent(value) else value for value in inputs]
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
    operands = [
        tf.split(x, count, axis=2),
        tf.unstack(tf.reshape(recurrent, [count, 4 * units, units])),
        tf.split(h, count, axis=1),
        tf.split(c, count, axis=1),
        mask or [1.0] * count,
        peephole or [0.0] * count,
    ]
    return [_Direction(*direction) for direction in zip(*operands, strict=True)]


def _run_direction(
    d: _Direction, backwards: bool, gate_order: str, activations: dict[str, str]
) -> _Results:
    act = {name: ACTIVATIONS[activation] for name, activation in activations.items()}
    units = d.recurrent_weight.shape[-1]

    def step(x: tf.Tensor, before: tf.Tensor) -> list[tf.Tensor]:
        """One step. Its output has h, c and the gates, [N, 6H]."""
        h, c = before[:, :units], before[:, units : 2 * units]
        z = x + tf.matmul(h * d.mask, d.recurrent_weight, transpose_b=True)
        z += tf.tile(c, [1, 4]) * d.peephole
        pre_activations = zip(gate_order, tf.split(z, 4, axis=-1), strict=True)
        gates = {gate: act[gate](value) for gate, value in pre_activations}
        c = gates["f"] * c + gates["i"] * gates["z"]
        h = gates["o"] * act["output"](c)
        return [tf.concat([h, c, *gates.values()], axis=-1)]

    start = tf.concat([d.h, d.c, tf.zeros_like(tf.tile(d.h, [1, 4]))], axis=-1)
    steps, _, (last,) = scan(step, d.x, None, [start], reverse=backwards, zero_output=False)
    steps = tf.reverse(steps, [0]) if backwards else steps
    output, cell, z_state = tf.split(steps, [units, units, 4 * units], axis=-1)
    return _Results(output, last[:, :units], last[:, units : 2 * units], cell, z_state)


def _run(
    inputs: list[tf.Tensor],
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
    gate_order = "izfo" if forget_gate_last else "ifzo"
    directions = [False, True] if bidirectional else [reverse]
    operands = _directions(cast(inputs, compute_dtype(dtype)), len(directions))
    runs = [
        _run_direction(direction, backwards, gate_order, activations)
        for direction, backwards in zip(operands, directions, strict=True)
    ]
    both = [tf.concat(results, axis=-1) for results in zip(*runs, strict=True)]
    return _Results(*cast(both, dtype))


def _mpsgraph_lstm(*inputs: tf.Tensor, **attributes: Any) -> list[tf.Tensor]:
    """MPSGraphLSTM with all its results. The mask has no gradient."""
    results = _run(list(inputs), **attributes)
    return [results.output, results.cell, results.z_state]


def _mpsgraph_lstm_gradients(
    inputs: list[tf.Tensor], output_grads: list[tf.Tensor], **attributes: Any
) -> list[tf.Tensor]:
    """MPSGraphLSTMGradients. The forward pass is computed again."""
    differentiated = (0, 1, 2, 3, 7, 4, 5)
    present = [n for n in differentiated if not is_absent(inputs[n])]
    given = [n for n, grad in enumerate(output_grads) if not is_absent(grad)]

    def forward(*values: Any) -> list[tf.Tensor]:
        replaced = dict(zip(present, values, strict=True))
        results = _run([replaced.get(n, value) for n, value in enumerate(inputs)], **attributes)
        return [results[n] for n in given]

    def grads(
        results: list[tf.Tensor],
    ) -> list[tf.Tensor]:  # that of a final state may be [1, N, D*H]
        pairs = zip(given, results, strict=True)
        return [tf.reshape(output_grads[n], tf.shape(result)) for n, result in pairs]

    found = iter(gradients(forward, [inputs[n] for n in present], grads))
    return [inputs[n] if is_absent(inputs[n]) else next(found) for n in differentiated]


_FORWARD, _BACKWARD = "MPSGraphLSTM", "MPSGraphLSTMGradients"


def _forward_op(*, produce_cell: bool, training: bool, **arguments: Any) -> list[tf.Tensor]:
    inputs = [arguments.pop(name) for name in op_definitions.inputs(_FORWARD)]
    output, cell, z_state = _mpsgraph_lstm(*inputs, **arguments)
    none = tf.zeros([0], output.dtype)
    return [output, cell if produce_cell or training else none, z_state if training else none]


def _gradient_op(*, z_state: tf.Tensor, cell_output_fwd: Any, **arguments: Any) -> list[tf.Tensor]:
    """The forward op's results z_state and cell_output_fwd are computed again."""
    inputs = [arguments.pop(name) for name in op_definitions.inputs(_FORWARD)]
    names = [name for name in op_definitions.inputs(_BACKWARD) if name.endswith("_gradient")]
    output_grads = [arguments.pop(name) for name in names]
    return _mpsgraph_lstm_gradients(inputs, output_grads, **arguments)


COMPOSITES: dict[str, Composite] = {_FORWARD: _forward_op, _BACKWARD: _gradient_op}
