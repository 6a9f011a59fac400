"""The families of recurrent layers that a file may have, known by the roles of their arrays."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tf_lstm_ops import _cells
from tf_lstm_ops.checkpoints import cells
from tf_lstm_ops.checkpoints.cells import Cell, Layout, Roles
from tf_lstm_ops.files.contents import Contents, Variable

# An array of a cell: the pattern of its name, of which the first group is the cell's name, and
# its role, in which {n} stands for a group. The first pattern that fits counts.
_ARRAYS: tuple[tuple[str, str], ...] = (
    # PyTorch. The module may be the whole file, without a name.
    (r"(?:(.*)\.)?((?:weight|bias)_(?:ih|hh|hr|peephole)(?:_l\d+(?:_reverse)?)?)", "torch {2}"),
    # The weights of Keras 3 have numbers.
    (r"(.*)/vars/(\d+)", "keras {2}"),
    # Keras 1: an array of each gate.
    (r"(.*)_([WUb])_([ifcozrh])", "keras1 {2}{3}"),
    # The GRU of TensorFlow 1, and before 1.0.
    (r"(.*)/[Gg]ates/(?:Linear/)?(?:kernel|weights|Matrix)", "gates kernel"),
    (r"(.*)/[Gg]ates/(?:Linear/)?(?:bias|biases|Bias)", "gates bias"),
    (r"(.*)/[Cc]andidate/(?:Linear/)?(?:kernel|weights|Matrix)", "candidate kernel"),
    (r"(.*)/[Cc]andidate/(?:Linear/)?(?:bias|biases|Bias)", "candidate bias"),
    (r"(.*)/candidate/(input|hidden)_projection/(kernel|bias)", "{2} {3}"),
    # Layer normalisation: of LayerNormBasicLSTMCell, and of other cells.
    (r"(.*)/(?:input|transform|forget|output|state)/(?:gamma|beta)", "gate norm"),
    (r"(.*)/(?:layer_norm|ln_)\w*(?:/(?:var|gamma|beta))?", "norm"),
    # lingvo.
    (r"(.*)/wm(?:/var)?", "lingvo kernel"),
    (r"(.*)/b(?:/var)?", "lingvo bias"),
    (r"(.*)/w_proj(?:/var)?", "lingvo projection"),
    (r"(.*)/(?:proj_)?mask(?:/var)?", "lingvo mask"),
    # The LSTM of TensorFlow 1, and before 1.0, as in ELMo.
    (r"(.*)/projection(?:/kernel|/weights|_kernel)", "projection"),
    (r"(.*)/peephole_kernel", "peephole"),  # of tf_lstm_ops.keras.LSTM
    (r"(.*)/w_([ifo])_diag", "peephole {2}"),
    (r"(.*)/W_([IFO])_diag", "peephole {2}"),
    (r"(.*)/W_0", "old kernel"),
    (r"(.*)/B", "old bias"),
    (r"(.*)/W_P_0", "old projection"),
    (r"(.*)/(?:Linear/Matrix|weights)", "kernel"),
    (r"(.*)/(?:Linear/Bias|biases)", "bias"),
    # Keras, and TensorFlow 1 from 1.2 on.
    (r"(.*)/_?(kernel|recurrent_kernel|bias)", "{2}"),
)
_PATTERNS = [(re.compile(pattern, re.DOTALL), role) for pattern, role in _ARRAYS]

_SAME = ("Identity", "Enter", "ReadVariableOp")  # what gives its first input on
_SUMS = ("Add", "AddV2")
_TO_GATES = ("MatMul", "BiasAdd", "Split", "SplitV", *_SAME, *_SUMS)
_FUSED = ("LSTMBlockCell", "BlockLSTM", "BlockLSTMV2")
_FORGET_GATE = 2  # of i, j, f, o
_GATES = 4

_Uses = Mapping[str, list[Any]]  # by outputs such as "split:2", nodes

_NO_NORMALISATION = (
    "the cell has layer normalisation, which LSTMWeights does not hold; use tf_lstm_ops.keras.LSTM("
    "layer_normalization=True) and set its weights"
)
_PRUNED = "the weights are pruned: the program multiplies them by masks, which are not applied here"
_ELMO = (
    "ELMo clips the cell state and the output at 3 (cell_clip and proj_clip in its options.json), "
    "and adds the input of every layer from Cell1 on to its output"
)
_LINGVO = (
    "lingvo clips the cell state at 10 by default (cell_value_cap); with couple_input_forget_gates "
    "it has three gates, and these are not its weights"
)
# Other cells of TensorFlow 1 whose names have "lstm".
_OTHER_CELLS = re.compile(
    r"(^|_|bidirectional)(coupled|grid|phased|time_?freq|conv|g_?lstm|indy|weight_?norm)"
)
_NO_FORGET_BIAS = (
    "what is added to the forget gate was not found in the graph; 1 is the default of the program"
)
_OTHER_CELL = "it is another cell than an LSTM, which LSTMWeights does not hold"
_MOST_OF_KERAS = 5  # arrays of a layer


def cells_of(contents: Contents) -> list[Cell]:
    """Finds the recurrent layers of a file.

    Args:
      contents: what the file holds.

    Returns:
      The layers in the order of the file. What is no recurrent layer is left out.
    """
    biases = None if contents.graph is None else _forget_biases(contents.graph)
    found = _by_cell(contents.arrays).items()
    cells = (_cell(name, roles, contents, biases) for name, roles in found)
    return [cell for cell in cells if cell is not None]


def _cell(
    name: str, roles: Roles, contents: Contents, known: Mapping[str, float] | None
) -> Cell | None:
    """A layer of the first family that fits. `known`: what a graph adds to the forget gates."""
    joined = () if contents.version else _joined(name, roles, contents)
    for cell in (*_separate(name, roles), *joined):
        if cell.kind == "lstm" and known is not None and cell.forget_bias:
            note = "" if name in known else _NO_FORGET_BIAS
            bias = known.get(name, cell.forget_bias)
            return dataclasses.replace(cell, forget_bias=bias, note=cell.note or note)
        return cell
    return None


def _separate(name: str, roles: Roles) -> Iterator[Cell]:
    """Families with a kernel for x and one for h, which no other layers have."""
    if any(role in roles for role in ("torch weight_ih", "torch weight_ih_l0")):
        yield from _of_gates(name, roles, "PyTorch", cells.TORCH)
    elif any(role.startswith("keras1 U") for role in roles):
        kind = "lstm" if "keras1 Uf" in roles else "gru"
        note = "reset_after=False" if kind == "gru" else ""
        yield _of_kind(name, kind, "Keras 1", roles, cells.KERAS_1, note=note)
    elif "recurrent_kernel" in roles and "kernel" in roles:
        yield from _keras(name, roles, "kernel")
    elif "keras 0" in roles and "keras 1" in roles:
        yield from _keras(name, _only(roles, "keras "), "keras 0")


def _joined(name: str, roles: Roles, contents: Contents) -> Iterator[Cell]:
    """Families with one kernel for x and h, of which files of Keras have none."""
    if "gates kernel" in roles:
        if "hidden kernel" in roles and "input kernel" in roles:
            yield _of_kind(name, "gru", "CudnnGRU", roles, cells.GRU)
        elif "candidate kernel" in roles:
            note = "reset_after=False"
            yield _of_kind(name, "gru", "TensorFlow 1 GRUCell", roles, cells.GRU, note=note)
    elif "lingvo kernel" in roles:
        used = _only(roles, "lingvo ", "norm")
        yield _lstm(name, used, "lingvo LSTMCellSimple", cells.LINGVO, 0.0, _LINGVO)
    elif "recurrent_kernel" in roles:
        return
    elif "old kernel" in roles and _is_lstm(name, contents):
        family, note = "TensorFlow before 1.0 LSTM", ""
        if re.search(r"(^|/)RNN_[01]/RNN/MultiRNNCell/Cell\d+/LSTMCell$", name):
            backwards = "; it runs backwards in time" if "RNN_1/RNN/" in name else ""
            family, note = "ELMo", _ELMO + backwards
        yield _lstm(name, roles, family, cells.OLD, 1.0, note)
    elif "kernel" in roles:
        yield from _tf1_lstm(name, roles, contents)


def _is_lstm(name: str, contents: Contents) -> bool:
    """Whether the name says LSTM; other cells and dense layers have the same arrays.

    An attribute of an object may have any name, so that of the class must be there.
    """
    wanted = "lstm" if contents.objects is None else "lstm_cell"
    return wanted in name.rpartition("/")[2].lower()


def _tf1_lstm(name: str, roles: Roles, contents: Contents) -> Iterator[Cell]:
    """A kernel of x and h."""
    last = name.rpartition("/")[2].lower()
    shape = roles["kernel"].shape
    named = _is_lstm(name, contents) or "gate norm" in roles
    if not named or len(shape) != 2 or shape[1] % 4 or shape[0] < shape[1] // 4:
        return
    if last.startswith("cudnn_compatible_lstm_cell"):
        family, forget_bias = "CudnnLSTM", 0.0
    elif last.startswith("basic_lstm_cell"):
        family, forget_bias = "TensorFlow 1 BasicLSTMCell", 1.0
    else:
        family, forget_bias = "TensorFlow 1 LSTMCell or LSTMBlockCell", 1.0
    yield _lstm(name, roles, family, cells.JOINED, forget_bias, "")


def _lstm(
    name: str, roles: Roles, family: str, layout: Layout, forget_bias: float, note: str
) -> Cell:
    problem = _OTHER_CELL if _OTHER_CELLS.search(name.rpartition("/")[2].lower()) else ""
    problem = _PRUNED if "lingvo mask" in roles else problem
    problem = _NO_NORMALISATION if {"norm", "gate norm"} & roles.keys() else problem
    return _of_kind(name, "lstm", family, roles, layout, forget_bias, note, problem)


def _keras(name: str, roles: Roles, kernel: str) -> Iterator[Cell]:
    if len(roles[kernel].shape) != 2:  # a layer with convolutions
        return
    if len(roles) > _MOST_OF_KERAS:
        problem = (
            f"it has {len(roles)} arrays, more than one layer; load the model with Keras and call "
            "from_keras"
        )
        yield Cell(name, "lstm", "Keras", roles, cells.KERAS, None, problem=problem)
    else:
        yield from _of_gates(name, roles, "Keras", cells.KERAS)


def _of_gates(name: str, roles: Roles, family: str, layout: Layout) -> Iterator[Cell]:
    """A layer of which the shapes tell the kind. Plain RNNs and others are no candidates."""
    try:
        gates, sizes = layout.measure(roles)
    except (KeyError, ValueError):
        return
    cell = _cells.BY_GATES.get(gates)
    if cell in (_cells.LSTM, _cells.GRU):
        [kind] = cell.modes
        bias = roles.get("bias", roles.get("keras 2"))
        if bias is not None and bias.shape == (2 * gates * sizes.units,):
            family = f"Keras 2 CuDNN{kind.upper()}"
        yield Cell(name, kind, family, roles, layout, sizes)


def _of_kind(
    name: str,
    kind: str,
    family: str,
    roles: Roles,
    layout: Layout,
    forget_bias: float = 0.0,
    note: str = "",
    problem: str = "",
) -> Cell:
    """A layer of a known kind. It is a candidate with a problem where its shapes are others."""
    sizes = None
    try:
        _, sizes = layout.measure(roles)
    except ValueError as error:
        problem = problem or str(error)
    return Cell(name, kind, family, roles, layout, sizes, forget_bias, note, problem)


def _only(roles: Roles, *beginnings: str) -> Roles:
    return {role: roles[role] for role in roles if role.startswith(beginnings)}


def _forget_biases(graph: Any) -> dict[str, float]:
    """What a GraphDef adds to the forget gates of cells, by their names, where that is clear."""
    nodes = {node.name: node for node in graph.node}
    uses: collections.defaultdict[str, list[Any]] = collections.defaultdict(list)
    for node in graph.node:
        for source in node.input:
            uses[source if ":" in source else f"{source}:0"].append(node)
    found = {}
    for node in graph.node:
        cell = _cell_of(node.name, ("kernel", "old kernel"))
        if cell is not None and node.op in ("Const", "VariableV2", "Variable", "VarHandleOp"):
            values = {*_added(node.name, nodes, uses)}
            if len(values) == 1 and None not in values:
                found[cell] = values.pop()
    return {cell: value for cell, value in found.items() if value is not None}


def _added(kernel: str, nodes: Mapping[str, Any], uses: _Uses) -> Iterator[float | None]:
    """What is added to the forget gates that depend on a kernel; None for something else."""
    pending, seen = [f"{kernel}:0"], set()
    while pending:
        output = pending.pop()
        for node in uses.get(output, ()):
            if node.name in seen:
                continue
            seen.add(node.name)
            if node.op in _FUSED:
                yield node.attr["forget_bias"].f
            elif node.op in ("Split", "SplitV"):
                if node.attr["num_split"].i == _GATES:
                    yield from _of_gate(f"{node.name}:{_FORGET_GATE}", nodes, uses)
            elif node.op in _TO_GATES:
                pending.append(f"{node.name}:0")


def _of_gate(gate: str, nodes: Mapping[str, Any], uses: _Uses) -> Iterator[float | None]:
    for node in uses.get(gate, ()):
        if node.op == "Sigmoid":
            yield 0.0
        elif node.op in _SUMS:
            constants = [_number(source, nodes) for source in node.input[:2]]
            yield next((value for value in constants if value is not None), None)
        elif node.op == "Identity":
            yield from _of_gate(f"{node.name}:0", nodes, uses)


def _number(source: str, nodes: Mapping[str, Any]) -> float | None:
    """The constant scalar of an input."""
    import tensorflow as tf

    node = nodes.get(source.partition(":")[0])
    for _ in nodes:  # a graph may have a circle
        if node is None or node.op not in _SAME or not node.input:
            break
        node = nodes.get(node.input[0].partition(":")[0])
    if node is None or node.op != "Const" or node.attr["value"].tensor.tensor_shape.dim:
        return None
    try:
        return float(tf.make_ndarray(node.attr["value"].tensor))
    except (TypeError, ValueError, KeyError):  # KeyError: of a dtype that is none
        return None


def _by_cell(variables: Mapping[str, Variable]) -> dict[str, dict[str, Variable]]:
    """Groups variables by cell and role. Many cells are other layers, such as dense ones."""
    cells: dict[str, dict[str, Variable]] = {}
    for name, variable in variables.items():
        if (found := _role(name)) is not None:
            cells.setdefault(found[0], {}).setdefault(found[1], variable)
    return cells


def _cell_of(name: str, roles: tuple[str, ...]) -> str | None:
    """The cell to which an array may belong."""
    found = _role(name)
    return found[0] if found is not None and found[1] in roles else None


def _role(name: str) -> tuple[str, str] | None:
    """The cell's name and the array's role; None for a name that no array of a cell has."""
    if re.match(r"(.*/)?optimizer(_weights)?/", name):
        return None
    for pattern, role in _PATTERNS:
        if match := pattern.fullmatch(name):
            groups = [text or "" for text in match.groups()]
            if role == "peephole {2}":
                groups[1] = groups[1].lower()
            return groups[0], role.format(name, *groups)
    return None
