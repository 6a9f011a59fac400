"""The oracle of the cuDNN family is right: numerical derivatives, PyTorch, results by hand."""

from dataclasses import replace

import numpy as np
import pytest

from oracle.cudnn_rnn import GATES, Arguments, Model, Results, cudnn_rnn, cudnn_rnn_backward
from oracle.derivatives import central_difference, complex_step, unit_direction

TIME, BATCH, FEATURES, UNITS = 4, 3, 2, 3
LENGTHS = {"full": None, "any": [2, 4, 0], "short": [1, 2, 1], "nothing": [0, 0, 0]}

MODELS = {
    f"{mode}-L{layers}-D{directions}": Model(mode, FEATURES, UNITS, layers, directions)
    for mode in GATES
    for layers in (1, 2)
    for directions in (1, 2)
}
MODELS |= {
    "projected": Model("lstm", FEATURES, UNITS, 2, 2, num_proj=2),
    "projected-to-H": Model("lstm", FEATURES, UNITS, 2, 2, num_proj=UNITS),
    **{f"skip-{mode}": Model(mode, UNITS, UNITS, 2, 2, skip_input=True) for mode in GATES},
    "batch-major": Model("lstm", FEATURES, UNITS, 2, 2, num_proj=1, time_major=False),
    "three-layers": Model("gru", FEATURES, UNITS, 3, 1),
}


def random_arguments(rng, model):
    states = model.layers * model.directions
    cell = (states, BATCH, model.units) if model.mode == "lstm" else ()
    shapes = [(TIME, BATCH, model.inputs), (states, BATCH, model.hidden), cell]
    values = Arguments(*(rng.normal(size=s) for s in [*shapes, model.params_size]))
    return model.majors_exchanged(values)


def random_like(rng, values):
    return type(values)(*(rng.normal(size=a.shape) for a in values))


def random_dropout(rng, model):
    """Factors of 0 or 2, as dropout of one half draws them; None for a single layer."""
    if model.layers == 1:
        return None
    shape = (model.layers - 1, TIME, BATCH, model.directions * model.hidden)
    return 2.0 * rng.integers(2, size=shape)


def weighted_sum(weights, values):
    return sum(np.sum(w * v) for w, v in zip(weights, values, strict=True))


def assert_all_close(got, want, tolerance):
    for name, a, b in zip(want._fields, got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)


# --- against numerical derivatives -----------------------------------------------------------


# They take longest; other models have a projection, or skip the input.
LARGEST = ["projected-to-H", "skip-lstm"]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(
    "name",
    [pytest.param(m, marks=pytest.mark.full) if m in LARGEST else m for m in MODELS],
)
def test_gradients_are_the_complex_step(rng, name, lengths):
    model = MODELS[name]
    arguments = random_arguments(rng, model)
    options = {"lengths": LENGTHS[lengths], "dropout": random_dropout(rng, model)}
    upstream = random_like(rng, cudnn_rnn(model, arguments, **options))
    got = cudnn_rnn_backward(model, arguments, upstream, **options)
    want = complex_step(
        lambda a: weighted_sum(upstream, cudnn_rnn(model, Arguments(*a), **options)), arguments
    )
    assert [a.shape for a in got] == [a.shape for a in arguments]
    assert_all_close(got, Arguments(*want), 1e-12)  # rounding only


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])
def test_gradients_are_the_finite_difference(rng, mode):
    """Not of relu, whose kinks a difference would step over."""
    model = Model(mode, FEATURES, UNITS, 2, 2)
    arguments = random_arguments(rng, model)
    options = {"lengths": LENGTHS["any"], "dropout": random_dropout(rng, model)}
    upstream = random_like(rng, cudnn_rnn(model, arguments, **options))
    gradients = cudnn_rnn_backward(model, arguments, upstream, **options)
    for _ in range(5):
        direction = unit_direction(rng, arguments)
        want = central_difference(
            lambda a: weighted_sum(upstream, cudnn_rnn(model, Arguments(*a), **options)),
            arguments,
            direction,
        )
        # The error of the difference quotient (see there), for loss and derivatives up to 100.
        np.testing.assert_allclose(weighted_sum(gradients, direction), want, rtol=0, atol=1e-10)


# --- against PyTorch -------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.torch
@pytest.mark.parametrize("lengths", ["full", "any", "short"])
@pytest.mark.parametrize(
    "name", [name for name, m in MODELS.items() if m.time_major and not m.skip_input]
)
def test_agrees_with_pytorch(rng, name, lengths):
    pytest.importorskip("torch", reason="PyTorch, which this compares with, is not installed")
    from oracle import torch_rnn

    model = MODELS[name]
    arguments = random_arguments(rng, model)
    given = None
    if LENGTHS[lengths] is not None:
        given = np.maximum(LENGTHS[lengths], 1)  # PyTorch has no empty sequences
    want = cudnn_rnn(model, arguments, given)
    upstream = random_like(rng, want)
    results, gradients = torch_rnn.run(model, arguments, upstream, given)
    assert_all_close(results, want, 1e-13)  # rounding in float64
    assert_all_close(gradients, cudnn_rnn_backward(model, arguments, upstream, given), 1e-12)


# --- by hand ---------------------------------------------------------------------------------


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def test_lstm_of_one_unit_by_hand():
    """One number per gate, so that each line of the equations can be written out."""
    model = Model("lstm", 1, 1)
    w, r = [0.2, -0.4, 0.6, 0.8], [0.1, 0.3, -0.5, 0.7]
    bw, br = [0.01, 0.02, 0.03, 0.04], [0.1, 0.2, -0.3, 0.4]
    x, h, c = 0.5, -0.3, 0.7
    i, f, g, o = (x * w[k] + h * r[k] + bw[k] + br[k] for k in range(4))
    new_c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    new_h = sigmoid(o) * np.tanh(new_c)
    arguments = Arguments(*(np.full((1, 1, 1), a) for a in (x, h, c)), np.array(w + r + bw + br))
    np.testing.assert_allclose(np.ravel(cudnn_rnn(model, arguments)), [new_h, new_h, new_c], 1e-15)


def test_gru_of_one_unit_by_hand():
    model = Model("gru", 1, 1)
    w, r = [0.2, -0.4, 0.6], [0.1, 0.3, -0.5]
    bw, br = [0.01, 0.02, 0.03], [0.1, 0.2, -0.3]
    x, h = 0.5, -0.3
    reset, update = (sigmoid(x * w[k] + h * r[k] + bw[k] + br[k]) for k in range(2))
    n = np.tanh(x * w[2] + bw[2] + reset * (h * r[2] + br[2]))
    want = (1 - update) * n + update * h
    arguments = Arguments(
        np.full((1, 1, 1), x), np.full((1, 1, 1), h), np.zeros(()), np.array(w + r + bw + br)
    )
    got = cudnn_rnn(model, arguments)
    np.testing.assert_allclose(np.ravel(got[:2]), [want, want], rtol=1e-15)
    assert got.output_c.shape == () and got.output_c == 0


@pytest.mark.parametrize("name", MODELS)
def test_params_are_split_and_joined(rng, name):
    model = MODELS[name]
    params = rng.normal(size=model.params_size)
    layers = model.split(params)
    np.testing.assert_array_equal(model.join(layers), params)
    # The formula of cuDNN's documentation: matrices of each pseudo-layer, and two biases per gate.
    gates, size = GATES[model.mode], 0
    for layer in range(model.layers):
        width = model.directions * model.hidden if layer else model.inputs
        if layer == 0 and model.skip_input:
            width = 0
        matrices = gates * model.units * (width + model.hidden)
        projection = model.hidden * model.units if model.is_projected else 0
        size += model.directions * (matrices + projection + 2 * gates * model.units)
    assert params.size == size


def test_params_stand_where_cudnn_has_them():
    """The parameters of a two-layer bidirectional projected LSTM, counted through the buffer."""
    model = Model("lstm", 2, 3, layers=2, directions=2, num_proj=1)
    layers = model.split(np.arange(model.params_size))
    # Matrices of a pseudo-layer: 4·3·2 + 4·3·1 + 1·3 = 39; of the second layer, whose input is as
    # wide as two projections, the same. So the biases begin at 4·39 = 156, 24 for each of the four.
    assert [layer.w[0, 0, 0] for layer in layers] == [0, 39, 78, 117]
    assert [layer.r[0, 0, 0] for layer in layers] == [24, 63, 102, 141]
    assert [layer.projection[0, 0] for layer in layers] == [36, 75, 114, 153]
    assert [layer.bw[0, 0] for layer in layers] == [156, 180, 204, 228]
    assert [layer.br[0, 0] for layer in layers] == [168, 192, 216, 240]
    # Within: gates one after the other, rows of units, columns of inputs.
    np.testing.assert_array_equal(layers[0].w[1], [[6, 7], [8, 9], [10, 11]])
    np.testing.assert_array_equal(layers[0].bw[2], [162, 163, 164])


# --- rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", GATES)
def test_a_row_with_its_length_is_a_shorter_sequence(rng, mode):
    """Each row alone, cut to its length, gives what it gives in the padded batch."""
    model = Model(mode, FEATURES, UNITS, 2, 2)
    arguments = random_arguments(rng, model)
    lengths = [2, 4, 1]
    padded = arguments._replace(input=arguments.input.copy())
    for row, length in enumerate(lengths):
        padded.input[length:, row] = np.nan
    whole = cudnn_rnn(model, padded, lengths)
    upstream = random_like(rng, whole)
    gradients = cudnn_rnn_backward(model, padded, upstream, lengths)
    params = np.zeros(model.params_size)
    for row, length in enumerate(lengths):

        def cut(values, row=row, length=length):
            first, *others = (a[:, [row]] if np.ndim(a) == 3 else a for a in values)
            return type(values)(first[:length], *others)

        got = cudnn_rnn(model, cut(arguments))
        assert_all_close(got, cut(whole), 1e-14)
        assert not whole.output[length:, row].any()
        got = cudnn_rnn_backward(model, cut(arguments), cut(upstream))
        assert_all_close(got, cut(gradients)._replace(params=got.params), 1e-13)
        assert not gradients.input[length:, row].any()
        params += got.params
    np.testing.assert_allclose(gradients.params, params, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("mode", GATES)
def test_a_row_of_length_zero_hands_its_states_on(rng, mode):
    model = Model(mode, FEATURES, UNITS, 2, 2)
    arguments = random_arguments(rng, model)
    results = cudnn_rnn(model, arguments, [3, 0, 4])
    assert not results.output[:, 1].any()
    np.testing.assert_array_equal(results.output_h[:, 1], arguments.input_h[:, 1])
    upstream = random_like(rng, results)
    gradients = cudnn_rnn_backward(model, arguments, upstream, [3, 0, 4])
    np.testing.assert_array_equal(gradients.input_h[:, 1], upstream.output_h[:, 1])
    if mode == "lstm":
        np.testing.assert_array_equal(results.output_c[:, 1], arguments.input_c[:, 1])
        np.testing.assert_array_equal(gradients.input_c[:, 1], upstream.output_c[:, 1])


def test_options_change_results(rng):
    """No option is without effect (an oracle that ignores one would prove nothing)."""
    model = Model("lstm", UNITS, UNITS, 2, 2)
    arguments = random_arguments(rng, model)
    plain = cudnn_rnn(model, arguments)
    assert np.abs(plain.output - cudnn_rnn(model, arguments, [2, 4, 1]).output).max() > 0.01
    dropped = cudnn_rnn(model, arguments, dropout=random_dropout(rng, model))
    assert np.abs(plain.output - dropped.output).max() > 0.01
    # Below the dropout nothing changes.
    np.testing.assert_array_equal(plain.output_h[:2], dropped.output_h[:2])
    skipping = replace(model, skip_input=True)
    layers = model.split(arguments.params)
    empty = [layers[k]._replace(w=layers[k].w[:, :, :0]) for k in (0, 1)]
    params = skipping.join(empty + layers[2:])
    skipped = cudnn_rnn(skipping, arguments._replace(params=params))
    assert np.abs(plain.output - skipped.output).max() > 0.01
    # A skip input is a matrix that is the identity.
    identity = np.broadcast_to(np.eye(UNITS), layers[0].w.shape)
    with_identity = [layers[k]._replace(w=identity) for k in (0, 1)] + layers[2:]
    want = cudnn_rnn(model, arguments._replace(params=model.join(with_identity)))
    assert_all_close(skipped, Results(*want), 1e-14)


def test_batch_major_is_time_major_with_dimensions_exchanged(rng):
    model = Model("lstm", FEATURES, UNITS, 2, 2, num_proj=2)
    arguments = random_arguments(rng, model)
    other = replace(model, time_major=False)
    exchanged = other.majors_exchanged(arguments)
    assert exchanged.input.shape == (BATCH, TIME, FEATURES)
    assert exchanged.input_h.shape == (BATCH, 4, 2)
    want, got = cudnn_rnn(model, arguments, [3, 1, 4]), cudnn_rnn(other, exchanged, [3, 1, 4])
    assert got.output.shape == (BATCH, TIME, 4) and got.output_c.shape == (BATCH, 4, UNITS)
    assert_all_close(other.majors_exchanged(got), want, 0)
