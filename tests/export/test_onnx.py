"""export.onnx: the files in ONNX Runtime, against the model."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.export import onnx as export_onnx
from tf_lstm_ops.export import onnx_nodes
from tf_lstm_ops.export import saved_model as export_saved_model
from tf_lstm_ops.export.states import states_of
from tf_lstm_ops.keras import GRU, LSTM, SimpleRNN, StackedLSTM

pytest.importorskip("tf2onnx", reason="the converter of all other layers")
onnx = pytest.importorskip("onnx", reason="reads the files")
runtime = pytest.importorskip("onnxruntime", reason="runs the files")

BATCH, TIME, INPUTS, UNITS = 3, 6, 3, 5
# Of the largest element. ONNX Runtime rounds in another order, at every step and layer.
TOLERANCE = 2e-6
MASKS = {
    "right": [[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0]],
    "left": [[0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]],
    "holes": [[0, 1, 0, 1, 1, 0], [1, 0, 0, 0, 0, 1], [1, 1, 0, 0, 1, 1]],
    "empty": [[0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]],
}


def make_model(
    *layers: Any, time: int | None = None, masked: bool = False, rng: np.random.Generator
) -> keras.Model:
    masking = [keras.layers.Masking()] if masked else []
    model = keras.Sequential([keras.Input((time, INPUTS)), *masking, *layers])
    model.set_weights([0.6 * rng.normal(size=w.shape) for w in model.get_weights()])
    return model


def random(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def run(path: Path, *inputs: np.ndarray) -> list[np.ndarray]:
    """The outputs, by ONNX Runtime. The code of the package that runs the file is not used."""
    session = runtime.InferenceSession(path)
    names = [argument.name for argument in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def kinds(path: Path) -> dict[str, int]:
    """The number of recurrent nodes and loops."""
    count = Counter(node.op_type for node in onnx.load(path).graph.node)
    return {kind: count[kind] for kind in ("LSTM", "GRU", "RNN", "Loop") if count[kind]}


def assert_close(got: Any, want: Any) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= TOLERANCE * np.abs(want).max()


def both(layer: Any) -> Any:
    return keras.layers.Bidirectional(layer)


# What makes the layers, and the nodes that compute them.
FORMS = {
    "lstm": (lambda: [LSTM(UNITS)], {"LSTM": 1}),
    "gru": (lambda: [GRU(UNITS)], {"GRU": 1}),
    "no_bias": (lambda: [LSTM(UNITS, use_bias=False)], {"LSTM": 1}),
    "gru_no_bias": (lambda: [GRU(UNITS, use_bias=False)], {"GRU": 1}),
    "peephole": (lambda: [LSTM(UNITS, use_peephole=True)], {"LSTM": 1}),
    "sequences": (lambda: [LSTM(UNITS, return_sequences=True), GRU(4)], {"LSTM": 1, "GRU": 1}),
    "backwards": (lambda: [LSTM(UNITS, go_backwards=True, return_sequences=True)], {"LSTM": 1}),
    "backwards_last": (lambda: [GRU(UNITS, go_backwards=True)], {"GRU": 1}),
    "both": (lambda: [both(LSTM(UNITS, return_sequences=True))], {"LSTM": 2}),
    "both_last": (lambda: [both(GRU(UNITS))], {"GRU": 2}),
    "stock": (
        lambda: [both(keras.layers.LSTM(UNITS, return_sequences=True)), keras.layers.GRU(4)],
        {"LSTM": 2, "GRU": 1},
    ),
    "dropout": (lambda: [LSTM(UNITS, dropout=0.5, recurrent_dropout=0.5)], {"LSTM": 1}),
    "clip": (lambda: [LSTM(UNITS, cell_clip=0.3)], {"Loop": 1}),
    "projection": (lambda: [LSTM(UNITS, projection_size=2)], {"Loop": 1}),
    "proj_clip": (lambda: [LSTM(UNITS, projection_size=2, proj_clip=0.05)], {"Loop": 1}),
    "norm": (lambda: [LSTM(UNITS, layer_normalization=True)], {"Loop": 1}),
    "simple_rnn": (
        lambda: [both(keras.layers.SimpleRNN(UNITS, return_sequences=True)), SimpleRNN(4, "relu")],
        {"RNN": 3},
    ),
    "simple_rnn_elu": (lambda: [keras.layers.SimpleRNN(UNITS, "elu")], {"Loop": 1}),
    "gelu": (lambda: [LSTM(UNITS, activation="gelu")], {"Loop": 1}),
    "gru_reset_before": (lambda: [GRU(UNITS, reset_after=False)], {"GRU": 1}),
    "gru_gelu": (lambda: [GRU(UNITS, activation="gelu")], {"Loop": 1}),
    # ONNX Runtime reads alpha and beta for the functions that have them only.
    "default_gates": (
        lambda: [
            LSTM(UNITS, activation="elu", return_sequences=True),
            LSTM(UNITS, activation="leaky_relu", return_sequences=True),
            LSTM(UNITS, recurrent_activation="hard_sigmoid"),
        ],
        {"LSTM": 3},
    ),
    "both_activations": (
        lambda: [
            both(LSTM(UNITS, activation="elu", recurrent_activation="hard_sigmoid")),
        ],
        {"LSTM": 2},
    ),
    "gru_both_activations": (
        lambda: [
            both(GRU(UNITS, recurrent_activation="hard_sigmoid", return_sequences=True)),
            both(GRU(UNITS, recurrent_activation="hard_sigmoid", reset_after=False)),
        ],
        {"GRU": 4},
    ),
    "gru_activations": (
        lambda: [
            GRU(UNITS, activation=name, recurrent_activation=gate, return_sequences=True)
            for name in sorted(onnx_nodes.ACTIVATIONS)
            for gate in ("hard_sigmoid", "sigmoid")
        ],
        {"GRU": 2 * len(onnx_nodes.ACTIVATIONS)},
    ),
    "activations": (
        lambda: [
            LSTM(UNITS, activation=name, recurrent_activation="hard_sigmoid", return_sequences=True)
            for name in sorted(onnx_nodes.ACTIVATIONS)
        ],
        {"LSTM": len(onnx_nodes.ACTIVATIONS)},
    ),
    **{
        f"lstm_{name}": (
            lambda name=name: [LSTM(UNITS, activation=name, recurrent_activation="hard_sigmoid")],
            {"LSTM": 1},
        )
        for name in sorted(onnx_nodes.ACTIVATIONS)
    },
}


# The other forms are parts of these or of other tests.
BY_DEFAULT = {
    *("gru_no_bias", "peephole", "sequences", "backwards_last", "both"),
    *("dropout", "proj_clip", "gru_reset_before", "simple_rnn", "default_gates"),
}


def form_cases() -> Iterator[Any]:
    for form in FORMS:
        mark = pytest.mark.slow if form.startswith("lstm_") else pytest.mark.full
        yield pytest.param(form, marks=() if form in BY_DEFAULT else mark)


@pytest.mark.parametrize("form", form_cases())
def test_unknown_sizes(form, tmp_path, rng):
    layers, nodes = FORMS[form]
    model, path = make_model(*layers(), rng=rng), tmp_path / "model.onnx"
    export_onnx(model, path)
    assert kinds(path) == nodes
    for batch, time in ((BATCH, TIME), (1, 1), (4, 9)):
        x = random(rng, batch, time, INPUTS)
        assert_close(run(path, x)[0], model(x))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("layer", [LSTM, GRU, SimpleRNN])
@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("zero_output_for_mask", [False, True])
@pytest.mark.parametrize("go_backwards", [False, True])
def test_masks(layer, go_backwards, zero_output_for_mask, return_sequences, tmp_path, rng):
    """All results, with masks of all kinds and an initial state."""
    x, mask = keras.Input((None, INPUTS)), keras.Input((None,), dtype="bool")
    states = [keras.Input((UNITS,)) for _ in range(2 if layer is LSTM else 1)]
    recurrent = layer(
        UNITS,
        return_state=True,
        return_sequences=return_sequences,
        go_backwards=go_backwards,
        zero_output_for_mask=zero_output_for_mask,
    )
    results = recurrent(x, mask=mask, initial_state=states)
    model, path = keras.Model([x, mask, *states], results), tmp_path / "model.onnx"
    export_onnx(model, path)
    assert kinds(path) == {"RNN" if layer is SimpleRNN else layer.__name__: 1}
    for given in MASKS.values():
        inputs = [random(rng, BATCH, TIME, INPUTS), np.array(given, bool)]
        inputs += [random(rng, BATCH, UNITS) for _ in states]
        for got, want in zip(run(path, *inputs), model(inputs), strict=True):
            assert_close(got, want)


@pytest.mark.full
@pytest.mark.parametrize(
    "form",
    [
        "both",
        "clip",
        pytest.param("stock", marks=pytest.mark.full),
        pytest.param("gru_reset_before", marks=pytest.mark.full),
    ],
)
def test_mask_of_padding(form, tmp_path, rng):
    """The mask is that of a Masking layer."""
    layers, nodes = FORMS[form]
    model, path = make_model(*layers(), masked=True, rng=rng), tmp_path / "model.onnx"
    export_onnx(model, path)
    assert kinds(path) == nodes
    for given in MASKS.values():
        x = random(rng, BATCH, TIME, INPUTS) * np.array(given, "float32")[..., None]
        assert_close(run(path, x)[0], model(x))


def test_weights_are_exact(tmp_path, rng, capsys):
    model, path = make_model(LSTM(UNITS), rng=rng), tmp_path / "model.onnx"
    export_onnx(model, path)
    assert capsys.readouterr().out == ""  # see test_verbose
    graph = onnx.load(path).graph
    arrays = {a.name: onnx.numpy_helper.to_array(a) for a in graph.initializer}
    [node] = [node for node in graph.node if node.op_type == "LSTM"]
    kernel, recurrent, bias = model.get_weights()
    i, f, c, o = np.split(np.arange(4 * UNITS), 4)
    order = np.concatenate([i, o, f, c])  # ONNX' order of the gates
    np.testing.assert_array_equal(arrays[node.input[1]][0], kernel[:, order].T)
    np.testing.assert_array_equal(arrays[node.input[2]][0], recurrent[:, order].T)
    # As in cuDNN, there are two biases.
    np.testing.assert_array_equal(arrays[node.input[3]].reshape(2, -1).sum(0), bias[order])


def test_encoder_and_decoder(tmp_path, rng):
    words, x = keras.Input((None,), dtype="int32"), keras.Input((4, INPUTS))
    embedded = keras.layers.Embedding(9, INPUTS, mask_zero=True)(words)
    _, *states = LSTM(UNITS, return_state=True)(embedded)
    y = LSTM(UNITS, return_sequences=True)(x, initial_state=states)
    model, path = keras.Model([words, x], [y, states[1]]), tmp_path / "model.onnx"
    export_onnx(model, path)
    assert kinds(path) == {"LSTM": 2}
    inputs = [rng.integers(0, 9, (2, TIME)).astype("int32"), random(rng, 2, 4, INPUTS)]
    for got, want in zip(run(path, *inputs), model(inputs), strict=True):
        assert_close(got, want)


@pytest.mark.full
def test_known_sizes_and_time_distributed(tmp_path, rng):
    inside = keras.Sequential([keras.Input((TIME, INPUTS)), LSTM(UNITS)])
    x = keras.Input((4, TIME, INPUTS), batch_size=2)
    model = keras.Model(x, keras.layers.TimeDistributed(inside)(x))
    export_onnx(model, tmp_path / "model.onnx")
    value = random(rng, 2, 4, TIME, INPUTS)
    assert_close(run(tmp_path / "model.onnx", value)[0], model(value))


@pytest.mark.parametrize("opset", [14, 18])
def test_opset(opset, tmp_path, rng):
    model, path = make_model(GRU(UNITS), masked=True, rng=rng), tmp_path / "model.onnx"
    export_onnx(model, path, opset=opset)
    [found] = [entry.version for entry in onnx.load(path).opset_import if not entry.domain]
    assert found == opset
    x = random(rng, BATCH, TIME, INPUTS)
    assert_close(run(path, x)[0], model(x))


# OpenVINO 2026.4 ignores peepholes, and has no other activations than the defaults. It ignores the
# lengths where sizes are unknown.
@pytest.mark.full
@pytest.mark.parametrize("form", ["lstm", "both", "both_last", "sequences"])
@pytest.mark.parametrize("masked", [False, True])
def test_in_openvino(form, masked, tmp_path, rng):
    openvino = pytest.importorskip("openvino", reason="runs the file")
    layers, _ = FORMS[form]
    model, path = make_model(*layers(), masked=masked, rng=rng), tmp_path / "model.onnx"
    export_onnx(model, path)
    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    for mask in MASKS.values() if masked else [np.ones([BATCH, TIME])]:
        x = random(rng, BATCH, TIME, INPUTS) * np.array(mask, "float32")[..., None]
        assert_close(next(iter(compiled(x).values())), model(x))


@pytest.mark.full
def test_openvino_loads_no_loop(tmp_path, rng):
    """But a portable SavedModel."""
    openvino = pytest.importorskip("openvino", reason="loads the file")
    layers, nodes = FORMS["clip"]
    model, folder = make_model(*layers(), rng=rng), tmp_path / "model"
    export_onnx(model, tmp_path / "model.onnx")
    assert kinds(tmp_path / "model.onnx") == nodes == {"Loop": 1}
    with pytest.raises(RuntimeError, match="Loop"):
        openvino.Core().compile_model(tmp_path / "model.onnx", "CPU")
    export_saved_model(model, folder, portable=True)
    options = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.compile_model(openvino.convert_model(folder), "CPU", options)
    x = random(rng, BATCH, TIME, INPUTS)
    assert_close(next(iter(compiled(x).values())), model(x))


@pytest.mark.full
def test_verbose(tmp_path, rng, capsys):
    model = make_model(
        LSTM(UNITS, return_sequences=True), LSTM(4, cell_clip=1.0, name="a"), rng=rng
    )
    export_onnx(model, tmp_path / "model.onnx", verbose=True)
    printed = capsys.readouterr().out
    assert "LSTM 1," in printed and "Loop 1," in printed
    assert "layer a is a Loop: ONNX' recurrent nodes have no cell_clip" in printed
    assert "largest difference to the model" in printed


def test_wrong_file_is_not_kept(tmp_path, rng, monkeypatch):
    """A node that runs in the wrong direction is found by the check."""
    replace = onnx_nodes._replace

    def wrong(graph: Any, node: Any, kind: str, weights: Any, attributes: Any) -> None:
        replace(graph, node, kind, weights._replace(R=-weights.R), attributes)

    monkeypatch.setattr(onnx_nodes, "_replace", wrong)
    path = tmp_path / "model.onnx"
    path.write_text("before")
    with pytest.raises(ValueError, match="predicts something else than the model"):
        export_onnx(make_model(LSTM(UNITS), rng=rng), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("layer", "wrapped"),
    [
        (GRU, False),
        (LSTM, True),
        pytest.param(StackedLSTM, False, marks=pytest.mark.full),
        pytest.param(keras.layers.LSTM, True, marks=pytest.mark.full),
        pytest.param(LSTM, False, marks=pytest.mark.slow),
        pytest.param(GRU, True, marks=pytest.mark.slow),
        pytest.param(keras.layers.LSTM, False, marks=pytest.mark.slow),
    ],
)
def test_stateful(layer, wrapped, tmp_path, rng, recwarn):
    """A run starts from zeros, whatever the states of the model are, and does not depend on the
    runs before. The model's states do not change."""
    options = {"num_layers": 2} if layer is StackedLSTM else {}
    recurrent = layer(UNITS, stateful=True, **options)
    if wrapped:
        recurrent = both(recurrent)
    x = keras.Input((None, INPUTS), batch_size=BATCH)
    model, path = keras.Model(x, recurrent(x)), tmp_path / "model.onnx"
    value = random(rng, BATCH, TIME, INPUTS)
    want = model(value)
    before = [v.numpy() for v in states_of(model)]
    assert np.any(before[0])
    export_onnx(model, path)
    assert not [w for w in recwarn if "was not compared" in str(w.message)]
    np.testing.assert_equal([v.numpy() for v in states_of(model)], before)
    for _ in range(2):
        assert_close(run(path, value)[0], want)
    [source] = runtime.InferenceSession(path).get_inputs()
    assert source.shape[0] == BATCH


@pytest.mark.full
def test_bad_arguments(tmp_path, rng):
    model, path = make_model(LSTM(UNITS), rng=rng), tmp_path / "model.onnx"
    with pytest.raises(TypeError, match=r"model must be a keras\.Model"):
        export_onnx(LSTM(2), path)
    with pytest.raises(ValueError, match=r"opset must be at least 14\. Received: opset=13"):
        export_onnx(model, path, opset=13)
    with pytest.raises(TypeError, match=r"opset must be None or an integer\. Received: opset='17'"):
        export_onnx(model, path, opset="17")
    half = keras.Sequential([keras.Input((None, 2)), LSTM(2, dtype="float16", name="a")])
    with pytest.raises(ValueError, match="layer a computes in float16"):
        export_onnx(half, path)
    unknown = keras.Sequential([keras.Input((3, 3)), keras.layers.Lambda(tf.linalg.expm)])
    with pytest.raises(ValueError, match="tf2onnx cannot convert the model"):
        export_onnx(unknown, path)
    assert not path.exists()


def test_tf2onnx_is_not_installed(tmp_path, rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'onnx>=.*' 'tf2onnx>="):
        export_onnx(make_model(LSTM(UNITS), rng=rng), tmp_path / "model.onnx")


@pytest.mark.full
def test_a_stock_model_with_a_layer_and_an_op_of_one_name(rng, tmp_path):
    x = keras.Input((TIME, INPUTS))
    y = keras.layers.LSTM(UNITS, return_sequences=True)(x)
    y = keras.layers.Add()([y, keras.layers.GRU(UNITS, return_sequences=True)(x)])
    model = keras.Model(x, keras.layers.Concatenate()([y + y, y * y]))
    export_onnx(model, tmp_path / "model.onnx")
    assert kinds(tmp_path / "model.onnx") == {"LSTM": 1, "GRU": 1}
    data = random(rng, BATCH, TIME, INPUTS)
    expected = np.asarray(model(data))
    [got] = run(tmp_path / "model.onnx", data)
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())
