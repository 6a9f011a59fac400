"""tf_lstm_ops.composite.cudnn_rnn, through which the second derivatives go, beside the oracle."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from oracle.cudnn_rnn import Arguments, Model, Results, cudnn_rnn, cudnn_rnn_backward
from oracle.derivatives import central_difference, complex_step, unit_direction
from sums import gradient, tf_weighted_sum, weighted_sum
from tf_lstm_ops import _library, raw_ops
from tf_lstm_ops.composite import cudnn_rnn as composite

Array = np.ndarray

# Composite and oracle both only round: some hundred roundings of 1e-16 in sums of size ten.
ROUNDING = 1e-12
# One derivative more: as in tests/block_cell/test_second_order.py.
SECOND_ROUNDING = 1e-11
# Fourth-order differences (see central_difference) of sums of size ten.
DIFFERENCE = 1e-9

TIME, BATCH, UNITS = 4, 3, 3
LENGTHS = {"full": None, "unsorted": [2, 4, 1], "zero": [0, 4, 3], "none_at_all": [0, 0, 0]}

MODELS = {
    "one": Model("lstm", 2, UNITS),
    "layers": Model("lstm", 2, UNITS, layers=3),
    "bidirectional": Model("lstm", 2, UNITS, layers=2, directions=2),
    "projected": Model("lstm", 2, UNITS, layers=2, directions=2, num_proj=2),
    "num_proj_is_units": Model("lstm", 2, UNITS, num_proj=UNITS),
    "skip": Model("lstm", UNITS, UNITS, layers=2, directions=2, skip_input=True),
    "batch_major": Model("lstm", 2, UNITS, layers=2, directions=2, num_proj=2, time_major=False),
    "gru": Model("gru", 2, UNITS),
    "gru_full": Model("gru", 2, UNITS, layers=2, directions=2, time_major=False),
    "gru_skip": Model("gru", UNITS, UNITS, directions=2, skip_input=True),
    "tanh": Model("rnn_tanh", 2, UNITS, layers=2, directions=2),
    "relu": Model("rnn_relu", 2, UNITS, layers=2, directions=2, time_major=False),
}


UPSTREAM = ["output_backprop", "output_h_backprop", "output_c_backprop"]


class Case(NamedTuple):
    model: Model
    arguments: Arguments
    upstream: Results
    lengths: list[int] | None
    dropout: Array | None


def make_case(name: str, lengths: str, dropout: bool, rng: np.random.Generator) -> Case:
    model = MODELS[name]
    states = (model.layers * model.directions, BATCH)
    arguments = Arguments(
        rng.normal(size=(TIME, BATCH, model.inputs)),
        rng.normal(size=(*states, model.hidden)),
        rng.normal(size=(*states, model.units) if model.mode == "lstm" else ()),
        rng.normal(size=model.params_size),
    )
    arguments = model.majors_exchanged(arguments)
    mask = None
    if dropout:
        shape = (model.layers - 1, TIME, BATCH, model.directions * model.hidden)
        mask = 2.0 * (rng.random(shape) < 0.5)
    results = cudnn_rnn(model, arguments, LENGTHS[lengths], mask)
    upstream = Results(*(rng.normal(size=r.shape) for r in results))
    return Case(model, arguments, upstream, LENGTHS[lengths], mask)


def attributes(model: Model) -> dict[str, Any]:
    return {
        "rnn_mode": model.mode,
        "input_mode": "skip_input" if model.skip_input else "linear_input",
        "direction": "bidirectional" if model.directions == 2 else "unidirectional",
        "num_proj": model.num_proj,
        "time_major": model.time_major,
    }


def optional(case: Case, dtype: str = "float64") -> tuple[Any, Any]:
    lengths = None if case.lengths is None else tf.constant(case.lengths)
    return lengths, None if case.dropout is None else tf.constant(case.dropout, dtype)


def forward(case: Case, inputs: Any) -> list[tf.Tensor]:
    lengths, mask = optional(case, inputs[0].dtype)
    return composite.cudnn_rnn(*inputs, lengths, mask, **attributes(case.model))


def backprop(case: Case, inputs: Any, upstream: Any) -> list[tf.Tensor]:
    lengths, mask = optional(case, inputs[0].dtype)
    return composite.cudnn_rnn_backprop(
        list(inputs), list(upstream), lengths, mask, **attributes(case.model)
    )


def tensors(values: Any, dtype: str = "float64") -> list[tf.Tensor]:
    return [tf.constant(v, dtype) for v in values]


def assert_all_close(got: Any, want: Any, tolerance: float) -> None:
    for name, a, b in zip(want._fields, got, want, strict=True):
        assert a.shape == b.shape, name
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dropout", [False, True], ids=["", "dropout"])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("name", MODELS)
def test_values_and_gradients(rng, name, lengths, dropout):
    case = make_case(name, lengths, dropout, rng)
    inputs = tensors(case.arguments)
    want = cudnn_rnn(case.model, case.arguments, case.lengths, case.dropout)
    assert_all_close(forward(case, inputs), want, ROUNDING)
    gradients = cudnn_rnn_backward(*case)
    assert_all_close(backprop(case, inputs, tensors(case.upstream)), gradients, ROUNDING)


def test_auto_select_skips_the_input_where_it_fits(rng):
    for name, selected in [("skip", "skip_input"), ("layers", "linear_input")]:
        case = make_case(name, "full", False, rng)
        assert attributes(case.model)["input_mode"] == selected
        chosen = {**attributes(case.model), "input_mode": "auto_select"}
        got = composite.cudnn_rnn(*tensors(case.arguments), None, None, **chosen)
        want = forward(case, tensors(case.arguments))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


def first_order(case: Case, weights: Any, values: Any) -> tf.Tensor:
    """Σ weights∘gradients, as a function of the inputs and the upstream gradients."""
    return tf_weighted_sum(weights, backprop(case, values[:4], values[4:]))


# test_second_order.py has more models: the ops' second derivatives are these.
SECOND_ORDER = [("gru_skip", "unsorted"), ("tanh", "full")]
MORE = [("projected", "full"), ("batch_major", "unsorted"), ("gru_full", "unsorted")]


@pytest.mark.parametrize(
    ("name", "lengths"),
    [*SECOND_ORDER, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE)],
)
def test_second_derivatives(rng, name, lengths):
    """Beside the complex step through the oracle's backward pass."""
    case = make_case(name, lengths, True, rng)
    point = [*case.arguments, *case.upstream]
    weights = [rng.normal(size=a.shape) for a in case.arguments]

    def oracle(values):
        gradients = cudnn_rnn_backward(
            case.model, Arguments(*values[:4]), Results(*values[4:]), case.lengths, case.dropout
        )
        return weighted_sum(weights, gradients)

    got = gradient(lambda v: first_order(case, weights, v), tensors(point))
    for k, (a, b) in enumerate(zip(got, complex_step(oracle, point), strict=True)):
        np.testing.assert_allclose(
            a, b, rtol=SECOND_ROUNDING, atol=SECOND_ROUNDING, err_msg=f"argument {k}"
        )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("projected", marks=pytest.mark.full),
        pytest.param("gru_full", marks=pytest.mark.slow),
    ],
)
def test_third_derivatives(rng, name):
    """Along one direction, against the finite difference of the second derivative along it."""
    case = make_case(name, "unsorted", True, rng)
    point = [*case.arguments, *case.upstream]
    weights = [rng.normal(size=a.shape) for a in case.arguments]
    direction, other = unit_direction(rng, point), unit_direction(rng, point)

    def second(values):
        return tf_weighted_sum(direction, gradient(lambda v: first_order(case, weights, v), values))

    got = weighted_sum(other, gradient(second, tensors(point)))
    want = central_difference(lambda v: second(tensors(v)).numpy(), point, other)
    np.testing.assert_allclose(got, want, rtol=0, atol=DIFFERENCE)


@pytest.mark.parametrize("time_major", [True, pytest.param(False, marks=pytest.mark.full)])
def test_padding_is_not_read(rng, time_major):
    """NaN there changes no value and no derivative, of first and second order."""
    name = "bidirectional" if time_major else "batch_major"
    case = make_case(name, "unsorted", True, rng)
    padding = np.arange(TIME)[:, None] >= case.lengths
    padding = padding if time_major else padding.T
    point = [*case.arguments, *case.upstream]
    spoilt = [a.copy() for a in point]
    spoilt[0][padding] = np.nan  # the input
    spoilt[4][padding] = np.nan  # the gradient of the output
    weights = [rng.normal(size=a.shape) for a in case.arguments]

    def everything(values):
        inputs, upstream = tensors(values[:4]), tensors(values[4:])
        second = gradient(lambda v: first_order(case, weights, v), [*inputs, *upstream])
        return [*forward(case, inputs), *backprop(case, inputs, upstream), *second]

    for a, b in zip(everything(spoilt), everything(point), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("one", marks=pytest.mark.slow),
        pytest.param("gru_full", marks=pytest.mark.slow),
    ],
)
def test_time_and_batch_may_be_unknown(rng, name):
    case = make_case(name, "unsorted", False, rng)
    point = tensors([*case.arguments, *case.upstream])
    weights = [rng.normal(size=a.shape) for a in case.arguments]
    layers_first = case.model.time_major

    def unknown(k: int, value: tf.Tensor) -> tf.TensorSpec:
        shape = value.shape.as_list()
        if k in (0, 4):  # input, gradient of the output
            shape[:2] = None, None
        elif len(shape) == 3:
            shape[1 if layers_first else 0] = None
        return tf.TensorSpec(shape, value.dtype)

    @tf.function(input_signature=[unknown(k, v) for k, v in enumerate(point)])
    def traced(*values):
        second = gradient(lambda v: first_order(case, weights, v), list(values))
        return forward(case, values[:4]), second

    values, second = traced(*point)
    assert_all_close(
        values, cudnn_rnn(case.model, case.arguments, case.lengths, case.dropout), ROUNDING
    )
    eager = gradient(lambda v: first_order(case, weights, v), point)
    for a, b in zip(second, eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=SECOND_ROUNDING, atol=SECOND_ROUNDING)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({0: [TIME, BATCH, None]}, r"input.shape\[2\] must be known"),
        ({1: [None, BATCH, UNITS]}, r"input_h.shape\[0\] must be known"),
        ({2: None}, r"input_c.shape\[2\] must be known"),
    ],
)
def test_sizes_must_be_known(rng, shapes, message):
    case = make_case("layers", "full", False, rng)
    specs = [
        tf.TensorSpec(shapes.get(k, a.shape), tf.float64) for k, a in enumerate(case.arguments)
    ]
    traced = tf.function(lambda *inputs: forward(case, inputs), input_signature=specs)
    with pytest.raises(ValueError, match=message):
        traced.get_concrete_function()


def to_float32(value: tf.Tensor) -> Array:
    return tf.cast(value, tf.float32).numpy()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("batch_major", "half"),
        ("gru_full", "bfloat16"),
        pytest.param("batch_major", "bfloat16", marks=pytest.mark.full),
        pytest.param("gru_full", "half", marks=pytest.mark.full),
    ],
)
def test_narrow_types_are_computed_in_float32(rng, name, dtype):
    case = make_case(name, "unsorted", True, rng)
    narrow = tensors([*case.arguments, *case.upstream], dtype)
    wide = [tf.cast(v, tf.float32) for v in narrow]
    got = [*forward(case, narrow[:4]), *backprop(case, narrow[:4], narrow[4:])]
    want = [*forward(case, wide[:4]), *backprop(case, wide[:4], wide[4:])]
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        assert a.dtype == dtype
        np.testing.assert_array_equal(to_float32(a), to_float32(tf.cast(b, dtype)), f"result {k}")


@pytest.mark.sampled(12)
@pytest.mark.parametrize("lengths", ["full", "unsorted", "zero"])
@pytest.mark.parametrize("name", MODELS)
def test_equals_the_fused_ops(rng, name, lengths):
    """In values and gradients, with the dropout mask that the forward op drew."""
    case = make_case(name, lengths, False, rng)
    inputs = dict(zip(Arguments._fields, tensors(case.arguments), strict=True))
    inputs["sequence_lengths"] = tf.constant(case.lengths or [TIME] * BATCH)
    options = {**attributes(case.model), "dropout": 0.5, "seed": 3}
    results = raw_ops.CudnnRNNV3(**inputs, **options, is_training=True)
    mask = _library.load().tf_lstm_ops_cudnn_rnn_dropout_mask(reserve_space=results.reserve_space)
    case = case._replace(dropout=mask.numpy())
    assert_all_close(
        forward(case, tensors(case.arguments)), Results(*(r.numpy() for r in results[:3])), ROUNDING
    )
    upstream = dict(zip(UPSTREAM, tensors(case.upstream), strict=True))
    gradients = raw_ops.CudnnRNNBackpropV3(**inputs, **results._asdict(), **upstream, **options)
    assert_all_close(
        backprop(case, tensors(case.arguments), upstream.values()),
        Arguments(*(g.numpy() for g in gradients)),
        ROUNDING,
    )
