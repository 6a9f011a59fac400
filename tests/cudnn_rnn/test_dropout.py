"""Dropout between layers: its masks, their statistics, and where they come from."""

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from block_cell.accuracy import UNIT_ROUNDOFF
from block_cell.grid import DTYPES, arrays, random_like, tensors
from oracle.cudnn_rnn import Arguments, Model, Results
from tf_lstm_ops import _library, raw_ops

from .accuracy import assert_right, assert_same_bits
from .grid import (
    MODES,
    TYPICAL,
    VERSIONS,
    Case,
    call,
    model,
    random_arguments,
    reference,
    reference_backward,
)

MODULES = pytest.mark.parametrize("module", [raw_ops, tf.raw_ops], ids=["own", "stock"])

# Independent draws of many elements: their counts and correlations are normal, and beyond five
# standard deviations once in two million. The seeds are fixed, so a test that passes goes on to.
DEVIATIONS = 5


def mask_of(outputs):
    return _library.load().tf_lstm_ops_cudnn_rnn_dropout_mask(reserve_space=outputs.reserve_space)


# --- what is calculated with the mask --------------------------------------------------------


@pytest.mark.sampled(strength=2)
@MODULES
@pytest.mark.parametrize("time_major", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_results_and_gradients_are_those_of_the_mask(rng, case, dtype, time_major, module):
    """Inverted scaling, on the outputs of the lower layer only, the same mask in both passes."""
    case = case._replace(model=replace(case.model, layers=3, time_major=time_major))
    arguments = random_arguments(rng, case, dtype)
    upstream = random_like(rng, reference(case, arguments), dtype)
    given = tensors(arguments, dtype)
    with tf.GradientTape() as tape:
        tape.watch(list(given))
        outputs = call(case, given, module=module, dropout=0.3, seed=5, seed2=6)
    gradients = tape.gradient(
        list(outputs[:3]), list(given), list(tensors(upstream, dtype)), unconnected_gradients="zero"
    )
    (mask,) = arrays([mask_of(outputs)])
    assert mask.shape == (2, case.time, case.batch, case.model.directions * case.model.hidden)
    assert 0 < np.count_nonzero(mask) < mask.size

    def forward(cast, store):
        return reference(case, Arguments(*map(cast, arguments)), store, cast(mask))

    def backward(cast, store):
        values, by = Arguments(*map(cast, arguments)), Results(*map(cast, upstream))
        return reference_backward(case, values, by, store, cast(mask))

    assert_right(Results(*outputs[:3]), forward, dtype)
    assert_right(Arguments(*gradients), backward, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.75])
def test_factors(rng, rate, dtype):
    """0, or 1/(1-rate) rounded to the type; TensorFlow holds the rate in float32."""
    case = Case(model("gru", layers=3, directions=2), 4, 6)
    mask = mask_of(call(case, tensors(random_arguments(rng, case, dtype), dtype), dropout=rate))
    assert mask.dtype == tf.as_dtype(dtype)
    (mask,) = arrays([mask])
    small, large = np.unique(mask)
    assert small == 0
    # One rounding of the type, after two of the float32 quotient.
    tolerance = UNIT_ROUNDOFF[dtype] + 2 * UNIT_ROUNDOFF["float32"]
    np.testing.assert_allclose(large, 1 / (1 - np.float32(rate).astype(float)), rtol=tolerance)


@MODULES
@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_no_dropout(rng, case, module):
    """In inference, at rate zero, for a single layer: the bits of a call that knows of none."""
    given = tensors(random_arguments(rng, case, "float32"), "float32")
    plain = call(case, given, module=module)
    inference = call(case, given, module=module, dropout=0.5, is_training=False)
    assert_same_bits(inference[:3], plain[:3])
    assert np.all(mask_of(plain) == 1)
    single = case._replace(model=replace(case.model, layers=1))
    given = tensors(random_arguments(rng, single, "float32"), "float32")
    dropped = call(single, given, module=module, dropout=0.5)
    assert_same_bits(dropped[:3], call(single, given, module=module)[:3])
    assert mask_of(dropped).shape[0] == 0


@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_a_rate_of_one_drops_everything(rng, case):
    arguments = random_arguments(rng, case)
    outputs = call(case, tensors(arguments, "float64"), dropout=1.0)
    mask = mask_of(outputs).numpy()
    assert not mask.any()
    assert_right(
        Results(*outputs[:3]),
        lambda cast, store: reference(case, Arguments(*map(cast, arguments)), store, cast(mask)),
        "float64",
    )


@MODULES
@pytest.mark.parametrize("rate", [-0.1, 1.01, np.nan, np.inf])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("is_training", [True, False])
def test_a_rate_outside_its_range_is_an_error(rng, is_training, layers, rate, module):
    case = Case(model("lstm", layers=layers), 4, 6)
    given = tensors(random_arguments(rng, case, "float32"), "float32")
    with pytest.raises(tf.errors.InvalidArgumentError, match="dropout"):
        call(case, given, module=module, dropout=rate, is_training=is_training)


def test_the_mask_needs_the_reserve_of_a_training_call(rng):
    case = Case(model("lstm", layers=2), 4, 6)
    given = tensors(random_arguments(rng, case, "float32"), "float32")
    inference = call(case, given, is_training=False)
    training = call(case, given)
    foreign = training._replace(reserve_space=tf.zeros([100]))
    truncated = training._replace(reserve_space=training.reserve_space[:3])
    for outputs in (inference, foreign, truncated):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"reserve_space"):
            mask_of(outputs)


# --- statistics ------------------------------------------------------------------------------

LARGE = Case(Model("rnn_tanh", 1, 16, layers=3, directions=2), 10, 64)


def draws(calls=1, case=LARGE, *, dtype="float32", between=None, **options):
    """Masks of the first calls of a new kernel: a function is a graph of its own."""
    given = tensors(random_arguments(np.random.default_rng(0), case, dtype), dtype)

    @tf.function
    def function():
        outputs = call(case, given, **{"dropout": 0.5, "seed": 1, "seed2": 2, **options})
        if between is not None:
            between(case, given, outputs, options)
        return mask_of(outputs)

    return arrays([function() for _ in range(calls)])


def assert_uncorrelated(a, b):
    """Two series of as many retained and dropped elements."""
    a, b = (np.ravel(s) - np.mean(s) for s in (a, b))
    correlation = np.mean(a * b) / np.sqrt(np.mean(a * a) * np.mean(b * b))
    assert abs(correlation) < DEVIATIONS / np.sqrt(a.size)


@pytest.mark.parametrize("rate", [0.01, 0.2, 0.5, 0.9])
def test_the_fraction_that_is_kept(rate):
    """Of all elements, and of every layer, step and unit."""
    (mask,) = draws(dropout=rate)
    retained = mask != 0
    for axes in ((0, 1, 2, 3), (1, 2, 3), (0, 2, 3), (0, 1, 2)):
        count = np.sum(retained, axis=axes)
        number = retained.size // count.size
        deviation = np.sqrt(number * rate * (1 - rate))
        assert np.all(np.abs(count - number * (1 - rate)) <= DEVIATIONS * deviation), axes


@pytest.mark.parametrize("axis", range(4))
def test_elements_are_independent(axis):
    """Neighbours in each direction: layers, steps, rows, units."""
    (mask,) = draws()
    elements = np.moveaxis(mask, axis, 0)
    assert_uncorrelated(elements[1:], elements[:-1])


def test_calls_and_seeds_are_independent():
    masks = draws(4)
    seeds = [(1, 3), (2, 2), (2, 1), (0, 0), (0, 1), (1, 0), (2**31 - 1, 2), (-1, 2), (1, 2**31)]
    for seed, seed2 in seeds:
        masks += draws(2, seed=seed, seed2=seed2)
    for a, b in itertools.combinations(masks, 2):
        assert_uncorrelated(a, b)


# --- reproducible ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", VERSIONS)
@MODULES
def test_a_new_kernel_begins_anew(module, version, dtype):
    """Seeds and the number of the call decide, not the process's history."""
    case = Case(model("lstm", layers=2), 4, 6)
    options = {"case": case, "module": module, "version": version, "dtype": dtype}
    first, second = draws(3, **options), draws(3, **options)
    assert_same_bits(first, second)
    for a, b in itertools.combinations(first, 2):
        assert np.any(a != b)


@pytest.mark.parametrize("mode", MODES)
def test_backward_passes_draw_nothing(mode):
    case = Case(model(mode, layers=2), 4, 6)

    def differentiate(case, given, outputs, options):
        tf.gradients(outputs.output, given.params)

    assert_same_bits(draws(3, case), draws(3, case, between=differentiate))


def test_what_the_mask_does_not_depend_on():
    """Elements, lengths, and the order of the dimensions."""
    case = Case(model("lstm", layers=2), 4, 6)
    (mask,) = draws(case=case)
    other = [
        case._replace(lengths="unsorted"),
        case._replace(model=replace(case.model, time_major=False)),
    ]
    for changed in other:
        assert_same_bits(draws(case=changed), [mask])


SCRIPT = """
import hashlib, json
import numpy as np
import tensorflow as tf
from tf_lstm_ops import _library, raw_ops

def draw():
    outputs = raw_ops.CudnnRNNV3(
        input=tf.ones([5, 4, 3]), input_h=tf.zeros([2, 4, 6]), input_c=tf.zeros([2, 4, 6]),
        params=tf.ones([4 * 6 * (3 + 6) + 4 * 6 * (6 + 6) + 4 * 4 * 6]),
        sequence_lengths=[5] * 4, dropout=0.5, seed=11, seed2=12)
    mask = _library.load().tf_lstm_ops_cudnn_rnn_dropout_mask(reserve_space=outputs.reserve_space)
    return tf.io.encode_base64(tf.io.serialize_tensor(mask))

calls = [draw, tf.function(draw)]
print(json.dumps([[hashlib.sha256(c().numpy()).hexdigest() for _ in range(4)] for c in calls]))
"""


def masks_of_a_process(**variables):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.full
def test_in_new_processes():
    """Two processes, eager and in a function: one sequence of four masks."""
    sequences = [*masks_of_a_process(), *masks_of_a_process(TF_NUM_INTRAOP_THREADS="1")]
    assert len(set(sequences[0])) == 4
    assert all(sequence == sequences[0] for sequence in sequences)
    # Reset, every call draws the first mask again.
    reset = masks_of_a_process(TF_CUDNN_RESET_RND_GEN_STATE="1")
    assert reset == [[sequences[0][0]] * 4] * 2


@pytest.mark.parametrize(
    "value, resets", [("1", True), ("true", True), ("0", False), ("false", False)]
)
def test_reset_of_the_random_state(monkeypatch, value, resets):
    """A kernel reads the variable when it is made."""
    first, second = draws(2)
    monkeypatch.setenv("TF_CUDNN_RESET_RND_GEN_STATE", value)
    assert_same_bits(draws(2), [first, first if resets else second])
