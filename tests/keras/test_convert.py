"""convert_model: the copy predicts and trains as the model does, on our layers."""

import warnings
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from pairs import Sizes, rounding

import tf_lstm_ops
from tf_lstm_ops.keras import convert_model, fallback_reasons

BATCH, TIME, INPUTS, UNITS = 4, 6, 3, 5
SIZES = Sizes(BATCH, TIME, 2 * UNITS, UNITS)
Model = keras.Model
MODELS: list[Callable[[], Model]] = []


def model_of(make: Callable[[], Model]) -> Callable[[], Model]:
    MODELS.append(make)
    return make


@model_of
def sequential() -> Model:
    return keras.Sequential(
        [
            keras.Input((None, INPUTS)),
            layers.Masking(),
            layers.LSTM(UNITS, return_sequences=True, go_backwards=True, use_bias=False),
            layers.GRU(UNITS, name="memory", zero_output_for_mask=True),
            layers.Dense(2),
        ],
        name="outer",
    )


@model_of
def built_by_a_call() -> Model:
    return keras.Sequential([layers.GRU(UNITS, return_sequences=True), layers.LSTM(UNITS)])


@model_of
def wrapped() -> Model:
    backward = layers.LSTM(UNITS, return_sequences=True, go_backwards=True, dropout=0.2)
    forward = layers.LSTM(UNITS, return_sequences=True)
    return keras.Sequential(
        [
            keras.Input((TIME, INPUTS)),
            layers.Bidirectional(forward, backward_layer=backward, merge_mode="mul"),
            layers.Bidirectional(layers.GRU(UNITS, return_sequences=True)),
            layers.Reshape((2, TIME // 2, 2 * UNITS)),
            layers.TimeDistributed(layers.Bidirectional(layers.LSTM(UNITS))),
        ]
    )


@model_of
def cells() -> Model:
    gru, lstm = layers.GRUCell(UNITS, seed=3, dropout=0.1), layers.LSTMCell(UNITS)
    return keras.Sequential(
        [
            keras.Input((TIME, INPUTS)),
            layers.RNN(gru, return_sequences=True, go_backwards=True),
            layers.Bidirectional(layers.RNN(lstm, return_sequences=True)),
            layers.RNN(layers.LSTMCell(UNITS, unit_forget_bias=False)),
        ]
    )


@model_of
def nested() -> Model:
    """Two inputs and outputs, one encoder called twice, states passed from layer to layer."""
    x = keras.Input((None, INPUTS))
    hidden, *states = layers.LSTM(UNITS, return_sequences=True, return_state=True)(x)
    encoder = keras.Model(x, [hidden, *states], name="encoder")
    decoder = keras.Sequential([layers.Dense(UNITS), layers.GRU(UNITS)], name="decoder")
    a, b = keras.Input((None, INPUTS), name="a"), keras.Input((None, INPUTS), name="b")
    first, *states = encoder(a)
    second, h, _ = encoder(b)
    third = layers.LSTM(UNITS, return_sequences=True)(second, initial_state=states)
    fourth = layers.GRU(UNITS)(third, initial_state=h)
    return keras.Model([a, b], {"x": decoder(first), "y": layers.Add()([fourth, decoder(third)])})


@model_of
def with_embedding() -> Model:
    """A mask that the Embedding makes; a layer called twice, with another mask by hand."""
    words = keras.Input((TIME,), dtype="int32")
    vectors = layers.Embedding(9, INPUTS, mask_zero=True)(words)
    shared = layers.LSTM(UNITS)
    both = shared(vectors) - shared(vectors, mask=words > 4)
    return keras.Model(words, layers.Concatenate()([both, layers.GRU(UNITS)(vectors)]))


def inputs_of(model: Model, rng: np.random.Generator) -> Any:
    """Padded sequences, as many as the model has inputs; words for an Embedding."""
    sequences = [rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32") for _ in range(2)]
    for x in sequences:
        x[1, TIME // 2 :] = 0
    if any(isinstance(layer, layers.Embedding) for layer in model.layers):
        return rng.integers(9, size=(BATCH, TIME))
    return sequences if model.built and len(model.inputs) == 2 else sequences[0]


def outputs(model: Model, x: Any) -> list[np.ndarray]:
    return [np.asarray(y, "float64") for y in keras.tree.flatten(model(x))]


def randomised(model: Model, x: Any, rng: np.random.Generator) -> Model:
    model(x)
    for weight in model.weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))
    return model


def assert_near(got: list[np.ndarray], wanted: list[np.ndarray], bound: float) -> None:
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=bound)


# Layers after each other pass errors on; Dense layers multiply them by |weights| < 4 at most.
PREDICTION_BOUND = 4 * rounding(SIZES, "float32")


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
    if make is not cells:  # which have names of their own
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
    with pytest.warns(UserWarning, match="rnn: dtype of its LSTMCell is not its own"):
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


def local_loss(y: Any, prediction: Any) -> Any:
    return keras.ops.mean((y - prediction) ** 4)


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
        pytest.param("mae", marks=pytest.mark.full),
    ],
)
@pytest.mark.filterwarnings("ignore:The object being serialized includes a `lambda`")
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
    trained(model, x, y, 3)
    converted = convert_model(model)
    assert converted.run_eagerly
    assert int(converted.optimizer.iterations) == 3
    start = model.get_weights()
    for m in model, converted:
        m.reset_metrics()
    # Adam divides by the root of the mean squared gradient: a gradient so small that rounding is
    # 1e-4 of it would be 1e-10 here; a step is up to 0.05. Without the optimizer's variables or
    # the seeds', weights differ by 1e-3 and more.
    np.testing.assert_allclose(
        trained(converted, x, y, 3), trained(model, x, y, 3), rtol=0, atol=1e-6
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


class OwnLSTM(layers.LSTM):
    """A subclass may compute anything."""


class MakesItself(layers.Layer):
    """Its configuration does not describe its layers."""

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
    gru = layers.GRU(UNITS, reset_after=False, name="gru", **sequences)
    two_cells = [layers.LSTMCell(UNITS), layers.GRUCell(UNITS)]
    model = keras.Sequential(
        [
            keras.Input((TIME, INPUTS)),
            layers.LSTM(UNITS, name="relu", activation="relu", **sequences),
            layers.LSTM(UNITS, name="own_tanh", activation=own_tanh, **sequences),
            layers.Bidirectional(gru, name="both"),
            layers.RNN(layers.GRUCell(UNITS, activation="selu"), name="selu", **sequences),
            layers.RNN(two_cells, name="stacked", **sequences),
            layers.SimpleRNN(UNITS, name="simple", **sequences),
            OwnLSTM(UNITS, name="own", **sequences),
            MakesItself(name="maker"),
            tf_lstm_ops.keras.LSTM(UNITS, name="ours", use_peephole=True, **sequences),
            layers.GRU(UNITS, name="stock"),
        ]
    )
    made = "convert_model replaces it unless another class makes it"
    expected = {
        "relu": "activation is relu, not tanh",
        "own_tanh": "activation is own_tanh, not tanh",
        "both/forward_gru": "reset_after is False, not True",
        "both/backward_gru": "reset_after is False, not True",
        "selu": "activation is selu, not tanh",
        "stacked": "StackedRNNCells has no fused op",
        "simple": "SimpleRNN has no fused op",
        "own": "OwnLSTM has no fused op",
        "maker/memory": f"it is keras.layers.LSTM; {made}",
        "maker/cell": "GRUCell has no fused op",
    }
    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    randomised(model, x, rng)
    assert fallback_reasons(model)["stock"] == f"it is keras.layers.GRU; {made}"
    with pytest.warns(UserWarning) as caught:
        converted = convert_model(model)
    (warning,) = caught
    assert warning.filename == __file__
    for path, why in expected.items():
        assert f"\n  {path}: {why}" in str(warning.message)
    assert fallback_reasons(converted) == {**expected, "ours": None, "stock": None}
    assert_near(outputs(converted, x), outputs(model, x), 3 * PREDICTION_BOUND)  # ten layers


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
    with pytest.warns(UserWarning, match="compile the converted model; its optimizer starts anew"):
        converted = convert_model(model)
    assert not converted.compiled


def test_how_a_nested_model_was_compiled_does_not_matter():
    inner = keras.Sequential([keras.Input((TIME, INPUTS)), layers.LSTM(UNITS)], name="inner")
    inner.compile("sgd", local_loss)
    converted = convert_model(keras.Sequential([inner, layers.Dense(1)]))
    assert fallback_reasons(converted) == {f"inner/{inner.layers[0].name}": None}
    assert not converted.get_layer("inner").compiled


def own_initializer(shape: Any, dtype: Any) -> Any:
    return keras.ops.ones(shape, dtype)


def test_custom_objects():
    dense = layers.Dense(2, kernel_initializer=own_initializer)
    model = keras.Sequential([keras.Input((TIME, INPUTS)), layers.LSTM(UNITS), dense])
    with pytest.raises(ValueError, match="own_initializer"):
        convert_model(model)
    converted = convert_model(model, custom_objects={"own_initializer": own_initializer})
    assert converted.layers[1].kernel_initializer is own_initializer


class NoConfiguration(keras.Model):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def call(self, x):
        return x


def test_errors():
    with pytest.raises(TypeError, match=r"model must be a keras\.Model"):
        convert_model(layers.LSTM(UNITS))
    with pytest.raises(ValueError, match=r"write tf_lstm_ops\.keras\.LSTM instead of"):
        convert_model(NoConfiguration(np.random.default_rng(0)))
    x = keras.Input((TIME, INPUTS))
    shared = layers.LSTM(UNITS)
    inner = keras.Model(x, shared(x))
    with pytest.raises(ValueError, match="nested models share a layer"):
        convert_model(keras.Model(x, layers.Add()([inner(x), shared(x)])))
