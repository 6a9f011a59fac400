"""Values, gradients, shapes and errors of the op with two inputs."""

import numpy as np
import pytest
import tensorflow as tf
from clip_rows import scale_rows

X = np.array([[3.0, 4.0, 1.0], [0.5, -0.25, 2.0]])
SCALE = np.array([2.0, -0.5])
MESSAGE = "scale must have an element for each row of x"


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_values(dtype: tf.DType) -> None:
    found = scale_rows(x=tf.constant(X, dtype), scale=tf.constant(SCALE, dtype))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, X * SCALE[:, None])  # exact products


def test_derivatives() -> None:
    """Of first and second order, against central differences."""

    def slope(x: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch([x, scale])
            y = tf.reduce_sum(scale_rows(x=x, scale=scale) ** 3)
        dx, dscale = tape.gradient(y, [x, scale])
        return tf.concat([tf.reshape(dx, [-1]), dscale], 0)

    for function in (lambda x, scale: scale_rows(x=x, scale=scale), slope):
        found, expected = tf.test.compute_gradient(function, [X, SCALE], 1e-4)
        for each, other in zip(found, expected, strict=True):
            # Third derivatives below 1e2 times the step squared.
            np.testing.assert_allclose(each, other, atol=1e-6)


def test_shapes_in_a_graph() -> None:
    graph = tf.function(lambda x, scale: scale_rows(x=x, scale=scale))

    def shape(*given: list[int | None]) -> list[int | None]:
        concrete = graph.get_concrete_function(*map(tf.TensorSpec, given))
        return concrete.outputs[0].shape.as_list()

    assert shape([None, 3], [2]) == [None, 3]
    with pytest.raises(ValueError, match="must be rank 1 but is rank 2"):
        shape([2, 3], [2, 1])
    with pytest.raises(ValueError, match=MESSAGE):
        shape([2, 3], [3])


@pytest.mark.parametrize("size", [0, 1, 3])
def test_wrong_sizes(size: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=MESSAGE):
        scale_rows(x=tf.constant(X), scale=tf.zeros(size, tf.float64))
