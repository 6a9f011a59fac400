"""The engine compiled for each instruction set that this processor has.

Sets with a fused multiply-add compute every number by the same operations in the same order, so
they agree bit for bit; x86-64-v2, which has none, rounds products once more.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tf_lstm_ops import _library

INSTRUCTION_SETS = _library.cpu_info()["instruction_sets"]

PROGRAM = """
import sys
import numpy as np
import tensorflow as tf
import tf_lstm_ops

rng = np.random.default_rng(1)
T, B, I, H = 9, 7, 21, 37  # odd sizes: partial vectors and partial blocks of rows
def draw(*shape):
    return tf.constant(0.5 * rng.normal(size=shape))
drawn = dict(x=draw(T, B, I), cs_prev=draw(B, H), h_prev=draw(B, H), w=draw(I + H, 4 * H),
             wci=draw(H), wcf=draw(H), wco=draw(H), b=draw(4 * H))
results = {}
for dtype in sys.argv[2:]:
    a = {name: tf.cast(value, dtype) for name, value in drawn.items()}
    with tf.GradientTape() as tape:
        tape.watch(list(a.values()))
        y = tf_lstm_ops.raw_ops.BlockLSTM(
            seq_len_max=tf.constant(T, tf.int64), use_peephole=True, cell_clip=1.0, **a)
        loss = tf.add_n([tf.reduce_sum(tf.sin(output)) for output in y])
    found = list(y) + tape.gradient(loss, list(a.values()))
    results |= {f"{dtype} {k}": r.numpy() for k, r in enumerate(found)}
np.savez(sys.argv[1], **results)
"""


DTYPES = ["float16", "float32", "float64"]


@pytest.fixture(scope="module")
def all_results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, np.ndarray]]:
    """Outputs and gradients of one sequence in every type, by instruction set."""
    folder, found = tmp_path_factory.mktemp("sets"), {}
    for name in INSTRUCTION_SETS:
        file: Path = folder / f"{name}.npz"
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(file), *DTYPES],
            env={**os.environ, "TF_LSTM_OPS_SIMD": name},
            check=True,
            capture_output=True,
        )
        with np.load(file) as arrays:
            found[name] = dict(arrays)
    return found


@pytest.fixture(params=DTYPES)
def results(
    request: pytest.FixtureRequest, all_results: dict[str, dict[str, np.ndarray]]
) -> tuple[str, dict[str, list[np.ndarray]]]:
    """Those of one type."""
    return request.param, {
        name: [a for key, a in arrays.items() if key.startswith(f"{request.param} ")]
        for name, arrays in all_results.items()
    }


def test_fused_multiply_add_gives_the_same_bits(results: tuple) -> None:
    _, found = results
    fused = [values for name, values in found.items() if name != "x86-64-v2"]
    if len(fused) < 2:
        pytest.skip("this processor has fewer than two instruction sets with fused multiply-add")
    for others in fused[1:]:
        for a, b in zip(fused[0], others, strict=True):
            np.testing.assert_array_equal(a, b)


def test_all_agree_within_rounding(results: tuple) -> None:
    dtype, found = results
    values = list(found.values())
    if len(values) < 2:
        pytest.skip("this processor has one instruction set")
    # Sums of some 60 products, over 9 steps that feed back: a few hundred roundings.
    bound = 300 * np.finfo(dtype).eps
    for others in values[1:]:
        for a, b in zip(values[0], others, strict=True):
            np.testing.assert_allclose(a, b, rtol=bound, atol=bound)
