"""Checks of training programs: one tf.function with ops of TensorFlow around ours.

On the device TensorFlow's ops make the inputs of our ops and read their results, without a copy
from or to the host between them. The program has three steps of gradient descent.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import _cells, _placement, composite, raw_ops
from tf_lstm_ops.cudnn_layout import Model
from tf_lstm_ops.selftest import oracle
from tf_lstm_ops.selftest.check import DTYPES, TOLERANCES, Check, Result, compare
from tf_lstm_ops.selftest.ops import call_layer, has_layer_kernel

TIME, BATCH, INPUTS, UNITS, LAYERS = 12, 4, 5, 8, 3
STEPS = 3  # of gradient descent
RATE = 0.02
# Weights after some steps differ more than the results of one call.
FACTOR = 3

# Weights, by shape; and the layers: from [T, B, UNITS] and the weights to [T, B, ...].
Shapes = list[tuple[int, ...]]
Layers = Callable[[Any, list[Any]], Any]


def checks(device: str) -> Iterator[Check]:
    """The checks of all programs and types.

    Args:
      device: such as "GPU:0".

    Yields:
      A check for each program and type for which the device has a kernel.
    """
    on_metal = device.startswith("GPU") and _placement.on_metal()
    for op, what, shapes, layers in _programs(on_metal):
        for dtype in DTYPES:
            if has_layer_kernel(op, device, dtype):
                name = f"{op}: {what}, trained {STEPS} steps, {dtype.name}"
                yield Check(name, functools.partial(_check, shapes, layers, dtype))


def _check(shapes: Shapes, layers: Layers, dtype: tf.DType, device: str) -> Result:
    got = _train(shapes, layers, dtype, device)
    if oracle.is_oracle(device):
        with composite.plain_ops():
            want = _train(shapes, layers, dtype, "CPU:0", oracle.constant)
    else:
        want = _train(shapes, layers, dtype, "CPU:0")
    return compare(got, want, FACTOR * TOLERANCES[dtype])


def _train(
    shapes: Shapes,
    layers: Layers,
    dtype: tf.DType,
    device: str,
    constant: Callable[..., Any] = tf.constant,
) -> list[Any]:
    """The losses, the last gradients and the weights after training on a device."""
    rng = np.random.default_rng(0)
    around = [(INPUTS, UNITS), (UNITS,)]  # of the ops before our layers

    with tf.device(device):
        x = constant(rng.standard_normal((TIME * BATCH, INPUTS)), dtype)
        first = [constant(rng.standard_normal(s) / 3, dtype) for s in [*around, *shapes]]

    def train(x: tf.Tensor, weights: list[Any]) -> list[Any]:
        losses, gradients = [], []
        for _ in range(STEPS):
            with tf.device(device), tf.GradientTape() as tape:
                tape.watch(weights)
                hidden = tf.tanh(tf.matmul(x, weights[0]) + weights[1])
                output = layers(tf.reshape(hidden, [TIME, BATCH, UNITS]), weights[2:])
                loss = tf.reduce_sum(tf.square(tf.tanh(output) - 0.5)) / BATCH
            with tf.device(device):
                gradients = tape.gradient(loss, weights)
                weights = [
                    w - tf.cast(RATE, x.dtype) * g for w, g in zip(weights, gradients, strict=True)
                ]
            losses.append(loss)
        return [*losses, *gradients, *weights]

    if constant is tf.constant:
        train = tf.function(train, autograph=False)
    # else eagerly: the graph of plain ops would take a minute to make
    return [value.numpy() for value in train(x, first)]


def _programs(on_metal: bool = False) -> Iterator[tuple[str, str, Shapes, Layers]]:
    """The op, a description, the weights' shapes and the layers of each program. `on_metal`: those
    that Metal kernels compute."""
    three = f"{LAYERS} layers, both directions"
    for op, gates in (("KerasLSTM", 4), ("KerasGRU", 3)):
        for masked in (False, True):
            what = three + (", mask" if masked else "")
            yield op, what, _keras_shapes(gates), functools.partial(_keras, op, masked)
    # Not rnn_relu: where a rounded value has the other sign, its gradient differs as a whole.
    for mode in ("lstm",) if on_metal else ("lstm", "gru", "rnn_tanh"):
        for lengths in (False, True):
            what = f"{mode}, {three}" + (", lengths" if lengths else "")
            yield "CudnnRNNV3", what, *_cudnn(mode, 0, lengths)
    if not on_metal:
        yield "CudnnRNNV3", f"lstm, {three}, projection", *_cudnn("lstm", UNITS // 2, False)
    block = [(2 * UNITS, 4 * UNITS), (4 * UNITS,), (UNITS,), (UNITS,), (UNITS,)]
    for op in ("BlockLSTM", "BlockLSTMV2"):
        yield op, "peephole", block, functools.partial(_block, op)
    mpsgraph: Shapes = [(4 * UNITS, UNITS), (4 * UNITS, UNITS), (4 * UNITS,)]
    yield "MPSGraphLSTM", "after a layer", mpsgraph, _mpsgraph


def _keras_shapes(gates: int) -> Shapes:
    bias = (4 * UNITS,) if gates == 4 else (2, 3 * UNITS)
    shapes: Shapes = []
    for layer in range(LAYERS):
        inputs = UNITS if layer == 0 else 2 * UNITS
        shapes += 2 * [(inputs, gates * UNITS), (UNITS, gates * UNITS), bias]
    return shapes


def _keras(op: str, masked: bool, x: tf.Tensor, weights: list[Any]) -> Any:
    steps = np.arange(BATCH * TIME).reshape(BATCH, TIME) % 3 > 0
    mask = tf.constant(steps if masked else [], tf.bool)
    names = [f"initial_{letter}" for letter in _cells.BY_OP[op].states]
    states = dict.fromkeys(names, tf.zeros([BATCH, UNITS], x.dtype))
    given = iter(weights)
    x = tf.transpose(x, [1, 0, 2])
    for _ in range(LAYERS):
        both = []
        for backwards in (False, True):
            own = {name: next(given) for name in ("kernel", "recurrent_kernel", "bias")}
            options = {"go_backwards": backwards, "return_sequences": True, "training": True}
            output = call_layer(op, x=x, mask=mask, **states, **own, **options)[0]
            both.append(tf.reverse(output, [1]) if backwards else output)
        x = tf.concat(both, axis=-1)
    return x


def _cudnn(mode: str, projection: int, with_lengths: bool) -> tuple[Shapes, Layers]:
    model = Model(mode, UNITS, UNITS, LAYERS, 2, projection)
    lengths = [TIME, 1, 0 if not projection else 2, TIME // 2] if with_lengths else [TIME] * BATCH

    def layers(x: tf.Tensor, weights: list[Any]) -> Any:
        h = tf.zeros([2 * LAYERS, BATCH, projection or UNITS], x.dtype)
        is_lstm = mode == "lstm"
        return raw_ops.CudnnRNNV3(
            input=x,
            input_h=h,
            input_c=tf.zeros([2 * LAYERS, BATCH, UNITS] if is_lstm else [], x.dtype),
            params=weights[0],
            sequence_lengths=tf.constant(lengths, tf.int32),
            rnn_mode=mode,
            direction="bidirectional",
            num_proj=projection,
        ).output

    return [(model.size(),)], layers


def _block(op: str, x: tf.Tensor, weights: list[Any]) -> Any:
    w, b, wci, wcf, wco = weights
    zero = tf.zeros([BATCH, UNITS], x.dtype)
    return getattr(raw_ops, op)(
        seq_len_max=tf.constant(TIME - 1, tf.int64),
        x=x,
        cs_prev=zero,
        h_prev=zero,
        w=w,
        wci=wci,
        wcf=wcf,
        wco=wco,
        b=b,
        use_peephole=True,
    ).h


def _mpsgraph(x: tf.Tensor, weights: list[Any]) -> Any:
    recurrent_weight, input_weight, bias = weights
    return raw_ops.MPSGraphLSTM(
        source=x,
        recurrent_weight=recurrent_weight,
        input_weight=input_weight,
        bias=bias,
        training=True,
    )[0]
