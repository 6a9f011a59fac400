"""Large outputs of the ops on the CPU lie on huge pages where the system has them."""

import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops

ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def flags_at(address: int) -> list[str]:
    """The flags of the range of this process's memory that contains an address."""
    contains = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if words[0] == "VmFlags:" and contains:
            return words[1:]
        if "-" in words[0] and not words[0].endswith(":"):
            begin, end = (int(word, 16) for word in words[0].split("-"))
            contains = begin <= address < end
    raise ValueError(f"no range contains {address:#x}")


def flags_in_the_middle(tensor: tf.Tensor) -> list[str]:
    view = np.asarray(memoryview(tensor))  # not a copy
    return flags_at(view.ctypes.data + view.nbytes // 2)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the request")
def test_large_outputs() -> None:
    if not ENABLED.exists() or "[never]" in ENABLED.read_text():
        pytest.skip("this system has no huge pages")
    with tf.device("CPU"):
        # Outputs and the gradient of x have 8 MiB, of which 6 MiB are whole huge pages anywhere.
        x = tf.zeros([64, 512, 64])
        layer = tf_lstm_ops.keras.LSTM(64, return_sequences=True)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)
        x_grad = tape.gradient(y, x)
    assert "hg" in flags_in_the_middle(y)
    assert "hg" in flags_in_the_middle(x_grad)
