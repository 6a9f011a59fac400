"""Arguments that are no tensors: arrays, plain Python values and variables of TensorFlow 1."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from block_cell.contract import SIGNATURES, arguments, right_shapes
from cudnn_rnn import cases as cudnn_rnn
from mpsgraph.cases import Case as MpsGraphCase
from mpsgraph.cases import random_arguments
from tf_lstm_ops import raw_ops

BLOCK_CELL_SIZES = {"time": 2, "batch": 2, "inputs": 3, "units": 2}
MODEL = cudnn_rnn.Case(layers=2, time=2, batch=2)
Values = dict[str, Any]


def values_of(op: str, dtype: str = "float32") -> tuple[Values, Values]:
    """The tensors that an op takes, by name, and its other arguments."""
    if op in SIGNATURES:
        tensors = arguments(op, right_shapes(op, **BLOCK_CELL_SIZES), length=2, dtype=dtype)
        return tensors, {"use_peephole": True}
    if op.startswith("MPSGraph"):
        found, mask = random_arguments(np.random.default_rng(0), MpsGraphCase(), dtype)
        named = {**found._asdict(), "mask": mask}
        return {k: tf.constant(v, tf.as_dtype(dtype)) for k, v in named.items()}, {}
    return cudnn_rnn.arguments(op, MODEL, dtype), MODEL.attributes(op)


OPS = [*SIGNATURES, "CudnnRNNV3", "MPSGraphLSTM"]
OTHERS = {
    "float64 array": lambda v: v.numpy().astype("float64" if v.dtype.is_floating else "int16"),
    "list": lambda v: v.numpy().tolist(),
}


def results(op: str, values: Values, others: Values) -> list[np.ndarray]:
    found = tf.nest.flatten(getattr(raw_ops, op)(**values, **others))
    return [v.numpy() for v in found if v is not None]


def assert_same(got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("dtype", ["float32", "half"])
@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("op", OPS)
def test_one_beside_tensors(op, kind, dtype):
    """It gets the type of the tensors. All elements have the same value in both types."""
    tensors, others = values_of(op, dtype)
    wanted = results(op, tensors, others)
    for name, value in tensors.items():
        assert_same(results(op, {**tensors, name: OTHERS[kind](value)}, others), wanted)


@pytest.mark.parametrize("op", OPS)
def test_arrays_alone(op):
    """The type is that of the first one."""
    tensors, others = values_of(op, "float64")
    wanted = results(op, tensors, others)
    arrays = {k: v.numpy() for k, v in tensors.items()}
    last = list(arrays)[-1]
    if op == "CudnnRNNV3":
        last = "params"
    arrays[last] = arrays[last].tolist()
    assert_same(results(op, arrays, others), wanted)


def test_lists_of_tensors():
    """Each element of weights and biases is an argument of its own."""
    op = "CudnnRNNCanonicalToParamsV2"
    attributes = {**MODEL.attributes(op), "num_layers": 2, "num_units": 4, "input_size": 3}
    rng = np.random.default_rng(0)
    weights = [rng.uniform(size=s).astype("f").astype("d") for s in MODEL.matrices()]
    biases = [rng.uniform(size=s).astype("f").astype("d") for s in MODEL.biases()]
    as_tensors = {
        "weights": [tf.constant(v, tf.float32) for v in weights],
        "biases": [tf.constant(v, tf.float32) for v in biases],
    }
    mixed = {"weights": [as_tensors["weights"][0], *weights[1:]], "biases": biases}
    wanted = results(op, as_tensors, attributes)
    assert_same(results(op, mixed, attributes), wanted)
    mixed["biases"][1] = np.zeros(4, "complex64")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"biases\[1\] must be float32"):
        results(op, mixed, attributes)


@pytest.mark.parametrize("scope", [tf.init_scope, lambda: tf.Graph().as_default()])
def test_as_stock(scope):
    with scope():
        tensors, others = values_of("LSTMBlockCell")
        values = {**tensors, "w": np.zeros((5, 8)), "b": [0.0] * 8}
        for ours, stock in zip(
            raw_ops.LSTMBlockCell(**values, **others),
            tf.raw_ops.LSTMBlockCell(**values, **others),
            strict=True,
        ):
            assert ours.dtype == stock.dtype
            assert ours.shape == stock.shape


@pytest.mark.parametrize(
    ("op", "name", "value", "text"),
    [
        ("LSTMBlockCell", "w", np.zeros((5, 8), "complex64"), "w must be float32 but is complex64"),
        ("LSTMBlockCell", "b", np.array(["a"] * 8), "b must be float32 but is string"),
        ("LSTMBlockCell", "b", ["a"] * 8, "b cannot be converted to float32"),
        ("LSTMBlockCell", "w", [[1.0], [1.0, 2.0]], "w cannot be converted to float32"),
        ("BlockLSTM", "seq_len_max", np.float32(1.5), "int64 but has elements that this type"),
        ("BlockLSTM", "seq_len_max", np.float32("nan"), "int64 but has elements that this type"),
        ("BlockLSTM", "seq_len_max", 1.5, "seq_len_max cannot be converted to int64"),
        ("BlockLSTM", "seq_len_max", 2**70, "seq_len_max cannot be converted to int64"),
        ("CudnnRNNV3", "sequence_lengths", np.array([2, 2**32 + 1]), "int32 but has elements that"),
        ("MPSGraphLSTM", "bias", np.zeros(20, "complex64"), "bias must be float32 but is complex"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_converted(op, name, value, text):
    tensors, others = values_of(op)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        results(op, {**tensors, name: value}, others)
    assert text in str(caught.value)
    assert name in str(caught.value)


# --- reference variables ----------------------------------------------------------------------


def in_session(build: Callable[[dict[str, Any]], Any], values: Values, op: str) -> list[Any]:
    """What `build` returns, run before and after each variable has been doubled in place."""
    with tf.Graph().as_default():
        variables = {
            k: tf.compat.v1.Variable(v.numpy(), use_resource=False) for k, v in values.items()
        }
        assert all(v.dtype != v.dtype.base_dtype for v in variables.values())
        fetches = build(variables)
        floating = [v for v in variables.values() if v.dtype.is_floating]
        doubled = [tf.compat.v1.assign(v, 2 * v) for v in floating]
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            before = session.run(fetches)
            session.run([v.op for v in doubled])
            return [before, session.run(fetches)]


def differentiated(values: Values) -> list[Any]:
    """All but integers and the mask, which has no gradient."""
    return [v for name, v in values.items() if v.dtype.is_floating and name != "mask"]


def twice(values: Values) -> Values:
    return {k: 2 * v if v.dtype.is_floating else v for k, v in values.items()}


@pytest.mark.parametrize("op", ["LSTMBlockCell", "BlockLSTM", "CudnnRNNV3", "MPSGraphLSTM"])
def test_reference_variables(op):
    """Results and gradients are those of tensors, also after the variables are written in place."""
    tensors, others = values_of(op)

    def outputs(values):
        found = tf.nest.flatten(getattr(raw_ops, op)(**values, **others))
        return [v for v in found if v is not None][:3]

    def with_gradients(variables):
        results = outputs(variables)
        return [results, tf.gradients(results, differentiated(variables))]

    for values, (got, got_gradients) in zip(
        (tensors, twice(tensors)), in_session(with_gradients, tensors, op), strict=True
    ):
        floating = differentiated(values)
        with tf.GradientTape() as tape:
            tape.watch(floating)
            wanted = outputs(values)
        assert_same(got, [v.numpy() for v in wanted])
        assert_same(got_gradients, [v.numpy() for v in tape.gradient(wanted, floating)])


def test_a_reference_variable_of_another_type_is_refused():
    tensors, others = values_of("LSTMBlockCell")
    with tf.Graph().as_default():
        values = {k: tf.constant(v.numpy()) for k, v in tensors.items()}
        values["w"] = tf.compat.v1.Variable(np.zeros((5, 8)), use_resource=False)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="w must be float32 but is float64"
        ):
            raw_ops.LSTMBlockCell(**values, **others)
