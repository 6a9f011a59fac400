"""Values, gradients, shapes and errors of the op. Needs the installed package."""

import numpy as np
import pytest
import tensorflow as tf
from clip_rows import clip_rows

X = np.array([[3, 4], [0.3, -0.4], [0, 0], [-5, 1]])  # not near a norm of 1, where there is a bend
INVALID = tf.errors.InvalidArgumentError
DTYPES = pytest.mark.parametrize("dtype", [tf.float32, tf.float64])


@DTYPES
@pytest.mark.parametrize("max_norm", [0.5, 1.0, 5.5])
def test_values(dtype: tf.DType, max_norm: float) -> None:
    found = clip_rows(x=tf.constant(X, dtype), max_norm=max_norm)
    assert found.dtype == dtype
    expected = tf.clip_by_norm(tf.constant(X), max_norm, axes=[1])
    # Three roundings of half a unit: of the input, the factor and the product.
    eps = np.finfo(dtype.as_numpy_dtype).eps
    np.testing.assert_allclose(found, expected, rtol=2 * eps)


@pytest.mark.parametrize("shape", [[0, 3], [3, 0]])
def test_empty_matrices(shape: list[int]) -> None:
    assert clip_rows(x=tf.zeros(shape), max_norm=1.0).shape == shape


def loss(x: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(clip_rows(x=x, max_norm=1.0) ** 3)


def slope(x: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loss(x)
    return tape.gradient(y, x)


@DTYPES
@pytest.mark.parametrize("function", [loss, slope], ids=["first", "second"])
def test_derivatives(function, dtype: tf.DType) -> None:
    """Against central differences with steps that are small for the dtype."""
    step, error = (1e-2, 1e-3) if dtype == tf.float32 else (1e-5, 1e-8)
    found, expected = tf.test.compute_gradient(function, [tf.constant(X, dtype)], step)
    # Rounding by 1e-7 or 1e-16 divided by the step, and the third derivative times step squared.
    np.testing.assert_allclose(found[0], expected[0], atol=error)


def traced() -> tf.types.experimental.PolymorphicFunction:
    return tf.function(lambda x: clip_rows(x=x, max_norm=1.0))


def test_shapes_in_a_graph() -> None:
    def shape(given: list[int | None] | None) -> list[int | None]:
        [output] = traced().get_concrete_function(tf.TensorSpec(given)).outputs
        return output.shape.as_list()

    assert shape([None, 3]) == [None, 3]
    assert shape(None) == [None, None]
    with pytest.raises(ValueError, match="must be rank 2 but is rank 1"):
        shape([3])
    np.testing.assert_array_equal(traced()(X), clip_rows(x=X, max_norm=1.0))


def test_wrong_shapes() -> None:
    vector = tf.zeros([3])
    with pytest.raises(INVALID, match="x must be a matrix"):
        clip_rows(x=vector, max_norm=1.0)
    # A graph that does not know the shape before it runs.
    graph = traced().get_concrete_function(tf.TensorSpec(None))
    with pytest.raises(INVALID, match="x must be a matrix"):
        graph(vector)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_wrong_norm(value: float) -> None:
    with pytest.raises(INVALID, match="max_norm must be positive"):
        clip_rows(x=tf.constant(X), max_norm=value)


def test_wrong_dtype() -> None:
    with pytest.raises((INVALID, TypeError), match=r"half|float16"):
        clip_rows(x=tf.constant(X, tf.float16), max_norm=1.0)


def test_xla_has_no_kernel() -> None:
    compiled = tf.function(lambda x: clip_rows(x=x, max_norm=1.0), jit_compile=True)
    with pytest.raises(INVALID, match="unsupported operations"):
        compiled(tf.constant(X))
