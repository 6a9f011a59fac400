"""One check of the CUDA kernels in a process of its own: a device cannot be taken out again. Not a
test itself.

`python program.py CHECK` in build.environment prints a line of JSON for the test that started it.
"""

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import load_library

TIME, BATCH, INPUTS, UNITS = 5, 3, 4, 6


def random(*shape: int) -> Any:
    rng = np.random.default_rng(shape)
    return tf.constant(rng.standard_normal(shape) / 2, tf.float32)


def layer(**changes: Any) -> dict[str, Any]:
    """Arguments with a peephole, which cuDNN does not support: for the package's own kernels."""
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
        **{name: none for name in ("input_dropout", "recurrent_dropout")},
        **changes,
    }


def library() -> Any:
    return tf_lstm_ops._library.load()


def train(cell: str = "lstm", **arguments: Any) -> list[np.ndarray]:
    """Outputs and gradients on the device."""
    with tf.device("GPU:0"):
        outputs = getattr(library(), f"tf_lstm_ops_keras_{cell}")(**arguments)
        upstream = {
            f"{name}_grad": tf.constant(np.ones(value.shape), value.dtype)
            for name, value in outputs._asdict().items()
            if name != "reserve"
        }
        kept = {"output": outputs.output, "reserve": outputs.reserve}
        gradient = getattr(library(), f"tf_lstm_ops_keras_{cell}_grad")
        gradients = gradient(**arguments, **kept, **upstream)
    assert gradients[0].device.endswith("GPU:0")
    return [value.numpy() for value in (*outputs, *gradients)]


def error() -> Any:
    """The error of a call, if any."""
    try:
        train(**layer())
    except tf.errors.OpError as raised:
        return [type(raised).__name__, raised.message]
    return None


def cudnn_passes() -> Any:
    """The passes of cuDNN in the training of each kind of layer."""
    none = tf.zeros([0])
    gru = {
        **{k: v for k, v in layer().items() if k not in ("initial_c", "peephole")},
        "kernel": random(INPUTS, 3 * UNITS),
        "recurrent_kernel": random(UNITS, 3 * UNITS),
        "bias": random(2, 3 * UNITS),
    }
    plain = layer(peephole=none)
    kinds = {
        "plain": plain,
        "last step": plain | {"return_sequences": False},
        "backwards": plain | {"go_backwards": True},
        "GRU": gru | {"cell": "gru"},
        "no steps": plain | {"x": random(BATCH, 0, INPUTS)},
        "mask": plain | {"mask": tf.ones([BATCH, TIME], tf.bool)},
        "recurrent dropout": plain | {"recurrent_dropout": random(4, BATCH, UNITS)},
        "input dropout": plain | {"input_dropout": random(4, BATCH, INPUTS)},
        "peephole": layer(),
        "clip": plain | {"cell_clip": 1.0},
        "half": {k: v if k == "mask" else tf.cast(v, tf.half) for k, v in plain.items()},
        "bfloat16": {k: v if k == "mask" else tf.cast(v, tf.bfloat16) for k, v in plain.items()},
    }
    log = Path(os.environ["FAKE_CUDNN_LOG"])
    found = {}
    for name, arguments in kinds.items():
        log.write_text("")
        train(**arguments)
        found[name] = [json.loads(line) for line in log.read_text().splitlines()]
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
    given = layer(recurrent_dropout=random(4, BATCH, UNITS))
    first, second = train(**given), train(**given)
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


def large(cell: str, dtype: str, **changes: Any) -> dict[str, Any]:
    """A layer whose weights and rows take several tiles and blocks."""
    batch, units, gates = 19, 70, {"lstm": 4, "gru": 3}[cell]
    given = layer(
        x=random(batch, TIME, INPUTS),
        initial_h=random(batch, units),
        kernel=random(INPUTS, gates * units),
        # Small enough that errors do not grow from step to step.
        recurrent_kernel=random(units, gates * units) / 4,
        bias=random(gates * units) if cell == "lstm" else random(2, gates * units),
    )
    if cell == "lstm":
        given |= {"initial_c": random(batch, units), "peephole": random(3, units)}
    else:
        given = {k: v for k, v in given.items() if k not in ("initial_c", "peephole")}
    given |= {"mask": random(batch, TIME) > -0.3} | changes
    return {
        k: v if k in ("mask", "go_backwards") else tf.cast(v, dtype) for k, v in given.items()
    } | {"cell": cell}


def launches() -> np.ndarray:
    """The numbers of cooperative launches and of launches in clusters."""
    driver = ctypes.CDLL("libcuda.so.1")
    return np.array([driver.fake_cooperative_launches(), driver.fake_cluster_launches()])


def large_layers() -> Any:
    """Writes the results of large layers to a file; the launches that each took."""
    kinds = {
        f"{cell} {dtype}": large(cell, dtype)
        for cell in ("lstm", "gru")
        for dtype in ("float", "half", "bfloat16")
    }
    none = tf.zeros([0], tf.bool)
    kinds["without mask, backwards"] = large("lstm", "bfloat16", mask=none, go_backwards=True)
    found, results = {}, {}
    for name, arguments in kinds.items():
        before = launches()
        for n, value in enumerate(train(**arguments)):
            results[f"{name} {n}"] = value.astype(np.float64)
        found[name] = (launches() - before).tolist()
    np.savez(os.environ["RESULTS"], **results)
    return found


def launches_of_kinds() -> Any:
    """The launches of two calls of each kind."""
    four = random(4, BATCH, UNITS)
    cast = {k: v if k == "mask" else tf.cast(v, tf.double) for k, v in layer().items()}
    kinds = {"plain": layer(), "gates of their own": layer(recurrent_dropout=four), "double": cast}
    found = {}
    for allowed in (True, False):
        tf.config.experimental.enable_tensor_float_32_execution(allowed)
        for name, arguments in kinds.items():
            counts = [launches()]
            for _ in range(2):
                train(**arguments)
                counts.append(launches())
            found[f"{name}, {'TF32' if allowed else 'float'}"] = np.diff(counts, axis=0).tolist()
    return found


if __name__ == "__main__":
    load_library.load_pluggable_device_library(os.environ["TF_LSTM_OPS_TEST_PLUGIN"])
    tf.config.set_soft_device_placement(False)
    import tf_lstm_ops

    print(json.dumps(globals()[sys.argv[1]]()))
