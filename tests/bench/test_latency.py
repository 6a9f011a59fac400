"""benchmarks/latency.py: percentiles, the page, and that all peers compute the same."""

import itertools
import json
import subprocess
from pathlib import Path

import pytest

import plot_latency
from one_row import page
from one_row.cases import CASES, CELLS, Case, Layer
from one_row.keras_model import keras_model
from one_row.measure import Wrong, check, expected_outputs
from one_row.peers import PEERS
from one_row.timing import Percentiles, interleaved, percentiles, sample_of

LAYERS = {
    "lstm": (Layer("lstm", 8),),
    "gru": (Layer("gru", 8),),
    "dense": (Layer("lstm", 8), Layer("lstm", 6), Layer("dense", 5)),
    "projection": (Layer("lstm", 8, projection=3, peephole=True), Layer("gru", 4)),
}

# Whole sequences are of single layers.
SEQUENCES = [(name, steps) for name in LAYERS for steps in (1, 3) if steps == 1 or name in CELLS]


def test_percentiles_are_measured_times() -> None:
    assert percentiles([float(n) for n in range(100, -1, -1)]) == (50.0, 99.0, 101)
    assert percentiles([3.0]) == (3.0, 3.0, 1)


def test_peers_take_turns() -> None:
    turns: list[str] = []

    def sample(name: str) -> Percentiles:
        turns.append(name)
        return Percentiles(len(turns), 2 * len(turns), 10)

    found = interleaved({name: lambda name=name: sample(name) for name in "ab"}, 3)
    assert turns == ["a", "b"] * 3
    assert found == {"a": (3, 6, 30), "b": (4, 8, 30)}


def test_sample_calls_at_least_a_few_times() -> None:
    calls: list[None] = []
    found = sample_of(lambda: calls.append(None))()
    assert 5 <= found.calls <= len(calls) and 0 < found.p50 <= found.p99


def test_names_of_cases_are_unique() -> None:
    names = [case.name for cases in CASES.values() for case in cases]
    assert len(set(names)) == len(names)
    assert all(case.group == group for group, cases in CASES.items() for case in cases)


def test_page_has_times_and_ratios() -> None:
    results = {
        "lstm I1 H32": {
            "c": {"p50": 0.5, "p99": 0.75, "calls": 1},
            "onnxruntime": {"p50": 4.0, "p99": 5.0, "calls": 1, "how": "IO binding"},
        },
        "gru I18 H18 T100": {
            "session": {"p50": 1234.5, "p99": 2000.0, "calls": 1},
            "openvino": {"p50": 2469.0, "p99": 3000.0, "calls": 1},
        },
    }
    times = {"lstm": {"32": {"one": 250.0, "two": 300.0}}, "gru": {}}
    record = {"machine": {"processor": "P"}, "rtneural": times, "results": results}
    lines = page.document(record).splitlines()
    assert "* processor: P" in lines
    assert "| lstm I1 H32 | 0.500 | 4.00 | 0.250 |" in lines
    assert "| lstm I1 H32 | 8.00 | 0.500 |" in lines  # ratios
    assert "| lstm I1 H32 | 0.750 | 5.00 |" in lines  # 99th percentiles
    assert "The faster way in all cases: ONNX Runtime: IO binding; RTNeural: one." in lines
    assert "| gru I18 H18 T100 | 1230 | 2470 |" in lines
    assert "| gru I18 H18 T100 | 2.00 |" in lines
    assert "| gru I18 H18 T100 | 2000 | 3000 |" in lines
    assert "## One step of models" not in lines


def test_ways_that_differ_are_a_table() -> None:
    record = {"p50": 1.0, "calls": 1}
    results = {
        name: {"session": record, "openvino": {**record, "how": f"{threads} threads"}}
        for name, threads in (("gru I18 H18 T100", 1), ("lstm I18 H18 T100", 2))
    }
    whole = {"machine": {}, "rtneural": {}, "results": results}
    lines = page.document(whole).splitlines()
    assert "| gru I18 H18 T100 | 1 threads |" in lines
    assert "| lstm I18 H18 T100 | 2 threads |" in lines
    assert "99th percentiles:" not in lines


def test_page_is_that_of_the_recorded_results() -> None:
    folder = Path(page.__file__).parents[1]
    record = json.loads((folder / "latency.json").read_text())
    assert (folder / "latency.md").read_text() == page.document(record)


def test_plot_has_the_medians_and_the_best_backend(tmp_path: Path) -> None:
    results = {f"lstm I1 H{n}": {"c": {"p50": n / 8, "p99": n}} for n in (8, 1024)}
    record = {"results": results, "rtneural": {"lstm": {"16": {"one": 250.0, "two": 300.0}}}}
    found = plot_latency.curves(record)
    assert found == {"c": {8: 1.0}, "rtneural": {16: 0.25}}
    assert "C stream: 1; RTNeural: 0.25." in plot_latency.description(found)
    machine = {"machine": {"processor": "AMD P", "date": "2026-11-26 20:52"}}
    plot_latency.save(found, "dark", tmp_path / "plot.svg", plot_latency.note(machine))
    text = (tmp_path / "plot.svg").read_text()
    assert ">C stream<" in text and ">AMD P, 2026-11-26<" in text


def test_names_of_lines_do_not_lie_on_each_other() -> None:
    assert plot_latency.spread([1.0, 1.0, 5.0], 2.0) == pytest.approx([0.0, 2.0, 5.0])
    moved = plot_latency.spread([1.0, 1.1, 1.2, 1.3], 1.0)
    assert all(b - a > 0.99 for a, b in itertools.pairwise(moved))
    assert sum(moved) / 4 == pytest.approx(1.15)


@pytest.mark.full
@pytest.mark.parametrize(("layers", "steps"), SEQUENCES)
def test_peers_compute_the_same(layers: str, steps: int, tmp_path: Path) -> None:
    """The benchmark compares the outputs of each peer with those of the Keras model."""
    case = Case("case", "units" if steps == 1 else "sequences", 3, LAYERS[layers], steps)
    model = keras_model(case, case.keeps_states)
    expected = expected_outputs(case)
    for name, peer in PEERS.items():
        if case.group in peer.groups and peer.is_installed and name != "c":
            for way in peer.prepare(case, model, tmp_path):
                check(case, name, way, model, expected)
                with pytest.raises(Wrong, match="call 0 differs"):
                    check(case, name, way, model, expected + 1e-3)


def test_program_in_c(tmp_path: Path) -> None:
    case = Case("case", "units", 3, LAYERS["dense"])
    (way,) = PEERS["c"].prepare(case, keras_model(case, True), tmp_path)
    found = way.measured()()
    assert found.calls > 0 and 0 < found.p50 < 1 and 0 < found.p99 < 1
    program = [tmp_path / "latency_stream"]
    for arguments, text in (
        (["missing.session", "10", "1"], "missing.session"),
        ([tmp_path / "model.session", "10", "0"], "usage"),
        ([tmp_path / "model.session"], "usage"),
    ):
        result = subprocess.run([*program, *arguments], capture_output=True, text=True)
        assert result.returncode > 0 and text in result.stderr
