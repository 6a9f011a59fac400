"""Whether unverified GPU kernels stay unused, on an emulated device."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("gate_program.py")
WITH_PLUGIN = Path(__file__).with_name("with_plugin")
# Plain ops and kernels err by some units in the last place of float32 over four steps.
TOLERANCE = 1e-5


class Machine:
    """A user's machine: an emulated GPU and an empty cache folder.

    Args:
      folder: where its files are.
      environment: the variables with which a process has the device.
      plain_ops: whether calls take plain TensorFlow ops, not the CPU's kernels, if those of the
        GPU are off.
    """

    def __init__(self, folder: Path, environment: dict[str, str], plain_ops: bool) -> None:
        self.plain_ops = plain_ops
        self.model = folder / "model"
        self.cache = folder / "cache"
        self.environment = {
            **{k: v for k, v in os.environ.items() if k != "TF_LSTM_OPS_GPU"},
            **{k: v for k, v in environment.items() if k != "TF_LSTM_OPS_GPU"},
            "XDG_CACHE_HOME": str(self.cache),
            "PYTHONPATH": str(WITH_PLUGIN),
            "TF_CUDNN_RESET_RND_GEN_STATE": "1",  # the same dropout mask in every call
        }
        without = {k: v for k, v in os.environ.items() if not k.startswith("TF_LSTM_OPS")}
        without["TF_CUDNN_RESET_RND_GEN_STATE"] = "1"
        command = [sys.executable, str(PROGRAM), "save", str(self.model)]
        subprocess.run(command, env=without, check=True, capture_output=True)

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Python with these arguments."""
        return subprocess.run(
            [sys.executable, *command],
            env=self.environment | variables,
            capture_output=True,
            text=True,
        )

    def program(self, task: str, **variables: str) -> Any:
        """The result of a task of the program, and what it wrote to stderr."""
        done = self.run(str(PROGRAM), task, str(self.model), **variables)
        assert done.returncode == 0, done.stderr[-5000:]
        return json.loads(done.stdout.splitlines()[-1]), done.stderr

    def record(self) -> Path:
        """The only record."""
        [file] = (self.cache / "tf_lstm_ops" / "selftest").iterdir()
        return file

    def change_record(self, **changes: Any) -> None:
        """Replaces entries of the record."""
        content = json.loads(self.record().read_text())
        self.record().write_text(json.dumps(content | changes))


def lines(stderr: str) -> list[str]:
    """What the package logged."""
    return [line for line in stderr.splitlines() if "tf_lstm_ops: " in line]


def assert_off(machine: Machine, state: str, reason: str, **variables: str) -> None:
    """The kernels are off, all results are right, and one line of the log says why."""
    result, stderr = machine.program("check", **variables)
    assert result["state"] == state
    assert not result["registered"]
    assert result["fused"] != machine.plain_ops
    assert max(result["differences"].values()) < TOLERANCE, result
    [line] = lines(stderr)
    assert reason in line and "tf-lstm-ops selftest --device GPU" in line


def assert_on(machine: Machine, state: str, **variables: str) -> dict[str, float]:
    """The kernels are on; returns the differences of their results."""
    result, stderr = machine.program("check", **variables)
    assert result["state"] == state
    assert result["registered"]
    assert result["fused"]
    assert lines(stderr) == []
    return result["differences"]


def check_states(machine: Machine) -> None:
    """A record decides, unless TF_LSTM_OPS_GPU does."""
    assert_off(machine, "never run", "their self-test has not run on this machine")
    machine.program("record")
    assert max(assert_on(machine, "passed").values()) < TOLERANCE
    record = json.loads(machine.record().read_text())
    machine.change_record(failures=["KerasLSTM, 6 steps, float32: differs by 1"])
    assert_off(machine, "failed", "KerasLSTM, 6 steps, float32: differs by 1")
    machine.change_record(failures=[], machine=record["machine"] | {"driver": "an older one"})
    assert_off(machine, "outdated", "changed: driver")
    machine.record().write_text("{")
    assert_off(machine, "never run", "their self-test has not run")
    machine.record().write_text(json.dumps(record))
    machine.record().chmod(0o666)  # anyone can have written it
    assert_off(machine, "never run", "their self-test has not run")


def check_variable(machine: Machine) -> None:
    """TF_LSTM_OPS_GPU overrides the record."""
    assert max(assert_on(machine, "forced", TF_LSTM_OPS_GPU="1").values()) < TOLERANCE
    machine.program("record")
    result, stderr = machine.program("check", TF_LSTM_OPS_GPU="0")
    assert (result["state"], result["registered"]) == ("off", False)
    assert result["fused"] != machine.plain_ops
    assert max(result["differences"].values()) < TOLERANCE, result
    assert lines(stderr) == []
    done = machine.run("-c", "import tensorflow, tf_lstm_ops", TF_LSTM_OPS_GPU="yes")
    assert done.returncode == 1
    assert "TF_LSTM_OPS_GPU must be 0, 1 or auto, but is yes" in done.stderr


def check_errors(machine: Machine) -> None:
    """A call that a kernel refuses is refused without the kernels, too."""
    eager, traced = machine.program("errors")[0]
    assert "seq_len_max must be between 0 and 4 but is 5" in eager
    steps = "the number of steps" if machine.plain_ops else "4 but is 5"
    assert f"seq_len_max must be between 0 and {steps}" in traced


SELFTEST = ("-m", "tf_lstm_ops", "selftest", "--device", "GPU", "--report")
SMALL = {"TF_LSTM_OPS_TEST_SMALL": "1"}  # see sitecustomize.py


def check_selftest(machine: Machine) -> None:
    """The self-test passes, and the next process uses the kernels."""
    report = machine.cache.with_name("report.txt")
    done = machine.run(*SELFTEST, str(report), **SMALL)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert re.search(r"\n(\d+) of \1 checks passed.\n", done.stdout)
    assert set().union(*verdicts(done.stdout).values()) == {"ok"}
    for line in (
        "The GPU kernels are now on for",
        "this package on the CPU.",
        "keras.layers.LSTM.",
    ):
        assert line in done.stdout
    assert done.stdout == f"{report.read_text()}The report is in {report}.\n"
    assert max(assert_on(machine, "passed").values()) < TOLERANCE
    [line] = [
        line
        for line in machine.run("-m", "tf_lstm_ops", "info").stdout.splitlines()
        if line.startswith("GPU kernels")
    ]
    assert "on, their self-test passed on" in line


def check_failing_selftest(machine: Machine) -> dict[str, set[str]]:
    """The self-test fails and the kernels stay off. Returns the verdicts of each op."""
    done = machine.run(*SELFTEST, str(machine.cache.with_name("report.txt")), **SMALL)
    assert done.returncode == 1, done.stderr[-3000:]
    assert "The GPU kernels stay off for" in done.stdout
    assert "Please report the file" in done.stdout
    assert_off(machine, "failed", "their self-test failed on")
    return verdicts(done.stdout)


def verdicts(printed: str) -> dict[str, set[str]]:
    """For each op "ok" or "FAILED" of its checks."""
    found: dict[str, set[str]] = {}
    for op, verdict in re.findall(r"^\[.*?\] (\w+): .* \.\.\. (ok|FAILED)", printed, re.M):
        found.setdefault(op, set()).add(verdict)
    return found
