"""Construction, configuration, serialisation, weights: all as stock Keras' LSTM has them."""

import inspect
import json

import keras
import numpy as np
import pytest
from pairs import Sizes, evaluate, make_pair, random_inputs, random_weights, rounding

import tf_lstm_ops

LSTM = tf_lstm_ops.keras.LSTM
SIZES = Sizes(batch=3, time=5, inputs=4, units=7)

# A value other than the default for every argument of the configuration.
ARGUMENTS = {
    "units": 7,
    "activation": "relu",
    "recurrent_activation": "hard_sigmoid",
    "use_bias": False,
    "kernel_initializer": "he_normal",
    "recurrent_initializer": "glorot_normal",
    "bias_initializer": "ones",
    "unit_forget_bias": False,
    "kernel_regularizer": "l2",
    "recurrent_regularizer": "l1",
    "bias_regularizer": "L1L2",
    "activity_regularizer": "l2",
    "kernel_constraint": "max_norm",
    "recurrent_constraint": "unit_norm",
    "bias_constraint": "non_neg",
    "dropout": 0.25,
    "recurrent_dropout": 0.125,
    "seed": 17,
    "return_sequences": True,
    "return_state": True,
    "go_backwards": True,
    "stateful": True,
    "unroll": True,
    "zero_output_for_mask": True,
    "name": "memory",
    "trainable": False,
    "dtype": "float64",
}
OURS_ONLY = {"use_peephole": True, "cell_clip": 2.5}


def test_it_is_a_stock_lstm():
    assert issubclass(LSTM, keras.layers.LSTM)
    assert LSTM is not keras.layers.LSTM
    assert LSTM.__name__ == "LSTM"


def test_signature_is_stocks_with_two_more():
    stock = inspect.signature(keras.layers.LSTM).parameters
    ours = inspect.signature(LSTM).parameters
    if any(p.kind is p.VAR_POSITIONAL for p in ours.values()):
        pytest.skip("arguments are passed on as they are")
    for name, parameter in stock.items():
        assert ours[name].default == parameter.default, name
    positional = [n for n, p in ours.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    expected = [n for n, p in stock.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional[: len(expected)] == expected
    assert ours["use_peephole"].default is False
    assert ours["cell_clip"].default is None


def test_positional_arguments_mean_what_they_mean_in_stock():
    layers = [lstm(5, "relu", "tanh", False) for lstm in (LSTM, keras.layers.LSTM)]
    assert [(x.activation, x.recurrent_activation, x.use_bias) for x in layers[:1]] == [
        (x.activation, x.recurrent_activation, x.use_bias) for x in layers[1:]
    ]


@pytest.mark.parametrize("arguments", [{"units": 7, "name": "memory"}, ARGUMENTS])
def test_config_is_stocks_with_two_more(arguments):
    ours = LSTM(**arguments).get_config()
    assert ours.pop("use_peephole") is False
    assert ours.pop("cell_clip") is None
    assert ours == keras.layers.LSTM(**arguments).get_config()
    assert LSTM(**arguments, **OURS_ONLY).get_config().items() >= OURS_ONLY.items()


def test_every_argument_survives_the_config():
    layer = LSTM(**ARGUMENTS, **OURS_ONLY)
    config = layer.get_config()
    json.dumps(config)  # nothing in it that a file could not hold
    again = LSTM.from_config(config)
    assert again.get_config() == config
    defaults = LSTM(3).get_config()
    same = {k for k in config if config[k] == defaults[k]}
    assert not same, "arguments that this test leaves at their defaults"


def test_stock_config_makes_our_layer():
    """from_config of ours takes a configuration of stock's."""
    layer = LSTM.from_config(keras.layers.LSTM(**ARGUMENTS).get_config())
    assert layer.get_config().items() >= keras.layers.LSTM(**ARGUMENTS).get_config().items()


def test_registered_under_the_package(rng):
    """keras.saving finds the class without custom_objects."""
    name = keras.saving.get_registered_name(LSTM)
    assert name == "tf_lstm_ops>LSTM"
    assert keras.saving.get_registered_object(name) is LSTM
    layer = LSTM(7, **OURS_ONLY)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is LSTM
    assert again.get_config() == layer.get_config()


@pytest.mark.parametrize("options", [{}, {"use_bias": False}, {"stateful": True}])
def test_weights_have_stocks_names_and_shapes(options, rng):
    ours, theirs = make_pair(SIZES, rng, name="memory", seed=1, dropout=0.1, **options)
    for kind in "weights", "trainable_weights", "non_trainable_weights":
        named = [
            [(w.name, w.path, tuple(w.shape), w.dtype) for w in getattr(layer, kind)]
            for layer in (ours, theirs)
        ]
        assert named[0] == named[1], kind
    assert len(ours.non_trainable_variables) == len(theirs.non_trainable_variables)


def test_default_name_is_stocks():
    keras.backend.clear_session()
    names = [LSTM(2).name, LSTM(2).name]
    keras.backend.clear_session()
    assert names == [keras.layers.LSTM(2).name, keras.layers.LSTM(2).name]


@pytest.mark.parametrize("unit_forget_bias", [False, True])
@pytest.mark.parametrize("bias_initializer", ["zeros", "ones"])
def test_initial_weights_are_stocks(unit_forget_bias, bias_initializer):
    """With seeded initialisers, and with the global seed."""
    for initializers in (
        {},
        {
            "kernel_initializer": keras.initializers.GlorotUniform(seed=1),
            "recurrent_initializer": keras.initializers.Orthogonal(seed=2),
        },
    ):
        weights = []
        for lstm in LSTM, keras.layers.LSTM:
            keras.utils.set_random_seed(3)
            layer = lstm(
                5,
                unit_forget_bias=unit_forget_bias,
                bias_initializer=bias_initializer,
                **initializers,
            )
            layer.build((None, None, 3))
            weights.append(layer.get_weights())
        for got, wanted in zip(*weights, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_stocks_weights_file_loads(tmp_path, rng):
    ours, theirs = make_pair(SIZES, rng, dtype="float64")
    file = tmp_path / "stock.weights.h5"
    models = [
        keras.Sequential([keras.Input((None, SIZES.inputs), dtype="float64"), layer])
        for layer in (ours, theirs)
    ]
    random_weights(theirs, rng)
    models[1].save_weights(file)
    assert np.any(ours.get_weights()[0] != theirs.get_weights()[0])
    models[0].load_weights(file)
    for got, wanted in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_array_equal(got, wanted)
    models[0].save_weights(tmp_path / "ours.weights.h5")
    models[1].load_weights(tmp_path / "ours.weights.h5")  # and the other way


def test_stateless_call_uses_the_weights_it_is_given(rng):
    ours, theirs = make_pair(SIZES, rng, use_bias=False, dtype="float64")
    x = random_inputs(SIZES, rng, states=False)[0]
    other = [rng.normal(size=w.shape) for w in theirs.trainable_variables]
    state = [v.value for v in theirs.non_trainable_variables]
    outputs = [layer.stateless_call(other, state, x)[0] for layer in (ours, theirs)]
    np.testing.assert_allclose(*outputs, rtol=0, atol=2 * rounding(SIZES))  # outputs below 1
    assert np.abs(outputs[0] - ours(x)).max() > 1e-3


def test_clone_model_keeps_the_class(rng):
    model = keras.Sequential([keras.Input((None, 4)), LSTM(5, **OURS_ONLY)])
    clone = keras.models.clone_model(model)
    assert type(clone.layers[0]) is LSTM
    clone.set_weights(model.get_weights())
    x = rng.normal(size=(2, 3, 4))
    np.testing.assert_array_equal(model.predict(x, verbose=0), clone.predict(x, verbose=0))


@pytest.mark.parametrize("use_bias", [False, True])
def test_regularizers_add_stocks_losses(use_bias, rng):
    """Kernel, recurrent kernel, bias, and the layer's output (activity)."""
    ours, theirs = make_pair(
        SIZES,
        rng,
        kernel_regularizer="l1",
        recurrent_regularizer="l2",
        bias_regularizer="L1L2",
        activity_regularizer="l2",
        use_bias=use_bias,
    )
    x = random_inputs(SIZES, rng, states=False)[0]
    ours(x), theirs(x)
    assert len(ours.losses) == len(theirs.losses) == 3 + use_bias
    np.testing.assert_allclose(ours.losses, theirs.losses, rtol=rounding(SIZES, "float32"))


def test_peepholes_take_the_recurrent_kernels_regularizer_and_constraint(rng):
    layer = LSTM(
        7,
        use_peephole=True,
        kernel_initializer=keras.initializers.Constant(0.25),
        recurrent_regularizer=keras.regularizers.L1(2.0),
        recurrent_constraint="non_neg",
    )
    layer.build((None, None, 4))
    peephole = layer.cell.peephole_kernel
    np.testing.assert_array_equal(peephole, np.full((3, 7), 0.25))
    assert len(layer.losses) == 2
    assert float(layer.losses[1]) == 2 * 0.25 * 21  # exact in float32
    assert np.all(peephole.constraint(-peephole.value) == 0)


def test_constraints_are_applied(rng):
    layer = LSTM(
        7,
        kernel_constraint=keras.constraints.MaxNorm(0.01),
        recurrent_constraint=keras.constraints.UnitNorm(),
        bias_constraint="non_neg",
    )
    model = keras.Sequential([keras.Input((None, 4)), layer])
    random_weights(layer, rng)
    model.compile("sgd", "mse")
    model.fit(rng.normal(size=(8, 5, 4)), rng.normal(size=(8, 7)), verbose=0)
    kernel, recurrent_kernel, bias = layer.get_weights()
    # The constraints divide by a norm to which they add 1e-7, in float32.
    assert np.all(np.linalg.norm(kernel, axis=0) <= 0.01 * (1 + 1e-6))
    np.testing.assert_allclose(np.linalg.norm(recurrent_kernel, axis=0), 1, rtol=1e-6)
    assert np.all(bias >= 0)
    assert np.any(bias == 0)


def test_trainable_flag(rng):
    frozen = LSTM(7, trainable=False)
    frozen.build((None, None, 4))
    assert frozen.trainable_weights == []
    assert len(frozen.non_trainable_weights) == 3
    model = keras.Sequential([keras.Input((None, 4)), frozen, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    before = frozen.get_weights()
    model.fit(rng.normal(size=(8, 5, 4)), rng.normal(size=(8, 1)), verbose=0)
    for a, b in zip(before, frozen.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    frozen.trainable = True
    assert len(frozen.trainable_weights) == 3


def test_properties_of_the_cell_are_passed_on():
    """As in stock: layer.units, layer.dropout, … are those of layer.cell."""
    layer = LSTM(**ARGUMENTS)
    theirs = keras.layers.LSTM(**ARGUMENTS)
    for name in "units", "use_bias", "unit_forget_bias", "dropout", "recurrent_dropout":
        assert getattr(layer, name) == getattr(layer.cell, name) == getattr(theirs, name)
    assert layer.cell.name == theirs.cell.name
    assert isinstance(layer.cell, keras.layers.LSTMCell)


def test_the_cell_works_alone(rng):
    """keras.layers.RNN over layer.cell gives the layer's own results, peepholes and clip too."""
    layer = LSTM(7, dtype="float64", return_sequences=True, **OURS_ONLY | {"cell_clip": 0.5})
    layer.build((None, None, SIZES.inputs))
    random_weights(layer, rng)
    loop = keras.layers.RNN(layer.cell, return_sequences=True, dtype="float64")
    x = random_inputs(SIZES, rng, states=False)
    np.testing.assert_allclose(
        evaluate(layer, x).results[0], evaluate(loop, x).results[0], rtol=0, atol=1e-14
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"units": 0}, "units"),
        ({"units": -3}, "units"),
        ({"units": 3, "activation": "no such"}, "no such"),
        ({"units": 3, "use_cudnn": "sometimes"}, "use_cudnn"),
        ({"units": 3, "no_such_argument": 1}, "no_such_argument"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused_as_in_stock(arguments, message):
    for lstm in LSTM, keras.layers.LSTM:
        with pytest.raises((ValueError, TypeError), match=message):
            lstm(**arguments)


@pytest.mark.parametrize("cell_clip", [0, -1.0, float("nan")])
def test_a_clip_must_be_positive(cell_clip):
    with pytest.raises(ValueError, match="cell_clip must be None or positive"):
        LSTM(3, cell_clip=cell_clip)
