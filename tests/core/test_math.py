"""Errors of the engine's own sigmoid, tanh and exp, by instruction set, and special values."""

import ctypes
import json
import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tf_lstm_ops import _library

from .ulp import BOUND, FUNCTIONS, evaluate, reference, worst

SCRIPT = Path(__file__).with_name("ulp.py")
INSTRUCTION_SETS = _library.cpu_info()["instruction_sets"]
# A prime, so that all bits of the fraction vary; and every float that there is.
CASES = [
    *(pytest.param(name, 4093, marks=pytest.mark.slow) for name in INSTRUCTION_SETS[:-1]),
    (INSTRUCTION_SETS[-1], 4093),
    *(pytest.param(name, 1, marks=pytest.mark.slow) for name in INSTRUCTION_SETS),
]


def worst_elsewhere(instruction_set: str, step: int) -> dict[str, list[float]]:
    """In a new process on this instruction set."""
    result = subprocess.run(
        [sys.executable, str(SCRIPT), str(step)],
        env={**os.environ, "TF_LSTM_OPS_SIMD": instruction_set},
        capture_output=True,
        text=True,
        check=True,
    )
    used, found = json.loads(result.stdout.splitlines()[-1])
    assert used == instruction_set
    return found


@pytest.mark.parametrize(("instruction_set", "step"), CASES)
def test_errors_are_within_bound(instruction_set: str, step: int) -> None:
    if instruction_set == _library.cpu_info()["instruction_set"]:
        found = {name: worst(name, step) for name in FUNCTIONS}
    else:
        found = worst_elsewhere(instruction_set, step)
    assert max(found.values())[0] <= BOUND, f"largest error and where it is: {found}"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_special_values(function: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    y = evaluate(function, x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(y, reference(function, x).astype(np.float32))
    if function == "tanh":
        np.testing.assert_array_equal(np.signbit(y[3:]), [False, True])


@pytest.mark.skipif(sys.platform != "linux", reason="calls Linux's mprotect")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_is_read_behind_the_end(function: str) -> None:
    """The page behind x must not be read: a signal would end the child."""
    count, page = 17, mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    behind = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + page
    x = np.frombuffer(memory, np.float32, count, page - 4 * count)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            ctypes.CDLL(None).mprotect(ctypes.c_void_p(behind), ctypes.c_size_t(page), 0)
            evaluate(function, x)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
