"""Calls of `raw_ops` on an NVIDIA GPU: TensorFlow's own CudnnRNNV3 runs, with the results of our
ops, whether our kernels are on or off. conftest.py has the GPU."""

import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import raw_ops

from .stock_calls import B, T, arguments, assert_close, both_passes, is_cudnn, ops_in


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


@pytest.mark.parametrize("version", ["", "V2", "V3"])
def test_a_full_batch_then_a_shorter_one_time_major(version, rng, turn_off):
    given = arguments(rng, "lstm")
    lengths = [[T] * B, [T, 0, 2]] if version == "V3" else [None]
    calls = [given if n is None else {**given, "sequence_lengths": n} for n in lengths]
    wants = [both_passes(version, call) for call in calls]
    turn_off()
    for call, want in zip(calls, wants, strict=True):
        assert_close(both_passes(version, call), want)


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
