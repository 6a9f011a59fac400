"""examples/train.c: the losses of the same training by a float64 oracle."""

import re
import runpy
import subprocess
from pathlib import Path

import numpy as np
import pytest

from oracle.keras_lstm import Arguments, Results, keras_lstm, keras_lstm_backward
from tf_lstm_ops import inference

ROOT = Path(__file__).resolve().parents[2]
ROWS, TIME, UNITS, RATE = 8, 6, 4, 0.5
SHAPES = ((1, 4 * UNITS), (UNITS, 4 * UNITS), (4 * UNITS,))


def numbers(count: int) -> np.ndarray:
    """The fixed sequence of the program."""
    state, found = 1, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % (1 << 32)
        found.append((state >> 8) / (1 << 24) - 0.5)
    return np.array(found)


def losses(steps: int) -> list[float]:
    sizes = [int(np.prod(shape)) for shape in SHAPES]
    all_weights, x = np.split(numbers(sum(sizes) + ROWS * TIME), [sum(sizes)])
    parts = np.split(all_weights, np.cumsum(sizes)[:-1])
    weights = [part.reshape(shape) for part, shape in zip(parts, SHAPES, strict=True)]
    x = x.reshape(ROWS, TIME, 1)
    zeros, found = np.zeros((ROWS, UNITS)), []
    for _ in range(steps + 1):
        arguments = Arguments(x, zeros, zeros, *weights, np.zeros((3, UNITS)))
        error = keras_lstm(arguments).h[:, 0] - x.mean((1, 2))
        found.append(float((error**2).mean()))
        h_grad = np.zeros_like(zeros)
        h_grad[:, 0] = 2 * error / ROWS
        upstream = Results(np.zeros((ROWS, TIME, UNITS)), h_grad, zeros)
        slopes = keras_lstm_backward(arguments, upstream)[3:6]
        weights = [w - RATE * slope for w, slope in zip(weights, slopes, strict=True)]
    return found


@pytest.mark.parametrize("standard", ["c11", pytest.param("c++17", marks=pytest.mark.full)])
def test_losses(standard: str, tmp_path: Path) -> None:
    native = runpy.run_path(str(ROOT / "build_defs" / "native.py"))
    library = Path(inference.get_library_dir()) / "libtf_lstm_ops_inference.so"
    strict = ["-pedantic", "-Wall", "-Wextra", "-Werror"]
    source = ["-x", "c++" if "+" in standard else "c", f"-std={standard}", *strict]
    command = [*native["compiler"](), *source, ROOT / "examples" / "train.c", "-x", "none", library]
    command += ["-I", inference.get_include(), f"-Wl,-rpath,{library.parent}"]
    subprocess.run([*command, "-o", tmp_path / "train"], check=True)
    done = subprocess.run(
        [tmp_path / "train", "200"], capture_output=True, text=True, timeout=60, check=True
    )
    found = [float(text) for text in re.findall(r"loss (\S+)", done.stdout)]
    want = losses(200)
    assert want[-1] < 0.2 * want[0]
    # The program prints six digits.
    np.testing.assert_allclose(found, [want[0], want[-1]], rtol=0, atol=2e-6)
