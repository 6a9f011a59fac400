"""convert_model where names do not tell objects apart: ops beside layers, lambdas, namesakes."""

import functools
import warnings
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers, ops

import tf_lstm_ops
from tf_lstm_ops.cli import doctor_layers
from tf_lstm_ops.keras import convert_model, fallback_reasons

from .convert_models import BATCH, INPUTS, PREDICTION_BOUND, TIME, UNITS, assert_near, outputs

# A layer and an op whose classes have the same name.
PAIRS = {
    "Add": (lambda xs: layers.Add()(xs), lambda a, b: a + b),
    "Subtract": (lambda xs: layers.Subtract()(xs), lambda a, b: a - b),
    "Multiply": (lambda xs: layers.Multiply()(xs), lambda a, b: a * b),
    "Maximum": (lambda xs: layers.Maximum()(xs), ops.maximum),
    "Minimum": (lambda xs: layers.Minimum()(xs), ops.minimum),
    "Dot": (lambda xs: layers.Dot(2)(xs)[..., :UNITS], lambda a, b: ops.dot(a, ops.ones((5, 5)))),
    "Concatenate": (lambda xs: layers.Concatenate()(xs), lambda a, b: ops.concatenate([a, b])),
    "Reshape": (
        lambda xs: layers.Reshape((UNITS, TIME))(xs[0]),
        lambda a, b: ops.reshape(b, (-1, UNITS, TIME)),
    ),
    "Softmax": (lambda xs: layers.Softmax()(xs[0]), lambda a, b: ops.softmax(b)),
}


def model_of(name: str, module: Any) -> keras.Model:
    """Two recurrent layers, of whose outputs the layer and the op of a pair are the outputs."""
    layer, op = PAIRS[name]
    x = keras.Input((TIME, INPUTS))
    options = {"return_sequences": True}
    a, b = module.LSTM(UNITS, name="a", **options)(x), module.GRU(UNITS, name="b", **options)(x)
    return keras.Model(x, [layer([a, b]), op(a, b)])


@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("name", PAIRS)
def test_a_layer_and_an_op_of_one_name(name, rng):
    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    for module, to in (layers, "fused"), (tf_lstm_ops.keras, "stock"):
        model = model_of(name, module)
        converted = convert_model(model, to=to)
        assert set(fallback_reasons(converted if to == "fused" else model).values()) == {None}
        kinds = [[type(op).__name__ for op in m.operations] for m in (model, converted)]
        assert kinds[0] == kinds[1]
        assert_near(outputs(converted, x), outputs(model, x), UNITS * PREDICTION_BOUND)
    stock = doctor_layers.findings(model_of(name, layers))
    assert [found.change.sentence for found in stock] == [doctor_layers.CONVERT] * 2


def test_masks_of_two_embeddings_concatenated(rng):
    """The mask of the layer Concatenate is the op Concatenate.

    The mask of Keras 3.8 needs a known batch size.
    """
    words = [keras.Input((TIME,), batch_size=BATCH, dtype="int32") for _ in range(2)]
    vectors = [layers.Embedding(9, INPUTS, mask_zero=True)(w) for w in words]
    model = keras.Model(words, layers.LSTM(UNITS)(layers.Concatenate()(vectors)))
    x = [rng.integers(3, size=(BATCH, TIME)) for _ in words]
    converted = convert_model(model)
    assert_near(outputs(converted, x), outputs(model, x), PREDICTION_BOUND)
    assert_near(outputs(convert_model(converted, to="stock"), x), outputs(model, x), 0)


@keras.saving.register_keras_serializable(package="test_convert_names")
class Scaled(layers.Layer):
    """Keeps a function, as the attribute of another name than its argument."""

    def __init__(self, function, **kwargs):
        super().__init__(**kwargs)
        self._kept = [function]

    def call(self, x):
        return self._kept[0](x)

    def get_config(self):
        function = keras.saving.serialize_keras_object(self._kept[0])
        return {**super().get_config(), "function": function}

    @classmethod
    def from_config(cls, config):
        return cls(
            **{**config, "function": keras.saving.deserialize_keras_object(config["function"])}
        )


SCALE = 3.0


def regularizer(function: Any) -> Any:
    """The function; None in Keras 3.8, which takes only objects of its own class."""
    try:
        keras.Variable(0.0).regularizer = function
    except ValueError:
        return None
    return function


def scaled(factor: float) -> Any:
    def tanh(x: Any) -> Any:  # as many names as Keras has
        return factor * keras.ops.tanh(x)

    return tanh


@pytest.mark.full
def test_functions_are_shared():
    """Lambdas with globals and cells, namesakes, and a function with the name of one of Keras'."""
    factor = 2.0
    x = keras.Input((TIME, INPUTS))
    y = layers.LSTM(UNITS, return_sequences=True, name="memory")(x)
    y = layers.Lambda(lambda v: v * SCALE * factor, output_shape=lambda shape: shape)(y)
    y = layers.Dense(4, activation=scaled(2.0), kernel_initializer=lambda s, dtype: ops.ones(s))(y)
    penalty = regularizer(lambda w: ops.sum(w) * SCALE)
    y = layers.Dense(4, activation=scaled(5.0), kernel_regularizer=penalty)(y)
    y = layers.TimeDistributed(layers.Dense(3, activation=lambda v: v + SCALE))(y)
    model = keras.Model(x, Scaled(lambda v: v - factor)(y))
    loss, metric = (
        (lambda t, p: ops.mean((t - p) ** 2) * SCALE),
        (lambda t, p: ops.mean(p) * factor),
    )
    model.compile("sgd", loss, metrics=[metric, keras.metrics.MeanMetricWrapper(metric, "wrapped")])
    data = np.ones((BATCH, TIME, INPUTS), "float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # of a lambda: no file is written
        assert fallback_reasons(convert_model(model)) == {"memory": None}
        converted = convert_model(model)
        back = convert_model(converted, to="stock")
    assert_near(outputs(converted, data), outputs(model, data), 100 * PREDICTION_BOUND)  # scaled
    assert_near(outputs(back, data), outputs(model, data), 0)
    wanted = model.evaluate(data, data, verbose=0, return_dict=True)
    got = converted.evaluate(data, data, verbose=0, return_dict=True)
    assert got.keys() == wanted.keys()
    # Metrics are float32 sums of squares up to 1e4.
    np.testing.assert_allclose([*got.values()], [*wanted.values()], rtol=1e-5)
    converted.fit(data, data, verbose=0)
    again = model.evaluate(data, data, verbose=0, return_dict=True)
    assert again == wanted  # the copy's training does not change the model
    assert loss.__name__ == metric.__name__ == "<lambda>"


def test_a_function_of_the_name_of_one_of_keras_does_not_replace_it(rng):
    x = keras.Input((TIME, INPUTS))
    y = layers.LSTM(UNITS, return_sequences=True)(x)
    model = keras.Model(x, layers.Dense(2, activation=scaled(2.0))(y))
    data = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    converted = convert_model(model)
    assert set(fallback_reasons(converted).values()) == {None}
    assert_near(outputs(converted, data), outputs(model, data), 2 * PREDICTION_BOUND)


class Add(layers.Layer):
    """A class of the user's with the name of an op."""

    def call(self, xs):
        return 3 * xs[0] + xs[1]


def test_a_class_of_the_name_of_an_op(rng):
    x = keras.Input((TIME, INPUTS))
    a = layers.GRU(UNITS)(x)
    model = keras.Model(x, [Add()([a, a]), a + a, layers.Add()([a, a])])
    data = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    assert_near(outputs(convert_model(model), data), outputs(model, data), 4 * PREDICTION_BOUND)


def test_functions_of_a_stack_are_shared(rng):
    penalty = regularizer(lambda w: SCALE * ops.sum(w**2))
    stack = tf_lstm_ops.keras.StackedLSTM(
        UNITS, 2, kernel_regularizer=penalty, bias_initializer=bias_of_half
    )
    model = keras.Sequential([keras.Input((TIME, INPUTS)), stack])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        stock = convert_model(model, to="stock")
    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    assert_near(outputs(stock, x), outputs(model, x), PREDICTION_BOUND)
    # Sums of some hundred squares in float32.
    np.testing.assert_allclose(sum(stock.losses), sum(model.losses), rtol=1e-5)
    assert stock.layers[0].layers[0].cell.bias_initializer is bias_of_half


def bias_of_half(shape: Any, dtype: Any) -> Any:
    return ops.full(shape, 0.5, dtype)


def test_two_classes_of_one_name(rng):
    other = type("Add", (Add,), {"__module__": "other", "call": lambda self, xs: xs[0] - 2 * xs[1]})
    x = keras.Input((TIME, INPUTS))
    a, b = layers.GRU(UNITS)(x), layers.LSTM(UNITS)(x)
    model = keras.Model(x, [Add()([a, b]), other()([a, b]), a + b])
    data = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    assert_near(outputs(convert_model(model), data), outputs(model, data), 4 * PREDICTION_BOUND)


class Counting(keras.losses.Loss):
    """A loss with a state of its own."""

    def __init__(self, name="counting", **kwargs):
        super().__init__(name=name, **kwargs)
        self.calls: list[int] = []

    def call(self, y, p):
        self.calls.append(1)
        return ops.mean((y - p) ** 2)


def test_objects_with_a_state_are_not_shared():
    model = keras.Sequential([keras.Input((TIME, INPUTS)), layers.LSTM(UNITS)])
    model.compile("sgd", Counting(), metrics=[keras.metrics.MeanSquaredError()])
    x, y = np.ones((BATCH, TIME, INPUTS), "float32"), np.ones((BATCH, UNITS), "float32")
    converted = convert_model(model)
    converted.evaluate(x, y, verbose=0)
    assert model.loss.calls == [] and converted.loss.calls
    assert model.get_compile_config()["metrics"] == converted.get_compile_config()["metrics"]
    assert not {id(m) for m in model.metrics} & {id(m) for m in converted.metrics}


def squares(y, prediction, factor):
    return factor * ops.mean((y - prediction) ** 2)


class Bound:
    def loss(self, y, prediction):
        return squares(y, prediction, 3.0)


@pytest.mark.parametrize(
    "loss",
    [functools.partial(squares, factor=2.0), Bound().loss, keras.losses.MeanSquaredError],
    ids=["partial", "method", "class"],
)
def test_callables_that_keras_cannot_serialise_are_shared(loss):
    model = keras.Sequential([keras.Input((TIME, INPUTS)), layers.LSTM(UNITS)])
    model.compile("adam", loss)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        converted = convert_model(model)
    x, y = np.ones((BATCH, TIME, INPUTS), "float32"), np.zeros((BATCH, UNITS), "float32")
    got, wanted = (m.evaluate(x, y, verbose=0) for m in (converted, model))
    np.testing.assert_allclose(got, wanted, rtol=1e-5)  # a mean of float32 squares


def test_two_classes_of_one_module_and_name_are_refused(rng):
    def scale(factor):
        class Scale(layers.Layer):
            def call(self, x):
                return x * factor

        return Scale()

    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    parts = [keras.Input((TIME, INPUTS)), scale(5.0), scale(7.0), layers.LSTM(UNITS)]
    model = keras.Sequential(parts)
    with pytest.raises(ValueError, match=r"two classes .*\.Scale, .* in_place=True"):
        convert_model(model)
    before = outputs(model, x)
    assert_near(outputs(convert_model(model, in_place=True), x), before, PREDICTION_BOUND)
