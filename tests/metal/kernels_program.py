"""One check of the Metal kernels in its own process, since a plugin cannot be unloaded. Not a test
itself.

`python kernels_program.py CHECK PLUGIN FAKES` with TF_LSTM_OPS_METAL_LIBRARY prints a line of
JSON for the test that started it.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import load_library

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


def layer(seed: int = 0) -> dict[str, Any]:
    none = tf.zeros([0])
    return {
        "x": random(BATCH, TIME, INPUTS, seed=seed),
        "mask": tf.zeros([0], tf.bool),
        "initial_h": random(BATCH, UNITS, seed=seed),
        "initial_c": random(BATCH, UNITS, seed=seed + 1),
        "kernel": random(INPUTS, 4 * UNITS, seed=seed),
        "recurrent_kernel": random(UNITS, 4 * UNITS, seed=seed),
        "bias": random(4 * UNITS, seed=seed),
        **{name: none for name in ("peephole", "input_dropout", "recurrent_dropout")},
    }


def stack() -> dict[str, Any]:
    matrices = 2 * 4 * UNITS * (2 * UNITS) - 4 * UNITS * (UNITS - INPUTS)
    return {
        "input": random(TIME, BATCH, INPUTS),
        "input_h": random(2, BATCH, UNITS),
        "input_c": random(2, BATCH, UNITS),
        "params": random(matrices + 2 * 8 * UNITS),
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


def train(op: Any, gradient: Any, **arguments: Any) -> list[np.ndarray]:
    outputs = on("GPU:0", op, **arguments)
    output_grads = {
        f"{name}_grad": tf.ones(getattr(outputs, name).shape)
        for name in ("output", "final_h", "final_c")
    }
    saved = {"output": outputs.output, "reserve": outputs.reserve}
    gradients = on("GPU:0", gradient, **arguments, **saved, **output_grads)
    return [v.numpy() for v in (*outputs[:3], *gradients)]


def memory() -> Any:
    """Counts of live objects after 200 and after 2,000 calls of three kernels."""
    calls, after = 0, {}
    cell, block, arguments = step(), library().tf_lstm_ops_lstm_block_cell, layer()
    lstm, gradient = library().tf_lstm_ops_keras_lstm, library().tf_lstm_ops_keras_lstm_grad
    while calls < 2000:
        on("GPU:0", block, **cell)[0].numpy()
        train(lstm, gradient, **arguments)
        calls += 3
        if calls in (201, 2001):
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


def threads() -> Any:
    """Two threads that call the same ops, each with its own values: the number of wrong results."""
    arguments = [layer(seed) for seed in (0, 10)]
    lstm, gradient = library().tf_lstm_ops_keras_lstm, library().tf_lstm_ops_keras_lstm_grad
    want = [train(lstm, gradient, **given) for given in arguments]
    wrong = [0, 0]

    def work(n: int) -> None:
        wrong[n] = -1  # until the thread ends
        same = [
            np.array_equal(a, b)
            for _ in range(100)
            for a, b in zip(train(lstm, gradient, **arguments[n]), want[n], strict=True)
        ]
        wrong[n] = same.count(False)

    workers = [threading.Thread(target=work, args=[n]) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return wrong


def traced_threads() -> Any:
    """The numbers of wrong calls of four threads that call a tf.function with their own lengths."""
    op = tf.function(library().tf_lstm_ops_cudnn_rnnv3)
    given = [
        {**stack(), "sequence_lengths": tf.constant([n, TIME - n, 1], tf.int32)} for n in range(4)
    ]
    want = [on("GPU:0", op, **arguments).output.numpy() for arguments in given]

    def work(n: int) -> int:
        got = (on("GPU:0", op, **given[n]).output.numpy() for _ in range(100))
        return sum(not np.array_equal(output, want[n]) for output in got)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(work, range(4)))


def failure() -> Any:
    """The error of a call whose commands fail; whether the next call works."""
    op = library().tf_lstm_ops_lstm_block_cell
    want = on("CPU:0", op, **step()).h.numpy()
    on("GPU:0", op, **step())
    fakes.fake_fail_next_command_buffer()
    try:
        on("GPU:0", op, **step())
        error = None
    except tf.errors.OpError as raised:
        error = [type(raised).__name__, raised.message]
    return [error, bool(np.allclose(on("GPU:0", op, **step()).h.numpy(), want, atol=1e-6))]


def late_failure() -> Any:
    """The errors of four calls; the commands of the second one fail."""
    op, errors = library().tf_lstm_ops_lstm_block_cell, []
    with tf.device("GPU:0"):
        given = {name: tf.identity(value) for name, value in step().items()}
    for n in range(4):
        if n == 1:
            fakes.fake_fail_next_command_buffer()
        try:
            on("GPU:0", op, **given).h.numpy()  # waits for the commands
            errors.append(None)
        except tf.errors.OpError as raised:
            errors.append([type(raised).__name__, raised.message])
    return errors


def seeds() -> Any:
    """The numbers of graphs after calls with one seed and with ten."""
    op, counts = library().tf_lstm_ops_cudnn_rnnv3, []
    for seed in range(1, 11):
        on("GPU:0", op, **stack(), dropout=0.5, seed=seed)
        counts.append(fakes.fake_count(b"graphs"))
    return [counts[0], counts[-1]]


def too_large() -> Any:
    """The error of a layer whose products of all inputs have 4 GiB."""
    batch, time, units = 1 << 10, 1 << 12, 86
    none = tf.zeros([0])
    try:
        on(
            "GPU:0",
            library().tf_lstm_ops_keras_gru,
            x=tf.zeros([batch, time, 1]),
            mask=tf.zeros([0], tf.bool),
            initial_h=tf.zeros([batch, units]),
            kernel=tf.zeros([1, 3 * units]),
            recurrent_kernel=tf.zeros([units, 3 * units]),
            bias=tf.zeros([2, 3 * units]),
            input_dropout=none,
            recurrent_dropout=none,
            return_sequences=False,
            training=False,
        )
    except tf.errors.OpError as raised:
        return [type(raised).__name__, raised.message]
    return None


def many_rows() -> Any:
    """The error of a product of 40,000 rows, if any."""
    rows = {"x": [40_000, 1], "cs_prev": [40_000, 1], "h_prev": [40_000, 1], "w": [2, 4], "b": [4]}
    given = {name: tf.zeros(shape) for name, shape in rows.items()}
    given |= {name: tf.zeros([1]) for name in ("wci", "wcf", "wco")}
    try:
        on("GPU:0", library().tf_lstm_ops_lstm_block_cell, **given)
    except tf.errors.OpError as raised:
        return [type(raised).__name__, raised.message]
    return None


def call_error() -> Any:
    """The error of a call, if any."""
    try:
        on("GPU:0", library().tf_lstm_ops_lstm_block_cell, **step())
    except tf.errors.OpError as raised:
        return [type(raised).__name__, raised.message]
    return None


def asynchronous() -> Any:
    """The error of a call, if any, with an asynchronous plugin."""
    os.environ["TF_METAL_SYNCHRONOUS"] = "0"
    return call_error()


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


def stock_names_before_override() -> Any:
    """The types of the errors of stock ops on the device, for which the plugins have no kernels."""
    given = {"LSTMBlockCell": step(), "CudnnRNNV3": stack()}
    found = {}
    for name, arguments in given.items():
        try:
            on("GPU:0", getattr(tf.raw_ops, name), **arguments)
        except tf.errors.OpError as raised:
            found[name] = type(raised).__name__
    return found


def stock_names() -> Any:
    """Largest differences of stock ops on the device from our own ops on the CPU."""
    tf_lstm_ops.stock.override()
    given = step()
    sequence = {**given, "x": random(TIME, BATCH, INPUTS), "seq_len_max": tf.constant(3, tf.int64)}
    options = {"use_peephole": True, "cell_clip": 0.3}
    calls = {
        "LSTMBlockCell": ("lstm_block_cell", {**given, **options}),
        "BlockLSTM": ("block_lstm", {**sequence, **options}),
        "BlockLSTMV2": ("block_lstmv2", {**sequence, **options}),
        "CudnnRNNV3": ("cudnn_rnnv3", stack()),
    }
    differences = {}
    for name, (own, arguments) in calls.items():
        stock, own = getattr(tf.raw_ops, name), getattr(library(), f"tf_lstm_ops_{own}")
        found = on("GPU:0", stock, **arguments), on("CPU:0", own, **arguments)
        rows = [
            (got.numpy(), want.numpy())
            for got, want, field in zip(*found, found[1]._fields, strict=True)
            if field not in ("reserve_space", "host_reserved")
        ]
        differences[name] = float(max(np.abs(a - b).max() for a, b in rows))
    return differences


def refusals() -> Any:
    """For each call with refused attributes: the error, and the difference of later calls."""
    own, found = library().tf_lstm_ops_cudnn_rnnv3, []
    tf_lstm_ops.stock.override()

    def difference(lengths: list[int]) -> float:
        given = {**stack(), "sequence_lengths": tf.constant(lengths, tf.int32)}
        got, want = (on(device, own, **given).output.numpy() for device in ("GPU:0", "CPU:0"))
        return float(np.abs(got - want).max())

    for op, options in ((tf.raw_ops.CudnnRNNV3, {"rnn_mode": "gru"}), (own, {"dropout": 2.0})):
        try:
            on("GPU:0", op, **stack(), **options)
            error = ["nothing", ""]
        except tf.errors.OpError as raised:
            error = [type(raised).__name__, raised.message]
        found.append([*error, max(difference([n % TIME + 1, TIME, n]) for n in range(4))])
    return found


if __name__ == "__main__":
    check, plugin, path = sys.argv[1:]
    load_library.load_pluggable_device_library(plugin)
    tf.config.set_soft_device_placement(False)
    fakes = ctypes.CDLL(path)
    fakes.fake_count.restype = ctypes.c_long
    import tf_lstm_ops

    print(json.dumps(globals()[check]()))
