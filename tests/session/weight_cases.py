"""Layers of all kinds and sizes for the bits of weights of int8 and bfloat16.

As a program it writes the results on the instruction set that TF_LSTM_OPS_SIMD names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from session import c_library as c
from session import graphs, layers
from session import session_file as f

Array = np.ndarray
Case = Callable[[np.random.Generator, int, int], f.Graph]  # of the sizes of inputs and units

# No multiples of a vector; whole vectors; several blocks; layers that teams of threads share.
SIZES = (37, 61), (16, 32), (5, 131), (64, 256)
ROWS, STEPS = 27, 6  # two threads share some of the batches by rows
BOTH = {"directions": f.BOTH, "merge": f.CONCATENATE}


def _recurrent(cell: int, **fields: Any) -> Case:
    def make(rng: np.random.Generator, inputs: int, units: int) -> f.Graph:
        b = graphs.Builder(rng, f.Input([-1, inputs]))
        given = dict(fields)
        if given.pop("projects", False):
            given["hidden"] = units // 2
        return b.graph(b.one(layers.recurrent(rng, cell, inputs, units, **given), 0, b.mask()))

    return make


def _dense(function: str) -> Case:
    def make(rng: np.random.Generator, inputs: int, units: int) -> f.Graph:
        b = graphs.Builder(rng, f.Input([-1, inputs]))
        return b.graph(b.dense(0, inputs, units, function, axes=2))

    return make


def _convolution(*ints: int) -> Case:
    def make(rng: np.random.Generator, inputs: int, units: int) -> f.Graph:
        groups = ints[3]
        inputs, units = (-(-size // groups) * groups for size in (inputs, units))
        b = graphs.Builder(rng, f.Input([-1, inputs]))
        return b.graph(b.convolution(0, inputs, units, ints))

    return make


def _embedding(rng: np.random.Generator, inputs: int, units: int) -> f.Graph:
    b = graphs.Builder(rng, f.Input([-1], f.INTS))
    x = b.one(graphs.embedding(rng, 50, inputs), 0)
    return b.graph(b.one(layers.recurrent(rng, f.LSTM, inputs, units), x, b.mask()))


def _states(rng: np.random.Generator, inputs: int, units: int) -> f.Graph:
    """Initial states that rows have, and a layer that is called twice."""
    b = graphs.Builder(rng, f.Input([-1, inputs]))
    layer = layers.recurrent(rng, f.LSTM, inputs, units, flags=f.SEQUENCE | f.STATES)
    first = b.add(layer, 0)
    again = b.add(layer, 0, None, *first[1:])
    return b.graph(*again, output_structure=1)


def _stack(rng: np.random.Generator, inputs: int, units: int) -> f.Graph:
    b = graphs.Builder(rng, f.Input([-1, inputs]))
    x = b.convolution(0, inputs, units, [3, 1, 1, 1, 0, 2, 0], function="relu")
    [x] = b.lstm(x, units, units)
    x = b.one(layers.recurrent(rng, f.GRU, units, units), x)
    return b.graph(b.dense(x, units, 9, "softmax", axes=2))


STREAMS: dict[str, Case] = {
    "lstm": _recurrent(f.LSTM),
    "lstm, peepholes, clip": _recurrent(f.LSTM, absent=(), number=0.5),
    "lstm, projection": _recurrent(f.LSTM, projects=True),
    "lstm, projection, clips": _recurrent(
        f.LSTM, projects=True, absent=(), number=0.5, proj_clip=0.1
    ),
    "lstm of other functions": _recurrent(
        f.LSTM, activation="softsign", recurrent_activation="hard_sigmoid"
    ),
    "lstm, zero outputs": _recurrent(f.LSTM, flags=f.SEQUENCE | f.ZERO_OUTPUT),
    "gru": _recurrent(f.GRU),
    "gru, reset before": _recurrent(f.GRU_RESET_BEFORE),
    "gru of gelu": _recurrent(f.GRU, activation="gelu"),
    "layer norm lstm": _recurrent(f.LAYER_NORM_LSTM),
    "layer norm gru": _recurrent(f.LAYER_NORM_GRU),
    "simple rnn": _recurrent(f.SIMPLE_RNN),
    "simple rnn of relu": _recurrent(f.SIMPLE_RNN, activation="relu"),
    "dense": _dense("linear"),
    "dense of tanh": _dense("tanh"),
    "causal convolution": _convolution(3, 1, 1, 1, 0, 2, 0),
    "causal convolution, dilated": _convolution(3, 1, 2, 2, 0, 4, 0),
    "embedding": _embedding,
    "stack": _stack,
}
CASES = STREAMS | {
    "states": _states,
    "both of lstm": _recurrent(f.LSTM, **BOTH),
    "both of gru, reset before": _recurrent(f.GRU_RESET_BEFORE, **BOTH),
    "both with projections": _recurrent(f.LSTM, projects=True, **BOTH),
    "backwards": _recurrent(f.GRU, directions=f.BACKWARDS),
    "convolution": _convolution(3, 1, 1, 1),
    "convolution, same": _convolution(4, 1, 1, 1, 1),
    "convolution of groups": _convolution(3, 2, 1, 3, 1),
}


def graph(name: str, sizes: tuple[int, int], weights: int) -> f.Graph:
    made = CASES[name](np.random.default_rng(len(name)), *sizes)
    return graphs.with_weights(made, weights)


def rows(made: f.Graph, batch: int = ROWS, steps: int = STEPS) -> tuple[list[Array], list[Array]]:
    """Inputs whose rows have other magnitudes, and masks. The first rows are of the order of 1."""
    inputs, masks = graphs.draw(made, np.random.default_rng(batch), batch, steps)
    for x in inputs:
        if x.dtype == np.float32:
            for k, factor in enumerate((1e-30, 1e30, 1e-42, 0, -0.0, 1e-3, 1e3)):
                x[3 + k :: 9] *= np.float32(factor)
            x[:, 2, ::3] = 0
    if len(masks[0]) > 5:
        masks[0][5] = False
    return inputs, masks


def bits(y: Array) -> Array:
    """The bits of float32, with the same ones for each NaN."""
    return np.where(np.isnan(y), np.float32("nan"), y).view(np.uint32)


def assert_same(found: Sequence[Array], wanted: Sequence[Array], what: str = "") -> None:
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(bits(got), bits(want), err_msg=what)


def results(library: Any, name: str, sizes: tuple[int, int]) -> list[Array]:
    """Outputs of int8 for several batches, with and without masks, and of one step."""
    made = graph(name, sizes, f.INT8)
    session = c.Session(library, f.write_graph(made))
    found: list[Array] = []
    for batch, steps in ((ROWS, STEPS), (1, STEPS), (4, 3), (2, 8)):
        inputs, masks = rows(made, batch, steps)
        found += session.run(inputs, masks) + session.run(inputs)
    if name in STREAMS:
        inputs, _ = rows(made, 1, 5)
        stream = c.Stream(session, 1)
        shapes = [y[:, :1].shape if y.ndim == 3 else y.shape for y in session.run(inputs)]
        for k in range(5):
            step = [np.ascontiguousarray(x[:, k : k + 1]) for x in inputs]
            found += stream.run(step, shapes)
    return found


def all_results(library: Any) -> dict[str, Array]:
    return {
        f"{name} {sizes} {k}": y
        for name in CASES
        for sizes in SIZES[::3]
        for k, y in enumerate(results(library, name, sizes))
    }


if __name__ == "__main__":
    loaded = c.load(c.path())
    arrays = all_results(loaded)
    print(loaded.tf_lstm_ops_selected_instruction_set().decode())
    np.savez(sys.argv[1], **arrays)
