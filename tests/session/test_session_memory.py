"""The arrays of a call and of a stream do not grow with the number of layers."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import numpy as np
from tf_lstm_ops.inference import Session, layers

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024

kernel = np.eye(64, dtype=np.float32)
x = values = layers.Input((None, 64))
for _ in range(int(sys.argv[1])):
    skip = layers.Dense(kernel, activation="tanh")(values)
    values = layers.Add()(values, layers.Dense(kernel)(skip))
session = Session.from_graph(x, values)
before = resident()
if sys.argv[2] == "stream":
    user = session.stream(8192)
else:
    user = session(np.zeros((8192, 4, 64), np.float32))
print(resident() - before)
"""


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the proc file system")
@pytest.mark.parametrize("use", ["stream", "call"])
def test_arrays_of_many_layers(use: str) -> None:
    """In MiB. An array of the call has 8 or 16 MiB; 40 blocks have 120 of them."""
    used = [
        int(subprocess.run([sys.executable, "-c", PROGRAM, str(count), use], **RUN).stdout)
        for count in (3, 40)
    ]
    assert used[1] < used[0] + 8


RUN = {"capture_output": True, "text": True, "check": True, "timeout": 120}
