"""Whether recurrent nodes of an ONNX file are the layers of a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tf_lstm_ops.onnx_graph.attributes import attributes

if TYPE_CHECKING:
    import onnx

    from tf_lstm_ops.onnx_graph.recurrent import Found, RecurrentNode

Axes = tuple[str, ...]
_MOST_SIZES = 64  # of one vector, with their factors


def is_stack(layers: list[Found]) -> bool:
    """Whether nodes are layers.

    Args:
      layers: the nodes.

    Returns:
      Whether each one reads the whole output of the one before, and has the same options.
    """
    graph = layers[0].graph
    if any(each.graph is not graph for each in layers):
        return False
    try:
        nodes = [each.read() for each in layers]
    except ValueError:
        return False
    inputs = len(nodes[0].W) * nodes[0].hidden_size
    fits = all(each.W.shape[2] == inputs for each in nodes[1:])
    same = all(_options(each) == _options(nodes[0]) for each in nodes)
    return same and fits and _is_chain(layers, nodes)


def _options(node: RecurrentNode) -> list[Any]:
    """What all layers of weights have in common."""
    names = "hidden_size", "direction", "activations", "clip", "linear_before_reset"
    return [node.R.dtype, node.P is None, *(getattr(node, name) for name in names)]


def _is_chain(layers: list[Found], nodes: list[RecurrentNode]) -> bool:
    """Whether X of each node is Y of the one before, but for the order of its axes."""
    previous = 0
    follower = _Follower(layers[0], nodes[0])
    for node in layers[0].graph.node:
        if previous + 1 < len(layers) and node is layers[previous + 1].node:
            want = ("T", "N", "H") if nodes[previous + 1].layout == 0 else ("N", "T", "H")
            if follower.axes.get(node.input[0]) != want:
                return False
            previous += 1
            follower = _Follower(layers[previous], nodes[previous])
        else:
            follower.follow(node)
    return previous == len(layers) - 1


def _output_axes(node: RecurrentNode) -> tuple[str, ...]:
    """The axes of Y. "1" is that of one direction."""
    directions = "D" if node.direction == "bidirectional" else "1"
    return ("T", directions, "N", "H") if node.layout == 0 else ("N", "T", directions, "H")


class _Follower:
    """What becomes of the output Y of a node.

    Args:
      layer, node: the node.

    Attributes:
      axes: of values that have the elements of Y in its order, by name.
    """

    def __init__(self, layer: Found, node: RecurrentNode) -> None:
        self._layer = layer
        self._directions, self._units = len(node.R), node.R.shape[2]
        first = layer.node.output[0]
        self.axes: dict[str, Axes] = {first: _output_axes(node)} if first else {}
        # Vectors of sizes: each a number, or the axes whose product it is.
        self._sizes: dict[str, list[int | Axes]] = {}

    def follow(self, node: onnx.NodeProto) -> None:
        """Adds what a node makes of known values."""
        if not node.input or not node.output or node.domain not in ("", "ai.onnx"):
            return
        source, target = node.input[0], node.output[0]
        axes = self.axes.get(source)
        if node.op_type == "Shape" and axes:
            part = slice(attributes(node).get("start", 0), attributes(node).get("end"))
            self._sizes[target] = [(axis,) for axis in axes[part]]
        elif axes and (moved := self._moved(node, axes)):
            self.axes[target] = moved
        elif any(name in self._sizes for name in node.input):
            sizes = self._computed(node) or []
            factors = sum(len(each) for each in sizes if isinstance(each, tuple))
            if sizes and len(sizes) + factors <= _MOST_SIZES:
                self._sizes[target] = sizes

    def _moved(self, node: onnx.NodeProto, axes: Axes) -> Axes | None:
        """The axes of a node's output; None if it does more than move axes, or may do so."""
        op = node.op_type
        if op in ("Identity", "Dropout"):
            return axes
        if op == "Transpose":
            order = attributes(node).get("perm", [*range(len(axes))][::-1])
            fits = isinstance(order, list) and sorted(order) == [*range(len(axes))]
            return tuple(axes[k] for k in order) if fits else None
        if len(axes) != 4:
            return None
        if op == "Squeeze" and "1" in axes and self._takes_1(node, axes):
            return _without_1(axes)
        if op == "Reshape":
            wanted = _without_1(axes) if "1" in axes else axes[:3]
            is_joined = "1" in axes or axes[2:] == ("D", "H")
            if is_joined and self._makes(node, axes, (*wanted[:2], "H")):
                return (*wanted[:2], "H")
        return None

    def _takes_1(self, node: onnx.NodeProto, axes: Axes) -> bool:
        """Whether a Squeeze takes the axis of one direction."""
        given, place = attributes(node).get("axes"), axes.index("1")
        if given is None:
            if not any(node.input[1:]):  # all of size 1, and the next node needs three axes
                return True
            given = self._vector(node.input[1])
        return given in ([place], [place - len(axes)])

    def _makes(self, node: onnx.NodeProto, axes: Axes, wanted: Axes) -> bool:
        """Whether a Reshape makes the wanted axes."""
        target = self._vector(node.input[1]) or []
        known: dict[str, Any] = dict(zip(axes, self._declared(node.input[0]), strict=False))
        known["H"] = self._units if "1" in axes else self._units * self._directions
        if len(target) != len(wanted) or target.count(-1) > 1 or attributes(node).get("allowzero"):
            return False
        return all(
            self._is_size(size, axes[k], axis, known.get(axis))
            for k, (size, axis) in enumerate(zip(target, wanted, strict=True))
        )

    def _is_size(self, size: int | Axes, copied: str, axis: str, known: Any) -> bool:
        """Whether an element of the target of a Reshape stands for an axis."""
        if size == 0:
            return copied == axis
        if isinstance(size, int):
            return size in (-1, known)
        return _without_1(size) in ((axis,), ("D", axis))

    def _vector(self, name: str) -> list[Any] | None:
        """Sizes; None if they are not known."""
        if name in self._sizes:
            return self._sizes[name]
        array = self._layer.constants.get(name)
        return None if array is None else [int(each) for each in array.ravel()]

    def _computed(self, node: onnx.NodeProto) -> list[Any] | None:
        """The sizes that a node makes of sizes."""
        operands: list[list[Any]] = []
        for name in filter(None, node.input):
            operand = self._vector(name)
            if operand is None:
                return None
            operands.append(operand)
        first, *rest = operands
        if node.op_type in ("Identity", "Cast", "Unsqueeze", "Squeeze", "Reshape"):
            return first
        if node.op_type == "Concat":
            return [size for each in operands for size in each]
        if node.op_type == "Gather" and rest[0] and max(map(abs, rest[0])) < len(first):
            return [first[k] for k in rest[0]]
        if node.op_type == "Slice" and len(rest) in (2, 3) and rest[0] and rest[1]:
            return first[rest[0][0] : rest[1][0]]
        if node.op_type == "Mul" and len(first) == len(rest[0]) == 1:
            factors = [each if isinstance(each, tuple) else None for each in (first[0], rest[0][0])]
            if None not in factors:
                return [tuple(axis for each in factors if each for axis in each)]
        return None

    def _declared(self, name: str) -> list[int | None]:
        """The sizes of a value that the file says; None where it does not."""
        graph = self._layer.graph
        for value in (*graph.input, *graph.value_info):
            if value.name == name:
                return [each.dim_value or None for each in value.type.tensor_type.shape.dim]
        return []


def _without_1(axes: Axes) -> Axes:
    return tuple(axis for axis in axes if axis != "1")
