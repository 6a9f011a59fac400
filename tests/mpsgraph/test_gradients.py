"""First derivatives: the tape through MPSGraphLSTM, and MPSGraphLSTMGradients itself."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from block_cell.accuracy import assert_accurate, assert_root_mean_square, bounds
from block_cell.grid import DTYPES, arrays, tf_dtype
from cudnn_rnn.accuracy import assert_right, assert_same_bits
from oracle.derivatives import central_difference
from oracle.mpsgraph import Arguments, Results
from sums import weighted_sum

from .cases import (
    EVERYTHING,
    PAIRS,
    SIZED,
    STEP,
    TYPED,
    Case,
    Outputs,
    present,
    random_arguments,
    random_like,
    smooth_direction,
    with_values,
)
from .grid import (
    call,
    call_grads,
    outputs_of,
    reference,
    reference_backward,
    tape_grads,
    tensor,
    tensors,
    zeros_but,
)

# Fourth-order differences (see central_difference) of sums of size ten, relative to slopes that
# unbounded activations let grow.
DIFFERENCE = 1e-9

# A number beyond a type's range would compare with nothing.
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

BOTH = Case(direction="bidirectional")
FINAL = ("output", "state", "final_cell")  # what the gradient op takes gradients of


def random_point(rng, case, dtype="float64"):
    """Arguments, mask and the gradients of all results, those of the final states too."""
    arguments, mask = random_arguments(rng, case, dtype)
    return arguments, mask, random_like(rng, reference(case, arguments, mask), dtype)


def evaluation(case, arguments, mask, upstream, saved=None):
    """For `bounds`: from the activations that the op saved, rounded as they are; or from those of
    the oracle, with which rounding might put a gate on the other side of a kink."""

    def evaluate(cast, store):
        given = Arguments(*(None if a is None else cast(a) for a in arguments))
        by = Results(*map(cast, upstream))
        saved_outputs = saved and Outputs(*(a.astype(given.source.dtype) for a in arrays(saved)))
        masks = None if mask is None else cast(mask)
        gradients = reference_backward(case, given, masks, by, saved_outputs)
        return present(Arguments(*(None if g is None else store(g) for g in gradients)))

    return evaluate


class Run:
    """One forward call in training, and both methods to compute its gradients."""

    def __init__(self, rng, case, dtype):
        self.case, self.dtype = case, dtype
        self.arguments, self.mask, self.upstream = random_point(rng, case, dtype)
        self.given = tensors(self.arguments, dtype), tensor(self.mask, dtype)
        self.saved = call(case, *self.given)

    def tape(self, **options):
        upstream = tensors(self.upstream, self.dtype)
        return tape_grads(self.case, *self.given, upstream, **options)

    def op(self, upstream=None, **options):
        upstream = tensors(upstream or self.upstream, self.dtype)
        return call_grads(self.case, *self.given, self.saved, upstream, **options)

    def evaluation(self, *names, from_saved=True):
        upstream = zeros_but(self.upstream, *names)
        saved = self.saved if from_saved else None
        return evaluation(self.case, self.arguments, self.mask, upstream, saved)


# --- against the oracle ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype, case", TYPED, ids=str)
def test_tape(rng, case, dtype):
    run = Run(rng, case, dtype)
    got = run.tape()
    assert [g is None for g in got] == [a is None for a in run.arguments]
    got = present(got)
    assert all(g.dtype == tf_dtype(dtype) for g in got)
    assert_accurate(got, bounds(run.evaluation(*Outputs._fields), dtype))


@pytest.mark.parametrize("dtype, case", TYPED, ids=str)
def test_gradient_op(rng, case, dtype):
    run = Run(rng, case, dtype)
    got = run.op()
    assert got._fields == Arguments._fields
    assert [g is None for g in got] == [a is None for a in run.arguments]
    got = present(got)
    assert all(g.dtype == tf_dtype(dtype) for g in got)
    assert_accurate(got, bounds(run.evaluation(*FINAL), dtype))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", SIZED, ids=str)
def test_many_sizes(rng, case, dtype):
    """Also that what is saved is right: from the arguments on."""
    run = Run(rng, case, dtype)
    want = run.evaluation(*Outputs._fields, from_saved=False)
    assert_accurate(present(run.tape()), bounds(want, dtype))
    want = run.evaluation(*FINAL, from_saved=False)
    assert_accurate(present(run.op()), bounds(want, dtype))


def test_root_mean_square_error(rng):
    """Of more terms per sum and more elements than luck can rule."""
    run = Run(rng, replace(BOTH, time=4, batch=80, inputs=40, units=130), "float32")
    assert_root_mean_square(run.op(), run.evaluation(*FINAL))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(len(EVERYTHING)))
def test_all_combinations(rng, part):
    for case in EVERYTHING[part]:
        run = Run(rng, case, "float64")
        got = present(run.tape())
        assert_accurate(got, bounds(run.evaluation(*Outputs._fields), "float64"))


# --- against finite differences, without the oracle ------------------------------------------


def assert_slope(loss, arguments, direction, gradients):
    """The gradients are those of the loss, a function of float64 tensors, along a direction."""
    given = [a for a in arguments if a is not None]
    slope = weighted_sum(direction, [g for g in gradients if g is not None])
    want = central_difference(
        lambda values: loss(tensors(with_values(arguments, values))), given, direction, STEP
    )
    np.testing.assert_allclose(slope, want, rtol=DIFFERENCE, atol=DIFFERENCE)


@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_finite_differences(rng, case):
    """Through the tape, of all outputs at all steps."""
    arguments, mask, upstream = random_point(rng, case)
    direction = smooth_direction(rng, case, arguments, mask)
    weights = outputs_of(upstream)
    got = tape_grads(case, tensors(arguments), tensor(mask), upstream)

    def loss(given):
        return weighted_sum(weights, arrays(call(case, given, tensor(mask))))

    assert_slope(loss, arguments, direction, got)


@pytest.mark.parametrize("case", PAIRS[::3], ids=str)
def test_finite_differences_of_the_gradient_op(rng, case):
    """Of the output at all steps, and of the state and cell after the last of each direction."""
    run = Run(rng, case, "float64")
    arguments, mask, upstream = run.arguments, run.mask, run.upstream
    direction = smooth_direction(rng, case, arguments, mask)

    def last(a):
        """[N, D*H]: forward that of the last row, backwards of the first."""
        first, final = a[0], a[-1]
        both = np.concatenate([final[:, : case.units], first[:, case.units :]], axis=1)
        return {"forward": final, "reverse": first, "bidirectional": both}[case.direction]

    def loss(given):
        output, cell, _ = arrays(call(case, given, tensor(mask)))
        return weighted_sum(upstream[:3], [output, last(output), last(cell)])

    assert_slope(loss, arguments, direction, run.op())


# --- rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", Outputs._fields)
def test_each_output_alone(rng, name):
    """A loss that reads one output: the others have no upstream gradient at all."""
    run = Run(rng, BOTH, "float64")
    weights = getattr(run.upstream, name)
    with tf.GradientTape() as tape:
        tape.watch(list(run.given[0]))
        outputs = call(BOTH, *run.given, produce_cell=name == "cell", training=name == "z_state")
        loss = tf.reduce_sum(weights * getattr(outputs, name))
    got = Arguments(*tape.gradient(loss, list(run.given[0])))
    assert_right(got, run.evaluation(name), "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", PAIRS[::9], ids=str)
def test_what_is_asked_for_changes_no_bit(rng, case, dtype):
    """Without training no activations are saved, and the gradient runs the op again."""
    run = Run(rng, case, dtype)
    names = Results._fields
    only_output = run.upstream._replace(
        **{name: np.zeros_like(getattr(run.upstream, name)) for name in names if name != "output"}
    )
    run.upstream = only_output
    want = present(run.tape())
    assert_same_bits(present(run.op()), want)
    for options in ({"produce_cell": False}, {"training": False, "produce_cell": False}):
        assert_same_bits(present(run.tape(**options)), want)


def test_final_gradients_may_be_absent_or_have_an_axis_of_time(rng):
    run = Run(rng, BOTH, "float64")
    want = run.op()
    upstream = run.upstream
    steps = upstream._replace(state=upstream.state[None], final_cell=upstream.final_cell[None])
    assert_same_bits(run.op(steps), want)
    zero = zeros_but(upstream, "output", "final_cell")
    assert_same_bits(run.op(zero._replace(state=None)), run.op(zero))
    zero = zeros_but(upstream, "output", "state")
    assert_same_bits(run.op(zero._replace(final_cell=None)), run.op(zero))


@pytest.mark.parametrize("name", [*Arguments._fields])
def test_gradient_of_one_argument_only(rng, name):
    run = Run(rng, BOTH, "float64")
    watched = getattr(run.given[0], name)
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = call(BOTH, *run.given)
    upstream = tensors(outputs_of(run.upstream))
    got = tape.gradient(list(outputs), watched, list(upstream))
    assert_same_bits([got], [getattr(run.tape(), name)])


def test_the_mask_has_no_gradient(rng):
    arguments, mask, _ = random_point(rng, BOTH)
    mask = tensor(mask)
    with tf.GradientTape() as tape:
        tape.watch(mask)
        outputs = call(BOTH, tensors(arguments), mask)
    assert tape.gradient(outputs.output, mask) is None


@pytest.mark.parametrize("sizes", [{"time": 0}, {"batch": 0}, {"inputs": 0}], ids=str)
def test_empty(rng, sizes):
    """Where there is no step the final state is the initial one, and so is its gradient."""
    run = Run(rng, replace(BOTH, **sizes), "float64")
    for got, names in ((run.tape(), Outputs._fields), (run.op(), FINAL)):
        assert_right(got, run.evaluation(*names), "float64")
    if "time" in sizes:
        assert_same_bits([run.op().init_state], [run.upstream.state])
        assert_same_bits([run.op().init_cell], [run.upstream.final_cell])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_alone_has_the_bits_it_has_in_a_batch(rng, dtype):
    """In all gradients that are not sums over the batch."""
    case = replace(BOTH, batch=19)
    arguments, mask, upstream = random_point(rng, case, dtype)

    def gradients(rows):
        given = arguments._replace(
            source=arguments.source[:, rows],
            init_state=arguments.init_state[rows],
            init_cell=arguments.init_cell[rows],
        )
        by = Results(*(u[rows] if u.ndim == 2 else u[:, rows] for u in upstream))
        given, chosen_mask = tensors(given, dtype), tensor(mask[rows], dtype)
        got = tape_grads(case, given, chosen_mask, tensors(by, dtype))
        return arrays([got.source, got.init_state[tf.newaxis], got.init_cell[tf.newaxis]])

    whole = gradients(list(range(19)))
    for chosen in ([1], [18], [6, 0], list(range(18, -1, -1))):
        assert_same_bits(gradients(chosen), [a[:, chosen] for a in whole])
