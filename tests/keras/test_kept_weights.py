"""Inference keeps the weights as the engine packs them: whatever changes the weights, predictions
follow. The first of two equal calls packs them, the second one finds them."""

import itertools
import threading
from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops import op_definitions

UNITS, INPUTS = 20, 9  # a whole vector and a rest
WIDE = 70  # units of weights that others write to


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


def elements(shape: tuple[int, int], count: int) -> list[tuple[int, int]]:
    """The corners of a matrix, and others at random."""
    rows, columns = shape
    rng = np.random.default_rng(rows)
    others = [(rng.integers(rows), rng.integers(columns)) for _ in range(count)]
    return [(0, 0), (0, columns - 1), (rows - 1, 0), (rows - 1, columns - 1), *others]


@pytest.mark.parametrize("units", [WIDE, 512])
def test_writes_of_one_element_behind_tensorflow(units) -> None:
    """An op that writes to the variable's own buffer."""
    layer = tf_lstm_ops.keras.LSTM(units, return_sequences=True)
    layer.build((None, None, INPUTS))
    x = tf.random.stateless_normal([3, 5, INPUTS], seed=[1, 2])
    for weight in (layer.cell.kernel, layer.cell.recurrent_kernel):
        for row, column in elements(weight.shape, 10):
            before = layer(x).numpy()
            added = np.zeros([1, weight.shape[1]], np.float32)
            added[0, column] = 3
            tf.raw_ops.InplaceAdd(x=weight.value.read_value(), i=[row], v=added)
            got = layer(x).numpy()
            np.testing.assert_array_equal(got, layer(x, training=True))
            assert np.abs(got - before).max() > 0


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_changed_signs_do_not_cancel(dtype) -> None:
    """In a hash of products the sign, the highest bit of a word, may meet another one."""
    layer = tf_lstm_ops.keras.GRU(4, return_sequences=True, dtype=dtype)
    layer.build((None, None, 2))
    x = tf.random.stateless_normal([3, 5, 2], seed=[1, 2], dtype=dtype)
    for weight in (layer.cell.kernel, layer.cell.recurrent_kernel):
        given = weight.numpy()
        for at in itertools.combinations(range(given.size), 2):
            changed = given.copy()
            changed.flat[list(at)] *= -1
            for value in (given, changed):
                weight.assign(value)
                got = layer(x)
            np.testing.assert_array_equal(got, layer(x, training=True))


def kernel_call(x: tf.Tensor, kernel: tf.Tensor, recurrent: tf.Tensor, training: bool) -> tf.Tensor:
    """The outputs of the op of an LSTM."""
    zero, absent = tf.zeros([2, WIDE]), tf.zeros([0])
    return op_definitions.function("KerasLSTM")(
        x=x,
        mask=tf.zeros([0], tf.bool),
        initial_h=zero,
        initial_c=zero,
        kernel=kernel,
        recurrent_kernel=recurrent,
        bias=absent,
        peephole=absent,
        projection=absent,
        input_dropout=absent,
        recurrent_dropout=absent,
        training=training,
    )[0]


def aligned(rows: int) -> np.ndarray:
    """Random weights that TensorFlow takes without a copy."""
    rng = np.random.default_rng(rows)
    words = np.zeros(rows * 4 * WIDE + 16, np.float32)
    begin = -words.ctypes.data % 64 // 4
    matrix = words[begin : begin + rows * 4 * WIDE].reshape(rows, 4 * WIDE)
    matrix[:] = rng.normal(size=matrix.shape)
    return matrix


@pytest.mark.parametrize("source", ["numpy_function", "feed_dict"])
def test_arrays_that_numpy_changes_in_place(source) -> None:
    kernel, recurrent = aligned(INPUTS), aligned(WIDE)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        if source == "feed_dict":
            given = [tf.compat.v1.placeholder(tf.float32, a.shape) for a in (kernel, recurrent)]
            fed = dict(zip(given, (kernel, recurrent), strict=True))
        else:
            given = [tf.numpy_function(lambda a=a: a, [], tf.float32) for a in (kernel, recurrent)]
            fed = {}
        x = tf.random.stateless_normal([2, 5, INPUTS], seed=[1, 2])
        outputs = [kernel_call(x, *given, training) for training in (False, True)]
        before = session.run(outputs[0], fed)
        for weight in (kernel, recurrent):
            for at in elements(weight.shape, 10):
                weight[at] += 3
                got = session.run(outputs[0], fed)
                np.testing.assert_array_equal(got, session.run(outputs[1], fed))
                assert np.abs(got - before).max() > 0
                before = got


@pytest.mark.torch
def test_variables_that_share_memory_with_torch() -> None:
    torch = pytest.importorskip("torch")
    layer = tf_lstm_ops.keras.LSTM(WIDE)
    layer.build((None, None, INPUTS))
    x = tf.random.stateless_normal([2, 5, INPUTS], seed=[1, 2])
    for weight in (layer.cell.kernel, layer.cell.recurrent_kernel):
        shared = torch.from_dlpack(tf.experimental.dlpack.to_dlpack(weight.value.read_value()))
        for at in elements(weight.shape, 10):
            before = layer(x).numpy()
            shared[at] += 3
            got = layer(x).numpy()
            np.testing.assert_array_equal(got, layer(x, training=True))
            assert np.abs(got - before).max() > 0


def test_a_later_call_may_have_the_same_memory_for_other_weights() -> None:
    """TensorFlow reuses the memory of a tensor that is gone."""
    x = tf.random.stateless_normal([2, 5, INPUTS], seed=[1, 2])
    recurrent = tf.constant(aligned(WIDE))
    for seed in range(5):
        kernel = tf.random.stateless_normal([INPUTS, 4 * WIDE], seed=[seed, 0])
        got = kernel_call(x, kernel, recurrent, False)
        np.testing.assert_array_equal(got, kernel_call(x, kernel, recurrent, True))
        del kernel


def test_reference_variables() -> None:
    """TensorFlow 1 assigns to their buffers in place. With one-hot inputs SGD changes one row."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        values = [aligned(rows) for rows in (INPUTS, WIDE)]
        variables = [tf.compat.v1.Variable(v, use_resource=False) for v in values]
        row = tf.compat.v1.placeholder(tf.int32, [])
        x = tf.one_hot(tf.fill([2, 3], row), INPUTS)
        inference, training = (kernel_call(x, *variables, value) for value in (False, True))
        steps = [variable.assign(variable + 0.01) for variable in variables]
        gradient = tf.one_hot(tf.fill([1], row), INPUTS, axis=0) * tf.ones([1, 4 * WIDE])
        steps.append(tf.raw_ops.ApplyGradientDescent(var=variables[0], alpha=0.1, delta=gradient))
        session.run(tf.compat.v1.global_variables_initializer())
        for step in steps:
            for index in range(INPUTS):
                before = session.run(inference, {row: index})
                session.run(step, {row: index})
                after = session.run(inference, {row: index})
                assert np.abs(after - before).max() > 0
                np.testing.assert_array_equal(after, session.run(training, {row: index}))


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
