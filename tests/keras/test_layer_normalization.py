"""layer_normalization of keras.LSTM and keras.GRU against the NumPy reference, the cells' own loop,
XLA and finite differences."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import Sizes, assert_close, evaluate, make_mask, random_weights, rounding, upstream

import tf_lstm_ops
from core.calls import Call, assert_same_bits
from oracle import derivatives
from oracle.layer_norm import Arguments, Options, Results, layer_norm, layer_norm_backward
from tf_lstm_ops import op_definitions

Array = np.ndarray

SIZES = Sizes(batch=3, time=6, inputs=4, units=7)
# In slices of the batch, and in groups of units with two phases a step, of a rest and of a whole
# tile of rows.
LARGE = [
    Sizes(batch=50, time=4, inputs=5, units=19),
    Sizes(batch=5, time=3, inputs=40, units=150),
    Sizes(batch=6, time=3, inputs=5, units=19),
]
ALL = {"return_sequences": True, "return_state": True, "dtype": "float64"}
FORMS = [("LSTM", "haste"), ("LSTM", "addons"), ("GRU", "haste")]
# The scale of a row divides by its standard deviation, which enlarges errors where that is small.
ENLARGED = 100


def make_layer(rng, name: str, form: str, sizes: Sizes = SIZES, **options) -> keras.Layer:
    options = {"layer_normalization": form, "layer_normalization_epsilon": 0.01, **options}
    layer = getattr(tf_lstm_ops.keras, name)(sizes.units, **{**ALL, **options})
    layer.build((None, None, sizes.inputs))
    random_weights(layer, rng)
    return layer


def inputs_of(layer, rng, sizes: Sizes = SIZES) -> list[Array]:
    states = len(layer._names_of_states)
    shapes = [(sizes.batch, sizes.time, sizes.inputs), *[(sizes.batch, sizes.units)] * states]
    return [rng.normal(size=shape) for shape in shapes]


def arguments_of(layer, inputs: list[Array]) -> Arguments:
    cell, is_lstm = layer.cell, len(inputs) == 3
    shape = (4 * layer.units,) if is_lstm else (2, 3 * layer.units)
    bias = np.zeros(shape) if cell.bias is None else cell.bias.numpy()
    if layer.layer_normalization == "addons":
        bias = bias + cell.input_beta.numpy() + cell.recurrent_beta.numpy()
    none = np.zeros(0)
    return Arguments(
        *inputs,
        *([] if is_lstm else [none]),
        cell.kernel.numpy(),
        cell.recurrent_kernel.numpy(),
        bias,
        cell.input_gamma.numpy(),
        cell.recurrent_gamma.numpy(),
        *([cell.state_gamma.numpy(), cell.state_beta.numpy()] if is_lstm else [none] * 2),
    )


def check(layer, inputs: list[Array], mask: Array | None, sizes: Sizes) -> None:
    """Results and gradients of everything, within rounding."""
    arguments = arguments_of(layer, inputs)
    options = Options(
        mask,
        layer.go_backwards,
        layer.zero_output_for_mask,
        float(np.float32(layer.layer_normalization_epsilon)),  # attributes of ops are float
        layer.layer_normalization == "addons",
    )
    wanted = layer_norm(arguments, options)[: len(inputs)]
    got, bound = evaluate(layer, inputs, mask), ENLARGED * rounding(sizes)
    for a, b in zip(got.results, wanted, strict=True):
        assert_close(a, b, bound)
    grads = Results(*map(upstream, wanted), *[np.zeros(0)] * (3 - len(wanted)))
    gradients = layer_norm_backward(arguments, grads, options)._asdict()
    gradients["input_beta"] = gradients["recurrent_beta"] = gradients["bias"]
    for name, gradient in got.gradients.items():
        assert_close(gradient, gradients[name], bound, name)


@pytest.mark.parametrize("options", [{}, {"use_bias": False}, {"go_backwards": True}], ids=str)
@pytest.mark.parametrize("mask", ["none", "right", "holes", "one_row_false"])
@pytest.mark.parametrize(("name", "form"), FORMS)
def test_against_the_reference(name, form, mask, options, rng):
    layer = make_layer(rng, name, form, **options)
    assert layer.uses_fused_op
    check(layer, inputs_of(layer, rng), make_mask(mask, SIZES.batch, SIZES.time, rng), SIZES)


@pytest.mark.parametrize("sizes", LARGE, ids=str)
@pytest.mark.parametrize(("name", "form"), FORMS)
def test_large_sizes(name, form, sizes, rng):
    layer = make_layer(rng, name, form, sizes)
    mask = make_mask("holes", sizes.batch, sizes.time, rng)
    check(layer, inputs_of(layer, rng, sizes), mask, sizes)


@pytest.mark.parametrize("sizes", LARGE, ids=str)
@pytest.mark.parametrize(("name", "form"), FORMS)
def test_rows_do_not_depend_on_the_batch(name, form, sizes, rng):
    """The same bits for a row by itself, whatever the division of the work."""
    layer = make_layer(rng, name, form, sizes, dtype="float32")
    x, *states = [v.astype(np.float32) for v in inputs_of(layer, rng, sizes)]
    together = layer(x, initial_state=states)
    for row in (0, sizes.batch - 1):
        part = slice(row, row + 1)
        alone = layer(x[part], initial_state=[s[part] for s in states])
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a, b[part])


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_bits_on_several_threads(name, form, rng):
    """In slices of the batch, with memory for the values of a row in each thread."""
    sizes = Sizes(batch=50, time=12, inputs=30, units=50)
    layer = make_layer(rng, name, form, sizes)
    tensors = map(tf.constant, inputs_of(layer, rng, sizes))
    given = dict(zip(("x", "h", "c"), tensors, strict=False))
    states = [*given][1:]
    given |= {weight.name: weight.value for weight in layer.trainable_weights}

    def function(x, **others):
        return layer(x, initial_state=[others[name] for name in states])

    call = Call(function, given, {}, 0).on_threads()
    assert_same_bits(call.run(3), call.run(1))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("name", "form"), FORMS)
def test_dtypes(name, form, dtype, rng):
    """Against float64 with the same, rounded, weights and inputs."""
    # TensorFlow has no QR decomposition in bfloat16, which the default initializer needs.
    options = {"recurrent_initializer": "glorot_uniform", "layer_normalization_epsilon": 0.25}
    narrow = make_layer(rng, name, form, dtype=dtype, **options)
    wide = make_layer(rng, name, form, **options)
    for a, b in zip(narrow.weights, wide.weights, strict=True):
        a.assign(tf.cast(b, a.dtype))
        b.assign(tf.cast(a, tf.float64))
    inputs = [tf.cast(tf.cast(v, dtype), tf.float64).numpy() for v in inputs_of(wide, rng)]
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    got, wanted = evaluate(narrow, inputs, mask), evaluate(wide, inputs, mask)
    epsilon = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    # The kernels compute in float32; h and the results are rounded, with bfloat16 the factors of
    # products, too. 20 such roundings, which a scale of at most 1 / sqrt(0.25) enlarges.
    for a, b in zip(got.results, wanted.results, strict=True):
        assert_close(a, b, 40 * epsilon)
    for key, gradient in wanted.gradients.items():
        assert_close(got.gradients[key], gradient, 40 * epsilon, key)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize(("name", "form"), FORMS)
def test_against_keras_own_loop(name, form, dropout, rng, monkeypatch):
    """With dropout the op and the loop draw the same multipliers."""
    options = {"dropout": dropout, "recurrent_dropout": dropout, "implementation": 1, "seed": 1}
    fused, looped = (make_layer(rng, name, form, **options) for _ in range(2))
    for a, b in zip(fused.trainable_weights, looped.trainable_weights, strict=True):
        b.assign(a)
    inputs = inputs_of(fused, rng)
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    got = evaluate(fused, inputs, mask, training=True)
    monkeypatch.setattr(type(looped), "fallback_reason", "a test")
    wanted = evaluate(looped, inputs, mask, training=True)
    for a, b in zip(got.results, wanted.results, strict=True):
        assert_close(a, b, ENLARGED * rounding(SIZES))
    for key, gradient in wanted.gradients.items():
        assert_close(got.gradients[key], gradient, ENLARGED * rounding(SIZES), key)


@pytest.mark.parametrize(
    ("name", "form"), [pytest.param(*FORMS[0], marks=pytest.mark.full), *FORMS[1:]]
)
def test_xla(name, form, rng):
    layer = make_layer(rng, name, form)
    x, *states = map(tf.constant, inputs_of(layer, rng))
    mask = tf.constant(make_mask("holes", SIZES.batch, SIZES.time, rng))

    @tf.function(jit_compile=True)
    def compiled(x, states):
        return layer(x, initial_state=states, mask=mask)

    wanted = layer(x, initial_state=states, mask=mask)
    for a, b in zip(compiled(x, states), wanted, strict=True):
        assert_close(a.numpy(), b.numpy(), ENLARGED * rounding(SIZES))


@pytest.mark.parametrize(
    ("name", "form", "traced"),
    [
        *((*form, False) for form in FORMS),
        pytest.param(*FORMS[0], True, marks=pytest.mark.full),
        *(pytest.param(*form, True, marks=pytest.mark.slow) for form in FORMS[1:]),
    ],
)
def test_second_derivatives(name, form, traced, rng):
    """The derivative of the gradient along a direction, against differences of the gradient."""
    layer = make_layer(rng, name, form)
    weights = layer.trainable_weights
    inputs = inputs_of(layer, rng)
    values = [*inputs, *(w.numpy() for w in weights)]
    mask = tf.constant(make_mask("holes", SIZES.batch, SIZES.time, rng))
    direction = derivatives.unit_direction(rng, values)
    towards = derivatives.unit_direction(rng, values)
    count = len(inputs)

    def gradient_along(values):
        with tf.GradientTape() as tape:
            tape.watch(values)
            for weight, value in zip(weights, values[count:], strict=True):
                weight.assign(value)
            results = layer(values[0], initial_state=values[1:count], mask=mask)
            loss = sum(tf.reduce_sum(upstream(r) * r) for r in results)
        found = tape.gradient(loss, [*values[:count], *(w.value for w in weights)])
        return sum(tf.reduce_sum(g * d) for g, d in zip(found, direction, strict=True))

    if traced:
        gradient_along = tf.function(gradient_along)
    with tf.GradientTape() as tape:
        tensors = [tf.constant(v) for v in values]
        tape.watch(tensors)
        along = gradient_along(tensors)
    second = tape.gradient(along, [*tensors[:count], *(w.value for w in weights)])
    got = sum(np.sum(g.numpy() * t) for g, t in zip(second, towards, strict=True))
    wanted = derivatives.central_difference(
        lambda point: gradient_along([tf.constant(v) for v in point]).numpy(), values, towards
    )
    # Of fourth order: see central_difference. The fifth derivative is up to about 1e4 here.
    assert abs(got - wanted) < 1e-7


@pytest.mark.full  # tests/layers/test_roads.py has such a file
@pytest.mark.parametrize(
    ("name", "form"), [*FORMS[1:], pytest.param(*FORMS[0], marks=pytest.mark.slow)]
)
def test_saved_and_loaded(name, form, tmp_path, rng):
    layer = make_layer(rng, name, form)
    x = rng.normal(size=(3, 6, 4))
    inputs = keras.Input((None, 4), dtype="float64")
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[1].get_config() == layer.get_config()
    for portable in (False, True):
        tf_lstm_ops.export.saved_model(model, tmp_path / "saved", portable=portable)
        restored = tf.saved_model.load(tmp_path / "saved")
        served = restored.serve(tf.constant(x))
        for a, b, c in zip(model(x), loaded(x), served, strict=True):
            np.testing.assert_array_equal(a, b)
            assert_close(c.numpy(), a.numpy(), ENLARGED * rounding(SIZES))


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_new_weights(name, form):
    layer = getattr(tf_lstm_ops.keras, name)(5, layer_normalization=form)
    layer.build((None, None, 3))
    gates = 4 if name == "LSTM" else 3
    sizes = {"input_gamma": gates * 5, "recurrent_gamma": gates * 5}
    if name == "LSTM":
        sizes |= {"state_gamma": 5, "state_beta": 5}
    if form == "addons":
        sizes |= {"input_beta": 20, "recurrent_beta": 20}
    found = {w.name: w for w in layer.weights[3:]}
    assert {k: w.shape for k, w in found.items()} == {k: (size,) for k, size in sizes.items()}
    for key, weight in found.items():
        np.testing.assert_array_equal(weight, np.full(weight.shape, float(key.endswith("gamma"))))
    default = {"haste": 1e-5, "addons": 1e-3}[form]
    assert layer.layer_normalization_epsilon == layer.cell.layer_normalization_epsilon == default


def test_true_is_haste_and_bidirectional(rng):
    layers = [
        keras.layers.Bidirectional(
            tf_lstm_ops.keras.LSTM(5, layer_normalization=form, return_sequences=True)
        )
        for form in (True, "haste")
    ]
    x = rng.normal(size=(2, 4, 3))
    for layer in layers:
        layer.build(x.shape)
    layers[1].set_weights(layers[0].get_weights())
    np.testing.assert_array_equal(layers[0](x), layers[1](x))
    assert tf_lstm_ops.keras.GRU(5, layer_normalization=True).layer_normalization == "haste"
    for off in (False, None):
        assert tf_lstm_ops.keras.LSTM(5, layer_normalization=off).layer_normalization is None


@pytest.mark.full
def test_training_learns(rng):
    """The loss of a small task falls to a tenth: gradients of all weights have the right sign."""
    x = rng.normal(size=(64, 8, 3)).astype(np.float32)
    y = x[:, -3:, :].sum((1, 2))[:, None]
    model = keras.Sequential(
        [keras.Input((8, 3)), tf_lstm_ops.keras.LSTM(16, layer_normalization=True)]
    )
    model.add(keras.layers.Dense(1))
    model.compile(keras.optimizers.Adam(0.01), "mse")
    first = model.evaluate(x, y, verbose=0)
    model.fit(x, y, epochs=60, batch_size=32, verbose=0)
    assert model.evaluate(x, y, verbose=0) < first / 10


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"use_peephole": True}, "layer_normalization with use_peephole has no fused op"),
        ({"projection_size": 3}, "layer_normalization with projection_size has no fused op"),
        ({"cell_clip": 1.0}, "layer_normalization with cell_clip has no fused op"),
        ({"activation": "relu"}, "activation is relu, not tanh"),
    ],
)
def test_fallbacks(options, reason, rng):
    """The loop computes what has no fused op: here step by step by the cell."""
    layer = make_layer(rng, "LSTM", "haste", **options)
    assert layer.fallback_reason == reason
    x = rng.normal(size=(3, 6, 4))
    output, *states = layer(x)
    step = [tf.zeros([3, layer.projection_size or 7], tf.float64), tf.zeros([3, 7], tf.float64)]
    for t in range(6):
        h, step = layer.cell(tf.constant(x[:, t]), step)
        assert_close(h.numpy(), output[:, t].numpy(), rounding(SIZES))
    for a, b in zip(step, states, strict=True):
        assert_close(a.numpy(), b.numpy(), rounding(SIZES))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf_lstm_ops.keras.LSTM(5, layer_normalization="batch"), "'haste' or 'addons'"),
        (lambda: tf_lstm_ops.keras.GRU(5, layer_normalization="addons"), "True, False or 'haste'"),
        (lambda: tf_lstm_ops.keras.LSTM(5, layer_normalization_epsilon=1e-3), "needs layer_norm"),
        (
            lambda: tf_lstm_ops.keras.LSTM(
                5, layer_normalization=True, layer_normalization_epsilon=0
            ),
            "must be positive. Received: 0",
        ),
        (
            lambda: tf_lstm_ops.keras.GRU(5, layer_normalization=True, reset_after=False),
            "needs reset_after=True",
        ),
        (
            lambda: tf_lstm_ops.keras.GRU(5, layer_normalization=True, use_cudnn=True),
            "has no layer_normalization",
        ),
    ],
)
def test_wrong_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("gates", [3, 4])
@pytest.mark.parametrize("wrong", ["input_gamma", "recurrent_gamma", "state_gamma", "epsilon"])
def test_wrong_inputs_of_the_op(gates, wrong):
    arguments = {
        "x": tf.zeros([2, 5, 3]),
        "mask": tf.zeros([0], tf.bool),
        "initial_h": tf.zeros([2, 7]),
        "kernel": tf.zeros([3, gates * 7]),
        "recurrent_kernel": tf.zeros([7, gates * 7]),
        "bias": tf.zeros([0]),
        "input_gamma": tf.zeros([gates * 7]),
        "recurrent_gamma": tf.zeros([gates * 7]),
        "input_dropout": tf.zeros([0]),
        "recurrent_dropout": tf.zeros([0]),
        "epsilon": 1e-5,
    }
    if gates == 4:
        arguments |= {"initial_c": tf.zeros([2, 7])}
        arguments |= {"state_gamma": tf.zeros([7]), "state_beta": tf.zeros([7])}
    elif wrong == "state_gamma":
        wrong = "input_gamma"  # a GRU has none
    message = f"{wrong}.dim_size" if wrong != "epsilon" else "epsilon must be positive but is -1"
    arguments[wrong] = -1.0 if wrong == "epsilon" else tf.zeros([6])
    op = op_definitions.function("KerasLayerNormLSTM" if gates == 4 else "KerasLayerNormGRU")
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        op(**arguments)


@pytest.mark.parametrize("kind, form", FORMS)
def test_a_function_gives_the_bits_of_an_eager_call(kind, form, rng):
    layer = getattr(tf_lstm_ops.keras, kind)(8, layer_normalization=form)
    layer.build((None, None, 5))
    layer.set_weights([rng.normal(size=w.shape) for w in layer.get_weights()])
    x = tf.constant(rng.normal(size=(3, 7, 5)), tf.float32)
    np.testing.assert_array_equal(tf.function(layer)(x), layer(x))
