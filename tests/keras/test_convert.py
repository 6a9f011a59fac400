"""convert_model: the copy predicts and trains as the model does, on our layers."""

import warnings
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
    MODELS,
    PREDICTION_BOUND,
    TIME,
    UNITS,
    Model,
    assert_near,
    built_by_a_call,
    inputs_of,
    local_loss,
    nested,
    outputs,
    randomised,
    sequential,
)


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_predictions_weights_and_names_stay(make, rng):
    model = make()
    x = inputs_of(model, rng)
    randomised(model, x, rng)
    before = fallback_reasons(model)
    converted = convert_model(model)
    assert type(converted) is type(model)
    assert fallback_reasons(converted) == dict.fromkeys(before)  # None for each
    assert fallback_reasons(model) == before
    assert None not in before.values()

    assert converted.name == model.name
    assert [w.name for w in converted.weights] == [w.name for w in model.weights]
    assert [w.path for w in converted.weights] == [w.path for w in model.weights]
    for ours, stock in zip(converted.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours, stock)
        assert ours is not stock
    assert_near(outputs(converted, x), outputs(model, x), PREDICTION_BOUND)


def test_saved_and_loaded(rng, tmp_path):
    model = nested()
    x = inputs_of(model, rng)
    converted = convert_model(randomised(model, x, rng))
    converted.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert fallback_reasons(loaded) == fallback_reasons(converted)
    for got, wanted in zip(outputs(loaded, x), outputs(converted, x), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_weights_file_of_stock_fits(rng, tmp_path):
    model = nested()
    x = inputs_of(model, rng)
    converted = convert_model(model)
    randomised(model, x, rng).save_weights(tmp_path / "stock.weights.h5")
    converted.load_weights(tmp_path / "stock.weights.h5")
    for ours, stock in zip(converted.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours, stock)


def test_not_built(rng):
    x = inputs_of(built_by_a_call(), rng)
    model = built_by_a_call()
    converted = convert_model(model)
    assert not model.built and not converted.built
    assert_near(
        outputs(randomised(converted, x, np.random.default_rng(0)), x),
        outputs(randomised(model, x, np.random.default_rng(0)), x),
        PREDICTION_BOUND,
    )


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float64"])
def test_dtype_policy(policy, rng):
    """Stock rounds to 16 bits where our layer does not: the reference is our layer itself."""
    x = rng.normal(size=(BATCH, TIME, INPUTS))
    model = keras.Sequential([layers.LSTM(UNITS, dtype=policy)])
    model.compile("adam", "mse", run_eagerly=True)
    model.train_on_batch(x, x[:, 0, :1])
    converted = convert_model(model)
    layer = tf_lstm_ops.keras.LSTM(UNITS, dtype=policy)
    layer.build(x.shape)
    layer.set_weights(model.get_weights())
    np.testing.assert_array_equal(converted(x), layer(x))
    assert converted.layers[0].dtype_policy == keras.dtype_policies.get(policy)
    assert type(converted.optimizer) is type(model.optimizer)
    for ours, stock in zip(converted.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(ours, stock)


def test_global_dtype_policy_of_then(rng):
    """Where it is mixed_float16, compile wraps the optimizer, as it did with the model's."""
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = keras.Sequential([layers.LSTM(UNITS)])
        model.compile("adam", "mse", run_eagerly=True)
    finally:
        keras.config.set_dtype_policy("float32")
    x = rng.normal(size=(BATCH, TIME, INPUTS))
    model.train_on_batch(x, x[:, 0, :1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        converted = convert_model(model)
    assert keras.config.dtype_policy().name == "float32"
    assert isinstance(converted.optimizer, keras.optimizers.LossScaleOptimizer)
    for ours, stock in zip(converted.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(ours, stock)


def test_cell_of_another_dtype_is_left_alone():
    layer = layers.RNN(layers.LSTMCell(UNITS, dtype="float64"), name="rnn")
    model = keras.Sequential([keras.Input((TIME, INPUTS)), layer])
    with pytest.warns(UserWarning, match="rnn: its LSTMCell has another dtype"):
        convert_model(model)


@pytest.mark.parametrize("stock", [layers.LSTM, layers.GRU])
def test_states_of_a_stateful_layer(stock, rng):
    inputs = keras.Input(batch_shape=(BATCH, TIME, INPUTS))
    layer = layers.Bidirectional(stock(UNITS, stateful=True))
    model = keras.Model(inputs, layer(inputs))
    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    first = outputs(randomised(model, x, rng), x)
    converted = convert_model(model)
    second = outputs(model, x)
    assert np.abs(first[0] - second[0]).max() > 100 * PREDICTION_BOUND
    assert_near(outputs(converted, x), second, PREDICTION_BOUND)


def trained(model: Model, x: np.ndarray, y: np.ndarray, steps: int) -> list[Any]:
    return [model.train_on_batch(x, y) for _ in range(steps)]


@pytest.fixture
def float64():
    for dtype in "float64", "float32":
        keras.config.set_floatx(dtype)
        keras.config.set_dtype_policy(dtype)
        if dtype == "float64":
            yield


@pytest.mark.parametrize(
    "loss",
    [
        local_loss,
        pytest.param(lambda y, p: (y - p) ** 2, marks=pytest.mark.full),
        pytest.param("mae", marks=pytest.mark.slow),
    ],
)
def test_training_goes_on(loss, rng, float64):
    """With dropout: the states of the seeds are copied, too."""
    keras.utils.set_random_seed(1)
    options = {"dropout": 0.2, "kernel_regularizer": "l2"}
    model = keras.Sequential(
        [
            keras.Input((TIME, INPUTS)),
            layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True, **options)),
            layers.GRU(UNITS, recurrent_dropout=0.3, **options),
            layers.Dense(1),
        ]
    )
    model.layers[1].cell.trainable = False
    optimizer = keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.7))
    model.compile(optimizer, loss, metrics=["mse", local_loss], run_eagerly=True)
    x, y = rng.normal(size=(BATCH, TIME, INPUTS)), rng.normal(size=(BATCH, 1))
    trained(model, x, y, 2)
    converted = convert_model(model)
    assert converted.run_eagerly
    assert int(converted.optimizer.iterations) == 2
    start = model.get_weights()
    for m in model, converted:
        m.reset_metrics()
    # Adam divides by the root of the mean squared gradient: a gradient so small that rounding is
    # 1e-4 of it would be 1e-10 here; a step is up to 0.05. Without the optimizer's variables or
    # the seeds', weights differ by 1e-3 and more.
    np.testing.assert_allclose(
        trained(converted, x, y, 2), trained(model, x, y, 2), rtol=0, atol=1e-6
    )  # metrics are float32
    pairs = zip(converted.get_weights(), model.get_weights(), start, strict=True)
    moved = 0
    for ours, stock, old in pairs:
        np.testing.assert_allclose(ours, stock, rtol=0, atol=1e-10)
        moved += np.abs(stock - old).max() > 1e-3
    assert moved == len(start) - 3  # all but the frozen cell's


def test_the_model_and_its_copy_share_nothing(rng):
    model = sequential()
    model.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=True)
    x = inputs_of(model, rng)
    before = outputs(model, x)
    converted = convert_model(model)
    trained(converted, x, np.ones((BATCH, 2)), 1)
    assert int(model.optimizer.iterations) == 0
    assert_near(outputs(model, x), before, 0)
    assert np.abs(outputs(converted, x)[0] - before[0]).max() > 1e-3


def test_trainable(rng):
    model = nested()
    model.get_layer("encoder").trainable = False
    converted = convert_model(model)
    assert 0 < len(converted.trainable_weights) < len(converted.weights)
    paths = [w.path for w in converted.trainable_weights]
    assert paths == [w.path for w in model.trainable_weights]


def test_layers_with_assets_and_finalised_state(rng):
    """What adapt() found is no weight: Keras saves it by methods of the layers."""
    words = np.array([["a b"], ["c a a"]])
    vectors = layers.TextVectorization(output_sequence_length=TIME)
    vectors.adapt(words)
    text = keras.Sequential(
        [keras.Input((1,), dtype="string"), vectors, layers.Embedding(9, 2), layers.LSTM(UNITS)]
    )
    assert_near(outputs(convert_model(text), words), outputs(text, words), PREDICTION_BOUND)

    normalised = keras.Sequential(
        [keras.Input((TIME, INPUTS)), layers.Normalization(), layers.GRU(UNITS)]
    )
    x = rng.normal(7, 3, size=(BATCH, TIME, INPUTS))
    normalised.layers[0].adapt(x)
    assert_near(outputs(convert_model(normalised), x), outputs(normalised, x), PREDICTION_BOUND)
