"""A whole run: measures all rows and writes the files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from peers import machine, report, roofline
from peers.capacity import Capacity
from peers.capacity import measure as measure_capacity
from peers.cases import Row
from peers.frameworks import PEERS, Peer
from peers.runner import Bench


def run(
    rows: Sequence[Row],
    peers: Mapping[str, Peer],
    capacity: Capacity,
    rounds: int,
    folder: Path,
) -> report.Report:
    """Measures the rows, prints the progress, writes results.json, table.md and bench.png.

    results.json and table.md are written again after each row. An interrupt ends the run. The
    report then has fewer results than planned.

    Args:
      rows: the rows.
      peers: the peers to measure, by name. They must include the first peer of each row.
      capacity: of the processors, for as many threads as each peer gets.
      rounds: the number of rounds per peer.
      folder: an existing folder to write to.

    Returns:
      The report.

    Raises:
      OSError: the folder does not exist or cannot be written to.
    """
    from peers import plot  # not above: `command` first says if matplotlib is missing

    threads = capacity.threads
    found = report.Report(machine.describe(capacity), roofline.measure(rows, threads), len(rows))
    found.save(folder)
    _print_missing(peers)
    try:
        with Bench(peers, threads, rounds, memory=sys.platform == "linux") as bench:
            for number, row in enumerate(rows, 1):
                _measure(bench, row, f"{number:2}/{len(rows)}", found)
                found.save(folder)
        found.roofline = found.roofline.best(roofline.measure(rows, threads))
        found.machine["capacity at the end"] = str(measure_capacity(threads))
    except KeyboardInterrupt:
        print("\ninterrupted")
    found.save(folder)
    plot.save(folder / "bench.png", found)
    return found


def _measure(bench: Bench, row: Row, number: str, found: report.Report) -> None:
    print(f"{number}  {row.name}\n       ready:", end="", flush=True)
    measured = bench.run(row, _print_ready)
    result = report.RowResult(row, measured, found.machine["commit"], found.machine["date"])
    found.results.append(result)
    print(f"\n       ours {report.own_cell(result)}", end="")
    for name in row.peers[1:]:
        if name in result.found:
            print(f"; {PEERS[name].label} {report.cell(result.found[name])}", end="")
    print(flush=True)


def _print_ready(name: str, status: str) -> None:
    print(f" {name}" + ("" if status == "measured" else f" ({status})"), end="", flush=True)


def _print_missing(peers: Mapping[str, Peer]) -> None:
    for peer in peers.values():
        if not peer.is_installed():
            print(f"{peer.label} is not installed: pip install {peer.pip}")
    print(flush=True)
