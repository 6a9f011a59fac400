"""The self-test survives a check that fails, ends the process or never returns.

The child process is a script here; tests/cuda and tests/metal run the real one.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import __main__, _cuda_stream, _gpu, _library
from tf_lstm_ops.selftest import check, large, ops, programs, runner

# Each name says what its check does. Every start of the process leaves a line in the file.
SCRIPT = """
import json, os, sys, time
open(sys.argv[1], "a").write("start\\n")
names = json.loads(sys.argv[2])
print(json.dumps(names), flush=True)
for line in sys.stdin:
    name = names[int(line)]
    result = {"difference": 0.0, "allowed": 0.1, "error": "", "times": None}
    if name == "hangs":
        time.sleep(1000)
    if name == "aborts":
        print("LLVM ERROR: Failed to infer result type(s)", file=sys.stderr, flush=True)
        os.abort()
    if name == "raises":
        result["error"] = "RuntimeError: no kernel"
    if name == "differs":
        result["difference"] = 0.5
    if name == "is NaN":
        result["difference"] = float("nan")
    print(json.dumps(result), flush=True)
"""


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes these the checks. Returns the file with a line for each start of the child."""
    (tmp_path / "worker.py").write_text(SCRIPT)

    def use(*names: str) -> Path:
        starts = tmp_path / "starts"
        script = [sys.executable, str(tmp_path / "worker.py"), str(starts), json.dumps(names)]
        monkeypatch.setattr(runner, "_WORKER", script)
        return starts

    return use


def run(limit: float = 60) -> dict[str, check.Result]:
    """The results by name. Each name comes before its check runs."""
    events = list(runner.outcomes("GPU:0", limit))
    before, after = events[::2], events[1::2]
    assert [each._replace(result=None) for each in after] == before
    assert [each.number for each in before] == list(range(1, before[0].total + 1))
    return {each.name: each.result for each in after}


def test_one_process_runs_all_checks_that_pass(checks):
    starts = checks("one", "two", "three")
    assert all(result.passed for result in run().values())
    assert starts.read_text() == "start\n"


def test_the_next_check_runs_in_a_new_process_after_an_abort(checks):
    starts = checks("aborts", "one")
    results = run()
    assert "signal 6" in results["aborts"].error
    assert "LLVM ERROR: Failed to infer" in results["aborts"].error
    assert results["one"].passed and not results["aborts"].passed
    assert starts.read_text() == 2 * "start\n"


def test_the_next_check_runs_in_a_new_process_after_an_error(checks):
    starts = checks("raises", "one")
    results = run()
    assert results["raises"].error == "RuntimeError: no kernel"
    assert results["one"].passed
    assert starts.read_text() == 2 * "start\n"


@pytest.mark.full
def test_a_check_has_limited_time(checks):
    checks("hangs", "one")
    results = run(limit=1.0)
    assert results["hangs"].error == "it took longer than 1 s"
    assert results["one"].passed


def test_a_child_that_does_not_start_is_an_error(monkeypatch):
    monkeypatch.setattr(runner, "_WORKER", [sys.executable, "-c", "raise SystemExit('no TF')"])
    with pytest.raises(runner.Ended, match=r"exit status 1\)\nno TF"):
        run()


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A GPU for the command, which is the CPU; returns the folder of the report and the records."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    [cpu] = tf.config.list_physical_devices("CPU")
    monkeypatch.setattr(
        tf.config, "list_physical_devices", lambda: [cpu._replace(device_type="GPU")]
    )
    details = {"device_name": "Some card", "compute_capability": (9, 0)}
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda device: details)
    return tmp_path


def record(folder: Path) -> dict[str, object]:
    [file] = (folder / "tf_lstm_ops" / "selftest").iterdir()
    return json.loads(file.read_text())


def test_a_self_test_that_passes_turns_the_kernels_on(checks, gpu, capsys):
    checks("one", "two")
    assert __main__.main(["selftest"]) == 0
    printed = capsys.readouterr().out
    assert "[1/2] one ... ok, difference 0.0e+00 (allowed 1e-01)\n[2/2] two ... ok" in printed
    assert "2 of 2 checks passed." in printed
    assert "The GPU kernels are now on" in printed
    report, _, last = printed.rstrip("\n").rpartition("\n")
    assert (gpu / "tf_lstm_ops_selftest.txt").read_text() == f"{report}\n"
    assert last == "The report is in tf_lstm_ops_selftest.txt."
    assert record(gpu)["failures"] == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("differs", "FAILED, difference 5.0e-01 (allowed 1e-01)"),
        ("is NaN", "FAILED, difference nan (allowed 1e-01)"),
        ("raises", "RuntimeError: no kernel"),
        ("aborts", "the process ended (signal 6)"),
    ],
)
def test_a_self_test_that_fails_leaves_the_kernels_off(checks, gpu, capsys, name, why):
    checks("one", name)
    assert __main__.main(["selftest", "--report", "report.txt"]) == 1
    printed = capsys.readouterr().out
    assert "1 of 2 checks passed." in printed
    assert "The GPU kernels stay off" in printed and "now on" not in printed
    assert "Please report the file report.txt" in printed
    assert record(gpu)["failures"] == [f"{name}: {why}"]
    report = (gpu / "report.txt").read_text()
    for text in (why, tf.__version__, "Some card 9.0"):
        assert text in report


def test_json(checks, gpu, capsys):
    """NaN is not JSON. What is else printed is in the report only."""
    checks("one", "is NaN", "raises")
    assert __main__.main(["selftest", "--json"]) == 1
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert printed.err == ""
    assert (found["device"], found["passed"]) == ("GPU:0", False)
    assert found["machine"]["card"] == "Some card 9.0"
    assert found["checks"][0] == {
        **{"name": "one", "passed": True, "difference": 0.0, "allowed": 0.1},
        **{"error": "", "times": None},
    }
    assert [each["difference"] for each in found["checks"]] == [0.0, None, 0.0]
    assert found["checks"][2]["error"] == "RuntimeError: no kernel"
    assert "1 of 3 checks passed." in (gpu / found["report"]).read_text()


def test_the_stream_library_is_built_before_the_checks(checks, gpu, capsys, monkeypatch):
    starts = checks("one")

    def build() -> None:
        assert not starts.exists()
        raise subprocess.CalledProcessError(1, "c++", "stream.cc:1: error: no")

    monkeypatch.setattr(_library, "gpu_path", lambda: gpu / "tf_lstm_ops_cuda.so")
    (gpu / "tf_lstm_ops_cuda.so").write_text("")
    monkeypatch.setattr(_cuda_stream, "build", build)
    assert __main__.main(["selftest"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tf-lstm-ops: the stream library cannot be built: Command 'c++'")
    assert "$CXX" in error and error.endswith("stream.cc:1: error: no\n")
    assert not starts.exists()
    monkeypatch.setattr(_cuda_stream, "build", lambda: None)
    assert __main__.main(["selftest"]) == 0


def test_without_checks_nothing_is_recorded(checks, gpu, capsys):
    checks()
    assert __main__.main(["selftest"]) == 1
    assert "this package has no kernels for GPU:0" in capsys.readouterr().err
    assert not (gpu / "tf_lstm_ops").exists()


PROGRAMS = {f"{op}, {what}": (shapes, layers) for op, what, shapes, layers in programs._programs()}


def programs_by_default() -> Iterator[object]:
    """The first of each op."""
    seen = set()
    for name in PROGRAMS:
        op = name.partition(",")[0]
        yield pytest.param(name, marks=pytest.mark.full if op in seen else ())
        seen.add(op)


@pytest.mark.parametrize("name", programs_by_default())
def test_gradients_of_the_programs_are_large_enough_to_compare(name):
    """A difference is relative to 1 or to the largest element: a wrong gradient must be near 1."""
    shapes, layers = PROGRAMS[name]
    _, _, _, *results = programs._train(shapes, layers, tf.float32, "CPU:0")
    for gradient in results[: 2 + len(shapes)]:
        assert 0.03 < np.abs(gradient).max() < 100


def test_there_are_checks_of_every_op_and_type():
    names = [c.name for group in (ops, programs, large) for c in group.checks("CPU:0")]
    assert len(set(names)) == len(names)
    for op in ("LSTMBlockCell", "BlockLSTM", "BlockLSTMV2", "CudnnRNNV3", "MPSGraphLSTM"):
        for dtype in ("float32", "float16", "bfloat16"):
            assert any(n.startswith(f"{op}: ") and n.endswith(dtype) for n in names)


def test_no_gradient_of_rounded_kinks_is_compared(monkeypatch):
    """A rounded value of the other sign has another gradient as a whole."""
    monkeypatch.setattr(ops, "_has_kernel", lambda *_: True)
    monkeypatch.setattr(_gpu, "_status", _gpu.Status(True, "forced", "", cuda=True))
    names = [c.name for c in ops.checks("GPU:0") if "rnn_relu" in c.name]
    assert names == [f"CudnnRNNV3: rnn_relu, {dtype}" for dtype in ("float32", "float64")]


def test_large_sizes_are_compared_and_repeated(monkeypatch):
    calls = []
    size = large.Size(2, 8, 5)

    def both_passes(size, dtype, device):
        def call():
            calls.append(device)
            return [tf.ones([2]) * (1 + 0.1 * (len(calls) in broken))]

        return call

    monkeypatch.setattr(large, "_both_passes", both_passes)
    broken: Any = []
    assert large._check(size, tf.float32, "GPU:0").passed
    assert calls == ["CPU:0", *3 * ["GPU:0"]]
    broken = [len(calls) + 2]  # the comparison
    assert not large._check(size, tf.float32, "GPU:0").passed
    broken = range(len(calls) + 3, len(calls) + 5)  # with TF32, in equal bits
    assert not large._check(size, tf.float32, "GPU:0").passed
    broken = [len(calls) + 4]  # the second of two equal calls
    with pytest.raises(RuntimeError, match="different bits"):
        large._check(size, tf.float32, "GPU:0")
