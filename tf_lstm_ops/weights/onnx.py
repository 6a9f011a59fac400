"""The weights of ONNX's LSTM, GRU and RNN nodes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tf_lstm_ops import _activations, _cells
from tf_lstm_ops._arrays import Array, as_numbers, reordered, require_shape
from tf_lstm_ops._refusal import require, within
from tf_lstm_ops.onnx_graph import load, recurrent
from tf_lstm_ops.onnx_graph.attributes import short
from tf_lstm_ops.weights.canonical import Self, Weights
from tf_lstm_ops.weights.onnx_stack import is_stack
from tf_lstm_ops.weights.output_major import from_output_major, to_output_major

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


class Onnx(NamedTuple):
    """The weights of an ONNX node, named as its inputs. `to_onnx` returns it.

    There are G gates: 4 in an LSTM, 3 in a GRU, 1 in an RNN.

    >>> import keras
    >>> from tf_lstm_ops.weights import GRUWeights
    >>> layer = keras.layers.GRU(4)
    >>> layer.build((None, None, 8))
    >>> node = GRUWeights.from_keras(layer).to_onnx()
    >>> node.W.shape, node.R.shape, node.B.shape
    ((1, 12, 8), (1, 12, 4), (1, 24))

    Attributes:
      W: [D, G*H, I].
      R: [D, G*H, H].
      B: [D, 2*G*H], the bias of the input side, then that of the recurrent side.
      P: [D, 3H], peepholes i, o, f; None without peepholes.
    """

    W: Array
    R: Array
    B: Array
    P: Array | None = None


def _from_peephole(peephole: Array) -> Array:
    """From [3H] in ONNX' order to [3, H]."""
    return reordered(peephole, _cells.ONNX_PEEPHOLES, _cells.PEEPHOLES).reshape(3, -1)


def read(cls: type[Self], W: Any, others: dict[str, Any], node: str | None, **options: Any) -> Self:
    """What `from_onnx` of each class has in common.

    Args:
      W: a path, an `onnx.ModelProto` or an array.
      others: the other arrays R, B and P by name, which must be None for a file.
      node: as of LSTMWeights.from_onnx.
      **options: of arrays, the further arguments of cls.

    Returns:
      The weights.

    Raises:
      ImportError, OSError, ValueError: as of LSTMWeights.from_onnx.
    """
    if not _is_file(W):
        require(node is None, f"node must be None if W is an array but is {node!r}")
        return _of_arrays(cls, W, **others, **options)
    given = [name for name, array in others.items() if array is not None]
    require(
        not given,
        f"W is a file or a model, which has {', '.join(given)}; leave this argument out, or pass W "
        "as an array",
    )
    layers = _nodes(W, cls._CELL.weights, node)
    _warn(layers)
    said = _OPTIONS[cls._CELL](layers)
    found = [_of_arrays(cls, x.W, x.R, x.B, x.P, **said) for x in layers]
    cells = tuple(cell for weights in found for cell in weights.cells)
    return cls(cells, found[0].directions, **said)


def _of_arrays(
    cls: type[Self],
    W: Any,
    R: ArrayLike | None,
    B: ArrayLike | None,
    P: ArrayLike | None = None,
    **options: Any,
) -> Self:
    recurrent, gates = as_numbers("R", R), len(cls._CELL.gates)
    require_shape("R", recurrent, "D", f"{gates}H".removeprefix("1"), "H")
    directions, _, size = recurrent.shape
    rows = gates * size
    require_shape("R", recurrent, directions, rows, size)
    kernel = as_numbers("W", W)
    bias = np.zeros((directions, 2 * rows), recurrent.dtype)
    bias = bias if B is None else as_numbers("B", B)
    peephole = None if P is None else as_numbers("P", P)
    require_shape("W", kernel, directions, rows, "I")
    require_shape("B", bias, directions, 2 * rows)
    if peephole is not None:
        require_shape("P", peephole, directions, 3 * size)
    cells = [
        from_output_major(
            {
                "input": kernel[d],
                "recurrent": recurrent[d],
                "input_bias": bias[d, :rows],
                "recurrent_bias": bias[d, rows:],
            },
            cls._CELL.onnx,
            cls._CELL.gates,
            None if peephole is None else _from_peephole(peephole[d]),
        )
        for d in range(directions)
    ]
    return cls(tuple(cells), directions, **options)


def to_onnx(self: Weights) -> Onnx:
    """The inputs of a node LSTM, GRU or RNN.

    A GRU needs linear_before_reset=int(reset_after), an RNN activations of `activation`.

    With two directions the node's `direction` is "bidirectional". With one direction it is
    "forward" or "reverse"; choose the direction in which the layer runs.

    Returns:
      The arrays W, R, B and P.

    Raises:
      ValueError: there is more than one layer, or a projection.
    """
    self._require_one_layer("an ONNX node")
    cells = [to_output_major(cell, self._CELL.gates, self._CELL.onnx) for cell in self.cells]
    peepholes = [
        reordered(cell.peephole.ravel(), _cells.PEEPHOLES, _cells.ONNX_PEEPHOLES)
        for cell in self.cells
        if cell.peephole is not None
    ]
    return Onnx(
        W=np.stack([cell["input"] for cell in cells]),
        R=np.stack([cell["recurrent"] for cell in cells]),
        B=np.stack([np.append(cell["input_bias"], cell["recurrent_bias"]) for cell in cells]),
        P=np.stack(peepholes) if peepholes else None,
    )


# --- files -------------------------------------------------------------------------------------


def _is_file(source: Any) -> bool:
    """Whether the first argument of `from_onnx` is a file or model, not an array."""
    return isinstance(source, (str, bytes, os.PathLike)) or hasattr(source, "SerializeToString")


def _nodes(source: Any, kind: str, node: str | None) -> list[RecurrentNode]:
    """The node that a caller means, or the nodes of a stack, one for each layer.

    kind is the class of weights. node is the name of the node, or of an output of it; None: the
    only one, or all of a stack.
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


def _warn(layers: list[RecurrentNode]) -> None:
    """Warns of what changes the results of nodes LSTM and GRU, and is not in the weights.

    `from_onnx` calls what calls it: the warning is at the line that calls `from_onnx`.
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


def _activation(layers: list[RecurrentNode]) -> str:
    """The activation of nodes RNN."""
    names = {name for layer in layers for (name,) in layer.activations}
    require(
        len(names) == 1 and names <= {"tanh", "relu"},
        f"{layers[0].label} must have one activation, tanh or relu, but has "
        f"{', '.join(map(short, sorted(names)))}",
    )
    return names.pop()


# What the nodes of a file say of the further arguments of the weights.
_OPTIONS: dict[_cells.Cell, Callable[[list[RecurrentNode]], dict[str, Any]]] = {
    _cells.LSTM: lambda layers: {},
    _cells.GRU: lambda layers: {"reset_after": layers[0].linear_before_reset},
    _cells.SIMPLE_RNN: lambda layers: {"activation": _activation(layers)},
}


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
