"""Errors of the engine's own sigmoid and tanh in units in the last place, by instruction set.

The bound is part of the contract (cc/backends/cpu/simd/vec_math.h). The reference is NumPy's in
float64, whose own error is far below half a unit of float32.
"""

import ctypes
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tf_lstm_ops import _library

INSTRUCTION_SETS = _library.cpu_info()["instruction_sets"]
BOUND_ULP = 2.5


def sample() -> np.ndarray:
    """Every 4093rd float of either sign: a prime, so that all bits of the fraction vary."""
    bits = np.arange(0, 0x7F800000, 4093, dtype=np.uint32)
    positive = bits.view(np.float32)
    return np.concatenate([-positive[::-1], positive])


def evaluate(function: str, x: np.ndarray) -> np.ndarray:
    library = ctypes.CDLL(str(_library.path()))
    y = np.empty_like(x)
    pointer = ctypes.POINTER(ctypes.c_float)
    getattr(library, f"tf_lstm_ops_{function}")(
        x.ctypes.data_as(pointer), y.ctypes.data_as(pointer), ctypes.c_int64(x.size)
    )
    return y


def reference(function: str, x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    if function == "tanh":
        return np.tanh(wide)
    small = np.exp(-np.abs(wide))
    return np.where(wide < 0, small, 1.0) / (1.0 + small)


def worst_ulp(function: str) -> float:
    x = sample()
    y, exact = evaluate(function, x), reference(function, x)
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    return float(np.max(np.abs(y.astype(np.float64) - exact) / unit))


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_errors_are_within_bound(instruction_set: str) -> None:
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import test_math; "
        "used = test_math._library.cpu_info()['instruction_set']; "
        "print(json.dumps([used, *map(test_math.worst_ulp, ['sigmoid', 'tanh'])]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__)],
        env={**os.environ, "TF_LSTM_OPS_SIMD": instruction_set},
        capture_output=True,
        text=True,
        check=True,
    )
    used, *worst = json.loads(result.stdout.splitlines()[-1])
    assert used == instruction_set
    assert max(worst) <= BOUND_ULP


@pytest.mark.parametrize("function", ["sigmoid", "tanh"])
def test_special_values(function: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    y = evaluate(function, x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(y, reference(function, x).astype(np.float32))
    if function == "tanh":
        np.testing.assert_array_equal(np.signbit(y[3:]), [False, True])
