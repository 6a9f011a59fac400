"""Measures which lines and branches of the Python package and which lines of cc the tests run.

    python scripts/measure_coverage.py                      # the default suite
    python scripts/measure_coverage.py tests/block_cell     # or any arguments of pytest

It needs the packages coverage and gcovr beside those of the tests, and GCC. The C++ library is
built with counters into .build/coverage. The backends for GPUs are not part of that library. It
prints the figures of each folder and the lines that nothing has run, and writes both to
.build/coverage.txt.
"""

import collections
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".build" / "coverage"
DATA = FOLDER / "python"
# Tests that raise an interrupt at any line, also while the package coverage holds its lock.
LEFT_OUT = ["tests/session/test_session_interrupts.py::test_a_stream_is_free"]
SETTINGS = """
[run]
branch = true
source_pkgs = tf_lstm_ops
parallel = true
patch = subprocess
data_file = {data}
[report]
exclude_also =
    if TYPE_CHECKING:
    raise NotImplementedError
"""


def run(*command: str, **variables: str) -> str:
    """The output of a command that succeeds."""
    environment = {**os.environ, **variables}
    result = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return result.stdout


def measure(arguments: list[str]) -> int:
    """Runs the tests with the counters. Returns pytest's exit status."""
    run(sys.executable, "build_defs/native.py", "build", "--coverage")
    for old in (*FOLDER.glob("*.gcda"), *FOLDER.glob("python*")):
        old.unlink()
    (FOLDER / "settings").write_text(SETTINGS.format(data=DATA))
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={FOLDER / 'settings'}"]
    environment = {**os.environ, "TF_LSTM_OPS_LIBRARY": str(FOLDER / "tf_lstm_ops.so")}
    # No counters of cc/core's own tests, which are programs of their own.
    command += ["-m", "pytest", *(f"--deselect={test}" for test in LEFT_OUT), *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def python_coverage() -> dict[str, tuple[int, int, list[str]]]:
    """For each file: lines and branches, how many of them ran, and what did not."""
    settings = f"--rcfile={FOLDER / 'settings'}"
    run(sys.executable, "-m", "coverage", "combine", "-q", settings)
    output = DATA.with_suffix(".json")
    run(sys.executable, "-m", "coverage", "json", "-q", settings, "-o", str(output))
    found = {}
    for name, file in json.loads(output.read_text())["files"].items():
        summary = file["summary"]
        total = summary["num_statements"] + summary["num_branches"]
        ran = summary["covered_lines"] + summary["covered_branches"]
        missing = [f"{a}->{b}" for a, b in file["missing_branches"]]
        path = name[name.index("tf_lstm_ops") :]
        found[path] = total, ran, [*map(str, file["missing_lines"]), *missing]
    return found


def native_coverage() -> dict[str, tuple[int, int, list[str]]]:
    """The same of the lines of cc. A line compiled for several instruction sets counts once."""
    output = DATA.with_name("native.json")
    # GCC counts a branch for each call that may throw, so branches would say little.
    options = ["--exclude-branches-by-pattern", ".*", "--gcov-ignore-parse-errors=all"]
    merge = ["--merge-mode-functions=merge-use-line-min", "--filter", "cc/"]
    run(sys.executable, "-m", "gcovr", *options, *merge, "--json", str(output), str(FOLDER))
    found = {}
    for file in json.loads(output.read_text())["files"]:
        counts: dict[int, int] = collections.Counter()
        for line in file["lines"]:
            counts[line["line_number"]] += line["count"]
        missing = [str(number) for number, count in sorted(counts.items()) if not count]
        found[file["file"]] = len(counts), len(counts) - len(missing), missing
    return found


def report(files: dict[str, tuple[int, int, list[str]]], depth: int) -> Iterable[str]:
    """A line for each folder of this depth and for all, then a line for each incomplete file."""
    folders: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
    for name, (total, ran, _) in sorted(files.items()):
        for folder in ("all", "/".join(name.split("/")[:-1][:depth])):
            folders[folder][0] += total
            folders[folder][1] += ran
    for folder, (total, ran) in sorted(folders.items()):
        yield f"{100 * ran / total:6.1f} % of {total:5}  {folder}"
    for name, (_, _, missing) in sorted(files.items()):
        if missing:
            yield f"  not run: {name}: {', '.join(missing)}"


def main() -> int:
    status = measure(sys.argv[1:])
    lines = ["Python, lines and branches:", *report(python_coverage(), 2)]
    lines += ["C++ without the backends for GPUs, lines:", *report(native_coverage(), 3)]
    text = "\n".join(lines)
    FOLDER.with_suffix(".txt").write_text(text + "\n")
    print(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
