"""convert_model with classes and functions of the user's own."""

import functools
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

import tf_lstm_ops
from tf_lstm_ops.keras import convert_model, fallback_reasons

from .convert_models import (
    BATCH,
    INPUTS,
    PREDICTION_BOUND,
    TIME,
    UNITS,
    assert_near,
    local_loss,
    outputs,
    randomised,
)


class OwnLSTM(layers.LSTM):
    """A subclass may compute anything."""

    def get_initial_state(self, batch_size=None):
        return super().get_initial_state(batch_size)


class MakesItself(layers.Layer):
    """Its constructor makes its layers; its configuration does not describe them."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.memory = layers.LSTM(UNITS, return_sequences=True, name="memory")
        self.cell = layers.GRUCell(UNITS, name="cell")

    def build(self, shape):
        self.memory.build(shape)
        self.cell.build((shape[0], UNITS))

    def call(self, x):
        x = self.memory(x)
        last = x[:, -1]
        return x + self.cell(last, [last])[0][:, None]


def own_tanh(x: Any) -> Any:
    return keras.ops.tanh(x)


def test_layers_left_alone_are_named(rng):
    sequences = {"return_sequences": True}
    gru = layers.GRU(UNITS, activation="selu", name="gru", **sequences)
    two_cells = [layers.LSTMCell(UNITS), layers.GRUCell(UNITS)]
    model = keras.Sequential(
        [
            keras.Input((TIME, INPUTS)),
            layers.LSTM(UNITS, name="lstm_selu", activation="selu", **sequences),
            layers.LSTM(UNITS, name="own_tanh", activation=own_tanh, **sequences),
            layers.Bidirectional(gru, name="both"),
            layers.RNN(layers.GRUCell(UNITS, activation="selu"), name="selu", **sequences),
            layers.RNN(two_cells, name="stacked", **sequences),
            layers.SimpleRNN(UNITS, "elu", name="simple", **sequences),
            OwnLSTM(UNITS, name="own", **sequences),
            MakesItself(name="maker"),
            tf_lstm_ops.keras.LSTM(UNITS, name="ours", use_peephole=True, **sequences),
            layers.GRU(UNITS, name="stock"),
        ]
    )
    subclass = ": it is a subclass of keras.layers.LSTM, whose call may differ"
    expected = {
        "lstm_selu": "activation is selu, which has no fused op",
        "own_tanh": "activation is own_tanh, which has no fused op",
        "both/forward_gru": "activation is selu, which has no fused op",
        "both/backward_gru": "activation is selu, which has no fused op",
        "selu": "activation is selu, which has no fused op",
        "stacked": "its cells are of several classes: LSTMCell, GRUCell",
        "simple": "activation is elu, neither tanh nor relu",
        "own": f"OwnLSTM has no fused op{subclass}",
        "maker/cell": "GRUCell has no fused op",
    }
    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    randomised(model, x, rng)
    for path, name in ("stock", "GRU"), ("maker/memory", "LSTM"):
        assert (
            fallback_reasons(model)[path] == f"it is keras.layers.{name}; convert_model replaces it"
        )
    with pytest.warns(UserWarning) as caught:
        converted = convert_model(model)
    (warning,) = caught
    assert warning.filename == __file__
    for path, why in expected.items():
        assert f"\n  {path}: {why}" in str(warning.message)
    assert fallback_reasons(converted) == {
        **expected,
        **{"ours": None, "stock": None, "maker/memory": None},
    }
    assert_near(outputs(converted, x), outputs(model, x), 3 * PREDICTION_BOUND)  # ten layers


def test_reasons_of_one_layer():
    """A fused layer is one item; its cell is none, wherever it is an attribute."""
    ours = tf_lstm_ops.keras.LSTM(UNITS, name="ours")
    assert fallback_reasons(ours) == {"ours": None}
    assert fallback_reasons(ours.cell) == {}
    assert fallback_reasons(tf_lstm_ops.keras.GRU(UNITS, name="gru")) == {"gru": None}
    both = layers.Bidirectional(tf_lstm_ops.keras.LSTM(UNITS, name="ours", activation="selu"))
    selu = "activation is selu, which has no fused op"
    assert fallback_reasons(both) == {"forward_ours": selu, "backward_ours": selu}
    stock = fallback_reasons(layers.SimpleRNN(UNITS, name="simple"))
    assert stock == {"simple": "it is keras.layers.SimpleRNN; convert_model replaces it"}
    assert fallback_reasons(layers.Dense(UNITS)) == {}

    keeper = layers.TimeDistributed(layers.Dense(1))
    keeper.cell, keeper.memory = ours.cell, ours
    assert fallback_reasons(keeper) == {"ours": None}


class OwnModel(keras.Model):
    """A functional model of a class of its own; not registered with Keras."""

    def train_step(self, data):
        return {"loss": 42.0}


class Configured(keras.Model):
    """A subclassed model whose configuration holds its layers."""

    def __init__(self, memory, **kwargs):
        super().__init__(**kwargs)
        self.memory = memory

    def call(self, x):
        return self.memory(x)

    def get_config(self):
        return {"memory": keras.saving.serialize_keras_object(self.memory)}

    @classmethod
    def from_config(cls, config):
        return cls(keras.saving.deserialize_keras_object(config["memory"]))


def test_classes_of_the_users(rng):
    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    inputs = keras.Input((TIME, INPUTS))
    own = OwnModel(inputs, layers.LSTM(UNITS)(inputs))
    for model in own, Configured(layers.Bidirectional(layers.LSTM(UNITS))):
        wanted = outputs(randomised(model, x, rng), x)
        converted = convert_model(model)
        assert type(converted) is type(model)
        assert set(fallback_reasons(converted).values()) == {None}
        assert_near(outputs(converted, x), wanted, PREDICTION_BOUND)
    own.compile("sgd", "mse")
    assert convert_model(own).train_step(None) == {"loss": 42.0}


class OwnCompile(OwnModel):
    def compile(self, *args, **kwargs):
        super().compile(*args, **kwargs)


@pytest.mark.filterwarnings(r"ignore:`compile\(\)` was not called")
def test_a_compile_of_the_users_is_reported():
    inputs = keras.Input((TIME, INPUTS))
    model = OwnCompile(inputs, layers.LSTM(UNITS)(inputs))
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="compile the converted model; its optimizer has no state"):
        converted = convert_model(model)
    assert not converted.compiled


def test_how_a_nested_model_was_compiled_does_not_matter():
    inner = keras.Sequential([keras.Input((TIME, INPUTS)), layers.LSTM(UNITS)], name="inner")
    inner.compile("sgd", local_loss)
    converted = convert_model(keras.Sequential([inner, layers.Dense(1)]))
    assert fallback_reasons(converted) == {f"inner/{inner.layers[0].name}": None}
    assert not converted.get_layer("inner").compiled


class ByName(layers.Layer):
    """Its configuration has the name of a function that no attribute is."""

    def __init__(self, function, **kwargs):
        super().__init__(**kwargs)
        self.function = functools.partial(function)

    def call(self, x):
        return self.function(x)

    def get_config(self):
        return {**super().get_config(), "function": self.function.func.__name__}

    @classmethod
    def from_config(cls, config):
        name = config.pop("function")
        if (function := keras.saving.get_registered_object(name)) is None:
            raise ValueError(f"unknown function {name}")
        return cls(function, **config)


def test_custom_objects():
    model = keras.Sequential([keras.Input((TIME, INPUTS)), layers.LSTM(UNITS), ByName(own_tanh)])
    with pytest.raises(ValueError, match="unknown function own_tanh"):
        convert_model(model)
    converted = convert_model(model, custom_objects={"own_tanh": own_tanh})
    assert converted.layers[1].function.func is own_tanh


class NoConfiguration(keras.Model):
    def __init__(self, rate, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate

    def call(self, x):
        return x


def test_errors():
    with pytest.raises(TypeError, match=r"model must be a keras\.Model"):
        convert_model(layers.LSTM(UNITS))
    with pytest.raises(ValueError, match=r"make no_configuration from .*in_place=True"):
        convert_model(NoConfiguration(np.random.default_rng(0), name="no_configuration"))
