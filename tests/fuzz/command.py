"""The command line of a fuzzer.

It runs the calls in a process of its own. A wrong result, a wrong refusal, a call of more than five
minutes and the end of that process are failures. The command prints one line that runs the failing
call alone.
"""

import argparse
import importlib
import mmap
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
LIMIT = 300  # seconds for one call, on a machine that may be busy


def main(module: str, runner: str, description: str | None) -> int:
    """Runs `python -m module`. `runner` is the module that runs the calls, in the tests folder."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--calls", type=int, default=10_000, help="how many calls")
    parser.add_argument("--seed", type=int, default=0, help="the calls depend on it only")
    parser.add_argument("--first", type=int, default=0, help="the number of the first call")
    parser.add_argument("--each", type=int, help="so many calls of each name, of those of --calls")
    parser.add_argument("--failures", type=int, default=1, help="after how many to stop")
    parser.add_argument("--counts", action="store_true", help="print how often each name ran")
    parser.add_argument("--record", help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.record:
        return work(parsed, runner)
    with tempfile.NamedTemporaryFile() as record:
        record.write(bytes(8))
        record.flush()
        return supervise(module, record.name)


def work(parsed: argparse.Namespace, runner: str) -> int:
    """Runs the calls in this process."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    # Where Python looks for modules as pytest does.
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != TESTS.parent]
    sys.path += [str(TESTS), str(TESTS.parent)]
    with open(parsed.record, "r+b") as file, mmap.mmap(file.fileno(), 8) as record:
        numbers = range(parsed.first, parsed.first + parsed.calls)
        run = importlib.import_module(runner).run
        counts = run(parsed.seed, numbers, record, parsed.failures, parsed.each)
    if parsed.counts:
        for name, count in sorted(counts.items()):
            print(f"{count:8} {name}")
    return 1 if counts["failed"] else 0


def supervise(module: str, record: str) -> int:
    """Runs this command in a process that may die or hang.

    Returns:
      Its exit status, which is not 0 if it did.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, _paths()))}
    command = [sys.executable, "-m", module, *sys.argv[1:], "--record", record]
    process = subprocess.Popen(command, cwd=TESTS.parent, env=environment)
    last, since = None, time.monotonic()
    while True:
        try:
            status = process.wait(timeout=1)
            break
        except subprocess.TimeoutExpired:
            pass
        number = int.from_bytes(Path(record).read_bytes()[:8], "little")
        if number != last:
            last, since = number, time.monotonic()
        elif time.monotonic() - since > LIMIT:
            print(f"a call took more than {LIMIT} s", file=sys.stderr)
            process.kill()
    if status < 0 or status not in (0, 1, 2):
        number = int.from_bytes(Path(record).read_bytes()[:8], "little")
        command = ["python", "-m", module, *_without_numbers(sys.argv[1:])]
        repeat = shlex.join([*command, "--first", str(number), "--calls", "1"])
        print(f"the process ended with status {status}. To repeat: {repeat}", file=sys.stderr)
    return 0 if status == 0 else 1


def _paths() -> list[str]:
    return os.environ.get("PYTHONPATH", "").split(os.pathsep)


def _without_numbers(arguments: list[str]) -> list[str]:
    """The arguments but --first and --calls."""
    found, rest = [], iter(arguments)
    for argument in rest:
        if argument in ("--first", "--calls"):
            next(rest, None)
        elif not argument.startswith(("--first=", "--calls=")):
            found.append(argument)
    return found
