"""Checks at the sizes of real models: results, the bits of repeated calls, and times."""

from __future__ import annotations

import functools
import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops import composite, op_definitions
from tf_lstm_ops.cudnn_layout import Model
from tf_lstm_ops.selftest import oracle
from tf_lstm_ops.selftest.check import Check, Result, compare
from tf_lstm_ops.selftest.ops import call_layer, has_layer_kernel

# Sums of a thousand products over a hundred steps.
TOLERANCES = {tf.float32: 1e-3, tf.float16: 3e-2, tf.bfloat16: 2.5e-1}


class Size(NamedTuple):
    """A layer.

    Attributes:
      batch: the number of rows.
      units: the size of the state and of the input.
      time: the number of steps.
      op: KerasLSTM, or CudnnRNNV3: an LSTM of two layers in both directions.
      masked: whether there is a mask with gaps, or rows of different lengths.
    """

    batch: int
    units: int
    time: int
    op: str = "KerasLSTM"
    masked: bool = False

    def __str__(self) -> str:
        shown = f"batch {self.batch}, {self.units} units, {self.time} steps"
        return f"{shown}, mask" if self.masked else shown


SIZES = [
    Size(16, 256, 100),
    Size(16, 1024, 100),
    Size(64, 1024, 100),
    Size(16, 256, 100, masked=True),
    Size(16, 256, 100, "CudnnRNNV3"),
    Size(16, 256, 100, "CudnnRNNV3", masked=True),
]
# float64 takes long
CPU_SIZES = [Size(16, 256, 100), Size(16, 1024, 20), Size(8, 128, 50, "CudnnRNNV3", masked=True)]
TIMED = [Size(batch, 256, 100) for batch in (1, 4, 16, 64)]
REPEATS = 7  # of which the median counts


def checks(device: str) -> Iterator[Check]:
    """The checks of sizes and types, then the measurements.

    Args:
      device: such as "GPU:0".

    Yields:
      Checks of the layers' ops and of CudnnRNNV3. On a CPU, whose times have nothing to be compared
      with, no measurements.
    """
    for size in CPU_SIZES if oracle.is_oracle(device) else SIZES:
        for dtype in TOLERANCES:
            if oracle.is_oracle(device) and dtype == tf.bfloat16:
                continue  # the CPU's own tests have it; float64 takes long
            if has_layer_kernel(size.op, device, dtype):
                check = functools.partial(_check, size, dtype)
                yield Check(f"{size.op}: {size}, twice, {dtype.name}", check)
    for size in TIMED if not oracle.is_oracle(device) else ():
        if has_layer_kernel("KerasLSTM", device, tf.float32):
            yield Check(f"time: {size}, float32", functools.partial(_measure, size))


def _check(size: Size, dtype: tf.DType, device: str) -> Result:
    """Compares without TF32. Then repeats the call, as users run it, with TF32, and compares it."""
    want, got = _expected(size, dtype, device), _both_passes(size, dtype, device)()
    tf.config.experimental.enable_tensor_float_32_execution(True)
    try:
        again = _both_passes(size, dtype, device)
        first, second = again(), again()
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(False)
    for a, b in zip(first, second, strict=True):
        # cuDNN's may change.
        if size.op != "CudnnRNNV3" and a.numpy().tobytes() != b.numpy().tobytes():
            raise RuntimeError("two equal calls returned different bits")
    exact = compare(got, want, TOLERANCES[dtype])
    # TF32 has float16's bits.
    repeated = compare(second, want, max(TOLERANCES[dtype], TOLERANCES[tf.float16]))
    return exact if repeated.passed else repeated


def _expected(size: Size, dtype: tf.DType, device: str) -> list[Any]:
    if not oracle.is_oracle(device):
        return _both_passes(size, dtype, "CPU:0")()
    with composite.plain_ops():
        return _both_passes(size, dtype, "CPU:0", oracle.constant)()


def _weights(
    size: Size, dtype: tf.DType, device: str, constant: Callable[..., Any]
) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    # Weights of the size at which Keras starts: gates neither saturate nor vanish.
    scales = dict.fromkeys(("kernel", "recurrent_kernel", "params"), size.units**-0.5)
    with tf.device(device):
        return {
            name: constant(rng.standard_normal(shape) * scales.get(name, 0.5), dtype)
            for name, shape in _shapes(size).items()
        }


def _shapes(size: Size) -> dict[str, tuple[int, ...]]:
    units = size.units
    if size.op == "CudnnRNNV3":
        return {
            "input": (size.time, size.batch, units),
            "input_h": (4, size.batch, units),
            "input_c": (4, size.batch, units),
            "params": (Model("lstm", units, units, num_layers=2, directions=2).size(),),
        }
    return {
        "x": (size.batch, size.time, units),
        "initial_h": (size.batch, units),
        "kernel": (units, 4 * units),
        "recurrent_kernel": (units, 4 * units),
        "bias": (4 * units,),
        "initial_c": (size.batch, units),
    }


def _results(size: Size, given: dict[str, Any]) -> list[Any]:
    """The output and the final states."""
    if size.op == "CudnnRNNV3":
        lengths = [size.time // (1 + row % 3 * size.masked) for row in range(size.batch)]
        arguments = {**given, "sequence_lengths": lengths, "direction": "bidirectional"}
        # Not `run`: on a GPU it would call TensorFlow's op.
        is_oracle = given["input"].dtype == oracle.DTYPE
        call = oracle.call if is_oracle else lambda op, **a: op_definitions.function(op)(**a)
        return list(call(size.op, **arguments))[:3]
    steps = np.arange(size.batch * size.time).reshape(size.batch, size.time) % 7 > 0
    mask = tf.constant(steps if size.masked else [], tf.bool)
    return call_layer(size.op, **given, mask=mask, return_sequences=True, training=True)


def _both_passes(
    size: Size, dtype: tf.DType, device: str, constant: Callable[..., Any] = tf.constant
) -> Callable[[], list[Any]]:
    """A function that returns the results of the op and its gradients on a device."""
    given = _weights(size, dtype, device, constant)
    wide = tf.float64 if constant is oracle.constant else tf.float32

    @tf.function(autograph=False)
    def both(given: dict[str, Any]) -> list[Any]:
        with tf.device(device):
            with tf.GradientTape() as tape:
                tape.watch(given)
                output, *states = _results(size, given)
                # Scaled, so that gradients are of the size of 1: in half, those of a mean over all
                # outputs would be below the least normal number.
                scale = float(size.batch * size.time)
                loss = scale * tf.reduce_mean(tf.square(tf.cast(output, wide)))
            gradients = tape.gradient(loss, given, unconnected_gradients="zero")
            return [output, *states, *(tf.cast(g, wide) for g in gradients.values())]

    return lambda: both(given)


def _measure(size: Size, device: str) -> Result:
    """Milliseconds of both passes on the device, on the CPU, and of stock Keras on the device."""
    with tf.device(device):
        x = tf.random.stateless_normal([size.batch, size.time, size.units], [1, 2])
    times = {
        "device": _milliseconds(_both_passes(size, tf.float32, device)),
        "CPU": _milliseconds(_both_passes(size, tf.float32, "CPU:0")),
    }
    try:
        times["stock"] = _milliseconds(_stock(size, x, device))
    except Exception:  # TensorFlow's failure is none of ours
        times["stock"] = math.nan
    return Result(0.0, 0.0, times=times)


def _stock(size: Size, x: tf.Tensor, device: str) -> Callable[[], list[Any]]:
    with tf.device(device):
        layer = keras.layers.LSTM(size.units, return_sequences=True)
        layer.build(x.shape)

    @tf.function(autograph=False)
    def both() -> list[Any]:
        with tf.device(device), tf.GradientTape() as tape:
            tape.watch(x)
            output = layer(x, training=True)
            loss = tf.reduce_mean(tf.square(output))
        with tf.device(device):
            return [output, *tape.gradient(loss, [x, *layer.trainable_variables])]

    return both


def _milliseconds(function: Callable[[], list[Any]]) -> float:
    """The median time of a call until its results are there. The first two calls do not count."""
    times = []
    for _ in range(REPEATS + 2):
        start = time.perf_counter()
        for result in function():
            result.numpy()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[2:])
