"""Recurrent layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_lstm_ops import _cells
from tf_lstm_ops._activations import OF_NODES
from tf_lstm_ops.inference import file, graph
from tf_lstm_ops.inference.arrays import as_array
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers import checks
from tf_lstm_ops.inference.layers.base import Layer
from tf_lstm_ops.weights import CellWeights, GRUWeights, LSTMWeights, RNNWeights

_FUNCTIONS = tuple(file.FUNCTIONS)
# Of the numbers of functions in the file: alpha and beta of each place, the bound, the coupling.
_PLACES = {"recurrent_activation": 0, "activation": 1}
_FUNCTION_NUMBERS, _BOUND, _COUPLES = 8, 6, 7


class Recurrent(Layer):
    """A stack of recurrent layers, by their records.

    Args:
      records: one for each layer of the stack.
      name: for messages.
      return_state: whether the final states are returned: for each direction of each layer h [B, P]
        and, of an LSTM, c [B, H].
      initial_state: with what each row begins where a call has no initial states: for each
        direction of each layer h [P] and, of an LSTM, c [H]; None: zeros.

    Raises:
      ValueError: an initial state has another shape.
    """

    def __init__(
        self,
        records: Sequence[file.Layer],
        name: str | None = None,
        return_state: bool = False,
        initial_state: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(name or records[0].name)
        self._return_state = bool(return_state)
        if initial_state is not None:
            records = with_initial(records, initial_state, self.name)
        self.records = [*records]
        if return_state:
            self.records = [
                dataclasses.replace(record, flags=record.flags | file.RETURNS_STATE)
                for record in self.records
            ]

    @property
    def state_count(self) -> int:
        """The number of states of one layer of the stack."""
        record = self.records[-1]
        directions = 2 if record.directions == file.BOTH else 1
        return directions * len(_cells.BY_NUMBER[record.cell].states)

    def __call__(self, *inputs: Any, initial_state: Any = None) -> Any:
        """Adds the layer to the graph of its inputs.

        Args:
          *inputs: a sequence [B, T, I].
          initial_state: values, as many as the layer has states; None: zeros.

        Returns:
          [B, T, O], or [B, O] without return_sequences. With return_state a tuple with the final
          states behind it.
        """
        states = () if initial_state is None else initial_state
        return super().__call__(
            *inputs, *(states if isinstance(states, list | tuple) else [states])
        )

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Any:
        x, *states = inputs
        count = self.state_count
        if states and len(states) != count * len(self.records):
            raise ValueError(
                f"layer {self.name} must have {count * len(self.records)} initial states. "
                f"Received: {len(states)}"
            )
        y, final = x, list[Value]()
        for k, record in enumerate(self.records):
            operands = [y, x.mask, *states[k * count : (k + 1) * count]]
            outputs = 1 + (count if self._return_state else 0)
            y, *new = graph.node(record, operands, batch_axes, outputs)
            final += new
        if self.records[-1].flags & file.RETURNS_SEQUENCE:
            y = y.with_mask(x.mask)
        return (y, *final) if self._return_state else y


def _function(name: str, function: str) -> int:
    checks.choice(name, function, _FUNCTIONS)
    return file.FUNCTIONS[function]


def with_functions(
    record: file.Layer,
    functions: Sequence[tuple[int, float, float]],
    bound: float = 0.0,
    couples: bool = False,
) -> file.Layer:
    """A record with functions that have numbers.

    Args:
      record: of a cell without layer normalisation.
      functions: the number of each function in the file, its alpha and beta, in the order of
        `Cell.activations`.
      bound: to which the arguments of all functions are clipped; 0: they are not.
      couples: whether the forget gate of an LSTM is 1 - i.

    Returns:
      The record.
    """
    cell = _cells.BY_NUMBER[record.cell]
    places = [_PLACES[name] for name in cell.activations]
    # The second one of an LSTM is that of the cell state.
    places[-1] += len(cell.activations) > 2
    numbers = np.zeros(_FUNCTION_NUMBERS, np.float32)
    for place, (_, alpha, beta) in zip(places, functions, strict=True):
        numbers[2 * place : 2 * place + 2] = alpha, beta
    numbers[_BOUND], numbers[_COUPLES] = bound, couples
    of_place = {place: number for place, (number, *_) in zip(places, functions, strict=True)}
    state = of_place.get(2, of_place[1])
    arrays = [dict(each) for each in record.arrays]
    first = min(each.number for each in OF_NODES.values() if each.alpha is not None)
    if numbers.any() or any(number >= first for number in of_place.values()):
        arrays[0]["functions"] = numbers
    return dataclasses.replace(
        record,
        recurrent_activation=of_place.get(0, 0),
        activation=of_place[1],
        ints=(state + 1,) if state != of_place[1] else (),
        arrays=arrays,
    )


def with_initial(
    records: Sequence[file.Layer], states: Sequence[Any], name: str
) -> list[file.Layer]:
    """Records of layers that begin with states.

    Args:
      records: one for each layer.
      states: for each direction of each layer h [P] and, of an LSTM, c [H].
      name: for messages.

    Returns:
      The records.

    Raises:
      ValueError: there are more or fewer states, or one has another shape.
      TypeError: one has no real numbers.
    """
    label = f"layer {name}: initial_state"
    states = [np.asarray(as_array(label, state), np.float32) for state in states]
    rest = iter(states)
    found, expected = [], []
    for record in records:
        kinds = _cells.BY_NUMBER[record.cell].states
        directions = 2 if record.directions == file.BOTH else 1
        shapes = [(record.hidden_size,), (record.units,)][: len(kinds)]
        expected += shapes * directions
        own = [[next(rest, np.zeros(0)) for _ in kinds] for _ in range(directions)]
        found.append([*zip(*own, strict=True)])
    shapes_of = [np.shape(state) for state in states]
    if shapes_of != expected:
        raise ValueError(f"{label} must have the shapes {expected}. Received: {shapes_of}")
    return [
        dataclasses.replace(record, initial=tuple(map(np.stack, own)))
        for record, own in zip(records, found, strict=True)
    ]


def stack(
    arrays: Sequence[Sequence[dict[str, Any]]],
    name: str,
    cell: _cells.Cell,
    return_sequences: bool,
    zero_output_for_mask: bool,
    go_backwards: bool,
    merge_mode: str = "concat",
    **fields: Any,
) -> list[file.Layer]:
    """The records of a stack of recurrent layers.

    Args:
      arrays: of each layer, for each direction, by the names in the file.
      name: for messages.
      cell: what a step computes.
      return_sequences: whether the last layer returns all outputs. Those before it do.
      zero_output_for_mask: whether its output of a step that does not count is zero.
      go_backwards: whether the only direction is backwards; the last layer returns that order.
      merge_mode: of two directions of the last layer. Those before it concatenate.
      **fields: further fields of all records.

    Returns:
      A record for each layer.

    Raises:
      ValueError: an argument is wrong.
    """
    merge = checks.choice("merge_mode", merge_mode, [*file.MERGE_MODES])
    is_both = len(arrays[0]) == 2
    if go_backwards and is_both:
        raise ValueError("go_backwards must be False for weights of two directions")
    flags = file.RETURNS_SEQUENCE if return_sequences else 0
    flags |= file.ZERO_WHERE_MASKED if zero_output_for_mask else 0
    flags |= file.ORDER_OF_COMPUTATION if go_backwards else 0
    records = []
    for n, own in enumerate(arrays):
        is_last = n == len(arrays) - 1
        kernels = own[0]["kernel"], own[0]["recurrent_kernel"]
        units = kernels[1].shape[1] // len(cell.gates)
        records.append(
            file.Layer(
                name + (f" (layer {n})" if len(arrays) > 1 else ""),
                file.RECURRENT,
                *(kernels[0].shape[0], units, kernels[1].shape[0]),
                directions=file.BOTH
                if is_both
                else file.BACKWARDS
                if go_backwards
                else file.FORWARDS,
                merge=file.MERGE_MODES[merge if is_last else "concat"] if is_both else 0,
                flags=flags if is_last else file.RETURNS_SEQUENCE,
                arrays=[*own],
                cell=cell.number,
                **fields,
            )
        )
    return records


def _of_weights(weights: Any, name: str, *results: Any, **fields: Any) -> list[file.Layer]:
    """The records of weights."""
    cell = (
        _cells.RESET_BEFORE_GRU if getattr(weights, "reset_after", None) is False else weights._CELL
    )
    arrays = [_arrays(each, cell) for each in weights.cells]
    count = weights.directions
    layers = [arrays[k : k + count] for k in range(0, len(arrays), count)]
    return stack(layers, name, cell, *results, **fields)


def _arrays(weights: CellWeights, cell: _cells.Cell) -> dict[str, Any]:
    """The arrays of a direction of a layer by the names in the file."""
    given = weights.arrays()
    names = ("kernel", "recurrent_kernel", "peephole", "projection")
    found = {name: given[name] for name in names if name in given}
    if cell.reset_after:
        found |= {"bias": weights.bias, "recurrent_bias": weights.recurrent_bias}
    else:
        found["bias"] = weights.bias + weights.recurrent_bias
    return {name: np.asarray(array, np.float32) for name, array in found.items()}


def _weights(kind: Any, weights: Any, **options: Any) -> Any:
    """Weights of a class, also from arrays in the order of Keras."""
    if isinstance(weights, kind):
        return weights
    if isinstance(weights, list | tuple):
        return kind.from_keras([np.asarray(each, np.float32) for each in weights], **options)
    raise TypeError(
        f"weights must be {kind.__name__} of tf_lstm_ops.weights, or the list of arrays of a Keras "
        f"layer. Received: {type(weights).__name__}"
    )


class LSTM(Recurrent):
    """An LSTM, of one or more layers and one or two directions, as the weights have them.

    >>> import numpy as np
    >>> from tf_lstm_ops.inference import Session, layers
    >>> kernel, recurrent = np.ones((8, 16)), np.ones((4, 16))
    >>> lstm = layers.LSTM([kernel, recurrent, np.zeros(16)], return_sequences=True)
    >>> Session.from_layers([lstm])(np.ones((2, 3, 8))).shape
    (2, 3, 4)

    Args:
      weights: `LSTMWeights`, or the arrays of a Keras layer: kernel [I, 4H], recurrent_kernel
        [P, 4H], bias [4H], peepholes [3, H] and a projection [H, P] where it has them.
      activation: of the candidate and of the cell state; a name that the fused op has.
      recurrent_activation: of the gates.
      return_sequences: whether all outputs are returned, or the last one.
      return_state: whether the final states are returned behind it.
      go_backwards: whether it reads the sequence backwards, and returns it in that order.
      zero_output_for_mask: whether the output of a step that does not count is zero.
      cell_clip: the bound of the cell state; None: none.
      proj_clip: the bound of the projected h; None: none.
      merge_mode: of two directions: "concat", "sum", "mul" or "ave".
      name: for messages.
      initial_state: arrays with which each row begins: for each direction of each layer h [P] and c
        [H]; None: zeros. A stream begins with them, and its `reset` sets them.

    Raises:
      ValueError: a shape or an argument is wrong.
      TypeError: weights are neither.
    """

    def __init__(
        self,
        weights: LSTMWeights | Sequence[Any],
        activation: str = "tanh",
        recurrent_activation: str = "sigmoid",
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        zero_output_for_mask: bool = False,
        cell_clip: float | None = None,
        proj_clip: float | None = None,
        merge_mode: str = "concat",
        name: str | None = None,
        initial_state: Sequence[Any] | None = None,
    ) -> None:
        records = _of_weights(
            _weights(LSTMWeights, weights),
            name or "LSTM",
            *(return_sequences, zero_output_for_mask, go_backwards, merge_mode),
            activation=_function("activation", activation),
            recurrent_activation=_function("recurrent_activation", recurrent_activation),
            number=float(cell_clip or 0.0),
            proj_clip=float(proj_clip or 0.0),
        )
        super().__init__(records, name, return_state, initial_state)


class GRU(Recurrent):
    """A GRU, of one or more layers and one or two directions, as the weights have them.

    Args:
      weights: `GRUWeights`, or the arrays of a Keras layer: kernel [I, 3H], recurrent_kernel
        [H, 3H] and bias: [2, 3H] for reset_after=True, else [3H].
      activation: of the candidate; a name that the fused op has.
      recurrent_activation: of the gates.
      return_sequences: whether all outputs are returned, or the last one.
      return_state: whether the final state is returned behind it.
      go_backwards: whether it reads the sequence backwards, and returns it in that order.
      zero_output_for_mask: whether the output of a step that does not count is zero.
      merge_mode: of two directions: "concat", "sum", "mul" or "ave".
      name: for messages.
      initial_state: arrays with which each row begins: for each direction of each layer h [H];
        None: zeros. A stream begins with them, and its `reset` sets them.

    Raises:
      ValueError: a shape or an argument is wrong.
      TypeError: weights are neither.
    """

    def __init__(
        self,
        weights: GRUWeights | Sequence[Any],
        activation: str = "tanh",
        recurrent_activation: str = "sigmoid",
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        zero_output_for_mask: bool = False,
        merge_mode: str = "concat",
        name: str | None = None,
        initial_state: Sequence[Any] | None = None,
    ) -> None:
        records = _of_weights(
            _weights(GRUWeights, weights),
            name or "GRU",
            *(return_sequences, zero_output_for_mask, go_backwards, merge_mode),
            activation=_function("activation", activation),
            recurrent_activation=_function("recurrent_activation", recurrent_activation),
        )
        super().__init__(records, name, return_state, initial_state)


class SimpleRNN(Recurrent):
    """A plain RNN, of one or more layers and one or two directions, as the weights have them.

    Args:
      weights: `RNNWeights`, or the arrays of a Keras layer: kernel [I, H], recurrent_kernel [H, H]
        and bias [H].
      activation: "tanh" or "relu", of arrays; None: that of `RNNWeights`, or "tanh".
      return_sequences: whether all outputs are returned, or the last one.
      return_state: whether the final state is returned behind it.
      go_backwards: whether it reads the sequence backwards, and returns it in that order.
      zero_output_for_mask: whether the output of a step that does not count is zero.
      merge_mode: of two directions: "concat", "sum", "mul" or "ave".
      name: for messages.
      initial_state: arrays with which each row begins: for each direction of each layer h [H];
        None: zeros. A stream begins with them, and its `reset` sets them.

    Raises:
      ValueError: a shape or an argument is wrong.
      TypeError: weights are neither.
    """

    def __init__(
        self,
        weights: RNNWeights | Sequence[Any],
        activation: str | None = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        zero_output_for_mask: bool = False,
        merge_mode: str = "concat",
        name: str | None = None,
        initial_state: Sequence[Any] | None = None,
    ) -> None:
        read: RNNWeights = _weights(RNNWeights, weights, activation=activation)
        records = _of_weights(
            read,
            name or "SimpleRNN",
            *(return_sequences, zero_output_for_mask, go_backwards, merge_mode),
            activation=_function("activation", activation or read.activation),
        )
        super().__init__(records, name, return_state, initial_state)


# The layer for the weights of a cell, whatever reset_after is.
BY_FAMILY: dict[_cells.Cell, Any] = {
    _cells.LSTM: LSTM,
    _cells.GRU: GRU,
    _cells.SIMPLE_RNN: SimpleRNN,
}


def layer_class(weights: Any) -> Any:
    """The layer of weights.

    Args:
      weights: of `tf_lstm_ops.weights`.

    Returns:
      The class `LSTM`, `GRU` or `SimpleRNN`.
    """
    return BY_FAMILY[type(weights)._CELL]
