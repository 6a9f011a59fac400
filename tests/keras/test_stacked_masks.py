"""Masks, ragged and empty input of StackedLSTM and StackedGRU."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import make_mask

from tf_lstm_ops import composite
from tf_lstm_ops.keras import StackedLSTM

from .stacks import ROUNDING, B, H, I, T, make, weighted


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("traced", [False, True])
def test_last_output_of_no_steps(bidirectional, traced, rng):
    """zero_output_for_mask with return_sequences=False reads the mask of the last step."""
    options = {"zero_output_for_mask": True, "return_sequences": False}
    layer = make("lstm", rng, bidirectional=bidirectional, **options)
    shapes = (tf.TensorSpec([None, None, I]), tf.TensorSpec([None, None], tf.bool))
    call = (
        tf.function(lambda x, mask: layer(x, mask=mask), shapes)
        if traced
        else (lambda x, mask: layer(x, mask=mask))
    )
    output, *states = call(tf.zeros([B, 0, I]), tf.zeros([B, 0], tf.bool))
    assert output.shape == (B, (1 + bidirectional) * H)
    assert not np.any(output)
    assert not any(np.any(state) for state in states)


def test_masked_steps_are_not_read(rng):
    layer = make("lstm", rng, bidirectional=True)
    mask = make_mask("holes", B, T, rng)
    x = rng.normal(size=(B, T, I))
    found = [layer(np.where(mask[..., None], x, fill), mask=mask) for fill in (0.0, np.nan)]
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("zero_output", [False, True])
@pytest.mark.parametrize("kind", ["right", "holes"])
def test_padding_on_the_right_moves_no_steps(kind, zero_output, rng, monkeypatch):
    """Plain ops move the steps of every mask."""
    layer = make("lstm", rng, bidirectional=True, zero_output_for_mask=zero_output)
    x, mask = tf.constant(rng.normal(size=(B, T, I))), tf.constant(make_mask(kind, B, T, rng))

    def run(x: Any, mask: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            results = layer(x, mask=mask)
            loss = weighted(results, np.random.default_rng(1))
        weights = [w.value for w in layer.trainable_weights]
        return [*results, *tape.gradient(loss, [x, *weights])]

    with composite.plain_ops():
        want = run(x, mask)
    found = [tf.function(run)(x, mask)]
    if kind == "right":
        monkeypatch.setattr(tf, "argsort", None)  # a graph has it for other masks
        found.append(run(x, mask))
    for got in found:
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, **ROUNDING)


def test_mask_goes_to_the_next_layer(rng):
    x = keras.Input((T, I))
    sequence = StackedLSTM(H, 2, return_sequences=True)(keras.layers.Masking()(x))
    assert sequence._keras_mask is not None
    last = StackedLSTM(H, 2)(keras.layers.Masking()(x))
    assert getattr(last, "_keras_mask", None) is None


def test_ragged(rng):
    layer = make("gru", rng, bidirectional=True)
    rows = [rng.normal(size=(n, I)) for n in (3, 1, 5)]
    output, *states = layer(tf.RaggedTensor.from_row_lengths(np.concatenate(rows), [3, 1, 5]))
    for k, row in enumerate(rows):
        want, *finals = layer(row[None])
        np.testing.assert_allclose(output[k], want[0], **ROUNDING)
        for a, b in zip(states, finals, strict=True):
            np.testing.assert_allclose(a[k], b[0], **ROUNDING)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_ragged_rows_with_zero_output(bidirectional, rng):
    """The output of the last step of each row, not of the longest one."""
    options = {"return_sequences": False, "return_state": False, "zero_output_for_mask": True}
    layer = make("lstm", rng, bidirectional=bidirectional, **options)
    sizes = [3, 1, 5]
    rows = [rng.normal(size=(n, I)) for n in sizes]
    masks = [rng.random(n) < 0.6 for n in sizes]
    ragged = tf.RaggedTensor.from_row_lengths(np.concatenate(rows), sizes)
    mask = tf.RaggedTensor.from_row_lengths(np.concatenate(masks), sizes)
    for given in None, mask:
        got = layer(ragged, mask=given)
        for k, (row, valid) in enumerate(zip(rows, masks, strict=True)):
            want = layer(row[None], mask=None if given is None else valid[None])
            np.testing.assert_allclose(got[k], want[0], **ROUNDING)
