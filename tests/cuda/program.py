"""One check of the CUDA kernels in a process of its own: a device cannot be taken out again. Not a
test itself.

`python program.py CHECK` in build.environment prints a line of JSON for the test that started it.
"""

import ctypes
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels, load_library

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    load_library.load_pluggable_device_library(os.environ["TF_LSTM_OPS_TEST_PLUGIN"])
    tf.config.set_soft_device_placement(False)

from cudnn_rnn.cases import Case, Values, arguments, call

TIME, BATCH, INPUTS, UNITS = 5, 3, 4, 6


def random(*shape: int) -> Any:
    rng = np.random.default_rng(shape)
    return tf.constant(rng.standard_normal(shape) / 2, tf.float32)


def layer(**changes: Any) -> dict[str, Any]:
    """Arguments of a layer with a peephole."""
    none = tf.zeros([0])
    return {
        "x": random(BATCH, TIME, INPUTS),
        "mask": tf.zeros([0], tf.bool),
        "initial_h": random(BATCH, UNITS),
        "initial_c": random(BATCH, UNITS),
        "kernel": random(INPUTS, 4 * UNITS),
        "recurrent_kernel": random(UNITS, 4 * UNITS),
        "bias": random(4 * UNITS),
        "peephole": random(3, UNITS),
        **{name: none for name in ("projection", "input_dropout", "recurrent_dropout")},
        **changes,
    }


def library() -> Any:
    return tf_lstm_ops._library.load()


def train(**arguments: Any) -> list[np.ndarray]:
    """Outputs and gradients on the device."""
    with tf.device("GPU:0"):
        outputs = library().tf_lstm_ops_keras_lstm(**arguments)
        upstream = {
            f"{name}_grad": tf.constant(np.ones(value.shape), value.dtype)
            for name, value in outputs._asdict().items()
            if name != "reserve"
        }
        kept = {"output": outputs.output, "reserve": outputs.reserve}
        gradients = library().tf_lstm_ops_keras_lstm_grad(**arguments, **kept, **upstream)
    assert gradients[0].device.endswith("GPU:0")
    return [value.numpy() for value in (*outputs, *gradients)]


def error() -> Any:
    """The error of a call, if any."""
    try:
        train(**layer())
    except tf.errors.OpError as raised:
        return [type(raised).__name__, raised.message]
    return None


def lacking_options() -> Any:
    """The errors of options that the kernels lack, where the op is placed on the device."""
    projected = {
        "initial_h": random(BATCH, 1),
        "recurrent_kernel": random(1, 4 * UNITS),
        "projection": random(UNITS, 1),
    }
    found = []
    for options in ({"activation": "relu"}, {"recurrent_activation": "tanh"}, projected):
        try:
            train(**layer(**options))
        except tf.errors.UnimplementedError as raised:
            found.append(raised.message)
    return found


def masked_input() -> Any:
    """Whether everything is finite where masked inputs are NaN."""
    mask = np.ones([BATCH, TIME], bool)
    mask[0, 0] = mask[1, 2] = mask[2, 3:] = False
    x = np.where(mask[..., None], layer()["x"], np.nan).astype(np.float32)
    found = train(**layer(x=tf.constant(x), mask=tf.constant(mask)))
    return [bool(np.isfinite(value).all()) for value in found]


def same_bits() -> Any:
    """Whether two calls give the same bits."""
    first, second = train(**layer()), train(**layer())
    return [a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True)]


def compute_types() -> Any:
    """The compute types of products of float where TensorFlow allows TF32 and where it does not."""
    cublas = ctypes.CDLL("libcublas.so.12")
    found = []
    for allowed in (True, False):
        tf.config.experimental.enable_tensor_float_32_execution(allowed)
        train(**layer())
        found.append(cublas.fake_compute_type())
    return found


def broken_kernels() -> Any:
    """For each kernel, and for none: the number of checks of the self-test that fail while it does
    nothing. And the ops with a kernel on the device that no check calls."""
    from tf_lstm_ops import op_definitions
    from tf_lstm_ops.selftest import ops

    original, called = op_definitions.function, set()
    op_definitions.function = lambda op: called.add(op) or original(op)
    tf.config.experimental.enable_tensor_float_32_execution(False)
    checks = list(ops.checks("GPU:0"))

    def fails(check: Any) -> bool:
        try:
            return not check.run("GPU:0").passed
        except tf.errors.OpError:
            return True

    found = {"": sum(map(fails, checks))}
    short = [c for c in checks if c.name.endswith(("float32", "float16")) and " 70 " not in c.name]
    folder = Path(__file__).resolve().parents[2] / "cc" / "backends" / "cuda" / "kernels"
    for source in folder.glob("*.cu"):
        for kernel in re.findall(r"^TF_LSTM_OPS_KERNEL\((\w+),", source.read_text(), re.MULTILINE):
            os.environ["FAKE_BROKEN"] = kernel
            found[kernel] = sum(map(fails, short))
    registered = {
        k.op.removeprefix("TfLstmOps>")
        for k in kernels.get_all_registered_kernels().kernel
        if k.device_type == "GPU" and k.op.startswith("TfLstmOps>")
    }
    return found, sorted(registered - called)


# --- the CudnnRNN family ---------------------------------------------------------------------

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
    import tf_lstm_ops

    print(json.dumps(globals()[sys.argv[1]]()))
