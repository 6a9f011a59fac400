"""convert_model of keras.layers.RNN of several cells: StackedLSTM or StackedGRU in the copy."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

import tf_lstm_ops
from tf_lstm_ops.cli import doctor_layers
from tf_lstm_ops.keras import StackedGRU, StackedLSTM, convert_model, fallback_reasons

from .convert_models import (
    BATCH,
    INPUTS,
    PREDICTION_BOUND,
    TIME,
    UNITS,
    assert_near,
    outputs,
    randomised,
)

OPTIONS: list[dict[str, Any]] = [
    {},
    {"return_sequences": True, "zero_output_for_mask": True},
    {"return_sequences": True, "go_backwards": True},
    {"stateful": True, "unroll": True},
]
ours = tf_lstm_ops.keras


@pytest.fixture
def x(rng) -> np.ndarray:
    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    x[1, TIME // 2 :] = 0
    x[2, :2] = 0
    return x


def model_of(*rnn: Any) -> keras.Model:
    inputs = keras.Input(batch_shape=(BATCH, TIME, INPUTS))
    return keras.Sequential([inputs, layers.Masking(), *rnn])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    ("cell", "stack", "cell_options"),
    [
        (layers.LSTMCell, StackedLSTM, {"unit_forget_bias": False, "kernel_regularizer": "l2"}),
        (ours.LSTMCell, StackedLSTM, {"projection_size": 3}),
        (ours.LSTMCell, StackedLSTM, {"projection_size": 3, "cell_clip": 0.2, "proj_clip": 0.05}),
        (layers.GRUCell, StackedGRU, {"use_bias": False}),
        (ours.GRUCell, StackedGRU, {}),
    ],
)
def test_equal_cells(cell, stack, cell_options, options, x, rng):
    cells = [cell(UNITS, **cell_options) for _ in range(3)]
    model = randomised(model_of(layers.RNN(cells, name="memory", **options)), x, rng)
    [found] = doctor_layers.findings(model)
    assert found.change.sentence == doctor_layers.CONVERT
    converted = convert_model(model)
    assert type(converted.layers[1]) is stack
    assert fallback_reasons(converted) == {"memory": None}
    for a, b in zip(converted.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    # Twice: a stateful layer goes on. Three layers.
    for _ in range(2):
        assert_near(outputs(converted, x), outputs(model, x), 3 * PREDICTION_BOUND)
    # Sums of some hundred squares in float32.
    np.testing.assert_allclose(sum(converted.losses), sum(model.losses), rtol=1e-5)


def test_states_of_a_gru_and_given_states(x, rng):
    inputs = keras.Input((TIME, INPUTS))
    gru = layers.RNN([layers.GRUCell(UNITS) for _ in range(2)], return_state=True, name="gru")
    last, *states = gru(inputs)
    lstm = layers.RNN([layers.LSTMCell(UNITS) for _ in range(2)], name="lstm")
    y = lstm(inputs, initial_state=[[states[0], last], [states[1], last]])
    model = keras.Model(inputs, [y, *states])
    randomised(model, x, rng)
    converted = convert_model(model)
    assert fallback_reasons(converted) == {"gru": None, "lstm": None}
    assert_near(outputs(converted, x), outputs(model, x), 4 * PREDICTION_BOUND)


def test_in_wrappers_and_nested_models(x, rng):
    def rnn(cell: Any) -> Any:
        return layers.RNN([cell(UNITS), cell(UNITS)], return_sequences=True, name="memory")

    inner = keras.Sequential([rnn(layers.GRUCell)], name="inner")
    both = layers.Bidirectional(rnn(layers.LSTMCell), name="both")
    model = randomised(model_of(both, inner), x, rng)
    converted = convert_model(model)
    names = ["both/forward_memory", "both/backward_memory", "inner/memory"]
    assert fallback_reasons(converted) == dict.fromkeys(names)
    assert_near(outputs(converted, x), outputs(model, x), 8 * PREDICTION_BOUND)


def test_training_goes_on(x, rng):
    double = {"dtype": "float64"}
    cells = layers.StackedRNNCells([layers.LSTMCell(UNITS, **double) for _ in range(2)], **double)
    model = randomised(model_of(layers.RNN(cells, **double)), x, rng)
    model.compile(keras.optimizers.Adam(0.05), "mse", run_eagerly=True)
    y = rng.normal(size=(BATCH, UNITS))
    model.train_on_batch(x, y)
    converted = convert_model(model)
    for m in model, converted:
        m.train_on_batch(x, y)
    # A step is up to 0.05; without Adam's slots weights differ by more than 1e-3.
    for a, b in zip(converted.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)


def test_a_weights_file_of_the_cells_is_an_error_that_says_what_to_do(tmp_path):
    model = model_of(layers.RNN([layers.GRUCell(UNITS), layers.GRUCell(UNITS)]))
    model.save_weights(tmp_path / "cells.weights.h5")
    message = "no GRU stack where the model has one.* into the model with that layer, then call con"
    with pytest.raises(ValueError, match=message):
        convert_model(model).load_weights(tmp_path / "cells.weights.h5")


LSTM, GRU = layers.LSTMCell, layers.GRUCell
REASONS: list[tuple[list[Any], dict[str, Any], str]] = [
    ([LSTM(2), GRU(2)], {}, "its cells are of several classes: LSTMCell, GRUCell"),
    (
        [layers.SimpleRNNCell(2), layers.SimpleRNNCell(2)],
        {},
        "SimpleRNNCell has no fused op for several layers",
    ),
    ([LSTM(2), LSTM(3, use_bias=False)], {}, "its cells differ in units, use_bias"),
    (
        [GRU(2, activity_regularizer="l2"), GRU(2, activity_regularizer="l2")],
        {},
        "its cells have an activity_regularizer",
    ),
    (
        [LSTM(2, dtype="float64"), LSTM(2, dtype="float64")],
        {},
        "its cells have another dtype",
    ),
    (
        [LSTM(2), LSTM(2)],
        {"return_state": True},
        "its states are a list for each cell, those of tf_lstm_ops.keras.StackedLSTM one list "
        "(return_state)",
    ),
    (
        [
            ours.LSTMCell(2, use_peephole=True, dropout=0.5),
            ours.LSTMCell(2, use_peephole=True, dropout=0.5),
        ],
        {},
        "tf_lstm_ops.keras.StackedLSTM has no use_peephole=True, dropout=0.5",
    ),
    (
        [GRU(2, reset_after=False), GRU(2, reset_after=False)],
        {},
        "tf_lstm_ops.keras.StackedGRU has no reset_after=False",
    ),
]


@pytest.mark.parametrize(("cells", "options", "reason"), REASONS, ids=[r[2] for r in REASONS])
def test_cells_without_a_stack_are_named(cells, options, reason):
    inputs = keras.Input((TIME, INPUTS))
    layer = layers.RNN(cells, name="memory", **options)
    model = keras.Model(inputs, keras.tree.flatten(layer(inputs))[0])
    assert fallback_reasons(model) == {"memory": reason}
    with pytest.warns(UserWarning, match="memory: "):
        converted = convert_model(model)
    assert fallback_reasons(converted) == {"memory": reason}


def test_a_single_cell_with_an_activity_regularizer():
    """It regularises each step, that of a layer the outputs that the layer returns."""
    layer = layers.RNN(LSTM(UNITS, activity_regularizer="l2"), name="memory")
    assert fallback_reasons(layer) == {"memory": "its LSTMCell has an activity_regularizer"}


def test_a_cell_that_occurs_twice():
    layer = layers.RNN([LSTM(INPUTS)] * 2, name="memory")
    reason = "a cell occurs twice, so that its steps share weights"
    assert fallback_reasons(layer) == {"memory": reason}


def test_in_place_names_the_reason(x):
    model = model_of(layers.RNN([LSTM(UNITS), LSTM(UNITS)], name="memory"))
    before = outputs(model, x)
    reason = "convert_model makes a tf_lstm_ops.keras.StackedLSTM of it in a copy"
    with pytest.warns(UserWarning, match=f"memory: {reason}"):
        convert_model(model, in_place=True)
    assert_near(outputs(model, x), before, 0)
