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
    arguments = [stack(seed) for seed in (0, 10)]
    want = [train(given) for given in arguments]
    wrong = [0, 0]

    def work(n: int) -> None:
        wrong[n] = -1  # until the thread ends
        same = [
            np.array_equal(a, b)
            for _ in range(100)
            for a, b in zip(train(arguments[n]), want[n], strict=True)
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
    error = call_error()
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


def error_of(op: Any, **arguments: Any) -> Any:
    """The error of a call on the device, if any."""
    try:
        on("GPU:0", op, **arguments)
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
    """The ops of this package with a kernel for the device, and those that the package assumes."""
    found = set()
    for op in kernels.get_all_registered_kernels().kernel:
        if op.op.startswith("TfLstmOps>") and op.device_type == "GPU":
            found.add(op.op.removeprefix("TfLstmOps>"))
    return [sorted(found), sorted(tf_lstm_ops._gpu.ON_METAL)]


def stock_names() -> Any:
    """The types of the errors of stock ops on the device, before and after `stock.override`."""
    calls = {"LSTMBlockCell": step(), "CudnnRNNV3": stack()}

    def errors() -> dict[str, Any]:
        found = {name: error_of(getattr(tf.raw_ops, name), **calls[name]) for name in calls}
        return {name: error and error[0] for name, error in found.items()}

    before = errors()
    tf_lstm_ops.stock.override()
    return [before, errors()]


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


if __name__ == "__main__":
    check, plugin, path = sys.argv[1:]
    load_library.load_pluggable_device_library(plugin)
    tf.config.set_soft_device_placement(False)
    fakes = ctypes.CDLL(path)
    fakes.fake_count.restype = ctypes.c_long
    import tf_lstm_ops

    print(json.dumps(globals()[check]()))
