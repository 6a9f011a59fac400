"""Recurrent layers in a file: which arrays they have, their sizes, and how they are converted."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tf_lstm_ops import _cells
from tf_lstm_ops._arrays import Array, reordered
from tf_lstm_ops._refusal import require, within
from tf_lstm_ops.checkpoints.contents import Variable
from tf_lstm_ops.weights import keras_2
from tf_lstm_ops.weights.canonical import CellWeights, class_of

if TYPE_CHECKING:
    from tf_lstm_ops.weights.gru import GRUWeights
    from tf_lstm_ops.weights.lstm import LSTMWeights
else:
    LSTMWeights, GRUWeights = class_of(_cells.LSTM), class_of(_cells.GRU)

Roles = Mapping[str, Variable]
Arrays = Mapping[str, Array]
AnyWeights: TypeAlias = "LSTMWeights | GRUWeights"


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The sizes of weights, as the shapes of their arrays say.

    Attributes:
      inputs: I.
      units: H.
      projection: P; None without a projection.
      layers: the number of layers.
      directions: D.
    """

    inputs: int
    units: int
    projection: int | None = None
    layers: int = 1
    directions: int = 1

    @property
    def outputs(self) -> int:
        """The size of h."""
        return self.units if self.projection is None else self.projection


@dataclasses.dataclass(frozen=True)
class Cell:
    """A recurrent layer of a file.

    Attributes:
      name: its name in the file.
      kind: "lstm" or "gru".
      family: what wrote it, in words.
      roles: its arrays by role.
      convert: from the arrays and the forget bias to the weights.
      sizes: its sizes; None if the shapes are not those of such a layer.
      forget_bias: what its program adds to the forget gate at run time.
      note: what a reader must know, in words.
      problem: why it cannot be converted; empty if it can.
    """

    name: str
    kind: str
    family: str
    roles: Roles
    convert: Callable[[Arrays, float], AnyWeights]
    sizes: Sizes | None
    forget_bias: float = 0.0
    note: str = ""
    problem: str = ""

    def weights(self, forget_bias: float | None) -> AnyWeights:
        """Reads the arrays and converts them.

        Args:
          forget_bias: what to add to the forget gate's bias; None: as its program does.

        Returns:
          The weights.

        Raises:
          OSError, ValueError: an array cannot be read, or the arrays are not those of such a layer.
        """
        with within(self.name):
            require(not self.problem, self.problem)
        arrays = {role: variable.read() for role, variable in self.roles.items()}
        added = self.forget_bias if forget_bias is None else forget_bias
        with within(self.name):
            return self.convert(arrays, added)


def sizes_of_joined(roles: Roles, kernel: str, projection: str) -> Sizes:
    """The sizes of an LSTM that has one kernel for x and h.

    Args:
      roles: the arrays.
      kernel: the role of the kernel, [I+P, 4H].
      projection: the role of the projection, [H, P].

    Returns:
      The sizes.

    Raises:
      ValueError: the shapes are not those of such an LSTM.
    """
    shape = roles[kernel].shape
    require(len(shape) == 2 and shape[1] % 4 == 0, f"the kernel must be (I+P, 4*H) but is {shape}")
    units, p = shape[1] // 4, None
    if projection in roles:
        matrix = roles[projection].shape
        require(len(matrix) == 2, f"the projection must be (H, P) but is {matrix}")
        require(matrix[0] == units, f"the projection must be ({units}, P) but is {matrix}")
        p = matrix[1]
    inputs = shape[0] - (units if p is None else p)
    require(units > 0 and inputs > 0, f"the kernel must be (I+P, 4*H) but is {shape}")
    return Sizes(inputs, units, p)


def joined_lstm(arrays: Arrays, forget_bias: float) -> LSTMWeights:
    """The LSTM of TensorFlow 1: gates i, j, f, o, which block cells call i, c, f, o.

    Args:
      arrays: the arrays by role.
      forget_bias: what to add.

    Returns:
      The weights.

    Raises:
      ValueError: the shapes are inconsistent, or the bias is missing, which every such cell has.
    """
    prefix = "old " if "old kernel" in arrays else ""
    require(f"{prefix}bias" in arrays, "the bias of the cell is missing in the file")
    kernel = arrays[f"{prefix}kernel"]
    peepholes = [arrays.get(f"peephole {gate}") for gate in _cells.PEEPHOLES]
    require(kernel.ndim == 2, f"the kernel must be (I+P, 4*H) but is {kernel.shape}")
    return LSTMWeights.from_block_cell(
        kernel,
        arrays[f"{prefix}bias"],
        *peepholes,
        gate_order=_cells.BLOCK.upper(),
        forget_bias=forget_bias,
        projection=arrays.get(f"{prefix}projection"),
    )


def lingvo_lstm(arrays: Arrays, forget_bias: float) -> LSTMWeights:
    """The LSTMCellSimple of lingvo: gates c, i, f, o.

    Args:
      arrays: the arrays by role.
      forget_bias: what to add.

    Returns:
      The weights.

    Raises:
      ValueError: the shapes are inconsistent.
    """
    kernel = reordered(arrays["lingvo kernel"], _cells.LINGVO, _cells.BLOCK)
    bias = arrays.get("lingvo bias", np.zeros(kernel.shape[1], kernel.dtype))
    require(bias.shape == kernel.shape[1:], f"b must be {kernel.shape[1:]} but is {bias.shape}")
    return LSTMWeights.from_block_cell(
        kernel,
        reordered(bias, _cells.LINGVO, _cells.BLOCK),
        gate_order=_cells.BLOCK.upper(),
        forget_bias=forget_bias,
        projection=arrays.get("lingvo projection"),
    )


def sizes_of_gru(roles: Roles) -> Sizes:
    """The sizes of a GRU of TensorFlow 1.

    Args:
      roles: the arrays.

    Returns:
      The sizes.

    Raises:
      ValueError: the shapes are not those of such a GRU.
    """
    shape = roles["gates kernel"].shape
    fits = len(shape) == 2 and shape[1] > 0 and shape[1] % 2 == 0 and shape[0] >= shape[1] // 2
    require(fits, f"the kernel of the gates must be (I+H, 2*H) but is {shape}")
    return Sizes(shape[0] - shape[1] // 2, shape[1] // 2)


def gru_of_tf1(arrays: Arrays, forget_bias: float) -> GRUWeights:
    """The GRUCell of TensorFlow 1, and the one of CudnnGRU: gates r, u, where u is Keras' z.

    Args:
      arrays: the arrays by role.
      forget_bias: not used.

    Returns:
      The weights. Those of GRUCell have reset_after=False.

    Raises:
      ValueError: the shapes are inconsistent, or a bias is missing, which every such cell has.
    """
    gates = arrays["gates kernel"]
    units = gates.shape[1] // 2
    reset_after = "hidden kernel" in arrays
    if reset_after:
        candidate = np.concatenate([arrays["input kernel"], arrays["hidden kernel"]])
    else:
        candidate = arrays["candidate kernel"]
    expected = (gates.shape[0], units)
    require(candidate.shape == expected, f"candidate must be {expected} but is {candidate.shape}")
    zeros = np.zeros(units, gates.dtype)
    own_bias = "input bias" if reset_after else "candidate bias"
    for role in ("gates bias", own_bias):
        require(role in arrays, f"the {role} of the cell is missing in the file")
    r, u = np.split(arrays["gates bias"], 2)
    own = arrays[own_bias]
    biases = [u, r, own], [zeros, zeros, arrays.get("hidden bias", zeros)]
    require(all(b.shape == (units,) for b in [*biases[0], *biases[1]]), "a bias must be (H,)")
    kernel = np.hstack([gates[:, units:], gates[:, :units], candidate])
    x, h = np.split(kernel, [len(kernel) - units])
    cell = CellWeights(x, h, *map(np.concatenate, biases))
    return GRUWeights((cell,), reset_after=reset_after)


def sizes_of_keras(roles: Roles, kernel: str, recurrent: str) -> tuple[int, Sizes]:
    """The number of gates and the sizes of a layer of Keras.

    Args:
      roles: the arrays.
      kernel: the role of the kernel, [I, G*H].
      recurrent: the role of the recurrent kernel, [P, G*H].

    Returns:
      G, which is 4 for any projection, and the sizes.

    Raises:
      ValueError: the shapes are those of another layer.
    """
    x, h = roles[kernel].shape, roles[recurrent].shape
    fits = len(x) == len(h) == 2 and x[1] == h[1] and h[0] > 0
    require(fits, f"kernel and recurrent kernel must be (I, G*H), (P, G*H) but are {x} and {h}")
    if h[1] > 4 * h[0] and h[1] % 4 == 0:
        projection = (h[1] // 4, h[0])
        found = any(variable.shape == projection for variable in roles.values())
        require(found, f"an LSTM with a recurrent kernel {h} has a projection {projection}")
        return 4, Sizes(x[0], h[1] // 4, h[0])
    require(h[1] % h[0] == 0, f"the recurrent kernel must be (P, G*H) but is {h}")
    return h[1] // h[0], Sizes(x[0], h[0])


def keras_layer(kind: str) -> Callable[[Arrays, float], AnyWeights]:
    """The conversion of layers of Keras 2 and 3.

    Args:
      kind: "lstm" or "gru".

    Returns:
      The function `Cell.convert`.
    """

    def convert(arrays: Arrays, forget_bias: float) -> AnyWeights:
        if "kernel" in arrays:
            order = ("kernel", "recurrent_kernel", "bias", "peephole", "projection")
            listed = [arrays[role] for role in order if role in arrays]
        else:
            listed = [arrays[role] for role in sorted(arrays, key=_number)]
        if kind == "gru":
            return GRUWeights.from_keras(listed)
        return with_forget_bias(LSTMWeights.from_keras(listed), forget_bias)

    return convert


def keras_1_layer(kind: str) -> Callable[[Arrays, float], AnyWeights]:
    """The conversion of layers of Keras 1, with three arrays for each gate.

    Args:
      kind: "lstm" or "gru".

    Returns:
      The function `Cell.convert`.
    """

    def convert(arrays: Arrays, forget_bias: float) -> AnyWeights:
        order = _cells.BY_MODE[kind].keras_1
        missing = [f"{a}_{g}" for g in order for a in "WUb" if f"keras1 {a}{g}" not in arrays]
        require(not missing, f"arrays are missing: {', '.join(missing)}")
        given = [arrays[f"keras1 {a}{g}"] for g in order for a in "WUb"]
        ranks = all(a.ndim == (1 if k % 3 == 2 else 2) for k, a in enumerate(given))
        same = all(len({a.shape for a in given[k::3]}) == 1 for k in range(3))
        require(ranks and same, "the arrays of the gates have different shapes")
        return keras_layer(kind)(
            dict(
                zip(
                    ("kernel", "recurrent_kernel", "bias"), keras_2.from_keras_1(given), strict=True
                )
            ),
            forget_bias,
        )

    return convert


def torch_module(kind: str) -> Callable[[Arrays, float], AnyWeights]:
    """The conversion of a module of PyTorch.

    Args:
      kind: "lstm" or "gru".

    Returns:
      The function `Cell.convert`.
    """

    def convert(arrays: Arrays, forget_bias: float) -> AnyWeights:
        state = {role.removeprefix("torch "): array for role, array in arrays.items()}
        if kind == "gru":
            return GRUWeights.from_torch(state)
        return with_forget_bias(LSTMWeights.from_torch(state), forget_bias)

    return convert


def sizes_of_torch(roles: Roles) -> tuple[int, Sizes]:
    """The number of gates and the sizes of a module of PyTorch.

    Args:
      roles: the arrays.

    Returns:
      G and the sizes.

    Raises:
      ValueError: the shapes are those of another module.
    """
    first = "torch weight_ih_l0" if "torch weight_ih_l0" in roles else "torch weight_ih"
    end = first.removeprefix("torch weight_ih")
    x, h = roles[first].shape, roles[f"torch weight_hh{end}"].shape
    require(len(x) == len(h) == 2 and h[1] > 0, f"{first[6:]} and weight_hh{end} are {x} and {h}")
    layers = sum(bool(re.fullmatch(r"torch weight_ih(_l\d+)?", role)) for role in roles)
    directions = 2 if f"{first}_reverse" in roles else 1
    if f"torch weight_hr{end}" in roles:
        return 4, Sizes(x[1], h[0] // 4, h[1], layers, directions)
    return h[0] // h[1], Sizes(x[1], h[1], None, layers, directions)


def with_forget_bias(weights: LSTMWeights, value: float) -> LSTMWeights:
    """Adds to the bias of the forget gate.

    Args:
      weights: the weights.
      value: what to add.

    Returns:
      New weights; the same if value is 0.
    """
    if not value:
        return weights
    cells = tuple(
        dataclasses.replace(cell, bias=_added(cell.bias, value)) for cell in weights.cells
    )
    return LSTMWeights(cells, weights.directions)


def _added(bias: Array, value: float) -> Any:
    blocks = np.split(bias, len(_cells.LSTM.gates))
    forget = _cells.LSTM.gates.index("f")
    blocks[forget] = (blocks[forget] + value).astype(bias.dtype)
    return np.concatenate(blocks)


def _number(role: str) -> int:
    return int(role.rpartition(" ")[2])
