"""Each value that Keras takes for an option does here what it does there."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import op_definitions
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import LSTM, LSTMCell, convert_model

X = np.random.default_rng(0).normal(size=(4, 6, 3)).astype("float32")

FLAGS = [None, 0, 1, np.True_, np.False_, "", "yes"]
NAMES = ["return_sequences", "go_backwards", "zero_output_for_mask", "use_bias", "unroll"]
# Of one class, since the layers have the code in common.
CASES = [("LSTM", name, value) for name in NAMES[:2] for value in (None, 1)]
KINDS = ("LSTM", "GRU", "SimpleRNN")
OTHERS = [(kind, name, value) for kind in KINDS for name in NAMES for value in FLAGS]
ALL = [*CASES, *(pytest.param(*case, marks=pytest.mark.full) for case in OTHERS)]


def _assert_close(got: Any, want: Any) -> None:
    assert np.shape(got) == np.shape(want)
    # float32: sums of ten terms of about 1, and a recurrence of six steps
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def _stock(layer: keras.Layer) -> keras.Model:
    return keras.Sequential([keras.Input((6, 3)), layer])


@pytest.mark.parametrize(("kind", "name", "value"), ALL)
def test_flags(kind: str, name: str, value: Any) -> None:
    wrappers = [lambda layer: layer, keras.layers.Bidirectional]
    for wrap in wrappers[: 1 if name == "go_backwards" and value else 2]:  # the other is an error
        model = _stock(wrap(getattr(keras.layers, kind)(5, **{name: value})))
        want = np.asarray(model(X))
        copy = convert_model(model)
        assert copy.layers[0].uses_fused_op
        _assert_close(copy(X), want)
        _assert_close(tf.function(copy)(X), want)
        _assert_close(Session(model)(X), want)
        _assert_close(convert_model(copy, to="stock")(X), want)


@pytest.mark.parametrize(
    "options",
    [
        {"units": 5, "dropout": np.float32(0.5), "recurrent_dropout": 0},
        {"units": 5, "dtype": np.float32, "implementation": np.int64(1)},
        {"units": 5, "activation": keras.ops.relu, "recurrent_activation": keras.ops.hard_sigmoid},
    ],
)
def test_numbers_and_functions(options: dict[str, Any]) -> None:
    model = _stock(keras.layers.LSTM(**options))
    want = np.asarray(model(X))
    _assert_close(convert_model(model)(X), want)
    _assert_close(Session(model)(X), want)


def test_own_options() -> None:
    """A file has the values of Python's types."""
    layer = LSTM(5, use_peephole=np.True_, cell_clip=np.float32(2), layer_normalization=np.False_)
    assert layer.get_config()["use_peephole"] is True
    assert type(layer.get_config()["cell_clip"]) is float
    assert LSTM(5, use_peephole=0).get_config().keys() == LSTM(5).get_config().keys()
    assert LSTMCell(5, layer_normalization=np.True_).layer_normalization == "haste"


def test_attributes_have_the_types_of_the_op() -> None:
    given = {"x": 1, "go_backwards": None, "return_sequences": np.True_, "cell_clip": np.int64(2)}
    found = op_definitions.converted("KerasLSTM", given)
    assert found == {"x": 1, "go_backwards": False, "return_sequences": True, "cell_clip": 2.0}
    assert [type(value) for value in found.values()] == [int, bool, bool, float]


@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.layers.Softmax(axis=[-1]),
        lambda: keras.layers.Conv1D(np.int64(4), [3], padding="SAME", use_bias=None),
        lambda: keras.layers.GlobalMaxPooling1D(keepdims=1),
        lambda: keras.layers.BatchNormalization(axis=np.int64(-1), center=0),
        lambda: keras.layers.Reshape([np.int64(9), 2]),
    ],
)
def test_other_layers_in_a_session(make: Any) -> None:
    model = _stock(make())
    _assert_close(Session(model)(X), np.asarray(model(X)))
