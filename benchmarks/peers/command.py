"""The command line: compares the speed of the CPU engine with its alternatives."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from peers import capacity, session
from peers.case_sets import CASES
from peers.cases import Row
from peers.frameworks import PEERS
from tf_lstm_ops.cli import CommandError, UsageError, output, require_matplotlib

INTERRUPTED = 130  # a shell's exit status after an interrupt


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark.

    Args:
      argv: the arguments; None: those of this process.

    Returns:
      The exit status: 0, 1 if the benchmark cannot run, or 130 after an interrupt. Wrong usage
      exits the process with 2.
    """
    parser = _parser()
    try:
        return run(parser.parse_args(argv))
    except UsageError as error:
        parser.error(str(error))
    except CommandError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python benchmarks/peers",
        description="Compare the CPU engine's speed with Keras, PyTorch, ONNX Runtime, "
        "OpenVINO, tract and JAX, where they are installed. All peers get the same weights and "
        "input. Their results are compared with ours, then all are timed in interleaved rounds.",
        epilog=output.examples(
            "python benchmarks/peers --peers keras",
            "python benchmarks/peers --tasks 'training*' --rounds 3",
        ),
        formatter_class=output.HelpWithDefaults,
    )
    parser.add_argument(
        "--output", metavar="DIR", type=Path, default="tf_lstm_ops_bench", help="folder to write"
    )
    parser.add_argument(
        "--full", action="store_true", help="measure all tasks of the tables; half an hour or more"
    )
    parser.add_argument(
        "--cases",
        metavar="NAMES",
        default="tables",
        help=f"sets of tasks, separated by commas: {', '.join(CASES)}",
    )
    parser.add_argument(
        "--tasks",
        metavar="GLOB",
        action="append",
        help="measure only the tasks whose names match, such as 'training*'; may be repeated",
    )
    parser.add_argument(
        "--peers",
        metavar="NAMES",
        default=",".join(name for name, peer in PEERS.items() if not peer.ours),
        help="names of the peers to measure, separated by commas",
    )
    parser.add_argument("--rounds", metavar="N", type=int, default=9, help="rounds per peer")
    parser.add_argument("--threads", metavar="N", type=int, default=2, help="threads per peer")
    parser.add_argument(capacity.OPTION, action="store_true", help=capacity.HELP)
    output.add_json(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Measures the rows and writes the report.

    Args:
      arguments: those of the command line.

    Returns:
      0, or 130 after an interrupt.

    Raises:
      UsageError: an argument is wrong.
      CommandError: matplotlib is missing, the folder cannot be written to, or the processors have
        too low a capacity.
    """
    for name in ("rounds", "threads"):
        if (value := getattr(arguments, name)) < 1:
            raise UsageError(f"--{name} must be at least 1 but is {value}")
    rows = select_rows(arguments.tasks, arguments.full, arguments.cases.split(","))
    names = arguments.peers.split(",")
    if unknown := sorted(set(names) - PEERS.keys()):
        raise UsageError(f"--peers knows no {_listed(unknown)}; there are {', '.join(PEERS)}")
    peers = {name: peer for name, peer in PEERS.items() if peer.ours or name in names}
    require_matplotlib()
    try:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / "table.md").touch()
    except OSError as error:
        raise CommandError(
            f"cannot write to {arguments.output} ({error.strerror}): "
            "choose another folder with --output DIR"
        ) from error
    with output.json_only(arguments.json):
        try:
            found = capacity.check(arguments.threads, arguments.any_capacity)
        except capacity.TooLow as error:
            raise CommandError(str(error)) from error
        report = session.run(rows, peers, found, arguments.rounds, arguments.output)
        names = ("table.md", "bench.png", "results.json")
        files = [str(file) for name in names if (file := arguments.output / name).exists()]
        for file in files:
            print(f"written {file}")
    if arguments.json:
        output.print_json({**json.loads(report.as_json()), "files": files})
    return 0 if len(report.results) == len(rows) else INTERRUPTED


def select_rows(
    patterns: Sequence[str] | None, full: bool, sets: Sequence[str] = ("tables",)
) -> list[Row]:
    """Selects the rows to measure.

    Args:
      patterns: glob patterns of names; None or empty: no selection by name.
      full: without patterns, whether to take all rows of the tables or the quick ones.
      sets: the names of sets in case_sets.CASES.

    Returns:
      The rows, in the order of case_sets.CASES.

    Raises:
      UsageError: a set is unknown, or a pattern matches none of the rows in the sets.
    """
    if unknown := sorted(set(sets) - CASES.keys()):
        raise UsageError(f"--cases knows no {_listed(unknown)}; there are {', '.join(CASES)}")
    rows = {name: rows for name, rows in CASES.items() if name in sets}
    if not patterns:
        return [r for name in rows for r in rows[name] if full or r.quick or name != "tables"]
    found = [row for name in rows for row in rows[name]]
    names = [row.name for row in found]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise UsageError(f"--tasks {pattern!r} matches none of:\n" + "\n".join(names))
    matches = {name for pattern in patterns for name in fnmatch.filter(names, pattern)}
    return [row for row in found if row.name in matches]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name or "''" for name in names)
