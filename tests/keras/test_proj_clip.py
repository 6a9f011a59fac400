"""proj_clip of keras.LSTM against the NumPy reference, its gradients by complex steps, and a loop
of TensorFlow's ops with tf.clip_by_value, as in TF1's LSTMCell(num_proj=P, proj_clip=...)."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import Array, Evaluation, Sizes, assert_close, evaluate, make_mask, rounding, upstream

from oracle import derivatives, keras_lstm_v2
from tf_lstm_ops import composite
from tf_lstm_ops.keras import LSTM, Bidirectional, LSTMCell, convert_model

SIZES = Sizes(batch=3, time=5, inputs=4, units=7)
P, CLIP = 3, 0.1875  # a number of all types
ALL = {"return_sequences": True, "return_state": True, "dtype": "float64"}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"use_bias": False, "go_backwards": True},
    {"use_peephole": True},
    {"activation": "silu", "recurrent_activation": "hard_sigmoid"},
]


def make_lstm(rng: np.random.Generator, **options: Any) -> Any:
    layer = LSTM(SIZES.units, **{**ALL, "projection_size": P, "proj_clip": CLIP, **options})
    layer.build((None, None, SIZES.inputs))
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))
    return layer


def inputs_of(rng: np.random.Generator) -> list[Array]:
    shapes = (SIZES.batch, SIZES.time, SIZES.inputs), (SIZES.batch, P), (SIZES.batch, SIZES.units)
    return [rng.normal(size=shape) for shape in shapes]


def assert_some_are_clipped(outputs: Array, clip: float = CLIP) -> None:
    sizes = np.abs(outputs)
    assert sizes.max() == clip
    assert 0.1 < np.mean(sizes == clip) < 0.9


def assert_same(got: Evaluation, wanted: Evaluation, bound: float) -> None:
    for a, b in zip(got.results, wanted.results, strict=True):
        assert_close(a, b, bound)
    for name, gradient in wanted.gradients.items():
        assert_close(got.gradients[name], gradient, bound, name)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("mask", ["none", "holes"])
def test_against_the_reference(mask: str, options: dict[str, Any], rng: Any) -> None:
    layer = make_lstm(rng, **options)
    assert layer.uses_fused_op
    valid, inputs, cell = make_mask(mask, SIZES.batch, SIZES.time, rng), inputs_of(rng), layer.cell
    peephole = np.zeros((3, 7)) if cell.peephole_kernel is None else cell.peephole_kernel.numpy()
    bias = np.zeros(28) if cell.bias is None else cell.bias.numpy()
    weights = cell.kernel.numpy(), cell.recurrent_kernel.numpy(), bias, peephole
    arguments = keras_lstm_v2.Arguments(*inputs, *weights, cell.projection_kernel.numpy())
    given = {k: v for k, v in options.items() if "activation" in k or k == "go_backwards"}

    def reference(values: Any) -> Any:
        return keras_lstm_v2.keras_lstm_v2(
            keras_lstm_v2.Arguments(*values), **given, mask=valid, proj_clip=CLIP
        )

    def loss(values: Any) -> Any:
        return sum(np.sum(upstream(r) * r) for r in reference(values))

    got = evaluate(layer, inputs, valid)
    assert_some_are_clipped(got.results[0])
    # 10: as in test_projection_and_activations.py.
    for a, b in zip(got.results, reference(arguments), strict=True):
        assert_close(a, b, 10 * rounding(SIZES))
    names = ("x", "h0", "c0", "kernel", "recurrent_kernel", "bias", "peephole_kernel")
    gradients = derivatives.complex_step(loss, arguments)
    for name, gradient in zip((*names, "projection_kernel"), gradients, strict=True):
        if name in got.gradients:
            assert_close(got.gradients[name], gradient, 10 * rounding(SIZES), name)


def loop(layer: Any, x: tf.Tensor, h: tf.Tensor, c: tf.Tensor, cell_clip: float) -> list[tf.Tensor]:
    """TF1's LSTMCell, but for the gradient of cell_clip, which is the identity."""
    kernel, recurrent, bias, projection = layer.trainable_weights
    outputs = []
    for x_t in tf.unstack(x, axis=1):
        z = x_t @ kernel + h @ recurrent + bias
        i, f, n, o = tf.split(z, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(n)
        c = tf.grad_pass_through(lambda v: tf.clip_by_value(v, -cell_clip, cell_clip))(c)
        h = tf.clip_by_value((tf.sigmoid(o) * tf.tanh(c)) @ projection, -CLIP, CLIP)
        outputs.append(h)
    return [tf.stack(outputs, axis=1), h, c]


def test_the_cell_of_elmo(rng: np.random.Generator) -> None:
    """A stack of two with both clips, against a loop of TensorFlow's ops."""
    clip = 0.375
    first = make_lstm(rng, cell_clip=clip)
    second = LSTM(SIZES.units, **ALL, projection_size=P, proj_clip=CLIP, cell_clip=clip)
    second.build((None, None, P))
    for weight in second.trainable_weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))
    layers = first, second
    x, *states = (tf.constant(v) for v in inputs_of(rng))
    weights = [w.value for layer in layers for w in layer.trainable_weights]

    def run(call: Any) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            tape.watch([x, *states])
            y, *finals = call(first, x)
            results = [*finals, *call(second, y)]
            loss = sum(tf.reduce_sum(upstream(r) * r) for r in results)
        return results, tape.gradient(loss, [x, *states, *weights])

    got, gradients = run(lambda layer, v: layer(v, initial_state=states))
    wanted, expected = run(lambda layer, v: loop(layer, v, *states, clip))
    assert_some_are_clipped(got[2].numpy())
    assert np.abs(got[-1]).max() == clip
    for a, b in zip([*got, *gradients], [*wanted, *expected], strict=True):
        assert_close(a.numpy(), b.numpy(), 10 * rounding(SIZES))


@pytest.mark.parametrize("options", [*OPTIONS, {"recurrent_dropout": 0.3}], ids=str)
def test_against_keras_own_loop_and_plain_ops(
    options: dict[str, Any], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = make_lstm(rng, **options)
    inputs, mask = inputs_of(rng), make_mask("holes", SIZES.batch, SIZES.time, rng)
    got = evaluate(layer, inputs, mask)
    with composite.plain_ops():
        assert_same(evaluate(layer, inputs, mask), got, 10 * rounding(SIZES))
    monkeypatch.setattr(type(layer), "fallback_reason", "a test")
    assert_same(evaluate(layer, inputs, mask), got, 10 * rounding(SIZES))


@pytest.mark.parametrize("sequences", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dtypes(dtype: str, sequences: bool, rng: np.random.Generator) -> None:
    """Against float64 with the same, rounded, weights and inputs. The bound 0.2 is no number of
    these types: the gradient op knows a clipped h by the rounded bound."""
    options = {"recurrent_initializer": "glorot_uniform", "return_sequences": sequences}
    options["proj_clip"] = 0.2
    narrow, wide = make_lstm(rng, **options, dtype=dtype), make_lstm(rng, **options)
    for a, b in zip(narrow.weights, wide.weights, strict=True):
        b.assign(tf.cast(a, tf.float64))
    inputs = [tf.cast(tf.cast(v, dtype), tf.float64).numpy() for v in inputs_of(rng)]
    got, wanted = evaluate(narrow, inputs), evaluate(wide, inputs)
    # 20 roundings: as in test_projection_and_activations.py.
    bound = 20 * {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    assert_same(got, wanted, bound)
    assert_some_are_clipped(wanted.results[0], np.float32(0.2))


def test_second_derivatives(rng: np.random.Generator) -> None:
    """The derivative of the gradient along a direction, against differences of the gradient."""
    layer = make_lstm(rng)
    mask, values = tf.constant(make_mask("holes", 3, 5, rng)), inputs_of(rng)
    direction, towards = (derivatives.unit_direction(rng, values) for _ in range(2))

    def gradient_along(point: list[Any]) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(point)
            results = layer(point[0], initial_state=point[1:], mask=mask)
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
    # Of fourth order: see central_difference. No h comes near a bound.
    assert abs(got - wanted) < 1e-8


def test_both_directions(rng: np.random.Generator) -> None:
    options = {"projection_size": P, "return_sequences": True}
    layer = Bidirectional(LSTM(7, proj_clip=CLIP, **options))
    x = rng.normal(size=(3, 5, 4)).astype("float32")
    both = layer(x)
    assert layer.uses_fused_op
    first, second = layer.forward_layer(x), layer.backward_layer(x)[:, ::-1]
    np.testing.assert_array_equal(both, tf.concat([first, second], -1))
    other = LSTM(7, proj_clip=0.5, go_backwards=True, **options)
    unlike = Bidirectional(LSTM(7, proj_clip=CLIP, **options), backward_layer=other)
    assert "proj_clip" in unlike.fallback_reason


def test_configuration() -> None:
    for made in (LSTM(7, projection_size=3, proj_clip=0.5), LSTMCell(7, projection_size=3)):
        again = type(made).from_config(made.get_config())
        assert again.proj_clip == made.proj_clip
    assert "proj_clip" not in LSTM(7).get_config()
    model = keras.Sequential([keras.Input((5, 4)), LSTM(7, projection_size=3, proj_clip=0.5)])
    with pytest.raises(ValueError, match="proj_clip"):
        convert_model(model, to="stock")


@pytest.mark.parametrize("layer", [LSTM, LSTMCell])
@pytest.mark.parametrize("clip", [0, -1.0, float("nan")])
def test_a_clip_must_be_positive(layer: Any, clip: float) -> None:
    with pytest.raises(ValueError, match=r"proj_clip must be None or positive\. Received: "):
        layer(7, projection_size=3, proj_clip=clip)


@pytest.mark.parametrize("layer", [LSTM, LSTMCell])
def test_it_needs_a_projection(layer: Any) -> None:
    with pytest.raises(ValueError, match=r"it needs projection_size\. Received: 0\.5"):
        layer(7, proj_clip=0.5)
