"""export.tflite with states as inputs and outputs."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.export import tflite
from tf_lstm_ops.export.lite.layers import Recurrent, state_names
from tf_lstm_ops.keras import GRU, LSTM, StackedGRU, StackedLSTM

from .tflite_files import (
    BATCH,
    INPUTS,
    TOLERANCE,
    UNITS,
    File,
    make_input,
    make_model,
    random,
    relative_difference,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated"),
    pytest.mark.skipif(not hasattr(tf, "lite"), reason="this TensorFlow has no TensorFlow Lite"),
]


@pytest.mark.full
@pytest.mark.parametrize("layer", [LSTM, pytest.param(GRU, marks=pytest.mark.full)])
def test_stateful(layer, tmp_path, rng):
    """A sequence in pieces of different lengths; the states are inputs and outputs."""
    model = make_model(
        layer(UNITS, return_sequences=True, name="a"), layer(UNITS, name="b"), rng=rng
    )
    tflite(model, tmp_path / "model.tflite", batch_size=BATCH, stateful=True)
    run = File(tmp_path / "model.tflite").run
    names = [f"{name}_{state}" for name in "ab" for state in ("hc" if layer is LSTM else "h")]
    states = {name: np.zeros([BATCH, UNITS], "float32") for name in names}
    x = random(rng, BATCH, 9, INPUTS)
    for start, end in ((0, 4), (4, 5), (5, 9)):
        results = run(x=x[:, start:end], **states)
        states = {name: results.pop(name) for name in names}
        [output] = results.values()
        assert relative_difference(output, model(x[:, :end])) < TOLERANCE


@pytest.mark.full
def test_stateful_layer_of_the_model(tmp_path, rng):
    """The export does not change the layer's own states."""
    layer = LSTM(UNITS, stateful=True)
    model = keras.Sequential([keras.Input((None, INPUTS), batch_size=BATCH), layer])
    model(make_input(rng))
    before = [state.numpy() for state in layer.states]
    tflite(model, tmp_path / "model.tflite", batch_size=BATCH, stateful=True)
    np.testing.assert_array_equal([state.numpy() for state in layer.states], before)
    with pytest.raises(ValueError, match=r"is stateful\. Pass stateful=True"):
        tflite(model, tmp_path / "model.tflite", batch_size=BATCH)


@pytest.mark.full
@pytest.mark.parametrize("layer", [pytest.param(StackedLSTM, marks=pytest.mark.full), StackedGRU])
def test_stateful_stack(layer, tmp_path, rng):
    model = make_model(layer(UNITS, 2, name="a"), rng=rng)
    tflite(model, tmp_path / "model.tflite", batch_size=BATCH, stateful=True)
    run = File(tmp_path / "model.tflite").run
    kinds = "hc" if layer is StackedLSTM else "h"
    names = [f"a_l{number}_{kind}" for number in range(2) for kind in kinds]
    assert run.get_input_details().keys() == {"x", *names}
    states = {name: np.zeros([BATCH, UNITS], "float32") for name in names}
    x = random(rng, BATCH, 9, INPUTS)
    for start, end in ((0, 4), (4, 5), (5, 9)):
        results = run(x=x[:, start:end], **states)
        states = {name: results.pop(name) for name in names}
        [output] = results.values()
        assert relative_difference(output, model(x[:, :end])) < TOLERANCE


def test_stack_that_cannot_be_streamed(tmp_path, rng):
    model = make_model(StackedLSTM(UNITS, 2, bidirectional=True, name="a"), rng=rng)
    with pytest.raises(ValueError, match="layer a: stateful=True needs layers that read forwards"):
        tflite(model, tmp_path / "model.tflite", stateful=True)


def test_stateful_stack_of_the_model(tmp_path, rng):
    layer = StackedGRU(UNITS, 2, stateful=True)
    model = keras.Sequential([keras.Input((None, INPUTS), batch_size=BATCH), layer])
    with pytest.raises(ValueError, match=r"is stateful\. Pass stateful=True"):
        tflite(model, tmp_path / "model.tflite", batch_size=BATCH)


def test_names_of_the_states_of_a_stack():
    stack = StackedLSTM(UNITS, 2, bidirectional=True, name="a")
    names = state_names(Recurrent("outer/a", stack, False))
    parts = [f"l{n}{end}" for n in (0, 1) for end in ("", "_reverse")]
    assert names == [f"outer_a_{part}_{state}" for part in parts for state in "hc"]
    assert state_names(Recurrent("b", StackedGRU(UNITS, 1), False)) == ["b_l0_h"]
