"""ONNX' own node tests, and its reference implementation, with weights read from their nodes.

The weights of a node test are all alike within an input, so that the order of the gates shows only
in the comparison with the reference implementation.
"""

import importlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops.weights import GRUWeights, LSTMWeights, RNNWeights

from .formats import (
    INPUTS,
    PEEPHOLE,
    PLAIN,
    ROUNDING,
    UNITS,
    Array,
    Shape,
    random_weights,
)

onnx = pytest.importorskip("onnx", reason="onnx, whose node tests these are, is not installed")
from onnx.backend.test.case import node as onnx_nodes  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

NODE_TESTS = [
    "test_lstm_batchwise",
    "test_lstm_defaults",
    "test_lstm_with_initial_bias",
    "test_lstm_with_peepholes",
    # Not in onnx 1.22, the last that goes with TensorFlow 2.18 and 2.19's protobuf.
    "test_lstm_bidirectional",
    "test_lstm_reverse",
]
GRU_NODE_TESTS = [
    "test_gru_batchwise",
    "test_gru_defaults",
    "test_gru_seq_length",  # a test of the bias
    "test_gru_with_initial_bias",
    "test_gru_bidirectional",
    "test_gru_reverse",
]
BATCH, TIME = 2, 4
DIRECTIONS = ["forward", "reverse", "bidirectional"]


class Node(NamedTuple):
    """A node of one layer: the values of its inputs by name, its attributes, its outputs."""

    inputs: dict[str, Array]
    attributes: dict[str, Any]
    outputs: dict[str, Array]

    @property
    def direction(self) -> str:
        return self.attributes.get("direction", b"forward").decode()

    @property
    def time_axis(self) -> int:
        return self.attributes.get("layout", 0)


def node_of(case: Any) -> Node:
    (node,) = case.model.graph.node
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}

    def named(names: Iterable[str], values: list[Array]) -> dict[str, Array]:
        return dict(zip(filter(None, names), values, strict=True))

    ((inputs, outputs),) = case.data_sets
    return Node(named(node.input, inputs), attributes, named(node.output, outputs))


@pytest.fixture(scope="module")
def node_tests() -> dict[str, Any]:
    """Those of onnx's modules lstm and gru: the import makes them. All others take seconds."""
    for name in "lstm", "gru":
        importlib.import_module(f"{onnx_nodes.__name__}.{name}")
    return recurrent(onnx_nodes._NodeTestCases)


def recurrent(cases: Iterable[Any]) -> dict[str, Any]:
    return {case.name: case for case in cases if case.name.startswith(("test_lstm", "test_gru"))}


def run_layer(kind: type, units: int, weights: Any, node: Node, **options: Any) -> dict[str, Array]:
    """Through one of our layers: the node's outputs, [T, D, N, H] and [D, N, H], or batchwise."""
    x = node.inputs["X"]
    batch_first = x if node.time_axis == 1 else x.swapaxes(0, 1)
    options |= {"return_sequences": True, "return_state": True, "dtype": x.dtype.name}
    layer = kind(units, go_backwards=node.direction == "reverse", **options)
    if node.direction == "bidirectional":
        layer = keras.layers.Bidirectional(layer, dtype=x.dtype.name)
    layer.build(batch_first.shape)
    layer.set_weights(weights.to_keras())
    states = [node.inputs[n] for n in ("initial_h", "initial_c") if n in node.inputs]
    initial = [state[d] for d in range(weights.directions) for state in states]
    lengths = node.inputs.get("sequence_lens")
    mask = None if lengths is None else tf.sequence_mask(lengths, batch_first.shape[1])
    y, *final = map(np.array, layer(batch_first, initial_state=initial or None, mask=mask))
    if node.direction == "reverse":  # our outputs stand in the order of calculation
        y = y[:, ::-1]
    per_direction = len(final) // weights.directions
    y = y.reshape(*y.shape[:2], weights.directions, -1)  # [N, T, D, H]
    batchwise = node.time_axis == 1
    found = {"Y": y if batchwise else y.transpose(1, 2, 0, 3)}
    for k, name in enumerate(("Y_h", "Y_c")[:per_direction]):
        found[name] = np.stack(final[k::per_direction], axis=1 if batchwise else 0)
    return found


def run_cudnn(weights: LSTMWeights, node: Node) -> dict[str, Array]:
    """Through CudnnRNNV3, which knows no reverse: it gets the steps from the last to the first."""
    assert node.inputs.keys() <= {"X", "W", "R", "B"}
    x = node.inputs["X"] if node.time_axis == 0 else node.inputs["X"].swapaxes(0, 1)
    step = -1 if node.direction == "reverse" else 1
    zero = tf.zeros([weights.directions, x.shape[1], weights.units], x.dtype)
    results = tf_lstm_ops.raw_ops.CudnnRNNV3(
        input=x[::step],
        input_h=zero,
        input_c=zero,
        params=weights.to_cudnn(),
        sequence_lengths=[len(x)] * x.shape[1],
        direction="bidirectional" if weights.directions == 2 else "unidirectional",
    )
    y = np.array(results.output)[::step].reshape(*x.shape[:2], weights.directions, -1)
    found = {
        "Y": y.swapaxes(1, 2),
        "Y_h": np.array(results.output_h),
        "Y_c": np.array(results.output_c),
    }
    if node.time_axis == 1:
        found = {k: np.moveaxis(v, -2, 0) for k, v in found.items()}
    return found


def assert_outputs(got: dict[str, Array], want: dict[str, Array], **tolerance: float) -> None:
    assert want
    for name, array in want.items():
        assert got[name].dtype == array.dtype
        np.testing.assert_allclose(got[name], array, **tolerance, err_msg=name)


def read(node: Node) -> LSTMWeights:
    return LSTMWeights.from_onnx(**{k: v for k, v in node.inputs.items() if k in "WRBP"})


def read_gru(node: Node) -> GRUWeights:
    inputs = {k: v for k, v in node.inputs.items() if k in "WRB"}
    before = node.attributes.get("linear_before_reset", 0)
    return GRUWeights.from_onnx(**inputs, linear_before_reset=before)


@pytest.mark.full
def test_no_other_module_has_node_tests(node_tests):
    with np.errstate(all="ignore"):  # the generators of other ops overflow on purpose
        assert recurrent(onnx_nodes.collect_testcases(None)).keys() == node_tests.keys()


def test_no_other_node_tests(node_tests):
    known = {*NODE_TESTS, *GRU_NODE_TESTS}
    assert {*NODE_TESTS[:4], *GRU_NODE_TESTS[:2]} <= node_tests.keys() <= known


@pytest.fixture
def case(node_tests, name):
    if name not in node_tests:
        pytest.skip(f"onnx {onnx.__version__} has no {name} yet")
    return node_tests[name]


@pytest.mark.parametrize("name", NODE_TESTS)
def test_node_through_the_layer(case, name):
    node = node_of(case)
    weights, peephole = read(node), "P" in node.inputs
    assert peephole == ("peepholes" in name)
    got = run_layer(tf_lstm_ops.keras.LSTM, weights.units, weights, node, use_peephole=peephole)
    assert_outputs(got, node.outputs, rtol=case.rtol, atol=case.atol)


@pytest.mark.parametrize("name", GRU_NODE_TESTS)
def test_gru_node_through_the_layer(case, name):
    """All have linear_before_reset=0, the default."""
    node = node_of(case)
    weights = read_gru(node)
    assert not weights.reset_after
    options = {"reset_after": False}
    got = run_layer(tf_lstm_ops.keras.GRU, weights.units, weights, node, **options)
    assert_outputs(got, node.outputs, rtol=case.rtol, atol=case.atol)


@pytest.mark.parametrize("name", [n for n in NODE_TESTS if "peepholes" not in n])
def test_node_through_cudnn(case, name):
    node = node_of(case)
    assert_outputs(run_cudnn(read(node), node), node.outputs, rtol=case.rtol, atol=case.atol)


def run_reference(kind: str, node: Node) -> dict[str, Array]:
    """Each direction as a forward node: older reference implementations know no other."""
    attributes = {k: v for k, v in node.attributes.items() if k != "direction"}
    directions = []
    for d in range(len(node.inputs["W"])):
        inputs = {k: v if k == "X" else v[d : d + 1] for k, v in node.inputs.items()}
        step = -1 if d == 1 or node.direction == "reverse" else 1
        inputs["X"] = inputs["X"][::step]
        found = run_forward(kind, inputs, attributes)
        directions.append({**found, "Y": found["Y"][::step]})
    return {
        name: np.concatenate([found[name] for found in directions], axis=int(name == "Y"))
        for name in directions[0]
    }


def run_forward(kind: str, inputs: dict[str, Array], attributes: Any) -> dict[str, Array]:
    slots = ["X", "W", "R", "B", "", "initial_h", "initial_c", "P"]
    outputs = ["Y", "Y_h"]  # older ones have no Y_c
    used = [slot if slot in inputs else "" for slot in slots[: 8 if kind == "LSTM" else 6]]
    node = onnx.helper.make_node(kind, used, outputs, **attributes)

    def values(names: Iterable[str]) -> list[Any]:
        double = onnx.TensorProto.DOUBLE
        return [onnx.helper.make_tensor_value_info(name, double, None) for name in names]

    graph = onnx.helper.make_graph([node], "g", values(inputs), values(outputs))
    results = ReferenceEvaluator(onnx.helper.make_model(graph)).run(None, inputs)
    return dict(zip(outputs, results, strict=True))


def random_node(rng: np.random.Generator, shape: Shape, direction: str, **attributes: Any) -> Node:
    node = random_weights(shape, rng).to_onnx()
    inputs = {k: rng.normal(size=v.shape) for k, v in node._asdict().items() if v is not None}
    states = ("initial_h", "initial_c") if shape.kind == "lstm" else ("initial_h",)
    inputs |= {name: rng.normal(size=(shape.directions, BATCH, UNITS)) for name in states}
    inputs["X"] = rng.normal(size=(TIME, BATCH, INPUTS))
    attributes |= {"hidden_size": UNITS, "direction": direction.encode()}
    return Node(inputs, attributes, {})


def one_layer(shapes: list[Shape], kind: str) -> list[tuple[Shape, str]]:
    return [
        (shape, direction)
        for shape in shapes
        for direction in DIRECTIONS
        if (shape.kind, shape.layers) == (kind, 1)
        and shape.directions == 1 + (direction == "bidirectional")
    ]


@pytest.mark.parametrize(("shape", "direction"), one_layer(PLAIN + PEEPHOLE, "lstm"), ids=str)
def test_random_lstm_as_the_reference(rng, shape, direction):
    node = random_node(rng, shape, direction)
    weights = read(node)
    got = run_layer(tf_lstm_ops.keras.LSTM, UNITS, weights, node, use_peephole=shape.peephole)
    assert_outputs(got, run_reference("LSTM", node), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("linear_before_reset", [0, 1])
@pytest.mark.parametrize(("shape", "direction"), one_layer(PLAIN, "gru"), ids=str)
def test_random_gru_as_the_reference(rng, shape, direction, linear_before_reset):
    node = random_node(rng, shape, direction, linear_before_reset=linear_before_reset)
    weights, options = read_gru(node), {"reset_after": bool(linear_before_reset)}
    got = run_layer(tf_lstm_ops.keras.GRU, UNITS, weights, node, **options)
    assert_outputs(got, run_reference("GRU", node), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(("shape", "direction"), one_layer(PLAIN, "rnn_tanh"), ids=str)
def test_random_rnn_as_the_reference(rng, shape, direction):
    """The reference has no Relu."""
    node = random_node(rng, shape, direction)
    weights = RNNWeights.from_onnx(*(node.inputs[name] for name in ("W", "R", "B")))
    got = run_layer(tf_lstm_ops.keras.SimpleRNN, UNITS, weights, node)
    assert_outputs(got, run_reference("RNN", node), rtol=0, atol=ROUNDING)
