"""The check of an exported file: its predictions are compared with those of the model."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

BATCH, UNKNOWN = 2, 16  # what stands for unknown sizes in the inputs of the check
_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


class Difference(NamedTuple):
    """The largest difference of an output, and the largest element of this output."""

    error: float
    size: float

    @property
    def relative(self) -> float:
        """The difference as a multiple of the largest element; 0 where both are 0."""
        return self.error / self.size if self.size else math.inf if self.error else 0.0


def compare(
    model: keras.Model,
    exported: Callable[..., Any],
    arguments: Any,
    name: str,
    *,
    verbose: bool = False,
) -> None:
    """Compares what a file predicts for random inputs with what the model predicts.

    An error may be half of the digits of the model's least precise type, relative to the largest
    element of the output: kernels round in another order, and layers amplify the errors of those
    before them. A wrong gate order, state or weight changes the first digits.

    Args:
      model: the model. Its states and seeds do not change.
      exported: runs the file on the arguments of the model.
      arguments: a structure of ``tf.TensorSpec``, the arguments of the model. Unknown batch sizes
        are BATCH in the check, other unknown sizes UNKNOWN.
      name: what the file is called in messages.
      verbose: whether to print the largest difference.

    Raises:
      ValueError: the file cannot run, or predicts something else than the model.
    """
    inputs = tf.nest.map_structure(_random, arguments)
    try:
        expected, again = (_predict(model, inputs) for _ in range(2))
    except Exception as error:  # a layer of the user's may raise anything
        _warn(name, f"the model cannot run on random inputs of {arguments}: {error}")
        return
    try:
        outputs = exported(*inputs)
    except Exception as error:
        raise ValueError(f"{name} cannot run: {error}") from error
    allowed = math.sqrt(max(_EPSILON.get(t, 0.0) for t in _dtypes(model)))
    difference = _largest_difference(outputs, expected, name)
    if difference.relative > allowed:
        if _largest_difference(again, expected, name).relative > allowed:
            _warn(name, "two calls of the model give different outputs")
            return
        raise ValueError(
            f"{name} predicts something else than the model: the largest difference is "
            f"{difference.error:.2g}, where the largest element is {difference.size:.2g}"
        )
    if verbose:
        print(
            f"{name}: largest difference to the model {difference.error:.2g}, where the largest "
            f"element is {difference.size:.2g}"
        )


def _warn(name: str, why: str) -> None:
    warnings.warn(f"{name} was not compared with the model: {why}", stacklevel=4)


def _dtypes(model: keras.Model) -> set[str]:
    return {"float32", *(layer.compute_dtype for layer in model._flatten_layers())}


def _random(spec: tf.TensorSpec) -> tf.Tensor:
    sizes = [UNKNOWN if size is None else size for size in spec.shape]
    if sizes and spec.shape[0] is None:
        sizes[0] = BATCH
    rng = np.random.default_rng(0)
    if spec.dtype.is_floating or spec.dtype.is_complex:
        return tf.cast(rng.normal(size=sizes), spec.dtype)
    if spec.dtype == tf.string:
        return tf.fill(sizes, "a")
    return tf.cast(rng.integers(2, size=sizes), spec.dtype)  # an Embedding has two words or more


def _predict(model: keras.Model, inputs: Any) -> Any:
    """The model's outputs in inference; its states are those of before."""
    layers = model._flatten_layers()
    states = [layer.states for layer in layers if isinstance(layer, keras.layers.RNN)]
    variables = [*model.non_trainable_variables, *keras.tree.flatten(states)]
    variables = [v for v in variables if v is not None]
    before = [tf.identity(v.value) for v in variables]
    options = {"training": False} if "training" in inspect.signature(model.call).parameters else {}
    try:
        return model(*inputs, **options)
    finally:
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)


def _largest_difference(outputs: Any, expected: Any, name: str) -> Difference:
    """Of the output for which it is the largest multiple of the largest element.

    Raises:
      ValueError: the outputs differ in number, shape or dtype.
    """
    tensors = [tf.nest.flatten(x) for x in (outputs, expected)]
    kinds = [[(tf.TensorShape(t.shape), t.dtype) for t in side] for side in tensors]
    if kinds[0] != kinds[1]:
        raise ValueError(f"{name} has outputs {kinds[0]}; those of the model are {kinds[1]}")
    pairs = [_difference(a, b) for a, b in zip(*tensors, strict=True)]
    return max(pairs, key=lambda pair: pair.relative, default=Difference(0.0, 0.0))


def _difference(output: tf.Tensor, expected: tf.Tensor) -> Difference:
    if not (output.dtype.is_floating or output.dtype.is_complex):
        equal = np.array_equal(output.numpy(), expected.numpy())
        return Difference(0.0 if equal else 1.0, 1.0)
    wide = tf.complex128 if output.dtype.is_complex else tf.float64
    a, b = (tf.cast(t, wide).numpy() for t in (output, expected))
    same = (a == b) | (np.isnan(a) & np.isnan(b))  # infinities too
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0.0, np.abs(a - b))
    error = np.where(np.isnan(error), np.inf, error)
    finite = np.abs(b[np.isfinite(b)])
    return Difference(float(error.max(initial=0.0)), float(finite.max(initial=0.0)))
