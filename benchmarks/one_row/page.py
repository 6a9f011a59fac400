"""The Markdown page of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from one_row.cases import CASES, Case
from one_row.peers import PEERS
from one_row.timing import BATCH

Record = Mapping[str, Any]
INTRODUCTION = """\
# Latency

[latency.py](latency.py) measured these times and wrote this page. The first table of each section
has medians of a call in microseconds, the last one 99th percentiles. Both are medians of rounds in
which the peers take turns. A call takes a NumPy array and gives one, except in C. All peers have
one thread, except in whole sequences. Compare `C` with "ONNX Runtime, C", and `Session` with the
other runtimes.

* `model.predict`, `tf.function` and "eager layers" run a stateful Keras model of this package,
  "eager op" the ops behind its layers.
* `Session` is a stream of `tf_lstm_ops.inference.Session` in Python, `C` the same in C. In C the
  median is that of {batch} calls between two readings of the clock. The percentile is that of
  single calls.
* ONNX Runtime, OpenVINO and LiteRT are called from Python. The row of one unit shows what a call
  costs. ONNX Runtime has IO binding or none, whichever is faster. OpenVINO has the latency hint
  and computes in float32. The states are inputs and outputs, which are swapped, not copied, except
  in LiteRT. "ONNX Runtime, C" is a loop in C that calls its C API.
* RTNeural is a C++ library with sizes known at compile time, measured on its own on 2026-11-26 on
  a machine of the same kind. Its best backend counts.

A ratio is the time of the peer divided by ours (that of `C`, of sequences that of `Session`)."""
TITLES = {
    "units": "One step with one input",
    "square": "One step with as many inputs as units",
    "models": "One step of models",
    "sequences": "Sequences of 100 steps with as many inputs as units",
}
HEADINGS = {name: peer.heading for name, peer in PEERS.items()} | {"rtneural": "RTNeural"}
NOTES = {
    "models": """\
Stacks are of LSTMs with as many inputs as units. The models after them have the layers of published
ones, with random weights: Silero-like an LSTM of 128 units with 128 inputs; DTLN-like two LSTMs of
128 units and a dense layer of 257 outputs with 257 inputs; kws-like an LSTM of 500 units with
peepholes and a projection to 200 with 40 inputs, which is plain ops in ONNX; GTCRN-like a GRU of 8
units with 16 inputs.""",
    "sequences": """\
States begin with zeros. Each peer was tried with one and two threads. The better number counts.""",
}


def document(record: Mapping[str, Any]) -> str:
    """The page.

    Args:
      record: "machine", its properties by name; "rtneural", {cell: {units: {backend: ns}}};
        "results", by the name of the case the records of its peers.

    Returns:
      Markdown.
    """
    lines = [INTRODUCTION.format(batch=BATCH), ""]
    lines += [f"* {name}: {value}" for name, value in record["machine"].items()]
    for group, cases in CASES.items():
        rows = {c: _with_rtneural(c, record) for c in cases if c.name in record["results"]}
        if rows:
            lines += ["", f"## {TITLES[group]}", ""]
            lines += [NOTES[group], ""] if group in NOTES else []
            lines += _tables(rows)
    return "\n".join(lines) + "\n"


def cell(record: Record) -> str:
    """The times of a record in a line of text: "1.23 (4.56)"."""
    times = number(record["p50"])
    if "p99" in record:
        times += f" ({number(record['p99'])})"
    return f"{times}, {record['how']}" if "how" in record else times


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    rounded = f"{value:#.3g}"
    return f"{float(rounded):.0f}" if value >= 99.95 else rounded


def _with_rtneural(case: Case, record: Mapping[str, Any]) -> dict[str, Record]:
    found: dict[str, Record] = dict(record["results"][case.name])
    layer = case.layers[0]
    times = record["rtneural"].get(layer.kind, {}).get(str(layer.units), {})
    if case.group == "units" and times:
        backend = min(times, key=lambda name: times[name])
        found["rtneural"] = {"p50": times[backend] / 1e3, "how": backend}
    return found


def _tables(rows: Mapping[Case, Mapping[str, Record]]) -> Iterator[str]:
    """The medians, the ratios, the ways that count and the 99th percentiles."""
    names = [name for name in HEADINGS if any(name in row for row in rows.values())]
    yield from _table(rows, names, lambda row, name: number(row[name]["p50"]))
    base = next((name for name in ("c", "session") if name in names), None)
    others = [name for name in names if name not in ("c", base)]
    if base and others:
        yield from ["", f"Ratios to `{HEADINGS[base]}`:", ""]
        yield from _table(
            {case: row for case, row in rows.items() if base in row},
            others,
            lambda row, name: number(row[name]["p50"] / row[base]["p50"]),
        )
    yield from _ways(rows, names)
    if with_tails := _with(rows, names, "p99"):
        yield from ["", "99th percentiles:", ""]
        yield from _table(rows, with_tails, lambda row, name: number(row[name]["p99"]), "p99")


def _ways(rows: Mapping[Case, Mapping[str, Record]], names: Sequence[str]) -> Iterator[str]:
    """Of peers that have several: a table, but a sentence where all cases have the same."""
    tried = _with(rows, names, "how")
    ways = {name: {row[name]["how"] for row in rows.values() if name in row} for name in tried}
    if equal := [name for name in tried if len(ways[name]) == 1]:
        said = "; ".join(f"{HEADINGS[name]}: {next(iter(ways[name]))}" for name in equal)
        yield from ["", f"The faster way in all cases: {said}."]
    if differ := [name for name in tried if len(ways[name]) > 1]:
        yield from ["", "The faster way:", ""]
        yield from _table(rows, differ, lambda row, name: row[name]["how"], "how")


def _with(rows: Mapping[Case, Mapping[str, Record]], names: Sequence[str], key: str) -> list[str]:
    """The peers whose records have a key."""
    return [name for name in names if any(key in row.get(name, {}) for row in rows.values())]


def _table(
    rows: Mapping[Case, Mapping[str, Record]],
    names: Sequence[str],
    cell: Callable[[Mapping[str, Record], str], str],
    key: str = "p50",
) -> Iterator[str]:
    """A table of cases and peers. A cell is empty where the record has no `key`."""
    yield _line(["", *(HEADINGS[name] for name in names)])
    yield _line(["---", *("---:" for _ in names)])
    for case, row in rows.items():
        cells = (cell(row, name) if key in row.get(name, {}) else "" for name in names)
        yield _line([case.name, *cells])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
