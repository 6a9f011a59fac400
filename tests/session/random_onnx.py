"""Random ONNX models of the operators that a session computes, in any order of axes.

Most models are right for ONNX; many use another axis as the batch at some node, or combine
operators in ways that a session refuses. What it accepts must be what ONNX Runtime computes.
"""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from session.onnx_sources import BATCHES, STEPS, as_array, node
from session.random_onnx_nodes import MAKERS, Builder, Shape

INPUTS: list[Shape] = [
    *(("B", "T", 4), ("T", "B", 4), ("B", 4, "T"), ("B", 4, 4), ("B", 6, 2), ("B", 4), ("B", 1, 4)),
    *(("B", "T", 1), ("B", "T", 3), ("B", 1, 6, "T"), ("B", 2, "T", 3), (1, "B", 4), ("B", "T")),
]


class RandomOnnx(Builder):
    """A model.

    Args:
      rng: makes it.

    Attributes:
      model: the ``onnx.ModelProto``.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng, {"B": BATCHES[0], "T": STEPS})
        inputs = [self.input(k) for k in range(self.one_of([1, 1, 1, 2]))]
        for _ in range(int(rng.integers(2, 9))):
            self.extend()
        used = {name for each in self.nodes for name in each.input}
        loose = [name for name, _ in self.values if name not in used and name[0] == "v"]
        outputs = self.some_of(loose, 2) or [self.values[-1][0]]
        graph = helper.make_graph(
            self.needed(outputs),
            "g",
            inputs,
            [helper.make_tensor_value_info(name, 1, None) for name in outputs],
            [numpy_helper.from_array(as_array(a), name) for name, a in self.arrays.items()],
        )
        domains = [helper.make_opsetid("", self.opset)]
        self.model = helper.make_model(graph, opset_imports=domains, ir_version=8)

    def needed(self, outputs: list[str]) -> list[Any]:
        """The nodes that outputs depend on: ONNX Runtime aborts at some others without elements."""
        names, found = {*outputs}, []
        for each in reversed(self.nodes):
            if names & {*each.output}:
                names |= {*each.input}
                found.append(each)
        return found[::-1]

    def input(self, k: int) -> onnx.ValueInfoProto:
        shape = self.one_of(INPUTS) if not k else self.alike(self.values[0][1])
        is_words = len(shape) == 2 and shape[1] == "T" and self.happens(0.8)
        name = f"x{k}"
        if is_words:
            table = self.constant(self.random(4, 4))
            self.nodes.append(node("Gather", f"{table} {name}", f"e{k}"))
            self.values.append((f"e{k}", (*shape, 4)))
        else:
            self.values.append((name, shape))
        return helper.make_tensor_value_info(name, 7 if is_words else 1, [*shape])

    def alike(self, shape: Shape) -> Shape:
        """Such a shape with some axes of size 1."""
        return tuple(1 if each != "B" and self.happens(0.3) else each for each in shape)

    def extend(self) -> None:
        for _ in range(20):
            count = len(self.values)
            which = count - 1 if self.happens(0.7) else int(self.rng.integers(count))
            if self.one_of(MAKERS)(self, *self.values[which]) is not None:
                return
