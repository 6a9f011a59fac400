"""The families of recurrent layers that a file may have, known by the roles of their arrays."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator

from tf_lstm_ops import _cells
from tf_lstm_ops.checkpoints import cells, names
from tf_lstm_ops.checkpoints.cells import Cell, Roles, Sizes
from tf_lstm_ops.checkpoints.contents import Contents

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


def cells_of(contents: Contents) -> list[Cell]:
    """Finds the recurrent layers of a file.

    Args:
      contents: what the file holds.

    Returns:
      The layers in the order of the file. What is no recurrent layer is left out.
    """
    found = names.by_cell(contents.variables).items()
    return [cell for name, roles in found if (cell := _cell(name, roles, contents)) is not None]


def _cell(name: str, roles: Roles, contents: Contents) -> Cell | None:
    """A layer of the first family that fits."""
    joined = () if contents.keras_version is not None else _joined(name, roles, contents)
    for cell in (*_separate(name, roles), *joined):
        known = contents.forget_biases
        if cell.kind == "lstm" and known is not None and cell.forget_bias:
            note = "" if name in known else _NO_FORGET_BIAS
            bias = known.get(name, cell.forget_bias)
            return dataclasses.replace(cell, forget_bias=bias, note=cell.note or note)
        return cell
    return None


def _separate(name: str, roles: Roles) -> Iterator[Cell]:
    """Families with a kernel for x and one for h, which no other layers have."""
    if any(role in roles for role in ("torch weight_ih", "torch weight_ih_l0")):
        yield from _of_gates(name, roles, "PyTorch", cells.sizes_of_torch, cells.torch_module)
    elif any(role.startswith("keras1 U") for role in roles):
        yield from _keras_1(name, roles)
    elif "recurrent_kernel" in roles and "kernel" in roles:
        yield from _keras(name, roles, "kernel", "recurrent_kernel")
    elif "keras 0" in roles and "keras 1" in roles:
        yield from _keras(name, roles, "keras 0", "keras 1")


def _joined(name: str, roles: Roles, contents: Contents) -> Iterator[Cell]:
    """Families with one kernel for x and h, of which files of Keras have none."""
    if "gates kernel" in roles:
        yield from _gru(name, roles)
    elif "lingvo kernel" in roles:
        used = _only(
            roles, "lingvo kernel", "lingvo bias", "lingvo projection", "norm", "lingvo mask"
        )
        yield _lstm(name, used, "lingvo LSTMCellSimple", "lingvo ", cells.lingvo_lstm, 0.0, _LINGVO)
    elif "recurrent_kernel" in roles:
        return
    elif "old kernel" in roles and _is_lstm(name, contents):
        of_elmo = re.search(r"(^|/)RNN_[01]/RNN/MultiRNNCell/Cell\d+/LSTMCell$", name)
        family, note = ("ELMo", _elmo_note(name)) if of_elmo else ("TensorFlow before 1.0 LSTM", "")
        yield _lstm(name, roles, family, "old ", cells.joined_lstm, 1.0, note)
    elif "kernel" in roles:
        yield from _tf1_lstm(name, roles, contents)


def _is_lstm(name: str, contents: Contents) -> bool:
    """Whether the name says LSTM; other cells and dense layers have the same arrays.

    An attribute of an object may have any name, so that of the class must be there.
    """
    return ("lstm_cell" if contents.has_objects else "lstm") in name.rpartition("/")[2].lower()


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
    yield _lstm(name, roles, family, "", cells.joined_lstm, forget_bias, "")


def _lstm(
    name: str,
    roles: Roles,
    family: str,
    prefix: str,
    convert: Callable[..., cells.AnyWeights],
    forget_bias: float,
    note: str,
) -> Cell:
    problem = _OTHER_CELL if _OTHER_CELLS.search(name.rpartition("/")[2].lower()) else ""
    problem = _PRUNED if "lingvo mask" in roles else problem
    problem = _NO_NORMALISATION if {"norm", "gate norm"} & roles.keys() else problem
    sizes, wrong = _sizes(
        lambda: cells.sizes_of_joined(roles, f"{prefix}kernel", f"{prefix}projection")
    )
    return Cell(name, "lstm", family, roles, convert, sizes, forget_bias, note, problem or wrong)


def _gru(name: str, roles: Roles) -> Iterator[Cell]:
    if "hidden kernel" in roles and "input kernel" in roles:
        family, note = "CudnnGRU", ""
    elif "candidate kernel" in roles:
        family, note = "TensorFlow 1 GRUCell", "reset_after=False"
    else:
        return
    sizes, problem = _sizes(lambda: cells.sizes_of_gru(roles))
    yield Cell(name, "gru", family, roles, cells.gru_of_tf1, sizes, note=note, problem=problem)


def _keras(name: str, roles: Roles, kernel: str, recurrent: str) -> Iterator[Cell]:
    if len(roles[kernel].shape) != 2:  # a layer with convolutions
        return
    used = roles if kernel == "kernel" else {k: v for k, v in roles.items() if k[:6] == "keras "}
    if len(used) > 5:
        yield Cell(
            name,
            "lstm",
            "Keras",
            used,
            cells.keras_layer("lstm"),
            None,
            problem=f"it has {len(used)} arrays, more than one layer; load the model with Keras "
            "and call from_keras",
        )
        return
    yield from _of_gates(
        name, used, "Keras", lambda r: cells.sizes_of_keras(r, kernel, recurrent), cells.keras_layer
    )


def _keras_1(name: str, roles: Roles) -> Iterator[Cell]:
    kind, gate = ("lstm", "f") if "keras1 Uf" in roles else ("gru", "z")
    arrays = [roles.get(f"keras1 {array}{gate}") for array in "WU"]
    if all(array is not None and len(array.shape) == 2 for array in arrays):
        w, u = (array.shape for array in arrays if array is not None)
        sizes, problem = Sizes(w[0], u[1]), ""
    else:
        sizes, problem = None, "the arrays of the gates are not those of such a layer"
    note = "reset_after=False" if kind == "gru" else ""
    yield Cell(
        name, kind, "Keras 1", roles, cells.keras_1_layer(kind), sizes, note=note, problem=problem
    )


def _of_gates(
    name: str,
    roles: Roles,
    family: str,
    measure: Callable[[Roles], tuple[int, Sizes]],
    convert: Callable[[str], Callable[..., cells.AnyWeights]],
) -> Iterator[Cell]:
    """A layer of which the shapes tell the kind. Plain RNNs and others are no candidates."""
    try:
        gates, sizes = measure(roles)
    except (KeyError, ValueError):
        return
    cell = _cells.BY_GATES.get(gates)
    if cell in (_cells.LSTM, _cells.GRU):
        [kind] = cell.modes
        bias = roles.get("bias", roles.get("keras 2"))
        if bias is not None and bias.shape == (2 * gates * sizes.units,):
            family = f"Keras 2 CuDNN{kind.upper()}"
        yield Cell(name, kind, family, roles, convert(kind), sizes)


def _sizes(measure: Callable[[], Sizes]) -> tuple[Sizes | None, str]:
    try:
        return measure(), ""
    except ValueError as error:
        return None, str(error)


def _only(roles: Roles, *wanted: str) -> Roles:
    return {role: roles[role] for role in wanted if role in roles}


def _elmo_note(name: str) -> str:
    return _ELMO + ("; it runs backwards in time" if "RNN_1/RNN/" in name else "")
