"""``bench`` from end to end: ours and stock Keras."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROWS = ("--rows", "inference N1 H128 T100", "--rows", "fit*")
PEERS = ("--rounds", "2", "--peers", "keras")


@pytest.mark.slow
def test_files(command, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    result = command("bench", *ROWS, *PEERS, "--output", folder)
    assert (result.returncode, result.stderr) == (0, "")
    sequence, fit = json.loads((folder / "results.json").read_text())["rows"]
    assert list(sequence["peers"]) == ["ours", "ours-cudnn", "keras"]
    assert list(fit["peers"]) == ["ours", "keras"]
    for peer in [*sequence["peers"].values(), *fit["peers"].values()]:
        assert len(peer["ratios"]) == 2
    assert 0 < sequence["floor_fraction"] < 1
    assert "| inference N1 H128 T100 |" in (folder / "table.md").read_text()
    for name in ("table.md", "bench.png", "results.json"):
        assert f"written {folder / name}\n" in result.stdout


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
