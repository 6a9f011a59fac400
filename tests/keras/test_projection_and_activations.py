"""projection_size and the activations of keras.LSTM against the NumPy reference, exact gradients of
that by complex steps, PyTorch and Keras' own loop."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import Sizes, assert_close, evaluate, make_mask, random_weights, rounding, upstream

import tf_lstm_ops
from oracle import derivatives, keras_lstm_v2
from tf_lstm_ops import composite, op_definitions
from tf_lstm_ops.weights import LSTMWeights

SIZES = Sizes(batch=3, time=4, inputs=4, units=7)
P = 3
ALL = {"return_sequences": True, "return_state": True, "dtype": "float64"}
NAMES = op_definitions.choices("KerasLSTM", "activation")
# Each name at least once in each place.
PAIRS = [(name, NAMES[(k * 3 + 1) % len(NAMES)]) for k, name in enumerate(NAMES)]
ACTIVATIONS = [{"activation": a, "recurrent_activation": b} for a, b in PAIRS]


def make_lstm(rng, **options) -> keras.Layer:
    layer = tf_lstm_ops.keras.LSTM(SIZES.units, **{**ALL, **options})
    layer.build((None, None, SIZES.inputs))
    random_weights(layer, rng)
    for weight in layer.trainable_weights:  # unbounded gates let the state grow without bound
        weight.assign(0.4 * weight)
    return layer


def inputs_of(layer, rng) -> list[np.ndarray]:
    hidden = layer.projection_size or SIZES.units
    shapes = (SIZES.batch, SIZES.time, SIZES.inputs), (SIZES.batch, hidden), (SIZES.batch, 7)
    return [rng.normal(size=shape) for shape in shapes]


def oracle_arguments(layer, inputs) -> keras_lstm_v2.Arguments:
    cell, units = layer.cell, SIZES.units

    def given(weight, otherwise):
        return otherwise if weight is None else weight.numpy()

    return keras_lstm_v2.Arguments(
        *inputs,
        cell.kernel.numpy(),
        cell.recurrent_kernel.numpy(),
        given(cell.bias, np.zeros(4 * units)),
        given(cell.peephole_kernel, np.zeros((3, units))),
        given(cell.projection_kernel, np.eye(units)),
    )


def check(layer, inputs, mask=None) -> None:
    """Results and gradients of everything, within rounding."""
    options = {
        "activation": layer.activation.__name__,
        "recurrent_activation": layer.recurrent_activation.__name__,
        "mask": mask,
        "go_backwards": layer.go_backwards,
    }
    arguments = oracle_arguments(layer, inputs)
    wanted = keras_lstm_v2.keras_lstm_v2(arguments, **options)
    got = evaluate(layer, inputs, mask)
    # 10: the slopes of the functions are up to 1.2, over the steps; and the rounding of the
    # functions themselves, which `rounding` does not count.
    bound = 10 * rounding(SIZES)
    for a, b in zip(got.results, wanted, strict=True):
        assert_close(a, b, bound)

    def loss(values):
        results = keras_lstm_v2.keras_lstm_v2(keras_lstm_v2.Arguments(*values), **options)
        return sum(np.sum(upstream(r) * r) for r in results)

    gradients = derivatives.complex_step(loss, arguments)
    names = ("x", "h0", "c0", "kernel", "recurrent_kernel", "bias", "peephole_kernel")
    for name, gradient in zip((*names, "projection_kernel"), gradients, strict=True):
        if name in got.gradients:
            assert_close(got.gradients[name], gradient, bound, name)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_bias": False},
        {"go_backwards": True},
        {"use_peephole": True},
        {"use_peephole": True, "activation": "silu", "recurrent_activation": "gelu"},
        {"activation": "relu", "recurrent_activation": "hard_sigmoid"},
    ],
    ids=str,
)
@pytest.mark.parametrize("mask", ["none", "right", "holes", "one_row_false"])
@pytest.mark.sampled(3)
def test_projection_against_the_reference(mask, options, rng):
    layer = make_lstm(rng, projection_size=P, **options)
    assert layer.uses_fused_op
    check(layer, inputs_of(layer, rng), make_mask(mask, SIZES.batch, SIZES.time, rng))


@pytest.mark.parametrize(
    ("activation", "recurrent_activation", "use_peephole"),
    [
        pytest.param(*pair, use_peephole, marks=[] if k % 2 == use_peephole else pytest.mark.full)
        for k, pair in enumerate(PAIRS)
        for use_peephole in (False, True)
    ],
)
def test_activations_against_the_reference(activation, recurrent_activation, use_peephole, rng):
    layer = make_lstm(
        rng,
        activation=activation,
        recurrent_activation=recurrent_activation,
        use_peephole=use_peephole,
    )
    assert layer.uses_fused_op
    check(layer, inputs_of(layer, rng), make_mask("holes", SIZES.batch, SIZES.time, rng))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "options",
    [
        {"projection_size": P},
        *ACTIVATIONS[::3],
        {"projection_size": P, "activation": "gelu", "recurrent_activation": "silu"},
    ],
    ids=str,
)
def test_dtypes(options, dtype, rng):
    """Against float64 with the same, rounded, weights and inputs."""
    # TensorFlow has no QR decomposition in bfloat16, which the default initializer needs.
    options = {**options, "recurrent_initializer": "glorot_uniform"}
    narrow = make_lstm(rng, **{**options, "dtype": dtype})
    wide = make_lstm(rng, **options)
    for a, b in zip(narrow.weights, wide.weights, strict=True):
        a.assign(0.5 * tf.cast(b, a.dtype))
        b.assign(tf.cast(a, tf.float64))
    inputs = [tf.cast(tf.cast(v, dtype), tf.float64).numpy() for v in inputs_of(wide, rng)]
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    got, wanted = evaluate(narrow, inputs, mask), evaluate(wide, inputs, mask)
    epsilon = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    # The kernels compute in float32, so h, which they store in the type of the op, and the results
    # are rounded; bfloat16 products round their factors, too. 20 such roundings.
    for a, b in zip(got.results, wanted.results, strict=True):
        assert_close(a, b, 20 * epsilon)
    for name, gradient in wanted.gradients.items():
        assert_close(got.gradients[name], gradient, 20 * epsilon, name)


WITH_OTHERS = [
    {"projection_size": P, "use_peephole": True},
    {"projection_size": P, "activation": "elu", "cell_clip": 0.5, "implementation": 1},
]


@pytest.mark.parametrize("options", [*ACTIVATIONS, *WITH_OTHERS], ids=str)
def test_against_keras_own_loop_and_plain_ops(options, rng, monkeypatch):
    """The cell by itself, the composite that XLA compiles, and the op give the same."""
    layer = make_lstm(rng, **options)
    inputs = inputs_of(layer, rng)
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    got = evaluate(layer, inputs, mask)
    with composite.plain_ops():
        plain = evaluate(layer, inputs, mask)
    for a, b in zip(got.results, plain.results, strict=True):
        assert_close(b, a, 10 * rounding(SIZES))
    monkeypatch.setattr(type(layer), "fallback_reason", "a test")
    looped = evaluate(layer, inputs, mask)
    # Keras has the constants of gelu and leaky_relu in float32.
    in_float32 = {"gelu", "leaky_relu"} & set(options.values())
    bound = 10 * rounding(SIZES, "float32" if in_float32 else "float64")
    for a, b in zip(got.results, looped.results, strict=True):
        assert_close(b, a, bound)
    for name, gradient in got.gradients.items():
        assert_close(looped.gradients[name], gradient, bound, name)


@pytest.mark.parametrize(
    "options",
    [
        ACTIVATIONS[-1],
        *WITH_OTHERS,
        *(pytest.param(options, marks=pytest.mark.full) for options in ACTIVATIONS[:-1]),
    ],
    ids=str,
)
def test_xla(options, rng):
    layer = make_lstm(rng, **options)
    inputs = inputs_of(layer, rng)
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)

    @tf.function(jit_compile=True)
    def compiled(x, h, c):
        return layer(x, initial_state=[h, c], mask=tf.constant(mask))

    wanted = evaluate(layer, inputs, mask).results
    for a, b in zip(wanted, compiled(*map(tf.constant, inputs)), strict=True):
        assert_close(b.numpy(), a, 10 * rounding(SIZES))


SECOND_ORDER = [
    {"projection_size": P, "activation": "gelu", "recurrent_activation": "silu"},
    {"activation": "softsign", "recurrent_activation": "silu", "use_peephole": True},
    {"projection_size": P},
]


@pytest.mark.parametrize(
    ("options", "traced"),
    [
        *((options, False) for options in SECOND_ORDER),
        pytest.param(SECOND_ORDER[0], True, marks=pytest.mark.full),
        *(pytest.param(options, True, marks=pytest.mark.slow) for options in SECOND_ORDER[1:]),
    ],
    ids=str,
)
def test_second_derivatives(options, traced, rng):
    """The derivative of the gradient along a direction, against differences of the gradient."""
    layer = make_lstm(rng, **options)
    weights = layer.trainable_weights
    values = [*inputs_of(layer, rng), *(w.numpy() for w in weights)]
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    direction = derivatives.unit_direction(rng, values)
    towards = derivatives.unit_direction(rng, values)

    def gradient_along(values):
        with tf.GradientTape() as tape:
            tape.watch(values)
            for weight, value in zip(weights, values[3:], strict=True):
                weight.assign(value)
            results = layer(values[0], initial_state=values[1:3], mask=tf.constant(mask))
            loss = sum(tf.reduce_sum(upstream(r) * r) for r in results)
        found = tape.gradient(loss, [*values[:3], *(w.value for w in weights)])
        return sum(tf.reduce_sum(g * d) for g, d in zip(found, direction, strict=True))

    if traced:
        gradient_along = tf.function(gradient_along)
    with tf.GradientTape() as tape:
        tensors = [tf.constant(v) for v in values]
        tape.watch(tensors)
        along = gradient_along(tensors)
    sources = [*tensors[:3], *(w.value for w in weights)]
    second = tape.gradient(along, sources)
    got = sum(np.sum(g.numpy() * t) for g, t in zip(second, towards, strict=True))
    wanted = derivatives.central_difference(
        lambda point: gradient_along([tf.constant(v) for v in point]).numpy(), values, towards
    )
    # Of fourth order: see central_difference. The fifth derivative is up to about 1e3 here.
    assert abs(got - wanted) < 1e-8


@pytest.mark.torch
@pytest.mark.parametrize("bidirectional", [False, True])
def test_weights_from_and_to_torch(bidirectional, rng):
    torch = pytest.importorskip("torch")
    network = torch.nn.LSTM(
        4, 7, proj_size=P, batch_first=True, bidirectional=bidirectional, dtype=torch.float64
    )
    layer = tf_lstm_ops.keras.LSTM(7, projection_size=P, return_sequences=True, dtype="float64")
    if bidirectional:
        layer = keras.layers.Bidirectional(layer, dtype="float64")
    layer.build((None, None, 4))
    layer.set_weights(LSTMWeights.from_torch(network.state_dict()).to_keras())
    x = rng.normal(size=(3, 6, 4))
    with torch.no_grad():
        wanted, _ = network(torch.tensor(x))
    assert_close(layer(x).numpy(), wanted.numpy(), rounding(SIZES))
    back = LSTMWeights.from_keras(layer.get_weights()).to_torch()
    network.load_state_dict({k: torch.tensor(v) for k, v in back.items()})
    with torch.no_grad():
        again, _ = network(torch.tensor(x))
    assert_close(again.numpy(), wanted.numpy(), rounding(SIZES))


@pytest.mark.parametrize(("use_peephole", "use_bias"), itertools.product([False, True], repeat=2))
def test_weights_from_and_to_keras(use_peephole, use_bias, rng):
    layer = make_lstm(rng, projection_size=P, use_peephole=use_peephole, use_bias=use_bias)
    weights = LSTMWeights.from_keras(layer)
    assert weights.cells[0].projection.shape == (7, P)
    assert (weights.cells[0].peephole is not None) == use_peephole
    for a, b in zip(weights.to_keras(use_bias=use_bias), layer.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.full  # tests/layers has SavedModels with a projection
def test_saved_and_loaded(tmp_path, rng):
    layer = make_lstm(rng, projection_size=P, activation="silu", recurrent_activation="softsign")
    x = rng.normal(size=(3, 6, 4))
    inputs = keras.Input((None, 4), dtype="float64")
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for portable in (False, True):
        tf_lstm_ops.export.saved_model(model, tmp_path / "saved", portable=portable)
        restored = tf.saved_model.load(tmp_path / "saved")
        served = restored.serve(tf.constant(x))
        for a, b, c in zip(model(x), loaded(x), served, strict=True):
            np.testing.assert_array_equal(a, b)
            assert_close(c.numpy(), a.numpy(), 10 * rounding(SIZES))


def test_new_weights_and_states(rng):
    layer = tf_lstm_ops.keras.LSTM(7, projection_size=P, return_state=True)
    output, h, c = layer(np.ones((2, 5, 4)))
    assert (output.shape, h.shape, c.shape) == ((2, P), (2, P), (2, 7))
    shapes = {w.name: tuple(w.shape) for w in layer.weights}
    assert shapes == {
        "kernel": (4, 28),
        "recurrent_kernel": (P, 28),
        "bias": (28,),
        "projection_kernel": (7, P),
    }
    np.testing.assert_array_equal(layer.cell.bias, [0] * 7 + [1] * 7 + [0] * 14)
    np.testing.assert_array_equal(output, h)


def test_stateful_and_dropout(rng):
    layer = make_lstm(rng, projection_size=P, stateful=False)
    x = rng.normal(size=(3, 6, 4))
    whole = layer(x)[0]
    stateful = tf_lstm_ops.keras.LSTM(
        7, projection_size=P, stateful=True, return_sequences=True, dtype="float64"
    )
    stateful.build((3, 3, 4))
    for a, b in zip(stateful.trainable_weights, layer.trainable_weights, strict=True):
        a.assign(b)
    parts = [stateful(x[:, :3]), stateful(x[:, 3:])]
    assert_close(np.concatenate(parts, axis=1), whole.numpy(), rounding(SIZES))
    dropped = make_lstm(rng, projection_size=P, recurrent_dropout=0.5, implementation=1)
    dropped.set_weights(layer.get_weights())
    assert np.abs(dropped(x, training=True)[0] - whole).max() > 1e-3


@pytest.mark.parametrize("size", [0, -1, 7, 8, 2.0, True, "3"])
def test_wrong_projection_size(size):
    with pytest.raises(ValueError, match="projection_size must be None or an integer from 1 to 6"):
        tf_lstm_ops.keras.LSTM(7, projection_size=size)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"projection": (7, 7), "h": 7}, "projection.* must be positive and below 7 but is 7"),
        ({"projection": (7, 0), "h": 0}, "projection.* must be positive and below 7 but is 0"),
        ({"projection": (0,), "h": 3}, "initial_h.* != cell_size: 3 vs. 7; the projection is abs"),
        ({"projection": (6, 3), "h": 3}, "projection.* != cell_size: 6 vs. 7"),
        ({"projection": (7, 3), "h": 4}, "projection.* != hidden_size: 3 vs. 4"),
    ],
)
def test_wrong_shapes_of_the_op(shapes, message):
    from tf_lstm_ops import op_definitions

    none = tf.zeros([0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        op_definitions.function("KerasLSTM")(
            x=tf.zeros([2, 5, 4]),
            mask=tf.zeros([0], tf.bool),
            initial_h=tf.zeros([2, shapes["h"]]),
            initial_c=tf.zeros([2, 7]),
            kernel=tf.zeros([4, 28]),
            recurrent_kernel=tf.zeros([shapes["h"], 28]),
            bias=none,
            peephole=none,
            projection=tf.zeros(shapes["projection"]),
            input_dropout=none,
            recurrent_dropout=none,
        )


@pytest.mark.parametrize(
    ("options", "device"),
    [({}, ""), ({"activation": "relu"}, "CPU"), ({"projection_size": 2}, "CPU")],
    ids=["default", "activation", "projection"],
)
def test_graphs_place_on_the_cpu_what_the_cuda_kernel_lacks(options, device):
    """Another machine may load the graph. There, TensorFlow prefers an op's kernel for the GPU."""
    layer = tf_lstm_ops.keras.LSTM(3, **options)
    layer.build([None, 4, 2])

    @tf.function(autograph=False)
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = layer(x, training=True)
        return tape.gradient(output, x)

    graph = both.get_concrete_function(tf.TensorSpec([2, 4, 2])).graph
    found = {op.type: op.device for op in graph.get_operations() if "Keras" in op.type}
    assert found.keys() == {"TfLstmOps>KerasLSTM", "TfLstmOps>KerasLSTMGrad"}
    for name in found.values():
        assert (tf.DeviceSpec.from_string(name).device_type or "") == device
