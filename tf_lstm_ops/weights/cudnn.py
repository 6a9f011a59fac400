"""cuDNN's parameter buffer."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tf_lstm_ops._arrays import Array, as_numbers, require_shape
from tf_lstm_ops._refusal import require
from tf_lstm_ops.cudnn_layout import Model
from tf_lstm_ops.weights.canonical import Self, Weights
from tf_lstm_ops.weights.output_major import from_output_major, to_output_major


def from_cudnn(
    cls: type[Self],
    params: ArrayLike,
    *,
    input_size: int,
    units: int,
    num_layers: int = 1,
    directions: int = 1,
    projection_size: int | None = None,
    input_mode: str = "linear_input",
) -> Self:
    """From the `params` of the CudnnRNN ops.

    Args:
      params: [params_size], in cuDNN's layout.
      input_size: I.
      units: H, num_units of the ops.
      num_layers: the number of layers.
      directions: 1 or 2.
      projection_size: P, num_proj of the ops; None or 0: no projection.
      input_mode: as the ops take it. If the first layer skips its input, its kernel becomes the
        identity for each gate, which has the same effect.

    Returns:
      The weights of all layers.

    Raises:
      ValueError: params does not have the size of such a model, or an argument is out of range.
    """
    sizes = {
        "input_size": input_size,
        "units": units,
        "num_layers": num_layers,
        "directions": directions,
        "projection_size": 0 if projection_size is None else projection_size,
    }
    for name, size in sizes.items():
        is_integer = isinstance(size, int | np.integer)
        require(is_integer, f"{name} must be an integer but is {size!r}")
    # Not NumPy's integers, which may be too narrow for the products of sizes.
    integers = {name: int(size) for name, size in sizes.items()}
    model = Model(cls._CELL.modes[0], **integers, input_mode=input_mode)
    buffer = as_numbers("params", params)
    require_shape("params", buffer, model.size())
    cells: list[dict[str, Array]] = [{} for _ in range(model.pseudo_layers)]
    start = 0
    for region in model.regions():
        elements = buffer[start : start + region.size]
        cells[region.pseudo_layer][region.kind] = elements.reshape(region.matrix_shape)
        start += region.size
    if model.skip_input:
        for cell in cells[: model.directions]:
            cell["input"] = _identity(model).astype(buffer.dtype)
    gates = cls._CELL.output_major, cls._CELL.gates
    return cls(tuple(from_output_major(cell, *gates) for cell in cells), model.directions)


def to_cudnn(self: Weights, *, input_mode: str = "linear_input") -> Array:
    """The `params` of the CudnnRNN ops.

    The ops' num_proj is `projection_size` with a projection, and 0 without.

    Args:
      input_mode: as the ops take it.

    Returns:
      [params_size], in cuDNN's layout.

    Raises:
      ValueError: there are peepholes; reset_after is False; or the first layer skips its input, but
        its kernel is not the identity for each gate.
    """
    self._require_reset_after("cuDNN's GRU")
    require(self.cells[0].peephole is None, "cuDNN has no peepholes; use to_keras or to_onnx")
    projection_size = self.projection_size or 0
    sizes = (self.input_size, self.units, self.num_layers, self.directions, projection_size)
    model = Model(self._CELL.modes[0], *sizes, input_mode)
    gates = self._CELL.gates, self._CELL.output_major
    cells = [to_output_major(cell, *gates) for cell in self.cells]
    if model.skip_input:
        identity = _identity(model)
        require(
            all(np.array_equal(c["input"], identity) for c in cells[: self.directions]),
            "skip_input has no kernel in the first layer, and this one is not the identity; "
            "use input_mode='linear_input'",
        )
        for cell in cells[: self.directions]:
            cell["input"] = cell["input"][:, :0]
    return np.concatenate([cells[r.pseudo_layer][r.kind].ravel() for r in model.regions()])


def _identity(model: Model) -> Array:
    """[G*H, H]: the input matrices with the effect of a skipped input."""
    return np.tile(np.eye(model.units), (model.gates, 1))
