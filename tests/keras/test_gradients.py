"""Gradients beyond the parity tests: which result is used, accuracy, second order, Jacobians."""

import numpy as np
import pytest
import tensorflow as tf
from pairs import (
    Sizes,
    assert_close,
    evaluate,
    evaluate_oracle,
    make_mask,
    make_pair,
    random_inputs,
    random_weights,
    rounding,
)

import tf_lstm_ops
from oracle.derivatives import central_difference

LSTM = tf_lstm_ops.keras.LSTM
SIZES = Sizes(batch=3, time=5, inputs=4, units=7)
FULL = {"return_sequences": True, "return_state": True}


@pytest.mark.parametrize("used", [0, 1, 2], ids=["outputs", "h", "c"])
def test_of_one_result_alone(used, rng):
    ours, theirs = make_pair(SIZES, rng, dtype="float64", **FULL)
    x, h0, c0 = map(tf.constant, random_inputs(SIZES, rng, states=True))
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    gradients = []
    for layer in ours, theirs:
        sources = [x, h0, c0, *(w.value for w in layer.trainable_weights)]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            result = layer(x, initial_state=[h0, c0], mask=mask)[used]
        gradients.append(tape.gradient(result, sources))
    for got, wanted in zip(*gradients, strict=True):
        assert_close(got.numpy(), wanted.numpy(), rounding(SIZES))


def test_persistent_tape_and_repeated_use(rng):
    """One layer called twice under one tape, its gradients asked for twice."""
    layer, _ = make_pair(SIZES, rng, dtype="float64")
    x = tf.constant(random_inputs(SIZES, rng, states=False)[0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        first, second = layer(x), layer(-x)
        both = first + second
    got = tape.gradient(both, x)
    parts = tape.gradient(first, x) + tape.gradient(second, x)
    np.testing.assert_array_equal(tape.gradient(both, x), got)
    assert_close(got.numpy(), parts.numpy(), rounding(SIZES))


def test_inside_tf_function_with_unknown_sizes(rng):
    layer, _ = make_pair(SIZES, rng, dtype="float64", **FULL)
    weights = [w.value for w in layer.trainable_weights]

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, SIZES.inputs], tf.float64),
            tf.TensorSpec([None, None], tf.bool),
        ]
    )
    def gradients(x, mask):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.add_n([tf.reduce_sum(tf.sin(r)) for r in layer(x, mask=mask)])
        return tape.gradient(loss, [x, *weights])

    for batch, time in [(3, 5), (1, 1), (2, 8)]:
        x = rng.normal(size=(batch, time, SIZES.inputs))
        mask = rng.random((batch, time)) < 0.7
        traced = gradients(x, mask)
        eager = gradients.python_function(tf.constant(x), tf.constant(mask))
        bound = rounding(SIZES._replace(batch=batch, time=time))
        for got, wanted in zip(traced, eager, strict=True):
            assert_close(got.numpy(), wanted.numpy(), bound)


@pytest.mark.parametrize("sizes", [Sizes(8, 30, 16, 32), Sizes(4, 60, 5, 64)])
def test_float32_is_as_accurate_as_plain_float32(sizes, rng):
    """The error against float64 is at most twice that of stock Keras, an evaluation step by step
    in float32. (The unit roundoff, relative to the largest element, is the floor.)"""
    ours, theirs = make_pair(sizes, rng, **FULL)
    inputs = [a.astype("float32").astype("float64") for a in random_inputs(sizes, rng, True)]
    mask = make_mask("right", sizes.batch, sizes.time, rng)
    exact = evaluate_oracle(ours, inputs, mask)
    errors = {}
    for name, layer in ("ours", ours), ("stock", theirs):
        got = evaluate(layer, inputs, mask)
        pairs = zip(
            [*got.results, *got.gradients.values()],
            [*exact.results, *exact.gradients.values()],
            strict=True,
        )
        errors[name] = [np.abs(a - b).max() / np.abs(b).max() for a, b in pairs]
    floor = np.finfo("float32").eps / 2
    for ours_error, stock_error in zip(errors["ours"], errors["stock"], strict=True):
        assert ours_error <= 2 * stock_error + floor


@pytest.mark.parametrize("options", [
    {},
    {"go_backwards": True, "use_bias": False},
    {"use_peephole": True},
    {"use_peephole": True, "cell_clip": 50.0, "zero_output_for_mask": True},
    {"recurrent_dropout": 0.3, "dropout": 0.3, "seed": 1},
], ids=lambda o: "-".join(o) or "plain")  # fmt: skip
@pytest.mark.parametrize("kind", ["none", "right", "holes"])
def test_second_order(kind, options, rng):
    """A gradient penalty, ‖∂loss/∂(x, h0, c0)‖² + ‖∂loss/∂weights‖², against central differences.

    The clip is one that never acts: past an acting one gradients are straight-through, and not
    the derivatives that differences show. Every evaluation starts from the same state of the
    seed, hence draws the same dropout masks.
    """
    sizes = Sizes(batch=2, time=4, inputs=3, units=5)
    mask = make_mask(kind, sizes.batch, sizes.time, rng)
    layer = LSTM(sizes.units, dtype="float64", **FULL, **options)
    layer.build((None, None, sizes.inputs))
    random_weights(layer, rng)
    state = layer.cell.seed_generator.state.numpy()

    def penalty_of(arguments):
        """The penalty, after setting the layer to `arguments`, and the sources of a gradient."""
        for weight, value in zip(layer.trainable_weights, arguments[3:], strict=True):
            weight.assign(value)
        layer.cell.seed_generator.state.assign(state)
        x, h0, c0 = map(tf.constant, arguments[:3])
        sources = [x, h0, c0, *(w.value for w in layer.trainable_weights)]
        with tf.GradientTape() as outer:
            outer.watch(sources)
            with tf.GradientTape() as inner:
                inner.watch(sources)
                results = layer(x, initial_state=[h0, c0], mask=mask, training=True)
                loss = tf.add_n([tf.reduce_sum(r**3 + tf.sin(2 * r)) for r in results])
            penalty = tf.add_n([tf.nn.l2_loss(g) for g in inner.gradient(loss, sources)])
        return penalty, outer.gradient(penalty, sources)

    point = [
        *random_inputs(sizes, rng, states=True),
        *(w.numpy() for w in layer.trainable_weights),
    ]
    _, gradients = penalty_of(point)
    for k, gradient in enumerate(gradients):  # each argument in turn
        directions = [np.zeros_like(a) for a in point]
        directions[k] = rng.normal(size=point[k].shape)
        numeric = central_difference(lambda a: penalty_of(a)[0].numpy(), point, directions)
        analytic = np.sum(gradient.numpy() * directions[k])
        # Truncation h²·p'''/6 and rounding ε·p/h at h = 1e-5; p and its derivatives reach 1e3.
        assert abs(numeric - analytic) <= 1e-7 * max(1.0, abs(analytic))


@pytest.mark.parametrize("in_graph", [False, True])
def test_batch_jacobian(in_graph, rng):
    """tape.batch_jacobian vectorises the gradient's ops, or falls back to a loop."""
    ours, theirs = make_pair(SIZES, rng, dtype="float64")
    x = tf.constant(random_inputs(SIZES, rng, states=False)[0])

    def jacobian(layer):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
        return tape.batch_jacobian(y, x, experimental_use_pfor=layer is ours)

    got = (tf.function(jacobian) if in_graph else jacobian)(ours)
    assert got.shape == (SIZES.batch, SIZES.units, SIZES.time, SIZES.inputs)
    wanted = tf.function(jacobian)(theirs)
    assert_close(got.numpy(), wanted.numpy(), rounding(SIZES))


def test_forward_mode(rng):
    """A Jacobian-vector product, which TensorFlow forms from the gradient's gradient."""
    ours, theirs = make_pair(SIZES, rng, dtype="float64")
    x, tangent = (tf.constant(rng.normal(size=SIZES[:3])) for _ in range(2))
    products = []
    for layer in ours, theirs:
        with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
            y = layer(x)
        products.append(accumulator.jvp(y).numpy())
    assert_close(*products, rounding(SIZES))


def test_recurrent_state_carries_gradients_between_calls(rng):
    """Truncated back-propagation by hand: two half sequences give the gradient of the whole."""
    layer, _ = make_pair(SIZES, rng, dtype="float64", return_state=True)
    x = tf.constant(random_inputs(SIZES, rng, states=False)[0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        whole = layer(x)[0]
        _, *states = layer(x[:, :2])
        halves = layer(x[:, 2:], initial_state=states)[0]
    bound = rounding(SIZES)
    assert_close(halves.numpy(), whole.numpy(), bound)
    assert_close(tape.gradient(halves, x).numpy(), tape.gradient(whole, x).numpy(), bound)
