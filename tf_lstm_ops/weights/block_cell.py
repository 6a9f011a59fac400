"""The block-cell ops' arguments."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tf_lstm_ops import _cells
from tf_lstm_ops._arrays import Array, as_numbers, reordered, require_shape
from tf_lstm_ops._refusal import require
from tf_lstm_ops.weights.canonical import CellWeights, Self, Weights


class BlockCell(NamedTuple):
    """The weights of the block-cell ops, named as their arguments. `to_block_cell` returns it.

    >>> import keras
    >>> from tf_lstm_ops.weights import LSTMWeights
    >>> layer = keras.layers.LSTM(4)
    >>> layer.build((None, None, 8))
    >>> cell = LSTMWeights.from_keras(layer).to_block_cell(gate_order="IFCO", forget_bias=0.0)
    >>> cell.w.shape, cell.b.shape
    ((12, 16), (16,))

    Attributes:
      w: [I+H, 4H], rows of x, then of h.
      b: [4H].
      wci, wcf, wco: [H]; zero without peepholes, because the ops require these arguments.
    """

    w: Array
    b: Array
    wci: Array
    wcf: Array
    wco: Array


def from_block_cell(
    cls: type[Self],
    w: ArrayLike,
    b: ArrayLike,
    wci: ArrayLike | None = None,
    wcf: ArrayLike | None = None,
    wco: ArrayLike | None = None,
    *,
    gate_order: str,
    forget_bias: float,
    projection: ArrayLike | None = None,
) -> Self:
    """From the arguments of LSTMBlockCell, BlockLSTM or BlockLSTMV2.

    Args:
      w, b: [I+H, 4H] and [4H]; with a projection w is [I+P, 4H].
      wci, wcf, wco: [H] each if the op was used with use_peephole, else None.
      gate_order: "ICFO"; for BlockLSTMV2 "IFCO".
      forget_bias: the op's attribute, which is added to the bias; for BlockLSTMV2 0.
      projection: [H, P], the projection of a cell such as TensorFlow 1's ``LSTMCell(num_proj=P)``;
        None for the ops, which have none. It shows that w has P rows for h instead of H.

    Returns:
      The weights of one layer of one direction.

    Raises:
      ValueError: the shapes are inconsistent; only some of the peepholes are given; gate_order is
        neither "ICFO" nor "IFCO"; or b is of integers and forget_bias is no integer.
    """
    _check_gate_order(gate_order)
    matrix, vector = as_numbers("w", w, 2), as_numbers("b", b, 1)
    units = projection_size = vector.size // 4
    require_shape("b", vector, 4 * units)
    if projection is not None:
        projection = as_numbers("projection", projection, 2)
        rows, projection_size = projection.shape
        require(
            rows == units and 0 < projection_size < units,
            f"projection must be ({units}, P) with 0 < P < {units} but is {projection.shape}",
        )
    inputs = max(len(matrix) - projection_size, 0)
    require(
        matrix.shape == (inputs + projection_size, 4 * units),
        f"w must be (I+{projection_size}, {4 * units}) but is {matrix.shape}",
    )
    matrix, recurrent_bias = (
        reordered(a, gate_order.lower(), cls._CELL.gates) for a in (matrix, vector)
    )
    given = [p is not None for p in (wci, wcf, wco)]
    require(all(given) or not any(given), "give all of wci, wcf and wco, or none")
    peephole = _peephole({"wci": wci, "wcf": wcf, "wco": wco}, vector) if all(given) else None
    bias = _forget_bias(recurrent_bias, forget_bias)
    x, h = np.split(matrix, [inputs])
    return cls((CellWeights(x, h, bias, recurrent_bias, peephole, projection),))


def to_block_cell(self: Weights, *, gate_order: str, forget_bias: float) -> BlockCell:
    """The arguments of LSTMBlockCell, BlockLSTM or BlockLSTMV2.

    Args:
      gate_order: "ICFO"; for BlockLSTMV2 "IFCO".
      forget_bias: the op's attribute, which is subtracted from the bias; for BlockLSTMV2 0.

    Returns:
      The arrays w, b, wci, wcf and wco.

    Raises:
      ValueError: there is more than one layer or direction, or a projection; gate_order is neither
        "ICFO" nor "IFCO"; or the weights are integers and forget_bias is not.
    """
    _check_gate_order(gate_order)
    require(
        len(self.cells) == 1,
        f"the block cell has one layer of one direction, not {len(self.cells)}; convert each "
        "direction separately with LSTMWeights((cell,))",
    )
    (cell,) = self.cells
    require(cell.projection is None, "the block cell has no projection; use to_cudnn")
    bias = cell.bias - _forget_bias(cell.bias, forget_bias) + cell.recurrent_bias
    w = np.concatenate([cell.kernel, cell.recurrent_kernel])
    peephole = np.zeros((3, self.units), w.dtype) if cell.peephole is None else cell.peephole
    w, b = (reordered(a, self._CELL.gates, gate_order.lower()) for a in (w, bias))
    return BlockCell(w, b, *map(np.array, peephole))


_GATE_ORDERS = tuple(order.upper() for order in (_cells.BLOCK, _cells.BLOCK_V2))


def _check_gate_order(gate_order: str) -> None:
    require(
        gate_order in _GATE_ORDERS, f"gate_order must be 'ICFO' or 'IFCO' but is {gate_order!r}"
    )


def _peephole(given: dict[str, Any], bias: Array) -> Array:
    """[3, H], of arrays by name."""
    arrays = {name: as_numbers(name, value) for name, value in given.items()}
    for name, array in arrays.items():
        require_shape(name, array, bias.size // 4)
        require(array.dtype == bias.dtype, f"{name} must be {bias.dtype} but is {array.dtype}")
    return np.stack(list(arrays.values()))


def _forget_bias(bias: Array, value: float) -> Array:
    """[4H]: value in the block of the forget gate, else zero.

    TensorFlow stores the attribute forget_bias in float32.
    """
    is_number = isinstance(value, numbers.Real)
    require(is_number, f"forget_bias must be a number but is {value!r}")
    stored = np.float32(value)
    fits = bias.dtype.kind not in "iu" or stored.is_integer()
    require(fits, f"forget_bias must be an integer, as b is {bias.dtype}, but is {value!r}")
    found = np.zeros_like(bias)
    np.split(found, 4)[1][:] = stored
    return found
