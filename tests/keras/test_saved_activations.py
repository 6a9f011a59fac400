"""When the op of a call saves activations. If it did not, its gradient runs the forward pass again.

The argument `training` of a call only says whether dropout applies.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import op_definitions
from tf_lstm_ops.keras import GRU, LSTM, StackedGRU, StackedLSTM

SHAPE = (3, 4, 5)
UNITS = 6

LAYERS: dict[str, Callable[..., keras.Layer]] = {
    "LSTM": lambda **options: LSTM(UNITS, **options),
    "LSTM in 16 bits": lambda **options: LSTM(UNITS, dtype="mixed_bfloat16", **options),
    "LSTM with norm": lambda **options: LSTM(UNITS, layer_normalization="addons", **options),
    "GRU": lambda **options: GRU(UNITS, **options),
    "GRU with norm": lambda **options: GRU(UNITS, layer_normalization=True, **options),
    "StackedLSTM": lambda **options: StackedLSTM(UNITS, 2, **options),
    "StackedGRU": lambda **options: StackedGRU(UNITS, 2, bidirectional=True, **options),
}
each_layer = pytest.mark.parametrize("kind", LAYERS)


@pytest.fixture
def saves(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each forward op that was run or traced, in order: whether it saves activations."""
    found: list[bool] = []
    function = op_definitions.function

    def noted(op: str) -> Callable[..., Any]:
        def call(*inputs: Any, **arguments: Any) -> Any:
            found.extend(arguments[n] for n in ("training", "is_training") if n in arguments)
            return function(op)(*inputs, **arguments)

        return call

    monkeypatch.setattr(op_definitions, "function", noted)
    return found


@pytest.fixture
def x() -> tf.Tensor:
    return tf.random.stateless_normal(SHAPE, seed=[1, 2])


def built(kind: str, **options: Any) -> keras.Layer:
    keras.utils.set_random_seed(7)
    layer = LAYERS[kind](**options)
    layer.build(SHAPE)
    return layer


def variables(layer: keras.Layer) -> list[tf.Variable]:
    return [weight.value for weight in layer.trainable_variables]


def gradients(layer: keras.Layer, x: tf.Tensor, **call: Any) -> list[tf.Tensor]:
    with tf.GradientTape() as tape:
        y = layer(x, **call)
    return tape.gradient(y, variables(layer))


def assert_same_bits(got: list[tf.Tensor], wanted: list[tf.Tensor]) -> None:
    assert any(np.any(w) for w in wanted)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


@each_layer
@pytest.mark.parametrize("call", [{}, {"training": False}], ids=["default", "False"])
def test_under_a_tape(kind, call, saves, x):
    layer = built(kind)
    got = gradients(layer, x, **call)
    assert saves == [True]
    assert_same_bits(got, gradients(layer, x, training=True))


@each_layer
def test_without_a_tape(kind, saves, x):
    layer = built(kind)
    layer(x)
    with tf.GradientTape() as tape:
        pass
    layer(x)
    with tape, tape.stop_recording():
        layer(x)
    assert saves == [False] * 3


UNWATCHED: dict[str, Callable[[tf.Tensor], AbstractContextManager]] = {
    "a tape of other variables": lambda x: tf.GradientTape(watch_accessed_variables=False),
    "an accumulator": lambda x: tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)),
}


@pytest.mark.sampled(1)
@each_layer
@pytest.mark.parametrize("context", UNWATCHED)
def test_no_tape_watches_the_call(kind, context, saves, x):
    layer = built(kind)
    with UNWATCHED[context](x):
        layer(x)
    assert saves[0] is False


@pytest.mark.parametrize("kind", ["LSTM", "StackedLSTM"])
def test_a_tape_that_watches_one_input(kind, saves, x):
    """The sequence, the initial state or a weight."""
    layer = built(kind)
    states = [tf.zeros([SHAPE[0], size]) for size in layer.cell.state_size]
    weight = layer.cell.trainable_variables[-1].value
    for watched in x, states[1], weight:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(watched)
            y = layer(x, initial_state=states)
        assert np.any(tape.gradient(y, watched))
    assert saves == [True] * 3


STATES = {"tensor": tf.identity, "tf.Variable": tf.Variable, "keras.Variable": keras.Variable}


@pytest.mark.sampled(1)
@each_layer
@pytest.mark.parametrize("state", STATES)
def test_states_of_any_class(kind, state, saves, x):
    layer = built(kind)
    sizes = layer.cell.state_size
    sizes = [sizes] if isinstance(sizes, int) else sizes
    states = [STATES[state](tf.fill([SHAPE[0], size], 0.5)) for size in sizes]
    got = gradients(layer, x, initial_state=states)
    assert saves == [True]
    assert_same_bits(got, gradients(layer, x, initial_state=states, training=True))


@each_layer
def test_stateful(kind, saves, x):
    layer = LAYERS[kind](stateful=True)
    model = keras.Sequential([keras.Input(batch_shape=SHAPE), layer])
    del saves[:]
    results = []
    for call in ({}, {"training": True}):
        layer.reset_states()
        results.append([gradients(model, x, **call) for _ in range(2)])
    assert saves == [True] * 4
    for got, wanted in zip(*results, strict=True):
        assert_same_bits(got, wanted)


@each_layer
def test_dropout_follows_the_argument(kind, saves, x):
    layer = built(kind, dropout=0.5)
    plain = layer(x)
    with tf.GradientTape():
        np.testing.assert_array_equal(layer(x), plain)
        assert np.abs(layer(x, training=True) - plain).max() > 1e-3
    ops = layer.num_layers if kind.startswith("Stacked") else 1  # with dropout, one for each layer
    assert saves == [False, True, *[True] * ops]


@each_layer
@pytest.mark.parametrize("persistent", [False, True])
def test_nested_tapes(kind, persistent, saves, x):
    layer = built(kind)
    wanted = gradients(layer, x, training=True)
    del saves[:]
    with tf.GradientTape() as outer, tf.GradientTape(persistent=persistent) as inner:
        y = layer(x)
    found = [tape.gradient(y, variables(layer)) for tape in (outer, *[inner] * (1 + persistent))]
    for got in found:
        assert_same_bits(got, wanted)
    assert saves == [True]


@each_layer
def test_a_function_with_a_tape(kind, saves, x):
    layer = built(kind)
    got = tf.function(lambda x: gradients(layer, x))(x)
    assert saves == [True]
    assert_same_bits(got, gradients(layer, x, training=True))


def gradients_of(function: Callable, layer: keras.Layer, x: tf.Tensor) -> list[tf.Tensor]:
    """Of a tf.function, whose call is what the tape records."""
    with tf.GradientTape() as tape:
        y = function(x)
    return tape.gradient(y, variables(layer))


@pytest.mark.sampled(1)
@each_layer
@pytest.mark.parametrize("traced_first", [False, True])
def test_a_function_under_a_tape(kind, traced_first, saves, x):
    """The tape counts while the function is traced; later calls run the same trace."""
    layer = built(kind)
    wanted, plain = gradients(layer, x, training=True), layer(x)
    function = tf.function(lambda x: layer(x))
    del saves[:]
    if traced_first:
        function(x)
    assert_same_bits(gradients_of(function, layer, x), wanted)
    assert saves == ([False, True] if traced_first else [True])
    np.testing.assert_array_equal(function(x), plain)


@each_layer
def test_gradients_of_a_graph(kind, saves, x):
    """tf.gradients needs no tape."""
    layer = built(kind)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=True)
    wanted = tape.gradient(y, [x])
    del saves[:]
    got = tf.function(lambda x: tf.gradients(layer(x), [x]))(x)
    assert saves == [False, True]
    assert_same_bits(got, wanted)


# Keras has remat from version 3.9 on.
RECOMPUTED = [tf.recompute_grad, *([keras.remat] if hasattr(keras, "remat") else [])]


@pytest.mark.parametrize("recomputed", RECOMPUTED)
@each_layer
def test_recomputed(kind, recomputed, saves, x):
    """The first pass saves nothing, the second one does."""
    layer = built(kind)
    wanted = gradients(layer, x, training=True)
    del saves[:]
    assert_same_bits(gradients_of(recomputed(layer), layer, x), wanted)
    assert saves == [False, True]


@pytest.mark.sampled(1, strength=0)
@each_layer
def test_inference_of_models(kind, saves, x, tmp_path):
    model = keras.Sequential([keras.Input(SHAPE[1:]), built(kind)])
    del saves[:]
    model.predict(x, verbose=0)
    model.export(tmp_path, verbose=False)
    assert saves and not any(saves)


@pytest.mark.sampled(1, strength=0)
@each_layer
def test_models_exported_under_a_tape(kind, saves, x, tmp_path):
    """They save activations, which changes no result."""
    model = keras.Sequential([keras.Input(SHAPE[1:]), built(kind)])
    del saves[:]
    with tf.GradientTape():
        model.export(tmp_path, verbose=False)
    assert saves and all(saves)
    loaded = tf.saved_model.load(tmp_path)
    np.testing.assert_array_equal(loaded.serve(x), tf.function(model)(x))


@each_layer
def test_mirrored_weights_have_no_handle_outside_of_a_replica(kind, saves, x):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        layer = built(kind)
        for context, wanted in (tf.GradientTape(), True), (nullcontext(), False):
            with context:
                layer(x)
            assert saves.pop() is wanted
