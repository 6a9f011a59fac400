"""The comparison of tests/gpu with PyTorch on the fakes: the backend without TensorFlow."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuda import build

pytestmark = [pytest.mark.cuda, pytest.mark.torch]
pytest.importorskip("torch", reason="PyTorch, which this compares with, is not installed")

GPU = build.ROOT / "tests" / "gpu"


@pytest.fixture(scope="module")
def core(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("core") / "core.so"
    subprocess.run([GPU / "build.sh", library], check=True)
    return library


def check(core: Path, built: Path, folder: Path, **environment: str) -> tuple[int, str, list[dict]]:
    done = subprocess.run(
        [sys.executable, GPU / "check.py", core, folder, "--device", "cpu", "--small"],
        env={**os.environ, **build.environment(built), **environment},
        capture_output=True,
        text=True,
    )
    lines = (folder / "results.jsonl").read_text().splitlines()
    return done.returncode, done.stdout + done.stderr, [json.loads(line) for line in lines]


def test_core_without_tensorflow(tmp_path, built, core):
    status, printed, found = check(core, built, tmp_path)
    assert status == 0, printed
    assert "Verdict: all" in printed
    assert all(line["ok"] for line in found) and found[-1]["kind"] == "verdict"


def test_a_wrong_kernel_is_found(tmp_path, built, core):
    """The other checks go on."""
    status, printed, found = check(core, built, tmp_path, FAKE_CXX="c++ -Dtanhf=sinf")
    assert status == 1 and "checks failed" in printed
    wrong = {line["case"].split()[0] for line in found if not line["ok"] and "case" in line}
    assert wrong == {"kernels"}
    assert sum(line["ok"] for line in found) > 100


POISONED = """
import contextlib, sys
import check, torch

class Backend:
    device, stream = "cpu", contextlib.nullcontext
    def __init__(self, *_):
        self.ended = False
    def is_usable(self):
        return not self.ended

def compare(backend, case, dtype, *_):
    backend.ended |= case == check.SMALL[1] and dtype == torch.float32
    if backend.ended:
        raise RuntimeError("an illegal memory access was encountered")
    return {"ok": True}

check.Backend, check.compare = Backend, compare
sys.exit(check.main())
"""


def test_a_device_that_computes_no_more_ends_one_case(tmp_path):
    """The others run in new processes."""
    program = tmp_path / "poisoned.py"
    program.write_text(POISONED)
    done = subprocess.run(
        [sys.executable, program, "no library", tmp_path, "--device", "cpu", "--small"],
        env={**os.environ, "PYTHONPATH": str(GPU)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    found = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    cases = [line["case"] for line in found[:-1]]
    assert len(set(cases)) == len(cases) > 100
    assert [n for n, line in enumerate(found[:-1]) if not line["ok"]] == [5, 9]  # float32, TF32
    assert f"Verdict: 2 of {len(cases)} checks failed" in done.stdout


EQUAL_DEVICES = """
import sys
from backend import Backend, Case
import reference

backend = Backend(sys.argv[1], "cpu")
given = {k: v.float() for k, v in reference.problem(Case())[0].items()}
for _ in range(4):
    backend.forward(Case(), given)
"""


def test_equal_devices_compile_a_program_once(tmp_path, built, core):
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\necho compiled >>{tmp_path}/log\nexec c++ "$@"\n')
    compiler.chmod(0o755)
    counts = []
    for variables in ({}, {"FAKE_TWO_CONTEXTS": "1"}):
        variables |= build.environment(built) | {"FAKE_CXX": str(compiler)}
        environment = {**os.environ, **variables, "PYTHONPATH": str(GPU)}
        del environment["FAKE_PROGRAMS"]  # which would keep what was compiled
        command = [sys.executable, "-c", EQUAL_DEVICES, core]
        subprocess.run(command, env=environment, check=True)
        counts.append(len((tmp_path / "log").read_text().splitlines()))
        (tmp_path / "log").unlink()
    assert counts[0] == counts[1] > 0
