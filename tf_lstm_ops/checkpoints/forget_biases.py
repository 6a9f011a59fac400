"""The constants that graphs of TensorFlow 1 add to the forget gates of their LSTM cells."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping
from typing import Any

from tf_lstm_ops.checkpoints.names import cell_of

_SAME = ("Identity", "Enter", "ReadVariableOp")  # what gives its first input on
_SUMS = ("Add", "AddV2")
_TO_GATES = ("MatMul", "BiasAdd", "Split", "SplitV", *_SAME, *_SUMS)
_FUSED = ("LSTMBlockCell", "BlockLSTM", "BlockLSTMV2")
_FORGET_GATE = 2  # of i, j, f, o
_GATES = 4

_Uses = Mapping[str, list[Any]]  # by outputs such as "split:2", nodes


def of_graph(graph: Any) -> dict[str, float]:
    """Finds the constants.

    Args:
      graph: a GraphDef.

    Returns:
      The constants by the names of the cells. What the graph does not clearly say is left out.
    """
    nodes = {node.name: node for node in graph.node}
    uses: collections.defaultdict[str, list[Any]] = collections.defaultdict(list)
    for node in graph.node:
        for source in node.input:
            uses[source if ":" in source else f"{source}:0"].append(node)
    found = {}
    for node in graph.node:
        cell = cell_of(node.name, ("kernel", "old kernel"))
        if cell is not None and node.op in ("Const", "VariableV2", "Variable", "VarHandleOp"):
            values = {*_added(node.name, nodes, uses)}
            if len(values) == 1 and None not in values:
                found[cell] = values.pop()
    return {cell: value for cell, value in found.items() if value is not None}


def _added(kernel: str, nodes: Mapping[str, Any], uses: _Uses) -> Iterator[float | None]:
    """What is added to the forget gates that depend on a kernel; None for something else."""
    pending, seen = [f"{kernel}:0"], set()
    while pending:
        output = pending.pop()
        for node in uses.get(output, ()):
            if node.name in seen:
                continue
            seen.add(node.name)
            if node.op in _FUSED:
                yield node.attr["forget_bias"].f
            elif node.op in ("Split", "SplitV"):
                if node.attr["num_split"].i == _GATES:
                    yield from _of_gate(f"{node.name}:{_FORGET_GATE}", nodes, uses)
            elif node.op in _TO_GATES:
                pending.append(f"{node.name}:0")


def _of_gate(gate: str, nodes: Mapping[str, Any], uses: _Uses) -> Iterator[float | None]:
    for node in uses.get(gate, ()):
        if node.op == "Sigmoid":
            yield 0.0
        elif node.op in _SUMS:
            constants = [_number(source, nodes) for source in node.input[:2]]
            yield next((value for value in constants if value is not None), None)
        elif node.op == "Identity":
            yield from _of_gate(f"{node.name}:0", nodes, uses)


def _number(source: str, nodes: Mapping[str, Any]) -> float | None:
    """The constant scalar of an input."""
    import tensorflow as tf

    node = nodes.get(source.partition(":")[0])
    for _ in nodes:  # a graph may have a circle
        if node is None or node.op not in _SAME or not node.input:
            break
        node = nodes.get(node.input[0].partition(":")[0])
    if node is None or node.op != "Const" or node.attr["value"].tensor.tensor_shape.dim:
        return None
    try:
        return float(tf.make_ndarray(node.attr["value"].tensor))
    except (TypeError, ValueError, KeyError):  # KeyError: of a dtype that is none
        return None
