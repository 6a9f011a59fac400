"""The oracle of MPSGraph's LSTM is right: numerical derivatives, the other oracles, stock Keras,
values computed by hand."""

import itertools
import math
from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf

from mpsgraph.cases import PAIRS, Case, random_arguments, random_like
from oracle import cudnn_rnn, keras_lstm
from oracle.derivatives import central_difference, complex_step, unit_direction
from oracle.mpsgraph import (
    ACTIVATIONS,
    Arguments,
    Options,
    Results,
    mpsgraph_lstm,
    mpsgraph_lstm_backward,
)

# Rounding in float64 of sums and products of a few dozen elements of size one. With unbounded
# activations the values grow, and the error with them.
ROUNDING = 1e-12
DIRECTIONS = ["forward", "reverse", "bidirectional"]


def backward(arguments, upstream, options):
    results = mpsgraph_lstm(arguments, options)
    return mpsgraph_lstm_backward(arguments, results.cell, results.z_state, upstream, options)


def weighted_sum(weights, values):
    pairs = zip(weights, values, strict=True)
    return sum(np.sum(w * v) for w, v in pairs if w is not None)


def absent_as(arguments, values):
    """The arguments with new values for those that are there."""
    values = iter(values)
    return Arguments(*(None if a is None else next(values) for a in arguments))


def given(arguments):
    return [a for a in arguments if a is not None]


def assert_all_close(got, want, tolerance=ROUNDING):
    for name, a, b in zip(want._fields, got, want, strict=True):
        assert (a is None) == (b is None), name
        if b is not None:
            assert a.shape == b.shape, name
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)


# --- against numerical derivatives -----------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_gradients_are_the_complex_step(rng, case):
    case = replace(case, inputs=1, units=2)  # each number costs a forward pass
    arguments, mask = random_arguments(rng, case)
    options = case.options(mask)
    upstream = random_like(rng, mpsgraph_lstm(arguments, options))
    got = backward(arguments, upstream, options)
    want = complex_step(
        lambda a: weighted_sum(upstream, mpsgraph_lstm(absent_as(arguments, a), options)),
        given(arguments),
    )
    assert_all_close(got, absent_as(arguments, want))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_gradients_are_the_finite_difference(rng, direction):
    """Of activations without kinks, which a difference would step over."""
    case = Case(direction=direction, output_gate_activation="none", cell_gate_activation="sigmoid")
    arguments, mask = random_arguments(rng, case)
    options = case.options(mask)
    upstream = random_like(rng, mpsgraph_lstm(arguments, options))
    gradients = backward(arguments, upstream, options)
    for _ in range(5):
        along = unit_direction(rng, arguments)
        want = central_difference(
            lambda a: weighted_sum(upstream, mpsgraph_lstm(Arguments(*a), options)),
            arguments,
            along,
        )
        # The error of the difference quotient (see there), for loss and derivatives up to 100.
        np.testing.assert_allclose(weighted_sum(gradients, along), want, rtol=0, atol=1e-10)


# --- against the other oracles, where they coincide ------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_agrees_with_the_keras_oracle(rng, direction, masked):
    """With the mask as recurrent dropout, and peepholes of i and f, which there too see c_prev."""
    case = Case(direction=direction, mask="full" if masked else "none")
    arguments, mask = random_arguments(rng, case)
    i, f, z, o = np.split(arguments.peephole, 4)
    arguments.peephole[...] = np.concatenate([i, f, 0 * z, 0 * o])
    options = case.options(mask)
    got = mpsgraph_lstm(arguments, options)
    upstream = random_like(rng, got)._replace(
        cell=np.zeros_like(got.cell), z_state=np.zeros_like(got.z_state)
    )

    def in_keras(output):  # [B, T, H] in the order of the calculation
        return output[:: -1 if direction == "reverse" else 1].swapaxes(0, 1)

    there = keras_lstm.Arguments(
        x=arguments.source.swapaxes(0, 1),
        h0=arguments.init_state,
        c0=arguments.init_cell,
        kernel=arguments.input_weight.T,
        recurrent_kernel=arguments.recurrent_weight.T,
        bias=arguments.bias,
        peephole=np.stack([i, f, 0 * o]),
    )
    same = keras_lstm.Options(
        go_backwards=direction == "reverse", recurrent_dropout=mask if masked else 1.0
    )
    want = keras_lstm.keras_lstm(there, same)
    np.testing.assert_allclose(in_keras(got.output), want.outputs, rtol=ROUNDING)
    np.testing.assert_allclose(got.state, want.h, rtol=ROUNDING)
    np.testing.assert_allclose(got.final_cell, want.c, rtol=ROUNDING)

    gradients = backward(arguments, upstream, options)
    by_keras = keras_lstm.keras_lstm_backward(
        there,
        keras_lstm.Results(in_keras(upstream.output), upstream.state, upstream.final_cell),
        same,
    )
    pairs = {
        "source": by_keras.x.swapaxes(0, 1),
        "recurrent_weight": by_keras.recurrent_kernel.T,
        "input_weight": by_keras.kernel.T,
        "bias": by_keras.bias,
        "init_state": by_keras.h0,
        "init_cell": by_keras.c0,
    }
    for name, value in pairs.items():
        found = getattr(gradients, name)
        np.testing.assert_allclose(found, value, rtol=ROUNDING, atol=ROUNDING, err_msg=name)
    np.testing.assert_allclose(
        np.split(gradients.peephole, 4)[:2], by_keras.peephole[:2], rtol=ROUNDING, atol=ROUNDING
    )


@pytest.mark.parametrize("forget_gate_last", [False, True])
def test_agrees_with_the_cudnn_oracle(rng, forget_gate_last):
    """Both directions. That oracle agrees with PyTorch."""
    case = Case(
        direction="bidirectional", forget_gate_last=forget_gate_last, peephole=False, mask="none"
    )
    arguments, _ = random_arguments(rng, case)
    options = case.options(None)
    got = mpsgraph_lstm(arguments, options)
    upstream = random_like(rng, got)._replace(
        cell=np.zeros_like(got.cell), z_state=np.zeros_like(got.z_state)
    )
    model = cudnn_rnn.Model("lstm", case.inputs, case.units, 1, 2)
    blocks = [["ifzo", "izfo"][forget_gate_last].index(g) for g in "ifzo"]

    def by_gate(a):  # [2, 4, H, ...] in cuDNN's order
        return a.reshape(2, 4, case.units, *a.shape[2:] if a.ndim == 3 else a.shape[1:])[:, blocks]

    def halves(a):  # [N, 2H] to [2, N, H]
        return np.stack(np.split(a, 2, axis=1))

    w, r, b = map(by_gate, (arguments.input_weight, arguments.recurrent_weight, arguments.bias))
    none = np.zeros((0, case.units))
    layers = [cudnn_rnn.Layer(w[d], r[d], none, b[d], 0 * b[d]) for d in (0, 1)]
    there = cudnn_rnn.Arguments(
        arguments.source,
        halves(arguments.init_state),
        halves(arguments.init_cell),
        model.join(layers),
    )
    want = cudnn_rnn.cudnn_rnn(model, there)
    np.testing.assert_allclose(got.output, want.output, rtol=ROUNDING)
    np.testing.assert_allclose(halves(got.state), want.output_h, rtol=ROUNDING)
    np.testing.assert_allclose(halves(got.final_cell), want.output_c, rtol=ROUNDING)

    found = backward(arguments, upstream, options)
    by_cudnn = cudnn_rnn.cudnn_rnn_backward(
        model,
        there,
        cudnn_rnn.Results(upstream.output, halves(upstream.state), halves(upstream.final_cell)),
    )
    parameters = model.split(by_cudnn.params)
    pairs = [
        (found.source, by_cudnn.input),
        (halves(found.init_state), by_cudnn.input_h),
        (halves(found.init_cell), by_cudnn.input_c),
        (by_gate(found.input_weight), np.stack([p.w for p in parameters])),
        (by_gate(found.recurrent_weight), np.stack([p.r for p in parameters])),
        (by_gate(found.bias), np.stack([p.bw for p in parameters])),
    ]
    for k, (a, b) in enumerate(pairs):
        np.testing.assert_allclose(a, b, rtol=ROUNDING, atol=ROUNDING, err_msg=str(k))


# --- against stock Keras ---------------------------------------------------------------------

IN_KERAS = {
    "none": "linear",
    "relu": "relu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    # That of Keras 3 has another slope.
    "hard_sigmoid": lambda x: tf.clip_by_value(0.2 * x + 0.5, 0, 1),
}


@pytest.mark.parametrize(("of_gates", "of_cell"), itertools.product(ACTIVATIONS, repeat=2))
def test_activations_are_those_of_keras(rng, of_gates, of_cell):
    """Keras has one for the gates i, f and o, and one for the candidate and the cell."""
    activations = dict.fromkeys(("input", "forget", "output"), of_gates) | {"cell": of_cell}
    case = Case(
        activation=of_cell,
        peephole=False,
        mask="none",
        **{f"{gate}_gate_activation": name for gate, name in activations.items()},
    )
    arguments, _ = random_arguments(rng, case)
    layer = keras.layers.LSTM(
        case.units,
        activation=IN_KERAS[of_cell],
        recurrent_activation=IN_KERAS[of_gates],
        return_sequences=True,
        dtype="float64",
    )
    x = tf.constant(arguments.source.swapaxes(0, 1))
    states = [tf.constant(arguments.init_state), tf.constant(arguments.init_cell)]
    layer.build(x.shape)
    layer.set_weights([arguments.input_weight.T, arguments.recurrent_weight.T, arguments.bias])
    weights = [variable.value for variable in layer.weights]
    got = mpsgraph_lstm(arguments, case.options(None))
    upstream = Results(*map(np.zeros_like, got))
    upstream = upstream._replace(output=rng.normal(size=got.output.shape))
    with tf.GradientTape() as tape:
        tape.watch([x, *states])
        output = layer(x, initial_state=states)
    np.testing.assert_allclose(got.output, tf.transpose(output, [1, 0, 2]), rtol=0, atol=ROUNDING)
    found = backward(arguments, upstream, case.options(None))
    sources = [x, weights[1], weights[0], weights[2], *states]
    want = tape.gradient(output, sources, upstream.output.swapaxes(0, 1))
    found = [a for a in found if a is not None]
    found[0] = found[0].swapaxes(0, 1)
    found[1:3] = [found[1].T, found[2].T]
    for k, (a, b) in enumerate(zip(found, want, strict=True)):
        np.testing.assert_allclose(a, b, rtol=ROUNDING, atol=ROUNDING, err_msg=str(k))


# --- by hand ---------------------------------------------------------------------------------


def test_one_unit_by_hand():
    """One number per gate, an activation of its own for each, two steps backwards in time."""
    x, h, c, m = [0.5, -0.7], -0.3, 0.7, 1.5
    w, r = [0.2, -0.4, 0.6, 0.8], [0.1, 0.3, -0.5, 0.7]
    b, p = [0.01, 0.9, 0.03, 0.04], [0.11, -0.13, 0.17, 0.19]
    want = []
    for x_t in x[::-1]:
        i, z, f, o = (w[k] * x_t + r[k] * h * m + b[k] + p[k] * c for k in range(4))
        i, z, f, o = 1 / (1 + math.exp(-i)), max(z, 0), min(max(0.2 * f + 0.5, 0), 1), math.tanh(o)
        c = f * c + i * z
        h = o * c
        want.append([h, c, i, z, f, o])
    arguments = Arguments(
        source=np.reshape(x, (2, 1, 1)),
        recurrent_weight=np.reshape(r, (4, 1)),
        input_weight=np.reshape(w, (4, 1)),
        bias=np.array(b),
        peephole=np.array(p),
        init_state=np.full((1, 1), -0.3),
        init_cell=np.full((1, 1), 0.7),
    )
    options = Options(
        mask=np.array(m),
        reverse=True,
        forget_gate_last=True,
        cell_gate_activation="relu",
        forget_gate_activation="hard_sigmoid",
        output_gate_activation="tanh",
        activation="none",
    )
    got = mpsgraph_lstm(arguments, options)
    rows = np.concatenate([got.output, got.cell, got.z_state], axis=-1)[:, 0]
    np.testing.assert_allclose(rows[::-1], want, rtol=1e-14)  # some roundings
    np.testing.assert_array_equal([got.state[0, 0], got.final_cell[0, 0]], rows[0, :2])


@pytest.mark.parametrize(
    ("name", "points"), [("relu", [0.0]), ("hard_sigmoid", [-2.5, 2.5])], ids=["relu", "hard"]
)
def test_the_slope_at_a_kink_is_zero(name, points):
    value, slope = ACTIVATIONS[name]
    x = np.array(points)
    np.testing.assert_array_equal(slope(value(x)), np.zeros_like(x))
    inside = x * 0.9 if name == "hard_sigmoid" else x + 0.1
    assert slope(value(inside)).all()


# --- rules -----------------------------------------------------------------------------------


def test_absent_arguments_count_as_zero_and_an_absent_mask_as_one(rng):
    """And without an input weight the source holds the products with it."""
    full = Case(direction="bidirectional")
    arguments, _ = random_arguments(rng, full)
    rest = ("bias", "peephole", "init_state", "init_cell")
    zeros = arguments._replace(**{name: 0 * getattr(arguments, name) for name in rest})
    want = mpsgraph_lstm(zeros, full.options(np.ones(10)))
    absent = arguments._replace(**dict.fromkeys(rest))
    assert_all_close(mpsgraph_lstm(absent, full.options(None)), want, 0)
    products = arguments.source @ arguments.input_weight.T
    got = mpsgraph_lstm(absent._replace(source=products, input_weight=None), full.options(None))
    assert_all_close(got, want, ROUNDING)


def test_reverse_is_ignored_if_bidirectional(rng):
    arguments, mask = random_arguments(rng, Case(direction="bidirectional"))
    got = mpsgraph_lstm(arguments, Options(mask, reverse=True, bidirectional=True))
    assert_all_close(got, mpsgraph_lstm(arguments, Options(mask, bidirectional=True)), 0)


def test_no_step_hands_the_states_on(rng):
    case = Case(direction="bidirectional", time=0)
    arguments, mask = random_arguments(rng, case)
    results = mpsgraph_lstm(arguments, case.options(mask))
    assert results.output.shape == (0, case.batch, 2 * case.units)
    np.testing.assert_array_equal(results.state, arguments.init_state)
    upstream = random_like(rng, results)
    gradients = backward(arguments, upstream, case.options(mask))
    np.testing.assert_array_equal(gradients.init_state, upstream.state)
    np.testing.assert_array_equal(gradients.init_cell, upstream.final_cell)
    assert not gradients.recurrent_weight.any()
