"""README.md: its example runs, it is short, and its numbers are those of the table of results."""

import re
from pathlib import Path

from bench_table import TABLE, faster, range_of
from pages import ROOT, run_examples

README = (ROOT / "README.md").read_text(encoding="utf-8")
PROSE = " ".join(re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL).split())


def test_example_prints_what_it_says(tmp_path: Path) -> None:
    run_examples(README, tmp_path)


def test_fits_two_screens() -> None:
    lines = README.splitlines()
    assert len(lines) <= 80
    assert max(map(len, lines)) <= 100


def test_numbers_are_those_of_the_table() -> None:
    training = range_of("training", "Keras")
    memory = [range_of("training", f"{peer}, memory") for peer in ("Keras", "PyTorch")]
    for words in (
        f"Stock Keras took {training} times as long in training steps",
        f"{range_of('inference', 'Keras')} times in inference",
        f"{range_of('fit', 'Keras')} times in `fit`",
        f"PyTorch was faster than this package in {faster('training', 'PyTorch')}",
        f"ONNX Runtime in {faster('inference', 'ONNX Runtime')}",
        f"OpenVINO in {faster('inference', 'OpenVINO')}",
        f"A training step took {memory[0]} times as much memory in stock Keras",
        f"{memory[1]} times as much in PyTorch",
    ):
        assert words in PROSE


def test_no_other_numbers() -> None:
    """Each ratio, with two decimals, stands in the table; versions are no ratios."""
    said = re.findall(r"\d+\.\d+", re.sub(r"Python [\d.]+ to [\d.]+|Apache-2.0", "", PROSE))
    assert len(said) > 10
    assert [n for n in said if not re.search(rf"(?<![\d.]){re.escape(n)}(?![\d.])", TABLE)] == []
