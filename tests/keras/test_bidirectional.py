"""Bidirectional: one op for both directions, with the results of two."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import make_mask

from tf_lstm_ops import op_definitions
from tf_lstm_ops.keras import GRU, LSTM, Bidirectional, convert_model, directions

B, T, I, H = 5, 7, 3, 9  # noqa: E741

LAYERS = {
    "lstm": (LSTM, {}),
    "gru": (GRU, {}),
    "reset_before": (GRU, {"reset_after": False}),
    "own": (LSTM, {"use_peephole": True, "cell_clip": 0.4, "projection_size": 4}),
    "activations": (LSTM, {"activation": "relu", "recurrent_activation": "hard_sigmoid"}),
    "norm_lstm": (LSTM, {"layer_normalization": "addons"}),
    "norm_gru": (GRU, {"layer_normalization": True}),
    "no_bias": (LSTM, {"use_bias": False}),
    "dropout": (LSTM, {"dropout": 0.3, "seed": 3}),
    "both_dropouts": (GRU, {"dropout": 0.3, "recurrent_dropout": 0.2, "seed": 3}),
}
MODES = ["concat", "sum", "ave", "mul", None]


def make(kind="lstm", merge_mode="concat", wrapper=Bidirectional, dtype="float32", **options):
    """A built layer with random weights."""
    layer, own = LAYERS[kind]
    start = {"recurrent_initializer": "zeros"}  # Keras has no orthogonal one in bfloat16
    inner = layer(H, dtype=dtype, **{"return_sequences": True, **start, **own, **options})
    made = wrapper(inner, merge_mode=merge_mode, dtype=dtype)
    made.build((B, T, I))
    rng = np.random.default_rng(1)
    made.set_weights([rng.normal(scale=0.5, size=w.shape) for w in made.get_weights()])
    return made


def inputs(dtype="float32"):
    x = np.random.default_rng(2).normal(size=(B, T, I))
    return tf.constant(x, dtype)


def evaluate(layer, x, training=None, **options):
    """Results, and the gradients of a function of all of them."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        results = tf.nest.flatten(layer(x, training=training, **options))
        loss = tf.add_n([tf.reduce_sum(tf.sin(r * (k + 1))) for k, r in enumerate(results)])
    gradients = tape.gradient(loss, [x, *layer.trainable_variables])
    return [np.asarray(value) for value in (*results, *gradients)]


def ops_of(layer, **options):
    """The ops of this package in a graph of a training step."""

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.add_n([tf.reduce_sum(y) for y in tf.nest.flatten(layer(x, **options))])
        return tape.gradient(loss, x)

    graph = step.get_concrete_function(tf.TensorSpec((None, None, I), layer.compute_dtype)).graph
    return sorted(op.type for op in graph.get_operations() if op.type.startswith("TfLstmOps>"))


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


@pytest.mark.parametrize("part", ["forward_layer", "backward_layer"])
def test_a_layer_whose_call_was_replaced(part):
    one, two = make(), make()
    for made in one, two:
        layer = getattr(made, part)
        layer.call = lambda *args, _call=layer.call, **kwargs: 2 * _call(*args, **kwargs)
    got = evaluate(one, inputs())
    with directions.apart():
        wanted = evaluate(two, inputs())
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(not hasattr(keras, "RematScope"), reason="Keras has it from 3.9 on")
@pytest.mark.parametrize("both", [True, False])
def test_layers_that_run_again_in_the_backward_pass(both):
    options = {"go_backwards": True, "name": "second"}
    with keras.RematScope(mode="full"):
        second = LSTM(4, **options)
        layer = Bidirectional(LSTM(4), backward_layer=second) if both else None
    layer = layer or Bidirectional(LSTM(4), backward_layer=second)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(inputs()) ** 2)
    assert None not in tape.gradient(loss, layer.trainable_variables)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda layer: setattr(layer.backward_layer, "go_backwards", False), "go_backwards=False"),
        (lambda layer: _set_both(layer, "return_sequences", False), "return_sequences=False"),
    ],
)
def test_attributes_that_were_changed(change, reason):
    one, two = make(), make()
    for made in one, two:
        change(made)
    assert reason in one.fallback_reason
    with directions.apart():
        wanted = two(inputs())
    np.testing.assert_array_equal(one(inputs()), wanted)


def _set_both(layer, name, value):
    for part in layer.forward_layer, layer.backward_layer:
        setattr(part, name, value)


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


def test_a_policy_of_the_wrapper_alone():
    """x is converted twice, and the layers compute in their own type."""
    layer = Bidirectional(LSTM(4, return_sequences=True, dtype="float64"), dtype="float32")
    assert layer(inputs()).dtype == "float32"
    assert layer.uses_fused_op


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


REASONS = {
    "backward_lstm has an activity_regularizer": lambda: _pair(
        second={"activity_regularizer": "l2"}
    ),
    "forward_lstm and backward_lstm have another units": lambda: _pair(
        second={"units": 5}, merge_mode=None
    ),
    "forward_lstm and backward_lstm have another use_peephole": lambda: _pair(
        second={"use_peephole": True}
    ),
    "forward_lstm and backward_lstm have another activation": lambda: _pair(
        second={"activation": "relu"}
    ),
    "forward_lstm and backward_lstm have another compute_dtype": lambda: _pair(
        second={"dtype": "float64"}
    ),
    "forward_lstm and backward_gru are layers of different kinds": lambda: Bidirectional(
        LSTM(4, name="lstm"), backward_layer=GRU(4, go_backwards=True, name="backward_gru")
    ),
    "forward_lstm has go_backwards=True": lambda: Bidirectional(
        LSTM(4, go_backwards=True, name="lstm"), backward_layer=LSTM(4, name="backward_lstm")
    ),
    "forward_lstm is a LSTM, not one of tf_lstm_ops.keras": lambda: Bidirectional(
        keras.layers.LSTM(4, name="lstm")
    ),
    "forward_gru: activation is relu, not tanh": lambda: Bidirectional(
        GRU(4, activation="relu", name="gru")
    ),
}


def _pair(second, merge_mode="concat"):
    options = {"units": 4, "name": "backward_lstm", "go_backwards": True, **second}
    return Bidirectional(
        LSTM(4, name="lstm"), backward_layer=LSTM(**options), merge_mode=merge_mode
    )


@pytest.mark.parametrize("reason", REASONS)
def test_unlike_layers_go_the_way_of_keras(reason):
    layer = REASONS[reason]()
    assert layer.fallback_reason == reason
    assert not layer.uses_fused_op
    x = inputs()
    layer(x)
    stock = keras.layers.Bidirectional.from_config(layer.get_config())
    stock.build(x.shape)
    stock.set_weights(layer.get_weights())
    for a, b in zip(tf.nest.flatten(layer(x)), tf.nest.flatten(stock(x)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_subclass_may_do_anything():
    class Doubled(LSTM):
        def call(self, *args, **kwargs):
            return 2 * super().call(*args, **kwargs)

    layer = Bidirectional(LSTM(4), backward_layer=Doubled(4, go_backwards=True))
    assert layer.fallback_reason.endswith("is a Doubled, not one of tf_lstm_ops.keras")
    assert "KerasLSTM" in ops_of(layer)[0]


@pytest.mark.parametrize("kind", LAYERS)
def test_own_options_keep_keras_from_other_kernels(kind):
    """A fused path of Keras' Bidirectional would drop them."""
    layer, own = LAYERS[kind]
    stock_has = kind in ("lstm", "gru", "reset_before", "activations", "no_bias") or "drop" in kind
    for wrapper in Bidirectional, keras.layers.Bidirectional:
        made = wrapper(layer(H, **own))
        for inner in made.forward_layer, made.backward_layer:
            assert inner.use_cudnn == ("auto" if stock_has else False)


def test_files_and_configuration_are_those_of_keras(tmp_path):
    ours, theirs = (make(wrapper=w) for w in (Bidirectional, keras.layers.Bidirectional))
    names = [{**layer.get_config(), "name": ""} for layer in (ours, theirs)]
    for config in names:
        for part in "layer", "backward_layer":
            config[part]["config"]["name"] = config[part]["build_config"] = ""
    assert names[0] == names[1]
    models = [keras.Sequential([keras.Input((T, I)), layer]) for layer in (ours, theirs)]
    theirs.set_weights([w + 1 for w in theirs.get_weights()])
    models[0].save_weights(tmp_path / "ours.weights.h5")
    models[1].load_weights(tmp_path / "ours.weights.h5")
    np.testing.assert_array_equal(models[0](inputs()), models[1](inputs()))
    models[0].save(tmp_path / "ours.keras")
    loaded = keras.models.load_model(tmp_path / "ours.keras")
    assert type(loaded.layers[0]) is Bidirectional
    np.testing.assert_array_equal(loaded(inputs()), models[0](inputs()))


@pytest.mark.parametrize("in_place", [True, False])
def test_convert_model(in_place):
    stock = keras.Sequential(
        [
            keras.Input((T, I)),
            keras.layers.Bidirectional(keras.layers.LSTM(4, return_sequences=True), name="one"),
            keras.layers.Bidirectional(
                keras.layers.GRU(4),
                backward_layer=keras.layers.LSTM(4, go_backwards=True),
                name="two",
            ),
        ]
    )
    x = inputs()
    wanted = stock(x)
    ours = convert_model(stock, in_place=in_place)
    assert [type(layer) for layer in ours.layers] == [Bidirectional, keras.layers.Bidirectional]
    assert ours.layers[0].uses_fused_op
    np.testing.assert_allclose(ours(x), wanted, rtol=1e-5, atol=1e-6)
    back = convert_model(ours, to="stock", in_place=in_place)
    kinds = {type(layer) for layer in back._flatten_layers(include_self=False)}
    assert all(kind.__module__.startswith("keras.") for kind in kinds)
    np.testing.assert_allclose(back(x), wanted, rtol=1e-5, atol=1e-6)


def test_to_stock_names_the_layer_inside():
    model = keras.Sequential([keras.Input((T, I)), make("own")])
    with pytest.raises(ValueError, match=r"bidirectional.*/forward_lstm.*: .*use_peephole"):
        convert_model(model, to="stock")


def test_fit_learns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, T, I)).astype("float32")
    y = (x[:, 0, :1] + x[:, -1, 1:2]).astype("float32")
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((T, I)), Bidirectional(LSTM(8)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    losses = model.fit(x, y, batch_size=24, epochs=12, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
