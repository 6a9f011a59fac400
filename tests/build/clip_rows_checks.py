"""Checks of the example op, for a process with TensorFlow only: `clip_rows_checks.py FOLDER`.

The folder has clip_rows.py and libclip_rows.so. Prints the name of each check that passed.
"""

import sys
from collections.abc import Callable

import numpy as np
import tensorflow as tf

sys.path.insert(0, sys.argv[1])
from clip_rows import clip_rows

X = np.array([[3, 4], [0.3, -0.4], [0, 0], [-5, 1]], "float32")


def refuses(error: type[Exception], message: str, call: Callable[[], object]) -> None:
    try:
        call()
    except error as raised:
        assert message in str(raised), raised
    else:
        raise AssertionError(f"no error {message!r}")


def check_values() -> None:
    for max_norm in (0.4, 1.0, 5.5):
        expected = tf.clip_by_norm(tf.constant(X, tf.float64), max_norm, axes=[1])
        # Two roundings of float32, of the factor and of the product.
        np.testing.assert_allclose(clip_rows(x=X, max_norm=max_norm), expected, rtol=2e-7)


def check_empty_matrices() -> None:
    for shape in ([0, 3], [3, 0]):
        assert clip_rows(x=tf.zeros(shape), max_norm=1.0).shape == shape


def check_gradient() -> None:
    """Against finite differences; the rows are not near the limit, where there is a bend."""
    found, expected = tf.test.compute_gradient(lambda x: clip_rows(x=x, max_norm=1.0), [X], 1e-2)
    # Differences of float32 at steps of 0.01: 6e-8 / 0.01, and the third derivative times 1e-4.
    np.testing.assert_allclose(found[0], expected[0], atol=1e-3)


def check_second_gradient() -> None:
    def slope(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(clip_rows(x=x, max_norm=1.0) ** 3)
        return tape.gradient(loss, x)

    found, expected = tf.test.compute_gradient(slope, [X], 1e-2)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-3)


def check_shapes_in_a_function() -> None:
    def traced() -> tf.types.experimental.PolymorphicFunction:
        return tf.function(lambda x: clip_rows(x=x, max_norm=1.0))

    def shape(given: list[int | None] | None) -> list[int | None]:
        [output] = traced().get_concrete_function(tf.TensorSpec(given)).outputs
        return output.shape.as_list()

    assert shape([None, 3]) == [None, 3]
    assert shape(None) == [None, None]
    refuses(ValueError, "must be rank 2 but is rank 1", lambda: shape([3]))
    np.testing.assert_array_equal(traced()(X), clip_rows(x=X, max_norm=1.0))


def check_wrong_arguments() -> None:
    wrong = tf.errors.InvalidArgumentError
    refuses(wrong, "x must be a matrix", lambda: clip_rows(x=X[0], max_norm=1.0))
    for value in (0.0, -1.0, float("nan")):
        refuses(wrong, "max_norm must be positive", lambda v=value: clip_rows(x=X, max_norm=v))
    refuses((wrong, TypeError), "double", lambda: clip_rows(x=X.astype("float64"), max_norm=1.0))
    # A shape that is known only when the graph runs.
    function = tf.function(lambda x: clip_rows(x=x, max_norm=1.0))
    graph = function.get_concrete_function(tf.TensorSpec(None))
    refuses(wrong, "x must be a matrix", lambda: graph(tf.constant(X[0])))


def check_xla_has_no_kernel() -> None:
    """What the page says of XLA."""
    compiled = tf.function(lambda x: clip_rows(x=x, max_norm=1.0), jit_compile=True)
    refuses(tf.errors.InvalidArgumentError, "unsupported operations", lambda: compiled(X))


for name, check in [*globals().items()]:
    if name.startswith("check_"):
        check()
        print(name)
