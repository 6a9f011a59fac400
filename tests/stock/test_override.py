"""`stock.override`: our kernels under the stock names, seen in a new process; and its absence here.

A kernel cannot be unregistered: what `override` does is run by program.py, once for all tests.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

from block_cell.contract import length_error, right_shapes, shape_error
from block_cell.crashes import CASES, SIZES
from tf_lstm_ops import _library, stock

from .program import DTYPES, FORWARD, OPS

SCRIPT = Path(__file__).with_name("program.py")
CALLS = [
    *(f"eager {op} {dtype}" for op in OPS for dtype in DTYPES),
    *(f"gradient {op}" for op in FORWARD),
    *("function", "nested function", "SavedModel"),
]
BAD = [name for name, case in CASES.items() if case.op in OPS]


class Outcome(NamedTuple):
    error: str | None
    message: str


class Run(NamedTuple):
    results: dict[str, np.ndarray]
    bad: dict[str, Outcome]
    end: str  # of the process


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("stock")
    process = subprocess.run(
        [sys.executable, SCRIPT, folder],
        # Any GPU would get the stock ops, and with them stock's kernels.
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    end = f"exit status {process.returncode}: {process.stderr}"
    assert (folder / "results.npz").exists(), end
    bad = {name: Outcome(*rest) for name, *rest in map(json.loads, process.stdout.splitlines())}
    with np.load(folder / "results.npz") as results:
        return Run(dict(results), bad, end)


@pytest.mark.full
@pytest.mark.parametrize("call", CALLS)
def test_our_kernels_serve_what_stock_kernels_served_before(run: Run, call: str) -> None:
    before, after, ours = (run.results[f"{call} {when}"] for when in ("before", "after", "ours"))
    np.testing.assert_array_equal(after, ours)
    # Different bits show that the kernel was another one. The few operations of LSTMBlockCellGrad
    # might be rounded alike.
    assert call == "eager LSTMBlockCellGrad float32" or not np.array_equal(before, ours)
    # In sums of up to 42 products; half is computed in half by stock's kernels.
    scale = 1e-2 if after.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(before, ours, rtol=0, atol=scale * np.abs(ours).max())


@pytest.mark.full
@pytest.mark.parametrize("call", ["new session", "short BlockLSTM", "short BlockLSTMGrad"])
def test_our_kernels_serve_what_starts_later(run: Run, call: str) -> None:
    """Past seq_len_max too, where stock's kernels leave five outputs unwritten."""
    np.testing.assert_array_equal(run.results[f"{call} after"], run.results[f"{call} ours"])


@pytest.mark.full
@pytest.mark.parametrize("call", ["old session", "old iterator"])
def test_what_has_run_in_a_session_or_a_pipeline_keeps_its_kernels(run: Run, call: str) -> None:
    before, after = run.results[f"{call} before"], run.results[f"{call} after"]
    np.testing.assert_array_equal(after, before)
    np.testing.assert_array_equal(before, run.results["function before"])


@pytest.mark.full
def test_four_ops_are_served_in_two_types(run: Run) -> None:
    """Each once, though override was called twice."""
    expected = [f"{op} CPU {dtype}" for op in OPS for dtype in DTYPES]
    assert run.results["served"].tolist() == sorted(expected)


@pytest.mark.full
def test_the_first_call_drops_kernels_and_a_second_does_nothing(run: Run) -> None:
    """Drawn before, after one call and after two: a dropped random op begins anew."""
    before, after_one, after_two = run.results["draws"]
    np.testing.assert_array_equal(after_one, before)
    assert not np.array_equal(after_two, after_one)


@pytest.mark.full
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_an_error_that_names_the_argument(run: Run, name: str) -> None:
    """Of most of them stock's kernels end the process, or read what is not theirs."""
    case = CASES[name]
    shapes = right_shapes(case.op, **SIZES)
    shapes.update({argument: tuple(shape) for argument, shape in case.shapes.items()})
    text = shape_error(case.op, shapes) or length_error(case.op, shapes, case.length)
    assert name in run.bad, run.end
    if text is None:
        assert run.bad[name] == Outcome(None, "")
    else:
        assert run.bad[name].error == "InvalidArgumentError"
        assert text in run.bad[name].message


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["double", "bfloat16"])
@pytest.mark.parametrize("op", OPS)
def test_other_types_are_tensorflows_own_error(run: Run, op: str, dtype: str) -> None:
    outcome = run.bad[f"{op} {tf.as_dtype(dtype).name}"]
    assert outcome.error == "InvalidArgumentError"
    assert f"{dtype} is not in the list of allowed values: half, float" in outcome.message


@pytest.mark.parametrize("op", OPS)
def test_importing_the_package_overrides_nothing(op: str) -> None:
    """In this process nobody has called override."""
    found = kernels.get_registered_kernels_for_op(op).kernel
    assert {kernel.priority for kernel in found} == {0}
    on_cpu = [kernel for kernel in found if kernel.device_type == "CPU"]
    assert len(on_cpu) == len(DTYPES)


def test_a_refusal_of_tensorflow_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        @staticmethod
        def tf_lstm_ops_override_stock() -> bytes:
            return b"no such luck"

    monkeypatch.setattr(_library, "_native", Refusing)
    with pytest.raises(RuntimeError, match="no such luck"):
        stock.override()
