"""Bidirectional: one op for both directions, with the results of two."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from bidirectionals import LAYERS, MODES, B, H, I, T, evaluate, inputs, make, ops_of
from pairs import make_mask

from tf_lstm_ops import op_definitions
from tf_lstm_ops.keras import GRU, LSTM, Bidirectional, directions


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("sequences", [True, False])
@pytest.mark.parametrize("mask", ["none", "right", "holes", "all_false"])
def test_one_op_has_the_bits_of_two(kind, sequences, mask):
    options = {"return_sequences": sequences, "return_state": True}
    one, two = make(kind, **options), make(kind, **options)
    assert one.uses_fused_op
    mask = make_mask(mask, B, T, np.random.default_rng(3))
    given = {"mask": None if mask is None else tf.constant(mask), "training": True}
    got = evaluate(one, inputs(), **given)
    with directions.apart():
        wanted = evaluate(two, inputs(), **given)
    for k, (a, b) in enumerate(zip(got, wanted, strict=True)):
        np.testing.assert_array_equal(a, b, str(k))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["lstm", "gru", "reset_before"])
@pytest.mark.parametrize("merge_mode", MODES)
def test_equals_stock(kind, merge_mode):
    stock = {LSTM: keras.layers.LSTM, GRU: keras.layers.GRU}
    layer, own = LAYERS[kind]
    for sequences in True, False:
        ours = make(kind, merge_mode, dtype="float64", return_sequences=sequences)
        inner = stock[layer](H, return_sequences=sequences, dtype="float64", **own)
        theirs = keras.layers.Bidirectional(inner, merge_mode=merge_mode, dtype="float64")
        theirs.build((B, T, I))
        theirs.set_weights(ours.get_weights())
        mask = tf.constant(make_mask("holes", B, T, np.random.default_rng(3)))
        got = evaluate(ours, inputs("float64"), mask=mask)
        wanted = evaluate(theirs, inputs("float64"), mask=mask)
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)  # rounding of float64


@pytest.mark.parametrize("merge_mode", MODES)
def test_a_training_step_is_two_ops(merge_mode):
    assert ops_of(make(merge_mode=merge_mode), training=True) == [
        "TfLstmOps>KerasBidirectionalLSTM",
        "TfLstmOps>KerasBidirectionalLSTMGrad",
    ]


def test_symbolic_shapes():
    x = keras.Input((None, I))
    assert Bidirectional(LSTM(4, return_sequences=True))(x).shape == (None, None, 8)
    assert Bidirectional(LSTM(4), merge_mode="sum")(x).shape == (None, 4)
    graph = ops_of(make("own"), training=True)
    assert graph[0] == "TfLstmOps>KerasBidirectionalLSTM"


@pytest.mark.parametrize("kind", ["lstm", "own", "norm_gru"])
@pytest.mark.parametrize("merge_mode", MODES)
def test_static_shapes_in_a_graph(kind, merge_mode):
    """A layer behind it is built from them."""
    layer = make(kind, merge_mode)
    found = []
    width = layer.forward_layer.cell.output_size

    @tf.function(input_signature=[tf.TensorSpec((None, T, I))])
    def call(x):
        found.extend(y.shape.as_list() for y in tf.nest.flatten(layer(x)))

    call.get_concrete_function()
    one = [None, T, 2 * width if merge_mode == "concat" else width]
    assert found == ([one, one] if merge_mode is None else [one])


def test_unknown_shapes_in_a_graph():
    """Of all inputs of the op."""
    inputs = op_definitions.inputs("KerasBidirectionalLSTM")
    specs = [tf.TensorSpec(None, tf.bool if n == "mask" else tf.float32, n) for n in inputs]
    call = tf.function(op_definitions.function("KerasBidirectionalLSTM"), input_signature=specs)
    assert call.get_concrete_function().structured_outputs[0].shape.as_list() == [None] * 3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_bfloat16", "float64"])
def test_types(dtype):
    one, two = make(dtype=dtype), make(dtype=dtype)
    got = evaluate(one, inputs(one.compute_dtype), training=True)
    with directions.apart():
        wanted = evaluate(two, inputs(one.compute_dtype), training=True)
    for k, (a, b) in enumerate(zip(got, wanted, strict=True)):
        if k == 1 and "16" in dtype:  # dx of the two directions is rounded once, not thrice
            b = b.astype("float64")
            bound = 2.0 ** -(10 if dtype == "float16" else 7)
            np.testing.assert_allclose(a.astype("float64"), b, atol=bound * np.abs(b).max())
        else:
            np.testing.assert_array_equal(a, b, str(k))


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_initial_states(kind):
    count = 2 if kind == "lstm" else 1
    states = [
        tf.constant(np.random.default_rng(k).normal(size=(B, H)), "float32") for k in range(9)
    ]
    options = {"initial_state": states[: 2 * count]}
    one, two = (make(kind, return_state=True) for _ in range(2))
    got = evaluate(one, inputs(), **options)
    with directions.apart():
        wanted = evaluate(two, inputs(), **options)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_stateful():
    one, two = (make(stateful=True) for _ in range(2))
    for _ in range(3):
        got = one(inputs())
        with directions.apart():
            wanted = two(inputs())
        np.testing.assert_array_equal(got, wanted)
    one.reset_state()
    assert not any(np.any(state) for state in one.states)


def test_new_weights_are_seen():
    """Inference keeps the packed weights of both layers."""
    layer, x = make(), inputs()
    first = [layer(x) for _ in range(3)]
    for variable in layer.variables:
        variable.assign(variable * 2)
    with directions.apart():
        wanted = layer(x)
    assert not np.array_equal(first[0], wanted)
    np.testing.assert_array_equal(layer(x), wanted)


@pytest.mark.parametrize("threads", ["few rows", "many rows"])
def test_large_layers_run_one_after_the_other(threads):
    batch = 2 if threads == "few rows" else 40
    layer = Bidirectional(LSTM(300, return_sequences=True))
    x = tf.random.stateless_normal((batch, 3, 20), seed=(1, 2))
    got = layer(x), layer(x)
    with directions.apart():
        wanted = layer(x)
    for result in got:
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("shape", [(0, T, I), (B, 0, I), (B, 1, I)])
def test_empty_and_short(shape):
    layer = make(return_state=True)
    x = tf.zeros(shape)
    with directions.apart():
        wanted = evaluate(layer, x)
    for a, b in zip(evaluate(layer, x), wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    graph = tf.function(layer, input_signature=[tf.TensorSpec((None, None, I))])
    np.testing.assert_array_equal(graph(x)[0], layer(x)[0])


def test_ragged():
    x = tf.RaggedTensor.from_row_lengths(tf.random.stateless_normal((9, I), (1, 2)), [4, 0, 5])
    layer = make(return_sequences=False)
    with directions.apart():
        wanted = layer(x)
    np.testing.assert_array_equal(layer(x), wanted)


def test_second_derivatives():
    def second(layer):
        x = inputs("float64")
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = tf.reduce_sum(layer(x) ** 3)
            first = tape.gradient(loss, [x, *layer.trainable_variables])
            loss = tf.add_n([tf.reduce_sum(g**2) for g in first])
        return outer.gradient(loss, [x, *layer.trainable_variables])

    layer = make(dtype="float64")
    got = second(layer)
    with directions.apart():
        wanted = second(layer)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["lstm", "dropout"])
def test_rows_of_vectorized_map(kind):
    layer = make(kind, return_sequences=False)
    x = tf.random.stateless_normal((4, 2, T, I), (1, 2))

    def gradient(rows):
        with tf.GradientTape() as tape:
            tape.watch(rows)
            loss = tf.reduce_sum(layer(rows) ** 2)
        return tape.gradient(loss, rows)

    got = tf.vectorized_map(gradient, x)
    wanted = tf.stack([gradient(rows) for rows in x])
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_xla_takes_plain_ops():
    layer, x = make(), inputs()
    compiled = tf.function(layer, jit_compile=True)
    np.testing.assert_allclose(compiled(x), layer(x), rtol=1e-5, atol=1e-6)


@pytest.mark.full
def test_fit_learns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, T, I)).astype("float32")
    y = (x[:, 0, :1] + x[:, -1, 1:2]).astype("float32")
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((T, I)), Bidirectional(LSTM(8)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    losses = model.fit(x, y, batch_size=24, epochs=12, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
