"""PyTorch's state dicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tf_lstm_ops.weights.arrays import Array, as_array, require
from tf_lstm_ops.weights.canonical import CellWeights, Weights
from tf_lstm_ops.weights.output_major import from_output_major, to_output_major

if TYPE_CHECKING:
    from typing_extensions import Self


class TorchFormat(Weights):
    """Reads and writes the state dict of `torch.nn.LSTM` or `torch.nn.GRU`."""

    @classmethod
    def from_torch(cls, state_dict: Mapping[str, Any]) -> Self:
        """From the state dict of `torch.nn.LSTM` or `torch.nn.GRU`.

        Args:
          state_dict: `module.state_dict()` of the module itself; tensors or arrays. If the module
            has no biases (bias=False), they become zero.

        Returns:
          The weights of all layers.

        Raises:
          ValueError: a key is missing or unknown, or shapes are not those of this kind of module.
        """
        directions = 2 if "weight_ih_l0_reverse" in state_dict else 1
        require(
            "weight_ih_l0" in state_dict,
            "state_dict has no weight_ih_l0; pass the one of the nn.LSTM or nn.GRU module itself",
        )
        cells: list[CellWeights] = []
        unread = dict(state_dict)
        while f"weight_ih_l{len(cells) // directions}" in state_dict:
            names = _torch_names(len(cells), directions)
            found = {k: as_array(unread.pop(n)) for k, n in names.items() if n in unread}
            require(
                {"input", "recurrent"} <= found.keys(), f"state_dict has no {names['recurrent']}"
            )
            none = np.zeros(found["input"].shape[0], found["input"].dtype)
            found = {"input_bias": none, "recurrent_bias": none, **found}
            cells.append(from_output_major(found, cls._OUTPUT_MAJOR_GATES, cls._GATES))
        require(not unread, f"state_dict has {', '.join(unread)}, which belongs to no layer")
        return cls(tuple(cells), directions)

    def to_torch(self, *, bias: bool = True) -> dict[str, Array]:
        """The state dict of `torch.nn.LSTM` or `torch.nn.GRU`.

        Args:
          bias: False for a module made with bias=False.

        Returns:
          Arrays by PyTorch's names; `torch.from_numpy` makes tensors of them.

        Raises:
          ValueError: there are peepholes, or bias is False and a bias is not zero.
        """
        require(
            self.layers[0].peephole is None, "PyTorch has no peepholes; use to_keras or to_onnx"
        )
        self._require_zero_biases(bias)
        return {
            _torch_names(k, self.directions)[kind]: array
            for k, cell in enumerate(self.layers)
            for kind, array in to_output_major(cell, self._GATES, self._OUTPUT_MAJOR_GATES).items()
            if bias or not kind.endswith("bias")
        }


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
    }
