"""StackedLSTM and StackedGRU against stacks of stock layers, and of ours with a projection."""

import itertools
import re
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import divided, make_mask

import tf_lstm_ops
from oracle.derivatives import central_difference
from tf_lstm_ops import composite
from tf_lstm_ops.keras import StackedGRU, StackedLSTM
from tf_lstm_ops.weights import GRUWeights, LSTMWeights

B, T, I, H = 3, 6, 4, 5  # noqa: E741
KINDS = {
    "lstm": (StackedLSTM, keras.layers.LSTM, LSTMWeights),
    "gru": (StackedGRU, keras.layers.GRU, GRUWeights),
}
# Some dozen sums of ten products of about one in float64, through three layers.
ROUNDING = {"rtol": 1e-11, "atol": 1e-11}


def make(kind: str, rng: np.random.Generator, num_layers: int = 2, **options: Any) -> Any:
    """Our layer, with random weights, biases included."""
    options = {"return_sequences": True, "return_state": True, "dtype": "float64", **options}
    layer = KINDS[kind][0](H, num_layers, **options)
    layer.build((B, T, I))
    layer.set_weights([0.5 * rng.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def stock_stack(kind: str, layer: Any, **options: Any) -> list[Any]:
    """A stock layer for each of ours, with its weights."""
    stack = []
    for k, arrays in enumerate(layer.arrays_by_layer()):
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


def weighted(results: list[Any], rng: np.random.Generator) -> Any:
    terms = (tf.reduce_sum(r * rng.normal(size=r.shape) + tf.sin(r)) for r in results)
    return tf.add_n([tf.cast(term, tf.float64) for term in terms])


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
    for arrays in layer.arrays_by_layer():
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
    for a, b in zip(through.layers, weights.layers, strict=True):
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


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dropout_per", ["step", "sequence"])
def test_dropout_of_zero_and_of_inference(dropout_per, training, rng):
    layer = make("gru", rng, dropout=0.0 if training else 0.5, dropout_per=dropout_per)
    plain = make("gru", rng)
    plain.set_weights(layer.get_weights()[: len(plain.get_weights())])
    x = rng.normal(size=(B, T, I))
    for a, b in zip(layer(x, training=training), plain(x), strict=True):
        np.testing.assert_array_equal(a, b)


def kept_parts(dropout_per: str, rng: np.random.Generator) -> np.ndarray:
    """Which outputs of the first layer are kept. The gates of both layers copy their input."""
    layer = StackedLSTM(64, 2, dropout=0.25, dropout_per=dropout_per, return_sequences=True, seed=3)
    layer.build((None, None, 1))
    first, second = layer.arrays_by_layer()
    bias = np.repeat([20.0, -20.0, 0.0, 20.0], 64).astype("float32")  # i = o = 1, f = 0
    gate = np.zeros((1, 256), "float32")
    gate[:, 128:192] = 1  # the first layer's outputs are tanh(tanh(x))
    copy = np.zeros((64, 256), "float32")
    copy[:, 128:192] = np.eye(64)
    zero = np.zeros((64, 256), "float32")
    layer.set_weights([gate, zero, bias, copy, zero, bias])
    assert len(first) == len(second) == 3
    x = np.full((20, 30, 1), 2.0, "float32")
    return np.abs(layer(x, training=True).numpy()) > 1e-3  # what the cell keeps is 1e-9


def test_dropout_per_step(rng):
    kept = kept_parts("step", rng)
    assert abs(kept.mean() - 0.75) < 0.01  # 38,400 draws: a standard deviation of 0.002
    assert 0.2 < (kept[:, 0] != kept[:, 1]).mean() < 0.5


def test_dropout_per_sequence(rng):
    kept = kept_parts("sequence", rng)
    assert abs(kept.mean() - 0.75) < 0.05  # 1,280 draws: a standard deviation of 0.012
    assert np.array_equal(kept, np.repeat(kept[:, :1], 30, axis=1))


@pytest.mark.parametrize("dropout_per", ["step", "sequence"])
def test_dropout_changes_from_call_to_call(dropout_per, rng):
    layer = make("lstm", rng, dropout=0.5, dropout_per=dropout_per, return_state=False)
    x = rng.normal(size=(B, T, I))
    first, second = layer(x, training=True), layer(x, training=True)
    assert np.abs(first - second).max() > 1e-3


@pytest.mark.parametrize("dropout_per", ["step", "sequence"])
def test_dropout_draws_from_the_seed_generator(dropout_per, rng):
    """Each trace and each eager call has masks of its own; equal states give equal masks."""
    layer = make("gru", rng, dropout=0.5, dropout_per=dropout_per, return_state=False)
    x = rng.normal(size=(B, T, I))
    begin = layer.seed_generator.state.numpy()
    ways = [lambda x: layer(x, training=True)] * 2
    ways += [tf.function(lambda x: layer(x, training=True)) for _ in range(2)]
    found = [way(x).numpy() for way in ways]
    for a, b in itertools.combinations(found, 2):
        assert np.abs(a - b).max() > 1e-3
    layer.seed_generator.state.assign(begin)
    for way, before in zip(ways, found, strict=True):
        np.testing.assert_array_equal(way(x), before)


@pytest.mark.parametrize("road", ["convert_model", "weights file", "checkpoint"])
def test_a_copy_goes_on_with_the_same_masks(road, rng, tmp_path):
    def new_model():
        stack = StackedGRU(H, 3, dropout=0.5, seed=4)
        return keras.Sequential(
            [keras.Input((T, I)), keras.layers.GRU(I, return_sequences=True), stack]
        )

    model = new_model()
    x = rng.normal(size=(B, T, I)).astype("float32")
    model(x, training=True)
    if road == "convert_model":
        copy = tf_lstm_ops.keras.convert_model(model)
    else:
        copy = new_model()
        path = str(tmp_path / "model.weights.h5")
        if road == "weights file":
            model.save_weights(path)
            copy.load_weights(path)
        else:
            saved = tf.train.Checkpoint(model=model).save(str(tmp_path / "checkpoint"))
            tf.train.Checkpoint(model=copy).restore(saved).assert_consumed()
    for _ in range(2):
        # The first layer of the converted model computes its sums in another order.
        np.testing.assert_allclose(copy(x, training=True), model(x, training=True), atol=1e-6)


def test_a_stack_that_is_made_in_build_can_fit(rng):
    class Model(keras.Model):
        def build(self, shape):
            self.stack = StackedLSTM(H, 2, dropout=0.2)
            self.stack.build(shape)

        def call(self, x, training=False):
            return self.stack(x, training=training)

    model = Model()
    model.compile("sgd", "mse")
    x = rng.normal(size=(B, T, I)).astype("float32")
    model.fit(x, np.zeros((B, H)), verbose=0)


def test_dropout_of_one_layer_is_a_warning():
    with pytest.warns(UserWarning, match=r"num_layers=1 has none. Received: dropout=0.5"):
        StackedLSTM(H, 1, dropout=0.5)


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


def test_ragged(rng):
    layer = make("gru", rng, bidirectional=True)
    rows = [rng.normal(size=(n, I)) for n in (3, 1, 5)]
    output, *states = layer(tf.RaggedTensor.from_row_lengths(np.concatenate(rows), [3, 1, 5]))
    for k, row in enumerate(rows):
        want, *finals = layer(row[None])
        np.testing.assert_allclose(output[k], want[0], **ROUNDING)
        for a, b in zip(states, finals, strict=True):
            np.testing.assert_allclose(a[k], b[0], **ROUNDING)


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


@pytest.mark.parametrize("name", ["projection_size", "unit_forget_bias"])
def test_a_gru_has_no_argument_of_an_lstm(name):
    with pytest.raises(TypeError, match=f"StackedGRU has no argument {name}"):
        StackedGRU(H, 2, **{name: 1})


def test_sizes_may_be_integers_of_numpy(rng):
    layer = StackedLSTM(np.int64(H), np.int32(2))
    config = layer.get_config()
    assert (config["units"], config["num_layers"]) == (H, 2)
    assert type(config["units"]) is type(config["num_layers"]) is int


def test_wrong_number_of_states(rng):
    layer = make("lstm", rng)
    with pytest.raises(ValueError, match=r"initial_state must have 4 tensors, .* Received 2"):
        layer(np.zeros((B, T, I)), initial_state=[np.zeros((B, H))] * 2)


# --- Conversion to stock layers ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "form", "functional"),
    divided(
        itertools.product(KINDS, ["forward", "backward", "both"], [False, True]),
        [("gru", "forward", False)],
        each=3,
    ),
)
def test_becomes_stock_layers(kind, form, functional, rng, tmp_path):
    """With the mask, which goes to the next layer, in a model and in its file.

    Without a mask where stock layers do not pass it on (test_convert_masks.py).
    """
    masked = keras.layers.LSTM(1).supports_masking
    layer = KINDS[kind][0](
        H,
        1 if form == "backward" else 3,
        bidirectional=form == "both",
        go_backwards=form == "backward",
        dropout=0.25,
        dropout_per="sequence",
        return_sequences=True,
        name="stack",
    )
    masking = [keras.layers.Masking()] if masked else []
    parts = [keras.Input((T, I)), *masking, layer, keras.layers.GRU(2)]
    model = keras.Sequential(parts)
    if functional:
        tensor = parts[0]
        for part in parts[1:]:
            tensor = part(tensor)
        model = keras.Model(parts[0], tensor)
    mask = make_mask("holes" if form != "backward" else "none", B, T, rng)
    x = rng.normal(size=(B, T, I)).astype("float32")
    x = x if mask is None else x * mask[..., np.newaxis]
    stock = tf_lstm_ops.keras.convert_model(model, to="stock")
    assert not any("tf_lstm_ops" in type(part).__module__ for part in stock._flatten_layers())
    stock.save(tmp_path / "stock.keras")
    for other in stock, keras.models.load_model(tmp_path / "stock.keras"):
        # Sums of ten products of about one in float32, through four layers.
        np.testing.assert_allclose(other(x), model(x), rtol=0, atol=1e-6)


def test_states_and_optimizer_become_those_of_stock_layers(rng):
    stack = StackedLSTM(H, 2, bidirectional=True, stateful=True)
    model = keras.Sequential([keras.Input((T, I), batch_size=B), stack])
    x = rng.normal(size=(B, T, I)).astype("float32")
    model.compile("adam", "mse", run_eagerly=True)
    model.fit(x, np.zeros((B, 2 * H)), batch_size=B, verbose=0)
    stock = tf_lstm_ops.keras.convert_model(model, to="stock")
    assert int(stock.optimizer.iterations) == 1
    np.testing.assert_allclose(stock(x), model(x), rtol=0, atol=1e-6)  # as above


def test_equal_names_in_nested_models(rng):
    parts = [
        keras.Sequential([keras.Input((T, I)), StackedGRU(H, 2, name="stack", **options)])
        for options in ({"return_sequences": True}, {"bidirectional": True})
    ]
    tensor = keras.Input((T, I))
    model = keras.Model(tensor, [part(tensor) for part in parts])
    stock = tf_lstm_ops.keras.convert_model(model, to="stock")
    x = rng.normal(size=(B, T, I)).astype("float32")
    for got, want in zip(stock(x), model(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)  # as above


REFUSED = {
    "projection": ({"projection_size": 2}, "stock layers have no projection_size"),
    "state": ({"return_state": True}, "the states of several stock layers are not one result"),
    "backwards": ({"go_backwards": True}, "stock layers do not reverse the mask"),
    "regularizer": ({"activity_regularizer": "l2"}, "it has an activity_regularizer"),
    "masked": (
        {"bidirectional": True, "zero_output_for_mask": True},
        "keras.layers.Bidirectional sets zero_output_for_mask",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_stock_layers_cannot_express(case):
    options, message = REFUSED[case]
    tensor = keras.Input((T, I))
    model = keras.Model(tensor, StackedLSTM(H, 2, name="stack", **options)(tensor))
    with pytest.raises(ValueError, match=f"stack: {re.escape(message)}"):
        tf_lstm_ops.keras.convert_model(model, to="stock")


def test_stock_layers_cannot_express_where_it_is():
    tensor = keras.Input((T, I))
    stack = StackedGRU(H, 2, name="stack")
    given = keras.Model(tensor, stack(tensor, initial_state=[keras.ops.zeros((B, H))] * 2))
    wrapped = keras.Sequential([tensor, keras.layers.Bidirectional(StackedGRU(H, 2, name="s"))])
    plain = keras.Sequential([tensor, StackedGRU(H, 2, name="stack")])
    convert = tf_lstm_ops.keras.convert_model
    with pytest.raises(ValueError, match="stack: the model gives its initial_state"):
        convert(given, to="stock")
    with pytest.raises(ValueError, match="only a layer of a Sequential or functional model"):
        convert(wrapped, to="stock")
    with pytest.raises(ValueError, match="stack: one layer becomes several, which needs a copy"):
        convert(plain, to="stock", in_place=True)


# --- Roads that have failed --------------------------------------------------------------------


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
