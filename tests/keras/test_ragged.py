"""RaggedTensor input: every row as if it was the only one, by the stock layer on that row alone."""

import inspect
import os
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import FAMILIES, GRU, LSTM, Sizes, assert_close, label, make_pair, rounding

LENGTHS = (4, 0, 2, 5)  # not sorted, one row without a step
SIZES = Sizes(batch=len(LENGTHS), time=max(LENGTHS), inputs=3, units=4)
BOUND = rounding(SIZES)
SPEC = tf.RaggedTensorSpec([None, None, SIZES.inputs], tf.float64, ragged_rank=1)


def ragged(values: Any) -> tf.RaggedTensor:
    return tf.RaggedTensor.from_row_lengths(tf.convert_to_tensor(values), LENGTHS)


def random_rows(rng: np.random.Generator) -> tf.RaggedTensor:
    return ragged(rng.normal(size=(sum(LENGTHS), SIZES.inputs)))


def row_by_row(layer: Any, x: tf.RaggedTensor, mask: tf.RaggedTensor | None) -> list[list[Any]]:
    """The results of the calls of a layer on each row with a step."""
    results = []
    for n, row in enumerate(x):
        if len(row):
            row_mask = None if mask is None else mask[n][tf.newaxis]
            results.append(tf.nest.flatten(layer(row[tf.newaxis], mask=row_mask)))
    return results


def weighted(results: list[tf.Tensor]) -> tf.Tensor:
    """A sum with another factor for each unit."""
    return sum(tf.reduce_sum(r * tf.cos(tf.range(SIZES.units, dtype=r.dtype))) for r in results)


OPTIONS = [
    {},
    {"return_sequences": True},
    {"return_sequences": True, "return_state": True},
    {"go_backwards": True, "return_sequences": True},
    {"go_backwards": True, "return_state": True, "zero_output_for_mask": True},
    {"zero_output_for_mask": True},
    {"zero_output_for_mask": True, "return_sequences": True},
    {"activation": "relu", "return_sequences": True},  # Keras' own loop
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("masked", [False, True], ids=["plain", "masked"])
@pytest.mark.parametrize("options", OPTIONS, ids=label)
@pytest.mark.parametrize("family", FAMILIES, ids=label)
def test_rows(family, options, masked, rng):
    """Results and gradients."""
    ours, stock = make_pair(family, SIZES, rng, dtype="float64", **options)
    x = random_rows(rng)
    mask = ragged(rng.random(sum(LENGTHS)) < 0.6) if masked else None
    weights = [w.value for w in ours.trainable_weights]
    with tf.GradientTape() as tape:
        tape.watch(x.values)
        results = ours(x, mask=mask)
        results = list(results) if ours.return_state else [results]
        assert isinstance(results[0], tf.RaggedTensor) == ours.return_sequences
        flat = [r.values if isinstance(r, tf.RaggedTensor) else r for r in results]
        loss = weighted(flat)
    gradients = tape.gradient(loss, [x.values, *weights])
    stock_weights = [w.value for w in stock.trainable_weights]
    with tf.GradientTape() as tape:
        tape.watch(x.values)
        wanted = row_by_row(stock, x, mask)
        loss = weighted(tf.nest.flatten(wanted))
    wanted_gradients = tape.gradient(loss, [x.values, *stock_weights])

    rows_with_steps = [n for n, length in enumerate(LENGTHS) if length]
    for k, result in enumerate(results):
        for n, row in zip(rows_with_steps, wanted, strict=True):
            assert_close(result[n].numpy(), row[k][0].numpy(), BOUND, f"result {k} of row {n}")
        # A row without a step: no outputs, or zeros as the last one and as its states.
        np.testing.assert_array_equal(result[1].numpy(), np.zeros_like(result[1].numpy()))
        if isinstance(result, tf.RaggedTensor):
            assert result.row_lengths().numpy().tolist() == list(LENGTHS)
    for got, want in zip(gradients, wanted_gradients, strict=True):
        assert_close(got.numpy(), want.numpy(), BOUND)


@pytest.mark.parametrize("family", FAMILIES, ids=label)
def test_function(family, rng):
    """Traced once for all row lengths; the result has the row partition of the input."""
    ours, _ = make_pair(family, SIZES, rng, dtype="float64", return_sequences=True)
    traced = tf.function(ours, input_signature=[SPEC])
    x = random_rows(rng)
    np.testing.assert_array_equal(traced(x).values, ours(x).values)
    longer = tf.concat([x, x], axis=1)
    np.testing.assert_array_equal(traced(longer).row_splits, longer.row_splits)
    all_empty = tf.RaggedTensor.from_row_lengths(tf.zeros([0, SIZES.inputs], tf.float64), [0, 0])
    assert traced(all_empty).shape[0] == 2
    assert traced.experimental_get_tracing_count() == 1


@pytest.mark.full
@pytest.mark.parametrize("family", [LSTM, pytest.param(GRU, marks=pytest.mark.full)], ids=label)
def test_xla(family, rng):
    """Results and gradients, as without XLA."""
    ours, _ = make_pair(family, SIZES, rng, dtype="float64", return_sequences=True)

    def derivatives(x: tf.RaggedTensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            result = ours(x).values
            loss = weighted([result])
        return [result, *tape.gradient(loss, [w.value for w in ours.trainable_weights])]

    x = random_rows(rng)
    compiled = tf.function(derivatives, jit_compile=True)
    for got, want in zip(compiled(x), derivatives(x), strict=True):
        assert_close(got.numpy(), want.numpy(), BOUND)


@pytest.mark.full
def test_xla_compiles_once_for_each_list_of_row_lengths(tmp_path):
    """XLA writes a file for each program that it compiles."""
    program = """
import tensorflow as tf, tf_lstm_ops
layer = tf_lstm_ops.keras.LSTM(4)
layer.build((None, None, 3))
compiled = tf.function(layer, jit_compile=True)
for lengths in [1, 2], [1, 2], [2, 1], [1, 2]:
    compiled(tf.RaggedTensor.from_row_lengths(tf.zeros([3, 3]), lengths))
"""
    environment = {**os.environ, "XLA_FLAGS": f"--xla_dump_to={tmp_path}"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    programs = [*tmp_path.glob("*before_optimizations.txt")]
    assert len([file for file in programs if "inference" in file.name]) == 2


@pytest.mark.parametrize("options", [{}, {"ragged": True}], ids=label)
def test_input_passes_ragged_batches_on(options, rng):
    if not options.keys() <= inspect.signature(keras.Input).parameters.keys():
        pytest.skip("an older Keras")
    x = tf.cast(random_rows(rng), tf.float32)
    inputs = keras.Input((None, SIZES.inputs), **options)
    layer = LSTM.ours(SIZES.units)
    model = keras.Model(inputs, layer(inputs))
    wanted = layer(x.to_tensor(), mask=tf.sequence_mask(LENGTHS)).numpy()
    for got in model(x).numpy(), model.predict(x, verbose=0):
        assert_close(got, wanted, rounding(SIZES, "float32"))


def test_dense_mask_is_padded_on_the_right(rng):
    """As Embedding's mask of ids that were padded."""
    ours, _ = make_pair(LSTM, SIZES, rng, dtype="float64", return_sequences=True)
    x, mask = random_rows(rng), ragged(rng.random(sum(LENGTHS)) < 0.6)
    expected = ours(x, mask=mask)
    np.testing.assert_array_equal(ours(x, mask=mask.to_tensor()).values, expected.values)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("merge_mode", ["concat", "sum"])
@pytest.mark.parametrize("family", FAMILIES, ids=label)
def test_bidirectional(family, merge_mode, rng):
    options = {"dtype": "float64", "return_sequences": True}
    both = [
        keras.layers.Bidirectional(cls(SIZES.units, **options), merge_mode=merge_mode)
        for cls in family.both
    ]
    x = random_rows(rng)
    for layer in both:
        layer.build((None, None, SIZES.inputs))
    both[0].set_weights(both[1].get_weights())
    got = both[0](x)
    wanted = row_by_row(both[1], x, None)
    rows = [row for row in got if len(row)]
    for row, (want,) in zip(rows, wanted, strict=True):
        assert_close(row.numpy(), want[0].numpy(), BOUND)


def test_dropout_drops_what_it_drops_in_padded_rows(rng):
    """One multiplier for each row and feature, at all steps of the row."""
    ours, _ = make_pair(LSTM, SIZES, rng, dtype="float64", dropout=0.5, seed=3)
    other, _ = make_pair(LSTM, SIZES, rng, dtype="float64", dropout=0.5, seed=3)
    other.set_weights(ours.get_weights())
    x = random_rows(rng)
    mask = tf.sequence_mask(LENGTHS)
    padded = other(x.to_tensor(), mask=mask, training=True)
    np.testing.assert_array_equal(ours(x, training=True), padded)


def fitted(first: list[Any], *data: Any, **options: Any) -> list[np.ndarray]:
    """The weights after an epoch."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([*first, LSTM.ours(SIZES.units)])
    model.compile("sgd", "mse")
    model.fit(*data, verbose=0, shuffle=False, **options)
    return model.get_weights()


@pytest.mark.full
def test_fit(rng):
    """From arrays and from a data set, as of padded rows behind Masking."""
    x = tf.cast(random_rows(rng), tf.float32)
    y = rng.normal(size=(len(LENGTHS), SIZES.units)).astype("float32")
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(2)
    dense = tf.data.Dataset.from_tensor_slices((x.to_tensor(), y)).batch(2)
    wanted = fitted([keras.layers.Masking()], dense)
    for weights in fitted([], batches), fitted([], x, y, batch_size=2):
        for got, want in zip(weights, wanted, strict=True):
            assert_close(got, want, rounding(SIZES, "float32"))


@pytest.mark.skipif(
    "ragged" not in inspect.signature(keras.Input).parameters, reason="an older Keras"
)
def test_functional_model(rng):
    """Embedding with its mask; symbolic outputs say that they are ragged."""
    inputs = keras.Input((None,), dtype="int32", ragged=True)
    hidden = keras.layers.Embedding(10, SIZES.inputs, mask_zero=True)(inputs)
    hidden = LSTM.ours(SIZES.units, return_sequences=True)(hidden)
    assert hidden.ragged
    assert hidden.shape == (None, None, SIZES.units)
    output, state, _ = LSTM.ours(SIZES.units, return_state=True)(hidden)
    assert not output.ragged
    model = keras.Model(inputs, [output, state])
    model.compile("sgd", ["mse", "mse"])
    ids = ragged(rng.integers(1, 10, size=sum(LENGTHS)).astype("int32"))
    predicted = model.predict(ids, verbose=0)[0]
    for n, row in enumerate(ids):
        if len(row):
            alone = tf.RaggedTensor.from_row_lengths(row, [len(row)])
            assert_close(predicted[n], model(alone)[0][0].numpy(), rounding(SIZES, "float32"))
    targets = [rng.normal(size=(len(LENGTHS), SIZES.units)) for _ in range(2)]
    before = model.get_weights()
    model.fit(ids, targets, verbose=0)
    assert all(np.any(a != b) for a, b in zip(before, model.get_weights(), strict=True))


@pytest.mark.parametrize(
    "x",
    [
        tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]),  # also features are ragged
        tf.ragged.constant([[1.0, 2.0], [3.0]]),  # no features
    ],
    ids=["features", "rank"],
)
def test_other_shapes(x):
    with pytest.raises(ValueError, match=r"RaggedTensor must have the shape .* Received: ragged_r"):
        LSTM.ours(2)(x)
