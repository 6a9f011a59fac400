"""Files of other programs: TensorFlow's checkpoints and graphs, Keras' files."""

from __future__ import annotations

import dataclasses
import os

import numpy as np

from tf_lstm_ops import _cells, checkpoints
from tf_lstm_ops._arrays import Array
from tf_lstm_ops._refusal import require, within
from tf_lstm_ops.checkpoints.cells import Cell
from tf_lstm_ops.weights import block_cell, keras, torch
from tf_lstm_ops.weights.canonical import Self


def from_checkpoint(
    cls: type[Self],
    path: str | os.PathLike[str],
    layer: str | None = None,
    forget_bias: float | None = None,
) -> Self:
    """From a file of trained weights of a known family.

    The activations are not part of the weights. Where a file of Keras 1 or 2 has
    recurrent_activation="hard_sigmoid", clip(0.2 x + 0.5, 0, 1), the weights are not scaled to
    Keras 3's function of that name; `tf_lstm_ops.keras.load_h5` does this.

    Args:
      path: a TensorFlow checkpoint (its prefix, one of its files or its folder), a folder of a
        SavedModel, a frozen graph (.pb), or a file .h5, .hdf5, .keras, .weights.h5 or .safetensors.
        TensorFlow is imported only for the first three.
      layer: which weights, where the file has several: a name that the error lists, or its first
        parts, such as the name of the Keras layer.
      forget_bias: what is added to the bias of the forget gate; None: what the program of the
        family adds at run time, by its defaults: 1 for cells of TensorFlow 1, magenta and ELMo,
        else 0. A GRU has none.

    Returns:
      The weights of all layers of a stack and of both directions, if the names say so.

    Raises:
      ImportError: a package that reads this kind of file is not installed.
      OSError: there is no such file, or it cannot be read.
      ValueError: the file is damaged or of no known kind; it has no such weights, or several and
        `layer` names none of them; or the layer has layer normalisation.
    """
    return of_candidate(cls, checkpoints.chosen(path, cls._CELL.modes, layer), forget_bias)


def of_candidate(
    cls: type[Self], candidate: checkpoints.Candidate, forget_bias: float | None = None
) -> Self:
    """Reads weights that a file has.

    Args:
      candidate: the weights.
      forget_bias: as of `from_checkpoint`.

    Returns:
      The weights.

    Raises:
      OSError, ValueError: the weights cannot be read or converted, or forget_bias is given for a
        GRU.
    """
    require(
        forget_bias is None or candidate.kind == "lstm",
        f"{candidate.name} is a GRU, which has no forget gate; leave forget_bias out",
    )
    found = [_of_cell(cls, cell, forget_bias) for cell in candidate.cells]
    if len(found) == 1:
        return found[0]
    cells = tuple(cell for weights in found for cell in weights.cells)
    return dataclasses.replace(found[0], cells=cells, directions=candidate.directions)


def _of_cell(cls: type[Self], cell: Cell, forget_bias: float | None) -> Self:
    found = cell.read()
    added = cell.forget_bias if forget_bias is None else forget_bias
    with within(cell.name):
        if found.format == "block_cell":
            return block_cell.from_block_cell(
                cls, *found.arrays, **found.options, forget_bias=added
            )
        read = torch.from_torch if found.format == "torch" else keras.from_keras
        weights = read(cls, *found.arrays)
        if not added:
            return weights
        cells = [dataclasses.replace(c, bias=_added(c.bias, added)) for c in weights.cells]
        return dataclasses.replace(weights, cells=tuple(cells))


def _added(bias: Array, value: float) -> Array:
    """[4H]: the value is added to the bias of the forget gate."""
    blocks = np.split(bias, len(_cells.LSTM.gates))
    forget = _cells.LSTM.gates.index("f")
    blocks[forget] = (blocks[forget] + value).astype(bias.dtype)
    return np.concatenate(blocks)
