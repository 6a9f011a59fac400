"""docs/guide/other_frameworks.md: the program in C computes the session of the first example."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from pages import ROOT, blocks, run_examples

from .test_tutorial import shell

PAGE = (ROOT / "docs" / "guide" / "other_frameworks.md").read_text(encoding="utf-8")


@pytest.mark.full
@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="the commands are for Linux")
def test_a_program_in_c(tmp_path: Path) -> None:
    for name in ("torch", "onnx", "onnxruntime"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    run_examples(PAGE, tmp_path)
    shutil.copy(ROOT / "examples" / "stream.c", tmp_path)
    [block] = [block for block in blocks(PAGE, "sh") if "stream" in block]
    done = shell(f"set -e\n{block}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search("p50", done.stdout), done.stdout
