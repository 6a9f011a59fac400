"""The Markdown page of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from one_row.cases import CASES, Case
from one_row.peers import PEERS
from one_row.timing import BATCH

Record = Mapping[str, Any]
INTRODUCTION = """\
# The time of one row

[latency.py](latency.py) measured these times and wrote this page. A cell has the median of a call
in microseconds and, in brackets, its 99th percentile. Both are medians of rounds in which the peers
take turns. A call takes a NumPy array and gives one, except in C. All peers have one thread, except
in whole sequences.

* `model.predict`, `tf.function` and "eager layers" run a stateful Keras model of this package,
  "eager op" the ops behind its layers.
* `Session` is a stream of `tf_lstm_ops.inference.Session` in Python, `C` the same in C. In C the
  median is that of {batch} calls between two readings of the clock. The percentile is that of
  single calls. "int8" is one with weights in int8.
* ONNX Runtime, OpenVINO and LiteRT are called from Python. The row of one unit shows what a call
  costs. ONNX Runtime has IO binding or none, whichever is faster. OpenVINO has the latency hint.
  The states are inputs and outputs, which are swapped, not copied, except in LiteRT.
* RTNeural is a C++ library with sizes known at compile time, measured on its own on the same
  machine in the same hour. Its best backend counts.

A ratio is the time of the other divided by that of `C`, or where there is `Session` only by that:
above 1 ours is faster."""
TITLES = {
    "units": "One step with one input",
    "square": "One step with as many inputs as units",
    "models": "One step of models",
    "sequences": "Sequences of 100 steps with as many inputs as units",
}
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
            lines += _table(rows)
    return "\n".join(lines) + "\n"


def cell(record: Record) -> str:
    """The table's cell of a record: "1.23 (4.56)"."""
    times = number(record["p50"])
    if "p99" in record:
        times += f" ({number(record['p99'])})"
    return f"{times}, {record['how']}" if "how" in record else times


def number(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _with_rtneural(case: Case, record: Mapping[str, Any]) -> dict[str, Record]:
    found: dict[str, Record] = dict(record["results"][case.name])
    layer = case.layers[0]
    times = record["rtneural"].get(layer.kind, {}).get(str(layer.units), {})
    if case.group == "units" and times:
        backend = min(times, key=lambda name: times[name])
        found["rtneural"] = {"p50": times[backend] / 1e3, "how": backend}
    return found


def _table(rows: Mapping[Case, Mapping[str, Record]]) -> Iterator[str]:
    headings = {name: peer.heading for name, peer in PEERS.items()} | {"rtneural": "RTNeural"}
    names = [name for name in headings if any(name in row for row in rows.values())]
    yield _line(["", *(headings[name] for name in names)])
    yield _line(["---", *("---:" for _ in names)])
    for case, row in rows.items():
        yield _line([case.name, *(cell(row[name]) if name in row else "" for name in names)])
    ratios = [name for name in names if name != "c" and name != _base(names)]
    if (base := _base(names)) and ratios:
        yield ""
        yield f"Ratios to `{headings[base]}`:"
        yield ""
        yield _line(["", *(headings[name] for name in ratios)])
        yield _line(["---", *("---:" for _ in ratios)])
        for case, row in rows.items():
            yield _line([case.name, *(_ratio(row, name, base) for name in ratios)])


def _base(names: Sequence[str]) -> str | None:
    """The peer of ours with which the others are compared."""
    return next((name for name in ("c", "session") if name in names), None)


def _ratio(row: Mapping[str, Record], name: str, base: str) -> str:
    if name not in row or base not in row:
        return ""
    ratio = row[name]["p50"] / row[base]["p50"]
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.2f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
