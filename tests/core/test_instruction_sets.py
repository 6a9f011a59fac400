"""The engine compiled for each instruction set that this processor has.

All other tests run on the best one. Here a few of each family's, with the oracle, run on each of
the others: the whole numeric suite takes minutes (docs/testing.md says how to run it). They take
the installed library, since compiling the engine takes minutes too; test_engine.py, which is slow,
compiles it.

Sets with a fused multiply-add compute every number by the same operations in the same order, so
they agree bit for bit; x86-64-v2, which has none, rounds products once more.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
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


Results = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def results_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Results]:
    """Outputs and gradients of one sequence in every type, on the instruction set of this name."""
    folder = tmp_path_factory.mktemp("sets")

    @functools.cache
    def run(name: str) -> Results:
        file: Path = folder / f"{name}.npz"
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(file), *DTYPES],
            env={**os.environ, "TF_LSTM_OPS_SIMD": name},
            check=True,
            capture_output=True,
        )
        with np.load(file) as arrays:
            return dict(arrays)

    return run


# Sizes that are no multiples of any vector; gradients, which need the forward pass.
SAMPLE = [
    "block_cell/test_gradients.py::test_tape",
    "cudnn_rnn/test_gradients.py::test_tape_of_many_sizes",
    "mpsgraph/test_gradients.py::test_many_sizes",
    "keras/test_masks.py::test_every_mask_of_one_sequence",
]
CHOSEN = "B9-I8-H31 or (test_many_sizes and 33) or test_every_mask"


@pytest.mark.full
@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS[:-1])
def test_results_are_the_oracles(instruction_set: str) -> None:
    tests = Path(__file__).resolve().parents[1]
    sample = [str(tests / test) for test in SAMPLE]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-v", "-m", "not slow", "-k", CHOSEN, *sample],
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


# A new process for each set, so by default there are two: the least, and the best, which the other
# tests run on.
LEAST, BEST = INSTRUCTION_SETS[0], INSTRUCTION_SETS[-1]
OTHERS = [LEAST, *(pytest.param(s, marks=pytest.mark.full) for s in INSTRUCTION_SETS[1:-1])]
several = pytest.mark.skipif(LEAST == BEST, reason="this processor has one instruction set")


@several
def test_a_forced_set_computes(results_of: Callable[[str], Results]) -> None:
    """Not only its name is used: without a fused multiply-add the bits are others."""
    least, best = results_of(LEAST), results_of(BEST)
    for dtype in ("float32", "float64"):
        keys = [key for key in least if key.startswith(dtype)]
        assert any(least[key].tobytes() != best[key].tobytes() for key in keys), dtype


@several
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("instruction_set", OTHERS)
def test_results_are_within_rounding_of_the_best_sets(
    results_of: Callable[[str], Results], instruction_set: str, dtype: str
) -> None:
    other, best = results_of(instruction_set), results_of(BEST)
    # Sums of some 60 products, over 9 steps that feed back: a few hundred roundings.
    bound = 300 * np.finfo(dtype).eps
    for key in (key for key in best if key.startswith(dtype)):
        np.testing.assert_allclose(other[key], best[key], rtol=bound, atol=bound, err_msg=key)


@pytest.mark.full
@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS[:-1])
def test_fused_multiply_add_gives_the_same_bits(
    results_of: Callable[[str], Results], instruction_set: str
) -> None:
    if instruction_set == "x86-64-v2":
        pytest.skip("it has no fused multiply-add")
    other, best = results_of(instruction_set), results_of(BEST)
    for key, array in best.items():
        np.testing.assert_array_equal(other[key], array, err_msg=key)
