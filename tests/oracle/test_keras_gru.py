"""The GRU oracle is right: its gradients are the complex step, its results those of stock Keras."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from oracle.derivatives import complex_step
from oracle.keras_gru import GATES, Arguments, Results, keras_gru, keras_gru_backward
from oracle.keras_lstm import Options

BATCH, TIME, FEATURES, UNITS = 3, 5, 2, 4
MASKS = {
    "none": None,
    "right": [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]],
    "left": [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]],
    "holes": [[1, 0, 1, 0, 1], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]],
}
BOOLEANS = [False, True]


def random_arguments(rng, reset_after=True):
    shapes = [(BATCH, TIME, FEATURES), (BATCH, UNITS), (FEATURES, GATES * UNITS)]
    shapes += [(UNITS, GATES * UNITS), (2, GATES * UNITS) if reset_after else (GATES * UNITS,)]
    return Arguments(*(rng.normal(size=shape) for shape in shapes))


def random_dropout(rng):
    """One mask per gate, of factors 0 or 2, as dropout of rate one half draws them."""
    return {
        "input_dropout": 2.0 * rng.integers(2, size=(GATES, BATCH, FEATURES)),
        "recurrent_dropout": 2.0 * rng.integers(2, size=(GATES, BATCH, UNITS)),
    }


def masked(kind):
    return None if MASKS[kind] is None else np.array(MASKS[kind], bool)


def weighted_sum(weights, values):
    return sum(np.sum(w * v) for w, v in zip(weights, values, strict=True))


def assert_all_close(got, want, tolerance):
    for name, a, b in zip(want._fields, got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.sampled
@pytest.mark.parametrize("reset_after", BOOLEANS)
@pytest.mark.parametrize("dropout", BOOLEANS)
@pytest.mark.parametrize("zero_output_for_mask", BOOLEANS)
@pytest.mark.parametrize("go_backwards", BOOLEANS)
@pytest.mark.parametrize("mask", MASKS)
def test_gradients_are_the_complex_step(
    rng, mask, go_backwards, zero_output_for_mask, dropout, reset_after
):
    arguments = random_arguments(rng, reset_after)
    options = Options(
        masked(mask),
        go_backwards,
        zero_output_for_mask,
        **(random_dropout(rng) if dropout else {}),
    )
    upstream = Results(*(rng.normal(size=a.shape) for a in keras_gru(arguments)))
    got = keras_gru_backward(arguments, upstream, options)
    want = complex_step(
        lambda a: weighted_sum(upstream, keras_gru(Arguments(*a), options)), arguments
    )
    assert_all_close(got, Arguments(*want), 1e-12)  # rounding only


def run_layer(arguments, mask=None, masks=None, **options):
    """Stock Keras in float64, with dropout's masks if they are given."""
    layer = keras.layers.GRU(
        UNITS,
        return_sequences=True,
        return_state=True,
        dtype="float64",
        reset_after=arguments.reset_after,
        **options,
    )
    layer.build(arguments.x.shape)
    layer.set_weights([arguments.kernel, arguments.recurrent_kernel, arguments.bias])
    if masks:
        layer.cell._dropout_mask = list(tf.constant(masks["input_dropout"]))
        layer.cell._recurrent_dropout_mask = list(tf.constant(masks["recurrent_dropout"]))
    training = masks is not None
    return Results(*layer(arguments.x, arguments.h0, mask=mask, training=training))


@pytest.mark.parametrize("reset_after", BOOLEANS)
@pytest.mark.parametrize("mask", MASKS)
def test_results_are_keras(rng, mask, reset_after):
    arguments, mask = random_arguments(rng, reset_after), masked(mask)
    for go_backwards, zero_output_for_mask in itertools.product(BOOLEANS, BOOLEANS):
        want = run_layer(
            arguments, mask, go_backwards=go_backwards, zero_output_for_mask=zero_output_for_mask
        )
        got = keras_gru(arguments, Options(mask, go_backwards, zero_output_for_mask))
        assert_all_close(got, want, 1e-13)  # rounding in float64


@pytest.mark.parametrize("reset_after", BOOLEANS)
def test_dropout_is_keras(rng, reset_after):
    """With both rates set, Keras multiplies by one mask per gate for inputs and for states."""
    arguments, masks = random_arguments(rng, reset_after), random_dropout(rng)
    got = keras_gru(arguments, Options(**masks))
    want = run_layer(arguments, masks=masks, dropout=0.5, recurrent_dropout=0.5)
    assert_all_close(got, want, 1e-13)
    assert np.abs(got.h - keras_gru(arguments).h).max() > 0.01
