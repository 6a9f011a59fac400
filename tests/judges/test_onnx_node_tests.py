"""ONNX's 18 node tests of LSTM, GRU and RNN, by sessions of their models and by layers.

The cases come from the installed package onnx; see node_tests.py.
"""

import numpy as np
import pytest

pytest.importorskip("onnx", reason="has the tests")

from judges import node_tests, oracle
from judges.cases import RIGHT, Case, errors, ours, verdict
from tf_lstm_ops.inference import Session, layers
from tf_lstm_ops.weights import GRUWeights, LSTMWeights, RNNWeights

CASES = {case.name: case for case in node_tests.cases()}
KINDS = {
    "LSTM": (LSTMWeights, layers.LSTM),
    "GRU": (GRUWeights, layers.GRU),
    "RNN": (RNNWeights, layers.SimpleRNN),
}


def by_layers(case: Case) -> dict[str, oracle.Array]:
    """The outputs of a layer with the weights of a node, by their names in the specification."""
    named, attributes = case.named, case.attributes
    weights_class, layer_class = KINDS[case.node.op_type]
    arrays = {name: named[name] for name in "WRBP" if name in named}
    if case.node.op_type == "GRU":
        arrays["linear_before_reset"] = attributes.get("linear_before_reset", 0)
    is_reverse = attributes.get("direction") == "reverse"
    options = {"return_sequences": True, "return_state": True, "go_backwards": is_reverse}
    layer = layer_class(weights_class.from_onnx(**arrays), **options)
    x, batch_first = named["X"], attributes.get("layout", 0) == 1
    x = x if batch_first else x.swapaxes(0, 1)
    given = layers.Input((None, x.shape[2]))
    session = Session.from_graph(given, layer(given))
    lengths = named.get("sequence_lens")
    y, *states = session(x, lengths=lengths)
    count = named["R"].shape[0]
    y = y[:, ::-1] if is_reverse else y
    y = y.reshape(*y.shape[:2], count, -1)  # [N, T, D, H]
    each = len(states) // count
    found = {"Y": y if batch_first else y.transpose(1, 2, 0, 3)}
    for k, name in enumerate(("Y_h", "Y_c")[:each]):
        found[name] = np.stack(states[k::each], axis=1 if batch_first else 0)
    return found


def wanted(case: Case) -> dict[str, oracle.Array]:
    """The expected outputs by their names in the specification."""
    places = [place for place, name in enumerate(case.node.output) if name]
    names = [("Y", "Y_h", "Y_c")[place] for place in places]
    return dict(zip(names, case.calls[0][1], strict=True))


def test_there_are_18() -> None:
    """Versions before 1.23 have fewer."""
    assert 11 <= len(CASES) <= 18


@pytest.mark.parametrize("name", CASES)
def test_session(name: str) -> None:
    assert verdict(CASES[name], ours) == (RIGHT, "")


@pytest.mark.parametrize("name", CASES)
def test_layers(name: str) -> None:
    want = wanted(CASES[name])
    got = by_layers(CASES[name])
    assert not errors([got[key] for key in want], [*want.values()])


@pytest.mark.parametrize("name", CASES)
def test_oracle(name: str) -> None:
    """The oracle of the other suite."""
    case = CASES[name]
    got, want = oracle.run(case.node.op_type, case.named, case.attributes), wanted(case)
    assert not errors([got[key] for key in want], [*want.values()])
