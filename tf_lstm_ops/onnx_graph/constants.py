"""What is constant in a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tf_lstm_ops.files.limits import MADE_BYTES
from tf_lstm_ops.onnx_graph import tensors
from tf_lstm_ops.onnx_graph.attributes import label, short
from tf_lstm_ops.onnx_graph.budget import Budget
from tf_lstm_ops.onnx_graph.folding import evaluate, folds
from tf_lstm_ops.onnx_graph.tensors import Array

if TYPE_CHECKING:
    import onnx

__all__ = ["Constants", "evaluate", "folds"]


class Constants:
    """The arrays of a graph that do not depend on its inputs.

    They are the initializers, and what nodes make of constants only.

    Args:
      graph: the graph.
      outer: the constants of the graph around it, whose names it can read; None without.
      opset: the version of the default domain; None: that of `outer`, or any.
      budget: counts what nodes make; None: that of `outer`, or a new one.

    Attributes:
      opset: the version of the default domain; 0: any.
      budget: of all graphs of the file.
    """

    def __init__(
        self,
        graph: onnx.GraphProto,
        outer: Constants | None = None,
        opset: int | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._outer = outer
        self.budget: Budget = budget or (outer.budget if outer else Budget(MADE_BYTES))
        self.opset: int = opset or (outer.opset if outer else 0)
        self._tensors = {tensor.name: tensor for tensor in graph.initializer}
        self._sparse = {tensor.values.name for tensor in graph.sparse_initializer}
        self._inputs = {value.name for value in graph.input}
        self._makers = {name: node for node in graph.node for name in node.output if name}
        self._known: dict[str, Array | None] = {}

    def get(self, name: str) -> Array | None:
        """The array of a name.

        Args:
          name: of a value of the graph, or of one around it.

        Returns:
          A read-only array; None if the value is no constant, or there is no such name.

        Raises:
          ValueError: a tensor is damaged, sparse or has no numbers; or a node has wrong operands,
            or makes too much. The text names the tensor or node.
        """
        stack, waiting = [name], set()
        while stack:
            top = stack[-1]
            node = self._makers.get(top)
            if top in self._known:
                stack.pop()
            elif node is None:
                self._known[top] = self._leaf(top)
            elif not folds(node):
                self._known.update(dict.fromkeys(node.output))
            elif missing := [x for x in node.input if x and x not in self._known]:
                if top in waiting:
                    raise ValueError(f"{label(node)} needs its own output {short(top)}")
                waiting.add(top)
                stack += missing
            else:
                self._compute(node)
        return self._known[name]

    def _leaf(self, name: str) -> Array | None:
        if name in self._tensors:
            return tensors.to_array(self._tensors[name], f"tensor {short(name)}")
        if name in self._sparse:
            raise ValueError(f"tensor {short(name)} is sparse, which is not read")
        if name in self._inputs or self._outer is None:
            return None
        return self._outer.get(name)

    def _compute(self, node: onnx.NodeProto) -> None:
        operands = [self._known[name] if name else None for name in node.input]
        made = evaluate(node, operands, self.opset, self.budget)
        self._known.update(dict.fromkeys(node.output))
        for name, array in zip(node.output, made or [], strict=False):
            view = array.view()
            view.flags.writeable = False
            self._known[name] = view
