"""MPSGraph's LSTM where XLA compiles: beside its own kernels, outside."""

import pytest
import tensorflow as tf

from mpsgraph.cases import DTYPES, Case, random_arguments, random_like
from mpsgraph.grid import call, call_grads, reference, tensor, tensors
from oracle.mpsgraph import Arguments, Results

from .comparison import (
    SECOND_ORDER,
    assert_agree,
    compiled,
    second_derivatives,
    value_and_grads,
)

ALL = Case("bidirectional", True, "hard_sigmoid", "tanh", "none", "sigmoid", "relu")
FEW = Case("reverse", input_weight=False, bias=False, peephole=False, init_cell=False, mask="none")
CASES = [
    case if case == (ALL, "float64") else pytest.param(*case, marks=pytest.mark.slow)
    for case in [(ALL, dtype) for dtype in DTYPES] + [(FEW, "float64")]
]


def given(rng, case: Case, dtype: str = "float64") -> tuple[list[str], list[tf.Tensor], tf.Tensor]:
    """Names and tensors of the arguments that are there, and the mask."""
    arguments, mask = random_arguments(rng, case, dtype)
    there = {n: tensor(a, dtype) for n, a in arguments._asdict().items() if a is not None}
    return list(there), list(there.values()), tensor(mask, dtype)


def of(names: list[str], values) -> Arguments:
    there = dict(zip(names, values, strict=True))
    return Arguments(*(there.get(name) for name in Arguments._fields))


@pytest.mark.parametrize(("case", "dtype"), CASES)
def test_values_and_gradients(rng, case, dtype):
    """Of all outputs, by all arguments that are there."""
    names, values, mask = given(rng, case, dtype)

    def function(*values):
        return value_and_grads(lambda *a: call(case, of(names, a), mask), *values)

    assert_agree(compiled(function, *values), function(*values), dtype)


@pytest.mark.full
def test_gradient_op(rng):
    arguments, mask = random_arguments(rng, ALL)
    upstream = Results(*tensors(random_like(rng, reference(ALL, arguments, mask))))
    arguments, mask = tensors(arguments), tensor(mask)
    saved = call(ALL, arguments, mask)

    def function(*values):
        return call_grads(ALL, Arguments(*values), mask, saved, upstream)

    assert_agree(compiled(function, *arguments), function(*arguments))


@pytest.mark.slow
def test_second_derivatives(rng):
    names, values, mask = given(rng, FEW)

    def function(*values):
        return second_derivatives(lambda *a: call(FEW, of(names, a), mask).output, *values)

    assert_agree(compiled(function, *values), function(*values), factor=SECOND_ORDER)


def test_a_wrong_shape(rng):
    """What the shape function cannot know, plain ops refuse."""
    arguments, mask = random_arguments(rng, ALL)
    wrong = tensors(arguments)._replace(bias=tf.zeros([1], tf.float64))
    with pytest.raises(ValueError, match="reshape"):
        compiled(lambda *a: call(ALL, Arguments(*a), tensor(mask)), *wrong)
