"""Recurrent nodes of an ONNX file: which one is meant, and what its weights do not say."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from tf_lstm_ops import _activations
from tf_lstm_ops._refusal import require, within
from tf_lstm_ops.onnx_graph import load, recurrent
from tf_lstm_ops.onnx_graph.attributes import short
from tf_lstm_ops.weights.onnx_stack import is_stack

if TYPE_CHECKING:
    import onnx

    from tf_lstm_ops.onnx_graph.recurrent import Found, RecurrentNode

_MOST_LISTED = 20
# Functions without parameters that Keras has under a name: ONNX' names to Keras'.
_KERAS_NAMES = {
    f.onnx_cell[0].lower(): f.name
    for f in _activations.TABLE
    if f.onnx_cell and f.onnx_cell[1:] == (None, None)
}


def is_file(source: Any) -> bool:
    """Whether the first argument of `from_onnx` is a file or model, not an array.

    Args:
      source: the argument.

    Returns:
      True for a path and for a ModelProto.
    """
    return isinstance(source, (str, bytes, os.PathLike)) or hasattr(source, "SerializeToString")


def require_no_node(node: str | None) -> None:
    """Checks the arguments of `from_onnx` with arrays.

    Args:
      node: the argument.

    Raises:
      ValueError: it is not None.
    """
    require(node is None, f"node must be None if W is an array but is {node!r}")


def read(source: Any, kind: str, node: str | None) -> list[RecurrentNode]:
    """Reads the node that a caller means, or the nodes of a stack.

    Args:
      source: a path or an ``onnx.ModelProto``.
      kind: the class of weights: "LSTMWeights", "GRUWeights" or "RNNWeights".
      node: a name of the node, or of an output of it; None: the only one, or all of a stack.

    Returns:
      The nodes, one for each layer.

    Raises:
      ImportError: the package onnx is not installed.
      OSError: the file cannot be read.
      ValueError: the file is damaged, or there is no such node, or there are several.
    """
    require(node is None or isinstance(node, str), f"node must be a text but is {node!r}")
    require(
        isinstance(source, (str, bytes, os.PathLike)) or type(source).__name__ == "ModelProto",
        f"W must be an array, a path or an onnx.ModelProto but is a {type(source).__name__}",
    )
    words = "the model" if hasattr(source, "graph") else os.fsdecode(source)
    model = load.load(source)
    found = recurrent.recurrent_nodes(model)
    with within(words):
        require(found, _why_none(model))
        layers = [each.read() for each in _chosen(found, kind, node)]
        for layer in layers:
            coupled = f"{layer.label} has input_forget=1, which no layer computes"
            require(not layer.input_forget, coupled)
    return layers


def warn(layers: list[RecurrentNode]) -> None:
    """Warns of what changes the results of nodes LSTM and GRU, and is not in the weights.

    It must be called by a function that `from_onnx` calls: the warning is at the line that calls
    `from_onnx`.

    Args:
      layers: the nodes.
    """
    for layer in layers:
        if layer.op_type != "RNN" and not layer.has_default_activations:
            message = f"{layer.label} has the activations {_words(layer)}"
            warnings.warn(f"{message}, which are not part of the weights", stacklevel=4)
        if layer.clip is not None:
            warnings.warn(
                f"{layer.label} has clip={layer.clip:g}, a limit of what goes into the activations,"
                " which is not part of the weights. No argument of a layer computes it: cell_clip "
                "limits the cell state",
                stacklevel=4,
            )


def rnn_activation(layers: list[RecurrentNode]) -> str:
    """The activation of nodes RNN.

    Args:
      layers: the nodes.

    Returns:
      "tanh" or "relu".

    Raises:
      ValueError: it is another one, or the directions or layers have different ones.
    """
    names = {name for layer in layers for (name,) in layer.activations}
    require(
        len(names) == 1 and names <= {"tanh", "relu"},
        f"{layers[0].label} must have one activation, tanh or relu, but has "
        f"{', '.join(map(short, sorted(names)))}",
    )
    return names.pop()


def _words(layer: RecurrentNode) -> str:
    """Their names, and the arguments of a layer that mean them."""
    names = "; ".join(", ".join(map(short, part)) for part in layer.activations)
    gates, *others = layer.activations[0]
    has_names = all(name in _KERAS_NAMES for name in (gates, *others))
    if has_names and len(set(others)) == 1 and len(set(layer.activations)) == 1:
        return (
            f'{names} (the layer needs activation="{_KERAS_NAMES[others[0]]}", '
            f'recurrent_activation="{_KERAS_NAMES[gates]}")'
        )
    return (
        f"{names} (a layer has activation and recurrent_activation; compare the functions and "
        "their parameters)"
    )


def _why_none(model: onnx.ModelProto) -> str:
    if model.functions:
        why = "its functions are not read: inline them with onnx.inliner.inline_local_functions"
    else:
        why = "an exporter may have written each step as other nodes, which are not read"
    return f"there is no node LSTM, GRU or RNN; {why}"


def _chosen(found: list[Found], kind: str, node: str | None) -> list[Found]:
    fitting = [each for each in found if each.cell.weights == kind]
    if node is not None:
        named = _named(found, node)
        require(named, f"there is no node {short(node)!r}; pass node=, one of {_listed(found)}")
        require(
            len(named) == 1,
            f"there are several nodes {short(node)!r}; pass node=, one of {_listed(named)}",
        )
        right = named[0].cell.weights
        require(right == kind, f"{_described(named[0])} is read by {right}.from_onnx")
        return named
    if not fitting:
        classes = sorted({each.cell.weights for each in found})
        raise ValueError(
            f"there is no node for {kind}; {' and '.join(f'{c}.from_onnx' for c in classes)} read "
            f"{_listed(found)}"
        )
    if len(fitting) == 1 or is_stack(fitting):
        return fitting
    raise ValueError(
        f"there are {len(fitting)} nodes for {kind}; pass node=, one of {_listed(fitting)}"
    )


def _named(found: list[Found], name: str) -> list[Found]:
    """The nodes of a name: a name that the lists have, else one of the file, else an output."""
    for names in (
        lambda each: [each.name],
        lambda each: [each.node.name],
        lambda each: each.node.output,
    ):
        if named := [each for each in found if name and name in names(each)]:
            return named
    return []


def _listed(found: list[Found]) -> str:
    listed = ", ".join(_described(each) for each in found[:_MOST_LISTED])
    more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
    return listed + more


def _described(each: Found) -> str:
    op = each.node.op_type
    try:
        read = each.read()
        sizes = f"I={read.W.shape[2]}, H={read.hidden_size}, D={len(read.W)}"
    except ValueError:
        sizes = "whose weights cannot be read"
    return f"{each.name!r} ({op}, {sizes})"
