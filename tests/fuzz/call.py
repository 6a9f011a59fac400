"""A drawn call: what is run, how, and what must come of it."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from empties import leave_nan
from sums import tf_weighted_sum, weighted_sum
from tf_lstm_ops import composite

Array = np.ndarray
Shape = tuple[int, ...]

# Enough to tell a right result from a wrong one; how exact results are is shown elsewhere. Sums of
# up to 40 terms and eight steps through three layers, in the roundoff of each type.
TOLERANCE = {"half": 4e-2, "bfloat16": 8e-1, "float32": 5e-5, "float64": 1e-11}
# By complex step: exact to rounding, which grows with the second derivatives.
SECOND_ORDER = 1e-9

REFUSALS = (tf.errors.InvalidArgumentError, ValueError, TypeError, tf.errors.ResourceExhaustedError)


class Derivatives(NamedTuple):
    """What a right call in float64 is differentiated by.

    Attributes:
      inputs: positions of the tensors to differentiate by.
      outputs: how many of the first outputs are differentiated.
      backward: the oracle: from the values of those inputs, and the gradients of those outputs, to
        the gradients of the inputs. It takes complex numbers.
    """

    inputs: Sequence[int]
    outputs: int
    backward: Callable[[Sequence[Array], Sequence[Array]], Sequence[Array]]


class Call(NamedTuple):
    """A call of an op.

    Attributes:
      name: what is called, for the count.
      run: calls it with the tensors, in their order.
      tensors: its inputs.
      errors: patterns of texts. An error tells one of them; with none the call must be accepted.
        None where both an error and a result are right.
      want: the oracle's results; None for an output whose values the oracle does not give. `want`
        itself is None where the oracle gives none.
      dtype: of the results, for the tolerance.
      how: ways to run it besides eagerly: "known" and "unknown" shapes in a graph, "composite". The
        composites leave most checks to TensorFlow's own ops; only right calls run as them.
      derivatives: None where the call is not differentiated.
      shapes: of the results, which are finite; None for a result that is not checked. `shapes`
        itself is None where `want` says more, or only the acceptance is checked.
    """

    name: str
    run: Callable[..., Any]
    tensors: Sequence[Any]
    errors: Sequence[str] | None = ()
    want: Callable[[], Sequence[Array | None]] | None = None
    dtype: str = "float64"
    how: Sequence[str] = ("known", "unknown")
    derivatives: Derivatives | None = None
    shapes: Sequence[Shape | None] | None = None


def execute(call: Call, how: str) -> list[Any]:
    """Runs the call eagerly, in a graph or as plain ops."""
    if how == "composite":
        with composite.plain_ops():
            return flat(call.run(*call.tensors))
    if how == "eager":
        return flat(call.run(*call.tensors))
    specs = [tf.TensorSpec(t.shape if how == "known" else None, t.dtype) for t in call.tensors]
    return flat(tf.function(call.run, autograph=False).get_concrete_function(*specs)(*call.tensors))


def ways(call: Call) -> list[str]:
    """How the call may be run besides eagerly."""
    is_right = call.errors is not None and not call.errors
    return [how for how in call.how if how != "composite" or is_right]


def flat(results: Any) -> list[Any]:
    return tf.nest.flatten(results)


def check(call: Call, how: str) -> bool:
    """Runs the call and checks what comes of it. Returns whether it was accepted.

    Raises:
      AssertionError: the call was accepted or refused wrongly, or a result is wrong.
    """
    if how == "eager":
        leave_nan([t for t in call.tensors if t.dtype.is_floating])
    try:
        results = execute(call, how)
    except REFUSALS as error:
        text = str(error)
        assert call.errors is None or call.errors, f"a right call was refused: {text}"
        # In a graph TensorFlow's own shape functions may refuse stock ops with their texts.
        if call.errors and not (how == "known" and call.name.startswith("stock")):
            assert any(re.search(p, text) for p in call.errors), f"{text}, not {call.errors}"
        return False
    assert not call.errors, f"a wrong call was accepted; expected {call.errors}"
    if call.want is not None:
        assert_close(results, call.want(), TOLERANCE[call.dtype])
    if call.shapes is not None:
        assert_finite(results, call.shapes)
    return True


def assert_finite(got: Sequence[Any], shapes: Sequence[Shape | None]) -> None:
    for k, (a, shape) in enumerate(zip(got, shapes, strict=True)):
        if shape is not None:
            assert tuple(a.shape) == shape, f"result {k} has shape {a.shape}, not {shape}"
            assert np.isfinite(tf.cast(a, tf.float64)).all(), f"result {k} is not finite"


def assert_close(got: Sequence[Any], want: Sequence[Array | None], tolerance: float) -> None:
    assert len(got) == len(want), f"{len(got)} results, not {len(want)}"
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        if b is None:
            continue
        a = tf.cast(a, tf.float64).numpy()
        assert a.shape == np.shape(b), f"result {k} has shape {a.shape}, not {np.shape(b)}"
        bound = tolerance * max(1.0, np.abs(b).max(initial=0.0))
        error = np.abs(a - b).max(initial=0.0)
        assert error <= bound, f"result {k} differs by {error:.2g} > {bound:.2g}"


def check_derivatives(call: Call, rng: np.random.Generator, order: int, traced: bool) -> None:
    """Compares first or second derivatives by tape with the oracle.

    Raises:
      AssertionError: a derivative is wrong.
    """
    d = call.derivatives
    point = [call.tensors[k] for k in d.inputs]
    upstream = [
        tf.constant(rng.normal(size=r.shape), tf.float64)
        for r in execute(call, "eager")[: d.outputs]
    ]
    weights = [rng.normal(size=t.shape) for t in point]

    def gradients(point: Sequence[tf.Tensor], upstream: Sequence[tf.Tensor]) -> Any:
        tensors = list(call.tensors)
        for k, t in zip(d.inputs, point, strict=True):
            tensors[k] = t
        with tf.GradientTape() as tape:
            tape.watch(point)
            results = flat(call.run(*tensors))[: d.outputs]
        return tape.gradient(results, point, upstream, unconnected_gradients="zero")

    def second(point: Sequence[tf.Tensor], upstream: Sequence[tf.Tensor]) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([point, upstream])
            value = tf_weighted_sum(weights, gradients(point, upstream))
        return tape.gradient(value, [*point, *upstream], unconnected_gradients="zero")

    function = second if order == 2 else gradients
    got = (tf.function(function, autograph=False) if traced else function)(point, upstream)
    values, given = ([t.numpy() for t in tensors] for tensors in (point, upstream))
    if order == 1:
        assert_close(got, d.backward(values, given), TOLERANCE["float64"])
        return
    # Along one direction, by complex step through the oracle's backward pass.
    direction = [rng.normal(size=v.shape) for v in (*values, *given)]
    moved = [v + 1e-30j * a for v, a in zip((*values, *given), direction, strict=True)]
    gradient = d.backward(moved[: len(values)], moved[len(values) :])
    want = np.imag(weighted_sum(weights, gradient)) / 1e-30
    assert_close([tf.constant(weighted_sum(direction, got))], [want], SECOND_ORDER)
