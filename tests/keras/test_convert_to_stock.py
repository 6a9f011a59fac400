"""convert_model(to="stock"): the copy predicts and trains as the model does, on stock layers."""

import json
import os
import re
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import pairs
import pytest
from keras import layers

import tf_lstm_ops
from tf_lstm_ops.keras import GRU, LSTM, LSTMCell, convert_model, fallback_reasons

from .convert_models import (
    BATCH,
    INPUTS,
    MODELS,
    PREDICTION_BOUND,
    TIME,
    UNITS,
    Model,
    assert_near,
    cells,
    inputs_of,
    local_loss,
    nested,
    outputs,
    randomised,
    sequential,
)


def classes(model: Model) -> set[type]:
    """Of the recurrent layers and cells."""
    kinds = layers.RNN | layers.LSTMCell | layers.GRUCell
    return {type(layer) for layer in model._flatten_layers() if isinstance(layer, kinds)}


def config_of(model: Model) -> dict[str, Any]:
    """Without the shapes for which a layer was built: a copy is built where it is called."""

    def stripped(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: stripped(v) for k, v in value.items() if k != "build_config"}
        return [stripped(v) for v in value] if isinstance(value, list | tuple) else value

    return stripped(json.loads(model.to_json()))


def assert_same_bits(model: Model, other: Model, x: Any) -> None:
    arrays = [model.get_weights() + outputs(model, x), other.get_weights() + outputs(other, x)]
    for a, b in zip(*arrays, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, marks=() if make in (sequential, cells) else pytest.mark.full)
        for make in MODELS
    ],
    ids=lambda make: make.__name__,
)
def test_there_and_back(make, rng):
    """Stock, ours, stock, ours: configuration and bits of either are those of before."""
    model = make()
    x = inputs_of(model, rng)
    randomised(model, x, rng)
    ours = convert_model(model)
    stock = convert_model(ours, to="stock")
    assert {c.__module__.partition(".")[0] for c in classes(stock)} == {"keras"}
    assert config_of(stock) == config_of(model)
    assert classes(stock) == classes(model)
    assert [w.path for w in stock.weights] == [w.path for w in model.weights]
    assert_same_bits(stock, model, x)
    assert_near(outputs(stock, x), outputs(ours, x), PREDICTION_BOUND)

    again = convert_model(stock)
    assert config_of(again) == config_of(ours)
    assert classes(again) == classes(ours)
    assert_same_bits(again, ours, x)
    assert_same_bits(convert_model(model, to="stock"), model, x)  # nothing to replace


def test_every_common_option_stays(rng):
    """Also those that the configuration lacks: implementation and use_cudnn."""
    options = {
        "use_bias": False,
        "kernel_regularizer": "l2",
        "recurrent_constraint": "non_neg",
        "dropout": 0.1,
        "recurrent_dropout": 0.2,
        "seed": 7,
        "go_backwards": True,
        "unroll": True,
        "use_cudnn": False,
        "implementation": 1,
        "activation": "relu",
        "trainable": False,
        "dtype": "float64",
    }
    model = keras.Sequential(
        [
            keras.Input((TIME, INPUTS)),
            LSTM(UNITS, unit_forget_bias=False, return_sequences=True, name="one", **options),
            GRU(UNITS, reset_after=False, name="two", **options),
        ]
    )
    stock = convert_model(model, to="stock")
    for layer, stock_layer, cls in zip(
        model.layers, stock.layers, (layers.LSTM, layers.GRU), strict=True
    ):
        assert type(stock_layer) is cls and type(stock_layer.cell).__module__.startswith("keras.")
        extra = {*pairs.LSTM.extras, *pairs.LSTM.norm, *pairs.START}
        ours = {k: v for k, v in layer.get_config().items() if k not in extra}
        assert stock_layer.get_config() == ours
        assert stock_layer.use_cudnn is False
        assert stock_layer.cell.implementation == 1
    converted = convert_model(stock)
    assert converted.layers[0].cell.implementation == 1


def test_states_of_a_stateful_layer(rng):
    inputs = keras.Input(batch_shape=(BATCH, TIME, INPUTS))
    layer = layers.Bidirectional(GRU(UNITS, stateful=True))
    model = keras.Model(inputs, layer(inputs))
    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    first = outputs(randomised(model, x, rng), x)
    stock = convert_model(model, to="stock")
    second = outputs(model, x)
    assert np.abs(first[0] - second[0]).max() > 100 * PREDICTION_BOUND
    assert_near(outputs(stock, x), second, PREDICTION_BOUND)


def test_training_goes_on(rng):
    """Loss, metrics and optimizer, whose first step depends on its slots; a frozen layer."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((TIME, INPUTS)),
            layers.Bidirectional(LSTM(UNITS, return_sequences=True, dropout=0.2), dtype="float64"),
            GRU(UNITS, dtype="float64", name="frozen", trainable=False),
            layers.Dense(1, dtype="float64"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.05), local_loss, metrics=["mse"], run_eagerly=True)
    x, y = rng.normal(size=(BATCH, TIME, INPUTS)), rng.normal(size=(BATCH, 1))
    for _ in range(2):
        model.train_on_batch(x, y)
    stock = convert_model(model, to="stock")
    assert classes(stock) == {layers.LSTM, layers.GRU, layers.LSTMCell, layers.GRUCell}
    assert len(stock.trainable_weights) == len(model.trainable_weights) < len(model.weights)
    for a, b in zip(stock.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(a, b)
    metrics = [m.train_on_batch(x, y, return_dict=True) for m in (stock, model)]
    assert metrics[0].keys() == metrics[1].keys() == {"loss", "mse"}
    # Weights are float32 where only the wrapper is float64. A step is up to 0.05; without the
    # optimizer's variables weights differ by 1e-2.
    for a, b in zip(stock.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-4)


class Maker(layers.Layer):
    """Its constructor makes a layer of ours, and a bare cell."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.memories = {"all": [LSTM(UNITS, return_sequences=True, name="memory")]}
        self.cell = LSTMCell(UNITS, name="cell")

    def build(self, shape):
        self.memories["all"][0].build(shape)
        self.cell.build((shape[0], UNITS))

    def call(self, x):
        x = self.memories["all"][0](x)
        last = x[:, -1]
        return x + self.cell(last, [last, last])[0][:, None]


def test_layers_made_by_a_class_and_cells(rng):
    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    two = layers.StackedRNNCells([LSTMCell(UNITS), layers.GRUCell(UNITS)])
    model = keras.Sequential(
        [
            keras.Input((TIME, INPUTS)),
            Maker(name="maker"),
            layers.RNN(LSTMCell(UNITS), return_sequences=True),
            layers.RNN(two, return_sequences=True),
        ]
    )
    wanted = outputs(randomised(model, x, rng), x)
    stock = convert_model(model, to="stock")
    assert {c.__module__.partition(".")[0] for c in classes(stock)} == {"keras"}
    assert LSTM in classes(model)
    assert_near(outputs(stock, x), wanted, PREDICTION_BOUND)


class OwnLSTM(LSTM):
    """A subclass may compute anything."""

    def get_initial_state(self, batch_size=None):
        return super().get_initial_state(batch_size)


def test_what_stock_cannot_express_is_an_error_that_names_all():
    sequences = {"return_sequences": True}
    inner = keras.Sequential(
        [keras.Input((TIME, INPUTS)), LSTM(UNITS, name="clipped", cell_clip=2.5, **sequences)],
        name="inner",
    )
    peephole = LSTM(UNITS, use_peephole=True, cell_clip=1.0, name="lstm", **sequences)
    other_cell = LSTM(UNITS, name="other_cell", **sequences)
    other_cell.cell = layers.LSTMCell(UNITS)
    model = keras.Sequential(
        [
            inner,
            layers.Bidirectional(peephole, name="both"),
            LSTM(UNITS, name="fine", **sequences),
            OwnLSTM(UNITS, name="own", **sequences),
            layers.RNN(LSTMCell(UNITS, use_peephole=True, name="cell"), name="rnn", **sequences),
            other_cell,
        ]
    )
    before = classes(model)
    for in_place in False, True:
        with pytest.raises(ValueError) as caught:
            convert_model(model, to="stock", in_place=in_place)
        assert str(caught.value).splitlines() == [
            "stock layers cannot express these layers:",
            "  inner/clipped: keras.layers.LSTM has no cell_clip=2.5",
            "  both/forward_lstm: keras.layers.LSTM has no use_peephole=True, cell_clip=1.0",
            "  both/backward_lstm: keras.layers.LSTM has no use_peephole=True, cell_clip=1.0",
            "  own: OwnLSTM is a subclass of tf_lstm_ops.keras.LSTM",
            "  rnn/cell: keras.layers.LSTMCell has no use_peephole=True",
            "  other_cell: its cell is a keras.layers.LSTMCell, not a tf_lstm_ops.keras.LSTMCell",
        ]
        assert classes(model) == before


def test_every_option_that_stock_lacks_is_an_error():
    """An option added to a layer of ours is either known to stock or refused."""
    for ours, family in {
        LSTM: pairs.LSTM,
        GRU: pairs.GRU,
        LSTMCell: pairs.LSTM,
        tf_lstm_ops.keras.GRUCell: pairs.GRU,
    }.items():
        stock_config = getattr(layers, ours.__name__)(1).get_config()
        for option in ours(1).get_config().keys() - stock_config.keys():
            given = family.norm if option in family.norm else {option: family.extras[option]}
            layer = ours(UNITS, name="it", **given)
            is_cell = not isinstance(layer, layers.RNN)
            layer = layers.RNN(layer, name="rnn") if is_cell else layer
            model = keras.Sequential([keras.Input((TIME, INPUTS)), layer])
            with pytest.raises(ValueError, match=rf"it: .* has no .*{option}="):
                convert_model(model, to="stock")


def test_wrong_arguments():
    model = keras.Sequential([LSTM(UNITS)])
    with pytest.raises(ValueError, match=re.escape("to must be 'fused' or 'stock'")):
        convert_model(model, to="keras")
    with pytest.raises(TypeError, match=r"custom_objects must be a dictionary\. Received: 'stock'"):
        convert_model(model, "stock")


LOADER = """
import sys
sys.modules["tf_lstm_ops"] = None  # to import it is an error
import keras, numpy as np
model = keras.models.load_model(sys.argv[1] + "/model.keras")
x = np.load(sys.argv[1] + "/x.npz")
y = keras.tree.flatten(model([x[name] for name in x.files]))
np.savez(sys.argv[1] + "/y.npz", *y)
"""


def test_the_file_does_not_name_the_package(rng):
    converted = convert_model(convert_model(nested()), to="stock")
    assert tf_lstm_ops.__name__ not in converted.to_json()
    assert None not in fallback_reasons(converted).values()


@pytest.mark.full
def test_a_process_without_the_package_loads_the_file(rng, tmp_path):
    model = convert_model(nested())
    x = inputs_of(model, rng)
    stock = convert_model(randomised(model, x, rng), to="stock")
    stock.save(tmp_path / "model.keras")
    np.savez(tmp_path / "x.npz", *x)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, "-c", LOADER, str(tmp_path)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    with np.load(tmp_path / "y.npz") as loaded:
        for a, b in zip(loaded.values(), outputs(stock, x), strict=True):
            np.testing.assert_array_equal(a, b)
