"""The CudnnRNN family where XLA compiles: beside its own kernels, outside."""

import numpy as np
import pytest
import tensorflow as tf

from cudnn_rnn.cases import BACKPROP, DTYPES, FORWARD, GATES, Case, arguments, call
from tf_lstm_ops import composite, raw_ops

from .comparison import (
    SECOND_ORDER,
    assert_agree,
    compiled,
    second_derivatives,
    value_and_grads,
)

LENGTHS = [2, 0, 1]
FULL = {"layers": 2, "directions": 2, "time": 4}
BATCH_MAJOR = Case(proj=2, time=4, time_major=False)
slow = pytest.mark.slow
CASES = [
    ("CudnnRNNV3", BATCH_MAJOR, "float64"),
    ("CudnnRNN", Case("gru", directions=2, time=4), "float64"),
    ("CudnnRNNV2", Case("rnn_tanh", inputs=4, input_mode="skip_input"), "float32"),
    *(
        pytest.param(op, Case(mode, time_major=op != "CudnnRNNV3", **FULL), dtype, marks=slow)
        for mode in GATES
        for op, dtype in zip(("CudnnRNN", "CudnnRNNV2", *["CudnnRNNV3"] * 2), DTYPES, strict=True)
    ),
]


def given(op: str, case: Case, dtype: str = "float64") -> dict[str, tf.Tensor]:
    return arguments(op, case, dtype, lengths=LENGTHS if op.endswith("V3") else None)


@pytest.mark.parametrize(("op", "case", "dtype"), CASES)
def test_values_and_gradients(op, case, dtype):
    values = given(op, case, dtype)
    sources = ["input", "input_h", "input_c", "params"]

    def function(values):
        def of_sources(*tensors):
            replaced = {**values, **dict(zip(sources, tensors, strict=True))}
            return call(op, case, replaced)[:3]

        return value_and_grads(of_sources, *(values[name] for name in sources))

    assert_agree(compiled(function, values), function(values), dtype)


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("op", FORWARD)
def test_what_is_reserved(op, is_training):
    """The rank of reserve_space is the kernel's, and all of host_reserved."""
    case = Case(time=2)
    values = given(op, case)
    with composite.plain_ops():
        got = call(op, case, values, is_training=is_training)
    want = call(op, case, values, is_training=is_training)
    assert got._fields == want._fields
    assert got.reserve_space.shape.rank == want.reserve_space.shape.rank
    assert_agree(got._replace(reserve_space=want.reserve_space), want)


@pytest.mark.parametrize(
    "op", [*(pytest.param(op, marks=slow) for op in BACKPROP[:2]), "CudnnRNNBackpropV3"]
)
def test_gradient_ops(op):
    """Whatever reserve_space holds: the forward pass is calculated again."""
    case = BATCH_MAJOR if op.endswith("V3") else Case("gru", time=2)
    values = given(op, case)
    assert_agree(compiled(lambda v: call(op, case, v), values), call(op, case, values))


@pytest.mark.slow
def test_second_derivatives():
    values = given("CudnnRNNV3", BATCH_MAJOR)
    names = ["input", "input_h", "input_c", "params"]

    def function(values):
        def output(*tensors):
            replaced = {**values, **dict(zip(names, tensors, strict=True))}
            return call("CudnnRNNV3", BATCH_MAJOR, replaced).output

        return second_derivatives(output, *(values[name] for name in names))

    assert_agree(compiled(function, values), function(values), factor=SECOND_ORDER)


# --- dropout ---------------------------------------------------------------------------------

# Two layers of one unit, of which the first returns its input and the second what it sees: with
# ones as input the output is what dropout multiplies by.
SHOWS_MASK = Case("rnn_relu", layers=2, inputs=1, units=1, time=50, batch=20)


def multipliers(**options):
    case = SHOWS_MASK
    values = {
        "input": tf.ones([case.time, case.batch, 1]),
        "input_h": tf.zeros([2, case.batch, 1]),
        "input_c": 0.0,
        "params": [1.0, 0.0, 1.0, 0.0, *[0.0] * 4],  # W and R of each layer, biases
    }
    return call("CudnnRNNV2", case, values, **options).output


def test_dropout_drops_with_its_probability():
    function = tf.function(lambda: multipliers(dropout=0.25, seed=1, seed2=2), jit_compile=True)
    first, second = function().numpy(), function().numpy()
    for mask in first, second:
        assert set(np.unique(mask)) == {np.float32(0), np.float32(1 / 0.75)}
        # Of 1000 draws; 0.07 are five standard deviations of their mean.
        assert abs(np.mean(mask == 0) - 0.25) < 0.07
    assert np.any(first != second)


@pytest.mark.parametrize(
    ("options", "want"),
    [({"dropout": 1.0}, 0), ({"dropout": 0.0}, 1), ({"dropout": 0.5, "is_training": False}, 1)],
)
def test_nothing_random(options, want):
    np.testing.assert_array_equal(
        compiled(lambda: multipliers(**options)), np.full([50, 20, 1], want)
    )


def test_dropout_is_an_error_in_gradient_ops():
    case = Case(layers=2)
    values = arguments("CudnnRNNBackprop", case)
    with pytest.raises(ValueError, match=r"dropout must be 0 but is 0\.5.*reserve_space"):
        compiled(lambda v: call("CudnnRNNBackprop", case, v, dropout=0.5), values)


# --- params ----------------------------------------------------------------------------------


SKIPS_INPUT = Case("gru", layers=2, directions=2, inputs=4, input_mode="skip_input")


@pytest.mark.parametrize(("case", "version"), [(SKIPS_INPUT, ""), (Case(layers=2, proj=2), "V2")])
def test_params(case, version):
    """Their size, the conversion to lists and back."""
    sizes = {"num_layers": case.layers, "num_units": case.units, "input_size": case.inputs}
    weights, biases = len(case.matrices()), len(case.biases())
    counts = {"num_params_weights": weights, "num_params_biases": biases}
    params = tf.random.stateless_normal([case.params_size()], [1, 2])

    def function(params):
        size = call("CudnnRNNParamsSize", case, sizes, T=tf.float32, S=tf.int64)
        lists = call(
            f"CudnnRNNParamsToCanonical{version}",
            case,
            {**sizes, "params": params},
            **(counts if version else {"num_params": weights}),
        )
        again = call(f"CudnnRNNCanonicalToParams{version}", case, {**sizes, **lists._asdict()})
        return size, lists, again

    got, want = compiled(function, params), function(params)
    tf.nest.assert_same_structure(got, want)
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True):
        np.testing.assert_array_equal(a, b)


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sequence_lengths": [1]}, r"sequence_lengths must have shape \[3\] but has \(1,\)"),
        ({"input_h": tf.zeros([1, 1, 4])}, r"input_h.dim_size\(1\) != batch_size: 1 vs. 3"),
        ({"input_c": tf.zeros([2, 3, 4])}, "input_h and input_c do not fit"),
        ({"input": tf.zeros([5, 3])}, "input must be rank 3 but is rank 2"),
        ({"params": tf.zeros([5])}, "params"),
    ],
)
def test_a_wrong_shape(wrong, message):
    values = arguments("CudnnRNNV3", Case()) | wrong
    with pytest.raises(ValueError, match=message):
        compiled(lambda: call("CudnnRNNV3", Case(), values))


def test_a_list_too_short_and_a_size_unknown():
    sizes = {"num_layers": 1, "num_units": 4, "input_size": 3}
    with pytest.raises(ValueError, match="Number of weights must be 8 for 1 layers"):
        compiled(
            lambda: raw_ops.CudnnRNNCanonicalToParams(
                **sizes, weights=[tf.zeros([4])], biases=[tf.zeros([4])]
            )
        )
    with pytest.raises(ValueError, match="num_units must be a constant"):
        compiled(
            lambda units: call(
                "CudnnRNNParamsSize", Case(), {**sizes, "num_units": units}, T=tf.half, S=tf.int32
            ),
            tf.constant(4),
        )
