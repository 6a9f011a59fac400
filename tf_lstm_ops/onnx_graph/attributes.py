"""The attributes of a node, and the words that name it in messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tf_lstm_ops import _received
from tf_lstm_ops._refusal import Refused, require, within
from tf_lstm_ops.onnx_graph import tensors

if TYPE_CHECKING:
    import onnx

_LONGEST = 60  # of a name in a message
# By the type of an attribute: the fields of one value and of several, and what reads a value.
_FIELDS: dict[str, tuple[str, str, Callable[[Any, str], Any]]] = {
    "STRING": ("s", "strings", lambda text, where: text.decode()),
    "TENSOR": ("t", "tensors", tensors.to_array),
    **{
        name: (single, f"{name.lower()}s", lambda value, where: value)
        for name, single in (("INT", "i"), ("FLOAT", "f"), ("GRAPH", "g"), ("TYPE_PROTO", "tp"))
    },
}


def short(name: str) -> str:
    """A name of a file for a message, which may be of any length there.

    Args:
      name: the name.

    Returns:
      The name, or its beginning. Characters that cannot be printed are escaped.
    """
    start = _received.printable(name[: _LONGEST + 1])
    return start if len(start) <= _LONGEST else f"{start[: _LONGEST - 3]}..."


def label(node: onnx.NodeProto) -> str:
    """Names a node in a message.

    Args:
      node: the node.

    Returns:
      Words such as "node LSTM_3 (LSTM)", or "node with the output y (LSTM)" without a name.
    """
    op = short(node.op_type) or "no operator"
    if node.name:
        return f"node {short(node.name)} ({op})"
    output = next(filter(None, node.output), None)
    return f"node with the output {short(output)} ({op})" if output else f"node without name ({op})"


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and all graphs in it.

    Args:
      graph: the graph.

    Yields:
      The graphs, each before those in it.
    """
    yield graph
    for node in graph.node:
        for _, part in subgraphs(node):
            yield from graphs(part)


def subgraphs(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    """The graphs in a node, such as the branches of an If. Graphs in these are not among them.

    Args:
      node: the node.

    Yields:
      The name of the attribute, and the graph.
    """
    for attribute in node.attribute:
        inner = [attribute.g] if attribute.HasField("g") else []
        for graph in (*inner, *attribute.graphs):
            yield attribute.name, graph


class Attributes(dict[str, Any]):
    """The attributes of a node by name, which know what was read of them by `[]` and `get`.

    A node computes something else where an attribute is ignored, so `schemas.require_read` refuses
    what nothing read.

    Args:
      values: the attributes by name.
      defaults: the values of absent ones.
    """

    def __init__(self, values: dict[str, Any], defaults: Mapping[str, Any] | None = None) -> None:
        super().__init__(values)
        self._read: set[str] = set()
        self._defaults = defaults or {}

    def __getitem__(self, name: str) -> Any:
        self._read.add(name)
        require(name in self or name in self._defaults, f"its attribute {name} is missing")
        return super().__getitem__(name) if name in self else self._defaults[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, which counts as read.

        Args:
          name: of the attribute.
          default: what an absent one has that has no default.

        Returns:
          The value.
        """
        self._read.add(name)
        return super().get(name, self._defaults.get(name, default))

    def ignore(self) -> None:
        """Counts all as read: the result does not depend on them."""
        self._read.update(self)

    @property
    def unread(self) -> dict[str, Any]:
        """Those that nothing read."""
        return {name: value for name, value in self.items() if name not in self._read}


def attributes(node: onnx.NodeProto, defaults: Mapping[str, Any] | None = None) -> Attributes:
    """The attributes of a node.

    Args:
      node: the node.
      defaults: as of `Attributes`.

    Returns:
      By name: int, float, str; a NumPy array for a tensor, a GraphProto for a graph, a TypeProto
      for a type; or a list of these.

    Raises:
      ValueError: an attribute is there twice, has no value, or one that is not read. The text names
        the node.
    """
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        where = f"attribute {short(attribute.name)}"
        with within(label(node)):
            require(attribute.name not in found, f"{where} is there twice")
            try:
                found[attribute.name] = value_of(attribute)
            except UnicodeDecodeError as error:
                raise Refused(f"{where} is no text: {error}") from error
    return Attributes(found, defaults)


def value_of(attribute: onnx.AttributeProto) -> Any:
    """The value of an attribute.

    Args:
      attribute: the attribute.

    Returns:
      As of `attributes`.

    Raises:
      ValueError: it has no value, or one that is not read. The text names no node.
    """
    kinds = type(attribute)
    where = f"attribute {short(attribute.name)}"
    if attribute.ref_attr_name:
        raise ValueError(f"{where} is that of a function, which has no value here")
    kind = attribute.type
    name = kinds.AttributeType.Name(kind)
    if name.startswith("SPARSE"):
        raise ValueError(f"{where} is a sparse tensor, which is not read")
    if name.removesuffix("S") not in _FIELDS:
        raise ValueError(f"{where} has no type")
    single, several, read = _FIELDS[name.removesuffix("S")]
    if name.endswith("S"):
        return [read(value, where) for value in getattr(attribute, several)]
    return read(getattr(attribute, single), where)
