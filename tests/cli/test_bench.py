"""``bench`` from end to end: ours and stock Keras."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tf_lstm_ops import __main__
from tf_lstm_ops.bench import capacity, report, session
from tf_lstm_ops.bench.roofline import Roofline
from tf_lstm_ops.bench.runner import Measurement

ROWS = ("--rows", "inference N1 H128 T100", "--rows", "fit*")
PEERS = ("--rounds", "2", "--peers", "keras", "--any-capacity")


@pytest.mark.slow
def test_files(command, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    result = command("bench", *ROWS, *PEERS, "--output", folder)
    assert (result.returncode, result.stderr) == (0, "")
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
        result = report.RowResult(rows[0], {"ours": Measurement("measured", "", [1.0], [1.0])})
        found = report.Report(
            {}, Roofline(capacity.threads, 1e9, {128 * 4 * 128 * 4: 1e9}), planned, [result]
        )
        found.save(folder)
        return found

    monkeypatch.setattr(session, "run", measured)
    monkeypatch.setattr(capacity, "measure", lambda n: capacity.Capacity(n, n))
    rows = ROWS if planned == 2 else ROWS[:2]
    status = __main__.main(["bench", *rows, "--output", str(tmp_path), "--json"])
    assert status == (0 if planned == 1 else 130)
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert printed.err == ""
    files = [str(tmp_path / name) for name in ("table.md", "results.json")]
    assert found.pop("files") == files
    assert found == json.loads((tmp_path / "results.json").read_text())
    assert found["rows"][0]["name"] == "inference N1 H128 T100"


@pytest.mark.slow
def test_interrupt_from_the_keyboard(tmp_path: Path) -> None:
    """It reaches every process of the terminal's group; what is done by then is written."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tf_lstm_ops", "bench", *ROWS, *PEERS, "--output", tmp_path],
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
