"""How TensorFlow runs the family: eager, traced, nested, mapped, from several
threads, in other processes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from processes import assert_bits_elsewhere, in_environments

from .bits import results
from .cases import (
    DTYPES,
    FORWARD,
    GATES,
    SEQUENCE_OPS,
    SOURCES,
    Case,
    arguments,
    call,
    specification,
    trace,
)

SCRIPT = Path(__file__).with_name("bits.py")
LENGTHS = [2, 0, 4]


def case_for(op: str, mode: str = "lstm") -> Case:
    """Two bidirectional layers; all that V3 has beyond the others, where the op is V3."""
    if op.endswith("V3"):
        proj = 2 if mode == "lstm" else 0
        return Case(mode, layers=2, directions=2, proj=proj, time=4, time_major=False)
    return Case(mode, layers=2, directions=2, time=4)


def lengths_for(op: str) -> list[int] | None:
    return LENGTHS if op.endswith("V3") else None


def differentiable(case: Case) -> list[str]:
    return ["input", "input_h", "params", *(["input_c"] if case.mode == "lstm" else [])]


def assert_same(got: Any, want: Any) -> None:
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=str(k))


def value_and_grads(op: str, case: Case, source: str, names: list[str]):
    """A function of all inputs: output, final states, and gradients of the differentiable ones."""

    def function(*values):
        values = dict(zip(names, values, strict=True))
        sources = [values[name] for name in differentiable(case)]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            outputs = call(op, case, values, source)[:3]
            loss = tf.add_n([tf.reduce_sum(a * a) for a in outputs])
        return [*outputs, *tape.gradient(loss, sources)]

    return function


def signature(values: dict[str, tf.Tensor], known: str) -> list[tf.TensorSpec]:
    """Specifications with all of a shape known, only the rank, or nothing."""

    def shape(a):
        return {"shape": a.shape, "rank": [None] * a.shape.rank, "nothing": None}[known]

    return [tf.TensorSpec(shape(a), a.dtype) for a in values.values()]


# --- traced ----------------------------------------------------------------------------------


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("known", ["shape", "rank", "nothing"])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", GATES)
@pytest.mark.parametrize("op", FORWARD)
def test_traced_is_eager(op, mode, source, known):
    """Bit for bit: the same kernels run, forward and backward."""
    case = case_for(op, mode)
    values = arguments(op, case, lengths=lengths_for(op))
    function = value_and_grads(op, case, source, list(values))
    traced = tf.function(function, input_signature=signature(values, known))
    assert_same(traced(*values.values()), function(*values.values()))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("op", SEQUENCE_OPS)
def test_ops_traced_are_eager(op, source, known):
    case = case_for(op)
    values = arguments(op, case, lengths=lengths_for(op))
    traced = trace(op, case, specification(values, known), source=source)
    assert_same(traced(*values.values()), call(op, case, values, source))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", GATES)
@pytest.mark.parametrize("op", SEQUENCE_OPS)
def test_shapes_are_inferred(op, mode, source):
    """For a stock name by TensorFlow. Ours cannot see the attributes on which sizes depend; it
    knows ranks, and what is shaped as an input."""
    case = case_for(op, mode)
    graph = trace(op, case, specification(arguments(op, case), known=True), source=source)
    got = [a.shape for a in graph.structured_outputs]
    for k, (shape, want) in enumerate(zip(got, case.result_shapes(op), strict=True)):
        if want is None:
            continue
        if source == "stock" or "Backprop" in op or k == 1:
            assert shape.as_list() == list(want), k
        assert tf.TensorShape(want).is_compatible_with(shape), k
    assert got[0].rank == got[1].rank == 3


@pytest.mark.parametrize("source", SOURCES)
def test_one_trace_serves_all_sizes(source):
    """Also other numbers of layers: they are read from the shapes."""
    case = case_for("CudnnRNNV3", "gru")
    values = arguments("CudnnRNNV3", case)
    function = value_and_grads("CudnnRNNV3", case, source, list(values))
    traced = tf.function(function, input_signature=signature(values, "rank"))
    for other in (
        case,
        Case("gru", 1, 2, inputs=1, units=1, time=1, batch=1, time_major=False),
        Case("gru", 3, 2, inputs=5, units=6, time=3, batch=4, time_major=False),
    ):
        values = arguments("CudnnRNNV3", other)
        assert_same(traced(*values.values()), function(*values.values()))
    assert traced.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("op", FORWARD)
def test_graph_and_session(op, source):
    """tf.compat.v1: placeholders, symbolic gradients, a session."""
    case = case_for(op)
    values = arguments(op, case, lengths=lengths_for(op))
    with tf.Graph().as_default():
        given = {k: tf.compat.v1.placeholder(v.dtype) for k, v in values.items()}
        outputs = call(op, case, given, source)
        sources = [given[name] for name in differentiable(case)]
        gradients = tf.compat.v1.gradients(tf.reduce_sum(outputs.output**2), sources)
        with tf.compat.v1.Session() as session:
            got = session.run(
                [*outputs[:3], *gradients], {given[k]: v.numpy() for k, v in values.items()}
            )
    with tf.GradientTape() as tape:
        sources = [values[name] for name in differentiable(case)]
        tape.watch(sources)
        outputs = call(op, case, values, source)
        loss = tf.reduce_sum(outputs.output**2)
    assert_same(got, [*outputs[:3], *tape.gradient(loss, sources)])


def test_xla_refuses_stock_names_in_its_own_words():
    """Of ours it compiles plain ops: tests/xla."""
    case = case_for("CudnnRNNV3")
    values = arguments("CudnnRNNV3", case)
    compiled = tf.function(lambda: call("CudnnRNNV3", case, values, "stock"), jit_compile=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"unsupported operations.*CudnnRNNV3"):
        compiled()


# --- the tape --------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("op", FORWARD)
def test_persistent_tape(op, source):
    """Several gradients from one tape: the same as from a tape each, in any order."""
    case = case_for(op)
    values = arguments(op, case, lengths=lengths_for(op))
    sources = [values[name] for name in differentiable(case)]

    def record(persistent):
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(sources)
            outputs = call(op, case, values, source)
        return tape, outputs

    tape, outputs = record(persistent=True)
    for field in ("output", "output_c", "output_h", "output"):
        single, again = record(persistent=False)
        got = tape.gradient(getattr(outputs, field), sources)
        assert_same(got, single.gradient(getattr(again, field), sources))
        assert all(np.any(g) for g in got)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ["input", "input_h", "input_c", "params"])
def test_gradient_of_one_input_only(name, source):
    case = case_for("CudnnRNNV3")
    values = arguments("CudnnRNNV3", case, lengths=LENGTHS)
    all_of_them = differentiable(case)
    with tf.GradientTape() as tape, tf.GradientTape() as whole:
        tape.watch(values[name])
        whole.watch([values[k] for k in all_of_them])
        loss = tf.reduce_sum(call("CudnnRNNV3", case, values, source).output ** 2)
    want = dict(
        zip(all_of_them, whole.gradient(loss, [values[k] for k in all_of_them]), strict=True)
    )
    np.testing.assert_array_equal(tape.gradient(loss, values[name]), want[name])


@pytest.mark.parametrize("op", FORWARD)
def test_no_gradient_of_a_stock_op_without_training(op):
    case = case_for(op)
    values = arguments(op, case)
    with tf.GradientTape() as tape:
        tape.watch(values["params"])
        output = call(op, case, values, "stock", is_training=False).output
    text = f"To use {op} in gradients, is_training must be set to True."
    with pytest.raises(ValueError, match=text):
        tape.gradient(output, values["params"])


def test_arrays_lists_and_variables():
    case = case_for("CudnnRNNV3")
    values = arguments("CudnnRNNV3", case, lengths=LENGTHS)
    want = call("CudnnRNNV3", case, values)
    assert_same(call("CudnnRNNV3", case, {k: v.numpy() for k, v in values.items()}), want)
    assert_same(call("CudnnRNNV3", case, {k: v.numpy().tolist() for k, v in values.items()}), want)
    variables = {k: tf.Variable(values[k]) for k in differentiable(case)}
    with tf.GradientTape() as tape:
        outputs = call("CudnnRNNV3", case, {**values, **variables})
    assert_same(outputs, want)
    assert all(np.any(g) for g in tape.gradient(outputs.output, [*variables.values()]))


# --- TensorFlow's own loops and maps ---------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
def test_map_fn_and_cond(source):
    case = case_for("CudnnRNNV3")
    values = arguments("CudnnRNNV3", case, lengths=LENGTHS)
    xs = tf.stack([values["input"], 2 * values["input"], -values["input"]])

    @tf.function
    def mapped(xs):
        def one(x):
            return tf.cond(
                tf.reduce_sum(x) > 1e9,
                lambda: tf.zeros_like(x)[..., :1],
                lambda: call("CudnnRNNV3", case, {**values, "input": x}, source).output[..., :1],
            )

        return tf.map_fn(one, xs)

    got = mapped(xs)
    for k in range(3):
        want = call("CudnnRNNV3", case, {**values, "input": xs[k]}, source).output[..., :1]
        np.testing.assert_array_equal(got[k], want)
        assert np.any(want)


@pytest.mark.parametrize("source", SOURCES)
def test_a_loop_of_calls_is_one_call(source):
    """One step a call, the state handed on, in tf.while_loop and differentiated through it."""
    case = Case(time=4)
    step = Case(time=1)
    values = arguments("CudnnRNNV3", case, "float64")
    names = differentiable(case)

    @tf.function
    def loop(*sources):
        given = dict(zip(names, sources, strict=True))
        with tf.GradientTape() as tape:
            tape.watch(sources)
            h, c, total = given["input_h"], given["input_c"], tf.zeros([], tf.float64)
            for t in tf.range(case.time):
                now = {**given, "input": given["input"][t, None], "input_h": h, "input_c": c}
                now["sequence_lengths"] = tf.ones([case.batch], tf.int32)
                result = call("CudnnRNNV3", step, now, source)
                h, c = result.output_h, result.output_c
                total += tf.reduce_sum(result.output**2)
        return [total, *tape.gradient(total, sources)]

    sources = [values[name] for name in names]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        total = tf.reduce_sum(call("CudnnRNNV3", case, values, source).output ** 2)
    for a, b in zip(loop(*sources), [total, *tape.gradient(total, sources)], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)  # float64, other order of sums


def test_vectorized_map():
    """There is no rule for the op: TensorFlow falls back to a loop, with the same results."""
    case = case_for("CudnnRNNV3")
    values = arguments("CudnnRNNV3", case, lengths=LENGTHS)
    xs = tf.stack([values["input"], 2 * values["input"]])
    got = tf.vectorized_map(lambda x: call("CudnnRNNV3", case, {**values, "input": x}).output, xs)
    for k in range(2):
        want = call("CudnnRNNV3", case, {**values, "input": xs[k]}).output
        np.testing.assert_array_equal(got[k], want)


# --- concurrency and determinism -------------------------------------------------------------


def test_many_python_threads():
    """Calls from eight threads at once give the bits of a single one. They share kernels."""
    cases = []
    for mode in GATES:
        for batch in (8, 9):
            case = Case(mode, 2, 2, inputs=16, units=32, time=12, batch=batch)
            lengths = [k % 13 for k in range(batch)]
            values = arguments("CudnnRNNBackpropV3", case, lengths=lengths)
            inputs = {k: values[k] for k in case.shapes("CudnnRNNV3")}
            cases.append((case, inputs, values, call("CudnnRNNBackpropV3", case, values)))

    def check(arguments_and_result):
        case, inputs, values, want = arguments_and_result
        outputs = call("CudnnRNNV3", case, inputs)
        np.testing.assert_array_equal(outputs.output, values["output"])
        again = {**values, "reserve_space": outputs.reserve_space}
        assert_same(call("CudnnRNNBackpropV3", case, again), want)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(check, cases * 10))


@pytest.fixture(scope="module")
def bits():
    return results()  # compares repeated runs itself


def test_runs_repeat(bits):
    """`results` runs everything three times and compares; here: that it is not all zero."""
    assert len(bits) == len(GATES) * 2 * len(DTYPES) * (5 + 4)
    always_zero = ("host_reserved", "-output_c", "input_c_backprop")  # the last two but for lstm
    found = {k: a for k, a in bits.items() if a.size}  # without dropout Metal saves nothing
    assert not [k for k, a in found.items() if not a.any() and not k.endswith(always_zero)]


@in_environments
def test_bits_in_another_process(bits, tmp_path, environment):
    assert_bits_elsewhere(SCRIPT, environment, bits, tmp_path)
