"""Bidirectional: which two layers one op computes; its files and its conversions."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from bidirectionals import LAYERS, H, I, T, evaluate, inputs, make, ops_of

from tf_lstm_ops.keras import GRU, LSTM, Bidirectional, convert_model, directions


@pytest.mark.parametrize("part", ["forward_layer", "backward_layer"])
def test_a_layer_whose_call_was_replaced(part):
    one, two = make(), make()
    for made in one, two:
        layer = getattr(made, part)
        layer.call = lambda *args, _call=layer.call, **kwargs: 2 * _call(*args, **kwargs)
    got = evaluate(one, inputs())
    with directions.apart():
        wanted = evaluate(two, inputs())
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(not hasattr(keras, "RematScope"), reason="Keras has it from 3.9 on")
@pytest.mark.parametrize("both", [True, False])
def test_layers_that_run_again_in_the_backward_pass(both):
    options = {"go_backwards": True, "name": "second"}
    with keras.RematScope(mode="full"):
        second = LSTM(4, **options)
        layer = Bidirectional(LSTM(4), backward_layer=second) if both else None
    layer = layer or Bidirectional(LSTM(4), backward_layer=second)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(inputs()) ** 2)
    assert None not in tape.gradient(loss, layer.trainable_variables)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda layer: setattr(layer.backward_layer, "go_backwards", False), "go_backwards=False"),
        (lambda layer: _set_both(layer, "return_sequences", False), "return_sequences=False"),
    ],
)
def test_attributes_that_were_changed(change, reason):
    one, two = make(), make()
    for made in one, two:
        change(made)
    assert reason in one.fallback_reason
    with directions.apart():
        wanted = two(inputs())
    np.testing.assert_array_equal(one(inputs()), wanted)


def _set_both(layer, name, value):
    for part in layer.forward_layer, layer.backward_layer:
        setattr(part, name, value)


def test_a_policy_of_the_wrapper_alone():
    """x is converted twice, and the layers compute in their own type."""
    layer = Bidirectional(LSTM(4, return_sequences=True, dtype="float64"), dtype="float32")
    assert layer(inputs()).dtype == "float32"
    assert layer.uses_fused_op


REASONS = {
    "backward_lstm has an activity_regularizer": lambda: _pair(
        second={"activity_regularizer": "l2"}
    ),
    "forward_lstm and backward_lstm have another units": lambda: _pair(
        second={"units": 5}, merge_mode=None
    ),
    "forward_lstm and backward_lstm have another use_peephole": lambda: _pair(
        second={"use_peephole": True}
    ),
    "forward_lstm and backward_lstm have another activation": lambda: _pair(
        second={"activation": "relu"}
    ),
    "forward_lstm and backward_lstm have another compute_dtype": lambda: _pair(
        second={"dtype": "float64"}
    ),
    "forward_lstm and backward_gru are layers of different kinds": lambda: Bidirectional(
        LSTM(4, name="lstm"), backward_layer=GRU(4, go_backwards=True, name="backward_gru")
    ),
    "forward_lstm has go_backwards=True": lambda: Bidirectional(
        LSTM(4, go_backwards=True, name="lstm"), backward_layer=LSTM(4, name="backward_lstm")
    ),
    "forward_lstm is a LSTM, not one of tf_lstm_ops.keras": lambda: Bidirectional(
        keras.layers.LSTM(4, name="lstm")
    ),
    "forward_gru: activation is selu, which has no fused op": lambda: Bidirectional(
        GRU(4, activation="selu", name="gru")
    ),
}


def _pair(second, merge_mode="concat"):
    options = {"units": 4, "name": "backward_lstm", "go_backwards": True, **second}
    return Bidirectional(
        LSTM(4, name="lstm"), backward_layer=LSTM(**options), merge_mode=merge_mode
    )


@pytest.mark.parametrize("reason", REASONS)
def test_unlike_layers_go_the_way_of_keras(reason):
    layer = REASONS[reason]()
    assert layer.fallback_reason == reason
    assert not layer.uses_fused_op
    x = inputs()
    layer(x)
    stock = keras.layers.Bidirectional.from_config(layer.get_config())
    stock.build(x.shape)
    stock.set_weights(layer.get_weights())
    for a, b in zip(tf.nest.flatten(layer(x)), tf.nest.flatten(stock(x)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_subclass_may_do_anything():
    class Doubled(LSTM):
        def call(self, *args, **kwargs):
            return 2 * super().call(*args, **kwargs)

    layer = Bidirectional(LSTM(4), backward_layer=Doubled(4, go_backwards=True))
    assert layer.fallback_reason.endswith("is a Doubled, not one of tf_lstm_ops.keras")
    assert "KerasLSTM" in ops_of(layer)[0]


@pytest.mark.parametrize("kind", LAYERS)
def test_own_options_keep_keras_from_other_kernels(kind):
    """A fused path of Keras' Bidirectional would drop them."""
    layer, own = LAYERS[kind]
    stock_has = kind in ("lstm", "gru", "reset_before", "activations", "no_bias") or "drop" in kind
    for wrapper in Bidirectional, keras.layers.Bidirectional:
        made = wrapper(layer(H, **own))
        for inner in made.forward_layer, made.backward_layer:
            assert inner.use_cudnn == ("auto" if stock_has else False)


def test_files_and_configuration_are_those_of_keras(tmp_path):
    ours, theirs = (make(wrapper=w) for w in (Bidirectional, keras.layers.Bidirectional))
    names = [{**layer.get_config(), "name": ""} for layer in (ours, theirs)]
    for config in names:
        for part in "layer", "backward_layer":
            config[part]["config"]["name"] = config[part]["build_config"] = ""
    assert names[0] == names[1]
    models = [keras.Sequential([keras.Input((T, I)), layer]) for layer in (ours, theirs)]
    theirs.set_weights([w + 1 for w in theirs.get_weights()])
    models[0].save_weights(tmp_path / "ours.weights.h5")
    models[1].load_weights(tmp_path / "ours.weights.h5")
    np.testing.assert_array_equal(models[0](inputs()), models[1](inputs()))
    models[0].save(tmp_path / "ours.keras")
    loaded = keras.models.load_model(tmp_path / "ours.keras")
    assert type(loaded.layers[0]) is Bidirectional
    np.testing.assert_array_equal(loaded(inputs()), models[0](inputs()))


@pytest.mark.parametrize("in_place", [True, False])
def test_convert_model(in_place):
    stock = keras.Sequential(
        [
            keras.Input((T, I)),
            keras.layers.Bidirectional(keras.layers.LSTM(4, return_sequences=True), name="one"),
            keras.layers.Bidirectional(
                keras.layers.GRU(4),
                backward_layer=keras.layers.LSTM(4, go_backwards=True),
                name="two",
            ),
        ]
    )
    x = inputs()
    wanted = stock(x)
    ours = convert_model(stock, in_place=in_place)
    assert [type(layer) for layer in ours.layers] == [Bidirectional, keras.layers.Bidirectional]
    assert ours.layers[0].uses_fused_op
    np.testing.assert_allclose(ours(x), wanted, rtol=1e-5, atol=1e-6)
    back = convert_model(ours, to="stock", in_place=in_place)
    kinds = {type(layer) for layer in back._flatten_layers(include_self=False)}
    assert all(kind.__module__.startswith("keras.") for kind in kinds)
    np.testing.assert_allclose(back(x), wanted, rtol=1e-5, atol=1e-6)


def test_to_stock_names_the_layer_inside():
    model = keras.Sequential([keras.Input((T, I)), make("own")])
    with pytest.raises(ValueError, match=r"bidirectional.*/forward_lstm.*: .*use_peephole"):
        convert_model(model, to="stock")
