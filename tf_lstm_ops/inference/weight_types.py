"""The types of the weights of a session's layers: which layers have which."""

from __future__ import annotations

import dataclasses
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tf_lstm_ops import _cells, _received
from tf_lstm_ops.inference import file

# Products of fewer weights than this may be slower with these weights than with float32:
# benchmarks/NOTES.md, "int8 and bfloat16 in sessions". Where int8 begins to be faster depends on
# the processor, and a rule by the processor would give other results on another one.
_LEAST_WEIGHTS = {"int8": 16384, "bfloat16": 0, "bfloat16_storage": 0, "float32": 0}
_MOST_DEPTH = 65536  # of int8: 2**16 products of 255 * 127 fit in an int32
_KINDS = {file.DENSE: "Dense", file.EMBEDDING: "Embedding", file.CONVOLUTION: "Conv1D"}
_NAMED = 3  # layers that a summary names

_EXPECTED = (
    "'float32', 'bfloat16', 'bfloat16_storage' or 'int8', a dictionary from these to lists of "
    "names of layers, or a function from a layer to one of these"
)


@dataclasses.dataclass(frozen=True)
class LayerWeights:
    """The weights of a layer of a session, of one of the types of weights.

    The function that is the argument ``weights`` of a session gets one for each such layer, and
    `Session.weights` has them. The weights are those of the layer's products: without biases,
    peepholes and the factors of a normalisation.

    Attributes:
      name: of the layer; after `Session.load` "layer N", its number in the file.
      kind: "LSTM", "GRU", "SimpleRNN", "Dense", "Conv1D" or "Embedding".
      depth: how many numbers an output sums: I of a Dense, I + P of a recurrent layer, k · C of a
        convolution; of an Embedding the number of rows.
      columns: how many outputs a product has: of a recurrent layer all gates of one direction.
      weights: the number of weights.
      type: "float32", "bfloat16", "bfloat16_storage" or "int8"; of the argument of a function
        "float32".
    """

    name: str
    kind: str
    depth: int
    columns: int
    weights: int
    type: str = "float32"


_Function = Callable[[LayerWeights], str]
Weights = str | Mapping[str, Iterable[str]] | _Function


def applied(graph: file.Graph, weights: Weights) -> file.Graph:
    """A graph whose layers have the types that an argument says.

    Args:
      graph: of float32.
      weights: the argument of a session.

    Returns:
      The graph; the same one if all layers stay float32.

    Raises:
      ValueError: a type or a name is unknown, a name has two types, or a layer that must become
        int8 sums too many products.
      TypeError: the argument, or what the function returns, has another type.
    """
    described = [_described(node.layer) for node in graph.nodes]
    choice = _choice(weights, [each for each in described if each])
    is_explicit = not isinstance(weights, str)
    nodes = [
        _typed(node, layer, choice(layer), is_explicit) if layer else node
        for node, layer in zip(graph.nodes, described, strict=True)
    ]
    if not any(node.layer.weights for node in nodes):
        if weights == "int8" and any(described):
            warnings.warn(
                f"weights='int8' changes no layer: all have fewer than {_LEAST_WEIGHTS['int8']} "
                "weights or sum too many products, and stay float32. In Python a dictionary with "
                "the names of layers makes small ones int8, too",
                stacklevel=3,
            )
        return graph
    return dataclasses.replace(graph, nodes=nodes)


def layers(records: Sequence[file.Layer], names: Sequence[str]) -> tuple[LayerWeights, ...]:
    """The weights of the layers of a file.

    Args:
      records: of the file.
      names: of the layers; of a loaded file none.

    Returns:
      Those of the layers that may have another type than float32, in the order of the file.
    """
    labels = names or [f"layer {k}" for k in range(len(records))]
    named = [
        _described(dataclasses.replace(record, name=label))
        for record, label in zip(records, labels, strict=True)
    ]
    return tuple(each for each in named if each)


def summary(described: Sequence[LayerWeights]) -> str:
    """The types of a session's weights, in a few words.

    Args:
      described: the layers.

    Returns:
      The type that all layers have; else how many have which, and the names of those that stay
      float32.
    """
    counts = Counter(each.type for each in described)
    if len(counts) < 2:
        return next(iter(counts), "float32")
    parts = [
        f"{name}: {counts[name]} of {len(described)} layers"
        for name in ("int8", "bfloat16", "bfloat16_storage")
        if counts[name]
    ]
    rest = [each.name for each in described if each.type == "float32"]
    if rest:
        more = f" and {len(rest) - _NAMED} more" if len(rest) > _NAMED else ""
        parts.append(f"float32: {', '.join(rest[:_NAMED])}{more}")
    return ", ".join(parts)


def _described(layer: file.Layer) -> LayerWeights | None:
    """The weights of a layer; None if it has none that may have another type."""
    inputs, columns = layer.input_size, layer.units
    directions, further = 1, 0
    if layer.kind == file.RECURRENT:
        cell = _cells.BY_NUMBER[layer.cell]
        kind, gates = cell.keras, len(cell.gates)
        depth, columns = inputs + layer.hidden_size, gates * layer.units
        directions = 2 if layer.directions == file.BOTH else 1
        further = layer.units * layer.hidden_size * (layer.hidden_size < layer.units)
    elif layer.kind in _KINDS:
        kind = _KINDS[layer.kind]
        depth = inputs
        if layer.kind == file.CONVOLUTION:
            depth = layer.ints[0] * inputs // layer.ints[3]
    else:
        return None
    count = directions * (depth * columns + further)
    return LayerWeights(layer.name, kind, depth, columns, count, file.WEIGHT_TYPES[layer.weights])


def _choice(weights: Weights, described: Sequence[LayerWeights]) -> _Function:
    """The function of a layer that the argument stands for."""
    if isinstance(weights, str):
        name = _checked(weights)
        return lambda each: name if each.depth * each.columns >= _LEAST_WEIGHTS[name] else "float32"
    if isinstance(weights, Mapping):
        types = _by_name(weights, {each.name for each in described})
        return lambda each: types.get(each.name, "float32")
    if callable(weights):
        return lambda each: _checked(weights(each), f", returned for layer {each.name}")
    raise TypeError(f"weights must be {_EXPECTED}. Received: {_received.text(weights)}")


def _checked(name: Any, where: str = "") -> str:
    """A type."""
    if not isinstance(name, str):
        raise TypeError(f"weights must be {_EXPECTED}. Received: {_received.text(name)}{where}")
    if name not in file.WEIGHT_TYPES:
        raise ValueError(f"weights must be {_EXPECTED}. Received: {name!r}{where}")
    return name


def _by_name(weights: Mapping[str, Iterable[str]], known: set[str]) -> dict[str, str]:
    """The type of each name in the lists of a mapping. "a" is also "a (LSTM) (layer 0)"."""
    types: dict[str, str] = {}
    for key, names in weights.items():
        _checked(key, " as a key")
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise _no_names(key, names)
        for name in names:
            if not isinstance(name, str):
                raise _no_names(key, name)
            of_module = [each for each in sorted(known) if each.startswith(f"{name} (")]
            found = [name] if name in known else of_module
            if not found:
                raise ValueError(
                    f"weights[{key!r}] must have names of layers with such weights: "
                    f"{', '.join(sorted(known)) or 'the model has none'}. Received: {name!r}"
                )
            for each in found:
                if types.setdefault(each, key) != key:
                    raise ValueError(
                        f"weights must have each layer once. Received: {name!r} for {types[each]} "
                        f"and {key}"
                    )
    return types


def _no_names(key: str, value: Any) -> TypeError:
    return TypeError(
        f"weights[{key!r}] must be a list of names of layers. Received: {_received.text(value)}"
    )


def _typed(node: file.Node, layer: LayerWeights, name: str, is_explicit: bool) -> file.Node:
    """A node with weights of a type. If it is not possible, float32 or an error."""
    depth = _longest_sum(node.layer, layer)
    if name == "int8" and depth > _MOST_DEPTH:
        if is_explicit:
            raise ValueError(
                f"layer {layer.name} must sum at most {_MOST_DEPTH} products to become int8. "
                f"Received: {depth}. Let it be bfloat16 or float32"
            )
        return node
    number = file.WEIGHT_TYPES.index(name)
    return dataclasses.replace(node, layer=dataclasses.replace(node.layer, weights=number))


def _longest_sum(record: file.Layer, layer: LayerWeights) -> int:
    """The largest depth of a matrix. A table has no sums."""
    if record.kind == file.EMBEDDING:
        return 0
    if record.kind != file.RECURRENT:
        return layer.depth
    projected = record.units if record.hidden_size < record.units else 0
    return max(record.input_size, record.hidden_size, projected)
