"""One check of the CudnnRNN family on the CUDA kernels, in a process of its own. Not a test itself.

`python cudnn_program.py CHECK` in build.environment prints a line of JSON for test_cudnn.py.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import tensorflow as tf
from tensorflow.python.framework import load_library

if __name__ == "__main__":
    load_library.load_pluggable_device_library(os.environ["TF_LSTM_OPS_TEST_PLUGIN"])
    tf.config.set_soft_device_placement(False)

from cudnn_rnn.cases import Case, Values, arguments, call

PLAIN = Case(time=4, batch=3, units=4)
STACKED = Case(layers=3, directions=2, time=4, batch=3)


def on_device(op: str, case: Case, values: Values, **options: Any) -> dict[str, tf.Tensor]:
    with tf.device("GPU:0"):
        return call(op, case, values, **options)._asdict()


def digest(values: Values) -> dict[str, str]:
    shown = {k: v for k, v in values.items() if k not in ("reserve_space", "host_reserved")}
    return {k: v.numpy().astype("f8").tobytes().hex() for k, v in shown.items()}


def gradients_again() -> Any:
    """Whether the same reserve_space gives the same gradients twice, and stays as it is."""
    given = arguments("CudnnRNNBackpropV3", STACKED, "float32", [4, 0, 2])
    forward = {k: given[k] for k in STACKED.shapes("CudnnRNNV3")}
    given |= on_device("CudnnRNNV3", STACKED, forward)
    before = given["reserve_space"].numpy().tobytes()
    first, second = (on_device("CudnnRNNBackpropV3", STACKED, given) for _ in range(2))
    return [digest(first) == digest(second), given["reserve_space"].numpy().tobytes() == before]


def layouts() -> Any:
    """Calls whose passes are read from the log of the fake cuDNN."""
    on_device("CudnnRNNV3", PLAIN, arguments("CudnnRNNV3", PLAIN, "float32", [4, 1, 2]))
    batch_major = replace(PLAIN, time_major=False)
    on_device("CudnnRNNV3", batch_major, arguments("CudnnRNNV3", batch_major))
    values = arguments("CudnnRNNV3", PLAIN, "float32", [4, 0, 2])
    on_device("CudnnRNNV3", PLAIN, values, is_training=False)
    none = replace(PLAIN, batch=0)
    on_device("CudnnRNNV3", none, arguments("CudnnRNNV3", none))


def precision() -> Any:
    """A call that may use TF32 and one that may not."""
    values = arguments("CudnnRNNV3", PLAIN)
    for enabled in (True, False):
        tf.config.experimental.enable_tensor_float_32_execution(enabled)
        on_device("CudnnRNNV3", PLAIN, values)
    return None


def refused() -> Any:
    """The errors of another reserve, and of dropout in both passes."""
    given = arguments("CudnnRNNBackpropV3", STACKED)
    forward = {k: given[k] for k in STACKED.shapes("CudnnRNNV3")}
    given |= on_device("CudnnRNNV3", STACKED, forward)
    shorter = {"reserve_space": given["reserve_space"][:-1]}
    messages = []
    for op, values, dropout in (
        ("CudnnRNNBackpropV3", given | shorter, 0.0),
        ("CudnnRNNV3", forward, 0.5),
        ("CudnnRNNBackpropV3", given, 0.5),
    ):
        try:
            on_device(op, STACKED, values, dropout=dropout)
            messages.append("")
        except tf.errors.OpError as error:
            messages.append(error.message)
    return messages


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
