"""Runs a .tflite file and compares it with the model."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import _optional, _tf_private
from tf_lstm_ops.export import errors
from tf_lstm_ops.export.check import ABSOLUTE, Difference, difference
from tf_lstm_ops.export.lite.trace import Traced, call
from tf_lstm_ops.export.sensitivity import (
    FLOAT32,
    Rounding,
    moved,
    moved_tables,
    not_compared,
    steady_parts,
)

Values = dict[str, np.ndarray]

# The largest difference allowed, as a multiple of the largest element, and what it comes from.
TOLERANCES = {
    None: (1e-4, "float32 is rounded in another order"),
    "float16": (0.02, "weights are rounded to 11 bits"),
    "dynamic": (0.15, "weights, and inputs of products, are rounded to 8 bits"),
    "int8": (0.3, "weights and all values between the ops are rounded to 8 bits"),
}
# Where rounding alone moves the model by half of the tolerance, a file is not compared.
_ROUNDING: dict[str | None, Rounding] = {
    None: FLOAT32,
    **{
        name: Rounding(by, 1.0, TOLERANCES[name][0] / 2)
        for name, by in (("float16", 2.0**-11), ("dynamic", 2.0**-8), ("int8", 2.0**-8))
    },
}
# Allowed in addition. The outputs of a sigmoid or softmax in int8 are multiples of 1/256, whatever
# their size is.
_ABSOLUTE = {"int8": 2.0**-8}
_CANNOT_RUN = (
    "the file cannot run in TensorFlow Lite's interpreter",
    ". Try another quantize, or input_signature with another number of steps. The file then has "
    "other ops",
)
_UNKNOWN_SIZES = (5, 8)  # what a check puts where a size of an input is unknown
# The inputs of long sequences are two: the interpreter computes each step by itself.
_LONG, _OF_LONG = 500, (0, 2)


def interpreter(path: str) -> Any:
    """Opens a file in the interpreter that TensorFlow brings, else in LiteRT's.

    Args:
      path: the file.

    Returns:
      The interpreter.

    Raises:
      ImportError: TensorFlow has no interpreter and ai_edge_litert is not installed.
    """
    if of_tensorflow := _tf_private.lite_interpreter():
        return of_tensorflow(model_path=path)
    module = _optional.require(
        "ai_edge_litert.interpreter", "the check of a .tflite file", "ai-edge-litert"
    )
    return module.Interpreter(model_path=path)


def differences(
    path: str, model: Any, traced: Traced, batches: Iterable[Values], quantize: str | None
) -> dict[str, Difference]:
    """Runs a file on batches, one after the other, and compares it with the model.

    If the model amplifies rounding, only the steps in which it does not are compared, and a warning
    says so.

    If states are inputs and outputs, each batch begins with the states after the one before. The
    first batch is then compared with the model, the others with the traced function.

    Args:
      path: the file.
      model: the model.
      traced: the function from which the file was made.
      batches: inputs of the model by name.
      quantize: the quantisation.

    Returns:
      The difference of each output.

    Raises:
      ValueError: the file cannot run.
    """
    with errors.in_words(*_CANNOT_RUN):
        run = interpreter(path).get_signature_runner("serving_default")
    states = {name: np.zeros(spec.shape, "float32") for name, spec in traced.states.items()}
    file_states, found = dict(states), {name: Difference(0, 0) for name in traced.outputs}
    for number, batch in enumerate(batches):
        with errors.in_words(*_CANNOT_RUN):
            file_results = run(**batch, **file_states)
        results = _results(model, traced, batch, states, number == 0)
        now = {k: difference(*map(tf.constant, (file_results[k], v))) for k, v in results.items()}
        if any(_is_rejected(each, quantize) for each in now.values()):
            given = {**batch, **states}, results, file_results
            now = _of_steady_parts(model, traced, given, number == 0, quantize)
        for name, each in now.items():
            worst = found.get(name, each)
            found[name] = Difference(max(worst.error, each.error), max(worst.size, each.size))
        states = {name: results[name] for name in states}
        file_states = {name: file_results[name] for name in states}
    return found


def _results(
    model: Any, traced: Traced, batch: Values, states: Values, is_first: bool
) -> dict[str, np.ndarray]:
    """What the model computes, and the states after it."""
    results: Any = {}
    if states:
        results = traced.function(*map(tf.constant, [*batch.values(), *states.values()]))
    if is_first or not states:
        results = {**results, **call(model, list(map(tf.constant, batch.values())))}
    return {name: np.asarray(value) for name, value in results.items()}


def _of_steady_parts(
    model: Any,
    traced: Traced,
    given: tuple[Values, Values, Values],
    is_first: bool,
    quantize: str | None,
) -> dict[str, Difference]:
    """The differences where the model itself does not move far."""
    inputs, results, file_results = given

    def predict(factor: float) -> list[np.ndarray]:
        named = dict(zip(inputs, moved([*inputs.values()], factor), strict=True))
        batch = {name: named[name] for name in traced.inputs}
        states = {name: named[name] for name in traced.states}
        with moved_tables(model, factor):
            return [*_results(model, traced, batch, states, is_first).values()]

    rounding = _ROUNDING[quantize]
    parts = steady_parts(predict, [*results.values()], rounding)
    found = {
        name: difference(tf.constant(file_results[name]), tf.constant(value), part)
        for (name, value), part in zip(results.items(), parts, strict=True)
    }
    if not any(_is_rejected(each, quantize) for each in found.values()):
        warnings.warn(
            f"the file: {not_compared(parts, rounding)}",
            stacklevel=6,
        )
    return found


def _is_rejected(found: Difference, quantize: str | None) -> bool:
    absolute = _ABSOLUTE.get(quantize or "", ABSOLUTE)
    return not found.of_allowed(TOLERANCES[quantize][0], absolute) <= 1


def reject(found: dict[str, Difference], quantize: str | None) -> None:
    """Raises an error if an output differs too much.

    Args:
      found: the difference of each output.
      quantize: the quantisation.

    Raises:
      ValueError: a difference is larger than the tolerance.
    """
    tolerance, reason = TOLERANCES[quantize]
    for name, worst in found.items():
        if _is_rejected(worst, quantize):
            raise ValueError(
                f"the file computes output {name} with a largest difference of {worst.error:.3g}, "
                f"{worst.relative:.3g} of the largest element {worst.size:.3g}. The tolerance for "
                f"quantize={quantize!r} is {tolerance} ({reason}). The file was not kept"
            )


def random_batches(traced: Traced) -> list[Values]:
    """Inputs for a check: normal numbers with steps of zeros, which a mask may hide.

    Args:
      traced: the function.

    Returns:
      Batches, inputs by name.
    """
    rng = np.random.default_rng(0)
    shapes = [spec.shape for spec in traced.inputs.values() if spec.shape.rank > 1]
    steps = max((shape[1] or 0 for shape in shapes), default=0)
    batches = []
    for number in _OF_LONG if steps > _LONG else range(4):
        unknown = _UNKNOWN_SIZES[number % 2]
        batch = {}
        for name, spec in traced.inputs.items():
            shape = [unknown if size is None else size for size in spec.shape]
            values = rng.normal(size=shape) if spec.dtype.is_floating else rng.integers(0, 2, shape)
            if number and len(shape) > 1:
                values[:, : shape[1] // 3 if number == 1 else 0] = 0
                values[:, shape[1] - shape[1] // 3 if number > 1 else shape[1] :] = 0
            batch[name] = values.astype(spec.dtype.as_numpy_dtype)
        batches.append(batch)
    return batches
