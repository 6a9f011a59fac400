"""proj_clip of keras.LSTM and StackedLSTM against the NumPy reference with exact gradients, and
against a loop of TensorFlow's ops with tf.clip_by_value."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import Sizes, assert_close, evaluate, make_mask, random_weights, rounding, upstream

import tf_lstm_ops
from oracle import derivatives, keras_lstm_v2
from tf_lstm_ops import _targets, composite, op_definitions
from tf_lstm_ops.keras import options as options_of

from .stacks import ROUNDING, B, H, I, T, make, weighted

SIZES = Sizes(batch=3, time=4, inputs=4, units=7)
P, CLIP = 3, 0.03125
NAMES = ("x", "h0", "c0", "kernel", "recurrent_kernel", "bias", "peephole_kernel")


def make_lstm(rng: np.random.Generator, **options: Any) -> Any:
    options = {"projection_size": P, "proj_clip": CLIP, "return_state": True, **options}
    layer = tf_lstm_ops.keras.LSTM(
        SIZES.units, **{"return_sequences": True, "dtype": "float64", **options}
    )
    layer.build((None, None, SIZES.inputs))
    random_weights(layer, rng)
    for weight in layer.trainable_weights:
        weight.assign(0.4 * weight)
    return layer


def inputs_of(rng: np.random.Generator) -> list[np.ndarray]:
    shapes = (SIZES.batch, SIZES.time, SIZES.inputs), (SIZES.batch, P), (SIZES.batch, SIZES.units)
    return [rng.normal(size=shape) for shape in shapes]


def wanted_of(layer: Any, inputs: list[np.ndarray], mask: Any) -> tuple[Any, dict[str, Any]]:
    """The reference's results, and its gradients by name."""
    cell = layer.cell
    peephole = cell.peephole_kernel
    arguments = keras_lstm_v2.Arguments(
        *inputs,
        *(w.numpy() for w in (cell.kernel, cell.recurrent_kernel, cell.bias)),
        np.zeros((3, SIZES.units)) if peephole is None else peephole.numpy(),
        cell.projection_kernel.numpy(),
    )

    def run(values: Any) -> list[np.ndarray]:
        results = keras_lstm_v2.keras_lstm_v2(
            keras_lstm_v2.Arguments(*values),
            cell_clip=layer.cell_clip,
            proj_clip=layer.proj_clip,
            mask=mask,
            go_backwards=layer.go_backwards,
        )
        outputs = results.outputs if layer.return_sequences else results.outputs[:, -1]
        return [outputs, results.h, results.c]

    def loss(values: Any) -> Any:
        return sum(np.sum(upstream(r) * r) for r in run(values))

    gradients = derivatives.complex_step(loss, arguments)
    return run(arguments), dict(zip((*NAMES, "projection_kernel"), gradients, strict=True))


def compare_with_plain_ops(layer: Any, inputs: list[np.ndarray], mask: Any, bound: float) -> None:
    """Results and gradients."""

    def run() -> list[Any]:
        x = tf.constant(inputs[0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = layer(x, mask=None if mask is None else tf.constant(mask))
            loss = tf.reduce_sum(upstream(output) * output)
        return [output, *tape.gradient(loss, [x, *(w.value for w in layer.trainable_weights)])]

    got = run()
    assert (np.abs(got[0]) == CLIP).any()
    with composite.plain_ops():
        want = run()
    for a, b in zip(got, want, strict=True):
        assert_close(a.numpy(), b.numpy(), bound)


OPTIONS = [
    {},
    {"return_sequences": False},
    {"go_backwards": True},
    {"cell_clip": 0.1875, "use_peephole": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("mask", ["none", "holes", "one_row_false"])
def test_against_the_reference(options, mask, rng):
    layer = make_lstm(rng, **options)
    assert layer.uses_fused_op
    inputs = inputs_of(rng)
    valid = make_mask(mask, SIZES.batch, SIZES.time, rng)
    got = evaluate(layer, inputs, valid)
    results, gradients = wanted_of(layer, inputs, valid)
    assert (np.abs(results[0]) == CLIP).any() and (np.abs(results[0]) < CLIP).any()
    # 10: as in test_projection_and_activations.py.
    for a, b in zip(got.results, results, strict=True):
        assert_close(a, b, 10 * rounding(SIZES))
    assert {"x", "h0", "c0", "projection_kernel"} <= got.gradients.keys()
    for name, gradient in got.gradients.items():
        assert_close(gradient, gradients[name], 10 * rounding(SIZES), name)


@pytest.mark.parametrize("batch", [1, 37])
def test_many_units_are_as_the_plain_ops(batch, rng):
    """More units and rows than a vector and a tile have, and a rest."""
    sizes = Sizes(batch, 5, 9, 70)
    options = {"projection_size": 37, "proj_clip": CLIP, "dtype": "float64"}
    layer = tf_lstm_ops.keras.LSTM(sizes.units, return_sequences=True, **options)
    x = rng.normal(size=(batch, sizes.time, sizes.inputs))
    layer.build(x.shape)
    random_weights(layer, rng)
    compare_with_plain_ops(layer, [x], None, 10 * rounding(sizes))


# The bound of the clip, and its neighbours; exact in each type.
VALUES = [0.25, 0.5, -0.5, 0.50390625, -0.50390625, 0.49609375, 2.0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("return_sequences", [False, True])
def test_the_gradient_at_the_bound_is_that_of_clip_by_value(return_sequences, dtype):
    """A layer whose h is x exactly: the gates are 1 and 0, the functions linear."""
    layer = tf_lstm_ops.keras.LSTM(
        2,
        activation="linear",
        recurrent_activation="hard_sigmoid",
        recurrent_initializer="zeros",
        projection_size=1,
        proj_clip=0.5,
        return_sequences=return_sequences,
        dtype=dtype,
    )
    layer.build((None, 1, 1))
    gate_bias = [9.0, 9.0, -9.0, -9.0, 0.0, 0.0, 9.0, 9.0]
    kernel = [[0, 0, 0, 0, 1, 0, 0, 0]]
    weights = (kernel, np.zeros((1, 8)), gate_bias, [[1.0], [0.0]])
    layer.set_weights([np.array(w, "float32") for w in weights])
    x = tf.constant(VALUES, dtype)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        got = tf.reshape(layer(x[:, None, None]), [-1])
        want = tf.clip_by_value(x, -0.5, 0.5)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(tape.gradient(got, x), tape.gradient(want, x))
    np.testing.assert_array_equal(tape.gradient(got, x), [1, 1, 1, 0, 0, 1, 0])


@pytest.mark.parametrize("options", OPTIONS[1:], ids=str)
def test_against_a_loop_and_plain_ops(options, rng, monkeypatch):
    """The cell by itself, in Keras' loop, and the composite that XLA compiles."""
    layer = make_lstm(rng, **{**options, "proj_clip": 0.1})  # which float32 rounds, as the op does
    inputs, mask = inputs_of(rng), make_mask("holes", SIZES.batch, SIZES.time, rng)
    found = [evaluate(layer, inputs, mask)]
    with composite.plain_ops():
        found.append(evaluate(layer, inputs, mask))
    monkeypatch.setattr(type(layer), "fallback_reason", "a test")
    found.append(evaluate(layer, inputs, mask))
    for other in found[1:]:
        for a, b in zip(other.results, found[0].results, strict=True):
            assert_close(a, b, 10 * rounding(SIZES))
        for name, gradient in found[0].gradients.items():
            assert_close(other.gradients[name], gradient, 10 * rounding(SIZES), name)


def test_one_op_for_both_directions(rng):
    layer = make_lstm(rng, return_state=False)
    both = tf_lstm_ops.keras.Bidirectional(layer, dtype="float64")
    both.build((None, None, SIZES.inputs))
    random_weights(both, rng)
    assert both.uses_fused_op
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    compare_with_plain_ops(both, inputs_of(rng)[:1], mask, 10 * rounding(SIZES))
    both.backward_layer.cell.proj_clip = 2 * CLIP
    assert "another proj_clip" in both.fallback_reason


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dtypes(dtype, rng):
    """Results against float64 with the same, rounded, weights and inputs. The gradient of an h near
    the bound depends on its rounding: test_the_gradient_at_the_bound has it."""
    options = {"recurrent_initializer": "glorot_uniform"}  # no QR decomposition in bfloat16
    narrow, wide = make_lstm(rng, dtype=dtype, **options), make_lstm(rng, **options)
    for a, b in zip(narrow.weights, wide.weights, strict=True):
        a.assign(tf.cast(b, a.dtype))
        b.assign(tf.cast(a, tf.float64))
    inputs = [tf.cast(tf.cast(v, dtype), tf.float64).numpy() for v in inputs_of(rng)]
    epsilon = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    # As in test_projection_and_activations.py.
    for a, b in zip(evaluate(narrow, inputs).results, evaluate(wide, inputs).results, strict=True):
        assert_close(a, b, 20 * epsilon)


@pytest.mark.parametrize("traced", [False, pytest.param(True, marks=pytest.mark.full)])
def test_second_derivatives(traced, rng):
    """The derivative of the gradient along a direction, against differences of the gradient."""
    layer = make_lstm(rng)
    x, h, c = (tf.constant(v) for v in inputs_of(rng))
    towards, along = rng.normal(size=(2, *x.shape))
    towards /= np.linalg.norm(towards)

    def bounded(x: Any) -> Any:
        return np.abs(layer(x, initial_state=[h, c])[0]) == CLIP

    # The gradient is continuous between the points of the difference: no h crosses the bound.
    assert (bounded(x - 2e-3 * towards) == bounded(x + 2e-3 * towards)).all()
    assert 0 < bounded(x).sum() < bounded(x).size

    def gradient_along(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.sin(3 * layer(x, initial_state=[h, c])[0]))
        return tf.reduce_sum(tape.gradient(loss, x) * along)

    if traced:
        gradient_along = tf.function(gradient_along)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = gradient_along(x)
    got = np.sum(tape.gradient(value, x) * towards)
    wanted = derivatives.central_difference(
        lambda point: gradient_along(tf.constant(point[0])).numpy(), [x.numpy()], [towards]
    )
    assert abs(got) > 1e-3
    assert abs(got - wanted) < 1e-8  # of fourth order: see central_difference


@pytest.mark.parametrize("form", ["forward", "backward", "both"])
@pytest.mark.parametrize("mask", ["none", "right", "holes"])
@pytest.mark.parametrize("options", [{"proj_clip": 0.2, "projection_size": 2}, {}], ids=str)
def test_a_stack_is_a_stack_of_layers(options, mask, form, rng):
    """ELMo's cell: a projection, and both clips. Results and gradients."""
    clips = {"cell_clip": 0.375, **options}
    layer = make(
        "lstm", rng, bidirectional=form == "both", go_backwards=form == "backward", **clips
    )
    assert layer._op == "KerasLSTM" and not _targets.computes(_targets.CUDNN, *options_of.of(layer))
    assert not _targets.computes(_targets.METAL, *options_of.of(layer))
    assert (layer.cell_clip, layer.proj_clip) == (0.375, options.get("proj_clip"))
    valid = make_mask(mask, B, T, rng)
    stack = []
    for k, arrays in enumerate(layer._arrays_by_layer()):
        own = {"return_sequences": True, "return_state": True, "dtype": "float64", **clips}
        one = tf_lstm_ops.keras.LSTM(H, go_backwards=form == "backward" and k == 0, **own)
        one = keras.layers.Bidirectional(one, dtype="float64") if form == "both" else one
        one.build((B, T, arrays[0].shape[0]))
        one.set_weights(arrays)
        stack.append(one)

    def run_stack(x: Any) -> list[Any]:
        masks = [valid, valid if form != "backward" or valid is None else valid[:, ::-1]]
        states: list[Any] = []
        for one, steps in zip(stack, masks, strict=True):
            x, *final = one(x, mask=None if steps is None else tf.constant(steps))
            states += final
        return [x, *states]

    x = tf.constant(rng.normal(size=(B, T, I)))
    found = []
    for call, weights in (
        (lambda: layer(x, mask=valid), layer.trainable_weights),
        (lambda: run_stack(x), [w for one in stack for w in one.trainable_weights]),
    ):
        sources = [x, *(w.value for w in weights)]
        with tf.GradientTape() as tape:
            tape.watch(x)
            results = call()
            loss = weighted(results, np.random.default_rng(3))
        found.append([*results, *tape.gradient(loss, sources)])
    assert (np.abs(found[0][2]) == 0.375).any()
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, **ROUNDING)


def test_a_stack_with_clips_and_dropout_is_saved_and_trained(tmp_path, rng):
    options = {"projection_size": 2, "cell_clip": 3.0, "proj_clip": 0.0625, "dropout": 0.5}
    layer = make("lstm", rng, return_state=False, **options)
    inputs = keras.Input((T, I), dtype="float64")
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = rng.normal(size=(B, T, I))
    np.testing.assert_array_equal(loaded(x), model(x))
    assert np.abs(model(x, training=True) - model(x)).max() > 1e-3
    assert np.abs(model(x)).max() == 0.0625


@pytest.mark.parametrize(
    "make_layer",
    [tf_lstm_ops.keras.LSTM, tf_lstm_ops.keras.LSTMCell, tf_lstm_ops.keras.StackedLSTM],
    ids=lambda cls: cls.__name__,
)
def test_wrong_arguments(make_layer):
    with pytest.raises(ValueError, match="proj_clip bounds the projected h, so it needs projectio"):
        make_layer(7, proj_clip=3.0)
    for bound in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="proj_clip must be None or positive"):
            make_layer(7, projection_size=P, proj_clip=bound)
        with pytest.raises(ValueError, match="cell_clip must be None or positive"):
            make_layer(7, cell_clip=bound)


def test_the_op_refuses_a_clip_without_a_projection():
    none = tf.zeros([0])
    names = ("bias", "peephole", "projection", "input_dropout", "recurrent_dropout")
    with pytest.raises(tf.errors.InvalidArgumentError, match="proj_clip is 3 but must be 0 where"):
        op_definitions.function("KerasLSTM")(
            x=tf.zeros([2, 5, 4]),
            mask=tf.zeros([0], tf.bool),
            initial_h=tf.zeros([2, 7]),
            initial_c=tf.zeros([2, 7]),
            kernel=tf.zeros([4, 28]),
            recurrent_kernel=tf.zeros([7, 28]),
            **dict.fromkeys(names, none),
            proj_clip=3.0,
        )
