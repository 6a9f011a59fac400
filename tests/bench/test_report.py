"""Times by the roofline model, rows, tables and arguments: arithmetic without a process."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from peers import cases, command, plot, report, roofline
from peers.frameworks import PEERS
from peers.rows import ROWS
from peers.runner import Measurement

# N 2, T 10, H 4, I 3; the recurrent matrix has 4 * 16 floats, 256 bytes.
ROW = cases.Row("row", "inference", "inference", 2, 10, 4, 3, peers=("ours", "keras", "torch"))
INPUT, STEP = 2 * 20 * 3 * 16, 2 * 2 * 4 * 16  # operations: of all steps, and of one

FAST_MEMORY = roofline.Roofline(2, flops=1000.0, bandwidth={256: 1e9})
SLOW_MEMORY = roofline.Roofline(2, flops=1e9, bandwidth={256: 128.0})


def floor(limits: roofline.Roofline, **changes: object) -> float | None:
    return roofline.floor_seconds(dataclasses.replace(ROW, **changes), limits)


def test_floor_is_operations_where_memory_is_fast() -> None:
    forward = INPUT + 10 * STEP
    assert floor(FAST_MEMORY) == pytest.approx(forward / 1000)
    assert floor(FAST_MEMORY, task="training") == pytest.approx(3 * forward / 1000)


def test_floor_is_a_reading_of_the_weights_a_step_where_memory_is_slow() -> None:
    assert floor(SLOW_MEMORY) == pytest.approx(10 * 2, rel=1e-4)  # seconds, and operations
    assert floor(SLOW_MEMORY, task="training") == pytest.approx(2 * 10 * 2, rel=1e-4)


def test_floor_counts_valid_steps_layers_directions_projection_and_gates() -> None:
    valid = 1 + 10  # lengths 1..10 of two rows
    operations = 2 * valid * 3 * 16 + 2 * valid * 4 * 16
    assert floor(FAST_MEMORY, steps="1..T") == pytest.approx(operations / 1000)
    second = 2 * 20 * 8 * 16  # the second layer's input is both directions' output
    operations = 2 * (INPUT + second) + 4 * 10 * STEP
    assert floor(FAST_MEMORY, layers=2, directions=2) == pytest.approx(operations / 1000)
    weights = 2 * 16 + 4 * 2  # of h of size 2, and of the projection
    projected = dataclasses.replace(FAST_MEMORY, bandwidth={4 * weights: 1e9})
    seconds = (INPUT + 10 * 2 * 2 * weights) / 1000
    assert floor(projected, projection=2) == pytest.approx(seconds)
    gru = dataclasses.replace(FAST_MEMORY, bandwidth={192: 1e9})
    assert floor(gru, cell="gru") == pytest.approx(0.75 * (INPUT + 10 * STEP) / 1000)


def test_floor_of_a_step_reads_all_weights() -> None:
    slow = roofline.Roofline(2, flops=1e9, bandwidth={448: 112.0})
    assert floor(slow, task="step") == pytest.approx(4)
    fast = roofline.Roofline(2, flops=1000.0, bandwidth={448: 1e9})
    assert floor(fast, task="step") == pytest.approx(2 * 2 * 7 * 16 / 1000)


@pytest.mark.parametrize(
    "changes",
    [{"dtype": "bfloat16"}, {"task": "fit"}, {"task": "step gradient"}, {"measure": "memory"}],
)
def test_no_floor_where_it_would_be_another(changes: dict) -> None:
    assert floor(FAST_MEMORY, **changes) is None


def test_best_of_two_measurements() -> None:
    other = roofline.Roofline(2, flops=10.0, bandwidth={256: 2e9})
    assert FAST_MEMORY.best(other) == roofline.Roofline(2, 1000.0, {256: 2e9})


@pytest.mark.full  # compiles a program
def test_measured_roofline_is_of_this_machine() -> None:
    found = roofline.measure([ROW, dataclasses.replace(ROW, dtype="bfloat16", units=8)], 1)
    assert set(found.bandwidth) == {256}
    # The slowest that this engine runs on, and more than any core has.
    assert 1e9 < found.flops < 1e12
    assert 1e8 < found.bandwidth[256] < 1e13


def test_documentation_names_every_peer() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md").read_text()
    for peer in PEERS.values():
        # Of ours, the columns that are ours in another state stand in the table of rows.
        assert peer.ours or peer.label.split(",")[0] in text


def test_every_process_draws_the_same_numbers() -> None:
    one, other = (cases.make_problem(ROW) for _ in range(2))
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.weights.cells[0].kernel, other.weights.cells[0].kernel)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("all", ["11111111", "11111111", "11111111"]),
        ("1..T", ["10000000", "11110000", "11111111"]),
        ("left", ["00000001", "00001111", "11111111"]),
        ("quarter", ["11000000", "11000000", "11000000"]),
        ("holes", ["01101101", "11011011", "10110110"]),
    ],
)
def test_valid_steps(steps: str, expected: list[str]) -> None:
    row = dataclasses.replace(ROW, batch=3, time=8, steps=steps)
    assert ["".join(map(str, r)) for r in cases.valid_steps(row).astype(int)] == expected


@pytest.fixture
def made_up() -> report.Report:
    ours = Measurement("measured", values=[0.02, 0.01, 0.04], ratios=[1, 1, 1])
    theirs = Measurement("measured", values=[0.06, 0.01, 0.02], ratios=[3.0, 1.0, 0.5])
    wrong = Measurement("differs", "output by 1.0e+00 of ours")
    missing = Measurement("not installed", "pip install torch")
    memory = dataclasses.replace(ROW, name="memory", group="other", measure="memory")
    limits = roofline.Roofline(2, flops=FAST_MEMORY.flops * 1e6, bandwidth={256: 1e15})
    return report.Report(
        {"family": "avx2", "processor": "made up", "date": "2026-11-26"},
        limits,
        planned=2,
        results=[
            report.RowResult(
                ROW, {"ours": ours, "keras": theirs, "torch": missing}, "abc1234", "2026-11-26"
            ),
            report.RowResult(
                memory,
                {
                    "ours": Measurement("measured", values=[3e6], ratios=[1]),
                    "keras": Measurement("measured", values=[6e6], ratios=[2]),
                    "torch": wrong,
                },
                "abc1234",
                "2026-11-26",
            ),
        ],
    )


def test_table(made_up: report.Report) -> None:
    lines = made_up.as_table().splitlines()
    assert "* processor: made up" in lines
    assert "| task | ours | roofline % | Keras | PyTorch |" in lines
    percent = round(100 * (INPUT + 10 * STEP) / 1e9 / 0.01)
    assert f"| row | 10 / 20 ms | {percent} | 1.00 | not installed |" in lines
    assert "| memory | 3 MB | – | 2.00 | differs |" in lines
    assert "* PyTorch is not installed: pip install torch" in lines
    assert "* memory: PyTorch differs: output by 1.0e+00 of ours" in lines
    assert not any("interrupted" in line for line in lines)


def test_table_has_columns_of_the_memory_where_it_was_measured(made_up: report.Report) -> None:
    time, memory = made_up.results
    for result in made_up.results:
        result.found["ours"].memory = 326_400_000
    assert "memory, MB" not in made_up.as_table().replace("* memory", "")
    time.found["keras"].memory = 542_000_000
    memory.found["keras"].memory = 1  # its column is that of the row itself
    lines = made_up.as_table().splitlines()
    head = "| task | ours | roofline % | Keras | PyTorch | memory, MB | Keras, memory |"
    assert lines.count(head) == 1
    row = lines[lines.index(head) + 2]
    assert row.endswith("| 1.00 | not installed | 326 | 1.66 |")
    assert "| memory | 3 MB | – | 2.00 | differs |" in lines
    assert json.loads(made_up.as_json())["rows"][0]["peers"]["keras"]["memory"] == 542_000_000


def test_json(made_up: report.Report) -> None:
    found = json.loads(made_up.as_json())
    row, memory = found["rows"]
    assert row["floor_ms"] == pytest.approx((INPUT + 10 * STEP) / 1e6)
    keras = row["peers"]["keras"]
    assert keras["values"] == [0.06, 0.01, 0.02]
    assert (keras["min_ms"], keras["median_ms"]) == (10, 20)
    assert (keras["min_ratio"], keras["median_ratio"]) == (0.5, 1.0)
    assert memory["unit"] == "MB"
    assert memory["floor_ms"] is None
    assert found["roofline"]["bandwidth"] == {"256": 1e15}


def test_picture_is_drawn_also_of_nothing(made_up: report.Report, tmp_path: Path) -> None:
    plot.save(tmp_path / "some.png", made_up)
    assert (tmp_path / "some.png").stat().st_size > 1000
    plot.save(tmp_path / "none.png", dataclasses.replace(made_up, results=[]))
    assert not (tmp_path / "none.png").exists()


def test_selection_of_rows() -> None:
    everything, quick = command.select_rows(None, True), command.select_rows(None, False)
    assert everything == list(ROWS)
    assert quick == [row for row in everything if row.quick]
    assert {row.group for row in quick} == {"inference", "training", "other"}
    found = command.select_rows(["fit*", "inference N1 H128*"], False)
    assert [row.name for row in found] == ["inference N1 H128 T100", "fit N32 H128 T100"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rounds", "0"], "--rounds must be at least 1"),
        (["--rounds", "0.5"], "argument --rounds: invalid int value"),
        (["--threads", "0"], "--threads must be at least 1"),
        (["--tasks", "dance"], "--tasks 'dance' matches none of:\ninference N1"),
        (["--peers", "keras,fortran"], "--peers knows no fortran; there are ours"),
        (["--peers", ""], "--peers knows no ''; there are ours"),
        (["--output", __file__], "choose another folder with --output"),
    ],
)
def test_wrong_arguments_say_what_to_do(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = command.main(arguments)
    except SystemExit as usage:
        status = usage.code
    assert status == (1 if "--output" in arguments else 2)  # 2: wrong usage
    assert message in capsys.readouterr().err
