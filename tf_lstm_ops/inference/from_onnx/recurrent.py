"""The operators LSTM, GRU and RNN."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tf_lstm_ops import _activations, _cells
from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import file, layers
from tf_lstm_ops.inference.from_onnx.values import Call, Filled, Operand, Operator
from tf_lstm_ops.inference.layers.recurrent import Recurrent, layer_class
from tf_lstm_ops.inference.tracing.axes import Factor, Product, Traced, settled, with_groups
from tf_lstm_ops.inference.tracing.parts import part_of
from tf_lstm_ops.onnx_graph.attributes import short
from tf_lstm_ops.onnx_graph.recurrent import RecurrentNode, read_recurrent
from tf_lstm_ops.weights import class_of

_X, _LENGTHS, _H, _C = 0, 4, 5, 6  # the operands that are no weights
_Y, _Y_H, _Y_C = 0, 1, 2  # the outputs
# The functions of a session by their names in nodes, and the default alpha and beta of ONNX.
_OF_NODES = {f.onnx_cell[0].lower(): f for f in _activations.TABLE if f.is_of_cells and f.onnx_cell}
_DEFAULTS: dict[str, tuple[float | None, float | None]] = {
    "affine": (np.nan, np.nan),  # ONNX names none
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, None),
    "leakyrelu": (0.01, None),
}


def _recurrent(call: Call) -> list[Operand]:
    by_name = dict(zip(call.node.input, call.operands, strict=True))

    def constant(name: str) -> Any:
        found = by_name.get(name)
        return found if isinstance(found, np.ndarray) else None

    read = _in_float32(read_recurrent(call.node, constant, call.opset))
    call.attributes.ignore()  # read_recurrent has refused what it does not read
    _require_plain(call, read)
    x, directions = call.traced(_X), read.R.shape[0]
    if x.rank != 3:
        refuse(f"its input has {x.rank} axes, not 3")
    time, batch = (1, 0) if read.layout else (0, 1)
    x = with_groups(x, (x.axes[batch], x.axes[time], x.axes[2]))
    states = _initial_states(call, x, directions, read.layout)
    layer, needs_states = _layer(call, read, states)
    outputs = layer(x.value, initial_state=states or None)
    values = [*outputs] if isinstance(outputs, tuple) else [outputs]
    direction: Product = (Factor(directions),) if directions > 1 else ()
    features = (*direction, Factor(read.R.shape[2]))
    found: list[Operand] = [None] * len(call.used)
    if call.used[_Y]:
        axes = [x.axes[time], direction, x.axes[batch], features[-1:]]
        if read.layout:
            axes = [axes[2], axes[0], axes[1], axes[3]]
        found[_Y] = Traced(values[0], (x.groups[0], x.groups[1], features), tuple(axes))
    if needs_states:
        finals = values[1:]
        per_direction = len(finals) // directions
        for output, offset in ((_Y_H, 0), (_Y_C, 1)):
            if output < len(found) and call.used[output]:
                found[output] = _final(call, x, finals[offset::per_direction], features, read)
    elif any(call.used[_Y_H:]):
        found[_Y_H] = _final(call, x, values[:1], features, read)
    return found


def _in_float32(read: RecurrentNode) -> RecurrentNode:
    """A node whose weights are float32 or wider before anything is computed with them."""
    arrays = {name: getattr(read, name) for name in ("W", "R", "B", "P")}
    wide = {
        name: array.astype(np.promote_types(array.dtype, np.float32))
        for name, array in arrays.items()
        if array is not None
    }
    return dataclasses.replace(read, **wide)


def _final(
    call: Call, x: Traced, values: list[Any], features: Product, read: RecurrentNode
) -> Traced:
    """The final states of all directions, as ONNX has them."""
    value = values[0] if len(values) == 1 else layers.Concatenate()(values)
    batch = x.axes[0 if read.layout else 1]
    axes = [features[:-1], batch, features[-1:]]
    if read.layout:
        axes = [axes[1], axes[0], axes[2]]
    return Traced(value, (x.groups[0], features), tuple(axes))


def _require_plain(call: Call, read: RecurrentNode) -> None:
    """Refuses options that a session does not have."""
    if call.operand(_LENGTHS) is not None:
        refuse("it has lengths of sequences (sequence_lens). Pass the mask to the session instead")
    if read.clip is not None:
        refuse(f"it clips its gates to {read.clip}")
    if read.input_forget:
        refuse("it couples the input and the forget gate")
    functions = _functions(read)
    if len(functions) == 3 and functions[1] != functions[2]:
        refuse("its activations g and h differ")


def _initial_states(call: Call, x: Traced, directions: int, layout: int) -> list[Any]:
    """The values of the initial states in the order of a session; none for zeros."""
    given = [call.operand(k) for k in (_H, _C)[: len(_cells.BY_COMMON[call.node.op_type].states)]]
    if all(map(_is_zero, given)):
        return []
    states: list[list[Any]] = []
    for operand in given:
        if _is_zero(operand):
            states.append([])
            continue
        if not isinstance(operand, Traced) or operand.rank != 3:
            refuse(
                "one of its initial states is a constant; a session begins with zeros or with "
                "inputs"
            )
        own = (
            operand
            if not layout
            else operand.with_axes([operand.axes[1], operand.axes[0], operand.axes[2]])
        )
        states.append(_of_directions(own, directions))
    [known, *_] = filter(None, states)
    pairs = zip(*(own or [*map(_zero_as, known)] for own in states), strict=True)
    return [state for pair in pairs for state in pair]


def _is_zero(state: Operand) -> bool:
    if isinstance(state, Filled):
        return state.value == 0
    return state is None or (isinstance(state, np.ndarray) and not state.any())


def _zero_as(state: Any) -> Any:
    """Zeros of the shape of the other state, which a session needs if that is not zero."""
    return layers.Subtract()(state, state)


def _of_directions(state: Traced, directions: int) -> list[Any]:
    """The initial states of each direction, [B, H]."""
    if (settled(state.axes[0]) or 0) != directions:
        refuse("an initial state has not one part for each direction")
    parts = [part_of(state, 0, d, d + 1) if directions > 1 else state for d in range(directions)]
    return [with_groups(part, (part.axes[1], part.axes[2])).value for part in parts]


def _functions(read: RecurrentNode) -> tuple[str, ...]:
    """The names of the activations, which all directions must share."""
    if len(set(read.activations)) > 1:
        refuse("its directions have different activations")
    names = _activations.OF_PLAIN_RNN if read.cell is _cells.SIMPLE_RNN else _activations.OF_CELLS
    for name in read.activations[0]:
        if name not in _OF_NODES or _OF_NODES[name].name not in names:
            refuse(f"a session does not have its activation {short(name)}")
    _require_numbers(read)
    return tuple(_OF_NODES[name].name for name in read.activations[0])


def _require_numbers(read: RecurrentNode) -> None:
    """Refuses other values of alpha and beta than those of the functions of a session."""
    every = [name for names in read.activations for name in names]
    wanted = {name: _OF_NODES[name].onnx_cell[1:] for name in every if name in _DEFAULTS}  # type: ignore[index]
    if len({tuple(number is None for number in numbers) for numbers in wanted.values()}) > 1:
        refuse("to which of its activations alpha and beta belong is not clear")
    for k, given in enumerate((read.activation_alpha, read.activation_beta)):
        pairs = [(wanted[n][k], _DEFAULTS[n][k]) for n in every if n in wanted]
        want, default = ([float(p[j] or 0) for p in pairs if p[j] is not None] for j in (0, 1))
        found = [*given] or default
        if want and (len(found) != len(want) or not np.allclose(found, want)):
            names = " and ".join(map(short, sorted(wanted)))
            refuse(f"a session does not have its activation {names} with these alpha and beta")


def _layer(call: Call, read: RecurrentNode, states: list[Any]) -> tuple[Recurrent, bool]:
    """The layer, and whether it returns its states."""
    functions = _functions(read)
    is_read = [k < len(call.used) and call.used[k] for k in (_Y, _Y_H, _Y_C)]
    # The output without return_sequences is Y_h.
    needs_states = is_read[_Y_C] or (is_read[_Y] and is_read[_Y_H])
    options: dict[str, Any] = {
        "return_sequences": is_read[_Y],
        "return_state": needs_states,
        "go_backwards": read.direction == "reverse",
        "name": call.node.name or call.node.op_type,
    }
    given: dict[str, Any] = {} if read.P is None else {"P": read.P}
    if read.cell is _cells.GRU:
        given["linear_before_reset"] = read.linear_before_reset
    own = class_of(read.cell).from_onnx(read.W, read.R, read.B, **given)
    options |= zip(read.cell.activations, functions, strict=True)
    layer: Recurrent = layer_class(own)(own, **options)
    # ONNX keeps the order of the steps in all directions.
    layer.records = [
        dataclasses.replace(record, flags=record.flags & ~file.ORDER_OF_COMPUTATION)
        for record in layer.records
    ]
    return layer, needs_states


OPERATORS = dict.fromkeys(_cells.BY_COMMON, Operator(_recurrent))
