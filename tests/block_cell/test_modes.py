"""How TensorFlow runs an op: eager, traced, nested, mapped, from several threads."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from oracle.block_cell import Inputs, Outputs

from .grid import (
    CELL,
    DTYPES,
    OPS,
    SEQUENCE,
    SEQUENCE_V2,
    SEQUENCES,
    Sizes,
    call,
    call_grad,
    random_inputs,
    reference,
    reference_backward,
    tensors,
)

SIZES = Sizes(3, 4, 5, 6)


def assert_same(got, want):
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=str(k))


def signature(inputs, known):
    """Specifications of the inputs with all of their shape known, only the rank, or nothing."""

    def shape(a):
        return {"shape": a.shape, "rank": [None] * a.shape.rank, "nothing": None}[known]

    return [tf.TensorSpec(shape(a), a.dtype) for a in inputs]


def value_and_grads(op, length=None, **options):
    """A function of the eight inputs: the outputs, and the gradients of all inputs."""

    def function(*inputs):
        inputs = Inputs(*inputs)
        with tf.GradientTape() as tape:
            tape.watch(list(inputs))
            outputs = call(op, inputs, length, **options)
            loss = tf.add_n([tf.reduce_sum(a * a) for a in outputs])
        return [*outputs, *tape.gradient(loss, list(inputs))]

    return function


@pytest.mark.sampled(12)
@pytest.mark.parametrize("known", ["shape", "rank", "nothing"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_traced_is_eager(rng, name, dtype, known):
    """Bit for bit: the same kernels run, forward and backward."""
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, SIZES, dtype), dtype)
    function = value_and_grads(op, use_peephole=True)
    traced = tf.function(function, input_signature=signature(inputs, known))
    assert_same(traced(*inputs), function(*inputs))


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "known"),
    [
        (SEQUENCE_V2.name, "nothing"),
        pytest.param(SEQUENCE.name, "rank", marks=pytest.mark.slow),
        pytest.param(CELL.name, "shape", marks=pytest.mark.full),
    ],
)
def test_second_derivatives_traced_are_eager(rng, name, known):
    """To a few roundings: TensorFlow's optimiser may reorder plain ops."""
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, SIZES), "float64")
    first = value_and_grads(op, use_peephole=True)

    def function(*inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            size = tf.add_n([tf.reduce_sum(g * g) for g in first(*inputs)[7:]])
        return tape.gradient(size, inputs, unconnected_gradients="zero")

    traced = tf.function(function, input_signature=signature(inputs, known))
    for a, b in zip(traced(*inputs), function(*inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13 * max(1, np.abs(b).max()))


@pytest.mark.parametrize("name", OPS)
def test_gradient_ops_traced_are_eager(rng, name):
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, SIZES, "float32"), "float32")
    saved = call(op, inputs)
    arguments = [*inputs, *saved, saved.cs, saved.h]

    def function(*a):
        return call_grad(op, Inputs(*a[:8]), Outputs(*a[8:15]), *a[15:], use_peephole=True)

    for known in ("shape", "rank", "nothing"):
        traced = tf.function(function, input_signature=signature(arguments, known))
        assert_same(traced(*arguments), function(*arguments))


@pytest.mark.parametrize("name", OPS)
def test_shapes_are_inferred(name):
    """As stock does: from x and cs_prev alone, dimension by dimension, as far as they are known."""
    op = OPS[name]
    time = [7] if op.is_sequence else []
    for batch, units in itertools.product([3, None], [4, None]):
        inputs = Inputs(
            *(tf.TensorSpec(shape) for shape in ([*time, batch, 2], [batch, units], *[None] * 6))
        )
        graph = tf.function(lambda *a: call(op, Inputs(*a), 5)).get_concrete_function(*inputs)
        for a in graph.structured_outputs:
            assert a.shape.as_list() == [*time, batch, units]


@pytest.mark.parametrize("name", OPS)
def test_shapes_of_gradient_ops_are_inferred(name):
    op = OPS[name]
    time, batch, features, units = 7, 3, 2, 4
    shapes = Inputs(
        [time, batch, features],
        [batch, units],
        [batch, units],
        [features + units, 4 * units],
        [units],
        [units],
        [units],
        [4 * units],
    )
    state = [time, batch, units]
    if not op.is_sequence:
        shapes, state = shapes._replace(x=[batch, features]), [batch, units]
    specs = [tf.TensorSpec(s) for s in (*shapes, *[state] * 9)]

    def function(*a):
        return call_grad(op, Inputs(*a[:8]), Outputs(*a[8:15]), *a[15:], length=5)

    got = [
        a.shape.as_list()
        for a in tf.function(function).get_concrete_function(*specs).structured_outputs
    ]
    if op.is_sequence:
        assert got == list(shapes)
    else:
        assert got == [[batch, units], [batch, 4 * units], [units], [units], [units]]


@pytest.mark.parametrize("name", OPS)
def test_one_trace_serves_all_sizes(rng, name):
    op = OPS[name]
    rank = 3 if op.is_sequence else 2
    ranks = Inputs(rank, 2, 2, 2, 1, 1, 1, 1)
    function = tf.function(
        value_and_grads(op), input_signature=[tf.TensorSpec([None] * r) for r in ranks]
    )
    for sizes in (Sizes(2, 1, 3, 4), Sizes(5, 3, 0, 1), Sizes(1, 2, 7, 5)):
        inputs = random_inputs(rng, op, sizes, "float32")
        got = function(*tensors(inputs, "float32"))
        # Float32 through at most five steps; exactness is the matter of test_forward.
        np.testing.assert_allclose(got[6], reference(op, inputs).h, rtol=1e-5, atol=1e-6)
    assert function.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("name", OPS)
def test_persistent_tape(rng, name):
    """Several gradients from one tape: the same as from a tape each, in any order."""
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, SIZES, "float32"), "float32")

    def record(persistent):
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(list(inputs))
            outputs = call(op, inputs)
        return tape, outputs

    tape, outputs = record(persistent=True)
    for field in ("h", "i", "cs", "h"):
        single, again = record(persistent=False)
        assert_same(
            tape.gradient(getattr(outputs, field), list(inputs)),
            single.gradient(getattr(again, field), list(inputs)),
        )


@pytest.mark.parametrize("name", OPS)
def test_graph_and_session(rng, name):
    """tf.compat.v1: placeholders, symbolic gradients, a session."""
    op = OPS[name]
    inputs = random_inputs(rng, op, SIZES, "float32")
    with tf.Graph().as_default():
        given = Inputs(*(tf.compat.v1.placeholder(tf.float32) for _ in inputs))
        outputs = call(op, given, 3, use_peephole=True)
        gradients = tf.compat.v1.gradients(outputs.h, list(given))
        with tf.compat.v1.Session() as session:
            feed = dict(zip(given, inputs, strict=True))
            got = session.run([*outputs, *gradients], feed)
    eager = tensors(inputs, "float32")
    with tf.GradientTape() as tape:
        tape.watch(list(eager))
        outputs = call(op, eager, 3, use_peephole=True)
    assert_same(got, [*outputs, *tape.gradient(outputs.h, list(eager))])


@pytest.mark.parametrize("name", OPS)
def test_arrays_lists_and_variables(rng, name):
    op = OPS[name]
    inputs = random_inputs(rng, op, SIZES, "float32")
    want = call(op, tensors(inputs, "float32"), 3)
    assert_same(call(op, Inputs(*(a.astype(np.float32) for a in inputs)), 3), want)
    assert_same(call(op, Inputs(*(a.tolist() for a in inputs)), 3), want)
    variables = Inputs(*(tf.Variable(a, dtype=tf.float32) for a in inputs))
    with tf.GradientTape() as tape:
        outputs = call(op, variables, 3)
    assert_same(outputs, want)
    assert all(g is not None for g in tape.gradient(outputs.h, list(variables)))


@pytest.mark.parametrize("name", OPS)
def test_the_name_of_a_node(name):
    op = OPS[name]
    with tf.Graph().as_default():
        given = Inputs(*(tf.compat.v1.placeholder(tf.float32) for _ in Inputs._fields))
        node = call(op, given, 3, name="my_node").h.op
    assert node.name == "my_node" and node.type == f"TfLstmOps>{name}"


# --- TensorFlow's own loops and maps ---------------------------------------------------------


def test_cell_in_a_loop_is_the_sequence(rng):
    """LSTMBlockCell in tf.while_loop, differentiated through the loop, against BlockLSTM."""
    inputs = tensors(random_inputs(rng, SEQUENCE, SIZES), "float64")

    @tf.function
    def loop(*arguments):
        a = Inputs(*arguments)
        with tf.GradientTape() as tape:
            tape.watch(list(a))
            cs, h, total = a.cs_prev, a.h_prev, tf.zeros([], tf.float64)
            for t in tf.range(tf.shape(a.x)[0]):
                step = call(CELL, a._replace(x=a.x[t], cs_prev=cs, h_prev=h), use_peephole=True)
                cs, h = step.cs, step.h
                total += tf.reduce_sum(h * h + step.o)
        return [total, *tape.gradient(total, list(a))]

    with tf.GradientTape() as tape:
        tape.watch(list(inputs))
        outputs = call(SEQUENCE, inputs, use_peephole=True)
        total = tf.reduce_sum(outputs.h**2 + outputs.o)
    want = [total, *tape.gradient(total, list(inputs))]
    for a, b in zip(loop(*inputs), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)  # float64, other order of sums


@pytest.mark.parametrize("name", OPS)
def test_vectorized_map(rng, name):
    """One call of the op computes all iterations, with the same results."""
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, SIZES, "float32"), "float32")
    xs = tf.stack([inputs.x, 2 * inputs.x, -inputs.x])
    got = tf.vectorized_map(
        lambda x: tuple(call(op, inputs._replace(x=x), 3)), xs, fallback_to_while_loop=False
    )
    for k in range(3):
        assert_same([a[k] for a in got], call(op, inputs._replace(x=xs[k]), 3))


@pytest.mark.parametrize("name", OPS)
def test_map_fn_and_cond(rng, name):
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, SIZES, "float32"), "float32")
    xs = tf.stack([inputs.x, 2 * inputs.x])

    @tf.function
    def mapped(xs):
        def one(x):
            return tf.cond(
                tf.reduce_sum(x) > 1e9,
                lambda: tf.zeros_like(x),
                lambda: call(op, inputs._replace(x=x), 3).h[..., : x.shape[-1]],
            )

        return tf.map_fn(one, xs)

    got = mapped(xs)
    for k in range(2):
        want = call(op, inputs._replace(x=xs[k]), 3).h[..., : SIZES.inputs]
        np.testing.assert_array_equal(got[k], want)


@pytest.mark.parametrize("pfor", [False, True])
def test_jacobian(rng, pfor):
    """The tape's jacobian, row by row or by vectorisation with a loop as its fallback."""
    inputs = random_inputs(rng, SEQUENCE, Sizes(2, 2, 2, 3))
    given = tensors(inputs, "float64")
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(given.b)
        h = call(SEQUENCE, given).h
    got = tape.jacobian(h, given.b, experimental_use_pfor=pfor).numpy()
    saved = reference(SEQUENCE, inputs)
    for index in np.ndindex(*saved.h.shape):
        upstream = Outputs(*(np.zeros_like(a) for a in saved))
        upstream.h[index] = 1
        want = reference_backward(SEQUENCE, inputs, saved, upstream).b
        np.testing.assert_allclose(got[index], want, rtol=1e-12, atol=1e-14)


# --- concurrency -----------------------------------------------------------------------------


def test_many_python_threads(rng):
    """Calls from eight threads at once give the bits of a single one."""
    sizes = Sizes(20, 8, 16, 32)
    cases = []
    for op, k in itertools.product(OPS.values(), range(3)):
        inputs = tensors(random_inputs(rng, op, sizes._replace(batch=8 + k), "float32"), "float32")
        saved = call(op, inputs)
        cases.append((op, inputs, saved, call_grad(op, inputs, saved, saved.cs, saved.h)))

    def check(case):
        op, inputs, saved, gradients = case
        again = call(op, inputs)
        assert_same(again, saved)
        assert_same(call_grad(op, inputs, again, again.cs, again.h), gradients)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(check, cases * 20))


def test_ops_that_run_side_by_side_in_a_graph(rng):
    """A graph of independent ops, which TensorFlow runs at the same time."""
    sizes = Sizes(10, 8, 16, 32)
    inputs = {
        op.name: tensors(random_inputs(rng, op, sizes, "float32"), "float32")
        for op in (SEQUENCE, SEQUENCE_V2)
    }

    @tf.function
    def many(scale):
        return [
            call(OPS[name], inputs[name]._replace(x=inputs[name].x * scale[k])).h
            for name in SEQUENCES
            for k in range(16)
        ]

    scale = tf.linspace(0.5, 1.5, 16)
    want = [
        call(OPS[name], inputs[name]._replace(x=inputs[name].x * scale[k])).h
        for name in SEQUENCES
        for k in range(16)
    ]
    for _ in range(5):
        assert_same(many(scale), want)
