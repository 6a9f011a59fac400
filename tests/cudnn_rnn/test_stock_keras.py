"""The stock layers of Keras on its cuDNN path: the installed Keras, made to believe that there is a
GPU, emits CudnnRNNV3, and that equals its own CPU path."""

import importlib
import unittest.mock
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops  # noqa: F401  (registers the kernels)

rnn = importlib.import_module("keras.src.backend.tensorflow.rnn")  # not its function of that name
LAYERS = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}
BATCH, TIME, INPUTS, UNITS = 4, 6, 3, 5
# Keras asserts right padding and a valid step in every row.
MASK = np.arange(TIME) < np.array([[6], [2], [5], [1]])
# Both paths in float64; sums of some ten terms through six steps, in another order.
TOLERANCE = {"rtol": 1e-12, "atol": 1e-13}


@pytest.fixture(autouse=True)
def gpu_check_lifted(monkeypatch):
    """Keras puts the GRU's gates into cuDNN's order where TensorFlow was built for CUDA."""
    monkeypatch.setattr(rnn, "_is_gpu_available", lambda: True)
    build = {**tf.sysconfig.get_build_info(), "is_cuda_build": True}
    monkeypatch.setattr(tf.sysconfig, "get_build_info", lambda: build)


@pytest.fixture(autouse=True)
def gru_states_in_a_list(monkeypatch):
    """Keras 3.8 returns the GRU's state without a list, on every GPU too: its layer then takes the
    rows for states."""
    original = rnn._cudnn_gru

    def mended(*arguments, **options):
        last, outputs, states = original(*arguments, **options)
        return last, outputs, states if isinstance(states, list) else [states]

    monkeypatch.setattr(rnn, "_cudnn_gru", mended)


def cudnn_ops(traced: Any) -> list[str]:
    """The mode of each CudnnRNNV3 in the graph, whatever functions it is nested in."""
    graph = traced.graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    return [n.attr["rnn_mode"].s.decode() for n in nodes if n.op == "CudnnRNNV3"]


def make_pair(kind: str, mask: Any = None, **options: Any) -> tuple[Any, Any]:
    """The same layer with the same weights, once on the cuDNN path and once on the CPU path.

    cuDNN leaves zeros where the mask is False; the CPU path does with zero_output_for_mask. With
    use_cudnn=True Keras raises an error instead of leaving its cuDNN path silently."""
    options = {"dtype": "float64", "bias_initializer": "glorot_uniform", **options}
    cudnn = LAYERS[kind](UNITS, use_cudnn=True, **options)
    if mask is not None and options.get("return_sequences"):
        options["zero_output_for_mask"] = True
    cpu = LAYERS[kind](UNITS, use_cudnn=False, **options)
    for layer in (cudnn, cpu):
        layer.build((BATCH, TIME, INPUTS))
    if kind == "lstm":
        cudnn.set_weights([w + 0.1 for w in cudnn.get_weights()])
    cpu.set_weights(cudnn.get_weights())
    return cudnn, cpu


def make_inputs(rng: np.random.Generator) -> tf.Tensor:
    return tf.constant(rng.normal(size=(BATCH, TIME, INPUTS)))


def value_and_grads(
    layer: Any, x: tf.Tensor, modes: Sequence[str] = (), **arguments: Any
) -> list[tf.Tensor]:
    """Results, then the gradients of their squares' sum by input, initial state and weights.

    modes: of the CudnnRNNV3 that must be in the graph. Without any, the layer is called eagerly,
      which takes less time, and must not call that op."""
    watched = [x, *arguments.get("initial_state", []), *(w.value for w in layer.trainable_weights)]

    def function():
        with tf.GradientTape() as tape:
            tape.watch(watched)
            results = tf.nest.flatten(layer(x, **arguments))
            loss = tf.add_n([tf.reduce_sum(a**2) for a in results])
        return [*results, *tape.gradient(loss, watched)]

    if not modes:
        error = AssertionError("CudnnRNNV3 on the CPU path")
        with unittest.mock.patch.object(tf.raw_ops, "CudnnRNNV3", side_effect=error):
            return function()
    traced = tf.function(function).get_concrete_function()
    assert cudnn_ops(traced) == list(modes)
    return traced()


def assert_close(got: Any, want: Any) -> None:
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        assert np.any(b), k
        np.testing.assert_allclose(a, b, **TOLERANCE, err_msg=str(k))


OPTIONS = {
    "defaults": {},
    "sequences": {"return_sequences": True},
    "state": {"return_state": True},
    "sequences and state": {"return_sequences": True, "return_state": True},
    "backwards": {"go_backwards": True},
    "backwards, sequences": {"go_backwards": True, "return_sequences": True, "return_state": True},
    "dropout": {"dropout": 0.4, "seed": 1, "return_sequences": True},
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", LAYERS)
def test_equals_the_cpu_path(rng, kind, options, masked):
    mask = MASK if masked else None
    cudnn, cpu = make_pair(kind, mask, **OPTIONS[options])
    x = make_inputs(rng)
    arguments = {"mask": mask, "training": "dropout" in options}
    assert_close(
        value_and_grads(cudnn, x, [kind], **arguments), value_and_grads(cpu, x, **arguments)
    )


@pytest.mark.parametrize("kind", LAYERS)
def test_initial_state(rng, kind):
    cudnn, cpu = make_pair(kind, return_state=True)
    x = make_inputs(rng)
    count = len(cudnn(x)) - 1
    states = [tf.constant(rng.normal(size=(BATCH, UNITS))) for _ in range(count)]
    arguments = {"initial_state": states, "mask": MASK}
    assert_close(
        value_and_grads(cudnn, x, [kind], **arguments), value_and_grads(cpu, x, **arguments)
    )


@pytest.mark.parametrize("kind", ["lstm", pytest.param("gru", marks=pytest.mark.full)])
def test_float32(rng, kind):
    cudnn, cpu = make_pair(kind, MASK, dtype="float32", return_sequences=True)
    x = tf.cast(make_inputs(rng), tf.float32)
    pairs = zip(
        value_and_grads(cudnn, x, [kind], mask=MASK),
        value_and_grads(cpu, x, mask=MASK),
        strict=True,
    )
    for a, b in pairs:
        # Roundoff of 6e-8 in sums of up to 24 terms, on both sides.
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=5e-6 * np.max(np.abs(b)))


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize("kind", LAYERS)
def test_time_major(rng, kind, go_backwards, time_major):
    """Layers have no such argument; what they call has."""
    cudnn, cpu = make_pair(
        kind, return_sequences=True, return_state=True, go_backwards=go_backwards
    )
    x = make_inputs(rng)
    want, *want_states = cpu(x)
    weights = [cudnn.cell.kernel, cudnn.cell.recurrent_kernel, cudnn.cell.bias]
    states = [tf.zeros([BATCH, UNITS], tf.float64) for _ in want_states]

    def function(x):
        return getattr(rnn, kind)(
            tf.transpose(x, [1, 0, 2]) if time_major else x,
            *states,
            None,
            *weights,
            keras.activations.tanh,
            keras.activations.sigmoid,
            return_sequences=True,
            go_backwards=go_backwards,
            time_major=time_major,
        )

    assert cudnn_ops(tf.function(function).get_concrete_function(x)) == [kind]
    _, got, got_states = function(x)
    assert_close(
        [tf.transpose(got, [1, 0, 2]) if time_major else got, *got_states], [want, *want_states]
    )


@pytest.mark.parametrize(
    ("kind", "sequences", "masked"),
    [
        ("lstm", True, True),
        pytest.param("gru", False, False, marks=pytest.mark.full),
        pytest.param("gru", False, True, marks=pytest.mark.full),
        *(
            pytest.param(*rest, marks=pytest.mark.slow)
            for rest in (
                ("lstm", False, False),
                ("lstm", False, True),
                ("lstm", True, False),
                ("gru", True, False),
                ("gru", True, True),
            )
        ),
    ],
)
def test_bidirectional(rng, kind, sequences, masked):
    mask = MASK if masked else None
    pair = make_pair(kind, mask, return_sequences=sequences)
    cudnn, cpu = (keras.layers.Bidirectional(layer, dtype="float64") for layer in pair)
    for layer, use_cudnn in ((cudnn, True), (cpu, False)):
        # Keras 3.8 makes both directions from the layer's config, which lacks this.
        layer.forward_layer.use_cudnn = layer.backward_layer.use_cudnn = use_cudnn
        layer.build((BATCH, TIME, INPUTS))
    cpu.set_weights(cudnn.get_weights())
    x = make_inputs(rng)
    got = value_and_grads(cudnn, x, [kind, kind], mask=mask)
    assert_close(got, value_and_grads(cpu, x, mask=mask))


@pytest.mark.full
@pytest.mark.parametrize("kind", LAYERS)
def test_training_with_fit(rng, kind, monkeypatch):
    """A model with a Masking layer, two epochs of both paths: the same losses and weights."""
    modes: list[str] = []
    original = tf.raw_ops.CudnnRNNV3

    def record(**arguments):
        modes.append(arguments["rnn_mode"])
        return original(**arguments)

    monkeypatch.setattr(tf.raw_ops, "CudnnRNNV3", record)
    x = np.where(MASK[..., None], rng.normal(size=(BATCH, TIME, INPUTS)), 0)
    losses, weights = [], []
    for layer in make_pair(kind):
        dense = keras.layers.Dense(1, dtype="float64", kernel_initializer="ones")
        masking = keras.layers.Masking(dtype="float64")
        given = keras.Input((TIME, INPUTS), dtype="float64")
        model = keras.Sequential([given, masking, layer, dense])
        model.compile(keras.optimizers.SGD(0.1), "mse")
        before = len(modes)
        history = model.fit(x, np.ones(BATCH), batch_size=2, epochs=2, shuffle=False, verbose=0)
        assert (len(modes) > before) == bool(layer.use_cudnn)
        losses.append(history.history["loss"])
        weights.append(model.get_weights())
    assert set(modes) == {kind}
    # Keras sums losses in float32.
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-6)
    assert losses[0][1] < losses[0][0]
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)  # four steps of SGD


def test_masks_that_keras_refuses_are_no_matter_of_the_op():
    """Left padding: Keras' assertion, in a graph; the op itself has not been asked."""
    cudnn, _ = make_pair("lstm")
    x = tf.zeros([BATCH, TIME, INPUTS], tf.float64)
    with pytest.raises(tf.errors.InvalidArgumentError, match="right-padded"):
        tf.function(lambda: cudnn(x, mask=MASK[:, ::-1]))()
