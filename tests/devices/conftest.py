"""A GPU that is not real: TensorFlow's CudnnRNNV3 runs on this package's CPU kernel."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import _gpu
from tf_lstm_ops.raw_ops import stock_cudnn


@pytest.fixture
def turn_off(monkeypatch):
    """A function after which this process has a GPU whose kernels are off."""

    def turn_off(state: str = "never run") -> None:
        status = _gpu.Status(state == "passed", state, "", cuda=True)
        monkeypatch.setattr(_gpu, "_status", status)
        monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [kind])
        # Whatever TensorFlow was built with.
        monkeypatch.setattr(stock_cudnn, "_types", lambda: {tf.float32, tf.float64, tf.bfloat16})
        reserves: list[Any] = []
        for op in ("CudnnRNNV3", "CudnnRNNBackpropV3"):
            monkeypatch.setattr(tf.raw_ops, op, as_on_a_gpu(getattr(tf.raw_ops, op), reserves))

    return turn_off


def as_on_a_gpu(op: Any, reserves: list[Any]) -> Any:
    """TensorFlow's op, or its gradient op, with what was seen of its kernels on a GPU.

    A call for which the kernel does not pad is refused here: the kernel keeps cuDNN's descriptor
    for all calls of the same shapes, whether they are padded or not. A projection is an error. What
    only an LSTM has, and in double the steps past a length, are arbitrary numbers, here NaN. The
    gradient op writes to reserve_space, so no other call may have it.
    """

    def call(*, input: tf.Tensor, sequence_lengths: tf.Tensor, time_major: bool, **other: Any):
        assert not other.get("num_proj")
        steps = tf.shape(input)[0 if time_major else 1]
        is_padded = not time_major or tf.reduce_any(sequence_lengths != steps)
        is_step = tf.sequence_mask(sequence_lengths, steps)
        is_step = (tf.transpose(is_step) if time_major else is_step)[:, :, tf.newaxis]

        def spoiled(name: str, value: tf.Tensor) -> tf.Tensor:
            if name in ("output_c", "input_c_backprop") and other["rnn_mode"] != "lstm":
                return value * np.nan
            is_sequence = name in ("output", "input_backprop")
            if is_sequence and input.dtype == tf.float64:
                return tf.where(is_step, value, np.nan)
            return value

        @tf.custom_gradient
        def spoiling(value: tf.Tensor) -> Any:
            return tf.identity(value), lambda grad: spoiled("input_backprop", grad)

        with tf.control_dependencies([tf.debugging.Assert(is_padded, ["not padded"])]):
            x = spoiling(input)
        lengths = {"sequence_lengths": sequence_lengths, "time_major": time_major}
        if "reserve_space" in other:  # to which the gradient op writes
            assert not any(other["reserve_space"] is r for r in reserves)
            reserves.append(other["reserve_space"])
        found = op(input=x, **lengths, **other)
        reserves.append(getattr(found, "reserve_space", None))
        return type(found)(*(spoiled(n, v) for n, v in found._asdict().items()))

    return call
