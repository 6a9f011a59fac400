"""The results of MPSGraphLSTM."""

from dataclasses import replace

import numpy as np
import pytest

from block_cell.accuracy import assert_accurate, assert_root_mean_square, bounds
from block_cell.grid import DTYPES, arrays, tf_dtype
from cudnn_rnn.accuracy import assert_right, assert_same_bits
from oracle.mpsgraph import Arguments
from tf_lstm_ops.raw_ops import MPSGraphLSTM

from .cases import ACTIVATION_OF, EVERYTHING, PAIRS, SIZED, TYPED, Case, Outputs, random_arguments
from .grid import call, outputs_of, reference, tensor, tensors

# A number beyond a type's range would compare with nothing.
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

BOTH = Case(direction="bidirectional")


def evaluation(case, arguments, mask):
    """For `bounds`."""

    def evaluate(cast, store):
        given = Arguments(*(None if a is None else cast(a) for a in arguments))
        results = reference(case, given, None if mask is None else cast(mask))
        return Outputs(*map(store, outputs_of(results)))

    return evaluate


def results(case, arguments, mask, dtype="float64", **options):
    return call(case, tensors(arguments, dtype), tensor(mask, dtype), **options)


# --- against the oracle ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype, case", TYPED, ids=str)
def test_results(rng, case, dtype):
    arguments, mask = random_arguments(rng, case, dtype)
    got = results(case, arguments, mask, dtype)
    assert got._fields == Outputs._fields
    assert all(a.dtype == tf_dtype(dtype) for a in got)
    assert_accurate(got, bounds(evaluation(case, arguments, mask), dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", SIZED, ids=str)
def test_results_of_many_sizes(rng, case, dtype):
    arguments, mask = random_arguments(rng, case, dtype)
    got = results(case, arguments, mask, dtype)
    assert_right(got, evaluation(case, arguments, mask), dtype)


def test_root_mean_square_error(rng):
    """Of more terms per sum and more elements than luck can rule."""
    case = replace(BOTH, time=4, batch=80, inputs=40, units=210)
    arguments, mask = random_arguments(rng, case, "float32")
    got = results(case, arguments, mask, "float32")
    assert_root_mean_square(got, evaluation(case, arguments, mask))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(len(EVERYTHING)))
def test_all_combinations(rng, part):
    for case in EVERYTHING[part]:
        arguments, mask = random_arguments(rng, case)
        got = results(case, arguments, mask)
        assert_accurate(got, bounds(evaluation(case, arguments, mask), "float64"))


def test_the_cases_reach_all_sides_of_the_kinks(rng):
    """Else the comparisons above would prove less than they seem to."""
    found = {"relu": [np.zeros(0)], "hard_sigmoid": [np.zeros(0)]}
    for case in PAIRS:
        arguments, mask = random_arguments(rng, case)
        gates = np.split(reference(case, arguments, mask).z_state, 4 * case.directions, axis=2)
        order = case.options(mask).order * case.directions
        for gate, values in zip(order, gates, strict=True):
            found.get(getattr(case, ACTIVATION_OF[gate]), []).append(values.ravel())
    relu, hard = (np.concatenate(values) for values in found.values())
    assert 0.2 < np.mean(relu > 0) < 0.8
    assert np.mean(hard == 0) > 0.03 and np.mean(hard == 1) > 0.03


# --- rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_what_is_not_asked_for_is_none(rng, direction, dtype):
    """And what is has the same bits, whatever else is asked for."""
    case = Case(direction=direction)
    arguments, mask = random_arguments(rng, case, dtype)
    want = results(case, arguments, mask, dtype)
    for produce_cell, training in ((False, False), (True, False), (False, True)):
        options = {"produce_cell": produce_cell, "training": training}
        got = results(case, arguments, mask, dtype, **options)
        assert_same_bits([got.output], [want.output])
        assert (got.cell is None) == (not produce_cell and not training)
        assert (got.z_state is None) == (not training)
        if got.cell is not None:
            assert_same_bits([got.cell], [want.cell])


def test_defaults(rng):
    """Those of the descriptor: nothing but the output, sigmoid gates, tanh, i, f, z, o."""
    case = Case(bias=False, peephole=False, init_state=False, init_cell=False, mask="none")
    arguments, _ = random_arguments(rng, case)
    given = tensors(arguments)
    got = MPSGraphLSTM(
        source=given.source,
        recurrent_weight=given.recurrent_weight,
        input_weight=given.input_weight,
    )
    assert got.cell is None and got.z_state is None
    assert_same_bits([got.output], [results(case, arguments, None).output])


def test_reverse_is_ignored_if_bidirectional(rng):
    arguments, mask = random_arguments(rng, BOTH)
    got = results(BOTH, arguments, mask, reverse=True)
    assert_same_bits(got, results(BOTH, arguments, mask))


def test_one_direction_is_half_of_both(rng):
    """Of the weights, the states and the mask; to the bit."""
    arguments, mask = random_arguments(rng, BOTH)
    both = results(BOTH, arguments, mask)

    def half(a, axis, k):
        return np.split(a, 2, axis=axis)[k]

    for k, direction in enumerate(["forward", "reverse"]):
        one = Arguments(
            source=arguments.source,
            recurrent_weight=arguments.recurrent_weight[k],
            input_weight=half(arguments.input_weight, 0, k),
            bias=half(arguments.bias, 0, k),
            peephole=arguments.peephole[k],
            init_state=half(arguments.init_state, 1, k),
            init_cell=half(arguments.init_cell, 1, k),
        )
        got = results(replace(BOTH, direction=direction), one, half(mask, 1, k))
        assert_same_bits(got, [half(a, 2, k) for a in both])


@pytest.mark.parametrize("dtype", DTYPES)
def test_gates_may_stand_in_either_order(rng, dtype):
    arguments, mask = random_arguments(rng, BOTH, dtype)
    want = results(BOTH, arguments, mask, dtype)

    def exchanged(a, axis):
        """f and z, of both directions, along an axis of gates."""
        blocks = np.split(a, a.shape[axis] // BOTH.units, axis=axis)
        order = [g + 4 * d for d in range(len(blocks) // 4) for g in (0, 2, 1, 3)]
        return np.concatenate([blocks[g] for g in order], axis=axis)

    other = arguments._replace(
        recurrent_weight=exchanged(arguments.recurrent_weight, 1),
        input_weight=exchanged(arguments.input_weight, 0),
        bias=exchanged(arguments.bias, 0),
        peephole=exchanged(arguments.peephole, 1),
    )
    got = results(BOTH, other, mask, dtype, forget_gate_last=True)
    z_state = exchanged(arrays([want.z_state])[0], 2)
    assert_same_bits(got, [want.output, want.cell, z_state])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_alone_has_the_bits_it_has_in_a_batch(rng, dtype):
    case = replace(BOTH, batch=19)
    arguments, mask = random_arguments(rng, case, dtype)
    whole = results(case, arguments, mask, dtype)
    for chosen in ([1], [18], [6, 0], list(range(18, -1, -1))):
        some = arguments._replace(
            source=arguments.source[:, chosen],
            init_state=arguments.init_state[chosen],
            init_cell=arguments.init_cell[chosen],
        )
        got = results(case, some, mask[chosen], dtype)
        assert_same_bits(got, [a[:, chosen] for a in arrays(whole)])


@pytest.mark.parametrize("sizes", [{"time": 0}, {"batch": 0}, {"time": 0, "batch": 0}], ids=str)
def test_empty(rng, sizes):
    case = replace(BOTH, **sizes)
    arguments, mask = random_arguments(rng, case)
    got = results(case, arguments, mask)
    assert [tuple(a.shape) for a in got] == [
        a.shape for a in outputs_of(reference(case, arguments, mask))
    ]


def test_no_input_at_all(rng):
    """I = 0: the bias alone drives it."""
    case = replace(BOTH, inputs=0)
    arguments, mask = random_arguments(rng, case)
    assert_right(results(case, arguments, mask), evaluation(case, arguments, mask), "float64")


@pytest.mark.parametrize("activation", ["none", "relu", "tanh", "sigmoid", "hard_sigmoid"])
def test_nan_stays_nan(rng, activation):
    """Of every activation: a NaN must not turn into a number."""
    gates = dict.fromkeys([k for k in BOTH.attributes if k.endswith("activation")], activation)
    case = replace(Case(), **gates)
    arguments, mask = random_arguments(rng, case)
    arguments.source[1, 0] = np.nan
    got = results(case, arguments, mask)
    for a in got:
        assert np.isnan(a[1:, 0]).all() and np.isfinite(a[0]).all() and np.isfinite(a[:, 1]).all()
