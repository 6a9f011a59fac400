"""``doctor`` measures the whole model, and shows the lines that convert it."""

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import tf_lstm_ops
from old_files import writer
from tf_lstm_ops import __main__
from tf_lstm_ops._capacity import Capacity
from tf_lstm_ops.cli import doctor_environment, doctor_timing, doctor_whole

layers, ours = keras.layers, tf_lstm_ops.keras
SIZES = doctor_timing.Sizes(2, 3)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round of each measurement, in an environment without problems."""
    monkeypatch.setattr(doctor_timing, "MOST_ROUNDS", 1)
    monkeypatch.setattr(doctor_environment, "problems", lambda: [])
    monkeypatch.setattr(doctor_timing, "capacity", lambda: Capacity(2, 1.8))


def examine(model: keras.Model, is_measured: bool = True) -> dict[str, Any]:
    return doctor_whole.examine(model, SIZES, is_measured)


def test_a_stock_model_is_measured_and_keeps_its_weights() -> None:
    model = keras.Sequential([keras.Input((None, 3)), layers.LSTM(4), layers.Dense(1)])
    before = model.get_weights()
    found = examine(model)
    assert (found["replaced"], found["not_measured"]) == (1, None)
    assert list(found["gain"]) == ["inference", "fit"]
    for gain in found["gain"].values():
        assert gain["ratio"] == pytest.approx(gain["now_ms"] / gain["after_ms"])
        assert gain["rounds"] == 1
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.full  # XLA compiles two stock layers
def test_several_inputs_and_outputs_and_indices() -> None:
    indices, x = keras.Input((None,), dtype="int32"), keras.Input((5, 4))
    a = layers.GRU(3)(layers.Embedding(7, 2, mask_zero=True)(indices))
    b = layers.Bidirectional(layers.LSTM(3))(x)
    found = examine(keras.Model([indices, x], {"a": a, "b": b}))
    assert (found["replaced"], found["not_measured"]) == (2, None)
    assert found["batch"] == SIZES.batch
    assert list(found["gain"]) == ["inference", "fit"]


def test_padding_of_the_inputs() -> None:
    indices, x = keras.Input((None,), dtype="int32"), keras.Input((5, 4))
    outputs = [layers.Embedding(7, 2, mask_zero=True)(indices), layers.Dense(1)(x)]
    sizes = SIZES._replace(batch=3, steps=5, lengths=(4, 2))
    found = doctor_whole._random_inputs(keras.Model([indices, x], outputs), sizes)
    for array in map(np.asarray, found):
        for row, length in enumerate((4, 2, 4)):
            assert np.all(array[row, :length]) and not np.any(array[row, length:])


def test_what_is_not_measured() -> None:
    stock = keras.Sequential([keras.Input((None, 3)), layers.LSTM(4)])
    assert examine(stock, is_measured=False)["not_measured"] == "--no-timing"
    for layer in (ours.LSTM(4), layers.Dense(2)):
        found = examine(keras.Sequential([keras.Input((None, 3)), layer]))
        assert found["not_measured"] == "convert_model replaces no layer"
        assert (found["replaced"], found["gain"]) == (0, None)


def test_an_error_of_a_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        yield "inference", doctor_timing.Gain(2.0, 1.0, 1)
        raise ValueError("no  luck")

    monkeypatch.setattr(doctor_whole, "_measured", fails)
    found = examine(keras.Sequential([keras.Input((None, 3)), layers.LSTM(4)]))
    assert list(found["gain"]) == ["inference"]
    assert found["not_measured"] == "no luck"


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> Any:
    """Runs the command on a model in the current folder; what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(*stack: Any, options: tuple[str, ...] = ()) -> str:
        keras.Sequential([keras.Input((4, 3)), *stack]).save("my model.keras")
        __main__.main(["doctor", "my model.keras", "--no-exports", *options])
        return capsys.readouterr().out

    return run


def run_once(model: keras.Model, gains: dict[str, Any]) -> Any:
    model(np.zeros((1, 4, 3), "float32"))
    return gains.items()


def test_accelerate_is_measured() -> None:
    """A model with stock layers, without a change of it; one with layers of ours is not."""
    model = keras.Sequential([keras.Input((None, 3)), layers.LSTM(4), layers.Dense(1)])
    before = model.get_weights()
    found = examine(model)["accelerated"]
    assert found["layers"] == "1 of 1 recurrent layers ran fused ops"
    assert list(found["gain"]) == ["predict", "fit"]
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    assert examine(keras.Sequential([keras.Input((None, 3)), ours.GRU(4)]))["accelerated"] is None
    assert examine(model, is_measured=False)["accelerated"] is None


def test_the_report_begins_with_the_whole_model(printed: Any, monkeypatch) -> None:
    inference = doctor_timing.Gain(22, 11, 3, (2.0, 2.2, 1.9))
    gains = {"inference": inference, "fit": doctor_timing.Gain(30, 12, 1)}
    monkeypatch.setattr(doctor_whole, "_measured", lambda *_: gains.items())
    fit = {"fit": doctor_timing.Gain(40, 20, 1)}
    monkeypatch.setattr(doctor_whole, "_with_and_without", lambda model, _: run_once(model, fit))
    both = layers.Bidirectional(layers.LSTM(4, name="lstm"), name="both")
    text = printed(both)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1:7] == [
        "  With tf-lstm-ops run or accelerate(): 2 of 2 recurrent layers ran fused ops",
        "  fit      40 → 20 ms for a batch of 32, 2 times as fast (one round)",
        "  With convert_model",
        "  model   22 → 11 ms for a batch of 32, 2 times as fast (1.9 to 2.2)",
        "  fit     30 → 12 ms for a batch of 32, 2.5 times as fast (one round)",
        "          random inputs without padding, of 100 steps where the model leaves",
    ]
    assert "\n  tf-lstm-ops run PROGRAM.py\n" in text
    assert "busy" not in text
    layer = "Bidirectional of keras.layers.LSTM, float32, [32, 4, 3] to [32, 4] each"
    assert f"  both: {layer}" in text
    assert text.count("    change  ") == 1
    assert text.count("    gain    ") == 2
    assert "instruction set" not in text and "medians" not in text


@pytest.mark.full
def test_a_busy_machine(printed: Any, monkeypatch) -> None:
    monkeypatch.setattr(doctor_timing, "capacity", lambda: Capacity(2, 1.79))
    said = "busy the processors do the work of 1.79 of 2 threads only. Other processes are running"
    assert said in " ".join(printed(layers.LSTM(4)).split())
    assert "busy" not in printed(layers.LSTM(4), options=("--no-timing",))
    found = json.loads(printed(layers.LSTM(4), options=("--json",)))["capacity"]
    assert (found["threads"], found["value"]) == (2, 1.79)
    assert found["note"].startswith("the processors do the work of 1.79")


def test_the_range_is_that_of_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([1.0, 1.0, 4.0, 2.0, 1.0, 6.0, 5.0, 2.0])  # the first two choose the rounds
    monkeypatch.setattr(doctor_timing, "_seconds", lambda _: next(times))
    monkeypatch.setattr(doctor_timing, "MODE_SECONDS", 6)
    monkeypatch.setattr(doctor_timing, "MOST_ROUNDS", 25)
    gain = doctor_timing.interleaved([lambda: None, lambda: None])
    assert gain.ratios == (2.0, 6.0, 2.5)  # every second round begins with the replacement
    assert gain.document()["ratio_range"] == [2.0, 6.0]
    assert gain.ratio == 5.0 / 2.0


@pytest.mark.full
def test_a_file_of_keras_2_beside_stock_layers(tmp_path: Path, capsys) -> None:
    """Its layers are of this package once it is loaded, so stock ones are measured beside them."""
    file = tmp_path / "old.h5"
    arrays = writer.arrays("l", writer.UNITS, 3, 4, [4 * writer.UNITS])
    layer = writer.layer("LSTM", "l", (None, None, 3), time_major=False)
    writer.write(file, "2.8.0", [layer], {"l": arrays})
    __main__.main(["doctor", str(file), "--json", "--no-exports"])
    found = json.loads(capsys.readouterr().out)["whole_model"]
    assert (found["replaced"], found["not_measured"]) == (1, None)
    assert list(found["gain"]) == ["inference", "fit"]


def test_the_model_before_is_the_stock_one(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[type] = []

    def measured(models: Any, _: Any) -> Any:
        kinds.extend(type(model.layers[0]) for model in models)
        return iter(())

    monkeypatch.setattr(doctor_whole, "_measured", measured)
    for layer, is_old in ((ours.LSTM(4), True), (layers.LSTM(4), False)):
        model = keras.Sequential([keras.Input((None, 3)), layer])
        doctor_whole.examine(model, SIZES, True, is_old=is_old)
    assert kinds == [layers.LSTM, ours.LSTM] * 2


def test_all_has_what_developers_need(printed: Any, monkeypatch) -> None:
    monkeypatch.setattr(doctor_whole, "_measured", lambda *_: {}.items())
    text = printed(layers.LSTM(4), options=("--all",))
    assert "(medians of 1)" in " ".join(text.split())
    for name in ("instruction set", "threads", "GPU kernels"):
        assert f"\n  {name:15}  " in text


def test_the_lines_to_paste_work(printed: Any) -> None:
    text = printed(layers.LSTM(4), options=("--no-timing",))
    shell, _, rest = text.partition("in a shell\n")[2].partition("or in Python\n")
    program, *arguments = shlex.split(shell)
    assert (program, arguments[-1]) == ("tf-lstm-ops", "my model_fast.keras")
    assert __main__.main(arguments) == 0
    fast = keras.models.load_model(arguments[-1])
    assert type(fast.layers[0]) is ours.LSTM
    Path(arguments[-1]).unlink()
    exec("\n".join(line.strip() for line in rest.partition("\n\n")[0].splitlines()), {})
    assert Path(arguments[-1]).is_file()


def test_nothing_to_paste_where_the_conversion_is_slower(printed: Any, monkeypatch) -> None:
    slower = doctor_timing.Gain(1, 2, 1)
    monkeypatch.setattr(doctor_whole, "_measured", lambda *_: [("inference", slower)])
    text = printed(layers.LSTM(4))
    assert "  model   1 → 2 ms for a batch of 32, 0.5 times as fast (one round)\n" in text
    assert "  fit     not measured: it has no weights to train\n" in text
    assert "in a shell" not in text


def test_nothing_to_paste_where_nothing_changes(printed: Any) -> None:
    text = printed(ours.LSTM(4))
    assert "  model   converted already: its layers are of this package\n" in text
    assert "in a shell" not in text
    assert "  model   it has no recurrent layers\n" in printed(layers.Dense(2))


def test_a_session_names_the_layer_that_it_does_not_compute(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    from tf_lstm_ops.cli import doctor_exports

    only = {"session": doctor_exports.EXPORTS["session"]}
    monkeypatch.setattr(doctor_exports, "EXPORTS", only)
    file = tmp_path / "model.keras"
    stack = layers.LSTM(4, return_sequences=True), layers.Attention(name="odd")
    x = keras.Input((4, 3))
    y = stack[0](x)
    keras.Model(x, stack[1]([y, y])).save(file)
    __main__.main(["doctor", str(file), "--no-timing"])
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"session no: layer odd: \w+", text)
    __main__.main(["doctor", str(file), "--no-timing", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found["exports"]] == ["session"]
    assert found["whole_model"]["replaced"] == 1
    assert found["imports"] == []
    assert os.path.samefile(found["model"]["path"], file)
