"""First derivatives: the gradient ops, and the tape through every op with all seven upstreams."""

import itertools
from collections import namedtuple

import numpy as np
import pytest
import tensorflow as tf

from oracle.block_cell import Inputs, Outputs, cell_backward, zero_upstream
from tf_lstm_ops import raw_ops

from .accuracy import (
    assert_accurate,
    assert_close_to_stock,
    assert_root_mean_square,
    bounds,
    largest,
)
from .grid import (
    BIG_SIZES,
    CASES,
    CELL,
    CLIP,
    DTYPES,
    LONG_SUMS,
    OPS,
    OPTIONS,
    SEQUENCE,
    SEQUENCE_V2,
    SEQUENCES,
    SIZES,
    Sizes,
    arrays,
    call,
    call_grad,
    random_inputs,
    random_like,
    reference,
    reference_backward,
    round_to,
    tensors,
    tf_dtype,
)


def tape_grads(op, inputs, upstream, module=raw_ops, **options):
    """Gradients by all inputs of Σ upstream∘outputs, on tensors; None where the tape has none."""
    with tf.GradientTape() as tape:
        tape.watch(list(inputs))
        outputs = call(op, inputs, module=module, **options)
    return Inputs(*tape.gradient(list(outputs), list(inputs), list(upstream)))


def reference_tape(op, inputs, upstream, cast, store, **options):
    """What the tape should give: the oracle's forward pass, then its backward pass."""
    inputs, upstream = Inputs(*map(cast, inputs)), Outputs(*map(cast, upstream))
    outputs = reference(op, inputs, store=store, **options)
    peephole = {"use_peephole": options.get("use_peephole", False)}
    return reference_backward(op, inputs, outputs, upstream, store=store, **peephole)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes, options", CASES, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_tape(rng, name, sizes, options, dtype):
    op = OPS[name]
    chosen = op.select(OPTIONS[options])
    inputs = random_inputs(rng, op, sizes, dtype)
    upstream = random_like(rng, reference(op, inputs), dtype)
    got = tape_grads(op, tensors(inputs, dtype), tensors(upstream, dtype), **chosen)
    missing = [field for field, g in got._asdict().items() if g is None]
    assert not missing
    assert all(g.dtype == tf_dtype(dtype) for g in got)

    def evaluate(cast, store):
        return reference_tape(op, inputs, upstream, cast, store, **chosen)

    assert_accurate(got, bounds(evaluate, dtype))


@pytest.mark.parametrize("output", Outputs._fields)
@pytest.mark.parametrize("name", OPS)
def test_each_output_alone(rng, name, output):
    """A loss that reads one output: the others have no upstream gradient at all."""
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(3, 2, 3, 4))
    given = tensors(inputs, "float64")
    weights = rng.normal(size=getattr(reference(op, inputs), output).shape)
    with tf.GradientTape() as tape:
        tape.watch(list(given))
        outputs = call(op, given, use_peephole=True)
        loss = tf.reduce_sum(weights * getattr(outputs, output))
    got = Inputs(*tape.gradient(loss, list(given), unconnected_gradients="zero"))
    right = reference(op, inputs, use_peephole=True)
    upstream = zero_upstream(right, **{output: weights})
    want = reference_backward(op, inputs, right, upstream, use_peephole=True)
    for field, a, b in zip(Inputs._fields, arrays(got), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=field)


@pytest.mark.parametrize("name", OPS)
def test_peephole_gradients_are_in_their_own_slots(rng, name):
    """TF1's gradient gave wcf's gradient to wco and the reverse. All three differ here,
    and each is also the finite difference of its own argument."""
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(3, 2, 3, 4))
    upstream = random_like(rng, reference(op, inputs))
    options = {"use_peephole": True, "cell_clip": 0.0}
    got = tape_grads(op, tensors(inputs, "float64"), tensors(upstream, "float64"), **options)

    def loss(values):
        outputs = arrays(call(op, tensors(values, "float64"), **options))
        return sum(np.sum(u * a) for u, a in zip(upstream, outputs, strict=True))

    gradients = [got.wci.numpy(), got.wcf.numpy(), got.wco.numpy()]
    for field, gradient in zip(("wci", "wcf", "wco"), gradients, strict=True):
        for k in range(4):
            step = 1e-5 * np.eye(4)[k]
            ahead, behind = (
                loss(inputs._replace(**{field: getattr(inputs, field) + s})) for s in (step, -step)
            )
            # Truncation h², rounding ε/h: both 1e-10 or less.
            np.testing.assert_allclose(gradient[k], (ahead - behind) / 2e-5, rtol=0, atol=2e-9)
    assert min(largest(a - b) for a, b in itertools.combinations(gradients, 2)) > 0.01


@pytest.mark.parametrize("name", OPS)
def test_no_gradient_for_unused_peepholes_and_for_the_length(rng, name):
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, Sizes(3, 2, 3, 4)), "float64")
    got = tape_grads(op, inputs, call(op, inputs))
    for field in ("wci", "wcf", "wco"):
        np.testing.assert_array_equal(getattr(got, field), np.zeros(4))
    if op.is_sequence:
        length = tf.constant(2, tf.int64)
        with tf.GradientTape() as tape:
            tape.watch([length, inputs.x])
            h = call(op, inputs, length).h
        by_length, by_x = tape.gradient(h, [length, inputs.x])
        assert by_length is None and largest(by_x.numpy()) > 0


@pytest.mark.parametrize("name", OPS)
def test_clip_is_straight_through(rng, name):
    """Documented: the derivative of the clip counts as one even where it clips, as in the stock
    gradient ops. Where nothing clips the gradients are those without a clip, bit for bit."""
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(3, 2, 3, 4))
    given = tensors(inputs, "float64")
    upstream = tensors(random_like(rng, reference(op, inputs)), "float64")
    free = tape_grads(op, given, upstream, cell_clip=0.0)
    for a, b in zip(free, tape_grads(op, given, upstream, cell_clip=100.0), strict=True):
        np.testing.assert_array_equal(a, b)
    # A state beyond the clip still gets a gradient; a true derivative would be zero.
    clipped = inputs._replace(cs_prev=100 + np.abs(inputs.cs_prev))
    with tf.GradientTape() as tape:
        cs_prev = tf.constant(clipped.cs_prev)
        tape.watch(cs_prev)
        cs = call(op, tensors(clipped, "float64")._replace(cs_prev=cs_prev), cell_clip=CLIP).cs
    first = tape.gradient(cs, cs_prev, tf.ones_like(cs))
    assert np.all(first.numpy() > 0)


# --- the gradient ops ------------------------------------------------------------------------


def random_saved(rng, op, inputs, dtype, **options):
    """Inputs of a gradient op: outputs of the forward pass and two upstream gradients."""
    saved = Outputs(*map(round_to(dtype), reference(op, inputs, **options)))
    upstream = random_like(rng, saved, dtype)
    return saved, zero_upstream(saved, cs=upstream.cs, h=upstream.h)


def gradient_op_reference(op, inputs, saved, upstream, cast, store, use_peephole):
    """The named outputs of the gradient op, by the oracle."""
    inputs = Inputs(*map(cast, inputs))
    saved, upstream = Outputs(*map(cast, saved)), Outputs(*map(cast, upstream))
    options = {"use_peephole": use_peephole, "gate_order": op.gate_order, "store": store}
    if op.is_sequence:
        values = reference_backward(
            op, inputs, saved, upstream, store=store, use_peephole=use_peephole
        )
    else:
        d, gates = cell_backward(inputs, saved, upstream, **options)
        values = map(store, (d.cs_prev, gates, d.wci, d.wcf, d.wco))
    return GRADIENT_FIELDS[op.is_sequence](*values)


GRADIENT_FIELDS = {
    True: namedtuple("SequenceGradients", [f"{field}_grad" for field in Inputs._fields]),
    False: namedtuple(
        "StepGradients", ["cs_prev_grad", "dicfo", "wci_grad", "wcf_grad", "wco_grad"]
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("use_peephole", [False, True])
@pytest.mark.parametrize("sizes", [*SIZES, *BIG_SIZES], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_gradient_ops(rng, name, sizes, use_peephole, dtype):
    op = OPS[name]
    inputs = random_inputs(rng, op, sizes, dtype)
    saved, upstream = random_saved(rng, op, inputs, dtype, use_peephole=use_peephole)

    def evaluate(cast, store):
        return gradient_op_reference(op, inputs, saved, upstream, cast, store, use_peephole)

    given = [tensors(values, dtype) for values in (inputs, saved)]
    by = tensors(upstream, dtype)
    got = call_grad(op, *given, by.cs, by.h, use_peephole=use_peephole)
    assert got._fields == GRADIENT_FIELDS[op.is_sequence]._fields
    limits = bounds(evaluate, dtype)
    assert_accurate(got, limits)
    if dtype in ("half", "float32"):
        stock = call_grad(op, *given, by.cs, by.h, module=tf.raw_ops, use_peephole=use_peephole)
        assert_close_to_stock(got, stock, limits)


@pytest.mark.sampled
@pytest.mark.parametrize("sizes", LONG_SUMS, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_root_mean_square_error(rng, name, sizes):
    op = OPS[name]
    inputs = random_inputs(rng, op, sizes, "float32")
    saved, upstream = random_saved(rng, op, inputs, "float32", use_peephole=True)
    given = [tensors(values, "float32") for values in (inputs, saved)]
    by = tensors(upstream, "float32")
    assert_root_mean_square(
        call_grad(op, *given, by.cs, by.h, use_peephole=True),
        lambda cast, store: gradient_op_reference(op, inputs, saved, upstream, cast, store, True),
    )


@pytest.mark.parametrize("name", OPS)
def test_gradient_ops_read_what_they_are_given(rng, name):
    """The saved outputs are inputs like any other, not results to be calculated again: with
    values that no forward pass computes, the equations still hold."""
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(3, 2, 3, 4))
    saved = random_like(rng, reference(op, inputs))
    upstream = random_like(rng, saved)
    upstream = zero_upstream(saved, cs=upstream.cs, h=upstream.h)
    got = call_grad(
        op,
        tensors(inputs, "float64"),
        tensors(saved, "float64"),
        upstream.cs,
        upstream.h,
        use_peephole=True,
    )

    def evaluate(cast, store):
        return gradient_op_reference(op, inputs, saved, upstream, cast, store, True)

    assert_accurate(got, bounds(evaluate, "float64"))


# --- the stock ops ---------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["half", "float32"])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("sizes", [s for s in SIZES if s.units < 20], ids=str)
def test_stock_cell_has_a_gradient(rng, sizes, options, dtype):
    """Importing the package registers the gradient that TensorFlow lacks. Stock's forward pass in
    half adds in half: its saved outputs are taken as they are."""
    chosen = OPTIONS[options]
    inputs = random_inputs(rng, CELL, sizes, dtype)
    given = tensors(inputs, dtype)
    saved = Outputs(*arrays(call(CELL, given, module=tf.raw_ops, **chosen)))
    upstream = random_like(rng, saved, dtype)
    got = tape_grads(CELL, given, tensors(upstream, dtype), module=tf.raw_ops, **chosen)

    def evaluate(cast, store):
        return reference_backward(
            CELL,
            Inputs(*map(cast, inputs)),
            Outputs(*map(cast, saved)),
            Outputs(*map(cast, upstream)),
            store=store,
            use_peephole=chosen.get("use_peephole", False),
        )

    assert_accurate(got, bounds(evaluate, dtype))


def gradients_by_x(op, module, inputs, upstream):
    with tf.GradientTape() as tape:
        tape.watch(inputs.x)
        outputs = call(op, inputs, module=module)
    return tape.gradient([outputs.cs, outputs.h], inputs.x, [upstream.cs, upstream.h])


@pytest.mark.parametrize("name", SEQUENCES)
def test_stock_gradient_of_the_second_version_is_wrong(rng, name):
    """Why BlockLSTMV2 of this package is worth having. TensorFlow's gradient of BlockLSTMV2 calls
    BlockLSTMGrad, which reads the columns of w in another order. Should this test fail, stock has
    been repaired: say so in the documentation."""
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(3, 2, 3, 4), "float32")
    saved = reference(op, inputs)
    upstream = random_like(rng, saved, "float32")
    want = reference_backward(
        op, inputs, saved, zero_upstream(saved, cs=upstream.cs, h=upstream.h)
    ).x
    given, by = tensors(inputs, "float32"), tensors(upstream, "float32")
    ours = gradients_by_x(op, raw_ops, given, by)
    stock = gradients_by_x(op, tf.raw_ops, given, by)
    assert largest(ours.numpy() - want) < 1e-5
    assert (largest(stock.numpy() - want) > 0.01) == (op is SEQUENCE_V2)


def test_versions_are_each_other_with_columns_exchanged(rng):
    inputs = random_inputs(rng, SEQUENCE, Sizes(4, 3, 5, 6))
    upstream = tensors(random_like(rng, reference(SEQUENCE, inputs)), "float64")

    def swap(a):
        first, second, third, fourth = np.split(a, 4, axis=-1)
        return np.concatenate([first, third, second, fourth], axis=-1)

    one = tape_grads(SEQUENCE, tensors(inputs, "float64"), upstream, forget_bias=0.0)
    swapped = inputs._replace(w=swap(inputs.w), b=swap(inputs.b))
    two = tape_grads(SEQUENCE_V2, tensors(swapped, "float64"), upstream, cell_clip=3.0)
    two = two._replace(w=swap(two.w.numpy()), b=swap(two.b.numpy()))
    for field, a, b in zip(Inputs._fields, one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13, err_msg=field)
