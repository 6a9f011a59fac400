"""StackedLSTM and StackedGRU against stacks of stock layers, and of ours with a projection."""

import re
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import make_mask

import tf_lstm_ops
from oracle.derivatives import central_difference
from tf_lstm_ops.keras import StackedGRU, StackedLSTM
from tf_lstm_ops.weights import GRUWeights, LSTMWeights

from .stacks import KINDS, ROUNDING, B, H, I, T, make, weighted


def stock_stack(kind: str, layer: Any, **options: Any) -> list[Any]:
    """A stock layer for each of ours, with its weights."""
    stack = []
    for k, arrays in enumerate(layer._arrays_by_layer()):
        last = k == layer.num_layers - 1
        sequences = layer.return_sequences or not last
        own = {"return_sequences": sequences, "return_state": True, "dtype": "float64"}
        backwards = layer.go_backwards and k == 0
        stock = KINDS[kind][1](H, go_backwards=backwards, **own, **(options if last else {}))
        if layer.bidirectional:
            stock = keras.layers.Bidirectional(stock, dtype="float64")
        stock.build((B, T, arrays[0].shape[0]))
        stock.set_weights(arrays)
        stack.append(stock)
    return stack


def run_stack(stack: list[Any], x: Any, states: list[Any], mask: Any) -> list[Any]:
    count, found = len(states) // len(stack), []
    for k, layer in enumerate(stack):
        initial = states[k * count : (k + 1) * count]
        x, *final = layer(x, initial_state=initial, mask=mask)
        found += final
        if mask is not None and k == 0 and getattr(layer, "go_backwards", False):
            mask = mask[:, ::-1]
    return [x, *found]


def variables_of(stack: list[Any]) -> list[Any]:
    return [w.value for layer in stack for w in layer.trainable_weights]


@pytest.mark.sampled(40)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["forward", "backward", "both"])
@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("zero_output", [None, False, True])
@pytest.mark.parametrize("mask", ["none", "right", "holes", "one_row_false"])
def test_is_a_stack_of_stock_layers(
    kind, form, num_layers, return_sequences, zero_output, mask, rng
):
    """All results, and the gradients of input, states and weights."""
    layer = make(
        kind,
        rng,
        num_layers,
        bidirectional=form == "both",
        go_backwards=form == "backward",
        return_sequences=return_sequences,
        zero_output_for_mask=zero_output,
    )
    options = {} if zero_output is None else {"zero_output_for_mask": zero_output}
    stack = stock_stack(kind, layer, **options)
    if form == "both" and zero_output is not None:
        stack[-1].forward_layer.zero_output_for_mask = zero_output
        stack[-1].backward_layer.zero_output_for_mask = zero_output
    valid = make_mask(mask, B, T, rng)
    valid = None if valid is None else tf.constant(valid)
    x = tf.constant(rng.normal(size=(B, T, I)))
    states = [tf.constant(rng.normal(size=(B, n))) for n in layer.state_size]
    seed = rng.integers(1 << 30)

    def evaluate(call: Any, weights: list[Any]) -> tuple[list[Any], list[Any]]:
        sources = [x, *states, *weights]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            results = call()
            loss = weighted(results, np.random.default_rng(seed))
        return results, tape.gradient(loss, sources)

    got = evaluate(
        lambda: layer(x, initial_state=states, mask=valid),
        [w.value for w in layer.trainable_weights],
    )
    want = evaluate(lambda: run_stack(stack, x, states, valid), variables_of(stack))
    for ours, stock in zip(got, want, strict=True):
        for a, b in zip(ours, stock, strict=True):
            np.testing.assert_allclose(a, b, **ROUNDING)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_projection(bidirectional, rng):
    layer = make("lstm", rng, bidirectional=bidirectional, projection_size=2)
    x = rng.normal(size=(B, T, I))
    got, *states = layer(x)
    want, found = x, []
    for arrays in layer._arrays_by_layer():
        options = {"return_sequences": True, "return_state": True, "dtype": "float64"}
        one = tf_lstm_ops.keras.LSTM(H, projection_size=2, **options)
        one = keras.layers.Bidirectional(one, dtype="float64") if bidirectional else one
        one.build((B, T, arrays[0].shape[0]))
        one.set_weights(arrays)
        want, *final = one(want)
        found += final
    np.testing.assert_allclose(got, want, **ROUNDING)
    for a, b in zip(states, found, strict=True):
        np.testing.assert_allclose(a, b, **ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
def test_one_op_for_all_layers(kind, rng):
    layer = make(kind, rng, 3, bidirectional=True)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x)[0])
        return tape.gradient(loss, [w.value for w in layer.trainable_weights])

    graph = step.get_concrete_function(tf.TensorSpec([None, None, I], tf.float64)).graph
    ops = [op.type for op in graph.get_operations() if op.type.startswith("TfLstmOps>")]
    assert ops == ["TfLstmOps>CudnnRNNV3", "TfLstmOps>CudnnRNNBackpropV3"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"use_bias": False}, {"bidirectional": True}])
def test_weights_there_and_back(kind, options, rng):
    """Through the canonical weights, which convert to PyTorch, cuDNN and stacks of Keras layers."""
    layer_class, _, weights_class = KINDS[kind]
    layer = make(kind, rng, **options)
    weights = weights_class.from_keras(layer)
    arguments = {k: v for k, v in options.items() if k == "use_bias"}
    made = layer_class.from_weights(weights, dtype="float64", **arguments)
    for a, b in zip(made.get_weights(), layer.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    bias = options.get("use_bias", True)
    through = weights_class.from_torch(weights.to_torch(bias=bias))
    for a, b in zip(through.cells, weights.cells, strict=True):
        np.testing.assert_array_equal(a.recurrent_kernel, b.recurrent_kernel)


def test_from_weights_with_projection(rng):
    layer = make("lstm", rng, projection_size=2)
    made = StackedLSTM.from_weights(LSTMWeights.from_keras(layer), dtype="float64")
    assert made.projection_size == 2
    for a, b in zip(made.get_weights(), layer.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("use_bias", [False, True])
def test_from_weights_refuses_a_gru_of_the_other_kind(use_bias):
    gru = keras.layers.GRU(H, reset_after=False, use_bias=use_bias)
    gru.build((B, T, I))
    weights = GRUWeights.from_keras(gru)
    with pytest.raises(ValueError, match="StackedGRU has the equation of reset_after=True"):
        StackedGRU.from_weights(weights, use_bias=use_bias)


def test_from_weights_refuses(rng):
    gru = GRUWeights.from_keras(make("gru", rng))
    with pytest.raises(TypeError, match=r"weights must be LSTMWeights\. Received: GRUWeights"):
        StackedLSTM.from_weights(gru)
    peephole = tf_lstm_ops.keras.LSTM(H, use_peephole=True)
    peephole.build((None, None, I))
    with pytest.raises(ValueError, match="StackedLSTM has no peepholes"):
        StackedLSTM.from_weights(LSTMWeights.from_keras(peephole))
    with pytest.raises(ValueError, match="has no weights yet"):
        LSTMWeights.from_keras(StackedLSTM(H, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives(kind, rng):
    layer = make(kind, rng, return_state=False)
    mask = tf.constant(make_mask("holes", B, T, rng))
    x = rng.normal(size=(B, T, I))

    def penalty(value: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(value)
            loss = tf.reduce_sum(tf.sin(layer(value, mask=mask)))
        return tf.nn.l2_loss(tape.gradient(loss, value))

    variable = tf.constant(x)
    with tf.GradientTape() as outer:
        outer.watch(variable)
        value = penalty(variable)
    direction = rng.normal(size=x.shape)
    numeric = central_difference(lambda a: penalty(tf.constant(a[0])).numpy(), [x], [direction])
    analytic = np.sum(outer.gradient(value, variable).numpy() * direction)
    assert abs(numeric - analytic) <= 1e-7 * max(1.0, abs(analytic))  # as in test_gradients.py


def test_stateful(rng):
    layer = make("lstm", rng, stateful=True)
    whole = make("lstm", rng)
    whole.set_weights(layer.get_weights())
    x = rng.normal(size=(B, T, I))
    parts = [layer(x[:, :2])[0], layer(x[:, 2:])[0]]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole(x)[0])
    layer.reset_state()
    np.testing.assert_array_equal(layer(x[:, :2])[0], parts[0])
    with pytest.raises(ValueError, match="the batch size must be static"):
        StackedLSTM(H, 2, stateful=True).build((None, T, I))


OPTIONS = {
    "num_layers": 3,
    "bidirectional": True,
    "dropout": 0.25,
    "dropout_per": "sequence",
    "use_bias": False,
    "return_sequences": True,
    "zero_output_for_mask": False,
    "seed": 5,
    "kernel_initializer": "he_normal",
    "recurrent_regularizer": "l2",
    "kernel_constraint": "max_norm",
    "name": "stack",
}


@pytest.mark.parametrize("kind", KINDS)
def test_configuration(kind):
    own = {"projection_size": 2, "unit_forget_bias": False} if kind == "lstm" else {}
    layer = KINDS[kind][0](H, **OPTIONS, **own)
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    layer.build((None, None, I))
    assert [w.name for w in layer.weights][:2] == ["kernel_l0", "recurrent_kernel_l0"]
    assert len(layer.losses) == 6 * (2 if own else 1)  # of recurrent kernels and projections


def test_convert_model_leaves_a_stack_as_it_is():
    masked = keras.layers.Masking()
    stack = StackedLSTM(H, 2, bidirectional=True, name="stack")
    model = keras.Sequential([keras.Input((None, I), name="x"), masked, stack])
    assert tf_lstm_ops.keras.fallback_reasons(model) == {"stack": None}
    assert tf_lstm_ops.keras.fallback_reasons(stack) == {"stack": None}
    converted = tf_lstm_ops.keras.convert_model(model)
    assert type(converted.layers[-1]) is StackedLSTM


@pytest.mark.parametrize("kind", ["lstm", pytest.param("gru", marks=pytest.mark.full)])
def test_xla(kind, rng):
    layer = make(kind, rng, bidirectional=True)
    x, mask = tf.constant(rng.normal(size=(B, T, I))), tf.constant(make_mask("holes", B, T, rng))
    compiled = tf.function(lambda x: layer(x, mask=mask), jit_compile=True)
    for a, b in zip(compiled(x), layer(x, mask=mask), strict=True):
        np.testing.assert_allclose(a, b, **ROUNDING)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision(policy, rng):
    layer = StackedLSTM(H, 2, return_sequences=True, dtype=policy)
    x = rng.normal(size=(B, T, I)).astype("float32")
    got = layer(x)
    assert got.dtype == policy.removeprefix("mixed_")
    full = StackedLSTM(H, 2, return_sequences=True)
    full.build((None, None, I))
    full.set_weights(layer.get_weights())
    epsilon = {"mixed_float16": 2.0**-10, "mixed_bfloat16": 2.0**-7}[policy]
    # Weights, input, and the outputs of each layer are rounded; outputs are below 1.
    np.testing.assert_allclose(tf.cast(got, tf.float32), full(x), rtol=0, atol=4 * epsilon)


@pytest.mark.parametrize("shape", [(0, T, I), (B, 0, I)])
def test_nothing_to_compute(shape, rng):
    layer = make("lstm", rng)
    output, *states = tf.function(lambda x: layer(x))(tf.zeros(shape, tf.float64))
    assert output.shape == (*shape[:2], H)
    assert all(state.shape == (shape[0], H) and not np.any(state) for state in states)


ERRORS = {
    "units": ({"units": 0}, "units must be a positive integer. Received: units=0"),
    "num_layers": ({"num_layers": 1.5}, "num_layers must be a positive integer"),
    "dropout": ({"dropout": 1.0}, "dropout must be in [0, 1). Received: dropout=1.0"),
    "dropout_per": ({"dropout_per": "row"}, "dropout_per must be 'step' or 'sequence'"),
    "backwards": (
        {"go_backwards": True, "bidirectional": True},
        "go_backwards=True needs bidirectional=False",
    ),
    "projection_size": ({"projection_size": H}, "projection_size must"),
    "unknown": ({"peephole": True}, "peephole"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    options, message = ERRORS[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        StackedLSTM(**{"units": H, "num_layers": 2, **options})


@pytest.mark.parametrize("name", ["projection_size", "cell_clip", "proj_clip", "unit_forget_bias"])
def test_a_gru_has_no_argument_of_an_lstm(name):
    with pytest.raises(TypeError, match=f"StackedGRU has no argument {name}"):
        StackedGRU(H, 2, **{name: 1})


def test_sizes_may_be_integers_of_numpy(rng):
    layer = StackedLSTM(np.int64(H), np.int32(2), projection_size=np.int64(1))
    config = layer.get_config()
    found = [config[name] for name in ("units", "num_layers", "projection_size")]
    assert found == [H, 2, 1]
    assert {type(size) for size in found} == {int}
    assert type(tf_lstm_ops.keras.LSTM(H, projection_size=np.int64(1)).projection_size) is int


def test_wrong_number_of_states(rng):
    layer = make("lstm", rng)
    with pytest.raises(ValueError, match=r"initial_state must have 4 tensors, .* Received 2"):
        layer(np.zeros((B, T, I)), initial_state=[np.zeros((B, H))] * 2)


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_of_a_function_that_was_traced_without_a_tape(kind, rng):
    layer = make(kind, rng, return_state=False)
    x = tf.constant(rng.normal(size=(B, T, I)))
    traced = tf.function(lambda x: layer(x))
    traced(x)

    def gradient(call: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(call(x) ** 2)
        return tape.gradient(loss, x)

    np.testing.assert_allclose(gradient(traced), gradient(layer), **ROUNDING)
