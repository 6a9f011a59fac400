"""The output-major layout of matrices, [G*H, in], with the gates as blocks of rows.

cuDNN, PyTorch, ONNX and MPSGraph use it. A cell in this layout is a dict of arrays by the kinds of
cudnn_layout.Region: input [G*H, in], recurrent [G*H, P], input_bias and recurrent_bias [G*H], and
projection [P, H] if there is one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tf_lstm_ops._arrays import Array, reordered
from tf_lstm_ops._refusal import require
from tf_lstm_ops.weights.canonical import CellWeights


def to_output_major(cell: CellWeights, source: str, target: str) -> dict[str, Array]:
    """Converts a cell to the output-major layout.

    Args:
      cell: the cell. Its peephole is left out.
      source: the gate order of cell, a letter for each gate.
      target: the gate order of the result.

    Returns:
      The arrays by kind; copies, row-major.
    """

    def convert(array: Array) -> Array:
        return np.ascontiguousarray(reordered(array, source, target).T)

    found = {
        "input": convert(cell.kernel),
        "recurrent": convert(cell.recurrent_kernel),
        "input_bias": convert(cell.bias),
        "recurrent_bias": convert(cell.recurrent_bias),
    }
    if cell.projection is not None:
        found["projection"] = np.array(cell.projection.T, order="C")
    return found


def from_output_major(
    arrays: Mapping[str, Array], source: str, target: str, peephole: Array | None = None
) -> CellWeights:
    """Converts a cell from the output-major layout.

    Args:
      arrays: the arrays of the cell by kind.
      source: the gate order of arrays, a letter for each gate.
      target: the gate order of the result.
      peephole: [3, H], rows i, f, o, used without a copy; None without.

    Returns:
      The cell. Its arrays, except the peephole, are copies.

    Raises:
      ValueError: the rows of an array cannot be divided among the gates.
    """

    def convert(array: Array) -> Array:
        require(
            array.shape[0] % len(source) == 0, f"{array.shape[0]} rows are not {len(source)} gates"
        )
        return reordered(array.T, source, target)

    projection = arrays.get("projection")
    return CellWeights(
        kernel=convert(arrays["input"]),
        recurrent_kernel=convert(arrays["recurrent"]),
        bias=convert(arrays["input_bias"]),
        recurrent_bias=convert(arrays["recurrent_bias"]),
        peephole=peephole,
        projection=None if projection is None else np.array(projection.T, order="C"),
    )
