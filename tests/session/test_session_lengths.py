"""Sessions of functional models with an input for sequence_lengths."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import GRU, LSTM, Bidirectional, StackedLSTM
from tf_lstm_ops.keras.sequence_mask import SequenceMask

BATCH, STEPS, INPUTS, UNITS = 3, 5, 4, 3
LENGTHS = np.array([STEPS, 0, 3], "int32")
# float32 sums of at most INPUTS + UNITS products of numbers near 1, in three layers.
TOLERANCE = 1e-6


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")


def symbols() -> tuple[Any, Any]:
    return keras.Input((None, INPUTS), name="x"), keras.Input((), dtype="int32", name="lengths")


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE)


def test_layers(x: Any, tmp_path: Path) -> None:
    sequences, lengths = symbols()
    y = LSTM(UNITS, return_sequences=True)(sequences, sequence_lengths=lengths)
    y = Bidirectional(GRU(UNITS, return_sequences=True))(y)  # Keras passes the mask on
    y = keras.layers.Dense(UNITS)(y)
    y = StackedLSTM(UNITS, 2)(y, sequence_lengths=lengths)
    model = keras.Model({"x": sequences, "lengths": lengths}, y)
    model.save(tmp_path / "model.keras")
    given = {"x": x, "lengths": LENGTHS}
    wanted = model(given)
    assert not np.allclose(wanted, model({**given, "lengths": np.full(BATCH, STEPS)}))
    for each in (model, keras.models.load_model(tmp_path / "model.keras")):
        session = Session(each)
        close(session(given), wanted)
    session.save(tmp_path / "model.session")
    close(Session.load(tmp_path / "model.session")(given), wanted)


def test_lists_and_nested_models(x: Any) -> None:
    sequences, lengths = symbols()
    inner = keras.Model([sequences, lengths], GRU(UNITS)(sequences, sequence_lengths=lengths))
    a, b = symbols()
    model = keras.Model([a, b], inner([a, b]))
    close(Session(model)([x, LENGTHS]), model([x, LENGTHS]))


def test_stock_layers_with_the_mask(x: Any) -> None:
    sequences, lengths = symbols()
    mask = SequenceMask()([sequences, lengths])
    model = keras.Model([sequences, lengths], keras.layers.LSTM(UNITS)(sequences, mask=mask))
    close(Session(model)([x, LENGTHS]), model([x, LENGTHS]))


def test_lengths_of_words() -> None:
    words, lengths = keras.Input((None,), dtype="int32"), symbols()[1]
    y = LSTM(UNITS)(keras.layers.Embedding(5, INPUTS)(words), sequence_lengths=lengths)
    model = keras.Model([words, lengths], y)
    given = [np.arange(BATCH * STEPS).reshape(BATCH, STEPS) % 5, LENGTHS]
    close(Session(model)(given), model(given))


def test_refused() -> None:
    sequences, lengths = symbols()
    y = LSTM(UNITS)(sequences, sequence_lengths=lengths)
    words = keras.layers.Embedding(4, 3)(lengths)
    with pytest.raises(ValueError, match="input lengths has 1 axis and is not only that of"):
        Session(keras.Model([sequences, lengths], [y, words]))
    constant = LSTM(UNITS)(sequences, sequence_lengths=LENGTHS)
    with pytest.raises(ValueError, match="an argument of its call is not an array"):
        Session(keras.Model(sequences, constant))
    model = keras.Model([sequences, lengths], y)
    with pytest.raises(ValueError, match="needs the lengths of rows"):
        Session(model).stream()
    fixed = keras.Input((STEPS, INPUTS))
    weighted = keras.layers.Dense(2)(SequenceMask()([fixed, lengths]))
    with pytest.raises(ValueError, match="its input is the mask of sequence_lengths"):
        Session(keras.Model([fixed, lengths], weighted))
