"""README.md: its example runs, it is short, and its numbers are those of the table of results."""

import re
from pathlib import Path

import pytest

import tf_lstm_ops
from pages import ROOT, run_examples

from .bench_table import (
    column,
    fallen_rows,
    faster,
    median_of,
    ratios,
    session_ratios,
    session_span,
    span,
)
from .bench_table import mean_and_range as times

README = (ROOT / "README.md").read_text(encoding="utf-8")
NOT_PROSE = re.compile(r"^```.*?^```$|<picture>.*?</picture>", re.MULTILINE | re.DOTALL)
PROSE = " ".join(NOT_PROSE.sub("", README).split())  # test_plots.py reads the text of the picture


def test_example_prints_what_it_says(tmp_path: Path) -> None:
    run_examples(README, tmp_path)


def test_fits_two_screens() -> None:
    lines = README.splitlines()
    assert len(lines) <= 90
    assert max(map(len, lines)) <= 100


NUMBERS = [
    f"| `model.fit` | {times('fit', 'Keras')} | – |",
    f"| a training step | {times('training', 'Keras')} | {times('training', 'PyTorch')} |",
    f"| inference | {times('inference', 'Keras')} | {times('inference', 'PyTorch')} |",
    f"omits two [outliers](docs/reference/benchmarks.md#outliers) in training: {fallen_rows()}",
    f"OpenVINO is faster in {faster('inference', 'OpenVINO')} rows",
    f"ONNX Runtime in {faster('inference', 'ONNX Runtime')}",
    f"PyTorch in {faster('inference', 'PyTorch')}",
    f"JAX in {faster('inference', 'JAX')}",
    f"adds {median_of('training', 'Keras, memory')} times as much to the peak memory",
    f"median; range {span('training', 'Keras, memory')})",
    f"ONNX Runtime takes {session_span('onnxruntime')} times as long as a session",
    f"OpenVINO {session_span('openvino')}.",
    f"TensorFlow's call takes {session_span('ours')}.",
]


@pytest.mark.parametrize("words", NUMBERS)
def test_numbers_are_those_of_the_table(words: str) -> None:
    assert words in PROSE


def test_the_number_of_rows_of_a_session() -> None:
    assert f"In {len(session_ratios(2, 'inference', 'openvino'))} inference rows with two" in PROSE


def test_there_are_no_other_numbers() -> None:
    said = re.findall(r"\d+\.\d+", re.sub(r"Python [\d.]+ to [\d.]+|Apache-2.0", "", PROSE))
    assert [n for n in said if n not in " ".join(NUMBERS)] == []


def test_short_rows_of_each_peer_that_is_faster() -> None:
    """Of less than a millisecond: our minimum, in ms."""
    ours = {row: float(cell.split()[0]) for row, cell in column("inference", "ours").items()}
    *some, last = (
        sum(ratio < 1 and ours[row] < 1 for row, ratio in ratios("inference", peer).items())
        for peer in ("OpenVINO", "ONNX Runtime", "PyTorch", "JAX")
    )
    counts = f"{', '.join(map(str, some))} and {last}"
    words = f"In this order, {counts} of these rows take less than a millisecond"
    assert words in PROSE


def test_the_description_of_the_package_is_the_first_sentence() -> None:
    """Of an index, of the package's docstring, and of the citation."""
    [claim] = re.findall(r"^\*\*(.+)\.\*\*", README, re.MULTILINE)
    assert f'\ndescription = "{claim}"\n' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert (tf_lstm_ops.__doc__ or "").startswith(f"{claim}.\n")
    assert f'title: "tf_lstm_ops: {claim}"' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
