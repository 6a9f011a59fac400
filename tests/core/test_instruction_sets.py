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
import tensorflow as tf

from tf_lstm_ops import _library, raw_ops

INSTRUCTION_SETS = _library.cpu_info()["instruction_sets"]

DTYPES = ["float16", "float32", "float64"]
Results = dict[str, np.ndarray]


def sequence_results() -> Results:
    """Outputs and gradients of one sequence in every type, on the instruction set in use."""
    rng = np.random.default_rng(1)
    time, batch, inputs, units = 9, 7, 21, 37  # odd: partial vectors and partial blocks of rows
    shapes = {
        "x": (time, batch, inputs),
        **dict.fromkeys(("cs_prev", "h_prev"), (batch, units)),
        "w": (inputs + units, 4 * units),
        **dict.fromkeys(("wci", "wcf", "wco"), (units,)),
        "b": (4 * units,),
    }
    drawn = {name: 0.5 * rng.normal(size=shape) for name, shape in shapes.items()}
    results = {}
    for dtype in DTYPES:
        a = {name: tf.constant(value, dtype) for name, value in drawn.items()}
        with tf.GradientTape() as tape:
            tape.watch(list(a.values()))
            y = raw_ops.BlockLSTM(
                seq_len_max=tf.constant(time, tf.int64), use_peephole=True, cell_clip=1.0, **a
            )
            loss = tf.add_n([tf.reduce_sum(tf.sin(output)) for output in y])
        found = [*y, *tape.gradient(loss, list(a.values()))]
        results |= {f"{dtype} {k}": r.numpy() for k, r in enumerate(found)}
    return results


@pytest.fixture(scope="module")
def results_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Results]:
    """`sequence_results` on the instruction set of this name."""
    folder = tmp_path_factory.mktemp("sets")

    @functools.cache
    def run(name: str) -> Results:
        if name == _library.cpu_info()["instruction_set"]:
            return sequence_results()
        file: Path = folder / f"{name}.npz"
        subprocess.run(
            [sys.executable, __file__, file],
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


@pytest.mark.parametrize(
    "instruction_set",
    [
        *(pytest.param(s, marks=pytest.mark.full) for s in INSTRUCTION_SETS[:-1][:1]),
        *(pytest.param(s, marks=pytest.mark.slow) for s in INSTRUCTION_SETS[:-1][1:]),
    ],
)
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


def test_a_set_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the package is imported."""
    monkeypatch.setenv("TF_LSTM_OPS_SIMD", "x86-64-v9")
    with pytest.raises(ValueError, match="TF_LSTM_OPS_SIMD must be one of") as caught:
        _library.register.__wrapped__()
    assert f"{INSTRUCTION_SETS[-1]} on this processor, but is x86-64-v9" in str(caught.value)


# A new process for each set but the best, which the other tests run on: by default, for the least.
LEAST, BEST = INSTRUCTION_SETS[0], INSTRUCTION_SETS[-1]
OTHERS = [LEAST, *(pytest.param(s, marks=pytest.mark.full) for s in INSTRUCTION_SETS[1:-1])]
several = pytest.mark.skipif(LEAST == BEST, reason="this processor has one instruction set")


@pytest.mark.full
@several
def test_a_forced_set_computes(results_of: Callable[[str], Results]) -> None:
    """Not only its name is used: without a fused multiply-add the bits are others."""
    least, best = results_of(LEAST), results_of(BEST)
    for dtype in ("float32", "float64"):
        keys = [key for key in least if key.startswith(dtype)]
        assert any(least[key].tobytes() != best[key].tobytes() for key in keys), dtype


@pytest.mark.full
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


if __name__ == "__main__":
    np.savez(sys.argv[1], **sequence_results())
