"""One check of the Metal kernels in its own process, since a plugin cannot be unloaded. Not a test
itself.

`python kernels_program.py CHECK PLUGIN FAKES PACKAGE` with TF_LSTM_OPS_METAL_LIBRARY prints a line
of JSON for the test that started it. An empty PLUGIN or PACKAGE is not loaded.
"""

import ctypes
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels, load_library

TIME, BATCH, INPUTS, UNITS = 4, 3, 5, 6
COUNTS = ("graphs", "tensor data", "buffers", "buffer bytes", "command buffers")


def random(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng([seed, *shape])
    return tf.constant(rng.standard_normal(shape) / 2, tf.float32)


def step(batch: int = BATCH, seed: int = 0) -> dict[str, Any]:
    return {
        "x": random(batch, INPUTS, seed=seed),
        "cs_prev": random(batch, UNITS, seed=seed + 1),
        "h_prev": random(batch, UNITS, seed=seed + 2),
        "w": random(INPUTS + UNITS, 4 * UNITS, seed=seed),
        **{name: random(UNITS, seed=seed) for name in ("wci", "wcf", "wco")},
        "b": random(4 * UNITS, seed=seed),
    }


def stack(seed: int = 0) -> dict[str, Any]:
    matrices = 2 * 4 * UNITS * (2 * UNITS) - 4 * UNITS * (UNITS - INPUTS)
    return {
        "input": random(TIME, BATCH, INPUTS, seed=seed),
        "input_h": random(2, BATCH, UNITS, seed=seed),
        "input_c": random(2, BATCH, UNITS, seed=seed + 1),
        "params": random(matrices + 2 * 8 * UNITS, seed=seed),
        "sequence_lengths": tf.constant([TIME, 1, 2], tf.int32),
    }


def on(device: str, op: Any, **arguments: Any) -> Any:
    with tf.device(device):
        results = op(**arguments)
    first = tf.nest.flatten(results)[0]
    assert first.device.endswith(device), first.device
    return results


def library() -> Any:
    return tf_lstm_ops._library.load()


def train(arguments: dict[str, Any]) -> list[np.ndarray]:
    """The outputs of CudnnRNNV3 and the gradients."""
    outputs = on("GPU:0", library().tf_lstm_ops_cudnn_rnnv3, **arguments)
    saved = outputs._asdict()
    saved |= {f"{name}_backprop": tf.ones_like(saved[name]) for name in outputs._fields[:3]}
    gradients = on("GPU:0", library().tf_lstm_ops_cudnn_rnn_backprop_v3, **arguments, **saved)
    return [v.numpy() for v in (*outputs[:3], *gradients)]


def memory() -> Any:
    """Counts of live objects after 200 and after 2,000 calls of three kernels."""
    calls, after = 0, {}
    cell, block, arguments = step(), library().tf_lstm_ops_lstm_block_cell, stack()
    while calls < 2000:
        on("GPU:0", block, **cell)[0].numpy()
        train(arguments)
        calls += 3
        if calls in (201, 2001):
            time.sleep(0.5)  # TensorFlow frees some tensors in a thread of its own
            after[calls] = [fakes.fake_count(name.encode()) for name in COUNTS]
    return list(after.values())


def cache() -> Any:
    """The number of graphs after calls of 300 shapes; whether the first shape still works."""
    op = library().tf_lstm_ops_lstm_block_cell
    first = on("GPU:0", op, **step(1)).h.numpy()
    for batch in range(2, 301):
        on("GPU:0", op, **step(batch)).h.numpy()
    graphs = fakes.fake_count(b"graphs")
    again = on("GPU:0", op, **step(1)).h.numpy()
    return [graphs, bool(np.array_equal(first, again))]


def wrong_calls(calls: list[Callable[[], list[np.ndarray]]]) -> list[int]:
    """For each of some calls, the number of wrong results of 100 in a thread of its own."""
    want = [call() for call in calls]

    def work(n: int) -> int:
        results = (zip(calls[n](), want[n], strict=True) for _ in range(100))
        return sum(not all(np.array_equal(a, b) for a, b in pairs) for pairs in results)

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(work, range(len(calls))))


def threads() -> Any:
    """Two threads that call the same ops, each with its own values."""
    return wrong_calls([partial(train, stack(seed)) for seed in (0, 10)])


def traced_threads() -> Any:
    """Four threads that call a tf.function with their own lengths."""
    op = tf.function(library().tf_lstm_ops_cudnn_rnnv3)

    def call(n: int) -> list[np.ndarray]:
        lengths = tf.constant([n, TIME - n, 1], tf.int32)
        return [on("GPU:0", op, **stack() | {"sequence_lengths": lengths}).output.numpy()]

    return wrong_calls([lambda n=n: call(n) for n in range(4)])


def failure() -> Any:
    """The errors of four calls, of which the commands of the second one fail; whether a call after
    them is right.
    """
    op, errors = library().tf_lstm_ops_lstm_block_cell, []
    with tf.device("GPU:0"):
        given = {name: tf.identity(value) for name, value in step().items()}
    for n in range(4):
        if n == 1:
            fakes.fake_fail_next_command_buffer()
        # numpy() waits for the commands.
        errors.append(error_of(lambda **given: op(**given).h.numpy(), **given))
    got, want = (on(device, op, **step()).h.numpy() for device in ("GPU:0", "CPU:0"))
    return [errors, bool(np.allclose(got, want, atol=1e-6))]


def seeds() -> Any:
    """The numbers of graphs after calls with one seed and with ten."""
    op, counts = library().tf_lstm_ops_cudnn_rnnv3, []
    for seed in range(1, 11):
        on("GPU:0", op, **stack(), dropout=0.5, seed=seed)
        counts.append(fakes.fake_count(b"graphs"))
    return [counts[0], counts[-1]]


def error_of(op: Any, **arguments: Any) -> Any:
    """The error of a call on the device, if any."""
    try:
        with tf.device("GPU:0"):
            op(**arguments)
    except tf.errors.OpError as raised:
        return [type(raised).__name__, raised.message]
    return None


def too_large() -> Any:
    """The error of a layer whose pre-activations have 4 GiB."""
    time, batch, units = 1 << 12, 1 << 10, 64
    shapes = {"input": [time, batch, 1], "params": [4 * units * (1 + units) + 8 * units]}
    shapes |= {name: [1, batch, units] for name in ("input_h", "input_c")}
    return error_of(
        library().tf_lstm_ops_cudnn_rnnv3,
        **{name: tf.zeros(shape, tf.half) for name, shape in shapes.items()},
        sequence_lengths=tf.fill([batch], time),
        is_training=False,
    )


def many_rows() -> Any:
    """The error of a product of 40,000 rows, if any."""
    rows = {"x": [40_000, 1], "cs_prev": [40_000, 1], "h_prev": [40_000, 1], "w": [2, 4], "b": [4]}
    given = {name: tf.zeros(shape) for name, shape in rows.items()}
    given |= {name: tf.zeros([1]) for name in ("wci", "wcf", "wco")}
    return error_of(library().tf_lstm_ops_lstm_block_cell, **given)


def call_error() -> Any:
    """The error of a call, if any."""
    return error_of(library().tf_lstm_ops_lstm_block_cell, **step())


def newer_tensorflow() -> Any:
    """The errors of calls with a TensorFlow that has the functions of asynchronous plugins: with
    the plugin's default, and with TF_METAL_SYNCHRONOUS=1.
    """
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/newer.so"
        source = "void TF_AssignRefVariable(void) {}"
        compiler = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library]
        subprocess.run(compiler, input=source, text=True, check=True)
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    default = call_error()
    os.environ["TF_METAL_SYNCHRONOUS"] = "1"
    return [default, call_error()]


def order() -> Any:
    """Whether a chain of calls, each of which reads what the last one has not yet computed, gives
    the CPU's result.
    """
    op, results = library().tf_lstm_ops_lstm_block_cell, []
    for device in ("GPU:0", "CPU:0"):
        given = step()
        for _ in range(10):
            found = on(device, op, **given)
            given |= {"cs_prev": found.cs, "h_prev": found.h}
        results.append(found.h.numpy())
    return bool(np.allclose(*results, rtol=0, atol=1e-6))


def registered() -> Any:
    """The recurrent ops with a kernel for the device, and those that the package assumes."""
    tf_lstm_ops.stock.override()
    found = {
        op.op
        for op in kernels.get_all_registered_kernels().kernel
        if op.device_type == "GPU" and re.search("LSTM|RNN|GRU", op.op)
    }
    return [sorted(found), sorted(f"TfLstmOps>{op}" for op in tf_lstm_ops._kernels.ON_METAL)]


def refusals() -> Any:
    """For each call with refused attributes: the error, and the difference of later calls."""
    op, found = library().tf_lstm_ops_cudnn_rnnv3, []

    def difference(lengths: list[int]) -> float:
        given = {**stack(), "sequence_lengths": tf.constant(lengths, tf.int32)}
        got, want = (on(device, op, **given).output.numpy() for device in ("GPU:0", "CPU:0"))
        return float(np.abs(got - want).max())

    three_gates = random(3 * UNITS * (INPUTS + UNITS) + 3 * UNITS * (2 * UNITS) + 2 * 6 * UNITS)
    for changes in ({"rnn_mode": "gru", "params": three_gates}, {"dropout": 2.0}):
        error = error_of(op, **stack() | changes)
        found.append([*error, max(difference([n % TIME + 1, TIME, n]) for n in range(4))])
    return found


def fit(model: keras.Model, x: np.ndarray) -> Any:
    model.fit(x, x[:, 0, :1], epochs=2, verbose=0, shuffle=False)
    return np.concatenate([np.ravel(w) for w in model.get_weights()])


MODES: dict[str, Callable[[keras.Model, np.ndarray], Any]] = {
    "eager": lambda model, x: model(x).numpy(),
    "traced": lambda model, x: tf.function(model)(x).numpy(),
    "predict": lambda model, x: model.predict(x, verbose=0),
    "fit": fit,
}


def stock_layers() -> Any:
    """The results of stock layers on any device and on the CPU, or the types of their errors."""
    found: dict[str, Any] = {}
    x = np.random.default_rng(0).normal(size=(4, 6, 3)).astype("float32")
    layers = (keras.layers.GRU, keras.layers.LSTM)
    for layer, mode, device in itertools.product(layers, MODES, ("", "CPU:0")):
        rng = np.random.default_rng(1)
        name = f"{layer.__name__} {mode} {device}"
        try:
            with tf.device(device):
                model = keras.Sequential([keras.Input((6, 3)), layer(5), keras.layers.Dense(1)])
                model.set_weights([0.5 * rng.normal(size=w.shape) for w in model.get_weights()])
                model.compile("sgd", "mse", jit_compile=False)
                found[name] = np.ravel(MODES[mode](model, x)).tolist()
        except (tf.errors.OpError, ValueError) as error:
            found[name] = type(error).__name__
    return found


if __name__ == "__main__":
    check, plugin, path, package = sys.argv[1:]
    if plugin:
        load_library.load_pluggable_device_library(plugin)
    if check != "stock_layers":
        tf.config.set_soft_device_placement(False)
    fakes = ctypes.CDLL(path)
    fakes.fake_count.restype = ctypes.c_long
    if package:
        import tf_lstm_ops

    print(json.dumps(globals()[check]()))
