"""learned_initial_state: the weights initial_h and initial_c instead of zeros."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import weights
from tf_lstm_ops.keras import GRU, LSTM, Bidirectional, SimpleRNN, convert_model
from tf_lstm_ops.keras.of_cell import GRUOfCell

BATCH, STEPS, INPUTS, UNITS = 3, 5, 4, 3
LAYERS: dict[str, Callable[..., Any]] = {
    "LSTM": lambda **given: LSTM(UNITS, **given),
    "projection": lambda **given: LSTM(UNITS, projection_size=2, **given),
    "GRU": lambda **given: GRU(UNITS, **given),
    "loop": lambda **given: GRU(UNITS, activation="selu", **given),
    "SimpleRNN": lambda **given: SimpleRNN(UNITS, **given),
}


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")


def learning(name: str, rng: np.random.Generator, **given: Any) -> Any:
    """A layer whose weights are not zero."""
    layer = LAYERS[name](learned_initial_state=True, **given)
    layer.build((None, None, INPUTS))
    randomise(layer, rng)
    return layer


def randomise(model: Any, rng: np.random.Generator) -> None:
    model.set_weights([rng.uniform(-0.7, 0.7, w.shape) for w in model.get_weights()])


def states(layer: Any) -> list[Any]:
    """The learned states, a row for each of the batch."""
    return [
        tf.broadcast_to(each.value, [BATCH, each.shape[0]]) for each in layer.learned_states.weights
    ]


def assert_equal(found: Any, wanted: Any) -> None:
    pairs = zip(keras.tree.flatten(found), keras.tree.flatten(wanted), strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", LAYERS)
def test_the_bits_of_an_explicit_state(name: str, x: Any, rng: Any) -> None:
    layer = learning(name, rng, return_sequences=True, return_state=True)
    mask = rng.uniform(size=(BATCH, STEPS)) < 0.7
    for given in ({}, {"mask": mask}):
        assert_equal(layer(x, **given), layer(x, initial_state=states(layer), **given))
    zeros = layer(x, initial_state=[tf.zeros_like(each) for each in states(layer)])
    assert not np.allclose(zeros[0], layer(x)[0])


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_sums_over_the_batch(name: str, x: Any, rng: Any) -> None:
    layer = learning(name, rng, return_sequences=True)
    learned = [each.value for each in layer.learned_states.weights]
    with tf.GradientTape(persistent=True) as tape:
        explicit = states(layer)
        tape.watch(explicit)
        of_explicit = tf.reduce_sum(tf.square(layer(x, initial_state=explicit)))
        of_learned = tf.reduce_sum(tf.square(layer(x)))
    wanted = [tf.reduce_sum(each, 0) for each in tape.gradient(of_explicit, explicit)]
    # The order of a sum of BATCH numbers near 1.
    for one, other in zip(tape.gradient(of_learned, learned), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
        assert np.any(other)


def test_weights(x: Any) -> None:
    """They begin with zeros, and follow the others."""
    for name, shapes in (
        ("LSTM", {"initial_h": (UNITS,), "initial_c": (UNITS,)}),
        ("projection", {"initial_h": (2,), "initial_c": (UNITS,)}),
        ("GRU", {"initial_h": (UNITS,)}),
        ("SimpleRNN", {"initial_h": (UNITS,)}),
    ):
        layer, plain = LAYERS[name](learned_initial_state=True), LAYERS[name]()
        for each in (layer, plain):
            each.build((None, None, INPUTS))
        added = layer.trainable_weights[len(plain.weights) :]
        assert {each.name: tuple(each.shape) for each in added} == shapes
        assert all(each.path.startswith(f"{layer.name}/") for each in added)
        plain.set_weights(layer.get_weights()[: len(plain.weights)])
        assert_equal(layer(x), plain(x))
        layer.trainable = False
        assert not layer.trainable_weights


def test_the_configuration() -> None:
    """Stock layers take that of a layer without the option."""
    config = GRU(UNITS, learned_initial_state=True).get_config()
    assert config["learned_initial_state"] is True
    assert GRU.from_config(config).learned_initial_state
    assert "learned_initial_state" not in GRU(UNITS).get_config()


@pytest.mark.parametrize("jit_compile", [False, True])
def test_functions(jit_compile: bool, x: Any, rng: Any) -> None:
    layer = learning("LSTM", rng)
    function = tf.function(layer, jit_compile=jit_compile)
    given = tf.function(lambda x: layer(x, initial_state=states(layer)), jit_compile=jit_compile)
    assert_equal(function(x), given(x))


def test_models(x: Any, rng: Any, tmp_path: Path) -> None:
    """They train, and are saved, loaded and copied."""
    second = GRU(UNITS, learned_initial_state=True)
    layers = [learning("LSTM", rng, return_sequences=True), Bidirectional(second)]
    model = keras.Sequential([keras.Input((None, INPUTS)), *layers])
    assert layers[1].uses_fused_op
    randomise(model, rng)
    before = model.get_weights()
    model.compile("sgd", "mse")
    model.fit(x, np.ones((BATCH, 2 * UNITS)), verbose=0)
    assert all(np.any(one != other) for one, other in zip(before, model.get_weights(), strict=True))
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    for copy in (keras.models.load_model(tmp_path / "model.keras"), convert_model(model)):
        assert_equal(copy(x), model(x))
        randomise(copy, rng)
        copy.load_weights(tmp_path / "model.weights.h5")
        assert_equal(copy(x), model(x))


def test_both_directions(x: Any, rng: Any) -> None:
    """One op, two ops, and the wrapper of keras.layers give the same."""
    ours = Bidirectional(learning("LSTM", rng, return_sequences=True))
    stock = keras.layers.Bidirectional(learning("LSTM", rng, return_sequences=True))
    for each in (ours, stock):
        each.build((None, None, INPUTS))
    randomise(ours, rng)
    stock.set_weights(ours.get_weights())
    initial = [each for part in (ours.forward_layer, ours.backward_layer) for each in states(part)]
    assert_equal(ours(x), ours(x, initial_state=initial))
    assert_equal(ours(x), stock(x))


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float64"])
def test_types(policy: str, x: Any, rng: Any) -> None:
    layer = learning("LSTM", rng, dtype=policy)
    assert {each.dtype for each in layer.weights} == {layer.variable_dtype}
    given = [tf.cast(each, layer.compute_dtype) for each in states(layer)]
    assert_equal(layer(x), layer(x, initial_state=given))


def test_rows_that_are_not_computed(x: Any, rng: Any) -> None:
    """Without valid steps the final states are the learned ones; a batch may be empty."""
    layer = learning("LSTM", rng, return_state=True)
    assert_equal(layer(x, sequence_lengths=[0] * BATCH)[1:], states(layer))
    assert layer(x[:0])[0].shape == (0, UNITS)
    ragged = tf.RaggedTensor.from_tensor(x, [5, 0, 3])
    assert_equal(layer(ragged)[2][1], layer.learned_states.initial_c)


def test_refused() -> None:
    for name in LAYERS:
        with pytest.raises(ValueError, match="learned_initial_state=True needs stateful=False"):
            LAYERS[name](learned_initial_state=True, stateful=True)
    for name in ("LSTM", "GRU"):
        with pytest.raises(ValueError, match=r"own cuDNN path, which has no .*learned_initial_st"):
            LAYERS[name](learned_initial_state=True, use_cudnn=True)
    with pytest.raises(ValueError, match=r"no initial states yet\. Build it first"):
        GRU(UNITS, learned_initial_state=True).get_initial_state(BATCH)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("LSTM", weights.LSTMWeights),
        ("GRU", weights.GRUWeights),
        ("SimpleRNN", weights.RNNWeights),
    ],
)
def test_formats_without_it_refuse_it(name: str, kind: Any, rng: Any) -> None:
    layer = learning(name, rng)
    with pytest.raises(ValueError, match="has learned_initial_state, which other formats of"):
        kind.from_keras(layer)
    with pytest.raises(ValueError, match="arrays are more than those of a"):
        kind.from_keras(layer.get_weights())
    model = keras.Sequential([keras.Input((None, INPUTS)), layer])
    for in_place in (False, True):
        with pytest.raises(ValueError, match="has no learned_initial_state=True"):
            convert_model(model, to="stock", in_place=in_place)
    assert type(layer).__module__.startswith("tf_lstm_ops")


def test_a_layer_of_a_cell_is_no_stock_layer() -> None:
    layer = GRUOfCell(UNITS, learned_initial_state=True)
    model = keras.Sequential([keras.Input((None, INPUTS)), layer])
    with pytest.raises(ValueError, match=r"keras.layers.RNN has no learned_initial_state=True"):
        convert_model(model, to="stock")


def test_layers_become_stock_and_back_without_it(x: Any) -> None:
    """A stock layer has the build of the class that it was, and of our class afterwards."""
    model = keras.Sequential([GRU(UNITS)])
    model(x)
    convert_model(model, to="stock", in_place=True)
    wanted = model(x)
    assert type(model.layers[0]) is keras.layers.GRU
    convert_model(model, in_place=True)
    assert not model.layers[0].learned_initial_state
    np.testing.assert_allclose(model(x), wanted, rtol=0, atol=1e-6)
