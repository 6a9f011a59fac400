"""Nodes LSTM, GRU and RNN with every option, by sessions, beside a float64 oracle.

nodes.py says where the nodes come from, oracle.py where the results come from. ONNX Runtime judges
the oracle.
"""

import re

import numpy as np
import pytest

pytest.importorskip("onnx", reason="makes the models")

from judges import nodes, oracle
from judges.cases import REFUSED as WAS_REFUSED
from judges.cases import RIGHT, WRONG, errors, onnx_runtime, ours, verdict
from tf_lstm_ops.inference import Session

ALL = nodes.all_nodes()


@pytest.mark.parametrize("name", ALL)
def test_session(name: str) -> None:
    op, chosen = ALL[name]
    found = verdict(nodes.case(op, chosen), ours)
    if found.kind == WAS_REFUSED and any(re.search(kind, found.text) for kind in nodes.REFUSED):
        return
    assert found == (RIGHT, "")


OPTIONS = {
    "functions": ("activations", "activation_alpha", "activation_beta"),
    "lengths": ("sequence_lens",),
    "states": ("initial_h", "initial_c"),
    **{name: (name,) for name in ("clip", "input_forget", "linear_before_reset")},
    "peepholes": ("P",),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_options_change_results(option: str) -> None:
    """A program that leaves an option out is wrong, in nodes with one option and in most others."""
    effects: dict[bool, list[bool]] = {True: [], False: []}
    for name, (op, chosen) in ALL.items():
        if not chosen.get(option) or chosen["lengths"] == "full":
            continue
        case = nodes.case(op, chosen)
        kept = {k: v for k, v in case.attributes.items() if k not in OPTIONS[option]}
        named = {k: v for k, v in case.named.items() if k not in OPTIONS[option]}
        with np.errstate(over="ignore"):  # states may grow without limit
            results = oracle.run(op, named, kept)
        without = [results[output] for output in case.node.output if output]
        is_single = name in nodes.singles().get(option, {})
        effects[is_single].append(bool(errors(without, case.calls[0][1])))
    assert all(effects[True]) and np.mean(effects[False]) > 0.6


@pytest.mark.parametrize("op", nodes.COUNTS)
def test_batch_first_with_the_default_check(op: str) -> None:
    """ONNX Runtime, which the check calls, refuses layout=1."""
    for own, chosen in nodes.singles()["layout"].values():
        if own == op:
            Session.from_onnx(nodes.case(own, chosen).model)


def test_refusals_have_the_kinds_of_the_table() -> None:
    """What is in the table is refused where it is expected, and nowhere else."""
    for op, chosen in ALL.values():
        found = verdict(nodes.case(op, chosen), ours)
        expected = chosen["states"] == "rows"
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
    for name, (own, chosen) in ALL.items():
        if own != op:
            continue
        case = nodes.case(op, {**chosen, "layout": 0})
        results = oracle.run(op, case.named, case.attributes, is_of_onnx_runtime=True)
        want = [results[output] for output in case.node.output if output]
        assert not errors(onnx_runtime(case)[0], want), name


def test_what_onnx_runtime_does_not_compute() -> None:
    """As conformance.md says."""
    pytest.importorskip("onnxruntime", reason="runs the models")
    for name, (op, chosen) in ALL.items():
        found = verdict(nodes.case(op, chosen), onnx_runtime).kind
        assert (found == WAS_REFUSED) == (chosen["layout"] == 1), name
        assert found != WRONG or (op == "LSTM" and chosen["clip"]), name
