"""``doctor`` tells the path of each layer, the change, the exports and the environment."""

import json
from pathlib import Path
from typing import Any, get_args

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops import __main__, _placement
from tf_lstm_ops.cli import (
    doctor_environment,
    doctor_exports,
    doctor_layers,
    doctor_timing,
    doctor_whole,
    output,
)
from tf_lstm_ops.keras.types import GPUPath

layers, ours = keras.layers, tf_lstm_ops.keras
CONVERT = "tf_lstm_ops.keras.convert_model replaces it"


def save(folder: Path, *stack: Any, shape: tuple[int | None, ...] = (None, 3)) -> Path:
    """A file with a Sequential model of these layers."""
    keras.Sequential([keras.Input(shape), *stack]).save(folder / "model.keras")
    return folder / "model.keras"


def doctor(capsys: Any, *arguments: object) -> tuple[int, dict[str, Any]]:
    """The exit status, and the document of --json, which is all that is on stdout."""
    status = __main__.main(["doctor", *map(str, arguments), "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.fixture(autouse=True)
def no_problems(monkeypatch):
    """The environment of the tests is not what they test."""
    monkeypatch.setattr(doctor_environment, "problems", lambda: [])
    monkeypatch.setattr(output, "width", lambda: 10**6)  # test_doctor_whole.py has the width
    monkeypatch.setattr(doctor_whole, "_measured", lambda *_: [])  # test_doctor_whole.py


def finding(layer: Any) -> doctor_layers.Finding:
    """What is found of a layer in a model."""
    [found] = doctor_layers.findings(keras.Sequential([keras.Input((5, 3)), layer]))
    return found


def test_stock_layers_are_to_be_converted() -> None:
    for layer in (layers.LSTM(4), layers.GRU(4), layers.LSTM(4, unroll=True)):
        found = finding(layer)
        assert found.path == "stock loop"
        assert found.reason == f"it is keras.layers.{type(layer).__name__}"
        assert (found.change.sentence, found.change.same_results) == (CONVERT, True)
        assert found.change.replacement.uses_fused_op
    assert finding(layers.RNN(layers.GRUCell(4))).change.sentence == CONVERT


def test_our_layers_on_the_fused_op_have_nothing_to_change() -> None:
    fused = (ours.LSTM(4), ours.GRU(4), ours.GRU(4, reset_after=False), ours.StackedLSTM(4, 2))
    for layer in fused:
        assert finding(layer)[2:] == ("fused op", None, None)


@pytest.mark.parametrize(
    ("layer", "options", "reason"),
    [
        (ours.LSTM(4, activation="selu"), "activation='tanh'", "activation is selu"),
        (
            ours.GRU(4, activation="selu", recurrent_activation="selu"),
            "activation='tanh' and recurrent_activation='sigmoid'",
            "activation is selu",
        ),
        (
            ours.LSTM(4, use_peephole=True, layer_normalization=True),
            "use_peephole=False",
            "layer_normalization with use_peephole",
        ),
    ],
    ids=["activation", "both activations", "layer_normalization"],
)
def test_options_that_leave_the_fused_op(layer: Any, options: str, reason: str) -> None:
    found = finding(layer)
    assert found.path == "stock loop"
    assert found.reason.startswith(reason)
    assert found.change.sentence == f"set {options} and train the model again"
    assert not found.change.same_results
    assert found.change.replacement.uses_fused_op


def test_an_option_that_needs_no_change_is_kept() -> None:
    """With selu as the only obstacle, relu as the other activation stays."""
    layer = ours.LSTM(4, activation="selu", recurrent_activation="relu", cell_clip=1.0)
    new = finding(layer).change.replacement
    assert (new.recurrent_activation.__name__, new.cell_clip) == ("relu", 1.0)


def test_a_clip_goes_with_its_projection() -> None:
    layer = ours.LSTM(4, layer_normalization=True, projection_size=2, proj_clip=1.0)
    change = finding(layer).change
    assert change.sentence.startswith("set projection_size=None and proj_clip=None")
    assert change.replacement.layer_normalization == "haste"


def test_a_stock_layer_with_such_an_option() -> None:
    found = finding(layers.GRU(4, activation="selu"))
    assert found.reason == "activation is selu, which has no fused op"
    assert found.change.sentence == (
        f"set activation='tanh' and train the model again; then {CONVERT}"
    )


def test_what_has_no_fused_op() -> None:
    class OwnCell(layers.GRUCell):
        def call(self, *args: Any, **kwargs: Any) -> Any:
            return super().call(*args, **kwargs)

    found = finding(layers.RNN(OwnCell(4)))
    assert found.reason.startswith("OwnCell has no fused op")
    assert found.change is None


def test_a_simple_rnn_is_to_be_converted() -> None:
    for layer in (layers.SimpleRNN(4), layers.RNN(layers.SimpleRNNCell(4, "relu"))):
        found = finding(layer)
        assert found.change.sentence == CONVERT
        assert found.change.replacement.uses_fused_op
    found = finding(layers.SimpleRNN(4, "elu"))
    assert found.reason == "activation is elu, neither tanh nor relu"
    assert found.change.sentence == (
        f"set activation='tanh' and train the model again; then {CONVERT}"
    )


def test_stacked_cells_are_to_become_layers() -> None:
    cells = [layers.LSTMCell(4), layers.LSTMCell(5)]
    layer = layers.RNN(layers.StackedRNNCells(cells), return_sequences=True)
    found = finding(layer)
    assert "one keras.layers.RNN of each cell" in found.change.sentence
    new = found.change.replacement
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    new.build(x.shape)
    new.set_weights(layer.get_weights())
    np.testing.assert_allclose(new(x), layer(x), atol=1e-6)
    mixed = layers.StackedRNNCells([layers.LSTMCell(4), layers.SimpleRNNCell(5, "elu")])
    found = finding(layers.RNN(mixed))
    assert found.change is None
    assert "activation is elu, neither tanh nor relu" in found.reason


def test_layers_in_wrappers_and_nested_models() -> None:
    inner = keras.Sequential([keras.Input((None, 3)), layers.GRU(4, name="gru")], name="inner")
    x = keras.Input((6, 5, 3))
    y = layers.TimeDistributed(inner, name="each")(x)
    y = layers.Bidirectional(layers.LSTM(4, name="lstm"), name="both")(y)
    model = keras.Model(x, y)
    found = doctor_layers.findings(model)
    assert [f.name for f in found] == ["each/inner/gru", "both/forward_lstm", "both/backward_lstm"]
    calls = doctor_timing.calls(model, [f.layer for f in found], doctor_timing.Sizes(2, 9))
    shapes = [calls[id(f.layer)][:2] for f in found]
    assert shapes == [([2, 5, 3], [2, 4]), ([2, 6, 4], [2, 4]), ([2, 6, 4], [2, 4])]


def test_cudnn_is_no_stock_loop() -> None:
    layer = layers.LSTM(4)
    layer.supports_jit = False  # as Keras sets it where it takes cuDNN
    assert finding(layer)[2:] == (
        "cuDNN",
        "Keras runs cuDNN, if the mask is padded on the right",
        None,
    )


def test_every_gpu_path_is_a_path_of_a_finding() -> None:
    assert set(doctor_layers._PATHS) == set(get_args(GPUPath))


@pytest.mark.parametrize(
    ("gpu_path", "path"), [("cuDNN", "cuDNN"), ("plain ops", "plain ops"), ("GPU kernels", None)]
)
def test_paths_of_our_layers_on_a_gpu(monkeypatch, gpu_path: str, path: str | None) -> None:
    monkeypatch.setattr(_placement, "path", lambda *_: gpu_path)
    found = finding(ours.LSTM(4))
    assert found.path == (path or "fused op")
    assert (found.reason is None) == (path is None)


def test_shapes_and_times(tmp_path: Path, capsys) -> None:
    """With a mask, open sizes from the options, and states that need a batch size."""
    stack = layers.Masking(), layers.LSTM(4, return_sequences=True), ours.LSTM(5, activation="selu")
    file = save(tmp_path, *stack)
    status, report = doctor(capsys, file, "--no-exports", "--batch", 3, "--steps", 7)
    assert status == 1
    shapes = [(each["input_shape"], each["output_shape"]) for each in report["layers"]]
    assert shapes == [([3, 7, 3], [3, 7, 4]), ([3, 7, 4], [3, 5])]
    for each in report["layers"]:
        assert each["not_measured"] is None
        assert set(each["gain"]) == {"inference", "training"}
        for gain in each["gain"].values():
            assert gain["ratio"] == pytest.approx(gain["now_ms"] / gain["after_ms"])
            assert gain["rounds"] >= 1


def test_without_timing(tmp_path: Path, capsys) -> None:
    file = save(tmp_path, layers.GRU(4), shape=(4, 3))
    status, report = doctor(capsys, file, "--no-exports", "--no-timing")
    assert (status, report["to_change"]) == (1, 1)
    [layer] = report["layers"]
    assert layer["input_shape"] == [32, 4, 3]
    assert (layer["gain"], layer["not_measured"]) == (None, "--no-timing")


def test_nothing_to_change(tmp_path: Path, capsys) -> None:
    file = save(tmp_path, ours.GRU(4), layers.Dense(2))
    assert doctor(capsys, file, "--no-exports")[0] == 0
    assert __main__.main(["doctor", str(file), "--no-exports"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.endswith("\nNothing to change.\n")
    assert "\x1b" not in printed.out and "\r" not in printed.out


@pytest.mark.full
def test_report_as_text(tmp_path: Path, capsys) -> None:
    file = save(tmp_path, layers.LSTM(4, name="stock"), shape=(4, 3))
    assert __main__.main(["doctor", str(file)]) == 1
    printed = capsys.readouterr().out
    assert "  stock: keras.layers.LSTM, float32, [32, 4, 3] to [32, 4]\n" in printed
    assert f"    change  {CONVERT}; the results stay the same\n" in printed
    assert "    gain    training step " in printed
    assert "  saved_model(portable=True)  works\n" in printed
    assert f"  TensorFlow       {tf.__version__}\n" in printed
    assert printed.endswith("\n1 thing to change.\n")


def test_a_layer_that_cannot_be_measured(tmp_path: Path, capsys, monkeypatch) -> None:
    def fails(*_: object) -> None:
        raise ValueError("no  luck")

    file = save(tmp_path, layers.LSTM(4))
    monkeypatch.setattr(doctor_timing, "measure", fails)
    status, report = doctor(capsys, file, "--no-exports")
    assert (status, report["layers"][0]["not_measured"]) == (1, "no luck")
    monkeypatch.setattr(doctor_timing, "calls", fails)
    [layer] = doctor(capsys, file, "--no-exports")[1]["layers"]
    assert layer["not_measured"] == "the model cannot be traced: no luck"


@pytest.mark.full
def test_a_change_that_is_slower_is_none(tmp_path: Path, capsys, monkeypatch) -> None:
    file = save(tmp_path, layers.LSTM(4))
    for training, status in ((2.0, 1), (0.5, 0)):
        gains = {
            "inference": doctor_timing.Gain(1.0, 2.0, 1),
            "training": doctor_timing.Gain(training, 1.0, 1),
        }
        monkeypatch.setattr(doctor_timing, "measure", lambda *_, gains=gains: gains)
        assert doctor(capsys, file, "--no-exports")[0] == status


@pytest.mark.full
def test_exports_are_tried(tmp_path: Path, capsys, monkeypatch) -> None:
    file = save(tmp_path, ours.LSTM(4, stateful=False), shape=(4, 3))

    def fails(model: Any, path: Path) -> None:
        print("noise")
        raise ImportError(f"{path} needs pip install 'onnx>=1.16'")

    monkeypatch.setitem(doctor_exports.EXPORTS, "onnx", fails)
    found = doctor(capsys, file)[1]["exports"]
    assert [(each["name"], each["works"]) for each in found] == [
        ("saved_model", True),
        ("saved_model(portable=True)", True),
        ("onnx", False),
        ("tflite", True),
        ("session", True),
    ]
    assert found[2]["reason"] == "PATH needs pip install 'onnx>=1.16'"


@pytest.mark.full
def test_a_stateful_model_has_no_tflite_file(tmp_path: Path, capsys) -> None:
    model = keras.Sequential([keras.Input((4, 3), batch_size=2), ours.LSTM(4, stateful=True)])
    model.save(tmp_path / "model.keras")
    found = {each["name"]: each for each in doctor(capsys, tmp_path / "model.keras")[1]["exports"]}
    assert found["saved_model"]["works"] and found["onnx"]["works"]
    assert "is stateful" in found["tflite"]["reason"]


def test_h5(tmp_path: Path, capsys) -> None:
    model = keras.Sequential([keras.Input((4, 3)), layers.GRU(4)])
    model.save(tmp_path / "model.h5")
    report = doctor(capsys, tmp_path / "model.h5", "--no-exports", "--no-timing")[1]
    assert report["model"]["format"] == "h5"
    assert [each["class"] for each in report["layers"]] == ["keras.layers.GRU"]


@pytest.mark.full  # it imports TensorFlow in another process
@pytest.mark.parametrize("portable", [False, True])
def test_saved_model(tmp_path: Path, capsys, portable: bool) -> None:
    model = keras.Sequential([keras.Input((4, 3)), ours.LSTM(4)])
    tf_lstm_ops.export.saved_model(model, tmp_path / "saved", portable=portable)
    capsys.readouterr()  # Keras 3.8 prints a description
    status, report = doctor(capsys, tmp_path / "saved")
    assert status == 0
    assert report["layers"] == report["exports"] == []
    found = report["saved_model"]
    assert found["own_ops"] == ([] if portable else ["TfLstmOps>KerasLSTM"])
    assert found["loads_without_package"] is found["runs_on_cpu_without_package"] is portable
    assert bool(found["loops"]) is portable


@pytest.mark.full  # it imports TensorFlow in another process
def test_stock_ops_in_a_saved_model(tmp_path: Path, capsys) -> None:
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([1, 2])])
    def cell(x: Any) -> Any:
        state, peephole = tf.zeros([1, 4]), tf.zeros([4])
        return tf.raw_ops.LSTMBlockCell(
            x=x,
            cs_prev=state,
            h_prev=state,
            w=tf.zeros([6, 16]),
            wci=peephole,
            wcf=peephole,
            wco=peephole,
            b=tf.zeros([16]),
        ).h

    module.cell = cell
    tf.saved_model.save(module, str(tmp_path / "saved"))
    status, report = doctor(capsys, tmp_path / "saved")
    found = report["saved_model"]
    assert (status, found["recurrent_ops"]) == (1, ["LSTMBlockCell"])
    assert "tf_lstm_ops.stock.override()" in found["changes"][0]
    assert found["loads_without_package"]
    assert __main__.main(["doctor", str(tmp_path / "saved")]) == 1
    assert "    change  call tf_lstm_ops.stock.override() first" in capsys.readouterr().out


def test_a_model_that_keras_cannot_load(tmp_path: Path, capsys) -> None:
    class Unknown(layers.Layer):
        pass

    file = save(tmp_path, Unknown())
    assert __main__.main(["doctor", str(file)]) == 1
    expected = f"tf-lstm-ops: Keras cannot load {file}: it does not know Unknown. Decorate it with "
    assert expected in capsys.readouterr().err


def write_files(folder: Path) -> None:
    model = keras.Sequential([keras.Input((4, 3)), layers.GRU(4)])
    model.save_weights(folder / "only.weights.h5")
    (folder / "text.keras").write_text("text")
    for end in ("onnx", "abc", "session", "pt", "safetensors", "pb", "json", "tflite"):
        (folder / f"model.{end}").write_text("text")
    (folder / "checkpoints").mkdir()
    for name in ("m.ckpt.index", "checkpoints/m.ckpt.index"):
        (folder / name).write_text("text")
    (folder / "empty").mkdir()
    (folder / "broken").mkdir()
    (folder / "broken" / "saved_model.pb").write_text("text")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("missing.keras", "missing.keras does not exist"),
        ("only.weights.h5", "only.weights.h5 has no model, only weights"),
        ("text.keras", "text.keras is no .keras file, no .h5 file and no folder"),
        ("model.onnx", "Session.from_onnx reads it, and `tf-lstm-ops convert` writes it"),
        ("model.abc", "model.abc is no .keras file, no .h5 file and no folder"),
        ("model.session", "model.session is a session. tf_lstm_ops.inference.Session.load"),
        ("model.pt", "a file of PyTorch"),
        ("model.safetensors", "Session.from_torch(path, layers=...)"),
        ("model.pb", "a graph of TensorFlow. `tf-lstm-ops checkpoint` lists"),
        ("model.json", "keras.models.model_from_json"),
        ("model.tflite", "a .tflite file of TensorFlow Lite"),
        ("m.ckpt", "a checkpoint of TensorFlow"),
        ("checkpoints", "a checkpoint of TensorFlow"),
        ("empty", "the folder empty is no SavedModel"),
        ("broken", "broken is no SavedModel"),
    ],
)
def test_what_is_no_model_is_wrong_usage(
    model: str, message: str, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        __main__.main(["doctor", model, "--json"])
    printed = capsys.readouterr()
    assert (exit_.value.code, printed.out) == (2, "")
    assert message in printed.err
