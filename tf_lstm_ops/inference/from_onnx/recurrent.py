"""The operators LSTM, GRU and RNN."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tf_lstm_ops import _activations, _cells
from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import file, graph, layers
from tf_lstm_ops.inference.from_onnx import masks
from tf_lstm_ops.inference.from_onnx.values import (
    Array,
    Call,
    Filled,
    Operand,
    Operator,
    Size,
    is_of,
)
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers.normalization import affine
from tf_lstm_ops.inference.layers.recurrent import layer_class, with_functions
from tf_lstm_ops.inference.tracing.axes import (
    Factor,
    NotBatch,
    Product,
    Traced,
    real,
    rows_of,
    settled,
    with_groups,
)
from tf_lstm_ops.inference.tracing.parts import part_of
from tf_lstm_ops.onnx_graph.attributes import short
from tf_lstm_ops.onnx_graph.recurrent import RecurrentNode, read_recurrent
from tf_lstm_ops.weights import class_of

_X, _LENGTHS, _H, _C = 0, 4, 5, 6  # the operands that are no weights
_Y, _Y_H, _Y_C = 0, 1, 2  # the outputs
# Functions of cells without numbers, by their names in nodes, and the alpha and beta that they are.
_FIXED = [
    (f.onnx_cell[0].lower(), *f.onnx_cell[1:], f.number)
    for f in _activations.TABLE
    if f.is_of_cells and f.onnx_cell
]
_Function = tuple[int, float, float]  # the number in the file, alpha and beta


class _Part(NamedTuple):
    """One direction of a node, or both where they have the same functions.

    Attributes:
      read: the node with the weights of these directions.
      functions: in the order of `Cell.activations`.
      first: the first direction.
    """

    read: RecurrentNode
    functions: tuple[_Function, ...]
    first: int


class _Initial(NamedTuple):
    """Initial states.

    Attributes:
      values: those of all directions in the order of a session; empty if no call decides any.
      rows: of h and c the row of each direction, [D, H]; None for zeros.
    """

    values: list[Value]
    rows: tuple[Array | None, ...]

    @property
    def is_given(self) -> bool:
        """Whether any is not zero."""
        return bool(self.values or self.rows)


def recurrent(call: Call) -> list[Operand]:
    """The layers of a recurrent node.

    Args:
      call: the node.

    Returns:
      What its outputs stand for.

    Raises:
      Refused, ValueError: a session does not compute it.
    """
    by_name = dict(zip(call.node.input, call.operands, strict=True))

    def constant(name: str) -> Any:
        found = by_name.get(name)
        return found if isinstance(found, np.ndarray) else None

    read = _in_float32(read_recurrent(call.node, constant, call.opset))
    call.attributes.ignore()  # read_recurrent has refused what it does not read
    given = [call.operand(k) for k in (_X, _H, _C)]
    if any(isinstance(each, Traced) and not each.is_float for each in given):
        refuse("it computes with integers of an input")
    moved = masks.packed(call, _X, _LENGTHS)
    if moved is not None:
        return _of_packed(call, read, *moved)
    x, directions = call.traced(_X), read.R.shape[0]
    if x.rank != 3:
        refuse(f"its input has {x.rank} axes, not 3")
    time, batch = (1, 0) if read.layout else (0, 1)
    rows = rows_of(x, batch)
    if len(rows) > 1:
        raise NotBatch
    x = with_groups(x, (*rows, x.axes[time], x.axes[2]))
    mask = _mask(call, x)
    initial = _initial_states(call, read)
    is_read = [k < len(call.used) and call.used[k] for k in (_Y, _Y_H, _Y_C)]
    # The output without return_sequences is Y_h, but zero in a row without steps.
    needs_states = is_read[_Y_C] or (is_read[_Y_H] and (is_read[_Y] or initial.is_given))
    sequences, finals = [], list[Value]()
    for part in _parts(read):
        layer = _layer(call, part, is_read[_Y], needs_states, mask is not None)
        states = _of_part(initial, part, directions)
        layer.records = [
            dataclasses.replace(record, initial=() if states.values else states.rows)
            for record in layer.records
        ]
        source = x.value if mask is None else x.value.with_mask(mask)
        outputs = layer(source, initial_state=states.values or None)
        y, *final = outputs if isinstance(outputs, tuple) else (outputs,)
        # The lengths are those of this node. A mask of the call goes on.
        sequences.append(y if y.mask is None else y.with_mask(x.value.mask))
        finals += final
    direction: Product = (Factor(directions),) if directions > 1 else ()
    features = (*direction, Factor(read.R.shape[2]))
    found: list[Operand] = [None] * len(call.used)
    if call.used[_Y]:
        axes = [x.axes[time], direction, x.axes[batch], features[-1:]]
        if read.layout:
            axes = [axes[2], axes[0], axes[1], axes[3]]
        value = _joined(sequences)
        found[_Y] = Traced(value, (x.groups[0], x.groups[1], features), tuple(axes))
    if needs_states:
        per_direction = len(finals) // directions
        for output, offset in ((_Y_H, 0), (_Y_C, 1)):
            if output < len(found) and call.used[output]:
                found[output] = _final(x, finals[offset::per_direction], features, read)
    elif any(call.used[_Y_H:]):
        found[_Y_H] = _final(x, sequences, features, read)
    return found


def _of_packed(
    call: Call, read: RecurrentNode, x: Traced, mask: masks.Mask, backwards: bool
) -> list[Operand]:
    """The outputs of a node whose input has moved by a mask."""
    if read.direction != "forward" or read.layout:
        refuse("its steps have moved by a mask, and it is not a forward node with layout 0")
    initial = _initial_states(call, read)
    own = dataclasses.replace(read, direction="reverse" if backwards else "forward")
    (part,) = _parts(own)
    layer = _layer(call, part, False, False, False)
    states = _of_part(initial, part, 1)
    rows = () if states.values else states.rows
    layer.records = [dataclasses.replace(record, initial=rows) for record in layer.records]
    value = layer(x.value.with_mask(mask.make(x)), initial_state=states.values or None)
    operands = [call.operand(k) for k in (_H, _C)[: len(read.cell.states)]]
    run = masks.Run(value.node, x, backwards, operands, read.R.shape[2])
    return masks.outputs(run, mask, len(call.used))


def _joined(values: Sequence[Value]) -> Value:
    return values[0] if len(values) == 1 else layers.Concatenate()(*values)


def _in_float32(read: RecurrentNode) -> RecurrentNode:
    """A node whose weights are float32 or wider before anything is computed with them."""
    arrays = {name: getattr(read, name) for name in ("W", "R", "B", "P")}
    wide = {
        name: array.astype(np.promote_types(array.dtype, np.float32))
        for name, array in arrays.items()
        if array is not None
    }
    return dataclasses.replace(read, **wide)


def _final(x: Traced, values: list[Value], features: Product, read: RecurrentNode) -> Traced:
    """The final states of all directions, as ONNX has them."""
    batch = x.axes[0 if read.layout else 1]
    axes = [features[:-1], batch, features[-1:]]
    if read.layout:
        axes = [axes[1], axes[0], axes[2]]
    return Traced(_joined(values), (x.groups[0], features), tuple(axes))


# Lengths.


def _mask(call: Call, x: Traced) -> Value | None:
    """The steps that the lengths of sequences leave; None: all."""
    lengths = call.operand(_LENGTHS)
    if lengths is None:
        return None
    time = x.groups[1]
    if isinstance(lengths, np.ndarray | Filled):
        every = np.ravel(lengths.value if isinstance(lengths, Filled) else lengths)
        if all(
            is_of(each, time) if isinstance(each, Size) else each == settled(time) for each in every
        ):
            return None
        refuse("its lengths of sequences (sequence_lens) are constants; a session takes an input")
    is_read = isinstance(lengths, Traced) and lengths.value.is_given
    if not isinstance(lengths, Traced) or lengths.is_float or not is_read or lengths.rank != 1:
        refuse(
            "its lengths of sequences (sequence_lens) are computed; a session takes an input as it "
            "is"
        )
    if real(lengths.axes[0]) != real(x.groups[0]):
        refuse("its lengths of sequences (sequence_lens) are not those of the batch")
    (mask,) = graph.node(file.Layer("lengths", file.MASK_OF_LENGTHS), [lengths.value, x.value])
    if x.value.mask is None:
        return mask
    (both,) = graph.node(file.Layer("masks", file.MASKS), [x.value.mask, mask])
    return both


# Initial states.


def _initial_states(call: Call, read: RecurrentNode) -> _Initial:
    """The initial states of a node."""
    directions, layout = read.R.shape[0], read.layout
    count = len(read.cell.states)
    operands = [call.operand(k) for k in (_H, _C)[:count]]
    rows = tuple(_rows(operand, read) for operand in operands)
    traced = [operand for operand in operands if isinstance(operand, Traced)]
    if not traced:
        return _Initial([], rows if any(row is not None for row in rows) else ())
    states: list[list[Value]] = []
    known: list[Value] = []
    for operand in operands:
        if isinstance(operand, Traced) and operand.rank != 3:
            refuse(f"one of its initial states has {operand.rank} axes, not 3")
        if isinstance(operand, Traced):
            order = [1, 0, 2] if layout else [0, 1, 2]
            own = operand.with_axes([operand.axes[k] for k in order])
            states.append(_of_directions(own, directions))
            known = states[-1]
        else:
            states.append([])
    every = [
        own or [_constant_as(known[d], row, d) for d in range(directions)]
        for own, row in zip(states, rows, strict=True)
    ]
    return _Initial([state for pair in zip(*every, strict=True) for state in pair], ())


def _rows(state: Operand, read: RecurrentNode) -> Array | None:
    """The row of a constant state with which all rows begin, [D, H]; None for zeros."""
    if state is None or isinstance(state, Traced):
        return None
    array = state.value if isinstance(state, Filled) else state
    if not isinstance(array, np.ndarray) or array.dtype == object:
        refuse("one of its initial states is no array")
    if not array.any():
        return None
    if array.ndim not in (0, 3):
        refuse(f"one of its initial states has {array.ndim} axes, not 3")
    if (array != array).any():
        refuse("one of its initial states is NaN")
    array = array.swapaxes(0, 1) if read.layout and array.ndim else array
    if array.ndim and (array != array[:, :1]).any():
        refuse("one of its initial states differs between the rows of the batch")
    row, shape = array[:, 0] if array.ndim else array, (read.R.shape[0], read.R.shape[2])
    try:
        return np.broadcast_to(row, shape).astype(np.float32)
    except ValueError:
        refuse(f"a row of an initial state has the shape {[*row.shape]}, not {[*shape]}")


def _constant_as(known: Value, rows: Array | None, direction: int) -> Value:
    """A constant state as a value, with the rows of another state that is one."""
    zero = layers.Subtract()(known, known)
    if rows is None:
        return zero
    row = np.ravel(rows[direction])
    return affine("initial state", np.ones_like(row), row)(zero)


def _of_directions(state: Traced, directions: int) -> list[Value]:
    """The initial states of each direction, [B, H]."""
    if (settled(state.axes[0]) or 0) != directions:
        refuse("an initial state has not one part for each direction")
    parts = [part_of(state, 0, d, d + 1) if directions > 1 else state for d in range(directions)]
    return [with_groups(part, (part.axes[1], part.axes[2])).value for part in parts]


def _of_part(initial: _Initial, part: _Part, directions: int) -> _Initial:
    """The initial states of some directions, with all rows where one is not zero."""
    count, size = part.read.R.shape[0], part.read.R.shape[2]
    own = slice(part.first, part.first + count)
    per_direction = len(initial.values) // directions
    values = initial.values[own.start * per_direction : own.stop * per_direction]
    rows = [
        np.zeros((count, size), np.float32) if row is None else row[own] for row in initial.rows
    ]
    return _Initial(values, tuple(rows))


# Functions.


def _parts(read: RecurrentNode) -> list[_Part]:
    """The node, or each of its directions where they have different functions."""
    functions = _functions(read)
    if len({*functions}) == 1:
        return [_Part(read, functions[0], 0)]
    found = []
    for d, own in enumerate(functions):
        arrays: dict[str, Any] = {
            name: array[d : d + 1]
            for name in ("W", "R", "B", "P")
            if (array := getattr(read, name)) is not None
        }
        part = dataclasses.replace(read, direction=("forward", "reverse")[d], **arrays)
        found.append(_Part(part, own, d))
    return found


def _functions(read: RecurrentNode) -> list[tuple[_Function, ...]]:
    """The functions of each direction. Those that take an alpha take the next one, as a beta."""
    numbers = [iter(read.activation_alpha), iter(read.activation_beta)]
    found = []
    for names in read.activations:
        own = []
        for name in names:
            if name not in _activations.OF_NODES:
                refuse(f"a session does not have its activation {short(name)}")
            function = _activations.OF_NODES[name]
            pair = [
                None if default is None else float(next(rest, default))
                for rest, default in zip(numbers, (function.alpha, function.beta), strict=True)
            ]
            if any(number is not None and math.isnan(number) for number in pair):
                refuse(f"its activation {short(name)} must have alpha and beta")
            own.append(_numbered(name, function.number, pair))
        found.append(tuple(own))
    if any(next(rest, None) is not None for rest in numbers):
        refuse("it has more alpha or beta than its activations take")
    return found


def _numbered(name: str, number: int, pair: Sequence[float | None]) -> _Function:
    """A function with its numbers; without any where it is one that has none."""
    for fixed, *wanted, fixed_number in _FIXED:
        if fixed == name and all(
            a is None or b is None or np.isclose(a, b) for a, b in zip(pair, wanted, strict=True)
        ):
            return fixed_number, 0.0, 0.0
    return number, pair[0] or 0.0, pair[1] or 0.0


def _layer(
    call: Call, part: _Part, is_sequence: bool, needs_states: bool, has_lengths: bool
) -> Any:
    """The layer of some directions."""
    read = part.read
    given: dict[str, Any] = {} if read.P is None else {"P": read.P}
    if read.cell is _cells.GRU:
        given["linear_before_reset"] = read.linear_before_reset
    own = class_of(read.cell).from_onnx(read.W, read.R, read.B, **given)
    layer = layer_class(own)(
        own,
        return_sequences=is_sequence,
        return_state=needs_states,
        go_backwards=read.direction == "reverse",
        zero_output_for_mask=has_lengths and is_sequence,
        name=call.node.name or call.node.op_type,
    )
    clip = 0.0 if read.clip in (None, math.inf) else read.clip  # 0: none
    if read.clip is not None and not read.clip > 0:
        refuse(f"its clip is {read.clip}, must be positive")
    # ONNX keeps the order of the steps in all directions.
    layer.records = [
        dataclasses.replace(
            with_functions(record, part.functions, clip, read.input_forget),
            flags=record.flags & ~file.ORDER_OF_COMPUTATION,
        )
        for record in layer.records
    ]
    return layer


OPERATORS = dict.fromkeys(_cells.BY_COMMON, Operator(recurrent, of_integers=True))
