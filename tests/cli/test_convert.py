"""``convert`` writes models, sessions and ONNX files, each as a whole or not at all."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import tf_lstm_ops
from old_files import writer
from tf_lstm_ops import __main__
from tf_lstm_ops.cli import conversion, kinds
from tf_lstm_ops.inference import Session

layers, ours = keras.layers, tf_lstm_ops.keras
X = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")


def stock_model() -> keras.Model:
    keras.utils.set_random_seed(3)
    stack = layers.LSTM(4, return_sequences=True), layers.GRU(4), layers.Dense(2)
    return keras.Sequential([keras.Input((None, 3)), *stack])


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> keras.Model:
    """A model, saved as model.keras in the current folder."""
    monkeypatch.chdir(tmp_path)
    model = stock_model()
    model.save("model.keras")
    return model


def convert(*arguments: str) -> None:
    assert __main__.main(["convert", *arguments]) == 0


def assert_equal(got: Any, model: keras.Model) -> None:
    # Two orders of the same float32 sums, of values below 1.
    np.testing.assert_allclose(got, model(X), atol=1e-6)


def test_keras(model: keras.Model, capsys) -> None:
    convert("model.keras", "fast.keras")
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith("fast.keras was written (")
    assert printed.out.endswith('load_model("fast.keras"), after import tf_lstm_ops\n')
    fast = keras.models.load_model("fast.keras")
    assert [type(each) for each in fast.layers[:2]] == [ours.LSTM, ours.GRU]
    assert_equal(fast(X), model)
    convert("fast.keras", "again.keras")
    assert "no layer to replace" in " ".join(capsys.readouterr().out.split())
    convert("fast.keras", "stock.keras", "--to", "stock")
    printed = " ".join(capsys.readouterr().out.split())
    assert "recurrent layers of this package that became stock layers: 2" in printed
    assert printed.endswith('next keras.models.load_model("stock.keras")')
    stock = keras.models.load_model("stock.keras")
    assert [type(each) for each in stock.layers[:2]] == [layers.LSTM, layers.GRU]


def test_a_compiled_model_stays_compiled(model: keras.Model, capsys) -> None:
    convert("model.keras", "fast.keras")
    of_optimizer = "The file has the variables of the optimizer"
    assert of_optimizer not in " ".join(capsys.readouterr().out.split())
    model.compile("adam", "mse")
    model.save("model.keras")
    convert("model.keras", "fast.keras")
    assert of_optimizer in " ".join(capsys.readouterr().out.split())
    assert keras.models.load_model("fast.keras").optimizer.name.startswith("adam")


@pytest.mark.parametrize("weights", ["float32", "bfloat16", "int8"])
def test_session(weights: str, model: keras.Model, capsys) -> None:
    convert("model.keras", "model.session", "--weights", weights)
    assert f"a session with {weights} weights" in " ".join(capsys.readouterr().out.split())
    got = Session.load("model.session")(X)
    np.testing.assert_array_equal(got, Session(model, weights=weights)(X))


@pytest.mark.full  # tf2onnx
def test_a_session_that_cannot_stream(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    both = layers.Bidirectional(layers.LSTM(4), name="both")
    keras.Sequential([keras.Input((None, 3)), both]).save("model.keras")
    convert("model.keras", "model.session")
    words = "Note: the session cannot stream: a layer reads the sequence backwards: layer 0, both"
    assert words in " ".join(capsys.readouterr().out.split())


@pytest.mark.full
def test_onnx_and_a_session_of_it(model: keras.Model, capsys) -> None:
    pytest.importorskip("tf2onnx", reason="the converter of all other layers")
    convert("model.keras", "model.onnx")
    convert("model.onnx", "model.session")
    assert "model.session was written" in capsys.readouterr().out
    assert_equal(Session.load("model.session")(X), model)


def test_h5_of_keras_3(model: keras.Model) -> None:
    model.save("model.h5")
    convert("model.h5", "fast.keras")
    assert_equal(keras.models.load_model("fast.keras")(X), model)


def test_layers_that_are_left_alone_are_named(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [layers.LSTMCell(4), layers.SimpleRNNCell(5, "elu")]
    odd = layers.RNN(layers.StackedRNNCells(cells), name="odd")
    keras.Sequential([keras.Input((None, 3)), odd]).save("model.keras")
    convert("model.keras", "fast.keras")
    printed = " ".join(capsys.readouterr().out.split())
    assert "no layer to replace" in printed
    assert "note convert_model did not replace these layers: odd: " in printed


def test_a_loss_that_cannot_be_loaded(model: keras.Model, capsys) -> None:
    def own(y: Any, p: Any) -> Any:
        return keras.ops.mean((y - p) ** 2)

    model.compile("adam", own)
    model.save("model.keras")
    convert("model.keras", "fast.keras")
    assert "note  compile the new model; that of the file is not:" in capsys.readouterr().out
    assert_equal(keras.models.load_model("fast.keras")(X), model)


def test_an_old_file(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    arrays = writer.arrays("l", writer.UNITS, 3, 4, [4 * writer.UNITS])
    layer = writer.layer("LSTM", "l", (None, None, 3), time_major=False)
    writer.write(tmp_path / "old.h5", "2.8.0", [layer], {"l": arrays})
    convert("old.h5", "fast.keras")
    words = "the model of a file of Keras 2.8.0; layers of this package: 1"
    assert words in " ".join(capsys.readouterr().out.split())
    expected = ours.load_h5("old.h5")(X)
    np.testing.assert_array_equal(keras.models.load_model("fast.keras")(X), expected)


@pytest.mark.parametrize(
    ("option", "needs_package"),
    [("recurrent_activation", False), ("activation", True)],
    ids=["scaled weights", "keras_2_hard_sigmoid"],
)
def test_an_old_file_with_hard_sigmoid(
    option: str, needs_package: bool, tmp_path: Path, monkeypatch, capsys
) -> None:
    """No warning to open it with load_h5, which did it. A stock file needs the package only for a
    function of the package."""
    monkeypatch.chdir(tmp_path)
    arrays = writer.arrays("l", writer.UNITS, 3, 4, [4 * writer.UNITS])
    layer = writer.layer("LSTM", "l", (None, None, 3), **{option: "hard_sigmoid"})
    writer.write(tmp_path / "old.h5", "2.2.4", [layer], {"l": arrays})
    for target in ("fast.keras", "stock.keras"):
        convert("old.h5", target, *(("--to", "stock") if target == "stock.keras" else ()))
        printed = capsys.readouterr().out
        assert "load_h5" not in printed
        is_named = "after import tf_lstm_ops" in " ".join(printed.split())
        assert is_named is (needs_package or target == "fast.keras")
        expected = ours.load_h5("old.h5")(X)
        # Two orders of the same float32 sums, of values below 1.
        np.testing.assert_allclose(keras.models.load_model(target)(X), expected, atol=1e-6)


def test_an_error_leaves_the_old_file(model: keras.Model, tmp_path: Path, capsys) -> None:
    @keras.saving.register_keras_serializable("test_convert")
    class Odd(layers.Layer):
        def call(self, x: Any) -> Any:
            return x + 1

    keras.Sequential([keras.Input((None, 3)), Odd(name="odd")]).save("odd.keras")
    Path("out.session").write_text("old")
    before = sorted(tmp_path.iterdir())
    assert __main__.main(["convert", "odd.keras", "out.session"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("tf-lstm-ops: odd.keras cannot become out.session: ")
    assert "odd" in printed.err.partition("out.session: ")[2]
    assert Path("out.session").read_text() == "old"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["model.keras", "none/model.session"], 1, "the folder of none/model.session does not"),
        (["model.keras", "folder.session"], 1, "folder.session is a folder"),
        (["model.keras", "model.keras"], 2, "the file to write is the one to read"),
        (["model.onnx", "model.keras"], 2, "an .onnx file becomes a .session file"),
        (["model.onnx", "m.session", "--import", "os"], 2, "--import has no effect"),
        (["saved", "model.session"], 2, "saved is a SavedModel, which has no Keras layers"),
    ],
)
def test_what_is_refused(
    arguments: list[str], status: int, message: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("model.keras", "model.onnx"):
        Path(name).write_text("text")
    for name in ("folder.session", "saved"):
        Path(name).mkdir()
    Path("saved/saved_model.pb").write_text("text")
    monkeypatch.setattr(kinds, "kind_of", lambda path: "saved_model" if path.is_dir() else "keras")
    try:
        found = __main__.main(["convert", *arguments])
    except SystemExit as usage:
        found = usage.code
    assert found == status
    assert message in " ".join(capsys.readouterr().err.split())


def test_every_target_says_what_comes_next() -> None:
    from tf_lstm_ops.cli import convert as command

    assert tuple(command._AFTER) == conversion.TARGETS
