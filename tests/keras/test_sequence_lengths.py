"""sequence_lengths of a call: the mask of the first steps of each row, without one to build."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.keras import (
    GRU,
    LSTM,
    Bidirectional,
    SimpleRNN,
    StackedGRU,
    StackedLSTM,
    convert_model,
)

BATCH, STEPS, INPUTS, UNITS = 3, 5, 4, 3
LENGTHS = np.array([STEPS, 0, 3], "int32")
MASK = np.arange(STEPS) < LENGTHS[:, None]
LAYERS: dict[str, Callable[..., Any]] = {
    "LSTM": lambda **given: LSTM(UNITS, **given),
    "GRU": lambda **given: GRU(UNITS, **given),
    "SimpleRNN": lambda **given: SimpleRNN(UNITS, **given),
    "StackedLSTM": lambda **given: StackedLSTM(UNITS, 2, **given),
    "StackedGRU": lambda **given: StackedGRU(UNITS, 2, bidirectional=True, **given),
    "Bidirectional": lambda **given: Bidirectional(LSTM(UNITS, **given)),
}


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")


def assert_equal(found: Any, wanted: Any) -> None:
    pairs = zip(keras.tree.flatten(found), keras.tree.flatten(wanted), strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


def results(layer: Any, x: Any, **given: Any) -> list[Any]:
    """The output, the states, and the gradients of the weights and of x."""
    with tf.GradientTape() as tape:
        x = tf.constant(x)
        tape.watch(x)
        found = layer(x, **given)
        loss = tf.add_n([tf.reduce_sum(tf.square(each)) for each in found])
    return [*found, *tape.gradient(loss, [x, *(w.value for w in layer.trainable_weights)])]


@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_the_bits_of_the_mask(name: str, return_sequences: bool, x: Any) -> None:
    layer = LAYERS[name](return_sequences=return_sequences, return_state=True)
    wanted = results(layer, x, mask=MASK)
    assert_equal(results(layer, x, sequence_lengths=LENGTHS), wanted)
    assert not np.array_equal(layer(x)[0], wanted[0])


@pytest.mark.parametrize(
    "lengths",
    [LENGTHS.tolist(), LENGTHS.astype("uint8"), tf.constant(LENGTHS, tf.int64)],
    ids=["list", "uint8", "tensor"],
)
def test_kinds_of_integers(lengths: Any, x: Any) -> None:
    layer = GRU(UNITS)
    assert_equal(layer(x, sequence_lengths=lengths), layer(x, mask=MASK))
    assert_equal(layer(x, None, None, sequence_lengths=lengths), layer(x, mask=MASK))
    assert_equal(layer(sequences=x, sequence_lengths=lengths), layer(x, mask=MASK))


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("is_known", [False, True])
def test_functions(jit_compile: bool, is_known: bool, x: Any) -> None:
    layer = LSTM(UNITS, return_sequences=True)
    layer.build(x.shape)

    @tf.function(jit_compile=jit_compile)
    def by_lengths(x: Any, lengths: Any) -> Any:
        return layer(x, sequence_lengths=LENGTHS if is_known else lengths)

    @tf.function(jit_compile=jit_compile)
    def by_mask(x: Any, mask: Any) -> Any:
        return layer(x, mask=mask)

    assert_equal(by_lengths(x, LENGTHS), by_mask(x, MASK))


@pytest.mark.parametrize("steps", [None, STEPS])
@pytest.mark.parametrize("name", ["LSTM", "StackedGRU", "Bidirectional"])
def test_functional_models(name: str, steps: int | None, x: Any, tmp_path: Path) -> None:
    """They train, and are saved, loaded and copied, with an input of lengths."""
    inputs = {
        "x": keras.Input((steps, INPUTS), name="x"),
        "lengths": keras.Input((), dtype="int32", name="lengths"),
    }
    layer = LAYERS[name](return_sequences=True)
    model = keras.Model(inputs, layer(inputs["x"], sequence_lengths=inputs["lengths"]))
    given = {"x": x, "lengths": LENGTHS}
    model.compile("sgd", "mse")
    model.fit(given, np.zeros_like(model.predict(given, verbose=0)), verbose=0)
    wanted = layer(x, mask=MASK)
    assert_equal(model(given), wanted)
    model.save(tmp_path / "model.keras")
    for copy in (keras.models.load_model(tmp_path / "model.keras"), convert_model(model)):
        assert_equal(copy(given), wanted)


def test_a_next_layer_gets_the_mask(x: Any) -> None:
    """As from a call with mask=; lengths of its own replace it."""
    first, second = LSTM(UNITS, return_sequences=True), GRU(UNITS)
    y = first(x, sequence_lengths=LENGTHS)
    wanted = second(first(x, mask=MASK), mask=MASK)
    assert_equal(second(y), wanted)
    assert_equal(second(y, sequence_lengths=LENGTHS), wanted)
    assert_equal(second(y, sequence_lengths=[1, 1, 1]), second(y, mask=np.arange(5) < [[1]] * 3))


def test_no_steps_and_no_rows(x: Any) -> None:
    layer = LSTM(UNITS, return_sequences=True)
    assert layer(x[:, :0], sequence_lengths=[0, 0, 0]).shape == (BATCH, 0, UNITS)
    assert layer(x[:0], sequence_lengths=LENGTHS[:0]).shape == (0, STEPS, UNITS)


@pytest.mark.parametrize(
    ("lengths", "match"),
    [
        ([1, 2], r"sequence_lengths must be \[batch\], here \[3\]. Received: \(2,\)"),
        ([[1], [2], [3]], r"must be \[batch\], here \[3\]. Received: \(3, 1\)"),
        ([1, 2, 6], "must be from 0 to 5, the number of steps. Received: 6 for row 2"),
        ([-1, 2, 3], "must be from 0 to 5, the number of steps. Received: -1 for row 0"),
        ([1.0, 2.0, 3.0], "must be integers. Received: dtype float32"),
        ([True, True, True], "must be integers. Received: dtype bool"),
    ],
)
@pytest.mark.parametrize("name", ["GRU", "StackedLSTM", "Bidirectional"])
def test_refused_values(name: str, lengths: Any, match: str, x: Any) -> None:
    with pytest.raises(ValueError, match=match):
        LAYERS[name]()(x, sequence_lengths=lengths)


@pytest.mark.parametrize("name", ["GRU", "StackedLSTM", "Bidirectional"])
def test_refused_together(name: str, x: Any) -> None:
    layer = LAYERS[name]()
    for args, given in (((), {"mask": MASK}), ((None, MASK), {})):
        with pytest.raises(ValueError, match="takes either mask or sequence_lengths"):
            layer(x, *args, sequence_lengths=LENGTHS, **given)
    ragged = tf.RaggedTensor.from_tensor(x, LENGTHS)
    with pytest.raises(ValueError, match=r"Received: a ragged tensor, whose rows have lengths"):
        layer(ragged, sequence_lengths=LENGTHS)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_one_length_is_not_repeated(jit_compile: bool, x: Any) -> None:
    """Also where the number of rows is not known when the graph is made."""
    layer, sequences = LSTM(UNITS), keras.Input((None, INPUTS))
    signature = [tf.TensorSpec((None, None, INPUTS)), tf.TensorSpec((None,), tf.int32)]
    compiled = tf.function(
        lambda x, n: layer(x, sequence_lengths=n),
        input_signature=signature,
        jit_compile=jit_compile,
    )
    np.testing.assert_allclose(compiled(x, LENGTHS), layer(x, mask=MASK), rtol=0, atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError):
        compiled(x, [2])
    model = keras.Model(sequences, layer(sequences, sequence_lengths=[2]))
    with pytest.raises(ValueError, match=r"must be \[batch\], here \[3\]. Received: \(1,\)"):
        model(x)


def test_refused_symbols() -> None:
    x, layer = keras.Input((None, INPUTS)), LSTM(UNITS)
    with pytest.raises(ValueError, match=r"must be \[batch\]. Received: \(None, 1\)"):
        layer(x, sequence_lengths=keras.Input((1,), dtype="int32"))
    with pytest.raises(ValueError, match="must be integers"):
        layer(x, sequence_lengths=keras.Input(()))
    with pytest.raises(ValueError, match="Received: a ragged tensor"):
        layer(keras.Input((None, INPUTS), ragged=True), sequence_lengths=[1])


def test_no_stock_layer_has_them() -> None:
    x, lengths = keras.Input((None, INPUTS)), keras.Input((), dtype="int32")
    model = keras.Model([x, lengths], LSTM(UNITS)(x, sequence_lengths=lengths))
    with pytest.raises(ValueError, match=r"no counterpart of tf_lstm_ops\.keras\.SequenceMask"):
        convert_model(model, to="stock")
