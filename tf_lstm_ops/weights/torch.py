"""PyTorch's state dicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tf_lstm_ops.weights.arrays import Array, as_array, require
from tf_lstm_ops.weights.canonical import CellWeights, Weights
from tf_lstm_ops.weights.output_major import from_output_major, to_output_major

if TYPE_CHECKING:
    from typing_extensions import Self


_FIRST = "weight_ih_l0"
_KINDS: dict[float, str] = {1: "a plain RNN", 3: "a GRU", 4: "an LSTM"}  # by the number of gates


class TorchFormat(Weights):
    """Reads and writes the state dict of `torch.nn.LSTM` or `torch.nn.GRU`."""

    @classmethod
    def from_torch(cls, state_dict: Any, *, prefix: str = "") -> Self:
        """From a `torch.nn.LSTM` or `torch.nn.GRU`.

        Args:
          state_dict: the module, or its state dict: arrays or tensors by PyTorch's names. If the
            module has no biases (bias=False), they become zero.
          prefix: what the names of the module begin with in the state dict of a larger model, such
            as "encoder.". Other names are not read.

        Returns:
          The weights of all layers.

        Raises:
          ValueError: a name is missing or unknown, the weights are of another kind of module, or
            their shapes are inconsistent.
        """
        state_dict = _of_module(state_dict, prefix)
        directions = 2 if "weight_ih_l0_reverse" in state_dict else 1
        cells: list[CellWeights] = []
        unread = dict(state_dict)
        while f"weight_ih_l{len(cells) // directions}" in state_dict:
            names = _torch_names(len(cells), directions)
            found = {k: as_array(unread.pop(n)) for k, n in names.items() if n in unread}
            require(
                {"input", "recurrent"} <= found.keys(), f"state_dict has no {names['recurrent']}"
            )
            _require_kind(found, len(cls._GATES))
            none = np.zeros(found["input"].shape[0], found["input"].dtype)
            found = {"input_bias": none, "recurrent_bias": none, **found}
            gates = cls._OUTPUT_MAJOR_GATES, cls._GATES
            peephole = np.array(found["peephole"]) if "peephole" in found else None
            cells.append(from_output_major(found, *gates, peephole))
        require(not unread, f"state_dict has {', '.join(unread)}, which belongs to no layer")
        return cls(tuple(cells), directions)

    def to_torch(self, *, bias: bool = True) -> dict[str, Array]:
        """The state dict of `torch.nn.LSTM` or `torch.nn.GRU`.

        Args:
          bias: False for a module made with bias=False.

        Returns:
          Arrays by PyTorch's names; `torch.from_numpy` makes tensors of them.

        Raises:
          ValueError: there are peepholes, reset_after is False, or bias is False and a bias is not
            zero.
        """
        self._require_reset_after("PyTorch's GRU")
        require(
            self.layers[0].peephole is None, "PyTorch has no peepholes; use to_keras or to_onnx"
        )
        self._require_zero_biases(bias)
        return {name: array for name, array in self._by_torch_names() if bias or "bias" not in name}

    def _by_torch_names(self) -> Iterator[tuple[str, Array]]:
        """The arrays with PyTorch's names, and peepholes, which PyTorch does not have."""
        for k, cell in enumerate(self.layers):
            names = _torch_names(k, self.directions)
            arrays = to_output_major(cell, self._GATES, self._OUTPUT_MAJOR_GATES)
            if cell.peephole is not None:
                arrays["peephole"] = np.array(cell.peephole)
            for kind, array in arrays.items():
                yield names[kind], array


def _of_module(source: Any, prefix: str) -> dict[str, Any]:
    """The arrays of the module by their names in it."""
    given: Mapping[str, Any] = source.state_dict() if hasattr(source, "state_dict") else source
    require(isinstance(given, Mapping), f"{source!r} is neither a module nor a state dict")
    names = [name for name in given if name.startswith(prefix)]
    found = {name.removeprefix(prefix): given[name] for name in names}
    if _FIRST not in found:
        ends = (name.removesuffix(_FIRST) for name in given if name.endswith(_FIRST))
        prefixes = ", ".join(map(repr, ends))
        hint = f"; pass prefix=, here one of {prefixes}" if prefixes else ""
        raise ValueError(f"the state dict has no {prefix}{_FIRST}{hint}")
    return found


def _require_kind(found: Mapping[str, Array], gates: int) -> None:
    """Checks that the arrays of a cell are those of an LSTM or of a GRU."""
    cell = found.get("projection", found["recurrent"]).shape[-1]
    kind = _KINDS.get(found["input"].shape[0] / max(cell, 1), "another module")
    wanted = _KINDS[gates]
    hint = {"a GRU": "; use GRUWeights", "an LSTM": "; use LSTMWeights"}.get(kind, "")
    require(kind == wanted, f"the weights are those of {kind}, not of {wanted}{hint}")


def _torch_names(pseudo_layer: int, directions: int) -> dict[str, str]:
    """PyTorch's names of a cell's arrays by the kinds of cudnn_layout.Region."""
    layer, direction = divmod(pseudo_layer, directions)
    end = f"_l{layer}" + "_reverse" * direction
    return {
        "input": "weight_ih" + end,
        "recurrent": "weight_hh" + end,
        "input_bias": "bias_ih" + end,
        "recurrent_bias": "bias_hh" + end,
        "projection": "weight_hr" + end,
        "peephole": "weight_peephole" + end,
    }
