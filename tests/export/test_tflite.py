"""export.tflite: the files in TensorFlow Lite's interpreter, against the model."""

import itertools
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.export import tflite
from tf_lstm_ops.export.lite import flatbuffer
from tf_lstm_ops.export.lite import layers as lite_layers
from tf_lstm_ops.keras import GRU, LSTM, SimpleRNN, StackedLSTM
from tf_lstm_ops.keras.of_cell import LSTMOfCell

from .tflite_files import (
    BATCH,
    FUSED,
    INPUTS,
    LOOP,
    TIME,
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


# The name of the case, the layers, and the op that computes the recurrent layer.
FORMS = {
    "lstm": (lambda: [LSTM(UNITS)], FUSED),
    "no_bias": (lambda: [LSTM(UNITS, use_bias=False)], FUSED),
    "sequences": (lambda: [LSTM(UNITS, return_sequences=True)], FUSED),
    "backwards": (lambda: [LSTM(UNITS, return_sequences=True, go_backwards=True)], FUSED),
    "peephole": (lambda: [LSTM(UNITS, use_peephole=True)], FUSED),
    "clip": (lambda: [LSTM(UNITS, cell_clip=0.3)], FUSED),
    "no_clip": (lambda: [keras.layers.Rescaling(100.0), LSTM(UNITS, return_sequences=True)], FUSED),
    "of_cell": (lambda: [LSTMOfCell(UNITS)], FUSED),
    "stock_lstm": (lambda: [keras.layers.LSTM(UNITS)], FUSED),
    "two_layers": (
        lambda: [LSTM(UNITS, return_sequences=True), LSTM(UNITS, use_bias=False)],
        FUSED,
    ),
    "both_directions": (
        lambda: [keras.layers.Bidirectional(LSTM(UNITS, return_sequences=True))],
        FUSED,
    ),
    "gru": (lambda: [GRU(UNITS)], LOOP),
    "gru_reset_before": (lambda: [GRU(UNITS, reset_after=False)], LOOP),
    "simple_rnn": (lambda: [SimpleRNN(UNITS, "relu")], LOOP),
    "stock_gru": (lambda: [keras.layers.GRU(UNITS)], LOOP),
    "mask": (lambda: [keras.layers.Masking(), LSTM(UNITS, return_sequences=True)], LOOP),
    "zero_output": (
        lambda: [
            keras.layers.Masking(),
            LSTM(UNITS, zero_output_for_mask=True, return_sequences=True),
        ],
        LOOP,
    ),
    "projection": (lambda: [LSTM(UNITS, projection_size=2)], LOOP),
    "proj_clip": (lambda: [LSTM(UNITS, projection_size=2, proj_clip=0.05)], LOOP),
    "relu": (lambda: [LSTM(UNITS, activation="relu")], LOOP),
    "selu": (lambda: [LSTM(UNITS, activation="selu")], LOOP),
    "gelu": (lambda: [LSTM(UNITS, activation="gelu")], LOOP),
}
# The other forms are parts of these, of test_known_time or of the tests of loops.
BY_DEFAULT = {
    *("stock_lstm", "both_directions", "proj_clip"),
}


@pytest.mark.parametrize(
    "form", [pytest.param(f, marks=() if f in BY_DEFAULT else pytest.mark.full) for f in FORMS]
)
def test_unknown_time(form, tmp_path, rng):
    """Any number of steps; a call does not depend on the calls before."""
    layers, op = FORMS[form]
    model = make_model(*layers(), rng=rng)
    tflite(model, tmp_path / "model.tflite", batch_size=BATCH)
    file = File(tmp_path / "model.tflite")
    assert file.ops & {FUSED, LOOP} == {op}
    for time in (TIME, 1, TIME + 3, TIME):
        x = make_input(rng, time)
        assert relative_difference(file(x), model(x)) < TOLERANCE


@pytest.mark.parametrize(
    "form",
    ["gru", *(pytest.param(f, marks=pytest.mark.full) for f in ("peephole", "mask", "relu"))],
)
def test_known_time(form, tmp_path, rng):
    """A sequence of few steps needs no loop."""
    layers, op = FORMS[form]
    model = make_model(*layers(), time=TIME, rng=rng)
    tflite(model, tmp_path / "model.tflite")
    file = File(tmp_path / "model.tflite")
    assert file.ops & {FUSED, LOOP} == {op} - {LOOP}
    x = make_input(rng)[:1]
    for _ in range(2):
        assert relative_difference(file(x), model(x)) < TOLERANCE


# The fused op's states and the loop's initial states are the same constant for the converter.
BESIDE_THE_FUSED_OP = {
    "gru": lambda: GRU(UNITS),
    "simple": lambda: keras.layers.SimpleRNN(UNITS),
    "relu": lambda: LSTM(UNITS, activation="relu"),
    "stack": lambda: StackedLSTM(UNITS, 2),
    "stock": lambda: keras.layers.GRU(UNITS),
}


BESIDE_BY_DEFAULT = {("gru", 70, "dynamic")}
BESIDE_FULL = {
    *(("relu", None, "float16"), ("stack", None, None)),
    ("simple", None, None),
    ("stock", 70, "dynamic"),
    ("stack", None, "float16"),
}


def beside_cases() -> Iterator[Any]:
    grid = itertools.product(BESIDE_THE_FUSED_OP, [None, 70], [None, "float16", "dynamic"])
    for case in grid:
        mark = pytest.mark.full if case in BESIDE_FULL else pytest.mark.slow
        yield pytest.param(*case, marks=() if case in BESIDE_BY_DEFAULT else mark)


@pytest.mark.parametrize(("other", "time", "quantize"), beside_cases())
def test_loop_beside_the_fused_op(other, time, quantize, tmp_path, rng):
    layers = [LSTM(UNITS, return_sequences=True), BESIDE_THE_FUSED_OP[other]()]
    model = make_model(*layers, time=time, rng=rng, scale=0.3)
    tflite(model, tmp_path / "model.tflite", quantize, batch_size=BATCH)
    file = File(tmp_path / "model.tflite")
    assert {FUSED, LOOP} <= file.ops
    for steps in (TIME, TIME + 3) if time is None else (time, time):
        x = make_input(rng, steps)
        assert relative_difference(file(x), model(x)) < (TOLERANCE if not quantize else 0.01)


@pytest.mark.full
def test_loop_before_the_fused_op(tmp_path, rng):
    model = make_model(GRU(UNITS, return_sequences=True), LSTM(UNITS), rng=rng)
    tflite(model, tmp_path / "model.tflite", batch_size=BATCH)
    file = File(tmp_path / "model.tflite")
    assert {FUSED, LOOP} <= file.ops
    for steps in (TIME, TIME + 3, TIME):
        x = make_input(rng, steps)
        assert relative_difference(file(x), model(x)) < TOLERANCE


@pytest.mark.full
def test_long_sequence_is_a_loop(tmp_path, rng):
    model = make_model(GRU(UNITS), time=100, rng=rng)
    tflite(model, tmp_path / "model.tflite")
    file = File(tmp_path / "model.tflite")
    assert LOOP in file.ops
    x = random(rng, 1, 100, INPUTS)
    assert relative_difference(file(x), model(x)) < TOLERANCE


@pytest.mark.full
def test_layer_in_time_distributed(tmp_path, rng):
    inside = keras.Sequential([keras.Input((TIME, INPUTS)), LSTM(UNITS)])
    outer = keras.Input((2, TIME, INPUTS), name="x")
    model = keras.Model(outer, keras.layers.TimeDistributed(inside)(outer))
    tflite(model, tmp_path / "model.tflite")
    x = random(rng, 1, 2, TIME, INPUTS)
    assert relative_difference(File(tmp_path / "model.tflite")(x), model(x)) < TOLERANCE


@pytest.mark.full
def test_states_between_layers(tmp_path, rng):
    """An encoder and a decoder: two inputs, an initial state, two outputs by name."""
    words, x = keras.Input((None,), dtype="int32", name="words"), keras.Input((4, INPUTS), name="x")
    embedded = keras.layers.Embedding(9, INPUTS)(words)
    _, *states = LSTM(UNITS, return_state=True)(embedded)
    y = LSTM(UNITS, return_sequences=True)(x, initial_state=states)
    model = keras.Model([words, x], {"y": y, "h": states[0]})
    tflite(model, tmp_path / "model.tflite")
    inputs = {
        "words": rng.integers(0, 9, (1, TIME)).astype("int32"),
        "x": random(rng, 1, 4, INPUTS),
    }
    got = File(tmp_path / "model.tflite").run(**inputs)
    want = model(list(inputs.values()))
    assert got.keys() == want.keys()
    for name in want:
        assert relative_difference(got[name], want[name]) < TOLERANCE


# The largest error of weights in float16 is 2^-11; 8 bits of the largest weight are 2^-8. The
# errors add up over inputs, units and steps.
QUANTISED = {"float16": (5e-3, 0.75), "dynamic": (0.05, 0.5)}


@pytest.mark.full
@pytest.mark.parametrize(
    ("quantize", "use_peephole"),
    [
        ("dynamic", True),
        pytest.param("float16", False, marks=pytest.mark.full),
        pytest.param("float16", True, marks=pytest.mark.slow),
        pytest.param("dynamic", False, marks=pytest.mark.slow),
    ],
)
def test_quantised_weights(quantize, use_peephole, tmp_path, rng):
    tolerance, size = QUANTISED[quantize]
    x = random(rng, BATCH, TIME, 32)
    model = keras.Sequential(
        [keras.Input((None, 32), name="x"), LSTM(64, use_peephole=use_peephole)]
    )
    for name in (None, quantize):
        tflite(model, tmp_path / f"{name}.tflite", quantize=name, batch_size=BATCH)
    plain, file = (tmp_path / f"{name}.tflite" for name in (None, quantize))
    assert file.stat().st_size < size * plain.stat().st_size
    assert 1e-5 < relative_difference(File(file)(x), model(x)) < tolerance


def test_small_weights_stay_float(tmp_path, rng, capsys):
    """Below 1,024 elements in a gate's weights, as the converter has it."""
    model = make_model(LSTM(UNITS), rng=rng)
    tflite(model, tmp_path / "model.tflite", quantize="dynamic", batch_size=BATCH)
    assert capsys.readouterr().out == ""  # see test_verbose
    x = make_input(rng)
    assert relative_difference(File(tmp_path / "model.tflite")(x), model(x)) < TOLERANCE


@pytest.mark.full
@pytest.mark.parametrize(
    ("inputs", "units", "dtype"),
    [
        (8, 64, np.float32),  # 9 * 64 weights of x and the bias
        (128, 16, np.float32),  # 16 * 16 weights of h
        (16, 64, np.int8),
    ],
)
def test_both_matrices_of_a_gate_must_be_large(inputs, units, dtype, tmp_path):
    """For "dynamic" in the fused op: at least 1,024 elements each."""
    model = keras.Sequential([keras.Input((None, inputs)), LSTM(units)])
    tflite(model, tmp_path / "model.tflite", quantize="dynamic")
    tensors = File(tmp_path / "model.tflite").interpreter.get_tensor_details()
    shapes = [units, inputs + 1], [units, units]
    weights = [t["dtype"] for t in tensors if t["shape"].tolist() in shapes]
    assert len(weights) == 8 and set(weights) == {dtype}


@pytest.mark.full
@pytest.mark.parametrize("layer", [pytest.param(LSTM, marks=pytest.mark.full), GRU])
def test_int8(layer, tmp_path, rng):
    """The products are those of integers. The converter does not always quantise a SPLIT."""
    model = make_model(layer(16), time=TIME, rng=rng, scale=0.3)
    data = random(rng, 16, TIME, INPUTS)
    tflite(model, tmp_path / "model.tflite", "int8", data)
    file = File(tmp_path / "model.tflite")
    dtypes = {t["index"]: t["dtype"] for t in file.interpreter.get_tensor_details()}
    ops = file.interpreter._get_ops_details()  # there is no public function
    products = [op["inputs"][:2] for op in ops if op["op_name"] == "FULLY_CONNECTED"]
    assert products and {dtypes[k] for pair in products for k in pair} == {np.int8}
    x = data[:1]
    assert 1e-4 < relative_difference(file(x), model(x)) < 0.1  # 8 bits in every step


@pytest.mark.full
def test_int8_of_many_steps(tmp_path, rng, monkeypatch):
    """A warning says that the steps make the file large. Their names do not: the converter joins
    those of all steps."""
    monkeypatch.setattr(lite_layers, "UNROLLED_STEPS", TIME - 1)
    model, path = make_model(LSTM(4, name="a"), time=TIME, rng=rng, scale=0.3), tmp_path / "m"
    with pytest.warns(UserWarning, match=f"layer a: quantize='int8' writes ops .* {TIME} steps"):
        tflite(model, path, "int8", random(rng, 4, TIME, INPUTS))
    assert not [t for t in File(path).interpreter.get_tensor_details() if ";" in t["name"]]


def test_int8_of_too_many_steps(tmp_path, rng, monkeypatch):
    assert lite_layers.INT8_STEPS == 1000  # as the pages say
    monkeypatch.setattr(lite_layers, "INT8_STEPS", TIME - 1)
    monkeypatch.setattr(lite_layers, "UNROLLED_STEPS", TIME - 1)
    model = make_model(LSTM(4, name="a"), time=TIME, rng=rng)
    with pytest.raises(
        ValueError, match=f"layer a: quantize='int8' takes at most {TIME - 1} steps"
    ):
        tflite(model, tmp_path / "m", "int8", random(rng, 4, TIME, INPUTS))
    assert not (tmp_path / "m").exists()


@pytest.mark.full
@pytest.mark.parametrize(
    ("layer", "masked"),
    [
        (LSTM, True),
        pytest.param(GRU, False, marks=pytest.mark.full),
        pytest.param(keras.layers.LSTM, False, marks=pytest.mark.full),
        pytest.param(LSTM, False, marks=pytest.mark.slow),
        pytest.param(GRU, True, marks=pytest.mark.slow),
        pytest.param(keras.layers.LSTM, True, marks=pytest.mark.slow),
    ],
)
def test_int8_in_both_directions(layer, masked, tmp_path, rng):
    masking = [keras.layers.Masking()] if masked else []
    recurrent = keras.layers.Bidirectional(layer(8))
    model = make_model(*masking, recurrent, time=TIME, rng=rng, scale=0.3)
    data = random(rng, 32, TIME, INPUTS)
    data[::2, 4:] = 0
    tflite(model, tmp_path / "model.tflite", "int8", data)
    for x in data[:1], data[1:2]:
        assert relative_difference(File(tmp_path / "model.tflite")(x), model(x)) < 0.2


@pytest.mark.full
def test_int8_of_a_step_that_is_always_zero(tmp_path):
    """TensorFlow Lite ends the process when it prepares the file: a backward layer's first states
    and inputs are always zero, and so is the range of their sums."""
    model = keras.Sequential(
        [keras.Input((TIME, INPUTS)), LSTM(UNITS, go_backwards=True, unit_forget_bias=False)]
    )
    data = np.ones([4, TIME, INPUTS], "float32")
    data[:, 4:] = 0
    with pytest.raises(ValueError, match="sums are zero for all of representative_data"):
        tflite(model, tmp_path / "model.tflite", "int8", data)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_file_that_cannot_run(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(flatbuffer, "_fill_with_zeros", lambda *_: None)
    model = make_model(LSTM(UNITS, return_sequences=True), GRU(UNITS), rng=rng)
    with pytest.raises(ValueError, match="the file cannot run in TensorFlow Lite"):
        tflite(model, tmp_path / "model.tflite")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
@pytest.mark.parametrize("as_function", [False, True])
def test_representative_data_check_the_file(as_function, tmp_path, rng, capsys):
    """The printed difference is that of these data; random numbers would be below 10."""
    model = make_model(keras.layers.Dense(2), time=TIME, rng=rng)
    data = 1000 * random(rng, 4, TIME, INPUTS)
    given = (lambda: iter([data[:2], data[2:]])) if as_function else data
    tflite(model, tmp_path / "m.tflite", representative_data=given, batch_size=2, verbose=True)
    largest = np.abs(model(data)).max()
    assert f"of the largest element {largest:.3g}" in capsys.readouterr().out


@pytest.mark.full
def test_verbose(tmp_path, rng, capsys):
    model = make_model(LSTM(UNITS, name="lstm"), rng=rng)
    tflite(model, tmp_path / "model.tflite", verbose=True)
    printed = capsys.readouterr().out
    assert f"layer lstm: {FUSED}" in printed and f"{FUSED} 1" in printed
    assert "largest difference" in printed and "quantize=None" in printed
