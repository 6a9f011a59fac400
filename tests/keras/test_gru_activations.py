"""The activations of keras.GRU against the NumPy reference, exact gradients of that by complex
steps, stock Keras and plain ops."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import Array, Sizes, assert_close, copy_weights, evaluate, make_mask, rounding, upstream

import tf_lstm_ops
from oracle import derivatives, keras_gru_v2, keras_lstm_v2
from tf_lstm_ops import _targets, composite
from tf_lstm_ops.keras import options

SIZES = Sizes(batch=3, time=4, inputs=4, units=7)
ALL = {"return_sequences": True, "return_state": True, "dtype": "float64"}
NAMES = tuple(keras_lstm_v2.ACTIVATIONS)
# Each name at least once in each place.
PAIRS = [(name, NAMES[(k * 3 + 1) % len(NAMES)]) for k, name in enumerate(NAMES)]
OLD_KERAS = {"recurrent_activation": "hard_sigmoid"}  # the default of Keras 2.0 to 2.2
ACTIVATIONS: list[dict[str, str]] = [
    OLD_KERAS,
    *({"activation": a, "recurrent_activation": b} for a, b in PAIRS),
]
WITH_OTHERS: list[dict[str, Any]] = [
    {**OLD_KERAS, "go_backwards": True},
    {**OLD_KERAS, "use_bias": False},
    {"activation": "silu", "recurrent_activation": "gelu", "zero_output_for_mask": True},
]
both_resets = pytest.mark.parametrize("reset_after", [True, False])


def filled(layer: Any, rng: np.random.Generator) -> Any:
    """The layer, built, with small weights: unbounded gates let the state grow without bound."""
    layer.build((None, None, SIZES.inputs))
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(0, 0.2, weight.shape))
    return layer


def make_gru(rng: np.random.Generator, **options: Any) -> Any:
    layer = filled(tf_lstm_ops.keras.GRU(SIZES.units, **{**ALL, **options}), rng)
    assert layer.uses_fused_op
    return layer


def inputs_of(rng: np.random.Generator) -> list[Array]:
    shapes = (SIZES.batch, SIZES.time, SIZES.inputs), (SIZES.batch, SIZES.units)
    return [rng.normal(size=shape) for shape in shapes]


@both_resets
@pytest.mark.parametrize(("activation", "recurrent_activation"), PAIRS)
def test_against_the_reference(
    activation: str, recurrent_activation: str, reset_after: bool, rng: np.random.Generator
) -> None:
    options = {"activation": activation, "recurrent_activation": recurrent_activation}
    layer = make_gru(rng, reset_after=reset_after, **options)
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    inputs, weights = inputs_of(rng), [w.numpy() for w in layer.trainable_weights]
    arguments = keras_gru_v2.Arguments(*inputs, *weights)
    got = evaluate(layer, inputs, mask)
    # 10: as in test_projection_and_activations.py.
    bound = 10 * rounding(SIZES)
    wanted = keras_gru_v2.keras_gru_v2(arguments, **options, mask=mask)
    for a, b in zip(got.results, wanted, strict=True):
        assert_close(a, b, bound)

    def loss(values: Any) -> Any:
        results = keras_gru_v2.keras_gru_v2(keras_gru_v2.Arguments(*values), **options, mask=mask)
        return sum(np.sum(upstream(r) * r) for r in results)

    names = ("x", "h0", "kernel", "recurrent_kernel", "bias")
    for name, gradient in zip(names, derivatives.complex_step(loss, arguments), strict=True):
        assert_close(got.gradients[name], gradient, bound, name)


@both_resets
@pytest.mark.parametrize("options", [*ACTIVATIONS, *WITH_OTHERS], ids=str)
def test_against_stock_keras_and_plain_ops(
    options: dict[str, Any], reset_after: bool, rng: np.random.Generator
) -> None:
    options = {**options, "reset_after": reset_after}
    layer = make_gru(rng, **options)
    stock = filled(keras.layers.GRU(SIZES.units, **ALL, **options), rng)
    copy_weights(layer, stock)
    inputs, mask = inputs_of(rng), make_mask("holes", SIZES.batch, SIZES.time, rng)
    got, wanted = evaluate(layer, inputs, mask), evaluate(stock, inputs, mask)
    with composite.plain_ops():
        plain = evaluate(layer, inputs, mask)
    for a, b in zip(got.results, plain.results, strict=True):
        assert_close(b, a, 10 * rounding(SIZES))
    # Keras has the constants of gelu and leaky_relu in float32.
    in_float32 = {"gelu", "leaky_relu"} & set(options.values())
    bound = 10 * rounding(SIZES, "float32" if in_float32 else "float64")
    for a, b in zip(got.results, wanted.results, strict=True):
        assert_close(a, b, bound)
    for name, gradient in wanted.gradients.items():
        assert_close(got.gradients[name], gradient, bound, name)


@both_resets
def test_dropout_of_each_gate(reset_after: bool, rng: np.random.Generator) -> None:
    """Each gate has multipliers of its own, of x and of h."""
    options = {"implementation": 1, "dropout": 0.3, "recurrent_dropout": 0.3, "seed": 1}
    layer, loop = (
        filled(tf_lstm_ops.keras.GRU(7, reset_after=reset_after, **ALL, **options, **o), rng)
        for o in (OLD_KERAS, {"recurrent_activation": lambda z: keras.ops.hard_sigmoid(z)})
    )
    copy_weights(layer, loop)
    assert layer.uses_fused_op and not loop.uses_fused_op
    inputs, mask = inputs_of(rng), make_mask("holes", SIZES.batch, SIZES.time, rng)
    got, wanted = (evaluate(a, inputs, mask, training=True) for a in (layer, loop))
    for a, b in zip(got.results, wanted.results, strict=True):
        assert_close(a, b, 10 * rounding(SIZES))
    for name, gradient in wanted.gradients.items():
        assert_close(got.gradients[name], gradient, 10 * rounding(SIZES), name)


@both_resets
@pytest.mark.parametrize("options", [OLD_KERAS, {"activation": "gelu"}], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dtypes(
    dtype: str, options: dict[str, str], reset_after: bool, rng: np.random.Generator
) -> None:
    """Against float64 with the same, rounded, weights and inputs."""
    # TensorFlow has no QR decomposition in bfloat16, which the default initializer needs.
    common = {"recurrent_initializer": "glorot_uniform", "reset_after": reset_after, **options}
    narrow, wide = make_gru(rng, **{**common, "dtype": dtype}), make_gru(rng, **common)
    for a, b in zip(narrow.weights, wide.weights, strict=True):
        b.assign(tf.cast(a, tf.float64))
    inputs = [tf.cast(tf.cast(v, dtype), tf.float64).numpy() for v in inputs_of(rng)]
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    got, wanted = evaluate(narrow, inputs, mask), evaluate(wide, inputs, mask)
    # 20 roundings: as in test_projection_and_activations.py.
    bound = 20 * {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    for a, b in zip(got.results, wanted.results, strict=True):
        assert_close(a, b, bound)
    for name, gradient in wanted.gradients.items():
        assert_close(got.gradients[name], gradient, bound, name)


@both_resets
@pytest.mark.parametrize(
    "options", [OLD_KERAS, {"activation": "gelu", "recurrent_activation": "silu"}], ids=str
)
def test_second_derivatives(
    options: dict[str, str], reset_after: bool, rng: np.random.Generator
) -> None:
    """The derivative of the gradient along a direction, against differences of the gradient."""
    layer = make_gru(rng, reset_after=reset_after, **options)
    mask = tf.constant(make_mask("holes", SIZES.batch, SIZES.time, rng))
    values = inputs_of(rng)
    direction, towards = (derivatives.unit_direction(rng, values) for _ in range(2))

    def gradient_along(point: list[Any]) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(point)
            results = layer(point[0], initial_state=point[1], mask=mask)
            loss = sum(tf.reduce_sum(upstream(r) * r) for r in results)
        found = tape.gradient(loss, point)
        return sum(tf.reduce_sum(g * d) for g, d in zip(found, direction, strict=True))

    with tf.GradientTape() as tape:
        tensors = [tf.constant(v) for v in values]
        tape.watch(tensors)
        along = gradient_along(tensors)
    second = tape.gradient(along, tensors)
    got = sum(np.sum(g.numpy() * t) for g, t in zip(second, towards, strict=True))
    wanted = derivatives.central_difference(
        lambda point: gradient_along([tf.constant(v) for v in point]).numpy(), values, towards
    )
    # Of fourth order: see central_difference. No argument comes near a kink.
    assert abs(got - wanted) < 1e-8


@pytest.mark.parametrize("reset_after", [True, pytest.param(False, marks=pytest.mark.full)])
def test_xla(reset_after: bool, rng: np.random.Generator) -> None:
    layer = make_gru(rng, reset_after=reset_after, **OLD_KERAS)
    inputs, mask = inputs_of(rng), make_mask("holes", SIZES.batch, SIZES.time, rng)

    @tf.function(jit_compile=True)
    def compiled(x: tf.Tensor, h: tf.Tensor) -> Any:
        return layer(x, initial_state=h, mask=tf.constant(mask))

    wanted = evaluate(layer, inputs, mask).results
    for a, b in zip(wanted, compiled(*map(tf.constant, inputs)), strict=True):
        assert_close(b.numpy(), a, 10 * rounding(SIZES))


@both_resets
def test_bidirectional(reset_after: bool, rng: np.random.Generator) -> None:
    options = {"reset_after": reset_after, "return_sequences": True, "dtype": "float64"}
    ours, stock = (
        filled(package.Bidirectional(package.GRU(7, **options, **OLD_KERAS), dtype="float64"), rng)
        for package in (tf_lstm_ops.keras, keras.layers)
    )
    copy_weights(ours, stock)
    inputs, mask = inputs_of(rng)[:1], make_mask("right", SIZES.batch, SIZES.time, rng)
    got, wanted = evaluate(ours, inputs, mask), evaluate(stock, inputs, mask)
    assert_close(got.results[0], wanted.results[0], 10 * rounding(SIZES))
    assert_close(got.gradients["x"], wanted.gradients["x"], 10 * rounding(SIZES))


def test_cudnn_is_not_asked_for_other_activations() -> None:
    assert options.why_not(tf_lstm_ops.keras.GRU(3), _targets.CUDNN) is None
    assert options.why_not(tf_lstm_ops.keras.GRU(3, **OLD_KERAS), _targets.CUDNN)
