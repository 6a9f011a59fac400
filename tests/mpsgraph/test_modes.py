"""How TensorFlow runs the ops: eager, traced, mapped, from several threads, in other
processes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from cudnn_rnn.accuracy import assert_same_bits
from oracle.mpsgraph import Arguments, Results
from processes import assert_bits_elsewhere, in_environments

from .bits import results
from .cases import DTYPES, Case, Outputs, present, random_arguments, random_like
from .grid import call, call_grads, reference, tape_grads, tensor, tensors

SCRIPT = Path(__file__).with_name("bits.py")
CASES = [
    Case("bidirectional"),
    Case("reverse", input_weight=False, bias=False, init_state=False, mask="vector"),
]


class Given:
    """Tensors for a case, and functions of a list of those that are there."""

    def __init__(self, rng, case, dtype="float32"):
        self.case, self.dtype = case, dtype
        arguments, mask = random_arguments(rng, case, dtype)
        upstream = random_like(rng, reference(case, arguments, mask), dtype)
        self.upstream = Results(*tensors(upstream, dtype))
        named = arguments._asdict() | {"mask": mask}
        self.tensors = {k: tensor(v, dtype) for k, v in named.items() if v is not None}
        self.values = list(self.tensors.values())

    def arguments(self, values):
        """Arguments and mask."""
        named = dict(zip(self.tensors, values, strict=True))
        return Arguments(*(named.get(name) for name in Arguments._fields)), named.get("mask")

    def call(self, *values):
        return list(call(self.case, *self.arguments(values)))

    def tape(self, *values):
        return list(present(tape_grads(self.case, *self.arguments(values), self.upstream)))

    def op(self, *values):
        arguments, mask = self.arguments(values)
        saved = Outputs(*self.call(*values))
        return list(present(call_grads(self.case, arguments, mask, saved, self.upstream)))

    def everything(self, *values):
        return [*self.call(*values), *self.tape(*values), *self.op(*values)]


# --- traced ----------------------------------------------------------------------------------


@pytest.mark.parametrize("known", ["shape", "rank", "nothing"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_traced_is_eager(rng, case, known):
    """Bit for bit: the same kernels run, forward and backward."""
    given = Given(rng, case)
    shapes = {
        "shape": lambda a: a.shape,
        "rank": lambda a: [None] * a.shape.rank,
        "nothing": lambda a: None,
    }
    specs = [tf.TensorSpec(shapes[known](a), a.dtype) for a in given.values]
    traced = tf.function(given.everything, input_signature=specs)
    assert_same_bits(traced(*given.values), given.everything(*given.values))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_static_shapes(rng, case):
    """Of the results, all; of the gradients those of the arguments."""
    given = Given(rng, case)
    graph = tf.function(given.everything).get_concrete_function(*given.values)
    want = given.everything(*given.values)
    assert [a.shape.as_list() for a in graph.structured_outputs] == [list(a.shape) for a in want]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_static_shapes_of_unknown_time_and_batch(rng, case):
    given = Given(rng, case)
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in given.values]
    specs[0] = tf.TensorSpec([None, None, given.values[0].shape[2]], specs[0].dtype)
    graph = tf.function(given.call).get_concrete_function(*specs)
    width = case.directions * case.units
    for result, size in zip(graph.structured_outputs, (width, width, 4 * width), strict=True):
        assert result.shape.rank == 3 and result.shape[2] == size


def test_one_trace_serves_all_sizes(rng):
    given = [Given(rng, CASES[0]), Given(rng, Case("bidirectional", time=5, batch=1, units=3))]
    specs = [tf.TensorSpec([None] * a.shape.rank, a.dtype) for a in given[0].values]
    traced = tf.function(given[0].call, input_signature=specs)
    for each in given:
        assert_same_bits(traced(*each.values), each.call(*each.values))
    assert traced.experimental_get_tracing_count() == 1


def test_arrays_lists_and_variables(rng):
    given = Given(rng, CASES[0])
    want = given.call(*given.values)
    assert_same_bits(given.call(*(v.numpy() for v in given.values)), want)
    assert_same_bits(given.call(*(v.numpy().tolist() for v in given.values)), want)
    variables = [tf.Variable(v) for v in given.values]
    with tf.GradientTape() as tape:
        output, *_ = given.call(*variables)
    found = tape.gradient(output, variables)
    assert [g is None for g in found] == [name == "mask" for name in given.tensors]


def test_map_fn(rng):
    given = Given(rng, CASES[0])
    source, *others = given.values
    sources = tf.stack([source, 2 * source, -source])
    mapped = tf.function(lambda xs: tf.map_fn(lambda x: given.call(x, *others)[0], xs))
    for got, x in zip(mapped(sources), sources, strict=True):
        assert_same_bits([got], given.call(x, *others)[:1])


def test_a_loop_of_calls_is_one_call(rng):
    """One step a call, the states handed on; of one direction."""
    given = Given(rng, Case(direction="forward", mask="none"), "float64")
    arguments, _ = given.arguments(given.values)
    want = given.call(*given.values)
    h, c, steps = arguments.init_state, arguments.init_cell, []
    for x in arguments.source:
        now = arguments._replace(source=x[tf.newaxis], init_state=h, init_cell=c)
        steps.append(call(given.case, now, None))
        h, c = steps[-1].output[0], steps[-1].cell[0]
    got = [tf.concat(parts, axis=0) for parts in zip(*steps, strict=True)]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)  # rounding of elements of size one


# --- concurrency and determinism -------------------------------------------------------------


def test_many_python_threads(rng):
    """Calls from eight threads at once give the bits of a single one. They share kernels."""
    sizes = ({"batch": 8}, {"batch": 9}, {"time": 12})
    given = [Given(rng, Case("bidirectional", inputs=16, units=32, **size)) for size in sizes]
    wanted = [each.op(*each.values) for each in given]

    def check(pair):
        each, want = pair
        assert_same_bits(each.op(*each.values), want)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(check, list(zip(given, wanted, strict=True)) * 10))


@pytest.fixture(scope="module")
def bits():
    return results()  # compares repeated runs itself


def test_runs_repeat(bits):
    """`results` runs everything three times and compares; here: that nothing is zero."""
    assert len(bits) == 2 * len(DTYPES) * (len(Outputs._fields) + len(Arguments._fields))
    assert all(a.any() for a in bits.values())


@in_environments
def test_bits_in_another_process(bits, tmp_path, environment):
    assert_bits_elsewhere(SCRIPT, environment, bits, tmp_path)
