"""bfloat16 ops store and read saved activations in place, rounded once.

An instruction set that does not round the factors of products computes a bfloat16 op as the float32
op of the same values. The bits of all bfloat16 results are then those of rounding the float32
results. A new process runs each such set. Units are no multiples of a vector, so a wrong tail would
overwrite the next activation, which lies directly behind.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import _library, raw_ops

Tensors = dict[str, tf.Tensor]
SETS = [s for s in _library.cpu_info()["instruction_sets"] if not s.endswith(("bf16", "amx"))]
UNITS = (1, 7, 16, 19, 40)
TIME, BATCH, INPUTS = 5, 7, 3
KERAS = ("lstm", "gru", "reset_before_gru", "layer_norm_lstm", "layer_norm_gru")
HEADER_BYTES = 64  # of the reserve of CudnnRNNV3

rng = np.random.default_rng(1)


def draw(*shape: int) -> tf.Tensor:
    return tf.cast(0.5 * rng.normal(size=shape), tf.bfloat16)


def wide(tensors: Tensors) -> Tensors:
    return {k: tf.cast(a, tf.float32) if a.dtype == tf.bfloat16 else a for k, a in tensors.items()}


def assert_rounded(got: Tensors, exact: Tensors, what: str) -> None:
    for name, a in exact.items():
        if a.dtype == tf.float32:
            assert got[name].dtype == tf.bfloat16
            bits = [tf.bitcast(tf.cast(b, tf.bfloat16), tf.uint16) for b in (got[name], a)]
            np.testing.assert_array_equal(*(b.numpy() for b in bits), f"{what}: {name}")


def check(op: Callable, given: Tensors, what: str, **options: object) -> Tensors:
    """Compares all results of an op in both dtypes; returns those in bfloat16."""
    got = op(**given, **options)._asdict()
    assert_rounded(got, op(**wide(given), **options)._asdict(), what)
    return got


def check_block(units: int) -> None:
    given = {
        "seq_len_max": tf.constant(TIME - 1, tf.int64),  # the rows behind are zeros
        "x": draw(TIME, BATCH, INPUTS),
        "cs_prev": draw(BATCH, units),
        "h_prev": draw(BATCH, units),
        "w": draw(INPUTS + units, 4 * units),
        **{name: draw(units) for name in ("wci", "wcf", "wco")},
        "b": draw(4 * units),
    }
    saved = check(raw_ops.BlockLSTM, given, f"BlockLSTM {units}", use_peephole=True)
    grads = {name: draw(TIME, BATCH, units) for name in ("cs_grad", "h_grad")}
    given |= saved | grads
    check(raw_ops.BlockLSTMGrad, given, f"BlockLSTMGrad {units}", use_peephole=True)


def keras_shapes(cell: str, units: int, hidden: int) -> dict[str, tuple[int, ...]]:
    gates = 4 if cell.endswith("lstm") else 3
    shapes: dict[str, tuple[int, ...]] = {
        "x": (BATCH, TIME, INPUTS),
        "initial_h": (BATCH, hidden),
        "kernel": (INPUTS, gates * units),
        "recurrent_kernel": (hidden, gates * units),
        "bias": (2, gates * units) if cell.endswith("gru") else (gates * units,),
        "input_dropout": (0,),
        "recurrent_dropout": (0,),
    }
    if cell == "reset_before_gru":
        shapes["bias"] = (gates * units,)
    if cell.endswith("lstm"):
        shapes["initial_c"] = (BATCH, units)
    if cell == "lstm":
        shapes |= {"peephole": (3, units), "projection": (0,)}
        if hidden < units:
            shapes |= {"peephole": (0,), "projection": (units, hidden)}
    if cell.startswith("layer_norm"):
        shapes |= {name: (gates * units,) for name in ("input_gamma", "recurrent_gamma")}
    if cell == "layer_norm_lstm":
        shapes |= {"state_gamma": (units,), "state_beta": (units,)}
    return shapes


def check_keras(cell: str, units: int, hidden: int, sequences: bool) -> None:
    ops, name = _library.load(), f"tf_lstm_ops_keras_{cell}"
    what = f"{name} {units} {hidden} {sequences}"
    given = {k: draw(*shape) for k, shape in keras_shapes(cell, units, hidden).items()}
    given["mask"] = tf.constant(rng.random((BATCH, TIME)) < 0.7)  # ragged
    forward = check(getattr(ops, name), given, what, return_sequences=sequences)
    given |= {"output": forward["output"], "reserve": forward["reserve"]}
    for result in ("output", "final_h", "final_c"):
        if result in forward:
            given[f"{result}_grad"] = draw(*forward[result].shape)
    check(getattr(ops, f"{name}_grad"), given, f"{what} grad", return_sequences=sequences)


def check_cudnn(mode: str, units: int) -> None:
    """Two layers of two directions; the reserve has h of the first layer too."""
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    states = 4  # layers times directions
    layers = ((INPUTS, 2), (2 * units, 2))
    size = sum(d * gates * units * (i + units + 2) for i, d in layers)
    given = {
        "input": draw(TIME, BATCH, INPUTS),
        "input_h": draw(states, BATCH, units),
        "input_c": draw(*((states, BATCH, units) if mode == "lstm" else (0,))),
        "params": draw(size),
        "sequence_lengths": tf.constant(rng.integers(0, TIME + 1, BATCH), tf.int32),
    }
    options = {"rnn_mode": mode, "direction": "bidirectional"}
    got = raw_ops.CudnnRNNV3(**given, **options)._asdict()
    exact = raw_ops.CudnnRNNV3(**wide(given), **options)._asdict()
    bodies = [r.pop("reserve_space")[HEADER_BYTES // s :] for r, s in ((got, 2), (exact, 4))]
    assert_rounded(got | {"body": bodies[0]}, exact | {"body": bodies[1]}, f"CudnnRNNV3 {mode}")


def pieces() -> Iterator[Callable[[], None]]:
    for units in UNITS:
        yield lambda units=units: check_block(units)
        for cell in KERAS:
            for sequences in (True, False):
                yield lambda u=units, c=cell, s=sequences: check_keras(c, u, u, s)
        for mode in ("lstm", "gru", "rnn_relu", "rnn_tanh"):
            yield lambda u=units, m=mode: check_cudnn(m, u)
    yield lambda: check_keras("lstm", 19, 7, True)


@pytest.mark.full
@pytest.mark.parametrize(
    "instruction_set", [SETS[0], *(pytest.param(s, marks=pytest.mark.full) for s in SETS[1:])]
)
def test_results_are_the_rounded_ones_of_float32(instruction_set: str) -> None:
    run = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "TF_LSTM_OPS_SIMD": instruction_set},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


if __name__ == "__main__":
    for run in pieces():
        run()
