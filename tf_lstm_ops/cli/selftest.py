"""``tf-lstm-ops selftest``: compares the kernels of a device with what is expected of them."""

from __future__ import annotations

import argparse
import functools
import math
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import tensorflow as tf

from tf_lstm_ops import _cuda_stream, _gpu, _library
from tf_lstm_ops._version import __version__
from tf_lstm_ops.cli import CommandError, output
from tf_lstm_ops.selftest import large, oracle, runner
from tf_lstm_ops.selftest.check import Result

Outcomes = list[tuple[str, Result]]  # of the checks by name
_Report = Callable[..., None]  # as `_say`, of the file


def run(arguments: argparse.Namespace) -> int:
    """Runs all checks for which the device has kernels, and records whether they passed.

    Args:
      arguments: those of the command line.

    Returns:
      0, or 1 if a check fails.

    Raises:
      CommandError: there is no such device, the package has no kernels for it, the stream library
        cannot be built, the checks cannot start, or the report or the record cannot be written.
    """
    device = arguments.device if ":" in arguments.device else f"{arguments.device}:0"
    physical = _find(device)
    library = _library.gpu_path() if physical.device_type == "GPU" else _library.path()
    if library is None:
        raise CommandError(f"this package has no kernels for {device}")
    if library.stem.endswith("cuda"):
        _build_stream_library()
    machine = _gpu.machine(physical, library)
    try:
        with (
            output.json_only(arguments.json),
            Path(arguments.report).open("w", encoding="utf-8") as file,
        ):
            report: _Report = functools.partial(_say, file)
            for line in _description(device, machine):
                report(line)
            outcomes = _run_checks(device, arguments.time_limit, report)
            failures = _summarize(outcomes, report)
            if physical.device_type == "GPU":
                _record(machine, failures, report)
    except (OSError, runner.Ended) as error:
        raise CommandError(str(error)) from error
    if arguments.json:
        document = {"device": device, "machine": machine, "passed": not failures}
        checks = [_as_document(name, result) for name, result in outcomes]
        output.print_json({**document, "checks": checks, "report": arguments.report})
    elif failures:
        print(f"Please report the file {arguments.report}: it has everything above.")
    else:
        print(f"The report is in {arguments.report}.")
    return 1 if failures else 0


def _say(file: IO[str], text: str, end: str = "\n") -> None:
    """Prints text and writes it to a file, at once."""
    for target in (None, file):
        print(text, end=end, flush=True, file=target)


def _find(device: str) -> tf.config.PhysicalDevice:
    kind, _, number = device.partition(":")
    all_devices = tf.config.list_physical_devices()
    found = [d for d in all_devices if d.device_type == kind]
    if int(number) >= len(found):
        raise CommandError(
            f"TensorFlow has no device {device} here, only "
            f"{', '.join(d.name.removeprefix('/physical_device:') for d in all_devices)}. "
            "A Mac's GPU needs the plugin tensorflow-metal, in a version that loads into this "
            "TensorFlow; an NVIDIA GPU needs its driver and pip install 'tensorflow[and-cuda]'."
        )
    return found[int(number)]


def _build_stream_library() -> None:
    output.progress("builds the library that reads TensorFlow's CUDA stream")
    try:
        _cuda_stream.build()
    except (OSError, subprocess.SubprocessError) as error:
        log = getattr(error, "stdout", None) or ""
        raise CommandError(
            f"the stream library cannot be built: {error}. Compiling it needs a C++17 compiler, "
            f"c++ or $CXX.\n{log}".rstrip()
        ) from error
    finally:
        output.progress("")


def _description(device: str, machine: _gpu.Machine) -> Sequence[str]:
    """What a report must tell about the machine."""
    gpu = [
        f"{device}: {machine['card']}; driver: {machine['driver']}",
        f"plugin or CUDA packages: {machine['plugin']}",
    ]
    return [
        f"tf_lstm_ops {__version__}, TensorFlow {tf.__version__}",
        f"Python {platform.python_version()}, {platform.platform()}",
        *([f"{device}: {machine['card']}"] if device.startswith("CPU") else gpu),
        f"compared with: {oracle.NAME if oracle.is_oracle(device) else 'the kernels of the CPU'}",
        "",
    ]


def _run_checks(device: str, limit: float, report: _Report) -> Outcomes:
    outcomes: Outcomes = []
    start = time.monotonic()
    for name, result, number, count in runner.outcomes(device, limit):
        if result is None:
            left = _time_left(number - 1, count, time.monotonic() - start)
            report(f"[{number}/{count}{left}] {name} ... ", end="")
            continue
        report(_verdict(result))
        outcomes.append((name, result))
    if not outcomes:
        raise CommandError(f"this package has no kernels for {device}")
    return outcomes


def _time_left(done: int, count: int, seconds: float) -> str:
    """The time that the other checks take, if they take as long as those before."""
    if done < 5:
        return ""
    left = seconds / done * (count - done)
    return f", {left:.0f} s left" if left < 120 else f", {left / 60:.0f} min left"


def _as_document(name: str, result: Result) -> dict[str, Any]:
    """A check for JSON, which has no NaN: null stands for a difference that is not finite."""
    difference = result.difference if math.isfinite(result.difference) else None
    return {"name": name, "passed": result.passed, **result._asdict(), "difference": difference}


def _verdict(result: Result) -> str:
    if result.error:
        return f"FAILED\n  {result.error}"
    if result.times:
        return ", ".join(f"{name} {ms:.2f} ms" for name, ms in result.times.items())
    verdict = "ok" if result.passed else "FAILED"
    return f"{verdict}, difference {result.difference:.1e} (allowed {result.allowed:.0e})"


def _summarize(outcomes: Outcomes, report: _Report) -> list[str]:
    """Prints the number of passed checks and the meaning of the times. Returns the failures."""
    failed = [(name, result) for name, result in outcomes if not result.passed]
    report(f"\n{len(outcomes) - len(failed)} of {len(outcomes)} checks passed.")
    times = [result.times for _, result in outcomes if result.times]
    if len(times) == len(large.TIMED):
        for other, name in (("CPU", "this package on the CPU"), ("stock", "keras.layers.LSTM")):
            faster = [each["device"] < each[other] for each in times]
            report(f"The kernels are {_speed(faster)} {name}.")
    return [
        f"{name}: {(result.error or _verdict(result)).splitlines()[0]}" for name, result in failed
    ]


def _speed(faster: list[bool]) -> str:
    """In words from which batch size on the kernels are faster."""
    batches = [size.batch for size in large.TIMED]
    first = len(faster)
    while first > 0 and faster[first - 1]:
        first -= 1
    if first == len(faster):
        return f"not faster at batch {batches[-1]} than"
    return f"faster from batch {batches[first]} on than"


def _record(machine: _gpu.Machine, failures: list[str], report: _Report) -> None:
    file = _gpu.write_record(machine, failures)
    if not failures:
        report(f"The GPU kernels are now on for {machine['card']} (recorded in {file}).")
        return
    report(f"The GPU kernels stay off for {machine['card']} (recorded in {file}). Failed:")
    for failure in failures:
        report(f"  {failure}")
