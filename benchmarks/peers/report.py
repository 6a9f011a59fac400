"""The results of a run, as results.json and table.md."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from peers.cases import Row
from peers.frameworks import PEERS
from peers.machine import heading
from peers.roofline import Roofline, floor_seconds
from peers.runner import Measurement

GROUPS = {
    "inference": "Inference",
    "models": "Models",
    "int8": "Types of weights",
    "training": "Training",
    "other": "Other rows",
}
_SCALES = {"ms": 1e3, "MB": 1e-6}
_HEAD = """# Benchmark of tf_lstm_ops

* ours: minimum / median time of one call, over all rounds
* roofline %: the time by the roofline model (arithmetic and memory of the processor) in
  percent of our minimum
* other columns: the time of the peer divided by our time in the same round, the median of all
  rounds. Above 1, this package is faster
* memory: the growth of the peak memory of a new process by its first training step; of a peer,
  divided by ours. Above 1, this package needs less"""


@dataclasses.dataclass
class RowResult:
    """The measurements of a row.

    Attributes:
      row: the row.
      found: the measurements by the name of the peer.
      commit, date: what was measured, and when; see `machine.describe`.
    """

    row: Row
    found: dict[str, Measurement]
    commit: str
    date: str

    @property
    def ours(self) -> Measurement:
        """The measurement of ours, the row's first peer."""
        return self.found[self.row.peers[0]]

    def floor_fraction(self, roofline: Roofline) -> float | None:
        """The time by the roofline model divided by our minimum time.

        Args:
          roofline: the measured rates.

        Returns:
          A number from 0 to 1; None if the model does not cover the row or it was not measured.
        """
        floor = floor_seconds(self.row, roofline)
        return floor / min(self.ours.values) if floor and self.ours.values else None


@dataclasses.dataclass
class Report:
    """The results of a run.

    Attributes:
      machine: the properties of the machine, as text by name; see `machine.describe`.
      roofline: measured before the first row and, unless the run was interrupted, after the last.
      planned: the number of rows of the run; an interrupted run has fewer results.
      results: one for each row that is done.
    """

    machine: dict[str, Any]
    roofline: Roofline
    planned: int
    results: list[RowResult] = dataclasses.field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Writes results.json and table.md, each completely or not at all.

        Args:
          folder: an existing folder.
        """
        for name, text in {"results.json": self.as_json(), "table.md": self.as_table()}.items():
            unfinished = folder / f"{name}.part"
            unfinished.write_text(text)
            unfinished.replace(folder / name)

    def as_json(self) -> str:
        """The content of results.json.

        Returns:
          JSON: machine, roofline, planned and rows. Measurements are in seconds or bytes; their
          summaries are in the row's unit.
        """
        rows = []
        for result in self.results:
            peers = {
                name: {**dataclasses.asdict(m), **summary(m, result.row.unit)}
                for name, m in result.found.items()
            }
            floor = floor_seconds(result.row, self.roofline)
            rows.append(
                {
                    **dataclasses.asdict(result.row),
                    "commit": result.commit,
                    "date": result.date,
                    "unit": result.row.unit,
                    "floor_ms": None if floor is None else floor * 1e3,
                    "floor_fraction": result.floor_fraction(self.roofline),
                    "peers": peers,
                }
            )
        head = {"machine": self.machine, "roofline": dataclasses.asdict(self.roofline)}
        return json.dumps({**head, "planned": self.planned, "rows": rows}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Reads the content of results.json.

        Args:
          text: what `as_json` returned.

        Returns:
          The report. The peers of a row are those that were measured.
        """
        found = json.loads(text)
        limits = found["roofline"]
        bandwidth = {int(size): rate for size, rate in limits["bandwidth"].items()}
        results = [
            RowResult(
                Row(**_fields(Row, row) | {"peers": tuple(row["peers"])}),
                {name: Measurement(**_fields(Measurement, m)) for name, m in row["peers"].items()},
                row["commit"],
                row["date"],
            )
            for row in found["rows"]
        ]
        roofline = Roofline(limits["threads"], limits["flops"], bandwidth)
        return cls(found["machine"], roofline, found["planned"], results)

    def as_table(self) -> str:
        """The content of table.md.

        Returns:
          Markdown.
        """
        return page([self])

    def section(self) -> Iterator[str]:
        """The part of a table.md that has the results of this report.

        Yields:
          Markdown, below the heading of the processor.
        """
        yield f"\n## {heading(self.machine)}\n"
        yield from self._head()
        yield from self._tables()
        yield from self._remarks()

    def _head(self) -> Iterator[str]:
        roofline = self.roofline
        sizes = ", ".join(f"{v / 1e9:.0f} from {_size(n)}" for n, v in roofline.bandwidth.items())
        yield from (f"* {key}: {value}" for key, value in self.machine.items())
        if "processor family" in self.machine:
            yield "* peers may use more instructions than the limits say: ONNX Runtime does"
        yield f"* peak arithmetic: {roofline.flops / 1e9:.0f} GFLOP/s on {roofline.threads} threads"
        yield f"* read rate, GB/s: {sizes}" if sizes else "* read rate: not measured"
        if len(self.results) < self.planned:
            yield f"* interrupted: {len(self.results)} of {self.planned} tasks are done"

    def _tables(self) -> Iterator[str]:
        for group, title in GROUPS.items():
            results = [r for r in self.results if r.row.group == group]
            if results:
                yield f"\n### {title}\n"
                yield from self._table(results)

    def _table(self, results: list[RowResult]) -> Iterator[str]:
        there = {name for r in results for name in r.found if name != r.row.peers[0]}
        peers = [name for name in PEERS if name in there]
        heads = ["task", "ours", "roofline %", *(PEERS[name].label for name in peers)]
        with_memory = [n for n in peers if any(memory_of(r, n) for r in results)]
        if with_memory:
            heads += ["memory, MB", *(f"{PEERS[name].label}, memory" for name in with_memory)]
        yield f"| {' | '.join(heads)} |"
        yield "|---|" + "---:|" * (len(heads) - 1)
        for result in results:
            fraction = result.floor_fraction(self.roofline)
            cells = [
                result.row.name,
                own_cell(result),
                f"{100 * fraction:.0f}" if fraction else "–",
            ]
            cells += [cell(result.found.get(name)) for name in peers]
            if with_memory:
                ours = result.ours.memory
                cells.append(f"{ours * _SCALES['MB']:.0f}" if ours else "–")
                ratios = [memory_of(result, name) for name in with_memory]
                cells += [f"{ratio:.2f}" if ratio else "–" for ratio in ratios]
            yield f"| {' | '.join(cells)} |"

    def _remarks(self) -> Iterator[str]:
        """The commits of rows, the reasons for cells without a number, the notes on the peers."""
        remarks: dict[str, None] = {}  # a set in order
        most = statistics.mode(r.commit for r in self.results) if self.results else ""
        for result in self.results:
            if result.commit != most:
                remarks[f"{result.row.name}: commit {result.commit}, {result.date}"] = None
            for name, m in result.found.items():
                label = PEERS[name].label
                if m.status == "not installed":
                    remarks[f"{label} is not installed: {m.message}"] = None
                elif m.status != "measured":
                    remarks[f"{result.row.name}: {label} {m.status}: {m.message}"] = None
                elif PEERS[name].note:
                    remarks[PEERS[name].note] = None
        if remarks:
            yield "\n### Remarks\n"
            yield from (f"* {remark}" for remark in remarks)


def page(reports: Sequence[Report], missing: Sequence[str] = ()) -> str:
    """The content of a table.md.

    Args:
      reports: the results of each family of processors.
      missing: the headings of families that were not measured.

    Returns:
      Markdown.
    """
    lines = [_HEAD]
    if missing:
        lines.append(f"\nNot measured yet: {'; '.join(missing)}.")
    for report in reports:
        lines += report.section()
    return "\n".join(lines) + "\n"


def summary(measurement: Measurement, unit: str) -> dict[str, float]:
    """Minimum and median of a measurement.

    Args:
      measurement: the measurement.
      unit: "ms" or "MB".

    Returns:
      Minimum and median of the values, in the unit, and of the ratios. The keys are such as
      "min_ms" and "median_ratio". A list without elements has no keys.
    """
    scaled = [value * _SCALES[unit] for value in measurement.values]
    found = {unit: scaled, "ratio": measurement.ratios}
    return {
        f"{function.__name__}_{name}": function(values)
        for name, values in found.items()
        if values
        for function in (min, statistics.median)
    }


def own_cell(result: RowResult) -> str:
    """The table's cell of our measurement.

    Args:
      result: the row.

    Returns:
      Minimum and median, with the unit; or the status if there are none.
    """
    found, unit = summary(result.ours, result.row.unit), result.row.unit
    if not found:
        return result.ours.status
    least, median = (_figures(found[f"{kind}_{unit}"]) for kind in ("min", "median"))
    return f"{least} / {median} ms" if unit == "ms" else f"{median} {unit}"


def cell(measurement: Measurement | None) -> str:
    """The table's cell of a peer's measurement.

    Args:
      measurement: the peer's; None if the row does not have this peer.

    Returns:
      The median of the ratios; or the status if there are none.
    """
    if measurement is None:
        return "–"
    if measurement.status != "measured":
        return measurement.status
    found = summary(measurement, "ms")
    if "median_ratio" not in found:
        return "–"
    return f"{found['median_ratio']:.2f}"


def memory_of(result: RowResult, name: str) -> float | None:
    """The memory of a peer divided by ours.

    Args:
      result: a row whose unit is not memory.
      name: the peer.

    Returns:
      The ratio; None if one of them was not measured.
    """
    theirs = result.found[name].memory if name in result.found else None
    ours = result.ours.memory
    return theirs / ours if theirs and ours and result.row.measure == "time" else None


def _fields(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    """The values of the fields of a dataclass. Files of earlier versions have fewer."""
    names = (field.name for field in dataclasses.fields(kind))
    return {name: values[name] for name in names if name in values}


def _figures(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _size(size: int) -> str:
    return f"{size / 2**20:g} MiB"
