"""Inference keeps the weights as the engine packs them: whatever changes the weights, predictions
follow. The first of two equal calls packs them, the second one finds them."""

import threading
from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops import op_definitions

UNITS, INPUTS = 20, 9  # a whole vector and a rest


def layer_and_twin(kind: str) -> tuple[keras.Layer, keras.Layer]:
    """Our layer, and a stock one without anything to keep."""
    built = []
    for module in (tf_lstm_ops.keras, keras.layers):
        layer = getattr(module, kind)(UNITS, return_sequences=True)
        layer.build((None, None, INPUTS))
        built.append(layer)
    built[1].set_weights(built[0].get_weights())
    return built[0], built[1]


@pytest.fixture(params=["LSTM", "GRU"])
def pair(request: pytest.FixtureRequest) -> tuple[keras.Layer, keras.Layer]:
    keras.utils.set_random_seed(3)
    return layer_and_twin(request.param)


def assert_follows(ours: Callable, layer: keras.Layer, twin: keras.Layer, x: tf.Tensor) -> None:
    """Both calls after a change agree with stock, whose float32 sums are in another order."""
    twin.set_weights(layer.get_weights())
    want = twin(x)
    for _ in range(2):
        np.testing.assert_allclose(ours(x), want, atol=2e-6, rtol=0)


def changes(layer: keras.Layer) -> dict[str, Callable[[], object]]:
    kernel, recurrent = layer.cell.kernel, layer.cell.recurrent_kernel
    return {
        "assign": lambda: kernel.assign(kernel + 0.1),
        "assign_add": lambda: recurrent.value.assign_add(tf.fill(recurrent.shape, 0.05)),
        "one row": lambda: kernel.value.scatter_nd_update([[2]], tf.ones([1, kernel.shape[1]])),
        "a slice": lambda: recurrent.value[3, 4:9].assign(tf.fill([5], 0.3)),
        "one row again": lambda: kernel.value.scatter_nd_update([[2]], -kernel.value[2:3]),
        "set_weights": lambda: layer.set_weights([0.9 * w for w in layer.get_weights()]),
        "optimizer": lambda: keras.optimizers.SGD(0.1).apply(
            [tf.ones_like(v) for v in layer.trainable_variables], layer.trainable_variables
        ),
    }


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
def test_predictions_follow_the_weights(pair, traced: bool) -> None:
    layer, twin = pair
    x = tf.random.stateless_normal([3, 5, INPUTS], seed=[1, 2])
    ours = tf.function(lambda x: layer(x)) if traced else layer
    assert_follows(ours, layer, twin, x)
    for change in changes(layer).values():
        before = ours(x).numpy()
        change()
        assert np.abs(ours(x) - before).max() > 1e-3
        assert_follows(ours, layer, twin, x)


@pytest.mark.parametrize("units", [UNITS, 512])
@pytest.mark.parametrize("written", ["rows", "columns"])
def test_writes_behind_tensorflow(units, written) -> None:
    """Ops that write to the variable's own buffer. Of a large matrix the checksum reads 64 lines:
    it covers a 32nd of the rows, wherever they are, or the columns of a gate.
    """
    layer = tf_lstm_ops.keras.LSTM(units, return_sequences=True)
    layer.build((None, None, INPUTS))
    x = tf.random.stateless_normal([3, 5, INPUTS], seed=[1, 2])
    weights = {"kernel": layer.cell.kernel, "recurrent": layer.cell.recurrent_kernel}
    for name, weight in weights.items():
        rows, columns = weight.shape
        count = -(-rows // 32)
        everywhere = [(row, slice(None)) for row in (0, 4, rows // 2, rows - count)]
        if written == "columns":
            count = rows
            everywhere = [(0, slice(gate * units, (gate + 1) * units)) for gate in range(4)]
        for row, part in everywhere:
            before = layer(x).numpy()
            tensor = weight.value.read_value() if name == "kernel" else weight.value.value()
            added = np.zeros([count, columns], np.float32)
            added[:, part] = 0.3 * tf.random.stateless_normal([count, columns], [3, row])[:, part]
            tf.raw_ops.InplaceAdd(x=tensor, i=range(row, row + count), v=added)
            got = layer(x).numpy()
            np.testing.assert_array_equal(got, layer(x, training=True))
            if name == "kernel":
                assert np.abs(got - before).max() > 1e-3


def test_reference_variables() -> None:
    """TensorFlow 1 assigns to their buffers in place."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        rng = np.random.default_rng(0)
        values = [rng.normal(size=(n, 4 * UNITS)).astype("float32") for n in (INPUTS, UNITS)]
        variables = [tf.compat.v1.Variable(v, use_resource=False) for v in values]
        x = tf.constant(rng.normal(size=(2, 5, INPUTS)), tf.float32)
        zero, absent = tf.zeros([2, UNITS]), tf.zeros([0])

        def outputs(training: bool) -> tf.Tensor:
            return op_definitions.function("KerasLSTM")(
                x=x,
                mask=tf.zeros([0], tf.bool),
                initial_h=zero,
                initial_c=zero,
                kernel=variables[0],
                recurrent_kernel=variables[1],
                bias=absent,
                peephole=absent,
                projection=absent,
                input_dropout=absent,
                recurrent_dropout=absent,
                training=training,
            )[0]

        inference, training = outputs(False), outputs(True)
        session.run(tf.compat.v1.global_variables_initializer())
        for variable in variables:
            before = session.run(inference)
            session.run(variable.assign(variable + 0.2))
            after = session.run(inference)
            assert np.abs(after - before).max() > 1e-3
            np.testing.assert_array_equal(after, session.run(training))


def test_sequences_of_any_length_find_them(pair) -> None:
    """A single step, which by itself would not pack weights, before and after longer sequences."""
    layer, twin = pair
    twin.set_weights(layer.get_weights())
    for time in (1, 5, 1, 3, 1):
        x = tf.random.stateless_normal([3, time, INPUTS], seed=[1, time])
        np.testing.assert_allclose(layer(x), twin(x), atol=2e-6, rtol=0)


def test_layers_that_share_a_kernel_do_not_mix(pair) -> None:
    """In eager mode calls with the same attributes run on one kernel object."""
    first, _ = pair
    second, _ = layer_and_twin(type(first).__name__)
    x = tf.random.stateless_normal([3, 5, INPUTS], seed=[1, 2])
    alone = [first(x).numpy(), first(x).numpy(), second(x).numpy(), second(x).numpy()]
    assert np.abs(alone[0] - alone[2]).max() > 1e-3
    for _ in range(3):
        np.testing.assert_array_equal(first(x), alone[0])
        np.testing.assert_array_equal(second(x), alone[2])


def test_bits_are_those_of_training(pair) -> None:
    """A call that finds packed weights, and one in training, which packs them each time."""
    layer, _ = pair
    x = tf.random.stateless_normal([3, 5, INPUTS], seed=[1, 2])
    layer(x)
    np.testing.assert_array_equal(layer(x), layer(x, training=True))


def test_threads_that_predict_while_weights_change(pair) -> None:
    """Each result is that of the weights before or after a change, never of a mixture."""
    layer, _ = pair
    x = tf.random.stateless_normal([2, 4, INPUTS], seed=[1, 2])
    kernel = layer.cell.kernel
    values = [kernel.numpy(), kernel.numpy() + 0.2]
    allowed = []
    for value in values:
        kernel.assign(value)
        allowed.append(layer(x).numpy())
    predict = tf.function(lambda x: layer(x))
    predict(x)
    found: list[np.ndarray] = []

    def run() -> None:
        for _ in range(100):
            found.append(predict(x).numpy())

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for value in values:
            kernel.assign(value)
    for thread in threads:
        thread.join()
    assert len(found) == 300
    assert all(any(np.array_equal(y, a) for a in allowed) for y in found)
