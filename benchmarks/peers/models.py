"""Rows of whole models: a description of their layers, and the data that every peer gets.

The layers are those of models for signals (convolutions, then an LSTM) and for texts (an embedding,
then LSTMs). A Dense layer ends each model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from peers.cases import Row, valid_steps, with_steps
from tf_lstm_ops._arrays import Array
from tf_lstm_ops.weights import CellWeights, LSTMWeights


class Conv(NamedTuple):
    """A convolution along time with a bias, then ReLU.

    Attributes:
      units: the number of output channels.
      size: the number of steps of the kernel.
      padding: "valid" or "same".
      normalized: whether a batch normalization is before the ReLU.
    """

    units: int
    size: int
    padding: str = "valid"
    normalized: bool = False


class Pool(NamedTuple):
    """The maximum of every `size` steps."""

    size: int


class Embed(NamedTuple):
    """A table with a row for each index. If `mask_zero`, the index 0 is padding."""

    vocabulary: int
    units: int
    mask_zero: bool = False


class Recurrent(NamedTuple):
    """An LSTM in one direction or two. It returns the last output, or all if `sequences`."""

    units: int
    directions: int = 1
    sequences: bool = False


class Dense(NamedTuple):
    """A Dense layer with softmax."""

    units: int


Layer = Conv | Pool | Embed | Recurrent | Dense

_ACTIVITY = (Conv(64, 3), Conv(64, 3), Pool(2), Recurrent(100), Dense(6))
MODELS: dict[str, tuple[Layer, ...]] = {
    "activity": _ACTIVITY,
    "long signal": (Conv(32, 5), Pool(4), Recurrent(64), Dense(2)),
    "normalized": (Conv(64, 3, "same", normalized=True), Recurrent(64, directions=2), Dense(4)),
    "short text": (Embed(10000, 64), Recurrent(128), Dense(2)),
    "padded text": (Embed(20000, 128, mask_zero=True), Recurrent(64, directions=2), Dense(2)),
    "bytes": (
        *(Embed(256, 64), Recurrent(256, sequences=True), Recurrent(256, sequences=True)),
        Dense(256),
    ),
    "text": (Embed(5000, 100), Recurrent(100), Dense(2)),
}
_PEERS = ("ours", "session", "keras", "torch", "onnxruntime", "openvino", "tract")


def _row(model: str, batch: int, time: int, inputs: int = 0) -> Row:
    """The row of a model; `inputs` are the channels of a signal."""
    first = MODELS[model][0]
    (units,) = {layer.units for layer in MODELS[model] if isinstance(layer, Recurrent)}
    if isinstance(first, Embed):
        kind, inputs, size = "Embedding-LSTM", first.units, f"V{first.vocabulary} E{first.units}"
    else:
        kind, size = "CNN-LSTM", f"C{inputs}"
    steps = "1..T" if isinstance(first, Embed) and first.mask_zero else "all"
    return Row(
        f"model {kind}, {model}, N{batch} T{time} {size}",
        *("models", "model", batch, time, units, inputs),
        peers=with_steps(_PEERS, steps),
        steps=steps,
        model=model,
    )


ROWS = (
    _row("activity", 1, 128, 9),
    _row("activity", 32, 128, 9),
    _row("long signal", 1, 1000, 1),
    _row("normalized", 64, 60, 16),
    _row("short text", 1, 20),
    _row("padded text", 32, 100),
    _row("bytes", 1, 64),
    _row("text", 64, 40),
)


class ModelProblem(NamedTuple):
    """The data of a row.

    Attributes:
      x: float32 [B, T, C], or int32 [B, T] with the indices of an Embed.
      layers: each layer with its weights: LSTMWeights of a Recurrent, otherwise arrays by name.
      lengths: int32 [B], the valid steps of each sequence; None if all are valid.
    """

    x: Array
    layers: list[tuple[Layer, Any]]
    lengths: Array | None


def make_problem(row: Row) -> ModelProblem:
    """Draws the data of a row.

    Args:
      row: the row of a model.

    Returns:
      The data, the same in every call.
    """
    rng = np.random.default_rng(0)
    first = MODELS[row.model][0]
    valid = valid_steps(row)
    if isinstance(first, Embed):
        x = rng.integers(1, first.vocabulary, valid.shape, np.int32) * valid
    else:
        x = rng.standard_normal((row.batch, row.time, row.inputs), np.float32)
    layers: list[tuple[Layer, Any]] = []
    width = row.inputs
    for layer in MODELS[row.model]:
        layers.append((layer, _weights(layer, width, rng)))
        if not isinstance(layer, Pool):
            width = layer.units * (layer.directions if isinstance(layer, Recurrent) else 1)
    return ModelProblem(x, layers, None if row.steps == "all" else valid.sum(1).astype(np.int32))


def _weights(layer: Layer, width: int, rng: np.random.Generator) -> Any:
    """The weights of a layer whose input has the size `width`."""

    def draw(*shape: int) -> Array:
        bound = max(int(np.prod(shape[:-1])), 4) ** -0.5  # so that nothing saturates or dies out
        return rng.uniform(-bound, bound, shape).astype(np.float32)

    match layer:
        case Conv(units, size):
            found = {"kernel": draw(size, width, units), "bias": draw(units)}
            if layer.normalized:
                found |= {"gamma": 1 + draw(units), "beta": draw(units), "mean": draw(units)}
                found["variance"] = 1 + draw(units)
            return found
        case Pool():
            return {}
        case Embed(vocabulary, units):
            return {"table": rng.standard_normal((vocabulary, units), np.float32)}
        case Recurrent(units, directions):
            columns = 4 * units
            shapes = (width, columns), (units, columns), (columns,), (columns,)
            cells = tuple(CellWeights(*(draw(*s) for s in shapes)) for _ in range(directions))
            return LSTMWeights(cells, directions)
        case Dense(units):
            return {"kernel": draw(width, units), "bias": draw(units)}
