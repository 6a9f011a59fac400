"""Functions of a model: nodes in the place of their calls."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from tf_lstm_ops.onnx_graph.attributes import short, subgraphs
from tf_lstm_ops.onnx_graph.budget import budget_of

if TYPE_CHECKING:
    import onnx

_MOST_NODES = 1 << 16  # of a model without functions
_DEEPEST = 64  # of functions that call each other


class _Size(NamedTuple):
    """What nodes are without calls of functions: how many, and at most how many bytes."""

    nodes: int
    data: int


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model without functions.

    Args:
      model: the model, which is not changed.

    Returns:
      A model whose graph has the nodes of the functions in the place of their calls; the model
      itself if it has no functions.

    Raises:
      ValueError: a function calls itself, there are too many nodes, or the package onnx cannot
        inline them.
    """
    if not model.functions:
        return model
    functions = {(each.domain, each.name, _overload(each)): each for each in model.functions}
    largest = budget_of(model).left
    known: dict[tuple[str, str, str], _Size] = {}

    def size(nodes: Iterable[onnx.NodeProto], depth: int) -> _Size:
        if depth > _DEEPEST:
            raise ValueError("a function calls itself, or the calls of functions are too deep")
        count = data = 0
        for node in _with_inner(nodes):
            key = node.domain, node.op_type, _overload(node)
            own = node.ByteSize()
            if key in functions:
                if key not in known:
                    known[key] = size(functions[key].node, depth + 1)
                inner = known[key]
                # Each node of a function may get the attributes of the call.
                count, data = count + inner.nodes, data + inner.data + inner.nodes * own
            else:
                count, data = count + 1, data + own
            if count > _MOST_NODES or data > largest:
                raise ValueError(
                    f"the functions make more than {_MOST_NODES} nodes, or {largest} bytes"
                )
        return _Size(count, data)

    size(model.graph.node, 0)
    inliner = importlib.import_module("onnx.inliner")
    try:
        found: onnx.ModelProto = inliner.inline_local_functions(model)
    except Exception as error:  # classes of the C++ part of onnx
        raise ValueError(f"onnx cannot inline its functions: {short(str(error))}") from error
    return found


def _with_inner(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes, and those of the graphs in them."""
    for node in nodes:
        yield node
        for _, part in subgraphs(node):
            yield from _with_inner(part.node)


def _overload(part: onnx.NodeProto | onnx.FunctionProto) -> str:
    """Which of several functions of one name it is. Old versions of onnx have no such field."""
    return getattr(part, "overload", "")
