"""What ``doctor`` says of files that Keras cannot load, and of loops in SavedModels."""

from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from old_files import writer
from tf_lstm_ops import __main__
from tf_lstm_ops.cli import doctor_environment, doctor_model, messages, output

layers, ours = keras.layers, tf_lstm_ops.keras


@pytest.fixture
def report(capsys, monkeypatch) -> Any:
    """Runs the command without layers' times and exports; its status, stdout and stderr."""
    monkeypatch.setattr(doctor_environment, "problems", lambda: [])
    monkeypatch.setattr(output, "width", lambda: 10**6)  # test_doctor_whole.py has the width
    trial = doctor_model.Trial(True, True, None)  # which takes a process of its own
    monkeypatch.setattr(doctor_model, "_attempt", lambda path: trial)

    def run(path: Path) -> tuple[int, str, str]:
        capsys.readouterr()  # Keras 3.8 prints a description of what it exports
        status = __main__.main(["doctor", str(path), "--no-timing", "--no-exports"])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.mark.parametrize("layer", [layers.LSTM, layers.SimpleRNN], ids=lambda cls: cls.__name__)
def test_loops_of_a_saved_model_may_be_stock_layers(layer: Any, tmp_path: Path, report) -> None:
    keras.Sequential([keras.Input((None, 3)), layer(4)]).export(tmp_path / "saved", verbose=False)
    status, printed, _ = report(tmp_path / "saved")
    assert status == 1
    assert (
        "    change  its loops may be stock recurrent layers, which are slow. If so, convert the "
        "model with tf_lstm_ops.keras.convert_model, then export it again\n"
    ) in printed
    assert printed.endswith("\n1 thing to change.\n")


@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("layer", [ours.LSTM, ours.GRU, ours.StackedLSTM])
def test_loops_of_a_portable_file_are_not_stock_layers(layer: Any, tmp_path: Path, report) -> None:
    model = keras.Sequential([keras.Input((None, 3)), layer(4)])
    tf_lstm_ops.export.saved_model(model, tmp_path / "saved", portable=True)
    status, printed, _ = report(tmp_path / "saved")
    assert status == 0
    assert "\n  loops                       StatelessWhile\n" in printed
    assert printed.endswith("\nNothing to change.\n")


def test_a_map_is_no_recurrent_layer(tmp_path: Path, report) -> None:
    class Each(layers.Layer):
        def call(self, x: Any) -> Any:
            return tf.map_fn(lambda row: 2 * row, x)

    keras.Sequential([keras.Input((4, 3)), Each()]).export(tmp_path / "saved", verbose=False)
    status, printed, _ = report(tmp_path / "saved")
    assert "\n  loops                       " in printed
    assert status == 0
    assert printed.endswith("\nNothing to change.\n")


@pytest.mark.parametrize("suffix", ["keras", "h5"])
@pytest.mark.parametrize(
    "layer",
    [lambda: layers.Lambda(lambda x: 2 * x), lambda: layers.Dense(2, activation=lambda x: 2 * x)],
    ids=["Lambda", "activation"],
)
@pytest.mark.filterwarnings("ignore:The object being serialized includes a `lambda`")
def test_lambdas_are_not_printed(layer: Any, suffix: str, tmp_path: Path, report) -> None:
    """Their byte code is part of Keras' message about an activation."""
    file = tmp_path / f"model.{suffix}"
    keras.Sequential([keras.Input((5, 3)), ours.LSTM(4), layer()]).save(file)
    status, printed, error = report(file)
    assert (status, printed) == (1, "")
    assert error == (
        f"tf-lstm-ops: Keras cannot load {file}: it contains a Python lambda, which Keras does "
        "not load because it can run any code. Use a function with a name, decorate it with "
        "keras.saving.register_keras_serializable, save the model again, and name the function's "
        "module with --import MODULE\n"
    )


def test_a_message_on_one_line() -> None:
    """Without the configuration before the cause, byte code and colours."""
    code = "4w" + "AB+/" * 20 + "\\nAAA=\\n"
    cause = f"\x1b[1mno function:\n['{code}', None]\x1b[0m"
    error = ValueError(f"config={{'a': '{code}'}}.\n\nException encountered: {cause}")
    assert messages.one_line(error) == "no function: ['...', None]"
    assert messages.one_line(error, 6) == "no fun..."
    assert messages.one_line(ValueError("")) == "ValueError"


def masked_by_ops() -> keras.Model:
    """A model with the ops GetItem and NotEqual, as ``x[..., 0] != 0`` makes them."""
    x = keras.Input((5, 3))
    return keras.Model(x, ours.LSTM(4)(x, mask=keras.ops.not_equal(x[..., 0], 0.0)))


def test_ops_of_keras_in_an_h5_file(tmp_path: Path, report, rng: np.random.Generator) -> None:
    """What the message says to do works."""
    file = tmp_path / "model.h5"
    model = masked_by_ops()
    model.save(file)
    status, printed, error = report(file)
    assert (status, printed) == (1, "")
    assert error == (
        f"tf-lstm-ops: Keras cannot load {file}: it has Keras' op GetItem, which Keras does not "
        "load from an .h5 file. Make the model in Python, call its load_weights with this file, "
        "and save it as a .keras file\n"
    )
    again = masked_by_ops()
    again.load_weights(file)
    again.save(tmp_path / "model.keras")
    assert report(tmp_path / "model.keras")[0] == 0
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = rng.normal(size=(2, 5, 3)).astype("float32")
    np.testing.assert_array_equal(loaded(x), model(x))


@pytest.mark.parametrize("name", ["TFOpLambda", "SlicingOpLambda"])
def test_ops_of_keras_2_in_an_h5_file(name: str, tmp_path: Path, report) -> None:
    """The files differ in the names of the classes."""
    file = tmp_path / "model.h5"
    model = masked_by_ops()
    model.save(file)
    with h5py.File(file, "r+") as content:
        config = content.attrs["model_config"]
        content.attrs["model_config"] = config.replace('"GetItem"', f'"{name}"')
    assert f"it has Keras' op {name}, which Keras does not load from an .h5" in report(file)[2]


def test_a_class_of_the_user_with_the_name_of_an_op(tmp_path: Path, report) -> None:
    """Keras has an op LayerNorm, too. In a .keras file Keras knows its ops by their modules."""

    class LayerNorm(layers.Layer):
        def call(self, x: Any) -> Any:
            return x

    file = tmp_path / "model.keras"
    keras.Sequential([keras.Input((5, 3)), LayerNorm()]).save(file)
    assert "it does not know LayerNorm. Decorate it with" in report(file)[2]


def test_a_truncated_h5_file(tmp_path: Path, capsys) -> None:
    """As after a download that ended early."""
    file = tmp_path / "model.h5"
    masked_by_ops().save(file)
    file.write_bytes(file.read_bytes()[:3000])
    with pytest.raises(SystemExit):
        __main__.main(["doctor", str(file)])
    assert f"error: {file} cannot be read: " in capsys.readouterr().err


OLD = {
    "2.8.0": [writer.layer("LSTM", "l", (None, None, 3), time_major=False)],
    "2.1.5": [writer.layer("LSTM", "l", (None, None, 3))],
}


@pytest.mark.parametrize("version", OLD)
def test_a_file_of_keras_2(version: str, tmp_path: Path, report) -> None:
    file = tmp_path / "old.h5"
    arrays = writer.arrays("l", writer.UNITS, 3, 4, [4 * writer.UNITS])
    writer.write(file, version, OLD[version], {"l": arrays})
    status, printed, _ = report(file)
    assert status == 1
    assert (
        f"\n  Keras {version} wrote the file. Keras 3 does not load it, or computes otherwise.\n"
        f"    change  load it with tf_lstm_ops.keras.load_h5({str(file)!r})\n"
    ) in printed
    assert "    path    fused op\n" in printed
    assert printed.endswith("\n1 thing to change.\n")


def test_a_file_of_keras_2_that_cannot_be_loaded(tmp_path: Path, report) -> None:
    file = tmp_path / "old.h5"
    writer.write(file, "2.2.4", [writer.layer("Lambda", "f", (None, 3), function=["x"])], {"f": []})
    status, printed, error = report(file)
    assert (status, printed) == (1, "")
    start = f"tf-lstm-ops: Keras 2.2.4 wrote {file}, and tf_lstm_ops.keras.load_h5 cannot load it: "
    assert error.startswith(f"{start}layer f (Lambda) ")
    assert "Decorate" not in error


def test_hard_sigmoid_may_be_that_of_keras_2(tmp_path: Path, report) -> None:
    """A .keras file does not say which version of Keras trained the model."""
    file = tmp_path / "model.keras"
    layer = layers.LSTM(4, recurrent_activation="hard_sigmoid")
    keras.Sequential([keras.Input((None, 3)), layer]).save(file)
    printed = report(file)[1]
    assert "results stay the same" not in printed
    assert "clip(0.2 x + 0.5, 0, 1) in Keras 2: if Keras 2 trained the model" in printed


def test_weights_of_keras_2(tmp_path: Path, report, capsys) -> None:
    file = tmp_path / "old.h5"
    arrays = writer.arrays("l", writer.UNITS, 3, 4, [4 * writer.UNITS])
    writer.write(file, "2.2.0", None, {"l": arrays})
    with pytest.raises(SystemExit) as ended:
        report(file)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "only weights; Keras 2.2.0 wrote it. Make the model in Python and call " in said
    assert f"load_h5_weights(model, {str(file)!r}); `tf-lstm-ops checkpoint {file}`" in said
