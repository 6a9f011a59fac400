"""The engine compiled for each instruction set that this processor has.

All other tests run on the best one. Here a few of each family's, with the oracle, run on each of
the others: the whole numeric suite takes minutes (docs/testing.md says how to run it). They take
the installed library, since compiling the engine takes minutes too; test_engine.py, which is slow,
compiles it.

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


# Sizes that are no multiples of any vector; gradients, which need the forward pass.
SAMPLE = [
    "block_cell/test_gradients.py::test_tape",
    "cudnn_rnn/test_gradients.py::test_tape_of_many_sizes",
    "mpsgraph/test_gradients.py::test_many_sizes",
    "keras/test_masks.py::test_every_mask_of_one_sequence",
]
CHOSEN = "B9-I8-H31 or (test_many_sizes and 33) or test_every_mask"


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS[:-1])
def test_results_are_the_oracles(instruction_set: str) -> None:
    tests = Path(__file__).resolve().parents[1]
    sample = [str(tests / test) for test in SAMPLE]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-v", "-k", CHOSEN, *sample],
        env={**os.environ, "TF_LSTM_OPS_SIMD": instruction_set},
        cwd=tests.parent,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    # A choice that has come to be empty is no test.
    assert all(f"{test}[" in run.stdout for test in SAMPLE)


def test_a_set_that_there_is_not_is_refused() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import tf_lstm_ops"],
        env={**os.environ, "TF_LSTM_OPS_SIMD": "x86-64-v9"},
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0
    assert "TF_LSTM_OPS_SIMD must be one of" in run.stderr
    assert f"{INSTRUCTION_SETS[-1]} on this processor, but is x86-64-v9" in run.stderr


def test_a_forced_set_computes(
    all_results: dict[str, dict[str, np.ndarray]],
) -> None:
    """Not only its name is used: without a fused multiply-add the bits are others."""
    if len(INSTRUCTION_SETS) < 2:
        pytest.skip("this processor has one instruction set")
    first, *_, last = all_results.values()
    for dtype in ("float32", "float64"):
        keys = [key for key in first if key.startswith(dtype)]
        assert any(first[key].tobytes() != last[key].tobytes() for key in keys), dtype


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
