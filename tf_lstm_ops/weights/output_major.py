"""Matrices that multiply from the left, [G*H, in], gates as blocks of rows.

So cuDNN, PyTorch, ONNX and MPSGraph keep them. The arrays of a cell are here a dict by the kinds of
cudnn_layout.Region: input, recurrent, input_bias, recurrent_bias and, if there is one, projection.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tf_lstm_ops.weights.arrays import Array, reordered, require
from tf_lstm_ops.weights.canonical import CellWeights


def to_output_major(cell: CellWeights, source: str, target: str) -> dict[str, Array]:
    """The arrays of a cell but its peephole; `source` and `target` are orders of gates."""

    def left(array: Array) -> Array:
        return np.ascontiguousarray(reordered(array, source, target).T)

    found = {
        "input": left(cell.kernel),
        "recurrent": left(cell.recurrent_kernel),
        "input_bias": left(cell.bias),
        "recurrent_bias": left(cell.recurrent_bias),
    }
    if cell.projection is not None:
        found["projection"] = np.array(cell.projection.T, order="C")
    return found


def from_output_major(
    arrays: Mapping[str, Array], source: str, target: str, peephole: Array | None = None
) -> CellWeights:
    def right(array: Array) -> Array:
        require(
            array.shape[0] % len(source) == 0, f"{array.shape[0]} rows are not {len(source)} gates"
        )
        return reordered(array.T, source, target)

    projection = arrays.get("projection")
    return CellWeights(
        kernel=right(arrays["input"]),
        recurrent_kernel=right(arrays["recurrent"]),
        bias=right(arrays["input_bias"]),
        recurrent_bias=right(arrays["recurrent_bias"]),
        peephole=peephole,
        projection=None if projection is None else np.array(projection.T, order="C"),
    )
