"""mixed_float16 and mixed_bfloat16: 16-bit tensors, the state and all sums in float, and training
that is as good as in float32. Which part has which dtype: test_dtype_policy.py."""

from pathlib import Path
from types import ModuleType

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import (
    GATED,
    Array,
    Family,
    Sizes,
    copy_weights,
    evaluate,
    label,
    make_pair,
    oracle_arguments,
    to_numpy,
)

import tf_lstm_ops
from tf_lstm_ops.cli import training, vowels
from tf_lstm_ops.cli.arguments import DTYPE_POLICIES, LEAST_ACCURACY
from tf_lstm_ops.keras.policy import default_dtype_policy

DTYPES = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}
UNIT_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}


@pytest.fixture(params=DTYPES)
def policy(request: pytest.FixtureRequest) -> str:
    return request.param


def rounded(values: Array, dtype: str) -> Array:
    """In float64, each to the nearest number of the dtype."""
    return values.astype(tf.as_dtype(dtype).as_numpy_dtype).astype(np.float64)


def relative_errors(got: list[Array], exact: list[Array]) -> list[float]:
    """Of each array: the largest error, relative to the largest element."""
    return [np.abs(a - b).max() / np.abs(b).max() for a, b in zip(got, exact, strict=True)]


# The forward pass.

REMEMBERING = Sizes(batch=3, time=1000, inputs=4, units=6)
# Biases of the gates with which a step changes the state by about a thousandth and forgets as much.
SLOW = {"LSTM": {"i": -6.0, "f": 7.0, "c": 1.0, "o": 0.0}, "GRU": {"z": 6.0, "r": 0.0, "h": 1.0}}


def remembering_weights(
    layer: keras.layers.RNN, family: Family, dtype: str, rng: np.random.Generator
) -> None:
    """16-bit values, so that a mixed policy rounds none of them."""
    for weight in layer.trainable_weights:
        values = rng.normal(0, 0.1, weight.shape)
        if weight.name == "bias":  # a GRU has two, of which the first gets the constants
            values.reshape(-1, family.gates * layer.units)[0] += np.repeat(
                list(SLOW[family.name].values()), layer.units
            )
        weight.assign(rounded(values, dtype))


def oracle_weights(layer: keras.layers.RNN) -> dict[str, Array]:
    return {w.name: w.numpy().astype("float64") for w in layer.trainable_weights}


def in_float64(family: Family, layer: keras.layers.RNN, x: Array) -> list[Array]:
    """What the layer would return if nothing were rounded."""
    named = {"x": x, **oracle_weights(layer)}
    return list(family.oracle.forward(oracle_arguments(family, named, layer.units)))


def with_narrow_state(family: Family, layer: keras.layers.RNN, x: Array, dtype: str) -> list[Array]:
    """The same, but for a state that is rounded to the dtype after every step."""
    weights, outputs, states = oracle_weights(layer), [], {}
    for t in range(x.shape[1]):
        named = {"x": x[:, t : t + 1], **states, **weights}
        output, *final = family.oracle.forward(oracle_arguments(family, named, layer.units))
        states = {f"{s}0": rounded(a, dtype) for s, a in zip(family.states, final, strict=True)}
        outputs.append(output)
    return [np.concatenate(outputs, axis=1), *states.values()]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("family", GATED, ids=label)
def test_error_does_not_grow_with_time(policy, family, rng):
    """Each result is rounded once, however long the sequence: the state is carried in float."""
    dtype = DTYPES[policy]
    ours, theirs = make_pair(
        family, REMEMBERING, rng, dtype=policy, return_sequences=True, return_state=True
    )
    remembering_weights(ours, family, dtype, rng)
    copy_weights(ours, theirs)
    # The same at every step, so that roundings of a state in 16 bits add up.
    constant = rounded(rng.normal(1, 1, (REMEMBERING.batch, 1, REMEMBERING.inputs)), dtype)
    whole = np.repeat(constant, REMEMBERING.time, axis=1)
    for time in 10, 100, 1000:
        x = whole[:, :time]
        exact = in_float64(family, ours, x)
        # The rounding of the result, and in each step a few in float.
        bound = UNIT_ROUNDOFF[dtype] + 4 * time * UNIT_ROUNDOFF["float32"]
        mine = relative_errors(evaluate(ours, [x]).results, exact)
        assert max(mine) <= bound
    # That distinguishes: over 1000 steps a state in 16 bits is far off, and so is stock.
    narrow = relative_errors(with_narrow_state(family, ours, whole, dtype), exact)
    stock = relative_errors([to_numpy(r) for r in tf.function(theirs)(whole)], exact)
    assert min(narrow) > 10 * bound
    assert min(stock) > 10 * max(mine)


@pytest.mark.parametrize("family", GATED, ids=label)
def test_states_between_calls(policy, family, rng):
    """A stateful layer keeps its states in float32 variables; each call hands on a rounded one."""
    dtype = DTYPES[policy]
    options = {"dtype": policy, "return_sequences": True, "return_state": True}
    layer = family.ours(REMEMBERING.units, stateful=True, **options)
    whole = rounded(rng.normal(size=(REMEMBERING.batch, 200, REMEMBERING.inputs)), dtype)
    layer.build((REMEMBERING.batch, 100, REMEMBERING.inputs))
    remembering_weights(layer, family, dtype, rng)
    exact = in_float64(family, layer, whole)
    for half in np.split(whole, 2, axis=1):
        output, *states = (to_numpy(r) for r in layer(half))
        for variable, state in zip(layer.states, states, strict=True):
            assert variable.dtype == "float32"
            np.testing.assert_array_equal(to_numpy(variable), state)
    # The first call's roundings, of which h's enters the gates and c's stays, and the second's own.
    bound = 3 * UNIT_ROUNDOFF[dtype] + 4 * 200 * UNIT_ROUNDOFF["float32"]
    exact[0] = exact[0][:, 100:]
    assert max(relative_errors([output, *states], exact)) <= bound


# Gradients.


@pytest.mark.parametrize("family", GATED, ids=label)
def test_gradients_are_summed_in_float(policy, family):
    """10,000 equal steps without a rounding error of their own: what a weight receives is their
    sum, rounded once. A sum in 16 bits would end at the 2048th (half) or 256th (bfloat16)."""
    sizes = Sizes(batch=100, time=100, inputs=2, units=3)
    dtype, upstream = DTYPES[policy], 2.0**-10
    layer = family.ours(sizes.units, dtype=policy, return_sequences=True)
    layer.build((None, None, sizes.inputs))
    # All gates are exact, at 1/2 or 0 and 1, and one is shut: no step's gradient reaches another.
    bias = np.zeros((*family.biases, family.gates, sizes.units))
    bias[..., list(SLOW[family.name]).index("f" if family.name == "LSTM" else "z"), :] = -20
    layer.set_weights([np.zeros(w.shape) for w in layer.weights])
    layer.cell.bias.assign(bias.reshape(layer.cell.bias.shape))
    with tf.GradientTape() as tape:
        outputs = layer(tf.ones(sizes[:3]))
        loss = tf.reduce_sum(outputs * tf.cast(upstream, dtype))
    kernel_grad, bias_grad = tape.gradient(loss, [layer.cell.kernel.value, layer.cell.bias.value])
    assert kernel_grad.dtype == bias_grad.dtype == "float32"
    # dh by the candidate's pre-activation: i∘o in the LSTM; 1-z in the GRU, there times r for the
    # second bias. It is the third gate of either.
    factors = {"LSTM": [0.25], "GRU": [1.0, 0.5]}[family.name]
    received = tf.reshape(bias_grad, [len(factors), family.gates, sizes.units])[:, 2]
    for got, factor in [*zip(received, factors, strict=True), (kernel_grad[:, 6:9], factors[0])]:
        wanted = np.full(got.shape, 10_000 * upstream * factor)
        np.testing.assert_allclose(got, wanted, rtol=UNIT_ROUNDOFF[dtype])


# Models.


def classifier(layers: ModuleType, policy: str) -> keras.Model:
    """Of series [B, T, 4] into logits [B, 3]; with ours or stock's layers, masked, one of them
    bidirectional."""
    keras.utils.set_random_seed(0)
    with default_dtype_policy(policy):
        model = keras.Sequential(
            [
                keras.Input((None, 4)),
                keras.layers.Masking(),
                keras.layers.Bidirectional(layers.LSTM(8, return_sequences=True)),
                layers.GRU(8),
                keras.layers.Dense(3, dtype="float32"),
            ]
        )
        model.compile(
            keras.optimizers.Adam(0.02),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
    return model


def padded_series(rng: np.random.Generator) -> tuple[Array, Array]:
    """Series [32, 20, 4] with padding at their ends, and labels [32] that can be learnt."""
    series = rng.normal(size=(32, 20, 4)).astype("float32")
    labels = series[:, :5, :3].sum(axis=1).argmax(axis=-1)
    series[np.arange(20) >= rng.integers(5, 21, size=(32, 1))] = 0
    return series, labels


@pytest.mark.full
@pytest.mark.parametrize(
    "policy", ["mixed_bfloat16", pytest.param("mixed_float16", marks=pytest.mark.slow)]
)
def test_model_is_as_accurate_as_stock(policy, rng):
    """Mean error of the logits against float64, over four draws of weights and series."""
    exact = classifier(keras.layers, "float64")
    mixed = [classifier(layers, policy) for layers in (tf_lstm_ops.keras, keras.layers)]
    calls = [tf.function(model) for model in (exact, *mixed)]
    errors = np.zeros(2)
    for _ in range(4):
        for weight in exact.trainable_variables:
            weight.assign(rounded(rng.normal(0, 0.4, weight.shape), DTYPES[policy]))
        for model in mixed:
            copy_weights(exact, model)
        series = rounded(padded_series(rng)[0], DTYPES[policy])
        wanted, *got = (call(series).numpy() for call in calls)
        errors += [np.abs(logits - wanted).mean() for logits in got]
    assert errors[0] <= errors[1]


@pytest.mark.full
def test_overflow_skips_steps_until_the_scale_fits(rng):
    """Gradients beyond half's range come out infinite or NaN, which LossScaleOptimizer looks for;
    then training goes on."""
    model = classifier(tf_lstm_ops.keras, "mixed_float16")
    optimizer = model.optimizer  # `compile` has put it around Adam
    assert isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    optimizer.initial_scale = 2.0**40
    series, labels = padded_series(rng)
    before = [w.numpy() for w in model.trainable_variables]
    loss_before = model.loss(labels, model(series))
    model.train_on_batch(series, labels)
    for old, weight in zip(before, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(weight, old)
    for _ in range(44):
        model.train_on_batch(series, labels)
    assert 0 < optimizer.inner_optimizer.iterations < 45
    assert 1 < optimizer.dynamic_scale < 2.0**40
    for weight in model.trainable_variables:
        assert weight.dtype == "float32"
        assert np.isfinite(weight).all()
    assert model.loss(labels, model(series)) < loss_before / 2


@pytest.mark.full
@pytest.mark.parametrize(
    "policy", ["mixed_float16", pytest.param("mixed_bfloat16", marks=pytest.mark.slow)]
)
def test_saved_model_trains_on(policy, rng, tmp_path: Path):
    """A .keras file keeps the policies, the weights in float32 and the state of the loss scale."""
    model = classifier(tf_lstm_ops.keras, policy)
    series, labels = padded_series(rng)
    model.train_on_batch(series, labels)
    model.save(tmp_path / "model.keras")
    # Keras saves no policy of the model as such, by which `compile` decides on a loss scale.
    with default_dtype_policy(policy):
        restored = keras.models.load_model(tmp_path / "model.keras")
    variables = []
    for m in model, restored:
        m.train_on_batch(series, labels)
        variables.append([*m.trainable_variables, *m.optimizer.variables])
        assert [layer.dtype_policy.name for layer in m.layers[1:3]] == [policy, policy]
        assert {w.dtype for w in m.trainable_variables} == {"float32"}
    assert type(restored.optimizer) is type(model.optimizer)
    for a, b in zip(*variables, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=a.path)


# The demo.


def demo_accuracy(policy: str, epochs: int, seed: int) -> float:
    """On the test utterances, after the demo's training of our layer, without stock's beside it."""
    train, test = vowels.standardise(*vowels.load())
    steps = epochs * len(train.speakers) // training.BATCH_SIZE
    model = training.build_model(tf_lstm_ops.keras.LSTM, steps, seed, policy)
    trained = training.Training(model)
    random = np.random.default_rng(seed)
    for _ in range(epochs):
        training.run_epoch(trained, train, test, random.permutation(len(train.speakers)))
    assert {w.dtype for w in trained.model.trainable_variables} == {"float32"}
    assert trained.model.layers[1].compute_dtype == DTYPES.get(policy, policy)
    return trained.test[-1].accuracy


@pytest.fixture(scope="module")
def short_demo_accuracy() -> float:
    return demo_accuracy("float32", epochs=4, seed=0)


@pytest.mark.full
@pytest.mark.parametrize(
    "policy", ["mixed_float16", pytest.param("mixed_bfloat16", marks=pytest.mark.slow)]
)
def test_short_demo_is_as_accurate_as_in_float32(policy, short_demo_accuracy):
    """Three standard errors of the difference between two models that are right with 95% of the
    370 test utterances are 0.05."""
    accuracy = demo_accuracy(policy, epochs=4, seed=0)
    assert short_demo_accuracy > 0.9
    assert accuracy > short_demo_accuracy - 0.05


@pytest.mark.slow
def test_demo_is_as_accurate_as_in_float32():
    """Five seeds each. Their accuracies spread by 0.004 within a policy: three standard errors of
    the difference between two means are 0.008."""
    means = {}
    for name in DTYPE_POLICIES:
        accuracies = [demo_accuracy(name, epochs=30, seed=seed) for seed in range(5)]
        assert min(accuracies) >= LEAST_ACCURACY, name
        means[name] = np.mean(accuracies)
    for name in DTYPES:
        assert means[name] == pytest.approx(means["float32"], abs=0.008), name
