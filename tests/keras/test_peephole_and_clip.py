"""use_peephole and cell_clip, which stock Keras lacks, against the NumPy reference."""

import functools

import keras
import numpy as np
import pytest
from pairs import (
    LSTM,
    Sizes,
    assert_same,
    evaluate,
    evaluate_oracle,
    make_layer,
    make_mask,
    random_inputs,
    rounding,
)

SIZES = Sizes(batch=3, time=6, inputs=4, units=7)
CLIP = 0.5
make_lstm = functools.partial(make_layer, LSTM, SIZES)


@pytest.mark.sampled(20, strength=2)
@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("zero_output_for_mask", [False, True])
@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("cell_clip", [None, CLIP])
@pytest.mark.parametrize("use_peephole", [False, True])
@pytest.mark.parametrize("mask", ["none", "right", "holes", "one_row_false"])
def test_against_the_reference(
    mask,
    use_peephole,
    cell_clip,
    use_bias,
    go_backwards,
    zero_output_for_mask,
    return_sequences,
    rng,
):
    """Results and gradients (past a clip: straight-through), of all weights."""
    mask = make_mask(mask, SIZES.batch, SIZES.time, rng)
    layer = make_lstm(
        rng,
        use_peephole=use_peephole,
        cell_clip=cell_clip,
        use_bias=use_bias,
        go_backwards=go_backwards,
        zero_output_for_mask=zero_output_for_mask,
        return_sequences=return_sequences,
    )
    assert layer.uses_fused_op
    inputs = random_inputs(SIZES, rng, LSTM)
    got = evaluate(layer, inputs, mask)
    assert_same(got, evaluate_oracle(layer, inputs, mask), rounding(SIZES))


def test_peephole_weights(rng):
    layer = make_lstm(rng, use_peephole=True)
    assert [w.name for w in layer.weights] == [
        "kernel",
        "recurrent_kernel",
        "bias",
        "peephole_kernel",
    ]
    assert layer.cell.peephole_kernel.shape == (3, SIZES.units)
    assert layer.count_params() == 4 * 7 * (4 + 7 + 1) + 3 * 7
    assert "peephole_kernel" not in [w.name for w in make_lstm(rng).weights]


@pytest.mark.parametrize("row", range(3))
def test_peephole_rows_are_those_of_i_f_o(row, rng):
    """Only one row is non-zero: two of the same value in other rows would give other results."""
    layer = make_lstm(rng, use_peephole=True)
    peephole = np.zeros((3, SIZES.units))
    peephole[row] = rng.normal(size=SIZES.units)
    layer.cell.peephole_kernel.assign(peephole)
    inputs = random_inputs(SIZES, rng, LSTM)
    wanted = evaluate_oracle(layer, inputs)
    assert_same(evaluate(layer, inputs), wanted, rounding(SIZES))
    layer.cell.peephole_kernel.assign(np.roll(peephole, 1, axis=0))
    other = evaluate_oracle(layer, inputs)
    assert np.abs(other.results[0] - wanted.results[0]).max() > 1e-3


def test_clip_limits_the_cell_state_only(rng):
    layer = make_lstm(rng, cell_clip=CLIP)
    free = make_lstm(rng)
    free.set_weights(layer.get_weights())
    inputs = random_inputs(SIZES, rng, LSTM)
    _, h, c = evaluate(layer, inputs).results
    _, _, c_free = evaluate(free, inputs).results
    assert np.abs(c).max() == CLIP
    assert np.abs(c_free).max() > CLIP
    assert np.all(np.abs(h) <= np.tanh(CLIP))


def test_initial_states_are_not_clipped(rng):
    """A fully masked row returns the state it was given, even beyond the clip."""
    layer = make_lstm(rng, cell_clip=CLIP)
    x, h0, c0 = random_inputs(SIZES, rng, LSTM)
    _, h, c = evaluate(layer, [x, h0, 10 * c0], np.zeros((SIZES.batch, SIZES.time), bool)).results
    np.testing.assert_array_equal(h, h0)
    np.testing.assert_array_equal(c, 10 * c0)


def test_a_clip_that_never_acts_changes_no_bit(rng):
    layer = make_lstm(rng, dtype="float32", cell_clip=100.0)
    free = make_lstm(rng, dtype="float32")
    free.set_weights(layer.get_weights())
    inputs = random_inputs(SIZES, rng, LSTM)
    assert_same(evaluate(layer, inputs), evaluate(free, inputs), 0)


def test_zero_peepholes_are_no_peepholes(rng):
    layer, plain = make_lstm(rng, use_peephole=True), make_lstm(rng)
    plain.set_weights(layer.get_weights()[:3])
    layer.cell.peephole_kernel.assign(np.zeros((3, SIZES.units)))
    inputs = random_inputs(SIZES, rng, LSTM)
    got, wanted = evaluate(layer, inputs), evaluate(plain, inputs)
    assert np.abs(got.gradients.pop("peephole_kernel")).max() > 1e-3
    assert_same(got, wanted, rounding(SIZES))


def test_training_moves_the_peepholes(rng):
    settings = {"return_sequences": False, "return_state": False}
    layer = make_lstm(rng, use_peephole=True, cell_clip=CLIP, **settings)
    before = layer.cell.peephole_kernel.numpy()
    model = keras.Sequential([keras.Input((None, SIZES.inputs)), layer])
    model.compile(keras.optimizers.SGD(1.0), "mse")
    x = rng.normal(size=(8, SIZES.time, SIZES.inputs))
    model.fit(x, rng.normal(size=(8, SIZES.units)), epochs=1, verbose=0)
    assert np.all(layer.cell.peephole_kernel.numpy() != before)
