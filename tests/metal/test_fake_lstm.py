"""The fake frameworks' LSTM and its gradients agree with Apple's documentation, by comparison with
the oracle in float64. The package's kernels take no part."""

import numpy as np
import pytest

from metal.closeness import assert_close, normal
from metal.objc import Graph, Id, Runtime
from oracle.mpsgraph import ACTIVATIONS, Arguments, Options, Results
from oracle.mpsgraph import mpsgraph_lstm as lstm
from oracle.mpsgraph import mpsgraph_lstm_backward as lstm_backward

pytestmark = pytest.mark.metal

NAMES = ["none", "relu", "tanh", "sigmoid", "hard_sigmoid"]  # in the order of the enumeration
OPTIONAL = ("input_weight", "bias", "init_state", "init_cell", "mask", "peephole")
ORDER = ("source", "recurrent_weight", *OPTIONAL)
PROPERTIES = {
    "forget_gate_last": "setForgetGateLast:",
    "input_gate_activation": "setInputGateActivation:",
    "forget_gate_activation": "setForgetGateActivation:",
    "cell_gate_activation": "setCellGateActivation:",
    "output_gate_activation": "setOutputGateActivation:",
    "activation": "setActivation:",
}
FORWARD = (
    "LSTMWithSourceTensor:recurrentWeight:inputWeight:bias:initState:initCell:mask:peephole:"
    "descriptor:name:"
)
BACKWARD = (
    "LSTMGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:cellOutputFwd:"
    "stateGradient:cellGradient:inputWeight:bias:initState:initCell:mask:peephole:descriptor:name:"
)
GATES = {
    "relu in the cell": {"cell_gate_activation": "relu", "activation": "relu"},
    "hard gates": dict.fromkeys(list(PROPERTIES)[1:5], "hard_sigmoid"),
    "all different": dict(zip(list(PROPERTIES)[1:], reversed(NAMES), strict=True)),
}


def random_lstm(rng, absent: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    time, rows, inputs, units = 4, 3, 2, 5
    given = {
        "source": normal(rng, time, rows, 4 * units if "input_weight" in absent else inputs),
        "recurrent_weight": normal(rng, 4 * units, units) / 2,
        "input_weight": normal(rng, 4 * units, inputs),
        "bias": normal(rng, 4 * units),
        "peephole": normal(rng, 4 * units) / 2,
        "init_state": normal(rng, rows, units),
        "init_cell": normal(rng, rows, units),
        "mask": normal(rng, rows, units),
    }
    return {name: value for name, value in given.items() if name not in absent}


def descriptor(runtime: Runtime, **options) -> Id:
    made = runtime("MPSGraphLSTMDescriptor")("descriptor")
    for option, value in options.items():
        made(PROPERTIES[option], NAMES.index(value) if isinstance(value, str) else int(value))
    return made


def trained(runtime: Runtime, **options) -> Id:
    made = descriptor(runtime, **options)
    made("setTraining:", 1)
    made("setProduceCell:", 1)
    return made


def forward(graph: Graph, given: dict[str, np.ndarray], **options) -> list[Id]:
    return list(graph(FORWARD, *map(given.get, ORDER), trained(graph.runtime, **options)))


def oracle_of(given: dict[str, np.ndarray], options: dict) -> tuple[Arguments, Options]:
    exact = {name: value.astype(float) for name, value in given.items()}
    mask = exact.pop("mask", None)
    return Arguments(**exact), Options(mask=mask, **options)


CASES = [{}, {"forget_gate_last": True}, *GATES.values()]
ABSENT = [(), *((name,) for name in OPTIONAL), OPTIONAL]


@pytest.mark.parametrize("absent", ABSENT)
@pytest.mark.parametrize("options", CASES, ids=str)
def test_lstm(rng, graph, options, absent):
    given = random_lstm(rng, absent)
    got = graph.run(forward(graph, given, **options))
    want = lstm(*oracle_of(given, options))
    for value, right in zip(got, (want.output, want.cell, want.z_state), strict=True):
        assert_close(value, right, units=20)  # four steps, sums of ten terms each


@pytest.mark.parametrize("absent", ABSENT)
@pytest.mark.parametrize("options", CASES, ids=str)
def test_lstm_gradients(rng, graph, options, absent):
    given = random_lstm(rng, absent)
    arguments, chosen = oracle_of(given, options)
    saved = lstm(arguments, chosen)
    z_state, cell = (a.astype(np.float32) for a in (saved.z_state, saved.cell))
    output_grads = Results(
        *(normal(rng, *np.shape(a)) for a in saved[:3]),
        np.zeros_like(saved.cell),
        np.zeros_like(saved.z_state),
    )
    gradients = graph(
        BACKWARD,
        *map(given.get, ORDER[:2]),
        *(output_grads.output, z_state, cell),
        *(output_grads.state[None], output_grads.final_cell[None]),
        *map(given.get, ORDER[2:]),
        trained(graph.runtime, **options),
    )
    got = graph.run(list(gradients))
    exact = [a.astype(float) for a in (cell, z_state)]
    want = lstm_backward(
        arguments, *exact, Results(*(u.astype(float) for u in output_grads)), chosen
    )
    rights = [(n, g) for n, g in zip(Arguments._fields, want, strict=True) if g is not None]
    for value, (name, right) in zip(got, rights, strict=True):
        if name == "bias":
            assert value.shape == (1, 1, right.size)  # as in some releases
            value = value.ravel()
        assert_close(value, right, units=100)  # sums over steps and rows of products of sums


def test_absent_peepholes_do_not_read_the_cell(rng, graph):
    """Zero times infinity would be no number."""
    given = random_lstm(rng, ("peephole",))
    given["init_cell"][0] = np.inf
    output, *_ = graph.run(forward(graph, given))
    assert not np.isnan(output).any()


def test_descriptor_defaults(runtime):
    made = descriptor(runtime)
    flags = ("produceCell", "training", "forgetGateLast")
    assert [made.integer(flag) & 0xFF for flag in flags] == [0] * 3
    gates = ("inputGate", "forgetGate", "cellGate", "outputGate")
    chosen = [NAMES[made.integer(f"{gate}Activation")] for gate in gates]
    assert chosen == ["sigmoid", "sigmoid", "tanh", "sigmoid"]
    assert NAMES[made.integer("activation")] == "tanh"
    assert set(NAMES) == set(ACTIVATIONS)


def test_state_that_only_the_gradient_can_read(rng, graph, monkeypatch):
    """FAKE_OPAQUE_Z changes zState and no other result."""
    given = random_lstm(rng)
    plain = graph.run(forward(graph, given))
    monkeypatch.setenv("FAKE_OPAQUE_Z", "1")
    output, cell, z_state = graph.run(forward(graph, given))
    np.testing.assert_array_equal(output, plain[0])
    np.testing.assert_array_equal(cell, plain[1])
    assert not np.any(z_state == plain[2])
