"""The check of an exported file: its predictions are compared with those of the model."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops import _keras_private
from tf_lstm_ops.export.sensitivity import (
    Steady,
    moved,
    moved_tables,
    not_compared,
    rounding_of,
    steady_parts,
)
from tf_lstm_ops.export.signature import own_batch_sizes
from tf_lstm_ops.export.states import batch_size, states_of
from tf_lstm_ops.onnx_graph.run import NotRun

BATCH, UNKNOWN = 2, 16  # what stands for unknown sizes in the inputs of the check
# Allowed in addition to a multiple of the largest element. The sigmoid of ONNX Runtime has an
# absolute error of 4e-8, so that of a classifier that answers 1e-5 has a relative error of 4e-3.
# A softmax and a difference of gates around 1 have such errors, too. This is two float32 epsilons,
# 2.4e-7: six times the error, and 1e-3 of an output of 2.4e-4.
ABSOLUTE = 2.0**-22
_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


class Difference(NamedTuple):
    """The difference of an output from that of the model.

    Attributes:
      error: the largest difference of an element.
      size: the largest element of the model's output.
    """

    error: float
    size: float

    @property
    def relative(self) -> float:
        """The difference as a multiple of the largest element; 0 where both are 0."""
        return self.error / self.size if self.size else math.inf if self.error else 0.0

    def of_allowed(self, relative: float, absolute: float = ABSOLUTE) -> float:
        """The difference as a multiple of what is allowed; up to 1 if the file is right.

        Args:
          relative: what is allowed, as a multiple of the largest element.
          absolute: what is allowed in addition.

        Returns:
          The multiple; 0 for equal outputs.
        """
        allowed = relative * self.size + absolute
        return self.error / allowed if allowed else math.inf if self.error else 0.0

    def __str__(self) -> str:
        return f"{self.error:.2g}, where the largest element is {self.size:.2g}"


def compare(
    model: keras.Model,
    run: Callable[[list[np.ndarray]], Sequence[Any]],
    signature: Sequence[Any],
    name: str,
    *,
    tolerance: float | None = None,
    from_zeros: bool = False,
    verbose: bool = False,
) -> None:
    """Compares what a file predicts for random inputs with what the model predicts.

    If nothing here can run the file, or if the model cannot run on random inputs or gives other
    outputs each time, a warning says that the file was not compared. If the model amplifies
    rounding, only the steps in which it does not are compared, and a warning says so.

    Args:
      model: the model. Its states and seeds do not change.
      run: runs the file, or raises `NotRun`. It takes the inputs as NumPy arrays and returns the
        outputs as arrays or tensors, both in the order of ``tf.nest.flatten``.
      signature: the arguments of the model, as `signature.signature` returns them. An unknown batch
        size is that of the model's own Input in the check, else that of its states or of the other
        inputs, else BATCH; other unknown sizes are UNKNOWN.
      name: what the file is called in messages.
      tolerance: the largest error allowed, as a multiple of the largest element of the output;
        ABSOLUTE is added to it. None: half of the digits of the model's least precise type. Kernels
        round in another order, and layers amplify the errors of those before them. A wrong gate
        order, state or weight changes the first digits.
      from_zeros: whether the file begins with zero states, not with those of the model.
      verbose: whether to print the largest difference.

    Raises:
      ValueError: the file cannot run, or predicts something else than the model.
    """
    inputs = [tf.constant(x) for x in random_inputs(model, signature)]
    try:
        expected, again = (_predict(model, signature, inputs, from_zeros) for _ in range(2))
    except Exception as error:  # a layer of the user's may raise anything
        _warn(name, f"the model cannot run on random inputs of {signature}: {error}")
        return
    try:
        outputs = [tf.convert_to_tensor(output) for output in run([x.numpy() for x in inputs])]
    except NotRun as error:
        _warn(name, str(error))
        return
    except Exception as error:
        raise ValueError(f"{name} cannot run: {error}") from error
    dtypes = {"float32", *(layer.compute_dtype for layer in _keras_private.layers_of(model))}
    epsilon = max(_EPSILON.get(dtype, 0.0) for dtype in dtypes)
    if tolerance is None:
        tolerance = math.sqrt(epsilon)
    largest = _largest_difference(outputs, expected, name, tolerance)
    if largest.of_allowed(tolerance) > 1:
        if _largest_difference(again, expected, name, tolerance).of_allowed(tolerance) > 1:
            _warn(name, "two calls of the model give different outputs")
            return
        arrays = [x.numpy() for x in inputs]

        def predict(factor: float) -> Any:
            with moved_tables(model, factor):
                given = [tf.constant(x) for x in moved(arrays, factor)]
                return _predict(model, signature, given, from_zeros)

        rounding = rounding_of(epsilon)
        parts = steady_parts(predict, expected, rounding)
        steady = [difference(*each) for each in zip(outputs, expected, parts, strict=True)]
        if max(each.of_allowed(tolerance) for each in steady) > 1:
            raise ValueError(
                f"{name} predicts something else than the model: the largest difference is "
                f"{largest}"
            )
        warnings.warn(f"{name}: {not_compared(parts, rounding)}", stacklevel=3)
    if verbose:
        print(f"{name}: largest difference to the model {largest}")


def random_inputs(model: keras.Model, signature: Sequence[Any]) -> list[np.ndarray]:
    """Inputs of a model.

    The first row ends with zeros in its second dimension, the padding of sequences. An integer is a
    word of all ``keras.layers.Embedding`` of the model, and not 0 elsewhere if one of them masks 0.

    Args:
      model: the model.
      signature: the arguments of the model, a structure of ``tf.TensorSpec``.

    Returns:
      The arrays, in the order of ``tf.nest.flatten``.
    """
    rng = np.random.default_rng(0)
    layers = _keras_private.layers_of(model)
    embeddings = [layer for layer in layers if isinstance(layer, keras.layers.Embedding)]
    first = int(any(layer.mask_zero for layer in embeddings))
    words = max(first + 1, min((layer.input_dim for layer in embeddings), default=2))
    inputs = []
    specs = tf.nest.flatten(signature)
    for spec, rows in zip(specs, _numbers_of_rows(model, signature), strict=True):
        sizes = [UNKNOWN if size is None else size for size in spec.shape]
        sizes[:1] = [rows] * len(sizes[:1])
        if spec.dtype == tf.string:
            inputs.append(np.full(sizes, "a", object))
            continue
        is_real = spec.dtype.is_floating or spec.dtype.is_complex
        values = rng.normal(size=sizes) if is_real else rng.integers(first, words, size=sizes)
        if len(sizes) > 1:
            values[:1, sizes[1] - sizes[1] // 4 :] = 0
        inputs.append(np.asarray(values).astype(spec.dtype.as_numpy_dtype))
    return inputs


def _numbers_of_rows(model: keras.Model, signature: Sequence[Any]) -> list[int]:
    """The first dimensions of the inputs of a check."""
    specs = tf.nest.flatten(signature)
    sizes = [spec.shape[0] if spec.shape.rank else None for spec in specs]
    own = own_batch_sizes(model, signature)
    known = [a if b is None else b for a, b in zip(own, sizes, strict=True)]
    common = {size for size in known if size is not None}
    other = batch_size(model) or (common.pop() if len(common) == 1 else BATCH)
    return [other if size is None else size for size in known]


def _warn(name: str, why: str) -> None:
    warnings.warn(f"{name} was not compared with the model: {why}", stacklevel=4)


def _predict(
    model: keras.Model, signature: Sequence[Any], inputs: list[Any], from_zeros: bool
) -> list[tf.Tensor]:
    """The model's outputs in inference; afterwards its states are those of before."""
    arguments = tf.nest.pack_sequence_as(list(signature), inputs)
    states = states_of(model)
    variables = [*model.non_trainable_variables, *states]
    before = [tf.identity(v.value) for v in variables]
    options = {"training": False} if "training" in inspect.signature(model.call).parameters else {}
    try:
        for state in states if from_zeros else []:
            state.assign(tf.zeros(state.shape, state.dtype))
        return tf.nest.flatten(model(*arguments, **options))
    finally:
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)


def _largest_difference(
    outputs: list[tf.Tensor], expected: list[tf.Tensor], name: str, tolerance: float
) -> Difference:
    """Of the output for which it is the largest multiple of what is allowed.

    Raises:
      ValueError: the outputs differ in number, shape or dtype.
    """
    kinds = [
        ", ".join(f"{t.dtype.name} {t.shape.as_list()}" for t in side)
        for side in (outputs, expected)
    ]
    if kinds[0] != kinds[1]:
        raise ValueError(f"{name} has the outputs {kinds[0]}, but the model has {kinds[1]}")
    pairs = [difference(a, b) for a, b in zip(outputs, expected, strict=True)]
    return max(pairs, key=lambda pair: pair.of_allowed(tolerance), default=Difference(0.0, 0.0))


def difference(output: tf.Tensor, expected: tf.Tensor, part: Steady | None = None) -> Difference:
    """The difference of one output from that of the model.

    Args:
      output: the output.
      expected: the output of the model, of the same shape and dtype.
      part: the part of the output that is compared, and what a right file may have; None: all.

    Returns:
      The difference beyond what the part allows. Equal infinities do not differ, nor do two NaN;
      NaN differs from any number. Outputs that are no floats may differ where the model's own move.
    """
    if not (output.dtype.is_floating or output.dtype.is_complex):
        differs = np.asarray(output.numpy() != expected.numpy())
        if part is not None:
            differs = differs & (part.allowed == 0) & part.elements
        return Difference(float(differs.any()), 1.0)
    error, size = _errors(output, expected)
    if part is not None:
        error = np.maximum(error - part.allowed, 0.0)[part.elements]
    return Difference(float(error.max(initial=0.0)), size)


def _errors(output: tf.Tensor, expected: tf.Tensor) -> tuple[np.ndarray, float]:
    """The error of each element, and the size of the largest element."""
    wide = tf.complex128 if output.dtype.is_complex else tf.float64
    a, b = (tf.cast(t, wide).numpy() for t in (output, expected))
    same = (a == b) | (np.isnan(a) & np.isnan(b))  # infinities too
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0.0, np.abs(a - b))
    finite = np.abs(b[np.isfinite(b)])
    return np.where(np.isnan(error), np.inf, error), float(finite.max(initial=0.0))
