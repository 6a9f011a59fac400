"""docs/guide/small_weights.md: its errors are those of benchmarks/int8_errors.md."""

import re

from pages import ROOT, blocks
from tf_lstm_ops.inference import Comparison, OutputErrors

PAGE = (ROOT / "docs" / "guide" / "small_weights.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "benchmarks" / "int8_errors.md").read_text(encoding="utf-8")
KINDS = ["bfloat16", "int8", "ONNX Runtime, int8", "OpenVINO, bfloat16"]


def tables(text: str) -> list[list[list[str]]]:
    """The cells of each table, without its header."""
    found = re.findall(r"^\|.*\n\|[-:|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[row.strip("| ").split(" | ") for row in table.splitlines()] for table in found]


MODELS, STEPS, BITS = tables(RESULTS)
*_, SHOWN_SPEED, SHOWN_MODELS = tables(PAGE)


def by_name(table: list[list[str]]) -> dict[str, list[list[str]]]:
    """The other cells of the rows with the same first cell, which are in the order of KINDS."""
    found: dict[str, list[list[str]]] = {}
    for name, kind, *cells in table:
        found.setdefault(name, []).append(cells)
        # "int8: 1 of 2 layers, ..." where some layers stay float32.
        assert kind.partition(":")[0] == KINDS[len(found[name]) - 1]
    return found


def test_errors_of_models() -> None:
    found = by_name(MODELS)
    assert len(found) == 6
    assert [[name, *(cells[2] for cells in rows)] for name, rows in found.items()] == SHOWN_MODELS


def test_errors_by_steps() -> None:
    """The page says that they are almost the same. OpenVINO's are not."""
    assert "almost the same" in PAGE
    for rows in [*zip(*by_name(STEPS).values(), strict=True)][:-1]:
        norms = [float(cells[2]) for cells in rows]
        assert max(norms) < 1.1 * min(norms)


def test_bits_per_byte() -> None:
    assert [kind for _, kind, _ in BITS] == ["float32", *KINDS]
    float32, bfloat16, int8, onnx, _ = (bits for *_, bits in BITS)
    words = (
        f"needs {float32} bits per byte in float32, {bfloat16} in bfloat16, {int8} in int8,"
        f" and {onnx} in ONNX Runtime's int8"
    )
    assert words in " ".join(PAGE.split())


def test_speed() -> None:
    """Of an LSTM of 128, 512, 1024 and 2048 units."""
    notes = (ROOT / "benchmarks" / "NOTES.md").read_text(encoding="utf-8")
    for name, *shown in SHOWN_SPEED:
        [row] = re.findall(rf"^\| {name}, LSTM \| (.*) \|$", notes, re.MULTILINE)
        times = dict(zip([32, 64, 128, 256, 512, 640, 1024, 2048], row.split(" | "), strict=True))
        assert [times[units] for units in (128, 512, 1024, 2048)] == shown


def test_the_comparison_is_printed_as_shown() -> None:
    """The table of these numbers; test_pages.py runs the call."""
    [text] = blocks(PAGE, "text")
    numbers = re.search(r"^output 0 +(\d+) +(\S+) +(\S+) +(\S+) +(\S+)%$", text, re.MULTILINE)
    times = re.search(r"call: (\S+) ms; other: (\S+) ms", text)
    assert numbers and times
    elements, *errors, share = map(float, numbers.groups())
    output = OutputErrors("output 0", int(elements), *errors, share / 100)
    ours, theirs = (float(time) / 1000 for time in times.groups())
    assert f"{Comparison((output,), ours, theirs)}\n" == text
