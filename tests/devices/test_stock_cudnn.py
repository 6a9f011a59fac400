"""Calls on an NVIDIA GPU: TensorFlow's own CudnnRNNV3 runs, with the results of our ops, whether
our kernels are on or off. The GPU is not real: CudnnRNNV3 runs on this package's CPU kernel."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import _gpu, raw_ops
from tf_lstm_ops.keras import GRU, LSTM, StackedGRU, StackedLSTM
from tf_lstm_ops.raw_ops import stock_cudnn

B, T, I, H = 3, 5, 3, 4  # noqa: E741
# Sums of some ten products of numbers of size one, in another order.
TOLERANCE = 1e-5
MASKS = {
    "none": None,
    "right": [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]],
    "holes": [[1, 0, 1, 0, 1], [0, 1, 1, 0, 0], [1, 1, 0, 0, 1]],
    "empty": [[0, 0, 0, 0, 0], [1, 0, 1, 1, 0], [0, 0, 0, 0, 0]],
}
LAYERS = {
    "LSTM": LSTM,
    "GRU": GRU,
    "StackedLSTM": lambda units, **options: StackedLSTM(units, 2, **options),
    "StackedGRU": lambda units, **options: StackedGRU(units, 2, **options),
}
OPTIONS = {
    "last": {},
    "sequences": {"return_sequences": True},
    "zero": {"zero_output_for_mask": True},
    "zero_sequences": {"zero_output_for_mask": True, "return_sequences": True},
    "backwards": {"go_backwards": True, "return_sequences": True},
    "backwards_last": {"go_backwards": True, "zero_output_for_mask": True},
    "no_bias": {"use_bias": False},
    "states": {"return_state": True},
}


@pytest.fixture
def turn_off(monkeypatch):
    """A function after which this process has a GPU whose kernels are off."""

    def turn_off(state: str = "never run") -> None:
        status = _gpu.Status(state == "passed", state, "", cuda=True)
        monkeypatch.setattr(_gpu, "_status", status)
        monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [kind])
        # Whatever TensorFlow was built with.
        monkeypatch.setattr(stock_cudnn, "_types", lambda: {tf.float32, tf.float64, tf.bfloat16})
        reserves: list[Any] = []
        for op in ("CudnnRNNV3", "CudnnRNNBackpropV3"):
            monkeypatch.setattr(tf.raw_ops, op, as_on_a_gpu(getattr(tf.raw_ops, op), reserves))

    return turn_off


def as_on_a_gpu(op: Any, reserves: list[Any]) -> Any:
    """TensorFlow's op, or its gradient op, with what was seen of its kernels on a GPU.

    A call for which the kernel does not pad is refused here: the kernel keeps cuDNN's descriptor
    for all calls of the same shapes, whether they are padded or not. A projection is an error. What
    only an LSTM has, and in double the steps past a length, are arbitrary numbers, here NaN. The
    gradient op writes to reserve_space, so no other call may have it.
    """

    def call(*, input: tf.Tensor, sequence_lengths: tf.Tensor, time_major: bool, **other: Any):
        assert not other.get("num_proj")
        steps = tf.shape(input)[0 if time_major else 1]
        is_padded = not time_major or tf.reduce_any(sequence_lengths != steps)
        is_step = tf.sequence_mask(sequence_lengths, steps)
        is_step = (tf.transpose(is_step) if time_major else is_step)[:, :, tf.newaxis]

        def spoiled(name: str, value: tf.Tensor) -> tf.Tensor:
            if name in ("output_c", "input_c_backprop") and other["rnn_mode"] != "lstm":
                return value * np.nan
            is_sequence = name in ("output", "input_backprop")
            if is_sequence and input.dtype == tf.float64:
                return tf.where(is_step, value, np.nan)
            return value

        @tf.custom_gradient
        def spoiling(value: tf.Tensor) -> Any:
            return tf.identity(value), lambda grad: spoiled("input_backprop", grad)

        with tf.control_dependencies([tf.debugging.Assert(is_padded, ["not padded"])]):
            x = spoiling(input)
        lengths = {"sequence_lengths": sequence_lengths, "time_major": time_major}
        if "reserve_space" in other:  # to which the gradient op writes
            assert not any(other["reserve_space"] is r for r in reserves)
            reserves.append(other["reserve_space"])
        found = op(input=x, **lengths, **other)
        reserves.append(getattr(found, "reserve_space", None))
        return type(found)(*(spoiled(n, v) for n, v in found._asdict().items()))

    return call


def ops_in(function: Any) -> set[str]:
    """The types of the ops of a concrete function."""
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    return {node.op for node in nodes}


def is_cudnn(types: set[str]) -> bool:
    """Whether an op of TensorFlow's name computes, and nothing else of ours."""
    return "CudnnRNNV3" in types and not any(t.startswith("TfLstmOps>") for t in types)


def results(layer: Any, x: Any, mask: Any) -> list[np.ndarray]:
    """The outputs of a call, and the gradients of the input and the weights."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = tf.nest.flatten(layer(x, mask=mask))
        loss = tf.add_n([tf.reduce_sum(o * o) for o in outputs])
    return [*outputs, *tape.gradient(loss, [x, *layer.trainable_variables])]


def assert_close(got: list[Any], want: list[Any]) -> None:
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=0, atol=TOLERANCE)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("layer", LAYERS)
def test_layer(layer, options, mask, traced, rng, turn_off):
    layer = LAYERS[layer](H, bias_initializer="normal", **OPTIONS[options])
    x = tf.constant(rng.normal(size=(B, T, I)), tf.float32)
    mask = None if MASKS[mask] is None else tf.constant(np.array(MASKS[mask], bool))
    want = results(layer, x, mask)
    turn_off()
    if not traced:
        assert_close(results(layer, x, mask), want)
        return
    spec = tf.TensorSpec([None, None, I])
    function = tf.function(lambda x: results(layer, x, mask))
    concrete = function.get_concrete_function(spec)
    assert is_cudnn(ops_in(concrete))
    assert_close(function(x), want)


def test_unknown_sizes(rng, turn_off):
    """The size of the input is that of the kernel."""
    layer = LSTM(H)
    x = tf.constant(rng.normal(size=(B, T, I)), tf.float32)
    want = layer(x)
    turn_off()
    concrete = tf.function(layer).get_concrete_function(tf.TensorSpec([None, None, None]))
    assert is_cudnn(ops_in(concrete))
    assert_close([concrete(x)], [want])
    with pytest.raises(tf.errors.InvalidArgumentError):
        concrete(x[:, :, 1:])


@pytest.mark.parametrize(
    "options", [{"use_peephole": True}, {"cell_clip": 0.5}, {"projection_size": 2}], ids=str
)
def test_what_cudnn_lacks_takes_plain_ops(options, rng, turn_off):
    layer = LSTM(H, **options)
    x = tf.constant(rng.normal(size=(B, T, I)), tf.float32)
    want = results(layer, x, None)
    turn_off()
    assert layer.gpu_path == "plain ops"
    function = tf.function(layer).get_concrete_function(x)
    assert not any(t.startswith(("TfLstmOps>", "Cudnn")) for t in ops_in(function))
    assert_close(results(layer, x, None), want)


def arguments(
    rng: np.random.Generator, mode: str, dtype: str = "float32", **options: Any
) -> dict[str, Any]:
    """Of CudnnRNNV3: two layers, both directions."""
    size = raw_ops.CudnnRNNParamsSize(
        num_layers=2, num_units=H, input_size=I, T=dtype, S=tf.int32, rnn_mode=mode,
        direction="bidirectional", num_proj=options.get("num_proj", 0),
    )  # fmt: skip

    def draw(*shape: int) -> tf.Tensor:
        return tf.constant(rng.normal(size=shape), dtype)

    time_major = options.get("time_major", True)
    state = (4, B) if time_major else (B, 4)
    return {
        "input": draw(T, B, I) if time_major else draw(B, T, I),
        "input_h": draw(*state, options.get("num_proj") or H),
        "input_c": draw(*state, H) if mode == "lstm" else tf.zeros([], dtype),
        "params": draw(int(size[0])),
        "rnn_mode": mode,
        "direction": "bidirectional",
        **options,
    }


def both_passes(version: str, given: dict[str, Any]) -> list[Any]:
    """The results of an op and of its gradient op, without the reserve."""
    found = getattr(raw_ops, f"CudnnRNN{version}")(**given, is_training=True)
    names = ("output", "output_h", "output_c")
    forward = {name: getattr(found, name) for name in names}
    grads = {f"{name}_backprop": tf.sin(value) for name, value in forward.items()}
    saved = {"reserve_space": found.reserve_space}
    if version:
        saved["host_reserved"] = found.host_reserved
    backward = getattr(raw_ops, f"CudnnRNNBackprop{version}")
    return [*forward.values(), *backward(**given, **forward, **grads, **saved)]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])
@pytest.mark.parametrize("time_major", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_raw_op(dtype, time_major, mode, traced, rng, turn_off):
    """With a row of length 0, and states of four pseudo-layers."""
    lengths = tf.constant([T, 0, 2], tf.int32)
    given = arguments(rng, mode, dtype, sequence_lengths=lengths, time_major=time_major)
    want = both_passes("V3", given)
    turn_off()
    call = tf.function(lambda: both_passes("V3", given)) if traced else None
    if call:
        assert is_cudnn(ops_in(call.get_concrete_function()))
    assert_close(call() if call else both_passes("V3", given), want)


@pytest.mark.parametrize("mode", ["lstm", "gru"])
@pytest.mark.parametrize("time_major", [True, False])
def test_gradients_in_double(time_major, mode, rng, turn_off):
    """On a tape, which runs TensorFlow's own gradient."""
    lengths = tf.constant([T, 1, 2], tf.int32)
    given = arguments(rng, mode, "float64", sequence_lengths=lengths, time_major=time_major)

    def gradients() -> list[tf.Tensor]:
        inputs = [given[n] for n in ("input", "input_h", "input_c", "params")]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.add_n([tf.reduce_sum(v * v) for v in raw_ops.CudnnRNNV3(**given)[:3]])
        return tape.gradient(loss, inputs)

    want = gradients()
    turn_off()
    assert_close(gradients(), want)


def test_a_second_backward_pass(rng, turn_off):
    layer = LSTM(H)
    x = tf.constant(rng.normal(size=(B, T, I)), tf.float32)

    def gradients() -> list[tf.Tensor]:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            loss = tf.reduce_sum(layer(x) ** 2)
        return [tape.gradient(loss, x), tape.gradient(loss, x)]

    want = gradients()
    turn_off()
    assert_close(gradients(), want)


@pytest.mark.parametrize("state", ["never run", "passed"])
def test_a_projection_is_not_tensorflows(state, rng, turn_off):
    lengths = tf.constant([T, 0, 2], tf.int32)
    given = arguments(rng, "lstm", num_proj=2, sequence_lengths=lengths)
    want = raw_ops.CudnnRNNV3(**given)[:3]
    turn_off(state)
    call = tf.function(lambda: raw_ops.CudnnRNNV3(**given)[:3])
    assert "CudnnRNNV3" not in ops_in(call.get_concrete_function())
    assert_close(call(), want)
    assert_close(raw_ops.CudnnRNNV3(**given)[:3], want)


@pytest.mark.parametrize("layer", ["StackedLSTM", "StackedGRU"])
def test_a_full_batch_then_a_shorter_one(layer, rng, turn_off):
    layer = LAYERS[layer](H, return_sequences=True)
    x = tf.constant(rng.normal(size=(B, T, I)), tf.float32)
    masks = [np.ones((B, T), bool), np.array(MASKS["right"], bool)]
    wants = [results(layer, x, mask) for mask in masks]
    turn_off()
    for mask, want in zip(masks, wants, strict=True):
        assert_close(results(layer, x, mask), want)


@pytest.mark.parametrize("version", ["", "V2", "V3"])
def test_a_full_batch_then_a_shorter_one_time_major(version, rng, turn_off):
    given = arguments(rng, "lstm")
    lengths = [[T] * B, [T, 0, 2]] if version == "V3" else [None]
    calls = [given if n is None else {**given, "sequence_lengths": n} for n in lengths]
    wants = [both_passes(version, call) for call in calls]
    turn_off()
    for call, want in zip(calls, wants, strict=True):
        assert_close(both_passes(version, call), want)


def test_after_the_self_test(rng, turn_off):
    """What cuDNN has stays TensorFlow's; a mask with gaps too."""
    turn_off("passed")
    x, mask = tf.zeros([B, T, I]), tf.constant(np.array(MASKS["holes"], bool))
    layer = tf.function(LSTM(H)).get_concrete_function(x, mask=mask)
    assert is_cudnn(ops_in(layer))
    given = arguments(rng, "lstm")
    assert is_cudnn(ops_in(tf.function(lambda: both_passes("V2", given)).get_concrete_function()))
    peephole = tf.function(LSTM(H, use_peephole=True)).get_concrete_function(x)
    assert "TfLstmOps>KerasLSTM" in ops_in(peephole)


def test_bfloat16(rng, turn_off):
    """It is computed in float32, with the gradients."""
    x = tf.constant(rng.normal(size=(B, T, I)), tf.bfloat16)
    layers = [LSTM(H, dtype="mixed_bfloat16"), StackedGRU(H, 2, dtype="mixed_bfloat16")]
    wants = [results(layer, x, None) for layer in layers]
    turn_off()
    for layer, want in zip(layers, wants, strict=True):
        assert is_cudnn(ops_in(tf.function(layer).get_concrete_function(x)))
        for got, right in zip(results(layer, x, None), want, strict=True):
            assert got.dtype == right.dtype
            difference = np.abs(tf.cast(got, tf.float32) - tf.cast(right, tf.float32)).max()
            assert difference < 2**-5 * np.abs(tf.cast(right, tf.float32)).max()


def test_lists(rng, turn_off):
    given = arguments(rng, "lstm", sequence_lengths=tf.constant([T, 0, 2], tf.int32))
    want = raw_ops.CudnnRNNV3(**given)
    turn_off()
    lists = {k: v.numpy().tolist() if tf.is_tensor(v) else v for k, v in given.items()}
    assert_close(raw_ops.CudnnRNNV3(**lists)[:3], want[:3])


@pytest.mark.parametrize("version", ["", "V2"])
def test_earlier_versions(version, rng, turn_off):
    given = arguments(rng, "lstm")
    want = both_passes(version, given)
    turn_off()
    call = tf.function(lambda: both_passes(version, given))
    assert is_cudnn(ops_in(call.get_concrete_function()))
    assert_close(call(), want)


def test_dropout_between_layers(rng, turn_off):
    """Each call in training draws a mask; inference has none."""
    turn_off()
    given = arguments(rng, "lstm", sequence_lengths=tf.fill([B], T), dropout=0.5, seed=3)
    calls = [raw_ops.CudnnRNNV3(**given).output for _ in range(2)]
    assert not np.array_equal(*calls)
    plain = raw_ops.CudnnRNNV3(**{**given, "dropout": 0.0}).output
    inference = raw_ops.CudnnRNNV3(**given, is_training=False)
    np.testing.assert_array_equal(inference.output, plain)
    assert inference.reserve_space.shape == []


def test_second_derivative(rng, turn_off):
    layer = LSTM(H)
    x = tf.constant(rng.normal(size=(B, T, I)), tf.float32)

    def second() -> tf.Tensor:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                loss = tf.reduce_sum(layer(x) ** 2)
            first = inner.gradient(loss, x)
            norm = tf.reduce_sum(first**2)
        return outer.gradient(norm, x)

    want = second()
    turn_off()
    assert_close([second()], [want])


def test_without_a_kernel_of_tensorflow_plain_ops_run(rng, turn_off, monkeypatch):
    turn_off()
    monkeypatch.setattr(stock_cudnn, "_types", frozenset)
    x = tf.constant(rng.normal(size=(B, T, I)), tf.float32)
    types = ops_in(tf.function(LSTM(H)).get_concrete_function(x))
    assert not any(t.startswith(("TfLstmOps>", "Cudnn")) for t in types)


@pytest.mark.parametrize("change", ["params", "input_h", "sequence_lengths"])
def test_wrong_arguments_have_the_errors_of_our_op(change, rng, turn_off):
    given = arguments(rng, "lstm", sequence_lengths=tf.fill([B], T))
    given[change] = given[change][:-1]
    texts = []
    for turn in (lambda: None, turn_off):
        turn()
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            raw_ops.CudnnRNNV3(**given)
        texts.append(error.value.message)
    assert texts[0] == texts[1]


def test_a_portable_export_has_plain_ops(tmp_path, turn_off):
    from tf_lstm_ops import export

    turn_off()
    model = keras.Sequential([keras.Input((T, I)), LSTM(H)])
    export.saved_model(model, tmp_path / "model", portable=True)
    loaded = tf.saved_model.load(tmp_path / "model")
    types = ops_in(loaded.signatures["serving_default"])
    assert not any(t.startswith(("TfLstmOps>", "Cudnn")) for t in types)


def test_training(rng, turn_off):
    """Keras compiles no such model with XLA, which has no CudnnRNNV3."""
    x, y = rng.normal(size=(B, T, I)), rng.normal(size=(B, 2))
    models = []
    for turn in (lambda: None, turn_off):
        turn()
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((T, I)), LSTM(H), keras.layers.Dense(2)])
        model.compile("sgd", "mse")
        model.fit(x, y, epochs=2, verbose=0, shuffle=False)
        models.append(model)
    assert models[1].layers[0].gpu_path == "cuDNN"
    assert not models[1].jit_compile
    assert_close(models[1].get_weights(), models[0].get_weights())
