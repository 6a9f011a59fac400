"""What docs/guide/keras.md says about the speed of bfloat16 is what benchmarks/bfloat16.md has."""

import re

from pages import ROOT

PAGE = (ROOT / "docs" / "guide" / "keras.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.partition("\n### When to use bfloat16\n")[2].partition("\n## ")[0].split())
TABLES = (ROOT / "benchmarks" / "bfloat16.md").read_text(encoding="utf-8").split("\n## ")[1:]
UNITS = 128


def ratios(table: str, task: str, large: bool) -> list[float]:
    """The times with mixed_bfloat16 over float32, of layers of UNITS units and more, or of less."""
    rows = re.findall(rf"^\| {task} \| .* H(\d+) \| .* \| (.*) \| .* \|$", table, re.MULTILINE)
    found = [float(mixed) for units, mixed in rows if (int(units) >= UNITS) == large]
    assert found
    return found


def quoted(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def test_figures_are_those_of_the_table() -> None:
    assert TABLES[0].startswith("AVX512_BF16 ")
    inference, training = (ratios(TABLES[0], task, True) for task in ("inference", "training"))
    assert f"{UNITS} units or more" in WORDS
    assert f"{quoted(inference)} times as long as in float32 in inference" in WORDS
    assert f"{quoted(training)} times in training" in WORDS
    small = [r for task in ("inference", "training") for r in ratios(TABLES[0], task, False)]
    assert f"Smaller layers take {quoted(small)} times as long" in WORDS


def test_training_without_instructions_takes_about_as_long() -> None:
    assert len(TABLES) == 3
    found = [r for t in TABLES[1:] for large in (True, False) for r in ratios(t, "training", large)]
    assert f"Without these instructions training takes {quoted(found)} times as long" in WORDS
