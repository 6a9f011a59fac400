"""PyTorch's state dicts."""

from __future__ import annotations

import itertools
import re
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tf_lstm_ops import _cells, _received
from tf_lstm_ops._arrays import Array, as_numbers, require_shape
from tf_lstm_ops._refusal import require
from tf_lstm_ops.weights.canonical import CellWeights, Self, Weights
from tf_lstm_ops.weights.output_major import from_output_major, to_output_major

_FIRST, _FIRST_OF_CELL = "weight_ih_l0", "weight_ih"
_BIASES = {"input_bias", "recurrent_bias"}
# The names of arrays of which PyTorch computes a weight, behind the module's own name.
_COMPUTED = re.compile(r"(weight|bias)\w*_(g|v|orig|mask)|parametrizations\..+")


def from_torch(cls: type[Self], state_dict: Any, *, prefix: str = "") -> Self:
    """From a `torch.nn.LSTM`, `torch.nn.GRU`, `torch.nn.LSTMCell` or `torch.nn.GRUCell`.

    Args:
      state_dict: the module, or its state dict: arrays or tensors by PyTorch's names. If the module
        has no biases (bias=False), they become zero. A cell is one layer of one direction.
      prefix: the beginning of the module's names in the state dict of a larger model, such as
        "encoder.". Other names are not read.

    Returns:
      The weights of all layers.

    Raises:
      ValueError: a name is missing or unknown, a value is no array, the weights are of another kind
        of module, or their shapes are inconsistent.
    """
    given = _state_dict(state_dict)
    own = _own_names(given, prefix)
    cells, directions = _names_of_cells(own)
    kinds = _required_kinds(cells, own)
    for kind, name in ((kind, names[kind]) for names in cells for kind in kinds):
        require(name in own, _missing(kind, prefix + name))
    read = {names[kind] for names in cells for kind in kinds}
    unread = [prefix + name for name in own if name not in read]
    require(not unread, f"the state dict has {_listed(unread)}, which belongs to no layer")
    layers = [
        _from_cell(cls._CELL, {kind: _array(given, prefix + names[kind], kind) for kind in kinds})
        for names in cells
    ]
    return cls(tuple(layers), directions)


def _from_cell(cell: _cells.Cell, found: dict[str, Array]) -> CellWeights:
    """From the arrays of a cell by kind; the biases may be absent."""
    _require_kind(found, cell)
    zero = np.zeros(found["input"].shape[0], found["input"].dtype)
    biased = {"input_bias": zero, "recurrent_bias": zero, **found}
    return from_output_major(biased, cell.output_major, cell.gates, found.get("peephole"))


def to_torch(self: Weights, *, bias: bool = True) -> dict[str, Array]:
    """The state dict of `torch.nn.LSTM`, `torch.nn.GRU` or `torch.nn.RNN`.

    Args:
      bias: False for a module made with bias=False.

    Returns:
      Arrays by PyTorch's names; `torch.from_numpy` makes tensors of them.

    Raises:
      ValueError: there are peepholes, reset_after is False, or bias is False and a bias is not
        zero.
    """
    self._require_reset_after("PyTorch's GRU")
    require(self.cells[0].peephole is None, "PyTorch has no peepholes; use to_keras or to_onnx")
    self._require_zero_biases(bias)
    return {name: array for name, array in by_torch_names(self) if bias or "bias" not in name}


def by_torch_names(weights: Weights) -> Iterator[tuple[str, Array]]:
    """The arrays with PyTorch's names, and peepholes, which PyTorch does not have.

    Args:
      weights: the weights.

    Yields:
      Each array after its name.
    """
    for k, cell in enumerate(weights.cells):
        names = _torch_names(_end(*divmod(k, weights.directions)))
        arrays = to_output_major(cell, weights._CELL.gates, weights._CELL.output_major)
        if cell.peephole is not None:
            arrays["peephole"] = np.array(cell.peephole)
        for kind, array in arrays.items():
            yield names[kind], array


def _state_dict(source: Any) -> Mapping[str, Any]:
    """The state dict of a module, or the argument itself."""
    given: Mapping[str, Any] = source.state_dict() if hasattr(source, "state_dict") else source
    if not isinstance(given, Mapping):
        raise ValueError(
            f"{reprlib.repr(source)} is neither a module nor a state dict"
            f"{_received.instead_of_state_dict(source)}"
        )
    for name in given:
        require(isinstance(name, str), f"the keys of a state dict must be texts but one is {name}")
    return given


def require_plain(names: Iterable[str], prefix: str) -> None:
    """Refuses a module whose weights PyTorch computes from other arrays.

    Args:
      names: of a state dict.
      prefix: the beginning of the module's names.

    Raises:
      ValueError: it has such an array.
    """
    for name in names:
        if name.startswith(prefix) and _COMPUTED.fullmatch(name[len(prefix) :]):
            raise ValueError(
                f"{name} is an array of weight_norm, spectral_norm, pruning or another "
                "parametrization, of which PyTorch computes the weight. Call "
                "torch.nn.utils.parametrize.remove_parametrizations, torch.nn.utils."
                "remove_weight_norm, remove_spectral_norm or prune.remove for the module, and "
                "take the state dict again"
            )


def _own_names(given: Mapping[str, Any], prefix: str) -> list[str]:
    """The names of the module, without the prefix."""
    require(isinstance(prefix, str), f"prefix must be a text but is {prefix!r}")
    own = [name.removeprefix(prefix) for name in given if name.startswith(prefix)]
    require_plain(given, prefix)
    firsts = (_FIRST, _FIRST_OF_CELL)
    if not any(first in own for first in firsts):
        ends = [n.removesuffix(first) for n in given for first in firsts if n.endswith(first)]
        hint = f"; pass prefix=, here one of {_listed(map(repr, ends))}" if ends else ""
        raise ValueError(
            f"the state dict has neither {prefix}{_FIRST} nor {prefix}{_FIRST_OF_CELL}, the key "
            f"of a cell{hint}"
        )
    return own


def _listed(names: Iterable[str]) -> str:
    """The first names for an error, which should not be longer than a page."""
    first = list(names)
    more = f" and {len(first) - 5} more" if len(first) > 5 else ""
    return ", ".join(name if len(name) < 60 else f"{name[:60]}..." for name in first[:5]) + more


def _names_of_cells(own: Collection[str]) -> tuple[list[dict[str, str]], int]:
    """PyTorch's names of the arrays of each cell, and the number of directions."""
    if _FIRST not in own:
        return [_torch_names("")], 1
    directions = 2 if f"{_FIRST}_reverse" in own else 1
    layers = itertools.takewhile(lambda k: f"weight_ih{_end(k, 0)}" in own, itertools.count())
    return [_torch_names(_end(k, d)) for k in layers for d in range(directions)], directions


def _required_kinds(cells: Iterable[Mapping[str, str]], own: Collection[str]) -> list[str]:
    """The kinds of arrays that every cell must have: those of any cell, and both biases or none."""
    found = {kind for names in cells for kind, name in names.items() if name in own}
    required = found | {"input", "recurrent"} | (_BIASES if found & _BIASES else set())
    return [kind for kind in _torch_names("") if kind in required]


def _missing(kind: str, key: str) -> str:
    every = ", which the other biases require: a module has all biases or none"
    return f"the state dict has no {key}{every if kind in _BIASES else ''}"


def _array(given: Mapping[str, Any], key: str, kind: str) -> Array:
    """Reads an array. Biases have one dimension, weights two."""
    return as_numbers(key, given[key], 1 if kind in _BIASES else 2)


def _require_kind(found: Mapping[str, Array], wanted: _cells.Cell) -> None:
    """Checks that the arrays of a cell are those of the wanted kind of module."""
    units = found.get("projection", found["recurrent"]).shape[-1]
    gates, rest = divmod(found["input"].shape[0], max(units, 1))
    cell = None if rest else _cells.BY_GATES.get(gates)
    what = f"{cell.words}, not of {wanted.words}; use {cell.weights}" if cell else "another module"
    what = what if cell else f"{what}, not of {wanted.words}"
    require(cell is wanted, f"the weights are those of {what}")
    # Before arrays of these sizes are made: they may be any numbers if there are no elements.
    rows = found["input"].shape[0]
    require(found["recurrent"].shape[1] > 0, "the size of h must be positive but is 0")
    require_shape("the recurrent weights", found["recurrent"], rows, "P")


def _end(layer: int, direction: int) -> str:
    """The end of the names of a layer's direction."""
    return f"_l{layer}" + "_reverse" * direction


def _torch_names(end: str) -> dict[str, str]:
    """PyTorch's names of a cell's arrays by the kinds of cudnn_layout.Region."""
    return {
        "input": "weight_ih" + end,
        "recurrent": "weight_hh" + end,
        "input_bias": "bias_ih" + end,
        "recurrent_bias": "bias_hh" + end,
        "projection": "weight_hr" + end,
        "peephole": "weight_peephole" + end,
    }
