"""Ways into XLA, and out of it: which ops a call consists of."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import composite, dialects, raw_ops

BATCH, INPUTS, UNITS = 2, 3, 4
RNG = np.random.default_rng(0)
X = tf.constant(RNG.normal(size=(5, BATCH, INPUTS)))
STATE = tf.constant(RNG.normal(size=(BATCH, UNITS)))
WEIGHTS = tf.constant(RNG.normal(size=(INPUTS + UNITS, 4 * UNITS)))
PEEPHOLE, BIAS = tf.zeros([UNITS], tf.float64), tf.zeros([4 * UNITS], tf.float64)
# A step of one cell: a few roundings of float64 in sums of seven terms.
ROUNDING = 1e-14


def step(x):
    return raw_ops.LSTMBlockCell(
        x=x,
        cs_prev=STATE,
        h_prev=STATE,
        w=WEIGHTS,
        wci=PEEPHOLE,
        wcf=PEEPHOLE,
        wco=PEEPHOLE,
        b=BIAS,
    ).h


def op_types(function, *arguments):
    graph = tf.function(function).get_concrete_function(*arguments).graph.as_graph_def()
    nested = [node for f in graph.library.function for node in f.node_def]
    return {node.op for node in [*graph.node, *nested]}


def assert_close(got, want):
    np.testing.assert_allclose(got, want, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("traced_before", [False, True])
def test_a_function_in_a_compiled_function(traced_before):
    """An earlier trace of it has the fused op; outside, that one goes on being used."""
    inner = tf.function(step)
    want = step(X[0])
    if traced_before:
        assert_close(inner(X[0]), want)
    outer = tf.function(lambda x: inner(x) + 0, jit_compile=True)
    assert_close(outer(X[0]), want)
    assert_close(outer(X[0]), want)
    traces = inner.experimental_get_tracing_count()
    np.testing.assert_array_equal(inner(X[0]), want)
    assert inner.experimental_get_tracing_count() == traces + (not traced_before)
    assert "TfLstmOps>LSTMBlockCell" in op_types(inner, X[0])


def test_a_compiled_function_in_a_function():
    inner = tf.function(step, jit_compile=True)
    outer = tf.function(lambda x: (inner(x), step(x)))
    for got in outer(X[0]):
        assert_close(got, step(X[0]))
    assert "TfLstmOps>LSTMBlockCell" in op_types(lambda x: outer(x), X[0])


def test_loops_and_branches():
    def function(x):
        mapped = tf.map_fn(step, x)
        chosen = tf.cond(tf.reduce_sum(x) > 0, lambda: step(x[0]), lambda: step(x[1]))
        return mapped, chosen

    for got, want in zip(tf.function(function, jit_compile=True)(X), function(X), strict=True):
        assert_close(got, want)


def test_a_tape_around_a_compiled_function():
    """The gradient is compiled, too."""
    found = []
    for function in step, tf.function(step, jit_compile=True):
        with tf.GradientTape() as tape:
            tape.watch(X)
            loss = tf.reduce_sum(function(X[0]) ** 2)
        found.append(tape.gradient(loss, X))
    assert_close(*found)


def test_within_plain_ops():
    """Eager or traced; afterwards and in other threads all is as before."""
    in_thread = []
    with composite.plain_ops():
        assert_close(step(X[0]), step_outside := step(X[0]))
        plain = op_types(step, X[0])
        thread = threading.Thread(target=lambda: in_thread.append(op_types(step, X[0])))
        thread.start()
        thread.join()
    assert not [op for op in plain if ">" in op]
    assert_close(step_outside, step(X[0]))
    for fused in in_thread[0], op_types(step, X[0]):
        assert "TfLstmOps>LSTMBlockCell" in fused


def test_plain_ops_end_with_an_error():
    with pytest.raises(ZeroDivisionError), composite.plain_ops():
        raise ZeroDivisionError
    assert not composite.plain_ops_required()


def test_lists_and_arrays():
    """As the op, the composite takes what can be converted."""
    given = {
        "x": np.ones([1, 2], np.float32),
        "cs_prev": [[0.5]],
        "h_prev": tf.Variable([[0.25]]),
        "w": [[1.0, 2.0, 3.0, 4.0]] * 3,
        "b": [0.1, 0.2, 0.3, 0.4],
        **{key: [0.0] for key in ("wci", "wcf", "wco")},
    }
    call = tf.function(lambda: raw_ops.LSTMBlockCell(**given, name="cell"), jit_compile=True)
    for got, want in zip(call(), raw_ops.LSTMBlockCell(**given), strict=True):
        # float32: a few roundings of values below one
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


def test_every_raw_op_has_a_composite():
    assert set(raw_ops.__all__) <= set(dialects.COMPOSITES)
