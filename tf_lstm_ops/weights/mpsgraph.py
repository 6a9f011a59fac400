"""The weights of MPSGraph's LSTM."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tf_lstm_ops import _cells
from tf_lstm_ops._arrays import Array, as_numbers, reordered, require_shape
from tf_lstm_ops._refusal import require
from tf_lstm_ops.weights.canonical import CellWeights, Self, Weights
from tf_lstm_ops.weights.output_major import from_output_major, to_output_major


class MPSGraph(NamedTuple):
    """The weights of MPSGraph's LSTM, named as its arguments. `to_mpsgraph` returns it.

    >>> import keras
    >>> from tf_lstm_ops.weights import LSTMWeights
    >>> layer = keras.layers.LSTM(4)
    >>> layer.build((None, None, 8))
    >>> LSTMWeights.from_keras(layer).to_mpsgraph().input_weight.shape
    (16, 8)

    Attributes:
      input_weight: [D*4H, I].
      recurrent_weight: [4H, H]; with two directions [2, 4H, H].
      bias: [D*4H].
      peephole: [4H]; with two directions [2, 4H]. None without peepholes.
    """

    input_weight: Array
    recurrent_weight: Array
    bias: Array
    peephole: Array | None = None


def from_mpsgraph(
    cls: type[Self],
    input_weight: ArrayLike | None,
    recurrent_weight: ArrayLike,
    bias: ArrayLike | None = None,
    peephole: ArrayLike | None = None,
    *,
    forget_gate_last: bool = False,
) -> Self:
    """From the arguments of MPSGraph's LSTM, of one direction or two.

    Args:
      input_weight: [D*4H, I]; or None, if the source holds the products with it: I is then D*4H,
        and the kernel the identity.
      recurrent_weight: [4H, H] or [2, 4H, H]; gates i, f, c, o.
      bias: [D*4H], or None for zero.
      peephole: [4H] or [2, 4H]; None without peepholes.
      forget_gate_last: forgetGateLast of the descriptor. If True, the gates are i, c, f, o.

    Returns:
      The weights of one layer.

    Raises:
      ValueError: the shapes are inconsistent, or a peephole of c or o is not zero. Only MPSGraph
        multiplies these by the previous cell state.
    """
    recurrent = as_numbers("recurrent_weight", recurrent_weight)
    lead = (2,) if recurrent.ndim == 3 else ()
    require_shape("recurrent_weight", recurrent, *lead, "4H", "H")
    directions, size, dtype = 1 + len(lead), recurrent.shape[-1], recurrent.dtype
    rows = directions * 4 * size
    require_shape("recurrent_weight", recurrent, *lead, 4 * size, size)

    def read(name: str, value: Any, default: Array) -> Array:
        return default if value is None else as_numbers(name, value)

    kernel = read("input_weight", input_weight, np.eye(rows, dtype=dtype))
    one_bias = read("bias", bias, np.zeros(rows, dtype))
    peepholes = read("peephole", peephole, np.zeros((*lead, 4 * size), dtype))
    require_shape("input_weight", kernel, rows, "I")
    require_shape("bias", one_bias, rows)
    require_shape("peephole", peepholes, *lead, 4 * size)
    order = _gate_order(forget_gate_last)

    def cell(rows: slice) -> CellWeights:
        arrays = {
            "input": kernel[rows],
            "recurrent": recurrent.reshape(-1, size)[rows],
            "input_bias": np.zeros(4 * size, dtype),
            "recurrent_bias": one_bias[rows],
        }
        ifo = None if peephole is None else _from_peephole(peepholes.ravel()[rows], order)
        return from_output_major(arrays, order, cls._CELL.gates, ifo)

    of_directions = [slice(4 * size * d, 4 * size * (d + 1)) for d in range(directions)]
    return cls(tuple(map(cell, of_directions)), directions)


def to_mpsgraph(self: Weights, *, forget_gate_last: bool = False) -> MPSGraph:
    """The arguments of MPSGraph's LSTM; with two directions for `bidirectional=True`.

    Args:
      forget_gate_last: forgetGateLast of the descriptor.

    Returns:
      The arrays input_weight, recurrent_weight, bias and peephole.

    Raises:
      ValueError: there is more than one layer or a projection; or a peephole of the output gate is
        not zero. It multiplies the new cell state, that of MPSGraph the previous one.
    """
    self._require_one_layer("MPSGraph's LSTM")
    order = _gate_order(forget_gate_last)
    cells = [to_output_major(cell, self._CELL.gates, order) for cell in self.cells]
    recurrent = np.stack([cell["recurrent"] for cell in cells])
    peepholes = [_to_peephole(c.peephole, order) for c in self.cells if c.peephole is not None]
    one = self.directions == 1
    return MPSGraph(
        input_weight=np.concatenate([cell["input"] for cell in cells]),
        recurrent_weight=recurrent[0] if one else recurrent,
        bias=np.concatenate([cell["input_bias"] + cell["recurrent_bias"] for cell in cells]),
        peephole=None if not peepholes else peepholes[0] if one else np.stack(peepholes),
    )


def _gate_order(forget_gate_last: bool) -> str:
    return _cells.BLOCK if forget_gate_last else _cells.LSTM.gates


def _from_peephole(peephole: Array, order: str) -> Array:
    """From [4H] with gates in this order to [3, H], rows i, f, o."""
    i, f, c, o = np.split(reordered(peephole, order, _cells.LSTM.gates), 4)
    require(
        not (c.any() or o.any()),
        "peephole must be zero for the gates c and o, where only MPSGraph's reads the previous "
        "cell state; train the model without these",
    )
    return np.stack([i, f, o])


def _to_peephole(peephole: Array, order: str) -> Array:
    """From [3, H], rows i, f, o, to [4H] with gates in this order."""
    i, f, o = peephole
    require(
        not o.any(),
        "MPSGraph's output gate reads the previous cell state, not the new one, so that only zero "
        "peepholes of it can be written; use to_keras, to_block_cell or to_onnx",
    )
    return reordered(np.concatenate([i, f, np.zeros_like(i), o]), _cells.LSTM.gates, order)
