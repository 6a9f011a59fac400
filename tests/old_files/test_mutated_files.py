"""Files that differ from valid ones in some bytes: an error in words, or a model."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from old_files import writer
from old_files.writer import UNITS, arrays, layer

# A process of its own, since the HDF5 library may crash. It prints the number of files that made a
# model, and ends with the message of an error that is none of those that the reference names.
PROGRAM = """
import os, random, sys, warnings
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from tf_lstm_ops.keras import load_h5
warnings.simplefilter("ignore")
path, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
whole = open(path, "rb").read()
texts = [whole.find(b'"config"'), whole.find(b"layer_names"), whole.find(b"kernel:0")]
loaded = 0
for number in range(count):
    rng = random.Random(seed + number)
    content = bytearray(whole)
    for _ in range(rng.choice([1, 2, 8])):
        start = rng.choice([0, *texts])
        at = min(start + int(rng.expovariate(1 / 300)), len(content) - 1)
        content[at] = rng.choice([0, 1, 255, content[at] ^ 1 << rng.randrange(8)])
    if rng.random() < 0.1:
        content = content[: rng.randrange(1, len(content))]
    open(path, "wb").write(content)
    try:
        load_h5(path)
        loaded += 1
    except (OSError, ValueError) as error:
        assert str(error), type(error)
print(loaded)
"""


def run(folder: Path, seed: int, count: int) -> None:
    config = [layer("LSTM", "l", (None, None, 3)), layer("Dense", "d", units=2)]
    own = {"l": arrays("l", UNITS, 3, 4, [4 * UNITS]), "d": []}
    config[1]["config"]["use_bias"] = True
    own["d"] = [(f"d/{name}", array) for name, array in arrays("x", 2, UNITS, 1, [2])[::2]]
    path = writer.write(folder / "a.h5", "2.8.0", config, own)
    command = [sys.executable, "-c", PROGRAM, str(path), str(seed), str(count)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ}, timeout=540
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[-1]) > 0  # the files are not all refused for one reason


@pytest.mark.full
def test_mutated_files(tmp_path: Path) -> None:
    run(tmp_path, 0, 300)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 21000, 5000))
def test_many_mutated_files(seed: int, tmp_path: Path) -> None:
    run(tmp_path, seed, 5000)
