"""First derivatives: the tape through every version, our names and the stock ones."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from block_cell.accuracy import assert_root_mean_square
from block_cell.grid import DTYPES, arrays, random_like, tensors, tf_dtype
from oracle.cudnn_rnn import GATES, Arguments, Model, Results
from oracle.derivatives import central_difference, unit_direction
from tf_lstm_ops import raw_ops

from .accuracy import assert_right, assert_same_bits
from .grid import (
    CASES,
    MODES,
    SIZED,
    TYPICAL,
    VERSIONS,
    Case,
    call,
    lengths_of,
    model,
    random_arguments,
    reference,
    reference_backward,
    rows,
    tape_grads,
)

# A rounding of h to 16 bits moves some pre-activation of the next step across zero, where the
# gradient of relu jumps by its whole size. So in these types relu is compared for one step of one
# layer, whose pre-activations come from exact inputs.
KINKED = {"half", "bfloat16"}

EACH_RESULT = [
    (case, result)
    for case in TYPICAL
    for result in Results._fields
    if result != "output_c" or case.model.mode == "lstm"
]


def evaluation(case, arguments, upstream):
    def evaluate(cast, store):
        values, given = Arguments(*map(cast, arguments)), Results(*map(cast, upstream))
        return reference_backward(case, values, given, store)

    return evaluate


def gradients(case, arguments, upstream, dtype="float64", version=3, **options):
    given, by = tensors(arguments, dtype), tensors(upstream, dtype)
    return tape_grads(case, given, by, version, **options)[1]


def random_point(rng, case, dtype="float64"):
    arguments = random_arguments(rng, case, dtype)
    return arguments, random_like(rng, reference(case, arguments), dtype)


# --- against the oracle ----------------------------------------------------------------------


@pytest.mark.sampled(3, strength=2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_tape(rng, case, dtype):
    if case.model.mode == "rnn_relu" and dtype in KINKED:
        case = case._replace(model=replace(case.model, layers=1), time=1, lengths="full")
    arguments, upstream = random_point(rng, case, dtype)
    ours = gradients(case, arguments, upstream, dtype)
    assert all(g.dtype == tf_dtype(dtype) for g in ours)
    assert_right(ours, evaluation(case, arguments, upstream), dtype)


@pytest.mark.sampled(3, strength=2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_bits_of_the_stock_name(rng, case, dtype):
    """It goes through TensorFlow's own gradient function to our backward kernel."""
    arguments, upstream = random_point(rng, case, dtype)
    stock = gradients(case, arguments, upstream, dtype, module=tf.raw_ops)
    assert_same_bits(stock, gradients(case, arguments, upstream, dtype))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", SIZED, ids=str)
def test_tape_of_many_sizes(rng, case, dtype):
    arguments, upstream = random_point(rng, case, dtype)
    got = gradients(case, arguments, upstream, dtype)
    assert_right(got, evaluation(case, arguments, upstream), dtype)


@pytest.mark.parametrize(
    "mode", ["lstm", *(pytest.param(m, marks=pytest.mark.full) for m in ("gru", "rnn_tanh"))]
)
def test_root_mean_square_error(rng, mode):
    """Not of relu: at its kinks errors are no roundings."""
    case = Case(Model(mode, 40, 130, 2, 2), 4, 80)
    arguments, upstream = random_point(rng, case, "float32")
    got = gradients(case, arguments, upstream, "float32")
    if mode != "lstm":  # no error in a constant zero: compare what there is
        got = got._replace(input_c=got.input_h)

    def evaluate(cast, store):
        want = evaluation(case, arguments, upstream)(cast, store)
        return want if mode == "lstm" else want._replace(input_c=want.input_h)

    assert_root_mean_square(got, evaluate)


@pytest.mark.parametrize("module", [raw_ops, tf.raw_ops], ids=["own", "stock"])
@pytest.mark.parametrize("case, result", EACH_RESULT, ids=str)
def test_each_result_alone(rng, case, module, result):
    """A loss that reads one result: the others have no upstream gradient at all."""
    arguments, upstream = random_point(rng, case)
    given, weights = tensors(arguments, "float64"), getattr(upstream, result)
    with tf.GradientTape() as tape:
        tape.watch(list(given))
        loss = tf.reduce_sum(weights * getattr(call(case, given, module=module), result))
    got = tape.gradient(loss, list(given))
    # All arguments are reached.
    assert [g is not None for g in got][:2] == [True, True] and got[3] is not None
    assert got[2] is not None or case.model.mode != "lstm"
    got = Arguments(
        *(tf.zeros_like(a) if g is None else g for a, g in zip(given, got, strict=True))
    )
    only = Results(*map(np.zeros_like, upstream))._replace(**{result: weights})
    assert_right(got, evaluation(case, arguments, only), "float64")


@pytest.mark.parametrize("module", [raw_ops, tf.raw_ops], ids=["own", "stock"])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])
def test_finite_differences(rng, mode, version, module):
    """Of the op itself, without the oracle. Not of relu, whose kinks a difference steps over."""
    lengths = "unsorted" if version == 3 else "full"
    case = Case(model(mode, layers=2, directions=2), 4, 6, lengths)
    if version == 3 and mode == "lstm":
        case = case._replace(model=replace(case.model, num_proj=2, time_major=False))
    arguments, upstream = random_point(rng, case)
    got = gradients(case, arguments, upstream, version=version, module=module)

    def loss(values):
        outputs = call(case, tensors(Arguments(*values), "float64"), version, module)
        return sum(np.sum(u * a) for u, a in zip(upstream, arrays(outputs[:3]), strict=True))

    for _ in range(3):
        direction = unit_direction(rng, arguments)
        want = central_difference(loss, arguments, direction)
        value = sum(np.sum(d * g) for d, g in zip(direction, got, strict=True))
        # The error of the difference quotient (see there), for losses and derivatives up to 100.
        np.testing.assert_allclose(value, want, rtol=0, atol=1e-10)


# --- rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("module", [raw_ops, tf.raw_ops], ids=["own", "stock"])
@pytest.mark.parametrize("mode", MODES)
def test_versions_agree(rng, mode, module, dtype):
    case = Case(model(mode, layers=2, directions=2), 4, 6)
    arguments, upstream = random_point(rng, case, dtype)
    want = gradients(case, arguments, upstream, dtype)
    for version in VERSIONS:
        got = gradients(case, arguments, upstream, dtype, version=version, module=module)
        assert_same_bits(got, want)


@pytest.mark.parametrize("module", [raw_ops, tf.raw_ops], ids=["own", "stock"])
@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_in_a_function(rng, case, module):
    arguments, upstream = random_point(rng, case, "float32")
    given, by = tensors(arguments, "float32"), tensors(upstream, "float32")
    function = tf.function(
        lambda *a: tape_grads(case, Arguments(*a), by, module=module)[1],
        input_signature=[tf.TensorSpec(None, tf.float32) for _ in given],
    )
    assert_same_bits(function(*given), gradients(case, arguments, upstream, "float32"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("time_major", [True, False])
@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_padding_has_no_gradient_and_is_not_read(rng, case, time_major, dtype):
    """Neither the padding of the input nor that of the output's gradient."""
    case = case._replace(model=replace(case.model, time_major=time_major))
    arguments, upstream = random_point(rng, case, dtype)
    clean = gradients(case, arguments, upstream, dtype)

    def time_first(a):
        return a if time_major else a.swapaxes(0, 1)

    padded = arguments._replace(input=arguments.input.copy())
    by = upstream._replace(output=upstream.output.copy())
    (found,) = arrays([clean.input])
    for row, length in enumerate(lengths_of(case)):
        time_first(padded.input)[length:, row] = np.nan
        time_first(by.output)[length:, row] = np.nan
        assert not time_first(found)[length:, row].any()
        assert time_first(found)[:length, row].any() == (length > 0)
    assert_same_bits(gradients(case, padded, by, dtype), clean)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_a_row_of_length_zero_hands_its_gradients_back(rng, case, dtype):
    arguments, upstream = random_point(rng, case, dtype)
    got = Arguments(*arrays(gradients(case, arguments, upstream, dtype)))
    empty = lengths_of(case) == 0
    assert empty.any()
    np.testing.assert_array_equal(got.input_h[:, empty], upstream.output_h[:, empty])
    if case.model.mode == "lstm":
        np.testing.assert_array_equal(got.input_c[:, empty], upstream.output_c[:, empty])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_gradients_of_both_biases(rng, case, dtype):
    """Equal where they are only ever added; those of the GRU's candidate are not."""
    arguments, upstream = random_point(rng, case, dtype)
    got = gradients(case, arguments, upstream, dtype)
    for layer in case.model.split(arrays([got.params])[0]):
        added = 2 if case.model.mode == "gru" else GATES[case.model.mode]
        np.testing.assert_array_equal(layer.bw[:added], layer.br[:added])
        assert layer.bw.any()
        assert np.any(layer.bw[added:] != layer.br[added:]) == (case.model.mode == "gru")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_a_row_alone_has_the_bits_it_has_in_a_batch(rng, case, dtype):
    """In all gradients that are not sums over the batch."""
    case = case._replace(batch=19)
    arguments, upstream = random_point(rng, case, dtype)
    whole, lengths = gradients(case, arguments, upstream, dtype), lengths_of(case)
    for chosen in ([1], [18], [6, 0], list(range(18, -1, -1))):
        got = gradients(
            case,
            rows(arguments, chosen),
            rows(upstream, chosen),
            dtype,
            sequence_lengths=lengths[chosen],
        )
        assert_same_bits(got._replace(params=0), rows(whole, chosen)._replace(params=0))


@pytest.mark.parametrize("version", VERSIONS)
def test_inference_of_a_stock_op_has_no_gradient(rng, version):
    case = Case(model("lstm"), 4, 6)
    arguments, upstream = random_point(rng, case)
    message = f"{VERSIONS[version]} in gradients, is_training must be set to True"
    with pytest.raises(ValueError, match=message):
        gradients(case, arguments, upstream, version=version, module=tf.raw_ops, is_training=False)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_inference_has_the_gradient_of_training_without_dropout(rng, version, dropout):
    case = Case(model("lstm", layers=2), 4, 6)
    arguments, upstream = random_point(rng, case)
    options = {"is_training": False, "dropout": dropout}
    got = gradients(case, arguments, upstream, version=version, **options)
    want = gradients(case, arguments, upstream, version=version)
    assert_same_bits(got, want)


@pytest.mark.parametrize("module", [raw_ops, tf.raw_ops], ids=["own", "stock"])
def test_lengths_have_no_gradient(rng, module):
    case = TYPICAL[0]
    given = tensors(random_arguments(rng, case), "float64")
    lengths = tf.constant(lengths_of(case))
    with tf.GradientTape() as tape:
        tape.watch(given.input)
        output = call(case, given, module=module, sequence_lengths=lengths).output
    found = tape.gradient(output, {"lengths": lengths, "input": given.input})
    assert found["lengths"] is None and found["input"] is not None
