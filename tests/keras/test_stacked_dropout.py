"""Dropout between the layers of StackedLSTM and StackedGRU, and the state of its seed."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops.keras import StackedGRU, StackedLSTM

from .stacks import B, H, I, T, make


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dropout_per", ["step", "sequence"])
def test_dropout_of_zero_and_of_inference(dropout_per, training, rng):
    layer = make("gru", rng, dropout=0.0 if training else 0.5, dropout_per=dropout_per)
    plain = make("gru", rng)
    plain.set_weights(layer.get_weights()[: len(plain.get_weights())])
    x = rng.normal(size=(B, T, I))
    for a, b in zip(layer(x, training=training), plain(x), strict=True):
        np.testing.assert_array_equal(a, b)


def kept_parts(dropout_per: str, rng: np.random.Generator) -> np.ndarray:
    """Which outputs of the first layer are kept. The gates of both layers copy their input."""
    layer = StackedLSTM(64, 2, dropout=0.25, dropout_per=dropout_per, return_sequences=True, seed=3)
    layer.build((None, None, 1))
    first, second = layer._arrays_by_layer()
    bias = np.repeat([20.0, -20.0, 0.0, 20.0], 64).astype("float32")  # i = o = 1, f = 0
    gate = np.zeros((1, 256), "float32")
    gate[:, 128:192] = 1  # the first layer's outputs are tanh(tanh(x))
    copy = np.zeros((64, 256), "float32")
    copy[:, 128:192] = np.eye(64)
    zero = np.zeros((64, 256), "float32")
    layer.set_weights([gate, zero, bias, copy, zero, bias])
    assert len(first) == len(second) == 3
    x = np.full((20, 30, 1), 2.0, "float32")
    return np.abs(layer(x, training=True).numpy()) > 1e-3  # what the cell keeps is 1e-9


def test_dropout_per_step(rng):
    kept = kept_parts("step", rng)
    assert abs(kept.mean() - 0.75) < 0.01  # 38,400 draws: a standard deviation of 0.002
    assert 0.2 < (kept[:, 0] != kept[:, 1]).mean() < 0.5


def test_dropout_per_sequence(rng):
    kept = kept_parts("sequence", rng)
    assert abs(kept.mean() - 0.75) < 0.05  # 1,280 draws: a standard deviation of 0.012
    assert np.array_equal(kept, np.repeat(kept[:, :1], 30, axis=1))


@pytest.mark.parametrize("dropout_per", ["step", "sequence"])
def test_dropout_changes_from_call_to_call(dropout_per, rng):
    layer = make("lstm", rng, dropout=0.5, dropout_per=dropout_per, return_state=False)
    x = rng.normal(size=(B, T, I))
    first, second = layer(x, training=True), layer(x, training=True)
    assert np.abs(first - second).max() > 1e-3


@pytest.mark.parametrize("dropout_per", ["step", "sequence"])
def test_dropout_draws_from_the_seed_generator(dropout_per, rng):
    """Each trace and each eager call has masks of its own; equal states give equal masks."""
    layer = make("gru", rng, dropout=0.5, dropout_per=dropout_per, return_state=False)
    x = rng.normal(size=(B, T, I))
    begin = layer.seed_generator.state.numpy()
    ways = [lambda x: layer(x, training=True)] * 2
    ways += [tf.function(lambda x: layer(x, training=True)) for _ in range(2)]
    found = [way(x).numpy() for way in ways]
    for a, b in itertools.combinations(found, 2):
        assert np.abs(a - b).max() > 1e-3
    layer.seed_generator.state.assign(begin)
    for way, before in zip(ways, found, strict=True):
        np.testing.assert_array_equal(way(x), before)


@pytest.mark.parametrize("road", ["convert_model", "weights file", "checkpoint"])
def test_a_copy_goes_on_with_the_same_masks(road, rng, tmp_path):
    def new_model():
        stack = StackedGRU(H, 3, dropout=0.5, seed=4)
        return keras.Sequential(
            [keras.Input((T, I)), keras.layers.GRU(I, return_sequences=True), stack]
        )

    model = new_model()
    x = rng.normal(size=(B, T, I)).astype("float32")
    model(x, training=True)
    if road == "convert_model":
        copy = tf_lstm_ops.keras.convert_model(model)
    else:
        copy = new_model()
        path = str(tmp_path / "model.weights.h5")
        if road == "weights file":
            model.save_weights(path)
            copy.load_weights(path)
        else:
            saved = tf.train.Checkpoint(model=model).save(str(tmp_path / "checkpoint"))
            tf.train.Checkpoint(model=copy).restore(saved).assert_consumed()
    for _ in range(2):
        # The first layer of the converted model computes its sums in another order.
        np.testing.assert_allclose(copy(x, training=True), model(x, training=True), atol=1e-6)


@pytest.mark.full
def test_a_stack_that_is_made_in_build_can_fit(rng):
    class Model(keras.Model):
        def build(self, shape):
            self.stack = StackedLSTM(H, 2, dropout=0.2)
            self.stack.build(shape)

        def call(self, x, training=False):
            return self.stack(x, training=training)

    model = Model()
    model.compile("sgd", "mse")
    x = rng.normal(size=(B, T, I)).astype("float32")
    model.fit(x, np.zeros((B, H)), verbose=0)


def test_dropout_of_one_layer_is_a_warning():
    with pytest.warns(UserWarning, match=r"num_layers=1 has none. Received: dropout=0.5"):
        StackedLSTM(H, 1, dropout=0.5)
