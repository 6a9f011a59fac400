"""Installs one wheel of this package beside every TensorFlow it claims to work with.

Builds the wheel once, or takes one of a release. Then for each version makes a fresh virtual
environment with that TensorFlow and this wheel, and runs parity_check.py in it; with --pytest the
test suite too, with --stability the part of it that reads the golden files. Prints a Markdown
table. A Python that a TensorFlow has no wheel for is passed over for the next one found.

    python3 scripts/try_tensorflow_versions.py [--pytest | --stability] [--wheel FILE] [VERSION ...]
"""

from __future__ import annotations

import argparse
import email
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = [
    "tensorflow==2.18.*",
    "tensorflow==2.19.*",
    "tensorflow==2.20.*",
    "tensorflow==2.21.*",
    "tf-nightly",
]
STABILITY = ROOT / "tests" / "stability" / "test_saved_files.py"


class Failed(Exception):
    """A step did not work; the message says which and why."""


@dataclass
class Row:
    """A line of the table."""

    tensorflow: str
    keras: str = ""
    python: str = ""
    library: str = ""
    result: str = ""
    seconds: float = 0.0

    def markdown(self) -> str:
        cells = [self.tensorflow, self.keras, self.python, self.library, self.result]
        return "| " + " | ".join([*cells, f"{self.seconds:.0f}"]) + " |"


HEADER = """| TensorFlow | Keras | Python | library (SHA-256) | result | seconds |
| --- | --- | --- | --- | --- | --- |"""


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(command: list[str], log: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command; everything it prints is appended to the log."""
    result = subprocess.run(command, capture_output=True, text=True, cwd=log.parent)
    with log.open("a") as file:
        file.write(f"$ {' '.join(command)}\n{result.stdout}{result.stderr}\n")
    return result


def must(command: list[str], log: Path) -> None:
    result = run(command, log)
    if result.returncode != 0:
        last = (result.stderr or result.stdout).strip().splitlines() or ["no output"]
        raise Failed(f"{last[-1]} (see {log})")


def check_parity(python: str, log: Path) -> dict[str, Any]:
    """The report of parity_check.py."""
    result = run([python, str(ROOT / "scripts" / "parity_check.py")], log)
    try:
        report = json.loads(result.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise Failed(f"the check died with exit status {result.returncode} (see {log})") from None
    if report["failures"]:
        first = report["failures"][0].splitlines()[0]
        raise Failed(f"{first} (see {log})")
    return report


def run_tests(python: str, tests: Path, log: Path) -> str:
    """pytest's closing summary."""
    result = run([python, "-m", "pytest", "-q", str(tests)], log)
    summary = (result.stdout.strip().splitlines() or ["no output"])[-1].strip("= ")
    if result.returncode != 0:
        raise Failed(f"{summary} (see {log})")
    return summary


def pythons(extra: list[str]) -> Iterator[str]:
    """Interpreters of this machine: those named, this one, the path's, pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [
        *extra,
        sys.executable,
        *(shutil.which(f"python3.{minor}") for minor in range(10, 14)),
        *(str(path) for path in sorted(pyenv.glob("3.1[0-3].*/bin/python"))),
    ]
    program = "import sys; print(*sys.version_info[:2], sep='.')"
    found = set()
    for python in filter(None, candidates):
        result = subprocess.run([python, "-c", program], capture_output=True, text=True)
        version = result.stdout.strip()
        if result.returncode == 0 and version not in found:
            found.add(version)
            yield python


def requirements(wheel: Path, extras: set[str]) -> list[str]:
    """What the wheel needs, without TensorFlow, whose version is the matter here."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    needed = []
    for requirement in metadata.get_all("Requires-Dist", []):
        name, _, marker = requirement.partition(";")
        wanted = not marker or any(f'extra == "{extra}"' in marker for extra in extras)
        if wanted and not name.startswith("tensorflow"):
            needed.append(name.strip())
    return needed


def install(tensorflow: str, wheel: Path, needed: list[str], folder: Path, python: str) -> str:
    """A fresh virtual environment with that TensorFlow and the wheel: its interpreter."""
    log = folder / "log.txt"
    shutil.rmtree(folder / "venv", ignore_errors=True)
    must([python, "-m", "venv", str(folder / "venv")], log)
    inside = str(folder / "venv" / "bin" / "python")
    pip = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # Nightlies are pre-releases: so for this package alone, not for what it needs.
    must(
        [*pip, f"{tensorflow}>=0.dev0" if tensorflow == "tf-nightly" else tensorflow, *needed], log
    )
    must([*pip, "--no-deps", str(wheel)], log)
    return inside


def try_version(
    tensorflow: str, wheel: Path, interpreters: list[str], folder: Path, tests: Path | None
) -> Row:
    row = Row(tensorflow)
    start = time.monotonic()
    needed = requirements(wheel, {"test"} if tests else set())
    try:
        python = first_that_fits(tensorflow, wheel, needed, interpreters, folder)
        log = folder / "log.txt"
        progress("  parity check")
        report = check_parity(python, log)
        row.tensorflow, row.keras = report["tensorflow"], report["keras"]
        row.python, row.library = report["python"], report["library"][:12]
        row.result = "agrees"
        if tests:
            progress("  pytest")
            row.result = run_tests(python, tests, log)
    except Failed as error:
        row.result = f"FAILED: {error}"
    row.seconds = time.monotonic() - start
    return row


def first_that_fits(
    tensorflow: str, wheel: Path, needed: list[str], interpreters: list[str], folder: Path
) -> str:
    """The environment of the first interpreter that this TensorFlow can be installed for."""
    reasons = []
    for python in interpreters:
        progress(f"  installing with {python}")
        try:
            return install(tensorflow, wheel, needed, folder, python)
        except Failed as error:
            reasons.append(str(error))
    raise Failed("; ".join(reasons))


def build_wheel(work: Path) -> Path:
    """Builds the wheel of this checkout."""
    progress("building the wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(work), str(ROOT)]
    must(build, work / "build.txt")
    [wheel] = work.glob("*.whl")
    return wheel


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION")
    parser.add_argument("--pytest", action="store_true", help="run the test suite as well")
    parser.add_argument("--stability", action="store_true", help="read the golden files as well")
    parser.add_argument("--python", action="append", default=[], help="an interpreter to prefer")
    parser.add_argument("--wheel", type=Path, help="a wheel to try instead of a new one")
    parser.add_argument("--work", type=Path, help="folder for environments and logs, kept")
    options = parser.parse_args()

    work = options.work or Path(tempfile.mkdtemp(prefix="tf_versions_"))
    work = work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    interpreters = list(pythons(options.python))
    progress(f"logs in {work}")
    wheel = options.wheel.resolve() if options.wheel else build_wheel(work)

    tests = ROOT / "tests" if options.pytest else STABILITY if options.stability else None
    rows = []
    for number, version in enumerate(options.versions, 1):
        progress(f"[{number}/{len(options.versions)}] {version}")
        folder = work / version.replace("*", "x").replace("==", "-")
        folder.mkdir(exist_ok=True)
        row = try_version(version, wheel, interpreters, folder, tests)
        shutil.rmtree(folder / "venv", ignore_errors=True)  # more than a gigabyte each
        progress(f"  {row.result} ({row.seconds:.0f} s)")
        rows.append(row)
    print(HEADER, *(row.markdown() for row in rows), sep="\n")
    return sum(row.result.startswith("FAILED") for row in rows)


if __name__ == "__main__":
    sys.exit(main())
