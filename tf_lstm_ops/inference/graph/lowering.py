"""The graph of a file, made of symbolic values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tf_lstm_ops.inference import file
from tf_lstm_ops.inference.graph import fold
from tf_lstm_ops.inference.graph.values import Node, Value, node

# Before layers become one: a file has half of them.
_MOST_NODES = 8192


def lower(inputs: Any, outputs: Any) -> file.Graph:
    """The graph of the nodes between inputs and outputs.

    Args:
      inputs: an input value, a list of them, or a dictionary of them by names.
      outputs: a value, a list of values, or a dictionary of them by names.

    Returns:
      The graph.

    Raises:
      ValueError: an output depends on an input that is not in `inputs`, or none on any of them.
      TypeError: inputs are no input values, or outputs no values.
    """
    input_structure, given = _flat("inputs", inputs)
    output_structure, results = _flat("outputs", outputs)
    for name, value in given:
        if not value.is_given or value.index:
            raise TypeError(f"inputs must be values of layers.Input. {name or 'one'} is computed")
    if len({value.key for _, value in given}) < len(given):
        raise ValueError("an input is given twice")
    nodes, results = _copied(_ordered([value for _, value in results]), results)
    if len(nodes) > _MOST_NODES:
        raise ValueError(f"the model has {len(nodes)} layers, more than a session has")
    nodes = fold.batch_normalization(fold.last_steps(nodes, results), results)
    numbers = {value.key: k for k, (_, value) in enumerate(given)}
    numbers |= {(id(value.node), 1): len(given) + k for k, (_, value) in enumerate(given)}
    lowered = []
    for each in nodes:
        operands = tuple(None if v is None else _number(v, numbers) for v in each.operands)
        lowered.append(file.Node(each.layer, operands, each.batch_axes))
        for k in range(each.outputs):
            numbers[id(each), k] = len(numbers)
    if not lowered:  # nothing but layers such as Dropout
        return lower(inputs, _identities(outputs))
    return file.Graph(
        [_named(value.node, name) for name, value in given],
        lowered,
        [(name, _number(value, numbers)) for name, value in results],
        input_structure,
        output_structure,
    )


def _flat(kind: str, values: Any) -> tuple[int, list[tuple[str, Value]]]:
    """The structure of inputs or outputs, and their names and values."""
    if isinstance(values, Value):
        structure, pairs = file.SINGLE, [("", values)]
    elif isinstance(values, Mapping):
        structure, pairs = file.DICTIONARY, [*values.items()]
    elif isinstance(values, list | tuple):
        structure, pairs = file.LIST, [("", value) for value in values]
    else:
        pairs = []
    if not pairs or not all(isinstance(v, Value) and isinstance(name, str) for name, v in pairs):
        raise TypeError(
            f"{kind} must be a value of layers, a list or a dictionary of values, one or more. "
            f"Received: {values!r}"
        )
    return structure, pairs


def _ordered(values: Sequence[Value]) -> Iterator[Node]:
    """The nodes that compute values, each behind those that it reads."""
    done: set[int] = set()
    stack: list[tuple[Node, Iterator[Value | None]]] = []

    def enter(value: Value | None) -> None:
        if value is not None and isinstance(value.node, Node) and id(value.node) not in done:
            done.add(id(value.node))
            stack.append((value.node, iter(value.node.operands)))

    for value in values:
        enter(value)
        while stack:
            current, operands = stack[-1]
            depth = len(stack)
            for operand in operands:
                enter(operand)
                if len(stack) > depth:
                    break
            if len(stack) == depth:
                yield current
                stack.pop()


def _copied(
    nodes: Iterator[Node], outputs: Sequence[tuple[str, Value]]
) -> tuple[list[Node], list[tuple[str, Value]]]:
    """Copies of nodes, which may change, and the outputs as values of the copies."""
    copies: dict[int, Node] = {}

    def copied(value: Value | None) -> Value | None:
        if value is None or value.is_given:
            return value
        return Value(copies[id(value.node)], value.index)

    for each in nodes:
        operands = [copied(value) for value in each.operands]
        copies[id(each)] = dataclasses.replace(each, operands=operands)
    results = [(name, copied(value)) for name, value in outputs]
    return [*copies.values()], results  # type: ignore[return-value]


def _number(value: Value, numbers: Mapping[tuple[int, int], int]) -> int:
    number = numbers.get(value.key)
    if number is None:
        name = value.node.name if isinstance(value.node, file.Input) else ""
        raise ValueError(f"an output depends on the input {name!r}, which is not among the inputs")
    return number


def _named(given: Any, name: str) -> file.Input:
    return dataclasses.replace(given, name=name) if name else given


def _identities(outputs: Any) -> Any:
    """Values through a layer that computes nothing, since a graph has one layer or more."""
    if isinstance(outputs, Value):
        return node(file.Layer("identity", file.ACTIVATION), [outputs])[0]
    if isinstance(outputs, Mapping):
        return {name: _identities(value) for name, value in outputs.items()}
    return [_identities(value) for value in outputs]
