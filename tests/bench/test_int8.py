"""The peers in int8, and the errors of types of weights."""

import numpy as np
import pytest

import int8_errors
from peers import cases, runner
from peers.case_sets import CASES
from peers.frameworks import PEERS, TOLERANCE_INT8

IN_INT8 = ("onnxruntime-int8", "openvino-int8")  # of others


def row(cell: str, time: int = 3) -> cases.Row:
    return cases.Row("tiny", "int8", "inference", 2, time, 16, 8, peers=("session",), cell=cell)


def test_rows_have_float32_first_and_other_runtimes_without_gru() -> None:
    for each in CASES["int8"]:
        assert each.peers[:3] == ("session", "session-bfloat16", "session-int8")
        assert (
            set(IN_INT8) <= set(each.peers)
            if each.cell == "lstm"
            else not set(IN_INT8) & set(each.peers)
        )
        assert each.name.startswith("int8 step" if each.time == 1 else "int8 sequence")


def test_weights_are_an_option_where_a_row_asks_for_them() -> None:
    assert not PEERS["session"].options and PEERS["session"].tolerance is None
    for name in ("bfloat16", "int8"):
        assert PEERS[f"session-{name}"].options == {"weights": name}


def test_a_peer_may_have_a_tolerance_of_its_own() -> None:
    ours, rounded = {"output": np.float32([1, 2])}, {"output": np.float32([1.01, 2])}
    assert runner.difference(rounded, ours, row("lstm")).startswith("output by 5.0e-03")
    assert runner.difference(rounded, ours, row("lstm"), TOLERANCE_INT8) == ""
    assert runner.difference({"output": -ours["output"]}, ours, row("lstm"), TOLERANCE_INT8)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_one_step_keeps_the_states(cell: str) -> None:
    from peers.frameworks import session

    one, three = (row(cell, time) for time in (1, 3))
    problem = cases.make_problem(one)
    step = session.build(one, problem, 1)
    found = [step.results(step.call())["output"] for _ in range(3)]
    whole = session.build(three, problem._replace(x=np.repeat(problem.x, 3, axis=1)), 1)
    assert np.array_equal(np.concatenate(found, 1), whole.results(whole.call())["output"])


def test_onnx_runtime_quantizes_lstm_but_no_gru() -> None:
    pytest.importorskip("onnxruntime")
    from peers.frameworks import onnxruntime

    problem = cases.make_problem(row("lstm"))
    exact, found = (onnxruntime.build(row("lstm"), problem, 1, int8) for int8 in (False, True))
    ours, theirs = (each.results(each.call()) for each in (exact, found))
    assert runner.difference(theirs, ours, row("lstm"))
    assert runner.difference(theirs, ours, row("lstm"), TOLERANCE_INT8) == ""
    with pytest.raises(ValueError, match="quantizes no node"):
        onnxruntime.build(row("gru"), cases.make_problem(row("gru")), 1, int8=True)


@pytest.mark.full
def test_openvino_computes_an_lstm_in_int8() -> None:
    for name in ("openvino", "nncf"):
        pytest.importorskip(name)
    from peers.frameworks import openvino

    problem = cases.make_problem(row("lstm"))
    exact, found = (openvino.build(row("lstm"), problem, 1, int8) for int8 in (False, True))
    ours, theirs = (each.results(each.call()) for each in (exact, found))
    assert runner.difference(theirs, ours, row("lstm"))
    assert runner.difference(theirs, ours, row("lstm"), TOLERANCE_INT8) == ""


def test_errors_are_of_the_difference() -> None:
    exact = np.float32([[[3, 4], [0, 0]]])
    assert int8_errors.errors(exact, exact) == ["0.0e+00"] * 3 + ["100.00%"]
    other = exact + np.float32([[[2, 0], [0, 0]]])
    assert int8_errors.errors(other, exact) == ["2.0e+00", "5.0e-01", "4.0e-01", "50.00%"]
    assert int8_errors.errors(exact[..., :1], exact[..., :1])[3] == "–"


def test_bits_of_equal_logits_are_those_of_a_byte() -> None:
    text = np.arange(5)
    assert int8_errors.bits_per_byte(np.full((5, 256), 7.0, np.float32), text) == pytest.approx(8)
    sure = np.where(np.eye(256)[text] > 0, 0, -np.inf)
    assert int8_errors.bits_per_byte(sure, text) == 0
