"""Measures the latency of one step that keeps the states, and of a whole sequence, of one row.

    python benchmarks/latency.py [--output benchmarks] [--groups units,models] [--rtneural FILE]

The peers of a case run in one process and take turns, so that a change of the processor's clock
touches all of them. Each has one thread, except in whole sequences, where one and two are tried and
the better number counts. Their outputs are compared before.

RTNeural is not part of this program. --rtneural takes its times from a JSON file,
{cell: {units: {backend: nanoseconds}}}, of a layer with one input. The best backend counts.

With --output DIR it writes DIR/latency.json and DIR/latency.md. It takes about a quarter of an
hour. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from one_row import page
from one_row.cases import CASES, Case
from one_row.peers import PEERS
from peers import capacity
from peers.frameworks.tensorflow import set_threads
from peers.machine import describe


def chosen(arguments: argparse.Namespace) -> list[Case]:
    """The cases to measure."""
    groups = arguments.groups.split(",")
    if unknown := sorted(set(groups) - CASES.keys()):
        raise SystemExit(f"--groups knows no {', '.join(unknown)}; there are {', '.join(CASES)}")
    cases = [case for group in groups for case in CASES[group]]
    return [case for case in cases if fnmatch.fnmatch(case.name, arguments.cases)]


def measure_all(
    cases: Sequence[Case], names: Sequence[str], rounds: int
) -> dict[str, dict[str, Any]]:
    """Measures cases and prints the progress.

    Args:
      cases: the cases.
      names: of the peers. Those that are not installed are left out.
      rounds: the number of rounds.

    Returns:
      By the name of the case, the records of its peers.
    """
    from one_row.measure import measure  # after set_threads, as it makes ops

    if unknown := sorted(set(names) - PEERS.keys()):
        raise SystemExit(f"--peers knows no {', '.join(unknown)}; there are {', '.join(PEERS)}")
    peers = {name: peer for name, peer in PEERS.items() if name in names}
    for name in [name for name, peer in peers.items() if not peer.is_installed]:
        print(f"{peers.pop(name).heading} is not installed", flush=True)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        for case in cases:
            # What libraries print, such as the conversion for LiteRT, goes to standard error.
            with contextlib.redirect_stdout(sys.stderr):
                found[case.name] = measure(case, peers, rounds, Path(folder))
            times = [f"{name} {page.cell(r)}" for name, r in found[case.name].items()]
            print(f"{case.name}: {', '.join(times)}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", metavar="DIR", type=Path, help="write latency.json, latency.md")
    parser.add_argument("--groups", metavar="NAMES", default=",".join(CASES), help="%(default)s")
    parser.add_argument("--cases", metavar="GLOB", default="*", help="of the names of cases")
    parser.add_argument("--peers", metavar="NAMES", default=",".join(PEERS), help="%(default)s")
    parser.add_argument("--rounds", metavar="N", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--rtneural", metavar="FILE", type=Path, help="times of RTNeural")
    parser.add_argument(capacity.OPTION, action="store_true", help=capacity.HELP)
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error(f"--rounds must be at least 1 but is {arguments.rounds}")
    rtneural = json.loads(arguments.rtneural.read_text()) if arguments.rtneural else {}
    try:
        found = capacity.check(2, arguments.any_capacity)
    except capacity.TooLow as error:
        raise SystemExit(str(error)) from error
    set_threads(1)
    machine = describe(found)
    results = measure_all(chosen(arguments), arguments.peers.split(","), arguments.rounds)
    record = {"machine": machine, "rtneural": rtneural, "results": results}
    if arguments.output:
        (arguments.output / "latency.json").write_text(json.dumps(record, indent=1) + "\n")
        (arguments.output / "latency.md").write_text(page.document(record))
    else:
        print(page.document(record))


if __name__ == "__main__":
    main()
