"""Adds the results of runs to benchmarks/results and writes benchmarks/table.md from all of them.

    python benchmarks/publish.py [--part NAME] [RESULTS.json ...]

RESULTS.json are files that `python benchmarks/peers` wrote. benchmarks/results has a file for each
family of processors. A measured row replaces the row of the same name. If both are of the same
commit, without changes, peers that were not measured again stay. With --part the results have a
file and a part of the page of their own.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
from pathlib import Path

from peers import plot
from peers.case_sets import CASES
from peers.machine import FAMILIES, heading
from peers.report import Report, RowResult, page

FOLDER = Path(__file__).resolve().parent
PLOTTED = "amd_avx512"  # the family in bench.png


def merge(old: Report, new: Report) -> Report:
    """Joins the published report of a family of processors with that of a later run.

    Args:
      old: the published report.
      new: the report of the run.

    Returns:
      A report with those rows of both that the sets of rows still have. Its machine has the
      properties of both, unless all rows are those of the run.

    Raises:
      ValueError: the processors or the numbers of threads differ.
    """
    published, run = (
        f"{heading(report.machine)}, {report.roofline.threads} threads" for report in (old, new)
    )
    if published != run:
        raise ValueError(f"the published results are of {published}. Received: {run}")
    rows = {result.row.name: result for result in old.results}
    for result in new.results:
        name = result.row.name
        rows[name] = _joined(rows[name], result) if name in rows else result
    order = [row.name for cases in CASES.values() for row in cases]
    results = [rows[name] for name in order if name in rows]
    if all(result.date == new.machine["date"] for result in results):
        return dataclasses.replace(new, results=results)
    machine = {
        key: "; ".join(
            dict.fromkeys(
                value
                for report in (old, new)
                if key in report.machine
                for value in report.machine[key].split("; ")
            )
        )
        for key in {**old.machine, **new.machine}
    }
    for key in ("commit", "date"):
        values = {value: None for r in results for value in getattr(r, key).split("; ")}
        machine[key] = "; ".join(sorted(values))
    return Report(machine, old.roofline.best(new.roofline), len(results), results)


def _joined(old: RowResult, new: RowResult) -> RowResult:
    """The new result, with the old one's other peers if both are of the same code."""
    again = {name: m for name, m in new.found.items() if m.status != "not installed"}
    if old.found.keys() <= again.keys() or old.commit != new.commit or not new.commit.isalnum():
        return new
    found = {**new.found, **old.found, **again}
    return dataclasses.replace(new, found=found, date=f"{old.date}; {new.date}")


def publish(runs: list[Path], folder: Path = FOLDER, part: str = "") -> None:
    """Adds runs to the results in a folder; writes its table.md and bench.png.

    Args:
      runs: the files of the runs.
      folder: a folder with a folder `results`.
      part: of the page, for runs that are not to be joined with the other results of the family.

    Raises:
      ValueError: a run has another processor or number of threads than the published results.
    """
    for run in runs:
        found = Report.from_json(run.read_text())
        name = found.machine["family"]
        if part:
            found.machine = {"family": name, "part": part, **found.machine}
            name += f"_{re.sub('[^a-z0-9]+', '_', part)}"
        file = folder / "results" / f"{name}.json"
        if file.exists():
            found = merge(Report.from_json(file.read_text()), found)
        file.write_text(found.as_json())
    reports = {
        file.stem: Report.from_json(file.read_text())
        for file in sorted((folder / "results").glob("*.json"))
    }
    missing = [name for family, name in FAMILIES.items() if family not in reports]
    (folder / "table.md").write_text(page(list(reports.values()), missing))
    if runs and not part and PLOTTED in reports:
        plot.save(folder / "bench.png", reports[PLOTTED])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Add runs to the published results.")
    parser.add_argument("runs", metavar="results.json", type=Path, nargs="*")
    parser.add_argument("--part", default="", help="such as 'sessions': a part of the page")
    arguments = parser.parse_args()
    publish(arguments.runs, part=arguments.part)
