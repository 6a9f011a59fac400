"""The graph of a file, made of symbolic values."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf_lstm_ops.inference import file
from tf_lstm_ops.inference.graph import values as symbolic
from tf_lstm_ops.inference.graph.values import Node, Value

_PRODUCTS = (file.DENSE, file.CONVOLUTION, file.DEPTHWISE)
_LINEAR = 0
_OF_LAST_AXIS = (file.DENSE, file.ACTIVATION, file.AFFINE, file.NORMALIZATION, file.PAIRS)
_LAST_STEP = (2, 0)  # the ints of a LastStep without keepdims

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
    nodes = _without_batch_normalization(_with_last_steps(nodes, results), results)
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
        return symbolic.node(file.Layer("identity", file.ACTIVATION), [outputs])[0]
    if isinstance(outputs, Mapping):
        return {name: _identities(value) for name, value in outputs.items()}
    return [_identities(value) for value in outputs]


def _without_batch_normalization(
    nodes: list[Node], outputs: Sequence[tuple[str, Value]]
) -> list[Node]:
    """Replaces scales and offsets by other weights of a product.

    A scale and offset behind a product without activation, or before one without padding, of which
    nothing else reads or computes the value between them, becomes part of the product. The weights
    are computed in float64.
    """
    uses = _uses(nodes, outputs)
    kept: list[Node] = []
    for node in nodes:
        source = node.operands[0]
        before = source.node if source is not None else None
        is_sole = source is not None and before in kept and uses[source.key] == 1
        if is_sole and node.layer.kind == file.AFFINE and _may_follow(before, node):  # type: ignore[arg-type]
            before.layer = _scaled_outputs(before.layer, node.layer)  # type: ignore[union-attr]
            uses[source.key] = uses[id(node), source.index]  # type: ignore[union-attr]
            _redirect(nodes, outputs, node, before)  # type: ignore[arg-type]
            continue
        if is_sole and before.layer.kind == file.AFFINE and _may_precede(before, node):  # type: ignore[arg-type, union-attr]
            node.layer = _scaled_inputs(before.layer, node.layer)  # type: ignore[union-attr]
            node.operands[0] = before.operands[0]  # type: ignore[union-attr]
            kept.remove(before)  # type: ignore[arg-type]
        kept.append(node)
    return kept


def _with_last_steps(nodes: list[Node], outputs: Sequence[tuple[str, Value]]) -> list[Node]:
    """Computes what only a LastStep reads for the last step only.

    A LastStep moves in front of the layers that compute each step by itself. Behind a recurrent
    layer that reads forwards it becomes part of it. With one step or more the results keep their
    bits.
    """
    uses = _uses(nodes, outputs)
    left = [*nodes]
    for last in nodes:
        layer = last.layer
        if layer.kind != file.GLOBAL_POOLING or layer.ints != _LAST_STEP or last.batch_axes > 1:
            continue
        while (source := last.operands[0]) is not None and uses[source.key] == 1:
            before: Any = source.node
            if source.is_given or before.batch_axes > 1:
                break
            if _may_return_last_step(before) and source.index == 0:
                before.layer = dataclasses.replace(
                    before.layer, flags=before.layer.flags & ~file.RETURNS_SEQUENCE
                )
                _redirect(left, outputs, last, before)
                left.remove(last)
                break
            if not _is_of_last_axis(before.layer):
                break
            uses[source.key], uses[id(last), 0] = uses[id(last), 0], 1
            _redirect(left, outputs, last, before)
            last.operands[0], before.operands[0], source.node = before.operands[0], source, last
            left.remove(last)
            left.insert(left.index(before), last)
    return left


def _uses(
    nodes: Sequence[Node], outputs: Sequence[tuple[str, Value]]
) -> collections.Counter[tuple[int, int]]:
    """How often each value is read."""
    values = [value for node in nodes for value in node.operands if value is not None]
    return collections.Counter(value.key for value in [*values, *(value for _, value in outputs)])


def _may_return_last_step(recurrent: Node) -> bool:
    layer = recurrent.layer
    is_forwards = layer.kind == file.RECURRENT and layer.directions == file.FORWARDS
    return is_forwards and bool(layer.flags & file.RETURNS_SEQUENCE)


def _is_of_last_axis(layer: file.Layer) -> bool:
    # The factors of a PReLU may be those of several axes.
    return layer.kind in _OF_LAST_AXIS and layer.activation != file.ALL_FUNCTIONS["prelu"]


def _may_follow(product: Node, affine: Node) -> bool:
    layer = product.layer
    is_linear = layer.kind in _PRODUCTS and layer.activation == _LINEAR
    return is_linear and layer.units == affine.layer.input_size


def _may_precede(affine: Node, product: Node) -> bool:
    layer = product.layer
    if layer.kind not in (file.DENSE, file.CONVOLUTION):
        return False
    # Padding with zeros, and groups, see other values.
    is_plain = layer.kind == file.DENSE or (layer.ints[3] == 1 and not any(layer.ints[4:7]))
    return is_plain and layer.input_size == affine.layer.input_size


def _scaled_outputs(layer: file.Layer, affine: file.Layer) -> file.Layer:
    (arrays,), (by,) = layer.arrays, affine.arrays
    kernel, scale = arrays["kernel"].astype(np.float64), by["kernel"].astype(np.float64)
    bias = arrays.get("bias", np.zeros(layer.units)).astype(np.float64)
    scaled = kernel * scale.reshape(kernel.shape[1:] if layer.kind == file.DEPTHWISE else -1)
    new = {"kernel": scaled.astype(np.float32), "bias": (bias * scale + by["bias"]).astype("f4")}
    return dataclasses.replace(layer, arrays=[new])


def _scaled_inputs(affine: file.Layer, layer: file.Layer) -> file.Layer:
    (arrays,), (by,) = layer.arrays, affine.arrays
    kernel, scale = arrays["kernel"].astype(np.float64), by["kernel"].astype(np.float64)
    offset = by["bias"].astype(np.float64)
    bias = arrays.get("bias", np.zeros(layer.units)).astype(np.float64)
    bias = bias + (offset[:, None] * kernel).reshape(-1, layer.units).sum(axis=0)
    new = {"kernel": (scale[:, None] * kernel).astype("f4"), "bias": bias.astype("f4")}
    return dataclasses.replace(layer, arrays=[new])


def _redirect(
    nodes: list[Node], outputs: Sequence[tuple[str, Value]], old: Node, new: Node
) -> None:
    """Makes readers of a node read another one."""
    values = [value for node in nodes for value in node.operands if value is not None]
    for value in [*values, *(value for _, value in outputs)]:
        if value.node is old:
            value.node = new
