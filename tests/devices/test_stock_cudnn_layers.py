"""Layers on an NVIDIA GPU: TensorFlow's own CudnnRNNV3 runs, with the results of our ops, whether
our kernels are on or off. conftest.py has the GPU."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.keras import GRU, LSTM, StackedGRU, StackedLSTM
from tf_lstm_ops.raw_ops import stock_cudnn

from .stock_calls import (
    MASKS,
    B,
    H,
    I,
    T,
    arguments,
    assert_close,
    both_passes,
    is_cudnn,
    ops_in,
    results,
)

STOCK = tf.raw_ops.CudnnRNNV3  # which conftest.py replaces
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


@pytest.mark.parametrize("is_layer", [True, False])
def test_a_second_backward_pass_in_a_graph(is_layer, rng, turn_off):
    """Each has a reserve of its own, to which cuDNN writes. Keras layers and TensorFlow's op."""
    layer = LSTM(H)
    x = tf.constant(rng.normal(size=(B, T, I)), tf.float32)
    layer(x)
    params = tf.zeros([4 * H * (I + H) + 8 * H])
    state = tf.zeros([B, 1, H])

    @tf.function
    def gradients(x: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = layer(x) if is_layer else stock(input=x, input_h=state, input_c=state)[0]
            losses = tf.reduce_sum(y**2), tf.reduce_sum(y)
        return [tape.gradient(loss, x) for loss in losses]

    def stock(**given: tf.Tensor) -> list[tf.Tensor]:
        return STOCK(**given, params=params, sequence_lengths=tf.fill([B], T), time_major=False)

    turn_off()
    function = gradients.get_concrete_function(x)
    passes = [op for op in function.graph.get_operations() if op.type == "CudnnRNNBackpropV3"]
    assert len(passes) == 2
    reserves = {op.inputs[-2].name for op in passes}  # reserve_space, host_reserved
    assert len(reserves) == 2
    assert not any(tensor.op.type == "CudnnRNNV3" for op in passes for tensor in op.inputs[-2:-1])
    function(x)
    padding = [function.graph.get_operation_by_name(name.split(":")[0]) for name in reserves]
    assert all(op.type == "StridedSlice" for op in padding)


@pytest.mark.parametrize("layer", ["StackedLSTM", "StackedGRU"])
def test_a_full_batch_then_a_shorter_one(layer, rng, turn_off):
    layer = LAYERS[layer](H, return_sequences=True)
    x = tf.constant(rng.normal(size=(B, T, I)), tf.float32)
    masks = [np.ones((B, T), bool), np.array(MASKS["right"], bool)]
    wants = [results(layer, x, mask) for mask in masks]
    turn_off()
    for mask, want in zip(masks, wants, strict=True):
        assert_close(results(layer, x, mask), want)


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


def test_a_portable_export_has_plain_ops(tmp_path, turn_off):
    from tf_lstm_ops import export

    turn_off()
    model = keras.Sequential([keras.Input((T, I)), LSTM(H)])
    export.saved_model(model, tmp_path / "model", portable=True)
    loaded = tf.saved_model.load(tmp_path / "model")
    types = ops_in(loaded.signatures["serving_default"])
    assert not any(t.startswith(("TfLstmOps>", "Cudnn")) for t in types)


@pytest.mark.full
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
