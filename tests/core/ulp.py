"""Errors of the engine's own sigmoid, tanh and exp in units in the last place.

Usage: python ulp.py STEP. Prints the instruction set in use and, for each function, the largest
error over every STEP-th float and the number where it is. Not a test itself: see test_math.py.

The reference is NumPy's in float64, whose own error is far below half a unit of float32.
"""

import ctypes
import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

FUNCTIONS = ["sigmoid", "tanh", "exp"]
BOUND = 2.5  # part of the contract: cc/backends/cpu/simd/vector/vec_math.h
# Smaller results of sigmoid and exp may be 0 instead of a subnormal number.
LEAST_UNIT = {"sigmoid": 2.0**-126, "tanh": 0.0, "exp": 2.0**-126}
CHUNK = 1 << 15  # stays in the cache
END = 0x7F800001  # the bits after those of infinity


def chunks(step: int) -> range:
    """Where the chunks of `floats` begin."""
    return range(0, END, CHUNK * step)


def floats(start: int, step: int) -> np.ndarray:
    """The chunk of every step-th float from this one on, of both signs, without NaN."""
    bits = np.arange(start, min(start + CHUNK * step, END), step, np.uint32)
    return np.concatenate([bits, bits | 0x80000000], dtype=np.uint32).view(np.float32)


def evaluate(function: str, x: np.ndarray) -> np.ndarray:
    """By the installed library."""
    from tf_lstm_ops import _library
    from tf_lstm_ops.inference import file

    _library.load()
    library = ctypes.CDLL(str(_library.path()))
    y = np.empty_like(x)
    pointer = ctypes.POINTER(ctypes.c_float)
    arguments = (x.ctypes.data_as(pointer), y.ctypes.data_as(pointer), ctypes.c_int64(x.size))
    if function == "exp":
        library.tf_lstm_ops_exp(*arguments)
    else:
        library.tf_lstm_ops_activate(file.FUNCTIONS[function], *arguments)
    return y


def reference(function: str, x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    if function == "exp":
        exact = np.exp(np.minimum(wide, 89.0))
        # float32 rounds these numbers to infinity.
        return np.where(exact >= 2.0**128 - 2.0**103, np.inf, exact)
    if function == "tanh":
        return np.tanh(wide)
    small = np.exp(-np.abs(wide))
    return np.where(wide < 0, small, 1.0) / (1.0 + small)


def errors(function: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of y, what the function of x should be."""
    exact = reference(function, x)
    finite = np.where(np.isinf(exact), 1.0, exact)
    unit = np.spacing(np.abs(finite).astype(np.float32)).astype(np.float64)
    with np.errstate(invalid="ignore"):  # the difference of infinities
        error = np.abs(y.astype(np.float64) - exact) / np.maximum(unit, LEAST_UNIT[function])
    return np.where(y == exact, 0.0, error)


def worst(function: str, step: int) -> tuple[float, float]:
    """The largest error, infinite for a NaN, and where it is."""

    def of_chunk(start: int) -> tuple[float, float]:
        x = floats(start, step)
        found = np.nan_to_num(errors(function, x, evaluate(function, x)), nan=np.inf)
        k = int(np.argmax(found))
        return float(found[k]), float(x[k])

    with ThreadPoolExecutor(2) as pool:
        return max(pool.map(of_chunk, chunks(step)))


if __name__ == "__main__":
    from tf_lstm_ops import _library

    used = _library.cpu_info()["instruction_set"]
    print(json.dumps([used, {name: worst(name, int(sys.argv[1])) for name in FUNCTIONS}]))
