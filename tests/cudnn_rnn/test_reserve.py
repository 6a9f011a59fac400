"""reserve_space and host_reserved: their shapes and sizes, and that backward takes only what its
own forward call left."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from empties import leave_nan
from tf_lstm_ops import _library

from .cases import (
    BACKPROP,
    DTYPES,
    FORWARD,
    GATES,
    SOURCES,
    Case,
    arguments,
    call,
    outputs_of,
)
from .forged import HEADER, forge

CASE = Case(layers=2, directions=2, time=4, batch=3)
LENGTHS = [3, 0, 4]


def reserve(case: Case, dtype: str = "float32", lengths: list[int] | None = None, op="CudnnRNNV3"):
    return outputs_of(op, case, dtype, lengths)["reserve_space"]


# --- shapes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("op", FORWARD)
def test_shapes(op, source):
    values = arguments(op, CASE)
    trained = call(op, CASE, values, source)
    inferred = call(op, CASE, values, source, is_training=False)
    assert trained.reserve_space.shape.rank == 1
    assert inferred.reserve_space.shape == [] and inferred.reserve_space == 0
    if op != "CudnnRNN":
        for results, is_training in ((trained, True), (inferred, False)):
            has_two = is_training and op == "CudnnRNNV2"
            assert results.host_reserved.dtype == tf.int8
            assert results.host_reserved.shape == ([2] if has_two else [])
            assert not np.any(results.host_reserved)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", FORWARD)
def test_size(op, dtype):
    """A header, and for each valid step what backward needs of each pseudo-layer: nothing of
    padding, of masks or of what backward is given anyway."""
    for mode, layers, directions in itertools.product(GATES, (1, 3), (1, 2)):
        case = replace(CASE, mode=mode, layers=layers, directions=directions)
        assert reserve(case, dtype, op=op).shape == [case.reserve_size(dtype)]


@pytest.mark.parametrize("lengths", [LENGTHS, [0, 0, 0], [4, 4, 4]])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_size_with_lengths_projection_and_dropout(lengths, dropout):
    case = replace(CASE, proj=2, time_major=False)
    values = arguments("CudnnRNNV3", case, lengths=lengths)
    found = call("CudnnRNNV3", case, values, dropout=dropout).reserve_space
    assert found.shape == [case.reserve_size("float32", lengths)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", GATES)
def test_every_element_is_written(mode, dtype):
    """Whatever stood in the memory before, and the same on every call."""
    case = replace(CASE, mode=mode)
    first = reserve(case, dtype, LENGTHS).numpy()
    for _ in range(3):
        leave_nan([tf.TensorSpec(first.shape, dtype)] * 3)
        assert reserve(case, dtype, LENGTHS).numpy().tobytes() == first.tobytes()


# --- refused ---------------------------------------------------------------------------------


def assert_refused(op: str, case: Case, reserve_space, dtype="float32", lengths=None, **options):
    values = arguments(op, case, dtype, lengths)
    call(op, case, values)  # all the rest is right
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        call(op, case, {**values, "reserve_space": reserve_space}, **options)
    # TensorFlow adds the source location in braces before the text, and the function after it.
    assert str(caught.value).split("}} ")[-1].startswith("reserve_space")


@pytest.mark.parametrize("op", BACKPROP)
def test_random_numbers(rng, op):
    right = reserve(CASE)
    for _ in range(5):
        assert_refused(op, CASE, tf.constant(rng.normal(size=right.shape), tf.float32))
    for value in (0, 1, np.nan, np.inf):
        assert_refused(op, CASE, tf.fill(right.shape, np.float32(value)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", BACKPROP)
def test_truncated_and_extended(op, dtype):
    right = reserve(CASE, dtype)
    size = right.shape[0]
    for count in (0, 1, 2, 7, size // 2, size - 1):
        assert_refused(op, CASE, right[:count], dtype)
    for more in (right[:1], right[:2], right):
        assert_refused(op, CASE, tf.concat([right, more], axis=0), dtype)


@pytest.mark.parametrize("op", BACKPROP)
def test_of_inference_and_of_wrong_rank(op):
    values = arguments(op.replace("Backprop", ""), CASE)
    inferred = call(op.replace("Backprop", ""), CASE, values, is_training=False)
    assert_refused(op, CASE, inferred.reserve_space)
    assert_refused(op, CASE, reserve(CASE)[None])
    assert_refused(op, CASE, reserve(CASE)[:, None])


def test_the_mask_needs_a_reserve_too(rng):
    """The op that draws a call's dropout mask again: it trusts nothing either."""

    def mask(reserve_space):
        return _library.load().tf_lstm_ops_cudnn_rnn_dropout_mask(reserve_space=reserve_space)

    right = reserve(CASE)
    assert mask(right).shape == [1, CASE.time, CASE.batch, 2 * CASE.units]
    for wrong in (
        right[:0],
        right[:5],
        right[:-1],
        right[0],
        right[None],
        tf.concat([right, right], axis=0),
        tf.zeros_like(right),
        tf.constant(rng.normal(size=right.shape), tf.float32),
        tf.cast(right, tf.float64),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="reserve_space"):
            mask(wrong)


OTHERS = {
    "time": replace(CASE, time=5),
    "batch": replace(CASE, batch=4),
    "time and batch exchanged": replace(CASE, time=3, batch=4),
    "inputs": replace(CASE, inputs=2),
    "units": replace(CASE, units=5),
    "layers": replace(CASE, layers=1),
    "directions": replace(CASE, directions=1),
    "layers and directions exchanged": replace(CASE, layers=4, directions=1),
    "projection": replace(CASE, proj=2),
    "gru": replace(CASE, mode="gru"),
    "rnn_tanh": replace(CASE, mode="rnn_tanh"),
    "rnn_relu": replace(CASE, mode="rnn_relu"),
    "skip": replace(CASE, inputs=4, input_mode="skip_input"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_of_another_model_or_batch(other):
    assert_refused("CudnnRNNBackpropV3", CASE, reserve(OTHERS[other]))


@pytest.mark.parametrize("mode, other", itertools.permutations(GATES, 2))
def test_of_another_mode(mode, other):
    case, other = replace(CASE, mode=mode), replace(CASE, mode=other)
    assert_refused("CudnnRNNBackpropV3", case, reserve(other))


def test_of_skipped_input():
    """The same sizes all round; only layer 0 has matrices or has not."""
    linear = replace(CASE, inputs=4)
    skipped = replace(linear, input_mode="skip_input")
    assert_refused("CudnnRNNBackpropV3", linear, reserve(skipped))
    assert_refused("CudnnRNNBackpropV3", skipped, reserve(linear))


@pytest.mark.parametrize("other", [[4, 0, 3], [3, 1, 3], [4, 4, 4], [3, 0, 3], [0, 0, 0]])
def test_of_other_lengths(other):
    """Also where the sum is the same, and so is the size."""
    assert_refused("CudnnRNNBackpropV3", CASE, reserve(CASE, lengths=other), lengths=LENGTHS)


@pytest.mark.parametrize("dtype, other", itertools.permutations(DTYPES, 2))
def test_of_another_type(dtype, other):
    """The bytes of one, taken for the other: of two types with two bytes, for all they tell."""
    raw = reserve(CASE, other).numpy().tobytes()
    found = np.frombuffer(raw[: len(raw) // 8 * 8], tf.as_dtype(dtype).as_numpy_dtype)
    assert_refused("CudnnRNNBackpropV3", CASE, tf.constant(found), dtype)
    assert_refused("CudnnRNNBackpropV3", CASE, tf.cast(reserve(CASE, other), dtype), dtype)


def test_of_another_dropout():
    """The mask would be another one, or none at all."""
    values = arguments("CudnnRNNV3", CASE)
    dropped = call("CudnnRNNV3", CASE, values, dropout=0.5).reserve_space
    assert_refused("CudnnRNNBackpropV3", CASE, dropped)
    assert_refused("CudnnRNNBackpropV3", CASE, reserve(CASE), dropout=0.5)
    assert_refused("CudnnRNNBackpropV3", CASE, dropped, dropout=0.25)


@pytest.mark.parametrize("source", SOURCES)
def test_under_both_names_and_in_graphs(source):
    """A reserve of the one name is good for the other; a wrong one is refused where it runs."""
    values = arguments("CudnnRNNBackpropV3", CASE)
    want = call("CudnnRNNBackpropV3", CASE, values)
    traced = tf.function(
        lambda r: call("CudnnRNNBackpropV3", CASE, {**values, "reserve_space": r}, source)
    )
    for a, b in zip(traced(values["reserve_space"]), want, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(tf.errors.InvalidArgumentError, match="reserve_space"):
        traced(values["reserve_space"][:-1])


# --- forged ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_forged_size(dtype):
    """A header without what it should stand before, as a model from the net may hold it."""
    right = reserve(CASE, dtype)
    header = HEADER.itemsize // right.dtype.size
    for count in (header, header + 1, right.shape[0] - 1):
        assert_refused("CudnnRNNBackpropV3", CASE, forge(right, count, size=count), dtype)


@pytest.mark.parametrize("op", BACKPROP)
def test_magic_number_and_checksum(op):
    """Each by itself. Without the checksum, another key would draw other multipliers unseen."""
    right = reserve(CASE)
    assert_refused(op, CASE, forge(right, magic=1))
    changed = right.numpy().copy()
    changed[: HEADER.itemsize // changed.itemsize].view(HEADER)["dropout_key"] += 1
    assert_refused(op, CASE, changed)


def test_the_error_has_both_sizes():
    right = reserve(CASE)
    values, size = arguments("CudnnRNNBackpropV3", CASE), right.shape[0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"have {size} .* has {size - 1};"):
        call("CudnnRNNBackpropV3", CASE, {**values, "reserve_space": right[:-1]})


SIZES = {"time": 5, "batch": 2, "width": 3 * 10**9, "inner_layers": 0, "dropout": 0.25}


@pytest.mark.parametrize("field", SIZES)
@pytest.mark.parametrize("op", BACKPROP)
def test_forged_sizes_with_the_right_fingerprint(op, field):
    """Backward does not read these fields, but the op that draws the dropout mask does."""
    assert_refused(op, CASE, forge(reserve(CASE), **{field: SIZES[field]}))


@pytest.mark.parametrize("context", [lambda f: f, tf.function], ids=["eager", "function"])
def test_a_forged_size_in_a_second_derivative(context):
    """The mask is drawn after the backward op has checked the sizes. In a function reserve_space is
    a constant here, which TensorFlow must not fold: that would ask for 144 GB and wait for them."""
    case = replace(CASE, directions=1, time=2)
    values = arguments("CudnnRNNBackprop", case)
    forged = forge(reserve(case, op="CudnnRNN"), width=6 * 10**9)

    @context
    def second():
        with tf.GradientTape() as tape:
            tape.watch(values["params"])
            results = call(
                "CudnnRNNBackprop", case, {**values, "reserve_space": forged}, dropout=0.5
            )
        return tape.gradient(results[0], values["params"])

    with pytest.raises(tf.errors.InvalidArgumentError, match="reserve_space"):
        second()


def test_a_forged_mask_without_rows():
    """Nothing is allocated for a row of 12 PB that no layer has."""
    forged = forge(reserve(CASE), inner_layers=0, width=3 * 10**15)
    mask = _library.load().tf_lstm_ops_cudnn_rnn_dropout_mask(reserve_space=forged)
    assert mask.shape == [0, CASE.time, CASE.batch, 3 * 10**15]


@pytest.mark.parametrize(
    "fields",
    [
        {"width": -1},
        {"width": 0, "time": 2**32 - 1},
        {"width": 2**63 - 1},
        {"time": 2**32 - 1, "batch": 2**32 - 1, "width": 2**20},
        {"inner_layers": 2**32 - 1, "time": 2**32 - 1},
        {"dropout": np.nan},
        {"dropout": -1},
        {"dropout": np.inf},
        {"element_size": 0},
        {"element_size": 2},
        {"size": -1},
    ],
    ids=str,
)
def test_a_forged_mask(fields):
    forged = forge(reserve(CASE), **fields)
    with pytest.raises(tf.errors.InvalidArgumentError, match="reserve_space"):
        _library.load().tf_lstm_ops_cudnn_rnn_dropout_mask(reserve_space=forged)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_changed_element_is_refused_or_harmless(rng, dtype):
    """One element of the header or of what follows is changed: either it is refused, or it counts
    as the number that it is. Nothing is read or written elsewhere."""
    values = arguments("CudnnRNNBackpropV3", CASE, dtype, LENGTHS)
    right = values["reserve_space"].numpy()
    want = [a.shape for a in call("CudnnRNNBackpropV3", CASE, values)]
    refused = 0
    for k in [*range(min(64, len(right))), *rng.integers(0, len(right), 20)]:
        bits = np.frombuffer(bytearray(right.tobytes()), np.uint8).reshape(len(right), -1)
        bits[k] ^= rng.integers(1, 256, size=bits.shape[1], dtype=np.uint8)
        changed = np.frombuffer(bits.tobytes(), right.dtype)
        try:
            got = call("CudnnRNNBackpropV3", CASE, {**values, "reserve_space": changed})
        except tf.errors.InvalidArgumentError as error:
            assert "reserve_space" in str(error)
            refused += 1
        else:
            assert [a.shape for a in got] == want
    assert refused > 0
