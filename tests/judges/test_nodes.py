"""400 nodes LSTM, GRU and RNN with every option, by sessions, beside a float64 oracle.

nodes.py says where the nodes come from, oracle.py where the results come from. ONNX Runtime judges
the oracle.
"""

import re

import pytest

pytest.importorskip("onnx", reason="makes the models")

from judges import nodes, oracle
from judges.cases import REFUSED as WAS_REFUSED
from judges.cases import RIGHT, WRONG, errors, onnx_runtime, ours, verdict

# What a session refuses: parts of the messages, and why.
REFUSED = {
    "initial states differs between the rows": "a session serves batches of any size",
    "couples the input and the forget gate": "1 - f(z) of another function is no function of -z",
}


@pytest.mark.parametrize("name", nodes.table())
def test_session(name: str) -> None:
    op, chosen = nodes.table()[name]
    found = verdict(nodes.case(op, chosen), ours)
    if found.kind == WAS_REFUSED and any(re.search(kind, found.text) for kind in REFUSED):
        return
    assert found == (RIGHT, "")


def test_refusals_have_the_kinds_of_the_table() -> None:
    """What is in the table is refused where it is expected, and nowhere else."""
    for op, chosen in nodes.table().values():
        found = verdict(nodes.case(op, chosen), ours)
        expected = chosen["states"] == "rows" or chosen.get("input_forget") == 1
        assert found.kind != WAS_REFUSED or expected, found.text


@pytest.mark.parametrize("op", nodes.COUNTS)
def test_each_pair_of_values_occurs(op: str) -> None:
    seen = {pair for each in nodes.choices(op) for pair in nodes.pairs(each)}
    assert not {*nodes.all_pairs(nodes.options_of(op))} - seen


def test_the_table_has_at_least_300_nodes() -> None:
    assert len(nodes.table()) >= 300


@pytest.mark.parametrize("op", nodes.COUNTS)
def test_oracle_is_onnx_runtime(op: str) -> None:
    """It refuses layout=1, and does not clip what goes into the h of an LSTM."""
    pytest.importorskip("onnxruntime", reason="runs the models")
    for name, (own, chosen) in nodes.table().items():
        if own != op:
            continue
        case = nodes.case(op, {**chosen, "layout": 0})
        results = oracle.run(op, case.named, case.attributes, clips_cell_state=False)
        want = [results[output] for output in case.node.output if output]
        assert not errors(onnx_runtime(case)[0], want), name


def test_onnx_runtime_is_wrong_with_clips_of_lstm_only() -> None:
    """The errors that conformance.md counts are those of onnxruntime#27224."""
    pytest.importorskip("onnxruntime", reason="runs the models")
    for name, (op, chosen) in nodes.table().items():
        if verdict(nodes.case(op, chosen), onnx_runtime).kind == WRONG:
            assert op == "LSTM" and chosen["clip"], name
