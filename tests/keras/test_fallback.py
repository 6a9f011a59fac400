"""Which path a configuration takes, that it really takes it, and that both agree."""

import itertools
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import (
    GATED,
    GRU,
    LSTM,
    Sizes,
    assert_same,
    divided,
    evaluate,
    label,
    make_layer,
    make_mask,
    make_pair,
    random_inputs,
    rounding,
)

SIZES = Sizes(batch=3, time=5, inputs=4, units=7)
FULL = {"return_sequences": True, "return_state": True}


def of_each_family(options: list[dict]) -> list[tuple]:
    return [(family, o) for family in GATED for o in options]


FUSED = of_each_family(
    [
        {},
        {"use_bias": False},
        {"return_sequences": True},
        {"return_state": True},
        {"go_backwards": True},
        {"stateful": True},
        {"unroll": True},
        {"zero_output_for_mask": True},
        {"dropout": 0.5},
        {"recurrent_dropout": 0.5},
        {"implementation": 1},
        {"use_cudnn": False},
        {"activation": keras.activations.tanh, "recurrent_activation": keras.activations.sigmoid},
        {"dtype": "float64"},
        {"dtype": "float16"},
        {"dtype": "mixed_bfloat16"},
    ]
)
FUSED += [(LSTM, {"use_peephole": True}), (LSTM, {"cell_clip": 1.0})]

OTHER_ACTIVATIONS = [
    {"activation": "relu"},
    {"activation": None},
    {"recurrent_activation": "hard_sigmoid"},
    {"recurrent_activation": "tanh"},
    {"activation": "sigmoid", "recurrent_activation": "tanh"},
]
FUSED += of_each_family(OTHER_ACTIVATIONS)
FUSED += [(LSTM, {"projection_size": 3}), (GRU, {"reset_after": False})]
FUSED += [(GRU, {"reset_after": False, **OTHER_ACTIVATIONS[2]})]

LOOP = of_each_family([{"activation": lambda x: keras.ops.tanh(x)}, {"activation": "softplus"}])
LOOP += [(LSTM, {"activation": keras.ops.gelu})]
LOOP += [(GRU, {"reset_after": False, "activation": "selu"})]


def with_values(value) -> str:
    if not isinstance(value, dict):
        return label(value)
    return "-".join(f"{k}={getattr(v, '__name__', v)}" for k, v in value.items())


def op_types(layer, training: bool = True, gradient: bool = False) -> list[str]:
    """The types of all ops in the graph of one masked call, nested functions included."""

    def call(x, mask):
        with tf.GradientTape() as tape:
            tape.watch(x)
            results = tf.nest.flatten(layer(x, mask=mask, training=training))
        weights = [w.value for w in layer.trainable_weights]
        return tape.gradient(results, [x, *weights]) if gradient else results

    x = tf.zeros([SIZES.batch, SIZES.time, SIZES.inputs], layer.compute_dtype)
    mask = tf.ones([SIZES.batch, SIZES.time], tf.bool)
    layer(x, mask=mask)  # builds, outside the graph
    graph = tf.function(call).get_concrete_function(x, mask).graph.as_graph_def()
    nested = [node for function in graph.library.function for node in function.node_def]
    return [node.op for node in [*graph.node, *nested]]


def own(types: list[str]) -> list[str]:
    return [t for t in types if t.startswith("TfLstmOps>")]


def loops(types: list[str]) -> list[str]:
    return [t for t in types if t in ("While", "StatelessWhile")]


@pytest.mark.sampled
@pytest.mark.parametrize(("family", "options"), FUSED, ids=label)
def test_fused(family, options):
    """One op forward, one more backward, no loop."""
    layer = family.ours(SIZES.units, **options)
    assert layer.uses_fused_op is True
    assert layer.fallback_reason is None
    assert layer.supports_jit is True
    forward = op_types(layer)
    assert len(own(forward)) == 1, own(forward)
    assert loops(forward) == []
    both = op_types(layer, gradient=True)
    assert len(own(both)) == 2, own(both)
    assert loops(both) == []


@pytest.mark.sampled
@pytest.mark.parametrize(("family", "options"), LOOP, ids=with_values)
def test_falls_back(family, options):
    layer = family.ours(SIZES.units, **options)
    assert layer.uses_fused_op is False
    assert layer.supports_jit is True
    types = op_types(layer, gradient=True)
    assert own(types) == []
    assert loops(types) != []


@pytest.mark.parametrize("family", GATED, ids=label)
def test_the_reason_names_the_argument(family):
    reason = family.ours(3, activation="selu").fallback_reason
    assert "activation is selu" in reason
    assert "recurrent_activation" not in reason
    reason = family.ours(3, recurrent_activation="selu").fallback_reason
    assert "recurrent_activation is selu" in reason


@pytest.mark.skipif(bool(tf.config.list_logical_devices("GPU")), reason="there cuDNN may run")
@pytest.mark.parametrize("family", GATED, ids=label)
def test_cudnn_on_demand_is_stocks(family, rng):
    """use_cudnn=True is an order: where cuDNN cannot run, stock raises, and so do we."""
    ours, theirs = make_pair(family, SIZES, rng, use_cudnn=True)
    assert not ours.uses_fused_op
    assert "use_cudnn" in ours.fallback_reason
    x = random_inputs(SIZES, rng)[0]
    for layer in ours, theirs:
        with pytest.raises(ValueError, match="use_cudnn=True was specified"):
            layer(x)


def test_the_path_is_known_before_the_layer_is_built(family):
    fused, loop = family.ours(3), family.ours(3, activation="selu")
    assert not fused.built and not loop.built
    assert fused.uses_fused_op and not loop.uses_fused_op


@pytest.mark.sampled
@pytest.mark.parametrize(("family", "options"), LOOP, ids=with_values)
@pytest.mark.parametrize("kind", ["none", "holes"])
def test_fallback_equals_stock(kind, family, options, rng):
    ours, theirs = make_pair(family, SIZES, rng, dtype="float64", **FULL, **options)
    inputs = random_inputs(SIZES, rng, family)
    mask = make_mask(kind, SIZES.batch, SIZES.time, rng)
    # relu and linear cells are not bounded: relative to the largest value all the same.
    assert_same(evaluate(ours, inputs, mask), evaluate(theirs, inputs, mask), rounding(SIZES))


BOTH_PATHS = of_each_family(
    [
        {},
        {"use_bias": False, "go_backwards": True},
        {"unroll": True, "zero_output_for_mask": True},
        {"dropout": 0.3, "seed": 1},
        {"recurrent_dropout": 0.3, "seed": 1},
        {"dropout": 0.3, "implementation": 1, "seed": 1},
    ]
)
BOTH_PATHS += [
    (LSTM, options)
    for options in [
        {"use_peephole": True},
        {"cell_clip": 0.5},
        {"use_peephole": True, "cell_clip": 0.5},
        {"use_peephole": True, "cell_clip": 0.5, "use_bias": False, "go_backwards": True},
        {"use_peephole": True, "cell_clip": 0.5, "dropout": 0.3, "seed": 1},
        {"use_peephole": True, "cell_clip": 0.5, "recurrent_dropout": 0.3, "seed": 1},
        {"use_peephole": True, "unroll": True, "zero_output_for_mask": True},
        {"use_peephole": True, "dropout": 0.3, "implementation": 1, "seed": 1},
    ]
]


@pytest.mark.sampled(14)
@pytest.mark.parametrize(("family", "options"), BOTH_PATHS, ids=label)
@pytest.mark.parametrize("kind", ["none", "right", "holes", "one_row_false"])
def test_both_paths_agree(kind, family, options, rng):
    """The loop, forced by functions that equal tanh and sigmoid; the clip is straight-through."""
    fused = make_layer(family, SIZES, rng, **options)
    loop = make_layer(
        family,
        SIZES,
        rng,
        activation=lambda x: keras.ops.tanh(x),
        recurrent_activation=lambda x: keras.ops.sigmoid(x),
        **options,
    )
    assert fused.uses_fused_op and not loop.uses_fused_op
    for a, b in zip(fused.trainable_weights, loop.trainable_weights, strict=True):
        assert a.name == b.name
        b.assign(a)
    inputs = random_inputs(SIZES, rng, family)
    mask = make_mask(kind, SIZES.batch, SIZES.time, rng)
    got, wanted = (evaluate(layer, inputs, mask, training=True) for layer in (fused, loop))
    assert_same(got, wanted, 2 * rounding(SIZES))
    if "cell_clip" in options:
        assert np.abs(got.results[2]).max() == options["cell_clip"] or kind == "one_row_false"


@pytest.mark.parametrize(
    ("activation", "jit_compile", "family"),
    divided(
        itertools.product(["tanh", "relu"], ["auto", False, True], GATED),
        [("tanh", "auto", LSTM), ("relu", True, GRU)],
    ),
    ids=label,
)
def test_both_paths_train_and_predict_in_a_model(activation, jit_compile, family, rng):
    """In XLA, plain ops replace the fused one: Keras does not warn."""
    layer = family.ours(5, activation=activation)
    model = keras.Sequential([keras.Input((None, SIZES.inputs)), layer])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.compile("sgd", "mse", jit_compile=jit_compile)
    assert jit_compile == "auto" or model.jit_compile is jit_compile
    x, y = rng.normal(size=(8, 4, SIZES.inputs)), rng.normal(size=(8, 5))
    losses = model.fit(x, y, epochs=3, verbose=0).history["loss"]
    assert losses[2] < losses[0]
    assert model.predict(x, verbose=0).shape == (8, 5)
