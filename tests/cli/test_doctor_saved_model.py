"""What ``doctor`` says of SavedModels: whether a process with TensorFlow only loads and runs them.

It tries this. A file may have branches that never run on the CPU, and files without ops of other
packages may be damaged.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops import __main__
from tf_lstm_ops.cli import doctor_environment, output

X = tf.TensorSpec([None, None, 3])


def gpu(x: Any) -> Any:
    """An LSTM as Keras 2 computes it on a GPU."""
    batch = tf.shape(x)[0]
    state = tf.zeros([1, batch, 4])
    params = tf.ones([4 * 4 * (3 + 4) + 8 * 4])
    steps = tf.transpose(x, [1, 0, 2])
    return tf.raw_ops.CudnnRNN(input=steps, input_h=state, input_c=state, params=params).output[-1]


def cpu(x: Any) -> Any:
    return tf.tile(tf.reduce_sum(x, 1)[:, :1], [1, 4])


def implementations(x: Any) -> Any:
    """As Keras 2: a call of the function for the CPU, and another function of the same interface,
    which TensorFlow calls instead where there is a GPU."""
    attributes = {"api_implements": "lstm_1234"}
    functions = [
        tf.function(
            function,
            autograph=False,
            experimental_attributes={**attributes, "api_preferred_device": device},
        )
        for function, device in ((gpu, "GPU"), (cpu, "CPU"))
    ]
    functions[0].get_concrete_function(x).add_to_graph()
    return functions[1](x)


def branch(x: Any) -> Any:
    """TensorFlow wants a kernel also for a branch that it does not take."""
    return tf.cond(tf.shape(x)[0] > 0, lambda: cpu(x), lambda: gpu(x))


def save(function: Callable[[Any], Any], folder: Path, spec: Any = X) -> Path:
    module = tf.Module()
    module.call = tf.function(function, input_signature=[spec], autograph=False)
    tf.saved_model.save(module, str(folder), signatures=module.call)
    return folder


def written(kind: str, folder: Path) -> Path:
    if kind == "variables":
        model = keras.Sequential([keras.Input((4, 3)), tf_lstm_ops.keras.LSTM(4)])
        tf_lstm_ops.export.saved_model(model, folder, portable=True)
        shutil.rmtree(folder / "variables")
        return folder
    functions: dict[str, Callable[[Any], Any]] = {
        "implementations": implementations,
        "branch": branch,
        "GPU only": gpu,
        "other error": lambda x: tf.ensure_shape(x[:, 99:], [None, 7, 3]),
    }
    if kind == "text":
        return save(lambda x: tf.strings.length(x), folder, tf.TensorSpec([None], tf.string))
    return save(functions[kind], folder)


@pytest.mark.parametrize(
    ("kind", "loads", "runs", "reason"),
    [
        ("implementations", True, True, None),
        ("branch", True, False, "OpKernel"),
        ("GPU only", True, False, "OpKernel"),
        ("variables", False, False, "variables"),
        ("text", True, True, None),
        ("other error", True, None, "shape"),
    ],
)
@pytest.mark.full  # each imports TensorFlow in another process
def test_what_is_tried(
    kind: str, loads: bool, runs: bool | None, reason: str | None, tmp_path: Path, capsys
) -> None:
    folder = written(kind, tmp_path / "saved")
    capsys.readouterr()
    __main__.main(["doctor", str(folder), "--json"])
    found = json.loads(capsys.readouterr().out)["saved_model"]
    assert (found["loads_without_package"], found["runs_on_cpu_without_package"]) == (loads, runs)
    if reason is None:
        assert found["error_without_package"] is None
    else:
        assert reason in found["error_without_package"]


@pytest.mark.full  # as above
def test_reason_is_printed(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(doctor_environment, "problems", lambda: [])
    monkeypatch.setattr(output, "width", lambda: 10**6)  # test_doctor_whole.py has the width
    folder = save(gpu, tmp_path / "saved")
    __main__.main(["doctor", str(folder)])
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("  loads                       yes")
    assert lines[at + 1] == "  runs on the CPU             no"
    assert lines[at + 2].startswith("    reason  ") and "CudnnRNN" in lines[at + 2]


@pytest.mark.full
@pytest.mark.parametrize("stock", [keras.layers.LSTM, keras.layers.GRU])
def test_the_halves_of_a_bidirectional_are_one_change(stock: Any, tmp_path: Path, capsys) -> None:
    both = keras.layers.Bidirectional(stock(4, return_sequences=True), name="both")
    model = keras.Sequential([keras.Input((4, 3)), both, stock(4, name="last")])
    model.save(tmp_path / "model.keras")
    assert __main__.main(
        ["doctor", str(tmp_path / "model.keras"), "--json", "--no-timing", "--no-exports"]
    )
    report = json.loads(capsys.readouterr().out)
    assert [layer["part_of"] for layer in report["layers"]] == ["both", "both", None]
    problems = len(report["environment"]["problems"])
    assert report["to_change"] - problems == 2
