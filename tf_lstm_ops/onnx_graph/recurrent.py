"""The nodes LSTM, GRU and RNN, and their weights."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tf_lstm_ops import _activations, _cells
from tf_lstm_ops._refusal import refuse, require, within
from tf_lstm_ops.onnx_graph import schemas
from tf_lstm_ops.onnx_graph.attributes import Attributes, attributes, label, short, subgraphs
from tf_lstm_ops.onnx_graph.budget import Budget, budget_of
from tf_lstm_ops.onnx_graph.constants import Constants
from tf_lstm_ops.onnx_graph.load import opset
from tf_lstm_ops.onnx_graph.tensors import Array

if TYPE_CHECKING:
    import onnx

Get = Callable[[str], Array | None]

QUANTIZED = "DynamicQuantizeLSTM"  # an LSTM of ONNX Runtime with weights of 8 bits
_CELLS = {**_cells.BY_COMMON, QUANTIZED: _cells.LSTM}
_DOMAINS = {QUANTIZED: "com.microsoft"}
_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
# Of one direction, if a node names none.
_DEFAULT_ACTIVATIONS = {
    cell: tuple(_activations.DEFAULTS[argument] for argument in cell.activations)
    for cell in _cells.FAMILIES
}


@dataclasses.dataclass(frozen=True, eq=False)
class RecurrentNode:
    """A node LSTM, GRU, RNN or DynamicQuantizeLSTM, and its weights.

    There are D directions of H units with G gates: 4 in an LSTM, 3 in a GRU, 1 in an RNN.

    Attributes:
      op_type: "LSTM", "GRU", "RNN" or "DynamicQuantizeLSTM".
      name: its name in the file, which may be empty.
      label: the words that name it in messages.
      hidden_size: H.
      direction: "forward", "reverse" or "bidirectional".
      activations: for each direction the names of its functions in lower case: those of the gates,
        of the input and of the output in an LSTM; of the gates and of the input in a GRU.
      activation_alpha, activation_beta: their parameters, as in the file.
      clip: the limit of what goes into the activations; None without.
      layout: 0: X is [T, N, I]; 1: X is [N, T, I].
      linear_before_reset: of a GRU, else False.
      input_forget: whether the input gate and the forget gate are coupled.
      W: [D, G*H, I].
      R: [D, G*H, H].
      B: [D, 2*G*H], or None for zero.
      P: [D, 3H], peepholes i, o, f; None without.
    """

    op_type: str
    name: str
    label: str
    hidden_size: int
    direction: str
    activations: tuple[tuple[str, ...], ...]
    activation_alpha: tuple[float, ...]
    activation_beta: tuple[float, ...]
    clip: float | None
    layout: int
    linear_before_reset: bool
    input_forget: bool
    W: Array
    R: Array
    B: Array | None = None
    P: Array | None = None

    @property
    def cell(self) -> _cells.Cell:
        """What the node computes; of a GRU with any value of linear_before_reset."""
        return _CELLS[self.op_type]

    @property
    def has_default_activations(self) -> bool:
        """Whether the functions are those of a node that names none."""
        return set(self.activations) == {_DEFAULT_ACTIVATIONS[self.cell]}


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """A recurrent node of a model, before its weights are read.

    Attributes:
      name: names it among those of the model.
      node: the node.
      constants: those of its graph.
      graph: its graph.
    """

    name: str
    node: onnx.NodeProto
    constants: Constants
    graph: onnx.GraphProto

    @property
    def cell(self) -> _cells.Cell:
        """As of `RecurrentNode`."""
        return _CELLS[self.node.op_type]

    def read(self) -> RecurrentNode:
        """The attributes and weights.

        Returns:
          The node.

        Raises:
          ValueError: as of `read_recurrent`.
        """
        own = self.constants
        return read_recurrent(self.node, own.get, own.opset, own.budget)


def is_recurrent(node: onnx.NodeProto) -> bool:
    """Whether `read_recurrent` reads nodes of this kind.

    Args:
      node: the node.

    Returns:
      True if it does.
    """
    expected = _DOMAINS.get(node.op_type, "")
    return node.op_type in _CELLS and (node.domain if node.domain != "ai.onnx" else "") == expected


def read_recurrent(
    node: onnx.NodeProto, get: Get, opset: int = 0, budget: Budget | None = None
) -> RecurrentNode:
    """Reads a recurrent node.

    Args:
      node: the node, for which `is_recurrent` is true.
      get: gives the array of a name, or None if it is no constant.
      opset: the version of the default domain; 0: the newest.
      budget: counts the bytes of weights that are dequantized; None: they are not counted.

    Returns:
      Its attributes and weights. Weights of 8 bits are dequantized to float32.

    Raises:
      ValueError: the weights are computed at run time, or their shapes, their types or the
        attributes are inconsistent. The text names the node.
    """
    given, words = attributes(node), label(node)
    with within(words):
        found = _read(node, given, words, get, budget or Budget())
        schemas.require_read(node, given, opset)
    return found


def _read(
    node: onnx.NodeProto, given: Attributes, words: str, get: Get, budget: Budget
) -> RecurrentNode:
    op = node.op_type
    direction = _option(given, "direction", "forward", str)
    require(
        direction in _DIRECTIONS,
        f"direction must be forward, reverse or bidirectional but is {short(direction)!r}",
    )
    arrays = _quantized(node, get, budget) if op == QUANTIZED else _plain(node, get)
    size = _checked_size(arrays, _DIRECTIONS[direction], len(_CELLS[op].gates))
    said = _option(given, "hidden_size", size, int)
    require(said == size, f"hidden_size must be {size}, by the shape of R, but is {said}")
    layout = _option(given, "layout", 0, int)
    require(layout in (0, 1), f"layout must be 0 or 1 but is {layout}")
    return RecurrentNode(
        op_type=op,
        name=node.name,
        label=words,
        hidden_size=size,
        direction=direction,
        activations=_functions(given, op, _DIRECTIONS[direction]),
        activation_alpha=tuple(_option(given, "activation_alpha", [], list)),
        activation_beta=tuple(_option(given, "activation_beta", [], list)),
        clip=_option(given, "clip", None, float),
        layout=layout,
        linear_before_reset=op == "GRU" and bool(_option(given, "linear_before_reset", 0, int)),
        input_forget=bool(_option(given, "input_forget", 0, int)),
        **cast(dict[str, Any], arrays),
    )


def _option(given: Attributes, name: str, default: Any, kind: type) -> Any:
    value = given.get(name, default)
    fits = isinstance(value, kind) or (name not in given)
    require(fits, f"the attribute {name} must be {kind.__name__} but is {type(value).__name__}")
    return value


def _functions(given: Attributes, op: str, directions: int) -> tuple[tuple[str, ...], ...]:
    default = _DEFAULT_ACTIVATIONS[_CELLS[op]]
    names = _option(given, "activations", [], list) or list(default) * directions
    require(
        len(names) == directions * len(default) and all(isinstance(name, str) for name in names),
        f"activations must be {directions * len(default)} names but is {len(names)} values",
    )
    lower = [name.lower() for name in names]
    each = len(default)
    return tuple(tuple(lower[d * each : (d + 1) * each]) for d in range(directions))


def _input(node: onnx.NodeProto, k: int, name: str, get: Get) -> Array | None:
    """The array of an input; None if it is absent."""
    given = node.input[k] if k < len(node.input) else ""
    if not given:
        return None
    array = get(given)
    require(
        array is not None,
        f"its {name} ({short(given)}) is computed at run time, so the file does not have it",
    )
    return array


def _needed(node: onnx.NodeProto, k: int, name: str, get: Get) -> Array:
    array = _input(node, k, name, get)
    if array is None:
        refuse(f"its input {name} is absent")
    return array


def _plain(node: onnx.NodeProto, get: Get) -> dict[str, Array | None]:
    return {
        "W": _needed(node, 1, "W", get),
        "R": _needed(node, 2, "R", get),
        "B": _input(node, 3, "B", get),
        "P": _input(node, 7, "P", get) if node.op_type == "LSTM" else None,
    }


def _quantized(node: onnx.NodeProto, get: Get, budget: Budget) -> dict[str, Array | None]:
    """W is [D, I, 4H] and R [D, H, 4H], of 8 bits; their scales are [D] or [D, 4H]."""
    found = {}
    for k, name in ((1, "W"), (2, "R")):
        array = _needed(node, k, name, get)
        scale = _needed(node, 6 + 2 * k, f"{name}_scale", get)
        zero = _input(node, 7 + 2 * k, f"{name}_zero_point", get)
        zero = np.zeros(scale.shape, array.dtype) if zero is None else zero
        require(
            array.ndim == 3 and array.dtype.name in ("int8", "uint8"),
            f"{name} must be [D, I, 4H] of int8 or uint8 but is {array.shape} of {array.dtype}",
        )
        for kind, values in (("scale", scale), ("zero_point", zero)):
            require(
                values.shape in (array.shape[:1], array.shape[::2]),
                f"{name}_{kind} must be {array.shape[:1]} or {array.shape[::2]} but is "
                f"{values.shape}",
            )
        require(scale.dtype == "float32", f"{name}_scale must be float32 but is {scale.dtype}")
        require(zero.dtype == array.dtype, f"{name}_zero_point must be {array.dtype}")
        scale, zero = (a.reshape(len(array), 1, -1) for a in (scale, zero))
        budget.take(4 * array.size)
        steps = array.astype("float32")  # all numbers of 8 bits are exact
        steps -= zero.astype("float32")
        steps *= scale
        found[name] = steps.swapaxes(1, 2)
    return {**found, "B": _input(node, 3, "B", get), "P": _input(node, 7, "P", get)}


def _checked_size(arrays: dict[str, Array | None], directions: int, gates: int) -> int:
    """Checks shapes and dtypes. Returns H."""
    recurrent = arrays["R"]
    assert recurrent is not None
    size = recurrent.shape[-1] if recurrent.ndim == 3 else 0
    rows = gates * size
    shapes = {
        "R": (directions, rows, size),
        "W": (directions, rows, "I"),
        "B": (directions, 2 * rows),
        "P": (directions, 3 * size),
    }
    words = {"R": f"[{directions}, {gates}H, H]".replace("1H", "H")}
    for name, shape in shapes.items():
        array = arrays[name]
        if array is None:
            continue
        fits = array.ndim == len(shape) and all(
            want in ("I", got) for want, got in zip(shape, array.shape, strict=True)
        )
        expected = words.get(name) or str(list(shape)).replace("'", "")
        require(fits and size > 0, f"{name} must be {expected} but is {list(array.shape)}")
        floats = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
        require(floats, f"{name} must be of floats but is {array.dtype}")
        dtype = recurrent.dtype
        require(array.dtype == dtype, f"{name} must be {dtype} as R but is {array.dtype}")
    return size


def recurrent_nodes(model: onnx.ModelProto) -> list[Found]:
    """The recurrent nodes of a model and its sub-graphs.

    Args:
      model: of `load`.

    Returns:
      The nodes in the order of the file, each with another name.

    Raises:
      ValueError: the opset is not read.
    """
    constants = Constants(model.graph, opset=opset(model), budget=budget_of(model))
    found = list(_walk(model.graph, constants, ""))
    return [
        dataclasses.replace(each, name=name)
        for name, (_, each) in zip(_unique_names(found), found, strict=True)
    ]


def _walk(graph: onnx.GraphProto, constants: Constants, path: str) -> Iterator[tuple[str, Found]]:
    for node in graph.node:
        output = next(filter(None, node.output), "")
        if is_recurrent(node):
            yield path, Found(node.name or output, node, constants, graph)
        for name, part in subgraphs(node):
            below = f"{path}{node.name or output}/{name}/"
            yield from _walk(part, Constants(part, constants), below)


def _unique_names(found: list[tuple[str, Found]]) -> list[str]:
    """The names of nodes; with the graphs around them, then with a number, where it is needed."""
    names = [each.name for _, each in found]
    counts = Counter(names)
    names = [
        path + name if counts[name] > 1 else name
        for (path, _), name in zip(found, names, strict=True)
    ]
    counts, seen, unique = Counter(names), Counter[str](), []
    for name in names:
        seen[name] += 1
        unique.append(f"{name}#{seen[name]}" if counts[name] > 1 else name)
    return unique
