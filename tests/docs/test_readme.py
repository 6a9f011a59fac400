"""README.md: its example runs, it is short, and its numbers are those of the table of results."""

import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

import tf_lstm_ops
from pages import ROOT, blocks, run_examples

from .bench_table import AVX2, AVX512, faster, int8_results, median_of

README = (ROOT / "README.md").read_text(encoding="utf-8")
NOT_PROSE = re.compile(r"^```.*?^```$|<picture>.*?</picture>", re.MULTILINE | re.DOTALL)
LATENCY = json.loads((ROOT / "benchmarks" / "latency.json").read_text(encoding="utf-8"))
PROSE = " ".join(NOT_PROSE.sub("", README).split())  # test_plots.py reads the text of the picture


# A program of Keras.
TRAIN = """
import keras
import numpy as np

made = [keras.layers.LSTM(8, return_sequences=True), keras.layers.GRU(4), keras.layers.Dense(1)]
model = keras.Sequential([keras.Input((None, 3)), *made])
model.compile("adam", "mse")
model.fit(np.ones((4, 5, 3), np.float32), np.ones((4, 1), np.float32))
"""
# What a reader has before the example begins.
TORCH = """
import torch
from tf_lstm_ops.inference import Session

net = torch.nn.ModuleDict({"lstm": torch.nn.LSTM(3, 8), "head": torch.nn.Linear(8, 2)})
x = torch.ones(1, 3)
"""
TORCH_RESULT = """
assert y.shape == (1, 2)
session.save("net.session")
again = Session.load("net.session").stream()
assert (again(x) == y).all()
assert (again(x) == stream(x)).all() and (stream(x) != y).any()  # the states go on
"""


def run(block: int, before: str, after: str, folder: Path) -> None:
    run_examples(f"```python{before}{blocks(README, 'python')[block]}{after}```\n", folder)


@pytest.mark.full
def test_a_program_of_keras_is_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    [_, *words] = blocks(README, "sh")[0].split()
    command = [sys.executable, "-m", "tf_lstm_ops", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr.endswith("tf-lstm-ops: 2 of 2 recurrent layers ran fused ops\n")


@pytest.mark.full
def test_a_pytorch_model_becomes_a_session(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run(0, TORCH, TORCH_RESULT, tmp_path)


def test_the_examples_have_three_lines_at_most() -> None:
    assert [len(block.splitlines()) for block in blocks(README, "python")] == [3]
    assert max(len(block.splitlines()) for block in blocks(README, "sh")) <= 3


def test_fits_two_screens() -> None:
    lines = README.splitlines()
    assert len(lines) <= 90
    assert max(map(len, lines)) <= 100


def row(name: str, kind: str) -> str:
    """The median of each family, and in how many tasks stock Keras is faster."""
    cells = [
        f"{median_of(kind, 'Keras', family)} | {faster(kind, 'Keras', family)} tasks"
        for family in (AVX512, AVX2)
    ]
    return f"| {name} | {' | '.join(cells)} |"


def step(peer: str, unit: str = "µs") -> str:
    """The time of one step of 128 units, of benchmarks/latency.json."""
    found = LATENCY["results"]["lstm I1 H128"][peer]["p50"]
    return f"{found:.1f} {unit}" if found < 100 else f"{found:.0f} {unit}"


NUMBERS = [
    row("`model.fit`", "fit"),
    row("a training step", "training"),
    row("inference", "inference"),
    f"of 128 LSTM units takes {step('session')}, in ONNX Runtime {step('onnxruntime')}, in a "
    f"`tf.function` {step('function')}; in C {step('c')}, in ONNX Runtime {step('onnxruntime-c')}.",
]


@pytest.mark.parametrize("words", NUMBERS)
def test_numbers_are_those_of_the_results(words: str) -> None:
    assert words in PROSE


def test_there_are_no_other_numbers() -> None:
    said = re.findall(r"\d+\.\d+", re.sub(r"Python [\d.]+ to [\d.]+|Apache-2.0", "", PROSE))
    assert [n for n in said if n not in " ".join(NUMBERS)] == []


def test_int8_makes_large_layers_three_times_as_fast() -> None:
    """Rows of 512 units and more; the median of their ratios."""
    ratios = []
    for each in int8_results()["rows"]:
        float32, int8 = (each["peers"][name]["values"] for name in ("session", "session-int8"))
        if int(re.findall(r"H(\d+)", each["name"])[0]) >= 512:
            ratios.append(median(a / b for a, b in zip(float32, int8, strict=True)))
    assert 3 <= median(ratios) < 5
    assert "triples the speed of large layers" in PROSE


def test_the_description_of_the_package_is_the_first_sentence() -> None:
    """Of an index, of the package's docstring, and of the citation."""
    [claim] = re.findall(r"^\*\*(.+)\.\*\*", README, re.MULTILINE)
    assert f'\ndescription = "{claim}"\n' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert (tf_lstm_ops.__doc__ or "").startswith(f"{claim}.\n")
    assert f'title: "tf_lstm_ops: {claim}"' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
