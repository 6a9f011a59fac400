"""Calls CudnnRNNV3 and stock layers before and after a plugin's library is in the process, and
prints a line for each call."""

import ctypes
import importlib
import sys

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops import _library, raw_ops

keras_rnn = importlib.import_module("keras.src.backend.tensorflow.rnn")
B, T, I, H = 2, 4, 3, 2  # noqa: E741
rng = np.random.default_rng(0)
x = tf.constant(rng.normal(size=(T, B, I)), tf.float32)
state = tf.zeros([1, B, H])


def arguments(mode: str, dtype: tf.DType = tf.float32) -> dict[str, object]:
    size = raw_ops.CudnnRNNParamsSize(
        num_layers=1, num_units=H, input_size=I, T=dtype, S=tf.int32, rnn_mode=mode
    )
    params = tf.constant(np.random.default_rng(1).normal(size=int(size[0])), dtype)
    states = dict.fromkeys(("input_h", "input_c"), tf.cast(state, dtype))
    inputs = {"input": tf.cast(x, dtype), **states, "params": params}
    return inputs | {"sequence_lengths": tf.fill([B], T), "rnn_mode": mode}


def call(name: str, mode: str, dtype: tf.DType = tf.float32) -> None:
    """A call under TensorFlow's own name against one under ours."""
    given = arguments(mode, dtype)
    want = raw_ops.CudnnRNNV3(**given).output
    try:
        found = tf.raw_ops.CudnnRNNV3(**given).output
    except tf.errors.InvalidArgumentError as error:
        print(f"{name}: refused" if "is ambiguous without CUDA" in str(error) else error)
    else:
        print(f"{name}: right" if np.array_equal(found, want) else f"{name}: wrong")


def backward() -> None:
    given = arguments("gru")
    forward = raw_ops.CudnnRNNV3(**given, is_training=True)
    saved = ("output", "output_h", "output_c")
    grads = {f"{n}_backprop": getattr(forward, n) for n in saved}
    try:
        tf.raw_ops.CudnnRNNBackpropV3(
            **given, **{n: getattr(forward, n) for n in saved}, **grads,
            reserve_space=forward.reserve_space, host_reserved=forward.host_reserved,
        )  # fmt: skip
    except tf.errors.InvalidArgumentError as error:
        is_refusal = "is ambiguous without CUDA" in str(error)
        print("gradient of gru with a plugin: refused" if is_refusal else error)


def layer(kind: type[keras.Layer]) -> None:
    """A stock layer that believes it has a GPU, in eager code, against its own loop."""
    layers = [kind(H, use_cudnn=use) for use in ("auto", False)]
    for one in layers:
        one.build((B, T, I))
    layers[1].set_weights(layers[0].get_weights())
    inputs = tf.transpose(x, [1, 0, 2])
    found, want = (one(inputs) for one in layers)
    is_right = np.allclose(found, want, rtol=0, atol=1e-6)
    print(f"keras.layers.{kind.__name__} with a plugin: {'right' if is_right else 'wrong'}")


def main(plugin: str) -> None:
    native = _library._native()
    native.tf_lstm_ops_set_cuda_build(False)
    call("gru", "gru", tf.float64)  # another kernel than the later calls'
    ctypes.CDLL(plugin)
    call("lstm with a plugin", "lstm")
    call("gru with a plugin", "gru")
    backward()
    # As Keras sees a Mac.
    keras_rnn._is_gpu_available = lambda: True
    no_cuda = {"is_cuda_build": False, "is_rocm_build": False}
    tf.sysconfig.get_build_info = lambda: no_cuda
    layer(keras.layers.GRU)
    layer(keras.layers.LSTM)
    native.tf_lstm_ops_set_cuda_build(True)
    call("gru with a plugin and CUDA", "gru", tf.half)


if __name__ == "__main__":
    main(sys.argv[1])
