"""The rows of the examples and of the sweep, and their selection."""

import dataclasses

import numpy as np
import pytest

from peers import capacity, cases, command, models
from peers.case_sets import CASES
from peers.examples import EXAMPLES
from peers.frameworks import PEERS, keras_layer
from peers.report import GROUPS
from peers.rows import ROWS
from tf_lstm_ops.cli import CommandError


def only(name: str) -> cases.Row:
    (row,) = command.select_rows([name], False, list(CASES))
    return row


def sizes(row: cases.Row) -> tuple:
    return (row.batch, row.time, row.inputs, row.units, row.cell, row.directions, row.steps)


def test_every_row_has_a_name_of_its_own_and_known_peers() -> None:
    rows = [row for rows in CASES.values() for row in rows]
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert row.group in GROUPS
        assert set(row.peers) <= PEERS.keys()
        assert PEERS[row.peers[0]].ours


def test_the_eager_op_and_the_session_are_measured_wherever_our_layer_infers() -> None:
    for row in (row for rows in CASES.values() for row in rows):
        beside_others = row.task == "inference" and row.peers[0] == "ours" and "torch" in row.peers
        assert ("ours-eager" in row.peers) == beside_others
        assert ("session" in row.peers) == (beside_others or row.group in ("models", "int8"))


def test_tract_is_measured_beside_openvino_unless_there_are_lengths() -> None:
    for row in (row for rows in CASES.values() for row in rows):
        assert ("tract" in row.peers) == ("openvino" in row.peers and row.steps == "all")


def test_every_example_is_measured_once_in_three_tasks() -> None:
    for task in ("inference", "training", "fit"):
        found = [sizes(row) for row in CASES["examples"] if row.task == task]
        assert len(found) == len(set(found)) == len(EXAMPLES)
        assert found == [example[1:] for example in EXAMPLES]


def test_a_row_has_the_sizes_of_its_example() -> None:
    weather = only("training weather forecasting, *")
    assert weather.name == "training weather forecasting, N256 H32 T120 I7"
    problem = cases.make_problem(weather)
    assert problem.x.shape == (256, 120, 7)
    assert problem.output_grad.shape == (256, 120, 32)
    generation = only("fit GRU text generation, N64 H1024 T100 I256")
    assert (generation.cell, generation.group) == ("gru", "other")
    imdb = cases.make_problem(only("inference IMDB, bidirectional N32 H64 T200 I128"))
    assert imdb.output_grad.shape == (32, 200, 2 * 64)


@pytest.mark.parametrize(
    "given",
    [
        *[(128, 128, 64, 256), (64, 80, 512, 512), (32, 365, 27, 128), (1, 1000, 1, 40)],
        *[(16, 200, 80, 1024), (32, 200, 512, 256), (256, 60, 40, 40)],
    ],
)
def test_the_tables_have_sizes_as_people_run_them(given: tuple[int, ...]) -> None:
    for task in ("inference", "training"):
        rows = [r for r in ROWS if (r.batch, r.time, r.inputs, r.units) == given and r.task == task]
        row = next(r for r in rows if r.group == task and r.cell == "lstm")
        assert row.projection == (320 if given[0] == 16 else 0)
        assert row.directions == (2 if given == (32, 200, 512, 256) else 1)
        assert {"torch", "jax"} < set(row.peers)
        assert ("keras" in row.peers) == (not row.projection)


def test_models_are_of_signals_and_of_texts() -> None:
    """Four shapes each, with every layer that a session has for them."""
    rows = CASES["models"]
    kinds = [row.name.split()[1].rstrip(",") for row in rows]
    assert kinds == ["CNN-LSTM"] * 4 + ["Embedding-LSTM"] * 4
    for row in rows:
        problem = models.make_problem(row)
        assert problem.x.shape[:2] == (row.batch, row.time)
        assert (problem.lengths is not None) == (row.steps == "1..T")
    assert {type(layer) for row in rows for layer in models.MODELS[row.model]} == {
        *(models.Conv, models.Pool, models.Embed, models.Recurrent, models.Dense)
    }


def test_a_projection_makes_h_smaller() -> None:
    row = only("training projection to 320, N16 H1024 T200 I80")
    problem = cases.make_problem(row)
    assert problem.output_grad.shape == (16, 200, 320)
    assert problem.weights.cells[0].recurrent_kernel.shape == (320, 4 * 1024)
    assert problem.weights.cells[0].projection.shape == (1024, 320)


def test_the_sweep_has_all_batches_units_and_features() -> None:
    for task in ("inference", "training"):
        rows = [row for row in CASES["sweep"] if row.task == task]
        lstm = [row for row in rows if row.cell == "lstm"]
        assert {row.time for row in rows} == {50}
        assert {row.inputs for row in lstm} == {1, 7, 64}
        grid = {(row.batch, row.units) for row in lstm if row.inputs == 7}
        assert grid == {(n, h) for n in (1, 16, 64, 256, 1024, 4096) for h in (16, 32, 64, 128)}
        assert {row.cell for row in rows} == {"lstm", "gru"}


def test_benchdnn_has_its_shapes() -> None:
    rows = CASES["benchdnn"]
    sizes = {(row.layers, row.time, row.batch, row.inputs, row.units) for row in rows}
    assert sizes >= {(8, 3, 12, 16, 16), (1, 1, 100, 65, 65), (1, 629, 128, 128, 128)}
    assert len(rows) == 2 * len(sizes) == 108
    problem = cases.make_problem(only("benchdnn GRU, 14 layers, N12 H16 T10 I16"))
    assert problem.x.shape == (12, 10, 16)
    assert problem.weights.num_layers == 14


def test_selection_of_sets() -> None:
    assert command.select_rows(None, False, ["sweep"]) == list(CASES["sweep"])
    both = command.select_rows(None, False, ["sweep", "examples"])
    assert both == [*CASES["examples"], *CASES["sweep"]]
    quick = command.select_rows(None, False)
    assert command.select_rows(None, False, ["tables", "sweep"]) == [*quick, *CASES["sweep"]]
    found = command.select_rows(["fit addition*", "fit IMDB*"], False, ["examples"])
    assert [row.name.split(",")[0] for row in found] == ["fit addition", "fit addition", "fit IMDB"]


def test_rows_of_other_sets_are_measured_only_on_request() -> None:
    assert set(command.select_rows(["*"], False)) == set(ROWS)
    with pytest.raises(CommandError, match="matches none of"):
        command.select_rows(["training weather*"], True)


def test_an_unknown_set_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        command.main(["--cases", "sweep,dance"])
    assert exit_.value.code == 2
    message = (
        "--cases knows no dance; there are tables, examples, models, sweep, shapes, int8, benchdnn"
    )
    assert message in capsys.readouterr().err


def test_the_command_measures_the_selected_set(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    measured = []

    def run(rows: list[cases.Row], *_: object) -> object:
        measured.extend(rows)
        return type("Report", (), {"results": rows})()

    monkeypatch.setattr(command.session, "run", run)
    monkeypatch.setattr(capacity, "measure", lambda n: capacity.Capacity(n, n))
    arguments = ["--cases", "examples", "--tasks", "*weather*", "--output", str(tmp_path)]
    assert command.main(arguments) == 0
    assert [row.task for row in measured] == ["inference", "training", "fit"]


def test_an_epoch_has_fewer_steps_where_a_step_takes_long() -> None:
    assert keras_layer.fit_steps(only("fit N32 H128 T100")) == keras_layer.FIT_STEPS
    assert keras_layer.fit_steps(only("fit GRU speech recognition, layer 1, *")) == 2
    one = only("fit active learning, *")
    assert 2 < keras_layer.fit_steps(one) < keras_layer.FIT_STEPS


def loss(**changes: object) -> np.ndarray:
    row = dataclasses.replace(only("fit N32 H128 T100"), batch=3, time=4, units=5, inputs=6)
    row = dataclasses.replace(row, **changes)
    prepared = keras_layer.build(row, cases.make_problem(row), threads=None, ours=True)
    return prepared.results(prepared.call())["loss"]


@pytest.mark.full
def test_fit_trains_both_directions_and_leaves_out_masked_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keras_layer, "set_threads", lambda threads: None)
    found = [loss(steps="1..T"), loss(directions=2), loss(directions=2, steps="1..T")]
    assert len({float(value[0]) for value in found}) == 3
    assert np.array_equal(loss(steps="1..T"), found[0])
