"""Functions of a model: nodes in the place of their calls."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tf_lstm_ops.onnx_graph.attributes import short

if TYPE_CHECKING:
    import onnx

_MOST_NODES = 1 << 16  # of a model without functions
_DEEPEST = 64  # of functions that call each other


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
    functions = {(each.domain, each.name): each for each in model.functions}
    counts: dict[tuple[str, str], int] = {}

    def count(nodes: Iterable[onnx.NodeProto], depth: int) -> int:
        if depth > _DEEPEST:
            raise ValueError("a function calls itself, or the calls of functions are too deep")
        total = 0
        for node in _with_inner(nodes):
            key = node.domain, node.op_type
            if key in functions and key not in counts:
                counts[key] = count(functions[key].node, depth + 1)
            total += counts.get(key, 1)
            if total > _MOST_NODES:
                raise ValueError(f"the functions make more than {_MOST_NODES} nodes")
        return total

    count(model.graph.node, 0)
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
        for attribute in node.attribute:
            inner = [attribute.g] if attribute.HasField("g") else []
            for part in (*inner, *attribute.graphs):
                yield from _with_inner(part.node)
