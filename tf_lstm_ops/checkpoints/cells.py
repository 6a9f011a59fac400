"""Recurrent layers in a file: their arrays, their sizes, and which format reads them."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tf_lstm_ops import _cells
from tf_lstm_ops._arrays import Array, reordered
from tf_lstm_ops._refusal import require, within
from tf_lstm_ops.files.contents import Variable

Roles = Mapping[str, Variable]
Arrays = Mapping[str, Array]
_KERAS = ("kernel", "recurrent_kernel", "bias", "peephole", "projection")


class Sizes(NamedTuple):
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


class Arguments(NamedTuple):
    """The arrays of a layer in a format of `tf_lstm_ops.weights`.

    Attributes:
      format: the end of the name of the method ``from_*``: "keras", "torch" or "block_cell".
      arrays: its positional arguments.
      options: its other arguments, without the forget bias.
    """

    format: str
    arrays: tuple[Any, ...]
    options: Mapping[str, Any] = {}


class Layout(NamedTuple):
    """How the arrays of a layer by role are to be read. Both functions raise ValueError.

    Attributes:
      measure: from the arrays, which are not read yet, to the number of gates and the sizes.
      convert: from the arrays to those of a format.
    """

    measure: Callable[[Roles], tuple[int, Sizes]]
    convert: Callable[[Arrays], Arguments]


@dataclasses.dataclass(frozen=True)
class Cell:
    """A recurrent layer of a file.

    Attributes:
      name: its name in the file.
      kind: "lstm" or "gru".
      family: what wrote it, in words.
      roles: its arrays by role.
      layout: how they are to be read.
      sizes: its sizes; None if the shapes are not those of such a layer.
      forget_bias: what its program adds to the forget gate at run time.
      note: what a reader must know, in words.
      problem: why it cannot be converted; empty if it can.
    """

    name: str
    kind: str
    family: str
    roles: Roles
    layout: Layout
    sizes: Sizes | None
    forget_bias: float = 0.0
    note: str = ""
    problem: str = ""

    def read(self) -> Arguments:
        """Reads the arrays.

        Returns:
          The arrays in a format of `tf_lstm_ops.weights`.

        Raises:
          OSError, ValueError: an array cannot be read, or the arrays are not those of such a layer.
        """
        with within(self.name):
            require(not self.problem, self.problem)
        arrays = {role: variable.read() for role, variable in self.roles.items()}
        with within(self.name):
            return self.layout.convert(arrays)


def _sizes_of_joined(prefix: str, roles: Roles) -> tuple[int, Sizes]:
    """Of an LSTM that has one kernel for x and h, [I+P, 4H]. Its projection is [H, P]."""
    shape = roles[f"{prefix}kernel"].shape
    wrong = f"the kernel must be (I+P, 4*H) but is {shape}"
    require(len(shape) == 2 and shape[1] % 4 == 0, wrong)
    units, p = shape[1] // 4, None
    if f"{prefix}projection" in roles:
        matrix = roles[f"{prefix}projection"].shape
        require(len(matrix) == 2, f"the projection must be (H, P) but is {matrix}")
        require(matrix[0] == units, f"the projection must be ({units}, P) but is {matrix}")
        p = matrix[1]
    inputs = shape[0] - (units if p is None else p)
    require(units > 0 and inputs > 0, wrong)
    return 4, Sizes(inputs, units, p)


def _joined(prefix: str, arrays: Arrays) -> Arguments:
    """The LSTM of TensorFlow 1: gates i, j, f, o, which block cells call i, c, f, o."""
    require(f"{prefix}bias" in arrays, "the bias of the cell is missing in the file")
    kernel = arrays[f"{prefix}kernel"]
    peepholes = [arrays.get(f"peephole {gate}") for gate in _cells.PEEPHOLES]
    require(kernel.ndim == 2, f"the kernel must be (I+P, 4*H) but is {kernel.shape}")
    return _block_cell(arrays, prefix, kernel, arrays[f"{prefix}bias"], *peepholes)


def _block_cell(arrays: Arrays, prefix: str, *of_cell: Array | None) -> Arguments:
    options = {"gate_order": _cells.BLOCK.upper(), "projection": arrays.get(f"{prefix}projection")}
    return Arguments("block_cell", of_cell, options)


def _lingvo(arrays: Arrays) -> Arguments:
    """The LSTMCellSimple of lingvo: gates c, i, f, o."""
    kernel = reordered(arrays["lingvo kernel"], _cells.LINGVO, _cells.BLOCK)
    bias = arrays.get("lingvo bias", np.zeros(kernel.shape[1], kernel.dtype))
    require(bias.shape == kernel.shape[1:], f"b must be {kernel.shape[1:]} but is {bias.shape}")
    return _block_cell(arrays, "lingvo ", kernel, reordered(bias, _cells.LINGVO, _cells.BLOCK))


def _sizes_of_gru(roles: Roles) -> tuple[int, Sizes]:
    """Of a GRU of TensorFlow 1, which has a kernel [I+H, 2H] of the gates."""
    shape = roles["gates kernel"].shape
    fits = len(shape) == 2 and shape[1] > 0 and shape[1] % 2 == 0 and shape[0] >= shape[1] // 2
    require(fits, f"the kernel of the gates must be (I+H, 2*H) but is {shape}")
    return 3, Sizes(shape[0] - shape[1] // 2, shape[1] // 2)


def _gru(arrays: Arrays) -> Arguments:
    """The GRUCell of TensorFlow 1, which has reset_after=False, and the one of CudnnGRU.

    Their gates are r, u, where u is Keras' z.
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
    own_bias = "input bias" if reset_after else "candidate bias"
    for role in ("gates bias", own_bias):
        require(role in arrays, f"the {role} of the cell is missing in the file")
    r, u = np.split(arrays["gates bias"], 2)
    zero = np.zeros_like(u)
    biases = [u, r, arrays[own_bias], zero, zero, arrays.get("hidden bias", zero)]
    require(all(b.shape == (units,) for b in biases), "a bias must be (H,)")
    bias = np.concatenate(biases).reshape(2, -1) if reset_after else np.concatenate(biases[:3])
    kernel = np.hstack([gates[:, units:], gates[:, :units], candidate])
    return Arguments("keras", ([*np.split(kernel, [len(kernel) - units]), bias],))


def _sizes_of_keras(roles: Roles) -> tuple[int, Sizes]:
    """Of a layer of Keras: kernels [I, G*H] and [P, G*H]. G is 4 for any projection."""
    names = ("kernel", "recurrent_kernel") if "kernel" in roles else ("keras 0", "keras 1")
    x, h = (roles[name].shape for name in names)
    fits = len(x) == len(h) == 2 and x[1] == h[1] and h[0] > 0
    require(fits, f"kernel and recurrent kernel must be (I, G*H), (P, G*H) but are {x} and {h}")
    if h[1] > 4 * h[0] and h[1] % 4 == 0:
        projection = (h[1] // 4, h[0])
        found = any(variable.shape == projection for variable in roles.values())
        require(found, f"an LSTM with a recurrent kernel {h} has a projection {projection}")
        return 4, Sizes(x[0], h[1] // 4, h[0])
    require(h[1] % h[0] == 0, f"the recurrent kernel must be (P, G*H) but is {h}")
    return h[1] // h[0], Sizes(x[0], h[0])


def _keras(arrays: Arrays) -> Arguments:
    """A layer of Keras 2 or 3, whose arrays have names or numbers."""
    order = _KERAS if "kernel" in arrays else sorted(arrays, key=lambda role: int(role.split()[-1]))
    return Arguments("keras", ([arrays[role] for role in order if role in arrays],))


def _cell_of_keras_1(roles: Mapping[str, Any]) -> _cells.Cell:
    return _cells.LSTM if "keras1 Uf" in roles else _cells.GRU


def _sizes_of_keras_1(roles: Roles) -> tuple[int, Sizes]:
    """Of a layer of Keras 1, by the arrays of a gate."""
    gates = _cell_of_keras_1(roles).gates
    gate = "f" if "f" in gates else "z"
    shapes = [roles[key].shape for a in "WU" if (key := f"keras1 {a}{gate}") in roles]
    fits = len(shapes) == 2 and all(len(shape) == 2 for shape in shapes)
    require(fits, "the arrays of the gates are not those of such a layer")
    return len(gates), Sizes(shapes[0][0], shapes[1][1])


def _keras_1(arrays: Arrays) -> Arguments:
    """A layer of Keras 1, with three arrays for each gate."""
    cell = _cell_of_keras_1(arrays)
    missing = [f"{a}_{g}" for g in cell.keras_1 for a in "WUb" if f"keras1 {a}{g}" not in arrays]
    require(not missing, f"arrays are missing: {', '.join(missing)}")
    by_role = [[arrays[f"keras1 {a}{gate}"] for gate in cell.gates] for a in "WUb"]
    fits = all(
        len({a.shape for a in of_gates}) == 1 and of_gates[0].ndim == rank
        for of_gates, rank in zip(by_role, (2, 2, 1), strict=True)
    )
    require(fits, "the arrays of the gates have different shapes")
    return Arguments("keras", ([np.concatenate(of_gates, axis=-1) for of_gates in by_role],))


def _sizes_of_torch(roles: Roles) -> tuple[int, Sizes]:
    """Of a module of PyTorch, or a cell."""
    first = "torch weight_ih_l0" if "torch weight_ih_l0" in roles else "torch weight_ih"
    end = first.removeprefix("torch weight_ih")
    x, h = roles[first].shape, roles[f"torch weight_hh{end}"].shape
    require(len(x) == len(h) == 2 and h[1] > 0, f"{first[6:]} and weight_hh{end} are {x} and {h}")
    layers = sum(bool(re.fullmatch(r"torch weight_ih(_l\d+)?", role)) for role in roles)
    directions = 2 if f"{first}_reverse" in roles else 1
    if f"torch weight_hr{end}" in roles:
        return 4, Sizes(x[1], h[0] // 4, h[1], layers, directions)
    return h[0] // h[1], Sizes(x[1], h[1], None, layers, directions)


def _torch(arrays: Arrays) -> Arguments:
    state = {role.removeprefix("torch "): array for role, array in arrays.items()}
    return Arguments("torch", (state,))


JOINED, OLD = (
    Layout(functools.partial(_sizes_of_joined, prefix), functools.partial(_joined, prefix))
    for prefix in ("", "old ")
)
LINGVO = Layout(functools.partial(_sizes_of_joined, "lingvo "), _lingvo)
GRU = Layout(_sizes_of_gru, _gru)
KERAS = Layout(_sizes_of_keras, _keras)
KERAS_1 = Layout(_sizes_of_keras_1, _keras_1)
TORCH = Layout(_sizes_of_torch, _torch)
