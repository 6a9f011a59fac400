"""The dtypes of weights, calculation and results; the accuracy of the 16-bit types."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import (
    FAMILIES,
    GRU,
    Evaluation,
    Sizes,
    assert_close,
    assert_same,
    divided,
    evaluate,
    evaluate_oracle,
    label,
    make_mask,
    make_pair,
    random_inputs,
    rounding,
)

SIZES = Sizes(batch=4, time=12, inputs=5, units=19)
FULL = {"return_sequences": True, "return_state": True}

# policy: dtype of the weights, dtype of calculation and results
POLICIES = {
    "float32": ("float32", "float32"),
    "float64": ("float64", "float64"),
    "float16": ("float16", "float16"),
    "bfloat16": ("bfloat16", "bfloat16"),
    "mixed_float16": ("float32", "float16"),
    "mixed_bfloat16": ("float32", "bfloat16"),
}
UNIT_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def options_for(policy: str) -> dict:
    """TensorFlow has no QR decomposition in bfloat16, hence no orthogonal initial weights."""
    orthogonal = {"recurrent_initializer": "glorot_uniform"} if policy == "bfloat16" else {}
    return {"dtype": policy, **FULL, **orthogonal}


@pytest.mark.parametrize("extras", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_dtypes(policy, extras, family, rng):
    variable_dtype, compute_dtype = POLICIES[policy]
    options = family.extras if extras else {}
    layer = family.ours(SIZES.units, **options, **options_for(policy))
    assert layer.uses_fused_op
    x = rng.normal(size=SIZES[:3])
    with tf.GradientTape() as tape:
        results = layer(x)
    assert {r.dtype.name for r in results} == {compute_dtype}
    assert {w.dtype for w in layer.weights} == {variable_dtype}
    assert len(layer.weights) == 3 + 2 * ("use_peephole" in options)  # and the projection
    gradients = tape.gradient(results, [w.value for w in layer.weights])
    assert {g.dtype.name for g in gradients} == {variable_dtype}


def test_float64_equals_stock(family, rng):
    ours, theirs = make_pair(family, SIZES, rng, **options_for("float64"))
    inputs = random_inputs(SIZES, rng, family)
    assert_same(evaluate(ours, inputs), evaluate(theirs, inputs), rounding(SIZES))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", ["none", "holes"])
@pytest.mark.parametrize("policy", ["float16", "bfloat16", "mixed_float16", "mixed_bfloat16"])
def test_16_bit_types_are_as_accurate_as_stock(policy, kind, family, rng):
    """Mean error, in four draws, against float64 from the same 16-bit values: at most that of
    stock, whose loop rounds after every operation, and one rounding of the result. (It is a third
    to a half; of a single draw chance may decide otherwise.)"""
    _, dtype = POLICIES[policy]
    mine, stock = [], []
    for _ in range(4):
        ours, theirs = make_pair(family, SIZES, rng, **options_for(policy))
        rounded = [to_dtype(a, dtype) for a in random_inputs(SIZES, rng, family)]
        for layer in ours, theirs:
            for weight in layer.trainable_weights:
                weight.assign(to_dtype(weight.numpy().astype("float64"), dtype))
        mask = make_mask(kind, SIZES.batch, SIZES.time, rng)
        exact = evaluate_oracle(in_float64(ours), rounded, mask)
        mine.append(errors(evaluate(ours, rounded, mask), exact))
        stock.append(errors(evaluate(theirs, rounded, mask), exact))
    for name in mine[0]:
        mean, bound = (np.mean([draw[name] for draw in draws]) for draws in (mine, stock))
        assert mean <= bound + UNIT_ROUNDOFF[dtype], name


def to_dtype(values: np.ndarray, dtype: str) -> np.ndarray:
    return tf.cast(tf.cast(values, dtype), tf.float64).numpy()


def in_float64(layer: keras.layers.RNN) -> keras.layers.RNN:
    """The same layer with weights in float64, so that the reference computes in float64."""
    wide = type(layer).from_config({**layer.get_config(), "dtype": "float64", "name": None})
    wide.build((None, None, SIZES.inputs))
    for a, b in zip(layer.trainable_weights, wide.trainable_weights, strict=True):
        b.assign(tf.cast(a.value, tf.float64))
    return wide


def errors(got: Evaluation, exact: Evaluation) -> dict[str, float]:
    """Largest errors, relative to the largest element."""
    pairs = {f"result {k}": p for k, p in enumerate(zip(got.results, exact.results, strict=True))}
    pairs |= {name: (got.gradients[name], exact.gradients[name]) for name in exact.gradients}
    return {name: np.abs(a - b).max() / np.abs(b).max() for name, (a, b) in pairs.items()}


@pytest.mark.parametrize(
    ("policy", "family"),  # test_mixed_precision.py trains in mixed_float16
    divided(
        itertools.product(["mixed_float16", "mixed_bfloat16"], FAMILIES),
        [("mixed_bfloat16", GRU)],
        each=2,
    ),
    ids=label,
)
def test_mixed_precision_training(policy, family, rng):
    """Loss scaling included (mixed_float16): the weights stay in float32, and the loss falls."""
    model = keras.Sequential(
        [
            keras.Input((None, 4)),
            family.ours(8, dtype=policy, dropout=0.1, recurrent_dropout=0.1, seed=1),
            keras.layers.Dense(1, dtype="float32"),
        ]
    )
    optimizer = keras.optimizers.Adam(0.05)
    if policy == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=128)
    model.compile(optimizer, "mse")
    x = rng.normal(size=(32, 5, 4)).astype("float32")
    losses = model.fit(x, x[:, :, 0].sum(1), epochs=15, verbose=0).history["loss"]
    assert losses[-1] < 0.7 * losses[0]
    assert {w.dtype for w in model.trainable_weights} == {"float32"}


@pytest.mark.parametrize("policy", POLICIES)
def test_inputs_of_other_dtypes_are_cast(policy, family, rng):
    """As stock: floating-point inputs and initial states become the compute dtype."""
    layer = family.ours(SIZES.units, **options_for(policy))
    dtype = POLICIES[policy][1]
    x, *states = (to_dtype(a, dtype) for a in random_inputs(SIZES, rng, family))
    wanted = layer(tf.cast(x, dtype), initial_state=[tf.cast(s, dtype) for s in states])
    got = layer(x, initial_state=states)  # all float64
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(tf.cast(a, "float64"), tf.cast(b, "float64"))


def test_integer_inputs(family, rng):
    """Keras casts floating-point inputs only; stock's layers take integers all the same."""
    ours, theirs = make_pair(family, SIZES, rng, **FULL)
    x = rng.integers(-3, 4, size=SIZES[:3])
    for a, b in zip(ours(x), theirs(x), strict=True):
        assert a.dtype == b.dtype == "float32"
        assert_close(a.numpy(), b.numpy(), 3 * rounding(SIZES, "float32"))


def test_stateful_in_mixed_precision(family, rng):
    """Stock keeps the states in the variables' dtype."""
    ours, theirs = make_pair(family, SIZES, rng, stateful=True, dtype="mixed_float16")
    x = random_inputs(SIZES, rng)[0]
    for layer in ours, theirs:
        layer(x)
        layer(x)
    for layer in ours, theirs:
        assert [s.dtype for s in layer.states] == ["float32" for _ in family.states]
