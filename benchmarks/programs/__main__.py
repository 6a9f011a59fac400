"""Runs programs that train recurrent Keras models without and with ``tf-lstm-ops run``.

    python -m benchmarks.programs [NAME ...] --folder DIR

The programs are in `drivers`. Each uses a package of the Python package index, which is installed
in an environment of its own below DIR, with TensorFlow, Keras and a wheel of this clone. The
environments are kept. A program runs without and with ``tf-lstm-ops run`` in turn, with one thread.
Where the losses differ, both run once more in float64.

It prints a Markdown table and the machine. `benchmarks/programs.md` has them.

* fused layers: what the last line of ``tf-lstm-ops run`` says.
* losses: the largest relative difference between a loss of an epoch without and with it. "stock
  varies": that between the runs without it, if they differ.
* float64: that in float64, if it is more than 1e-6. Where it is small, the losses differ by
  rounding, which the training of some models amplifies.
* seconds: of an epoch with its validation, without the first epoch of a fit. The least time of all
  epochs and runs counts. A program that fits several models has the sum of theirs.
* epoch: the ratio of these times. fit: that of all calls of fit, with the tracing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from .packages import PACKAGES, Package

HERE = Path(__file__).absolute().parent
ROOT = HERE.parents[1]
ROUNDING = 1e-6  # A program whose losses differ by more runs in float64, too.
MINUTES = 10  # of a run, at most
KERAS = ("keras>=3.8,<3.17", "tensorflow>=2.18,<2.23")
LINE = "tf-lstm-ops: "  # how the last line of ``tf-lstm-ops run`` begins
SETTINGS = {
    **dict.fromkeys(
        ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"),
        "1",
    ),
    "CUDA_VISIBLE_DEVICES": "-1",
    "MPLBACKEND": "Agg",
    "PYTHONHASHSEED": "0",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
HEAD = (
    *("program", "fused layers", "losses", "float64"),
    *("seconds, stock", "seconds, run", "epoch", "fit"),
)


class ProgramError(Exception):
    """A command failed. The text is the last error that it printed."""


@dataclass(frozen=True)
class Run:
    """What a run of a program did.

    Attributes:
      fits: what `measure.py` wrote.
      summary: the last line of ``tf-lstm-ops run``; empty without it.
    """

    fits: list[dict[str, Any]]
    summary: str

    @property
    def seconds_of_fits(self) -> float:
        return sum(fit["seconds"] for fit in self.fits)

    @property
    def seconds_of_epochs(self) -> list[float]:
        """The least time of an epoch of each fit; none of a fit with one epoch."""
        later = [[epoch["seconds"] for epoch in fit["epochs"][1:]] for fit in self.fits]
        return [min(times) for times in later if times]

    @property
    def losses(self) -> list[float]:
        epochs = itertools.chain.from_iterable(fit["epochs"] for fit in self.fits)
        return [loss for epoch in epochs for _, loss in sorted(epoch["losses"].items())]


@dataclass(frozen=True)
class Row:
    """The measurements of a program.

    Attributes:
      fused: how many layers ran fused ops.
      difference: the largest relative one of the losses.
      between_stock: that between the runs without ``tf-lstm-ops run``.
      float64: the difference in float64; empty if it was not measured.
      epoch: the seconds of an epoch without and with it.
      fit: the ratio of the times of fit.
    """

    fused: str
    difference: float
    between_stock: float
    float64: str
    epoch: tuple[float, float]
    fit: float

    @property
    def ratio(self) -> float:
        return self.epoch[0] / self.epoch[1]

    @property
    def cells(self) -> list[str]:
        """The cells of the table after the name."""
        losses = f"{self.difference:.1e}"
        if self.between_stock:
            losses += f"; stock varies {self.between_stock:.1e}"
        seconds = (f"{each:.3f}" for each in self.epoch)
        return [self.fused, losses, self.float64, *seconds, f"{self.ratio:.2f}", f"{self.fit:.2f}"]


def command(line: Sequence[object], **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command.

    Args:
      line: the program and its arguments.
      options: those of `subprocess.run`.

    Returns:
      The process that ended, with its output.

    Raises:
      ProgramError: its status is not 0, or it took too long.
    """
    try:
        done = subprocess.run(
            [str(each) for each in line],
            **options,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60 * MINUTES,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramError(f"it took more than {MINUTES} minutes") from error
    if done.returncode:
        errors = re.findall(r"^[\w.]*(?:Error|ERROR|Exception)\b.*", done.stderr, re.MULTILINE)
        raise ProgramError(errors[-1] if errors else f"status {done.returncode}")
    return done


def wheel_of_this_clone(folder: Path) -> Path:
    """Builds a wheel.

    Args:
      folder: where it is written.

    Returns:
      The wheel.
    """
    command([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT])
    return max(folder.glob("tf_lstm_ops-*.whl"), key=lambda file: file.stat().st_mtime)


def environment_of(package: Package, folder: Path, wheel: Path) -> Path:
    """Makes the environment of a package, unless there is one with the same requirements.

    Args:
      package: the package.
      folder: that of all environments.
      wheel: of this package.

    Returns:
      The folder of the environment.

    Raises:
      ProgramError: pip fails.
    """
    environment = folder / package.name
    requirements = [*package.others, *KERAS]
    published = f"{package.name}=={package.version}"
    pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile"]
    note, text = environment / "requirements.txt", "\n".join([published, *requirements])
    if not note.exists() or note.read_text() != text:
        command([sys.executable, "-m", "venv", "--clear", environment])
        if package.with_dependencies:
            requirements.append(published)
        else:
            command([*pip, "--no-deps", published])
        command([*pip, *requirements, wheel])
        note.write_text(text)
    else:
        command([*pip, "--no-deps", "--force-reinstall", wheel])
    return environment


def run(environment: Path, program: str, *options: str, accelerated: bool) -> Run:
    """Runs a program once, and opens what it exported.

    Args:
      environment: the folder of its environment.
      program: its name.
      options: those of `measure.py`.
      accelerated: whether ``tf-lstm-ops run`` runs it.

    Returns:
      What it did.

    Raises:
      ProgramError: it fails, or a file that it wrote does not open without this package.
    """
    python = environment / "bin" / "python"
    start = [environment / "bin" / "tf-lstm-ops", "run"] if accelerated else [python]
    with tempfile.TemporaryDirectory() as temporary:
        result, folder = Path(temporary, "result.json"), Path(temporary, "work")
        folder.mkdir()
        where = {"cwd": folder, "env": {**os.environ, **SETTINGS}}
        line = [HERE / "measure.py", *options, result, HERE / "drivers" / f"{program}.py"]
        done = command([*start, *line], **where)
        models = [file.parent for file in folder.rglob("saved_model.pb")]
        if exports := [*models, *folder.rglob("*.tflite")]:
            command([python, HERE / "opens.py", *exports], **where)
        last = done.stderr.splitlines()[-1:] if accelerated else []
        return Run(json.loads(result.read_text()), "".join(last).removeprefix(LINE))


def largest_difference(one: Run, other: Run) -> float:
    """The largest relative difference between the losses of two runs.

    Args:
      one: a run.
      other: another run.

    Returns:
      The difference; infinity if only one of the runs has a number, or has more epochs.
    """
    if len(one.losses) != len(other.losses):
        return math.inf
    found = 0.0
    for a, b in zip(one.losses, other.losses, strict=True):
        if a != b and not (math.isnan(a) and math.isnan(b)):
            difference = abs(a - b) / max(abs(a), abs(b))
            found = max(found, math.inf if math.isnan(difference) else difference)
    return found


def seconds_of_epoch(runs: Iterable[Run]) -> float:
    """The least times of an epoch of each fit of all runs, their sum."""
    times = [min(each) for each in zip(*(run.seconds_of_epochs for run in runs), strict=True)]
    if not times:
        raise ProgramError("no fit had a second epoch")
    return sum(times)


def in_float64(environment: Path, program: str) -> str:
    """The largest relative difference of the losses in float64, as text."""
    kinds = (False, True)
    try:
        runs = [run(environment, program, "--float64", accelerated=kind) for kind in kinds]
    except ProgramError:
        return "fails"
    return f"{largest_difference(*runs):.1e}"


def measure(environment: Path, program: str, count: int) -> Row:
    """Measures a program.

    Args:
      environment: the folder of its environment.
      program: its name.
      count: of the runs without and with ``tf-lstm-ops run``, each.

    Returns:
      The row of the table.

    Raises:
      ProgramError: the program fails.
    """
    stock, fused = [], []
    for _ in range(count):
        stock.append(run(environment, program, accelerated=False))
        fused.append(run(environment, program, accelerated=True))
    difference = max(map(largest_difference, stock, fused))
    float64 = in_float64(environment, program) if difference > ROUNDING else ""
    times = [min(each.seconds_of_fits for each in runs) for runs in (stock, fused)]
    return Row(
        fused=fused[0].summary.removesuffix(" recurrent layers ran fused ops"),
        difference=difference,
        between_stock=max(largest_difference(stock[0], each) for each in stock),
        float64=float64,
        epoch=(seconds_of_epoch(stock), seconds_of_epoch(fused)),
        fit=times[0] / times[1],
    )


def version(environment: Path, name: str) -> str:
    """The version of a package in an environment."""
    path = [str(each) for each in environment.glob("lib/python*/site-packages")]
    return next(iter(metadata.distributions(name=name, path=path))).version


def machine(environments: Sequence[Path]) -> str:
    """The processor, date, commit, and the versions of TensorFlow and Keras.

    Args:
      environments: folders of environments.

    Returns:
      A line.
    """
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    pairs = (line.partition(":") for line in lines)
    facts = {key.strip(): value.strip() for key, _, value in pairs}
    processor = f"{facts['model name']}, cpu family {facts['cpu family']}, model {facts['model']}"
    git = ["git", "-C", ROOT, "rev-parse", "--short=7", "HEAD"]
    parts = [processor, time.strftime("%Y-%m-%d"), f"commit {command(git).stdout.strip()}"]
    for title, name in (("TensorFlow", "tensorflow"), ("Keras", "keras")):
        versions = sorted({version(environment, name) for environment in environments})
        parts.append(f"{title} {' and '.join(versions)}")
    return "; ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programs", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    known = [name for package in PACKAGES for name in package.programs]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(known)}")
    parser.add_argument("--folder", type=Path, required=True, help="of the environments")
    parser.add_argument("--wheel", type=Path, help="of this package (default: builds one)")
    parser.add_argument("--runs", type=int, default=2, help="of each kind (default 2)")
    arguments = parser.parse_args()
    names = arguments.names or known
    if unknown := set(names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    folder = arguments.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = (arguments.wheel or wheel_of_this_clone(folder)).absolute()

    chosen = [package for package in PACKAGES if not set(names).isdisjoint(package.programs)]
    environments: dict[str, Path | ProgramError] = {}
    for package in chosen:  # all, so that nothing is installed between measurements
        try:
            environments[package.name] = environment_of(package, folder, wheel)
        except ProgramError as error:
            environments[package.name] = error
    ratios = []
    print(f"| {' | '.join(HEAD)} |\n| --- | --- | --- |{' ---: |' * (len(HEAD) - 3)}")
    for package in chosen:
        for name in (each for each in package.programs if each in names):
            environment = environments[package.name]
            try:
                if isinstance(environment, ProgramError):
                    raise environment
                row = measure(environment, name, arguments.runs)
            except ProgramError as error:
                cells = [f"failed: {str(error).replace('|', '/')}", *[""] * (len(HEAD) - 2)]
            else:
                cells = row.cells
                ratios.append(row.ratio)
            title = f"{package.name} {package.version}, {package.programs[name]}"
            print(f"| {' | '.join([title, *cells])} |", flush=True)
    if ratios:
        print(f"\nEpoch: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}.")
    print(f"\n{machine([each for each in environments.values() if isinstance(each, Path)])}.")


if __name__ == "__main__":
    main()
