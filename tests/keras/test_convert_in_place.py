"""convert_model(in_place=True): the model itself runs the other layers; its variables stay."""

import warnings
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

import tf_lstm_ops
from tf_lstm_ops import _keras_private
from tf_lstm_ops.keras import GRU, LSTM, LSTMCell, convert, convert_model, fallback_reasons
from tf_lstm_ops.keras.single_layer import SingleLayerRNN

from .convert_models import (
    BATCH,
    INPUTS,
    PREDICTION_BOUND,
    TIME,
    UNITS,
    Model,
    assert_near,
    inputs_of,
    local_loss,
    nested,
    outputs,
    randomised,
)


class Subclassed(keras.Model):
    """Layers in attributes, lists, dictionaries, a nested model, a wrapper and a closure.

    Without get_config, and with an argument that Keras cannot save.
    """

    def __init__(self, scale: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale
        self.first = layers.LSTM(UNITS, return_sequences=True, name="first")
        self.stack = [layers.GRU(UNITS, return_sequences=True, name="in_list"), layers.Dense(UNITS)]
        self.by_name = {"both": layers.Bidirectional(layers.LSTM(UNITS, name="lstm"), name="both")}
        self.inner = keras.Sequential([layers.GRU(UNITS, name="in_model")], name="inner")
        self.closure = lambda x: self.first(self.inner.layers[0](x)[:, None])[:, 0]

    def call(self, x: Any) -> Any:
        h = self.first(x) * float(self.scale[0])
        for layer in self.stack:
            h = layer(h)
        both = self.by_name["both"](h)
        return both[:, :UNITS] + self.inner(h) + both[:, UNITS:] * self.closure(self.first(x))


PATHS = ["first", "in_list", "both/forward_lstm", "both/backward_lstm", "inner/in_model"]


def subclassed(x: np.ndarray, rng: np.random.Generator) -> Model:
    model = Subclassed(np.ones(1), name="outer")
    model.inner.build((None, None, UNITS))
    return randomised(model, x, rng)


@pytest.fixture
def x(rng) -> np.ndarray:
    # The closure runs a layer of UNITS inputs on the outputs of one of INPUTS inputs.
    return rng.normal(size=(BATCH, TIME, UNITS)).astype("float32")


def test_a_model_without_configuration(x, rng):
    model = subclassed(x, rng)
    with pytest.raises(ValueError, match=r"cannot make outer from .*in_place=True"):
        convert_model(model)
    variables, wanted, stock = list(model.variables), outputs(model, x), classes(model)
    assert convert_model(model, in_place=True) is model
    assert fallback_reasons(model) == dict.fromkeys(PATHS)
    assert [*map(id, model.variables)] == [*map(id, variables)]
    assert_near(outputs(model, x), wanted, 3 * PREDICTION_BOUND)  # four layers deep

    assert convert_model(model, to="stock", in_place=True) is model
    assert classes(model) == stock
    for a, b in zip(outputs(model, x), wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def classes(model: Model) -> list[type]:
    return [type(layer) for layer in model._flatten_layers()] + [
        type(layer.cell) for layer in model._flatten_layers() if isinstance(layer, layers.RNN)
    ]


class Small(keras.Model):
    """A model that Keras cannot make anew."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.memory = layers.GRU(UNITS)

    def call(self, x: Any) -> Any:
        return self.function(self.memory(x))


@pytest.mark.full
def test_it_stays_compiled_and_runs_the_fused_op_at_once(x, rng, monkeypatch):
    """Training takes the steps that the stock model would take."""
    models = [randomised(Small(abs), x, np.random.default_rng(5)) for _ in range(2)]
    y = rng.normal(size=(BATCH, UNITS)).astype("float32")
    for model in models:
        model.compile(keras.optimizers.Adam(0.01), local_loss, jit_compile=False)
        model.train_on_batch(x, y)
    models[0].predict(x, verbose=0)  # traces the stock layers
    optimizer = models[0].optimizer
    convert_model(models[0], in_place=True)
    assert models[0].optimizer is optimizer and int(optimizer.iterations) == 1

    ran = []
    inner_loop = SingleLayerRNN.inner_loop
    monkeypatch.setattr(
        SingleLayerRNN,
        "inner_loop",
        lambda layer, *args, **kwargs: ran.append(layer) or inner_loop(layer, *args, **kwargs),
    )
    models[0].predict(x, verbose=0)
    assert set(ran) == {models[0].memory}
    losses = [[m.train_on_batch(x, y) for _ in range(3)] for m in models]
    # Adam's steps amplify rounding of tiny gradients; a step is up to 0.01.
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    assert losses[0][2] < losses[0][0]


def test_a_functional_model(rng):
    model = nested()
    x = inputs_of(model, rng)
    wanted = outputs(randomised(model, x, rng), x)
    convert_model(model, in_place=True)
    assert set(fallback_reasons(model).values()) == {None}
    assert_near(outputs(model, x), wanted, PREDICTION_BOUND)
    # A functional model of the result, with the configuration of layers made anew.
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    assert {type(layer) for layer in copy._flatten_layers()} == {
        type(layer) for layer in model._flatten_layers()
    }
    for a, b in zip(outputs(copy, x), outputs(model, x), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("library", [layers, tf_lstm_ops.keras], ids=["stock", "fused"])
def test_files_of_a_layer_shared_by_nested_models(library, rng, tmp_path):
    """Keras cannot load a .keras file of it. The model of an .h5 file has the layer twice."""
    x = keras.Input((TIME, INPUTS))
    shared = library.LSTM(UNITS)
    model = keras.Model(x, layers.Add()([keras.Model(x, shared(x))(x), shared(x)]))
    model.save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="could not be loaded"):
        keras.models.load_model(tmp_path / "model.keras")
    model.save(tmp_path / "model.h5")
    loaded = keras.models.load_model(tmp_path / "model.h5")
    assert len(loaded.weights) > len(model.weights)
    values = inputs_of(model, rng)
    np.testing.assert_array_equal(outputs(loaded, values), outputs(model, values))


class Own(layers.LSTM):
    """A layer that convert_model leaves alone, with a warning."""

    def get_initial_state(self, batch_size=None):
        return super().get_initial_state(batch_size)


@pytest.mark.parametrize("step", ["warning", "wrapper", "traces"])
def test_nothing_changes_after_an_error(step, rng, monkeypatch):
    """Whichever step of the conversion raises, the layers are those of before."""
    names = {"wrapper": (LSTM, "uses_fused_op"), "traces": (_keras_private, "forget_traces")}
    model = keras.Sequential(
        [
            keras.Input((TIME, INPUTS)),
            layers.LSTM(UNITS, return_sequences=True),
            layers.Bidirectional(layers.GRU(UNITS, return_sequences=True)),
            layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True)),
            Own(UNITS),
        ]
    )
    x = inputs_of(model, rng)
    wanted = outputs(model, x)
    before = [(type(item), dict(vars(item))) for item in _keras_private.layers_of(model)]
    with warnings.catch_warnings():
        if step == "warning":
            warnings.simplefilter("error")
        else:
            warnings.simplefilter("ignore")

            def fail(*args):
                raise KeyboardInterrupt

            kind, name = names[step]
            monkeypatch.setattr(kind, name, property(fail) if step == "wrapper" else fail)
        with pytest.raises((UserWarning, KeyboardInterrupt)):
            convert_model(model, in_place=True)
    monkeypatch.undo()
    after = [(type(item), dict(vars(item))) for item in _keras_private.layers_of(model)]
    assert [kind for kind, _ in after] == [kind for kind, _ in before]
    for (_, new), (_, old) in zip(after, before, strict=True):
        assert new.keys() == old.keys()
    np.testing.assert_array_equal(outputs(model, x), wanted)


def test_layers_that_are_not_built(x):
    models = [keras.Sequential([c(UNITS), layers.Dense(2)]) for c in (layers.LSTM, LSTM)]
    convert_model(models[0], in_place=True)
    for model in models:
        model.build(x.shape)
    models[1].set_weights(models[0].get_weights())
    assert_near(outputs(models[0], x), outputs(models[1], x), 0)
    assert models[0].layers[0].get_build_config() == models[1].layers[0].get_build_config()
    assert models[0].layers[0].supports_jit


def test_layers_left_alone_are_named():
    model = keras.Sequential([layers.SimpleRNN(UNITS, "elu", name="simple")])
    with pytest.warns(UserWarning, match="simple: activation is elu, neither tanh nor relu"):
        convert_model(model, in_place=True)


@pytest.mark.parametrize("to", ["fused", pytest.param("stock", marks=pytest.mark.full)])
def test_after_an_error_nothing_has_changed(x, rng, monkeypatch, to):
    model = subclassed(x, rng)
    if to == "stock":
        convert_model(model, in_place=True)
    before, attributes = classes(model), [set(vars(a)) for a in model._flatten_layers()]
    wanted, become, count = outputs(model, x), convert._become, 0

    def fails_at_the_third(layer, *arguments):
        nonlocal count
        become(layer, *arguments)
        count += 1
        if count == 3:
            raise RuntimeError("a class of the user's")

    monkeypatch.setattr(convert, "_become", fails_at_the_third)
    with pytest.raises(RuntimeError):
        convert_model(model, to=to, in_place=True)
    assert classes(model) == before
    assert [set(vars(a)) for a in model._flatten_layers()] == attributes
    assert_near(outputs(model, x), wanted, 0)


class WithoutConfiguration(layers.Layer):
    def __init__(self, function, **kwargs):
        super().__init__(**kwargs)
        self.function = function
        self.memory = layers.GRU(UNITS)

    def call(self, x):
        return self.memory(self.function(x))


def test_the_error_names_the_layer_without_configuration(x, rng):
    own = WithoutConfiguration(np.tanh, name="own")
    inner = keras.Sequential([layers.LSTM(UNITS, return_sequences=True), own], name="inner")
    model = keras.Sequential([inner, layers.Dense(2)])
    with pytest.raises(ValueError, match=r"make inner/own \(of class WithoutConfiguration\) from"):
        convert_model(model)
    convert_model(model, in_place=True)
    assert set(fallback_reasons(model).values()) == {None}
    assert type(own.memory) is GRU


class MadeAnew(keras.Model):
    """Without get_config and without arguments of its own: Keras calls the constructor again."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.memories = [layers.LSTM(UNITS, return_sequences=True), layers.GRU(UNITS)]

    def call(self, x):
        for memory in self.memories:
            x = memory(x)
        return x


def test_a_subclassed_model_that_keras_can_make_anew_is_copied(x, rng):
    model = MadeAnew()
    wanted = outputs(randomised(model, x, rng), x)
    converted = convert_model(model)
    assert set(fallback_reasons(converted).values()) == {None}
    assert [type(m) for m in model.memories] == [layers.LSTM, layers.GRU]
    assert_near(outputs(converted, x), wanted, PREDICTION_BOUND)


class WithUnits(MadeAnew):
    """The argument is not in the configuration that Keras makes of the constructor."""

    def __init__(self, units=UNITS, **kwargs):
        super().__init__(**kwargs)
        self.memories.insert(0, layers.LSTM(units, return_sequences=True))


def test_a_subclassed_model_with_an_argument_is_not_copied(x, rng):
    model = randomised(WithUnits(UNITS + 1), x, rng)
    with pytest.raises(ValueError, match="in_place=True"):
        convert_model(model)
    convert_model(model, in_place=True)
    assert set(fallback_reasons(model).values()) == {None}


def test_cells_in_place(x, rng):
    model = keras.Sequential([layers.RNN(LSTMCell(UNITS)), layers.Dense(2)])
    wanted = outputs(randomised(model, x, rng), x)
    convert_model(model, to="stock", in_place=True)
    assert type(model.layers[0].cell) is layers.LSTMCell
    assert_near(outputs(model, x), wanted, PREDICTION_BOUND)
    convert_model(model, in_place=True)  # the RNN of a cell becomes the layer
    assert isinstance(model.layers[0], LSTM)
    assert_near(outputs(model, x), wanted, PREDICTION_BOUND)


class Unbuilt(keras.Model):
    def __init__(self, module) -> None:
        super().__init__()
        initializers = {
            f"{kind}_initializer": keras.initializers.GlorotUniform(seed)
            for seed, kind in enumerate(("kernel", "recurrent"))
        }
        self.first = module.LSTM(UNITS, return_sequences=True, **initializers)
        self.second = module.GRU(UNITS, **initializers)

    def call(self, x):
        return self.second(self.first(x))


@pytest.mark.parametrize("to", ["fused", "stock"])
def test_a_model_that_is_not_built(to, x):
    """Keras binds the method build to a layer when the layer is made."""
    modules = {"fused": keras.layers, "stock": tf_lstm_ops.keras}
    model = convert_model(Unbuilt(modules[to]), to=to, in_place=True)
    expected = Unbuilt(modules[to])(x)
    assert type(model.first).__module__.startswith("tf_lstm_ops" if to == "fused" else "keras")
    # Sums of some ten products of about one in float32, through two layers.
    np.testing.assert_allclose(model(x), expected, rtol=0, atol=1e-6)
    back = convert_model(model, to="stock" if to == "fused" else "fused", in_place=True)
    np.testing.assert_allclose(back(x), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("in_place", [False, True])
def test_a_lambda_is_left_alone(in_place, x):
    inputs = keras.Input((None, x.shape[2]))
    layer = keras.layers.LSTM(UNITS, activation=lambda v: keras.ops.tanh(v), name="memory")
    model = keras.Model(inputs, layer(inputs))
    reason = "activation is <lambda>, which has no fused op"
    assert fallback_reasons(model) == {"memory": reason}
    expected = model(x)
    with pytest.warns(UserWarning, match=f"memory: {reason}"):
        converted = convert_model(model, in_place=in_place)
    assert type(converted.get_layer("memory")) is keras.layers.LSTM
    np.testing.assert_array_equal(converted(x), expected)
