"""Construction, configuration, serialisation, weights: all as stock Keras' layers have them."""

import inspect
import json

import keras
import numpy as np
import pytest
from pairs import (
    GATED,
    GRU,
    LSTM,
    SIMPLE_RNN,
    START,
    Family,
    Sizes,
    evaluate,
    label,
    make_layer,
    make_pair,
    random_inputs,
    random_weights,
    rounding,
)

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
# Those that only one layer has.
OWN_ARGUMENTS = {
    LSTM.name: {"unit_forget_bias": False},
    GRU.name: {"reset_after": False},
    SIMPLE_RNN.name: {},
}


@pytest.fixture
def arguments(family: Family) -> dict:
    given = ARGUMENTS | OWN_ARGUMENTS[family.name]
    if family is SIMPLE_RNN:
        del given["recurrent_activation"]
    return given


def known_to_stock(arguments: dict, family: Family) -> dict:
    """Without the argument that Keras' SimpleRNN takes and ignores."""
    ignored = ("activity_regularizer",) if family is SIMPLE_RNN else ()
    return {k: v for k, v in arguments.items() if k not in ignored}


def test_it_is_a_stock_layer(family):
    assert issubclass(family.ours, family.stock)
    assert family.ours is not family.stock
    assert family.ours.__name__ == family.stock.__name__


def test_signature_is_stocks_with_our_extras(family):
    ours, stock = (inspect.signature(rnn).parameters for rnn in family.both)
    for name, parameter in stock.items():
        assert ours[name].default == parameter.default, name
    positional = [n for n, p in ours.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    expected = [n for n, p in stock.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == expected
    extras = {**family.extras, **family.norm, **START}
    assert ours.keys() - stock.keys() == extras.keys()
    assert not any(ours[name].default for name in extras)


@pytest.mark.parametrize("family", GATED, ids=label)
def test_positional_arguments_mean_what_they_mean_in_stock(family):
    layers = [rnn(5, "relu", "tanh", False) for rnn in family.both]
    assert [(x.activation, x.recurrent_activation, x.use_bias) for x in layers[:1]] == [
        (x.activation, x.recurrent_activation, x.use_bias) for x in layers[1:]
    ]


def test_config_is_stocks_with_our_extras(arguments, family):
    """Without them the stock layer can be made from it."""
    for given in {"units": 7, "name": "memory"}, known_to_stock(arguments, family):
        ours = family.ours(**given).get_config()
        assert ours == family.stock(**given).get_config()
        assert family.stock.from_config(ours).get_config() == ours
        extended = family.ours(**given, **family.extras).get_config()
        assert extended.items() >= family.extras.items()


def test_every_argument_survives_the_config(arguments, family):
    own = dict.fromkeys({**family.extras, **family.norm, **START})
    defaults = {**own, **family.ours(3).get_config()}
    same = set(defaults)
    for extras in (
        {**family.extras, **START, "stateful": False},
        {**family.norm, "reset_after": True},
    ):
        extras = {k: v for k, v in extras.items() if k in defaults}
        config = family.ours(**{**arguments, **extras}).get_config()
        json.dumps(config)  # nothing in it that a file could not hold
        assert family.ours.from_config(config).get_config() == config
        same -= {k for k in config if config[k] != defaults[k]}
    assert not same, "arguments that this test leaves at their defaults"


def test_stock_config_makes_our_layer(arguments, family):
    """from_config of ours takes a configuration of stock's."""
    stock = family.stock(**known_to_stock(arguments, family)).get_config()
    assert family.ours.from_config(dict(stock)).get_config().items() >= stock.items()


def test_registered_under_the_package(family):
    """keras.saving finds the class without custom_objects."""
    name = keras.saving.get_registered_name(family.ours)
    assert name == f"tf_lstm_ops>{family.name}"
    assert keras.saving.get_registered_object(name) is family.ours
    layer = family.ours(7, **family.extras)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is family.ours
    assert again.get_config() == layer.get_config()


@pytest.mark.parametrize("options", [{}, {"use_bias": False}, {"stateful": True}])
def test_weights_have_stocks_names_and_shapes(options, family, rng):
    ours, theirs = make_pair(family, SIZES, rng, name="memory", seed=1, dropout=0.1, **options)
    for kind in "weights", "trainable_weights", "non_trainable_weights":
        named = [
            [(w.name, w.path, tuple(w.shape), w.dtype) for w in getattr(layer, kind)]
            for layer in (ours, theirs)
        ]
        assert named[0] == named[1], kind
    assert len(ours.non_trainable_variables) == len(theirs.non_trainable_variables)


def test_default_name_is_stocks(family):
    names = []
    for rnn in family.both:
        keras.backend.clear_session()
        names.append([rnn(2).name, rnn(2).name])
    assert names[0] == names[1]


@pytest.mark.sampled
@pytest.mark.parametrize("bias_initializer", ["zeros", "ones"])
@pytest.mark.parametrize("own", [False, True])
def test_initial_weights_are_stocks(bias_initializer, own, family):
    """With seeded initialisers, and with the global seed."""
    for initializers in (
        {},
        {
            "kernel_initializer": keras.initializers.GlorotUniform(seed=1),
            "recurrent_initializer": keras.initializers.Orthogonal(seed=2),
        },
    ):
        weights = []
        for rnn in family.both:
            keras.utils.set_random_seed(3)
            options = OWN_ARGUMENTS[family.name] if own else {}
            layer = rnn(5, bias_initializer=bias_initializer, **options, **initializers)
            layer.build((None, None, 3))
            weights.append(layer.get_weights())
        for got, wanted in zip(*weights, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_stocks_weights_file_loads(tmp_path, family, rng):
    ours, theirs = make_pair(family, SIZES, rng, dtype="float64")
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
    models[1].load_weights(tmp_path / "ours.weights.h5")  # and the reverse


def test_stateless_call_uses_the_weights_it_is_given(family, rng):
    ours, theirs = make_pair(family, SIZES, rng, use_bias=False, dtype="float64")
    x = random_inputs(SIZES, rng)[0]
    other = [rng.normal(size=w.shape) for w in theirs.trainable_variables]
    state = [v.value for v in theirs.non_trainable_variables]
    outputs = [layer.stateless_call(other, state, x)[0] for layer in (ours, theirs)]
    np.testing.assert_allclose(*outputs, rtol=0, atol=2 * rounding(SIZES))  # outputs below 1
    assert np.abs(outputs[0] - ours(x)).max() > 1e-3


def test_clone_model_keeps_the_class(family, rng):
    model = keras.Sequential([keras.Input((None, 4)), family.ours(5, **family.extras)])
    clone = keras.models.clone_model(model)
    assert type(clone.layers[0]) is family.ours
    clone.set_weights(model.get_weights())
    x = rng.normal(size=(2, 3, 4))
    np.testing.assert_array_equal(model.predict(x, verbose=0), clone.predict(x, verbose=0))


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("family", GATED, ids=label)
def test_regularizers_add_stocks_losses(use_bias, family, rng):
    """Kernel, recurrent kernel, bias, and the layer's output (activity)."""
    ours, theirs = make_pair(
        family,
        SIZES,
        rng,
        kernel_regularizer="l1",
        recurrent_regularizer="l2",
        bias_regularizer="L1L2",
        activity_regularizer="l2",
        use_bias=use_bias,
    )
    x = random_inputs(SIZES, rng)[0]
    ours(x), theirs(x)
    assert len(ours.losses) == len(theirs.losses) == 3 + use_bias
    np.testing.assert_allclose(ours.losses, theirs.losses, rtol=rounding(SIZES, "float32"))


def test_peepholes_take_the_recurrent_kernels_regularizer_and_constraint(rng):
    layer = LSTM.ours(
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


def test_constraints_are_applied(family, rng):
    layer = family.ours(
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


def test_trainable_flag(family, rng):
    frozen = family.ours(7, trainable=False)
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


def test_properties_of_the_cell_are_passed_on(arguments, family):
    """As in stock: layer.units, layer.dropout, … are those of layer.cell."""
    layer, theirs = (rnn(**arguments) for rnn in family.both)
    for name in "units", "use_bias", "dropout", "recurrent_dropout", *OWN_ARGUMENTS[family.name]:
        assert getattr(layer, name) == getattr(layer.cell, name) == getattr(theirs, name)
    assert layer.cell.name == theirs.cell.name
    assert isinstance(layer.cell, type(theirs.cell))


@pytest.mark.parametrize(
    ("family", "options"), [(LSTM, {"use_peephole": True, "cell_clip": 0.5}), (GRU, {})], ids=label
)
def test_the_cell_works_alone(family, options, rng):
    """keras.layers.RNN over layer.cell gives the layer's own results, peepholes and clip too."""
    layer = make_layer(family, SIZES, rng, return_state=False, **options)
    loop = keras.layers.RNN(layer.cell, return_sequences=True, dtype="float64")
    x = random_inputs(SIZES, rng)
    np.testing.assert_allclose(
        evaluate(layer, x).results[0], evaluate(loop, x).results[0], rtol=0, atol=1e-14
    )


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"units": 0}, "units"),
        ({"units": -3}, "units"),
        ({"units": 3, "activation": "no such"}, "no such"),
        ({"units": 3, "use_cudnn": "sometimes"}, "use_cudnn"),
        ({"units": 3, "no_such_argument": 1}, "no_such_argument"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused_as_in_stock(bad, message, family):
    for rnn in family.both:
        with pytest.raises((ValueError, TypeError), match=message):
            rnn(**bad)


@pytest.mark.parametrize("cell_clip", [0, -1.0, float("nan")])
def test_a_clip_must_be_positive(cell_clip):
    with pytest.raises(ValueError, match="cell_clip must be None or positive"):
        LSTM.ours(3, cell_clip=cell_clip)
