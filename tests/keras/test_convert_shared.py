"""convert_model of nested models that share layers: so do the nested models of the copy."""

from collections.abc import Callable

import keras
import numpy as np
import pytest
from keras import layers

from tf_lstm_ops import _keras_private
from tf_lstm_ops.keras import GRU, LSTM, StackedGRU, convert_model, fallback_reasons

from .convert_models import BATCH, PREDICTION_BOUND, TIME, UNITS, assert_near, outputs, randomised

WORDS = 9
Model = keras.Model
MODELS: dict[str, Callable[[], Model]] = {}


def model_of(make: Callable[[], Model]) -> Callable[[], Model]:
    MODELS[make.__name__] = make
    return make


def words(name: str | None = None) -> keras.KerasTensor:
    return keras.Input((TIME,), dtype="int32", name=name)


@model_of
def encoder_and_decoder() -> Model:
    """Both have the Embedding; the states of the encoder go to the decoder."""
    embedding = layers.Embedding(WORDS, UNITS, mask_zero=True)
    source = words()
    _, *states = layers.LSTM(UNITS, return_state=True)(embedding(source))
    encoder = Model(source, states, name="encoder")
    target, h, c = words(), keras.Input((UNITS,)), keras.Input((UNITS,))
    y = layers.LSTM(UNITS, return_sequences=True)(embedding(target), initial_state=[h, c])
    decoder = Model([target, h, c], layers.Dense(WORDS)(y), name="decoder")
    a, b = words("a"), words("b")
    return Model([a, b], decoder([b, *encoder(a)]))


@model_of
def siamese() -> Model:
    """Two towers of different classes share an Embedding and an LSTM; the outer model, too."""
    embedding, shared = layers.Embedding(WORDS, UNITS), layers.LSTM(UNITS, name="shared")
    first = keras.Sequential([words(), embedding, shared, layers.Dense(3)], name="first")
    source = words()
    hidden = layers.Bidirectional(layers.GRU(UNITS, return_sequences=True), merge_mode="sum")(
        embedding(source)
    )
    second = Model(source, layers.Dense(3)(shared(hidden)), name="second")
    a, b = words("a"), words("b")
    outer = shared(embedding(b)) + shared(embedding(a))
    return Model({"a": a, "b": b}, {"x": first(a) - second(b), "y": outer})


@model_of
def of_several_cells() -> Model:
    shared = layers.RNN([layers.GRUCell(UNITS), layers.GRUCell(UNITS)], name="several")
    embedding = layers.Embedding(WORDS, UNITS)
    source = words()
    first = Model(source, shared(embedding(source)))
    second = keras.Sequential([words(), embedding, shared])
    a, b = words("a"), words("b")
    return Model([a, b], layers.Add()([first(a), second(b)]))


@model_of
def in_a_wrapper() -> Model:
    """TimeDistributed of a model that has the layer of another one."""
    shared = layers.LSTM(UNITS, name="shared")
    source = keras.Input((TIME // 2, 1))
    inner = Model(source, shared(source), name="inner")
    other = keras.Sequential([keras.Input((TIME, 1)), shared, layers.Dense(UNITS)], name="other")
    a, b = words("a"), words("b")
    values = [layers.Reshape((TIME, 1))(layers.Rescaling(0.1)(x)) for x in (a, b)]
    several = layers.TimeDistributed(inner)(layers.Reshape((2, TIME // 2, 1))(values[0]))
    return Model([a, b], layers.Add()([several[:, 0], other(values[1])]))


@model_of
def in_two_wrappers() -> Model:
    """A model that is shared by two TimeDistributed only."""
    source = keras.Input((TIME // 2, 1))
    inner = Model(source, layers.LSTM(UNITS)(source), name="inner")
    towers = []
    for name in ("first", "second"):
        source = keras.Input((2, TIME // 2, 1))
        towers.append(Model(source, layers.TimeDistributed(inner)(source), name=name))
    inputs = [words("a"), words("b")]
    values = [layers.Reshape((2, TIME // 2, 1))(layers.Rescaling(0.1)(x)) for x in inputs]
    return Model(inputs, [tower(value) for tower, value in zip(towers, values, strict=True)])


def inputs_of(model: Model, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {x.name: rng.integers(0, WORDS, size=(BATCH, TIME)) for x in model.inputs}


@pytest.mark.sampled(1, strength=0)
@pytest.mark.filterwarnings("ignore:.*does not support masking:UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_the_copy(name: str, rng: np.random.Generator) -> None:
    model = MODELS[name]()
    x = inputs_of(model, rng)
    randomised(model, x, rng)
    copy = convert_model(model)
    assert_near(outputs(copy, x), outputs(model, x), PREDICTION_BOUND)
    kinds = {type(layer) for layer in _keras_private.layers_of(copy)}
    assert kinds & {LSTM, GRU, StackedGRU}
    assert set(fallback_reasons(copy).values()) == {None}
    assert not {id(v) for v in copy.weights} & {id(v) for v in model.weights}
    # One step of training changes the shared layers of both in the same way.
    for item in (model, copy):
        item.compile("sgd", "mse")
    target = keras.tree.map_structure(np.zeros_like, model(x))
    for item in (model, copy):
        item.train_on_batch(x, target)
    assert_near(outputs(copy, x), outputs(model, x), 2 * PREDICTION_BOUND)


def test_back_to_stock(rng: np.random.Generator) -> None:
    model = siamese()
    x = inputs_of(model, rng)
    randomised(model, x, rng)
    copy = convert_model(convert_model(model), to="stock")
    for a, b in zip(outputs(copy, x), outputs(model, x), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.full
def test_the_training_of_the_copy_goes_on(rng: np.random.Generator) -> None:
    """Losses that Keras cannot serialise, and a nested model that is compiled, too."""
    model = siamese()
    x = inputs_of(model, rng)
    randomised(model, x, rng)
    target = keras.tree.map_structure(np.zeros_like, model(x))
    model.get_layer("second").compile("sgd", loss=lambda y, p: keras.ops.mean(p - y))
    model.compile("adam", loss={k: lambda y, p: keras.ops.mean((p - y) ** 2) for k in "xy"})
    model.train_on_batch(x, target)
    copy = convert_model(model)
    for a, b in zip(copy.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(a, b)
    for item in (model, copy):
        item.train_on_batch(x, target)
    # Adam divides by the root of the squared gradient, which enlarges rounding errors.
    assert_near(outputs(copy, x), outputs(model, x), 100 * PREDICTION_BOUND)


def test_a_functional_class_of_the_users(rng: np.random.Generator) -> None:
    @keras.saving.register_keras_serializable("test_convert_shared")
    class Own(keras.Model):
        pass

    plain = encoder_and_decoder()
    model = Own(plain.inputs, plain.outputs, name="own")
    x = inputs_of(model, rng)
    copy = convert_model(model)
    assert type(copy) is Own
    assert_near(outputs(copy, x), outputs(model, x), PREDICTION_BOUND)


def test_stacks_beside_shared_layers_do_not_become_stock(rng: np.random.Generator) -> None:
    copy = convert_model(of_several_cells())
    with pytest.raises(ValueError, match=r"whose nested models share layers:\n  .*several"):
        convert_model(copy, to="stock")
