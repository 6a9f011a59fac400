"""``python benchmarks/peers`` from end to end: ours and stock Keras."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT
from peers import capacity, command, report, session
from peers.roofline import Roofline
from peers.runner import Measurement

ROWS = ("--tasks", "inference N1 H128 T100", "--tasks", "fit*")
PEERS = ("--rounds", "2", "--peers", "keras", "--any-capacity")
PROGRAM = ROOT / "benchmarks" / "peers"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs the program in the root of the checkout, as a user does."""
    line = [sys.executable, PROGRAM.relative_to(ROOT), *map(str, arguments)]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.full  # a process that imports TensorFlow
def test_help() -> None:
    """It ends with examples, and options with values have their defaults."""
    result = run("--help")
    assert result.returncode == 0, result.stderr
    text, _, examples = result.stdout.partition("\nexamples:\n")
    assert text.startswith("usage: python benchmarks/peers")
    assert "(default: 9)" in " ".join(text.split()) and "(default: False)" not in text
    assert all(line.startswith("  python benchmarks/peers ") for line in examples.splitlines())


def test_without_matplotlib(tmp_path: Path, capsys, monkeypatch) -> None:
    """Nothing is measured or written."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert command.main(["--output", str(tmp_path / "new")]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("python benchmarks/peers: the picture needs matplotlib")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_files(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    result = run(*ROWS, *PEERS, "--output", folder)
    assert result.returncode == 0, result.stderr
    sequence, fit = json.loads((folder / "results.json").read_text())["rows"]
    assert list(sequence["peers"]) == ["ours", "ours-eager", "ours-cudnn", "keras"]
    assert list(fit["peers"]) == ["ours", "keras"]
    for peer in [*sequence["peers"].values(), *fit["peers"].values()]:
        assert len(peer["ratios"]) == 2
    assert " of 2 threads" in (folder / "table.md").read_text()
    assert result.stdout.startswith("capacity: ")
    assert 0 < sequence["floor_fraction"] < 1
    assert "| inference N1 H128 T100 |" in (folder / "table.md").read_text()
    for name in ("table.md", "bench.png", "results.json"):
        assert f"written {folder / name}\n" in result.stdout


@pytest.mark.parametrize("planned", [1, 2])
def test_json(tmp_path: Path, capsys, monkeypatch, planned: int) -> None:
    """The document is results.json and the names of the files. Nothing else is printed."""

    def measured(rows, peers, capacity, rounds, folder):
        print("1/1 a row")
        ours = Measurement("measured", "", [1.0], [1.0])
        result = report.RowResult(rows[0], {"ours": ours}, "abc1234", "2026-11-26")
        found = report.Report(
            {"family": "avx2"},
            Roofline(capacity.threads, 1e9, {128 * 4 * 128 * 4: 1e9}),
            planned,
            [result],
        )
        found.save(folder)
        return found

    monkeypatch.setattr(session, "run", measured)
    monkeypatch.setattr(capacity, "measure", lambda n: capacity.Capacity(n, n))
    rows = ROWS if planned == 2 else ROWS[:2]
    status = command.main([*rows, "--output", str(tmp_path), "--json"])
    assert status == (0 if planned == 1 else 130)
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert printed.err == ""
    files = [str(tmp_path / name) for name in ("table.md", "results.json")]
    assert found.pop("files") == files
    assert found == json.loads((tmp_path / "results.json").read_text())
    assert found["rows"][0]["name"] == "inference N1 H128 T100"


# The program as `python benchmarks/peers` runs it, with an interrupt when TensorFlow is imported.
WHILE_IMPORTING = f"""
import runpy, signal, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "tensorflow":
            signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder)
sys.argv.append("--any-capacity")
runpy.run_path({str(PROGRAM)!r}, run_name="__main__")
"""


@pytest.mark.full
def test_interrupt_of_the_import() -> None:
    line = [sys.executable, "-c", WHILE_IMPORTING]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "python benchmarks/peers: interrupted\n"


@pytest.mark.slow
def test_interrupt_from_the_keyboard(tmp_path: Path) -> None:
    """It reaches every process of the terminal's group; what is done by then is written."""
    process = subprocess.Popen(
        [sys.executable, PROGRAM, *ROWS, *PEERS, "--output", tmp_path],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    printed = ""
    for line in process.stdout:
        printed += line
        if line.startswith(" 2/2"):
            os.killpg(process.pid, signal.SIGINT)
            break
    rest, errors = process.communicate(timeout=60)
    assert "interrupted" in rest
    assert "Traceback" not in printed + rest + errors
    assert process.returncode == 130
    found = json.loads((tmp_path / "results.json").read_text())
    assert [row["name"] for row in found["rows"]] == ["inference N1 H128 T100"]
    assert all(peer["status"] == "measured" for peer in found["rows"][0]["peers"].values())
    assert (tmp_path / "bench.png").exists()
