"""export.tflite: the files in TensorFlow Lite's interpreter, against the model."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.export import tflite
from tf_lstm_ops.export.lite import flatbuffer
from tf_lstm_ops.export.lite.layers import Recurrent, state_names
from tf_lstm_ops.keras import GRU, LSTM, StackedGRU, StackedLSTM

BATCH, TIME, INPUTS, UNITS = 2, 6, 3, 5
FUSED, LOOP = "UNIDIRECTIONAL_SEQUENCE_LSTM", "WHILE"
# Of the largest element. The interpreter rounds in another order, at every step and layer.
TOLERANCE = 2e-6

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated"),
    pytest.mark.skipif(not hasattr(tf, "lite"), reason="this TensorFlow has no TensorFlow Lite"),
]


def make_model(
    *layers: Any, time: int | None = None, rng: np.random.Generator, scale: float = 0.6
) -> keras.Model:
    model = keras.Sequential([keras.Input((time, INPUTS), name="x"), *layers])
    model.set_weights([rng.normal(size=w.shape) * scale for w in model.get_weights()])
    return model


def random(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def make_input(rng: np.random.Generator, time: int = TIME) -> np.ndarray:
    """Sequences, the first of which is padded at its end."""
    x = random(rng, BATCH, time, INPUTS)
    x[0, time // 2 :] = 0
    return x


class File:
    """A .tflite file in TensorFlow's interpreter, without the package's own code to run it."""

    def __init__(self, path: Path) -> None:
        self.content = path.read_bytes()
        self.interpreter = tf.lite.Interpreter(model_content=self.content)
        self.run = self.interpreter.get_signature_runner("serving_default")

    @property
    def ops(self) -> set[str]:
        return set(flatbuffer.operations(self.content))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        [output] = self.run(x=x).values()
        return output


def relative_difference(got: Any, want: Any) -> float:
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    return float(np.abs(got - want).max() / np.abs(want).max())


# The name of the case, the layers, and the op that computes the recurrent layer.
FORMS = {
    "lstm": (lambda: [LSTM(UNITS)], FUSED),
    "no_bias": (lambda: [LSTM(UNITS, use_bias=False)], FUSED),
    "sequences": (lambda: [LSTM(UNITS, return_sequences=True)], FUSED),
    "backwards": (lambda: [LSTM(UNITS, return_sequences=True, go_backwards=True)], FUSED),
    "peephole": (lambda: [LSTM(UNITS, use_peephole=True)], FUSED),
    "clip": (lambda: [LSTM(UNITS, cell_clip=0.3)], FUSED),
    "no_clip": (lambda: [keras.layers.Rescaling(100.0), LSTM(UNITS, return_sequences=True)], FUSED),
    "stock_lstm": (lambda: [keras.layers.LSTM(UNITS)], FUSED),
    "two_layers": (lambda: [LSTM(UNITS, return_sequences=True), LSTM(UNITS)], FUSED),
    "both_directions": (
        lambda: [keras.layers.Bidirectional(LSTM(UNITS, return_sequences=True))],
        FUSED,
    ),
    "gru": (lambda: [GRU(UNITS)], LOOP),
    "gru_reset_before": (lambda: [GRU(UNITS, reset_after=False)], LOOP),
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
    "relu": (lambda: [LSTM(UNITS, activation="relu")], LOOP),
    "selu": (lambda: [LSTM(UNITS, activation="selu")], LOOP),
    "gelu": (lambda: [LSTM(UNITS, activation="gelu")], LOOP),
}


@pytest.mark.parametrize("form", FORMS)
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


@pytest.mark.parametrize("form", ["peephole", "gru", "mask", "relu"])
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


@pytest.mark.parametrize("quantize", [None, "float16", "dynamic"])
@pytest.mark.parametrize("time", [None, 70])
@pytest.mark.parametrize("other", BESIDE_THE_FUSED_OP)
def test_loop_beside_the_fused_op(other, time, quantize, tmp_path, rng):
    layers = [LSTM(UNITS, return_sequences=True), BESIDE_THE_FUSED_OP[other]()]
    model = make_model(*layers, time=time, rng=rng, scale=0.3)
    tflite(model, tmp_path / "model.tflite", quantize, batch_size=BATCH)
    file = File(tmp_path / "model.tflite")
    assert {FUSED, LOOP} <= file.ops
    for steps in (TIME, TIME + 3) if time is None else (time, time):
        x = make_input(rng, steps)
        assert relative_difference(file(x), model(x)) < (TOLERANCE if not quantize else 0.01)


def test_loop_before_the_fused_op(tmp_path, rng):
    model = make_model(GRU(UNITS, return_sequences=True), LSTM(UNITS), rng=rng)
    tflite(model, tmp_path / "model.tflite", batch_size=BATCH)
    file = File(tmp_path / "model.tflite")
    assert {FUSED, LOOP} <= file.ops
    for steps in (TIME, TIME + 3, TIME):
        x = make_input(rng, steps)
        assert relative_difference(file(x), model(x)) < TOLERANCE


def test_long_sequence_is_a_loop(tmp_path, rng):
    model = make_model(GRU(UNITS), time=100, rng=rng)
    tflite(model, tmp_path / "model.tflite")
    file = File(tmp_path / "model.tflite")
    assert LOOP in file.ops
    x = random(rng, 1, 100, INPUTS)
    assert relative_difference(file(x), model(x)) < TOLERANCE


def test_layer_in_time_distributed(tmp_path, rng):
    inside = keras.Sequential([keras.Input((TIME, INPUTS)), LSTM(UNITS)])
    outer = keras.Input((4, TIME, INPUTS), name="x")
    model = keras.Model(outer, keras.layers.TimeDistributed(inside)(outer))
    tflite(model, tmp_path / "model.tflite")
    x = random(rng, 1, 4, TIME, INPUTS)
    assert relative_difference(File(tmp_path / "model.tflite")(x), model(x)) < TOLERANCE


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


@pytest.mark.parametrize("use_peephole", [False, True])
@pytest.mark.parametrize("quantize", QUANTISED)
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


def test_small_weights_stay_float(tmp_path, rng):
    """Below 1,024 elements in a gate's weights, as the converter has it."""
    model = make_model(LSTM(UNITS), rng=rng)
    tflite(model, tmp_path / "model.tflite", quantize="dynamic", batch_size=BATCH)
    x = make_input(rng)
    assert relative_difference(File(tmp_path / "model.tflite")(x), model(x)) < TOLERANCE


@pytest.mark.parametrize("layer", [LSTM, GRU])
def test_int8(layer, tmp_path, rng):
    """The products are those of integers. The converter does not always quantise a SPLIT."""
    model = make_model(layer(16), time=TIME, rng=rng, scale=0.3)
    data = random(rng, 64, TIME, INPUTS)
    tflite(model, tmp_path / "model.tflite", "int8", data)
    file = File(tmp_path / "model.tflite")
    dtypes = {t["index"]: t["dtype"] for t in file.interpreter.get_tensor_details()}
    ops = file.interpreter._get_ops_details()  # there is no public function
    products = [op["inputs"][:2] for op in ops if op["op_name"] == "FULLY_CONNECTED"]
    assert products and {dtypes[k] for pair in products for k in pair} == {np.int8}
    x = data[:1]
    assert 1e-4 < relative_difference(file(x), model(x)) < 0.1  # 8 bits in every step


@pytest.mark.parametrize("layer", [LSTM, GRU, keras.layers.LSTM])
@pytest.mark.parametrize("masked", [False, True])
def test_int8_in_both_directions(layer, masked, tmp_path, rng):
    masking = [keras.layers.Masking()] if masked else []
    recurrent = keras.layers.Bidirectional(layer(8))
    model = make_model(*masking, recurrent, time=TIME, rng=rng, scale=0.3)
    data = random(rng, 64, TIME, INPUTS)
    data[::2, 4:] = 0
    tflite(model, tmp_path / "model.tflite", "int8", data)
    for x in data[:1], data[1:2]:
        assert relative_difference(File(tmp_path / "model.tflite")(x), model(x)) < 0.2


def test_int8_of_a_step_that_is_always_zero(tmp_path):
    """TensorFlow Lite ends the process when it prepares the file: a backward layer's first states
    and inputs are always zero, and so is the range of their sums."""
    model = keras.Sequential([keras.Input((TIME, INPUTS)), LSTM(UNITS, go_backwards=True)])
    data = np.ones([4, TIME, INPUTS], "float32")
    data[:, 4:] = 0
    with pytest.raises(ValueError, match="sums are zero for all of representative_data"):
        tflite(model, tmp_path / "model.tflite", "int8", data)
    assert list(tmp_path.iterdir()) == []


def test_file_that_cannot_run(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(flatbuffer, "_fill_with_zeros", lambda *_: None)
    model = make_model(LSTM(UNITS, return_sequences=True), GRU(UNITS), rng=rng)
    with pytest.raises(ValueError, match="the file cannot run in TensorFlow Lite"):
        tflite(model, tmp_path / "model.tflite")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("as_function", [False, True])
def test_representative_data_check_the_file(as_function, tmp_path, rng, capsys):
    """The printed difference is that of these data; random numbers would be below 10."""
    model = make_model(keras.layers.Dense(2), time=TIME, rng=rng)
    data = 1000 * random(rng, 4, TIME, INPUTS)
    given = (lambda: iter([data[:2], data[2:]])) if as_function else data
    tflite(model, tmp_path / "m.tflite", representative_data=given, batch_size=2, verbose=True)
    largest = np.abs(model(data)).max()
    assert f"of the largest element {largest:.3g}" in capsys.readouterr().out


@pytest.mark.parametrize("layer", [LSTM, GRU])
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


needs_rnn = pytest.mark.skipif(
    not issubclass(StackedLSTM, keras.layers.RNN), reason="a stack is not a layers.RNN"
)


@needs_rnn
@pytest.mark.parametrize("layer", [StackedLSTM, StackedGRU])
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


@needs_rnn
def test_stack_that_cannot_be_streamed(tmp_path, rng):
    model = make_model(StackedLSTM(UNITS, 2, bidirectional=True, name="a"), rng=rng)
    with pytest.raises(ValueError, match="layer a: stateful=True needs layers that read forwards"):
        tflite(model, tmp_path / "model.tflite", stateful=True)


@needs_rnn
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


def test_verbose(tmp_path, rng, capsys):
    model = make_model(LSTM(UNITS, name="lstm"), rng=rng)
    tflite(model, tmp_path / "model.tflite")
    assert capsys.readouterr().out == ""
    tflite(model, tmp_path / "model.tflite", verbose=True)
    printed = capsys.readouterr().out
    assert f"layer lstm: {FUSED}" in printed and f"{FUSED} 1" in printed
    assert "largest difference" in printed and "quantize=None" in printed


def bad_calls() -> dict[str, tuple[Any, dict[str, Any], type[Exception], str]]:
    """By name: what makes the model, arguments, and the error."""
    lstm = lambda: [LSTM(UNITS, name="a")]  # noqa: E731
    gru = lambda: [GRU(UNITS, name="a")]  # noqa: E731
    int8 = {"quantize": "int8"}
    data = np.zeros([4, TIME, INPUTS], "float32")
    backwards = lambda: [LSTM(UNITS, go_backwards=True, name="a")]  # noqa: E731
    half = lambda: [LSTM(UNITS, dtype="float16", name="a")]  # noqa: E731
    dense = lambda: [keras.layers.Dense(2)]  # noqa: E731
    return {
        "batch type": (lstm, {"batch_size": 1.5}, TypeError, "batch_size must be an integer"),
        "batch": (lstm, {"batch_size": 0}, ValueError, "batch_size must be positive. Received: 0"),
        "quantize": (lstm, {"quantize": "int4"}, ValueError, "Received: 'int4'"),
        "no data": (lstm, int8, ValueError, "quantize='int8' needs representative_data"),
        "few rows": (
            lstm,
            {"representative_data": data, "batch_size": 5},
            ValueError,
            "at least batch_size=5 rows. Received: 4",
        ),
        "shape of data": (
            lstm,
            {"representative_data": data[..., :2]},
            ValueError,
            r"must have the shape \[N, None, 3\]. Received: \[4, 6, 2\]",
        ),
        "no batch": (
            lstm,
            {"representative_data": lambda: []},
            ValueError,
            "representative_data returned no batch",
        ),
        "number of data": (
            lstm,
            {"representative_data": [data, data]},
            ValueError,
            r"an array for each of the model's inputs \['x'\]",
        ),
        "int8 loop": (
            gru,
            {**int8, "representative_data": data},
            ValueError,
            "layer a: quantize='int8' needs a known number of steps",
        ),
        "type of layer": (half, {}, ValueError, "layer a computes in float16"),
        "backwards": (
            backwards,
            {"stateful": True},
            ValueError,
            "layer a: stateful=True needs layers that read forwards",
        ),
        "no layer": (
            dense,
            {"stateful": True},
            ValueError,
            "stateful=True needs an LSTM, a GRU or another layers.RNN",
        ),
    }


BAD_CALLS = bad_calls()


@pytest.mark.parametrize("case", BAD_CALLS)
def test_errors(case, tmp_path, rng):
    layers, arguments, error, message = BAD_CALLS[case]
    model = make_model(*layers(), rng=rng)
    path = tmp_path / "model.tflite"
    path.write_text("before")
    with pytest.raises(error, match=message):
        tflite(model, path, **arguments)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_model_that_is_not_functional(tmp_path):
    class Model(keras.Model):
        def call(self, x: Any) -> Any:
            return x

    with pytest.raises(ValueError, match="functional or a built Sequential model"):
        tflite(Model(), tmp_path / "model.tflite")


def test_model_of_another_type(tmp_path):
    with pytest.raises(TypeError, match=r"model must be a keras\.Model"):
        tflite(LSTM(3), tmp_path / "model.tflite")


def test_model_that_the_converter_does_not_know(tmp_path):
    model = keras.Sequential([keras.Input((3, 3)), keras.layers.Lambda(tf.linalg.expm)])
    with pytest.raises(ValueError, match="TensorFlow's converter cannot convert the model"):
        tflite(model, tmp_path / "model.tflite")


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        ("flatbuffer", "peephole_of", lambda layer: None),
        ("flatbuffer", "cell_clip_of", lambda layer: 0.0),
        ("layers", "_CLEARED", 0.0),  # the states of the call before remain
    ],
)
def test_wrong_file_is_not_kept(module, name, value, tmp_path, rng, monkeypatch):
    model = make_model(LSTM(UNITS, use_peephole=True, cell_clip=0.1), rng=rng)
    monkeypatch.setattr(f"tf_lstm_ops.export.lite.{module}.{name}", value)
    with pytest.raises(ValueError, match=r"largest difference of .* The file was not kept"):
        tflite(model, tmp_path / "model.tflite")
    assert list(tmp_path.iterdir()) == []
