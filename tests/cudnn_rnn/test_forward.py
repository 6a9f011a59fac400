"""The results of CudnnRNN, V2 and V3, under our names and the stock ones."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from block_cell.accuracy import assert_root_mean_square
from block_cell.grid import DTYPES, arrays, tensors, tf_dtype
from oracle.cudnn_rnn import Arguments, Model, Results
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
    rows,
)

# More terms per sum and more elements than luck can rule.
LONG_SUMS = [Case(Model(mode, 40, 210, 2, 2), 4, 80) for mode in MODES]

EACH_FIELD = [
    (case, field)
    for case in TYPICAL
    for field in ("input", "input_h", "input_c")
    if field != "input_c" or case.model.mode == "lstm"
]


def evaluation(case, arguments):
    return lambda cast, store: reference(case, Arguments(*map(cast, arguments)), store)


def results(case, arguments, dtype="float32", version=3, **options):
    return Results(*call(case, tensors(arguments, dtype), version, **options)[:3])


# --- against the oracle ----------------------------------------------------------------------


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_results(rng, case, dtype):
    arguments = random_arguments(rng, case, dtype)
    ours = call(case, tensors(arguments, dtype))
    assert ours._fields == (*Results._fields, "reserve_space", "host_reserved")
    assert all(a.dtype == tf_dtype(dtype) for a in ours[:4])
    assert_right(Results(*ours[:3]), evaluation(case, arguments), dtype)


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_bits_of_the_stock_name(rng, case, dtype):
    given = tensors(random_arguments(rng, case, dtype), dtype)
    assert_same_bits(call(case, given, module=tf.raw_ops)[:3], call(case, given)[:3])


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", SIZED, ids=str)
def test_results_of_many_sizes(rng, case, dtype):
    arguments = random_arguments(rng, case, dtype)
    assert_right(results(case, arguments, dtype), evaluation(case, arguments), dtype)


@pytest.mark.sampled
@pytest.mark.parametrize("case", LONG_SUMS, ids=str)
def test_root_mean_square_error(rng, case):
    arguments = random_arguments(rng, case, "float32")
    got = results(case, arguments)
    if case.model.mode != "lstm":  # no error in a constant zero: compare what there is
        got = got._replace(output_c=got.output_h)

    def evaluate(cast, store):
        want = evaluation(case, arguments)(cast, store)
        return want if case.model.mode == "lstm" else want._replace(output_c=want.output_h)

    assert_root_mean_square(got, evaluate)


# --- how it is called ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("module", [raw_ops, tf.raw_ops], ids=["own", "stock"])
@pytest.mark.parametrize("mode", MODES)
def test_versions_agree(rng, mode, module, dtype):
    """Where all can say it, that is time-major, at full length and without a projection."""
    case = Case(model(mode, layers=2, directions=2), 4, 6)
    given = tensors(random_arguments(rng, case, dtype), dtype)
    outputs = {version: call(case, given, version, module) for version in VERSIONS}
    assert not hasattr(outputs[1], "host_reserved") and len(outputs[1]) == 4
    for version in (1, 2):
        assert_same_bits(outputs[version][:3], outputs[3][:3])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_training_gives_the_bits_of_inference(rng, case, dtype):
    given = random_arguments(rng, case, dtype)
    # Dropout counts in training only.
    inference = results(case, given, dtype, is_training=False, dropout=0.9)
    assert_same_bits(inference, results(case, given, dtype, is_training=True))


@pytest.mark.parametrize("module", [raw_ops, tf.raw_ops], ids=["own", "stock"])
@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_in_a_function(rng, case, module):
    given = tensors(random_arguments(rng, case, "float32"), "float32")
    shapeless = [tf.TensorSpec(None, tf.float32) for _ in given]
    for signature in ([tf.TensorSpec(a.shape, a.dtype) for a in given], shapeless):
        function = tf.function(
            lambda *a: call(case, Arguments(*a), module=module)[:3], input_signature=signature
        )
        assert_same_bits(function(*given), call(case, given)[:3])


@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_batch_major_has_the_bits_of_time_major(rng, case):
    """States too: [B, layers·directions, …], where stock reads them as if they were time-major."""
    arguments = random_arguments(rng, case, "float32")
    other = case._replace(model=replace(case.model, time_major=False))
    exchanged = other.model.majors_exchanged(arguments)
    assert exchanged.input_h.shape[:2] == arguments.input_h.shape[1::-1]
    got = results(other, exchanged)
    want = results(case, arguments)
    assert_same_bits(other.model.majors_exchanged(Results(*map(np.asarray, got))), want)


@pytest.mark.parametrize("mode", MODES)
def test_auto_select_skips_the_matrix_if_it_can(rng, mode):
    for inputs in (4, 5, 6):  # of 5 units
        chosen = model(mode, inputs=inputs, layers=2, skip_input=inputs == 5)
        case = Case(chosen, 4, 6, "unsorted")
        arguments = random_arguments(rng, case, "float32")
        got = results(case, arguments, input_mode="auto_select")
        assert_same_bits(got, results(case, arguments))


def test_a_projection_to_the_cell_size_is_none(rng):
    """As in stock: the buffer has no matrix for it."""
    case = Case(model("lstm", layers=2, directions=2), 4, 6, "unsorted")
    arguments = random_arguments(rng, case, "float32")
    assert_same_bits(results(case, arguments, num_proj=5), results(case, arguments))


@pytest.mark.parametrize("input_c", [np.zeros(()), np.full((2, 3), np.nan), np.zeros((0, 7))])
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "lstm"])
def test_modes_without_a_cell_state_ignore_it(rng, mode, input_c):
    case = Case(model(mode, layers=2), 4, 6)
    arguments = random_arguments(rng, case, "float32")
    got = results(case, arguments._replace(input_c=input_c))
    assert_same_bits(got, results(case, arguments))
    assert got.output_c.shape == () and got.output_c == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_inputs_stay_as_they_are(rng, case, dtype):
    """No output shares memory with an input, not even the state of a row of length zero."""
    arguments = random_arguments(rng, case, dtype)
    given = tensors(arguments, dtype)
    for dropout in (0.0, 0.5):
        call(case, given, dropout=dropout)
    for field, before, after in zip(Arguments._fields, arguments, arrays(given), strict=True):
        np.testing.assert_array_equal(before, after, err_msg=field)


# --- lengths ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("time_major", [True, False])
@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_padding_is_never_read(rng, case, time_major, dtype):
    case = case._replace(model=replace(case.model, time_major=time_major))
    arguments = random_arguments(rng, case, dtype)
    clean = results(case, arguments, dtype)
    padded = arguments._replace(input=arguments.input.copy())
    time_first = padded.input if time_major else padded.input.swapaxes(0, 1)
    output = arrays([clean.output])[0]
    output = output if time_major else output.swapaxes(0, 1)
    for row, length in enumerate(lengths_of(case)):
        time_first[length:, row] = np.nan
        assert not output[length:, row].any()
        assert output[:length, row].any(axis=1).all()
    assert_same_bits(results(case, padded, dtype), clean)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_a_row_of_length_zero_hands_its_states_on(rng, case, dtype):
    for lengths in ("unsorted", "nothing"):
        case = case._replace(lengths=lengths)
        arguments = random_arguments(rng, case, dtype)
        arguments = arguments._replace(input=np.full_like(arguments.input, np.nan))
        got = Results(*arrays(results(case, arguments, dtype)))
        empty = lengths_of(case) == 0
        assert empty.any()
        assert not got.output[:, empty].any()
        np.testing.assert_array_equal(got.output_h[:, empty], arguments.input_h[:, empty])
        if case.model.mode == "lstm":
            np.testing.assert_array_equal(got.output_c[:, empty], arguments.input_c[:, empty])


@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_full_lengths_are_no_lengths(rng, case):
    """V3 of full lengths has the bits of a batch in which one more row is shorter."""
    case = case._replace(lengths="full")
    arguments = random_arguments(rng, case, "float32")
    whole = results(case, arguments)
    got = results(case, arguments, sequence_lengths=[4, 4, 4, 4, 4, 3])
    for name, a, b in zip(Results._fields, got, whole, strict=True):
        if a.shape.rank:
            np.testing.assert_array_equal(a[:, :5], b[:, :5], err_msg=name)
    assert np.any(got.output[:, 5] != whole.output[:, 5])


# --- rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", [*MODES, "projected"])
def test_a_row_alone_has_the_bits_it_has_in_a_batch(rng, mode, dtype):
    options = {"num_proj": 5, "mode": "lstm"} if mode == "projected" else {"mode": mode}
    case = Case(model(**options, units=9, layers=2, directions=2), 5, 19, "unsorted")
    arguments = random_arguments(rng, case, dtype)
    whole, lengths = results(case, arguments, dtype), lengths_of(case)
    for chosen in ([1], [18], [6, 0], list(range(1, 18)), list(range(18, -1, -1))):
        got = results(case, rows(arguments, chosen), dtype, sequence_lengths=lengths[chosen])
        assert_same_bits(got, rows(whole, chosen))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("case, field", EACH_FIELD, ids=str)
def test_a_row_that_is_not_finite_touches_no_other(rng, case, field, value):
    case = case._replace(lengths="full")
    arguments = random_arguments(rng, case, "float32")
    clean = results(case, arguments)
    broken = getattr(arguments, field).copy()
    broken[0, 2, 1] = value
    arguments = arguments._replace(**{field: broken})
    got = Results(*arrays(results(case, arguments)))
    with np.errstate(invalid="ignore", over="ignore"):
        want = reference(case, arguments)
    others = [0, 1, 3, 4, 5]
    assert_same_bits(rows(got, others), rows(clean, others))
    for name, a, b in zip(Results._fields, got, want, strict=True):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b), err_msg=name)
