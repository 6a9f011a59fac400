"""Random weights of each kind and shape. No TensorFlow is needed."""

from typing import Any, NamedTuple

import numpy as np

from tf_lstm_ops.weights import CellWeights, GRUWeights, LSTMWeights, RNNWeights

Array = np.ndarray
Weights = LSTMWeights | GRUWeights | RNNWeights
KINDS = {"lstm": LSTMWeights, "gru": GRUWeights, "rnn_tanh": RNNWeights}  # by cuDNN's rnn_mode
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1}

INPUTS, UNITS = 3, 4
# Two correct evaluations differ by some hundred roundings of 1e-16 of outputs within [-1, 1], which
# propagate through three layers.
ROUNDING = 1e-13
# In float32, for stock's block cell, which has no wider type: some dozen roundings of 6e-8.
ROUNDING_FLOAT32 = 2e-6


class Shape(NamedTuple):
    """The sizes and kinds of weights."""

    kind: str = "lstm"
    layers: int = 1
    directions: int = 1
    num_proj: int = 0
    peephole: bool = False
    inputs: int = INPUTS
    units: int = UNITS

    def __str__(self) -> str:
        words = [self.kind, f"L{self.layers}", f"D{self.directions}"]
        words += [f"P{self.num_proj}"] if self.num_proj else []
        return "-".join(words + ["peephole"] * self.peephole)

    @property
    def hidden(self) -> int:
        return self.num_proj or self.units


PLAIN = [Shape(kind, n, d) for kind in KINDS for n in (1, 2, 3) for d in (1, 2)]
PROJECTED = [Shape("lstm", n, d, num_proj=2) for n in (1, 2) for d in (1, 2)]
PEEPHOLE = [Shape("lstm", n, d, peephole=True) for n in (1, 2) for d in (1, 2)]


def random_weights(shape: Shape, rng: np.random.Generator, dtype: Any = "float64") -> Weights:
    gates = GATES[shape.kind]

    def normal(*size: int) -> Array:
        return rng.normal(0, 0.5, size).astype(dtype)

    def cell(inputs: int) -> CellWeights:
        return CellWeights(
            kernel=normal(inputs, gates * shape.units),
            recurrent_kernel=normal(shape.hidden, gates * shape.units),
            bias=normal(gates * shape.units),
            recurrent_bias=normal(gates * shape.units),
            peephole=normal(3, shape.units) if shape.peephole else None,
            projection=normal(shape.units, shape.num_proj) if shape.num_proj else None,
        )

    widths = [shape.inputs] + [shape.directions * shape.hidden] * (shape.layers - 1)
    cells = [cell(width) for width in widths for _ in range(shape.directions)]
    return KINDS[shape.kind](tuple(cells), shape.directions)


def assert_equal(got: Weights, want: Weights) -> None:
    """Bit for bit, with the same dtypes."""
    assert type(got) is type(want)
    assert got.directions == want.directions
    assert getattr(got, "activation", None) == getattr(want, "activation", None)
    for k, (a, b) in enumerate(zip(got.cells, want.cells, strict=True)):
        assert a.arrays().keys() == b.arrays().keys()
        for name, array in b.arrays().items():
            assert_same_bits(a.arrays()[name], array, f"{name} of layers[{k}]")


def assert_same_bits(got: Array, want: Array, name: str = "") -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), name
    assert got.tobytes() == want.tobytes(), name
