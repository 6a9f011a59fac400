"""Gradients beyond the parity tests: which result is used, accuracy, second order, Jacobians."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from pairs import (
    FAMILIES,
    GRU,
    LSTM,
    Sizes,
    assert_close,
    divided,
    evaluate,
    evaluate_oracle,
    label,
    make_layer,
    make_mask,
    make_pair,
    random_inputs,
    rounding,
)

from oracle.derivatives import central_difference

SIZES = Sizes(batch=3, time=5, inputs=4, units=7)
FULL = {"return_sequences": True, "return_state": True}


@pytest.mark.parametrize(
    ("family", "used"),
    [(f, used) for f in FAMILIES for used in range(1 + len(f.states))],
    ids=label,
)
def test_of_one_result_alone(family, used, rng):
    ours, theirs = make_pair(family, SIZES, rng, dtype="float64", **FULL)
    x, *states = map(tf.constant, random_inputs(SIZES, rng, family))
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    gradients = []
    for layer in ours, theirs:
        sources = [x, *states, *(w.value for w in layer.trainable_weights)]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            result = layer(x, initial_state=states, mask=mask)[used]
        gradients.append(tape.gradient(result, sources))
    for got, wanted in zip(*gradients, strict=True):
        assert_close(got.numpy(), wanted.numpy(), rounding(SIZES))


def test_persistent_tape_and_repeated_use(family, rng):
    """One layer called twice under one tape, its gradients asked for twice."""
    layer, _ = make_pair(family, SIZES, rng, dtype="float64")
    x = tf.constant(random_inputs(SIZES, rng)[0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        first, second = layer(x), layer(-x)
        both = first + second
    got = tape.gradient(both, x)
    separate = tape.gradient(first, x) + tape.gradient(second, x)
    np.testing.assert_array_equal(tape.gradient(both, x), got)
    assert_close(got.numpy(), separate.numpy(), rounding(SIZES))


def test_inside_tf_function_with_unknown_sizes(family, rng):
    layer, _ = make_pair(family, SIZES, rng, dtype="float64", **FULL)
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


def relative_errors(layer, inputs, mask, exact) -> np.ndarray:
    """The largest error of each result and gradient, relative to the largest element."""
    got = evaluate(layer, inputs, mask)
    pairs = zip(
        [*got.results, *got.gradients.values()],
        [*exact.results, *exact.gradients.values()],
        strict=True,
    )
    return np.array([np.abs(a - b).max() / np.abs(b).max() for a, b in pairs])


@pytest.mark.parametrize(
    ("sizes", "family"),
    divided(
        itertools.product([Sizes(8, 30, 16, 32), Sizes(4, 60, 5, 64)], FAMILIES),
        [(Sizes(8, 30, 16, 32), LSTM)],
        each=2,
    ),
    ids=label,
)
def test_float32_is_as_accurate_as_plain_float32(sizes, family, rng):
    """The error of each result and gradient against float64, relative to that of stock Keras, an
    evaluation step by step in float32.

    Both are a few roundings, of which chance decides: single draws differ up to fourfold either
    way. Three is beyond what the mean of four draws reaches (2.2 in twenty tries). The recurrent
    weights are scaled so that the recurrence itself amplifies no rounding.
    """
    ratios = []
    for _ in range(4):
        ours, theirs = make_pair(family, sizes, rng, **FULL)
        for layer in ours, theirs:
            weights = layer.cell.recurrent_kernel
            weights.assign(weights.value * (2 / np.sqrt(sizes.units)))
        inputs = [a.astype("float32").astype("float64") for a in random_inputs(sizes, rng, family)]
        mask = make_mask("right", sizes.batch, sizes.time, rng)
        exact = evaluate_oracle(ours, inputs, mask)
        mine, stock = (relative_errors(layer, inputs, mask, exact) for layer in (ours, theirs))
        floor = np.finfo("float32").eps / 2
        ratios.append((mine + floor) / (stock + floor))
    assert np.exp(np.mean(np.log(ratios), axis=0)).max() < 3


SECOND_ORDER = [
    *((f, {}) for f in FAMILIES),
    *((f, {"go_backwards": True, "use_bias": False}) for f in FAMILIES),
    *((f, {"recurrent_dropout": 0.3, "dropout": 0.3, "seed": 1}) for f in FAMILIES),
    (GRU, {"zero_output_for_mask": True}),
    (LSTM, {"use_peephole": True}),
    (LSTM, {"use_peephole": True, "cell_clip": 50.0, "zero_output_for_mask": True}),
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("family", "options"), SECOND_ORDER, ids=label)
@pytest.mark.parametrize("kind", ["none", "right", "holes"])
def test_second_order(kind, family, options, rng):
    """A gradient penalty, ‖∂loss/∂(x, states)‖² + ‖∂loss/∂weights‖², against central differences.

    The clip is one that never acts: past an acting one gradients are straight-through, and not
    the derivatives that differences show. Every evaluation starts from the same state of the
    seed, hence draws the same dropout masks.
    """
    sizes = Sizes(batch=2, time=4, inputs=3, units=5)
    mask = make_mask(kind, sizes.batch, sizes.time, rng)
    layer = make_layer(family, sizes, rng, **options)
    given = 1 + len(family.states)
    state = layer.cell.seed_generator.state.numpy()

    def penalty_of(arguments):
        """The penalty, after setting the layer to `arguments`, and what computes its gradient."""
        for weight, value in zip(layer.trainable_weights, arguments[given:], strict=True):
            weight.assign(value)
        layer.cell.seed_generator.state.assign(state)
        x, *states = map(tf.constant, arguments[:given])
        sources = [x, *states, *(w.value for w in layer.trainable_weights)]
        with tf.GradientTape() as outer:
            outer.watch(sources)
            with tf.GradientTape() as inner:
                inner.watch(sources)
                results = layer(x, initial_state=states, mask=mask, training=True)
                loss = tf.add_n([tf.reduce_sum(r**3 + tf.sin(2 * r)) for r in results])
            penalty = tf.add_n([tf.nn.l2_loss(g) for g in inner.gradient(loss, sources)])
        return penalty, lambda: outer.gradient(penalty, sources)

    point = [
        *random_inputs(sizes, rng, family),
        *(w.numpy() for w in layer.trainable_weights),
    ]
    _, gradients_of_penalty = penalty_of(point)
    for k, gradient in enumerate(gradients_of_penalty()):  # each argument in turn
        directions = [np.zeros_like(a) for a in point]
        directions[k] = rng.normal(size=point[k].shape)
        numeric = central_difference(lambda a: penalty_of(a)[0].numpy(), point, directions)
        analytic = np.sum(gradient.numpy() * directions[k])
        # Truncation h²·p'''/6 and rounding ε·p/h at h = 1e-5; p and its derivatives reach 1e3.
        assert abs(numeric - analytic) <= 1e-7 * max(1.0, abs(analytic))


def test_second_order_does_not_read_padding(family, rng):
    """NaN at masked steps: the gradient of a gradient penalty is the same as with zeros there."""
    layer = make_layer(family, SIZES, rng)
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    x = random_inputs(SIZES, rng)[0]

    def derivative(padding):
        padded = tf.constant(np.where(mask[..., None], x, padding))
        sources = [padded, *(w.value for w in layer.trainable_weights)]
        with tf.GradientTape() as outer:
            outer.watch(sources)
            with tf.GradientTape() as inner:
                inner.watch(sources)
                loss = tf.reduce_sum(layer(padded, mask=mask)[0] ** 3)
            penalty = tf.add_n([tf.nn.l2_loss(g) for g in inner.gradient(loss, sources)])
        return outer.gradient(penalty, sources)

    for got, wanted in zip(derivative(np.nan), derivative(0.0), strict=True):
        np.testing.assert_array_equal(got, wanted)
        assert np.any(wanted)


@pytest.mark.full
@pytest.mark.parametrize("family", [GRU, pytest.param(LSTM, marks=pytest.mark.slow)], ids=label)
def test_third_order_in_a_function(family, rng):
    """Three tapes record one trace. Without a function the second order is tested above."""
    sizes = Sizes(batch=2, time=3, inputs=2, units=2)
    layer = make_layer(family, sizes, rng, return_state=False)
    mask = make_mask("holes", sizes.batch, sizes.time, rng)

    def gradient(function, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf.reduce_sum(tf.sin(function(x)))
        return tape.gradient(value, x)

    def third(x):
        def first(x):
            return gradient(lambda x: layer(x, mask=mask), x)

        return gradient(lambda x: gradient(first, x), x)

    x = tf.constant(random_inputs(sizes, rng)[0])
    wanted = third(x).numpy()
    # Sums in another order, in each of the three derivatives.
    assert_close(tf.function(third)(x).numpy(), wanted, 10 * rounding(sizes))
    assert np.abs(wanted).max() > 0.1


@pytest.mark.parametrize(
    ("in_graph", "family"),  # tests/vectorized/test_derivatives.py has calls without a graph
    divided(itertools.product([False, True], FAMILIES), [(True, LSTM)]),
    ids=label,
)
def test_batch_jacobian(in_graph, family, rng):
    """tape.batch_jacobian vectorises the gradient's ops, or falls back to a loop."""
    ours, theirs = make_pair(family, SIZES, rng, dtype="float64")
    x = tf.constant(random_inputs(SIZES, rng)[0])

    def jacobian(layer):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
        return tape.batch_jacobian(y, x, experimental_use_pfor=layer is ours)

    got = (tf.function(jacobian) if in_graph else jacobian)(ours)
    assert got.shape == (SIZES.batch, SIZES.units, SIZES.time, SIZES.inputs)
    wanted = tf.function(jacobian)(theirs)
    assert_close(got.numpy(), wanted.numpy(), rounding(SIZES))


@pytest.mark.full  # tests/layers/test_contexts.py has this mode
def test_forward_mode(family, rng):
    """A Jacobian-vector product, which TensorFlow forms from the gradient's gradient."""
    ours, theirs = make_pair(family, SIZES, rng, dtype="float64")
    x, tangent = (tf.constant(rng.normal(size=SIZES[:3])) for _ in range(2))
    products = []
    for layer in ours, theirs:
        with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
            y = layer(x)
        products.append(accumulator.jvp(y).numpy())
    assert_close(*products, rounding(SIZES))


def test_recurrent_state_carries_gradients_between_calls(family, rng):
    """Truncated back-propagation by hand: two half sequences give the gradient of the whole."""
    layer, _ = make_pair(family, SIZES, rng, dtype="float64", return_state=True)
    x = tf.constant(random_inputs(SIZES, rng)[0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        whole = layer(x)[0]
        _, *states = layer(x[:, :2])
        halves = layer(x[:, 2:], initial_state=states)[0]
    bound = rounding(SIZES)
    assert_close(halves.numpy(), whole.numpy(), bound)
    assert_close(tape.gradient(halves, x).numpy(), tape.gradient(whole, x).numpy(), bound)


def test_the_gradient_of_the_input_is_computed_only_where_it_is_needed(family, rng):
    layer, _ = make_pair(family, SIZES, rng, return_sequences=True)
    x = tf.constant(random_inputs(SIZES, rng)[0].astype("float32"))
    op, needed, of_weights = f"TfLstmOps>Keras{family.name}Grad", [], []
    for watches in True, False:

        @tf.function
        def gradients(x, watches=watches):
            with tf.GradientTape() as tape:
                if watches:
                    tape.watch(x)
                loss = tf.reduce_sum(layer(x) ** 2)
            weights = [w.value for w in layer.trainable_weights]
            return tape.gradient(loss, [*weights, x] if watches else weights)

        graph = gradients.get_concrete_function(x).graph
        needed += [o.get_attr("needs_x_grad") for o in graph.get_operations() if o.type == op]
        of_weights.append(gradients(x)[: len(layer.trainable_weights)])
    assert needed == [True, False]
    for with_x, without_x in zip(*of_weights, strict=True):
        np.testing.assert_array_equal(without_x, with_x)
