"""Runs a .tflite file and compares it with the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import _optional, _tf_private
from tf_lstm_ops.export import errors
from tf_lstm_ops.export.check import ABSOLUTE, Difference, difference
from tf_lstm_ops.export.lite.trace import Traced, call

Values = dict[str, np.ndarray]

# The largest difference allowed, as a multiple of the largest element, and what it comes from.
TOLERANCES = {
    None: (1e-4, "float32 is rounded in another order"),
    "float16": (0.02, "weights are rounded to 11 bits"),
    "dynamic": (0.15, "weights, and inputs of products, are rounded to 8 bits"),
    "int8": (0.3, "weights and all values between the ops are rounded to 8 bits"),
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
        "ai_edge_litert.interpreter", "the check of a .tflite file", "tflite"
    )
    return module.Interpreter(model_path=path)


def differences(
    path: str, model: Any, traced: Traced, batches: Iterable[Values]
) -> dict[str, Difference]:
    """Runs a file on batches, one after the other, and compares it with the model.

    If states are inputs and outputs, each batch begins with the states after the one before. The
    first batch is then compared with the model, the others with the traced function.

    Args:
      path: the file.
      model: the model.
      traced: the function from which the file was made.
      batches: inputs of the model by name.

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
        results: Any = {}
        if states:
            results = traced.function(*map(tf.constant, [*batch.values(), *states.values()]))
        if number == 0 or not states:
            results = {**results, **call(model, list(map(tf.constant, batch.values())))}
        results = {name: np.asarray(value) for name, value in results.items()}
        for name, value in results.items():
            found[name] = _worse(found.get(name, Difference(0, 0)), file_results[name], value)
        states = {name: results[name] for name in states}
        file_states = {name: file_results[name] for name in states}
    return found


def _worse(before: Difference, value: Any, expected: Any) -> Difference:
    now = difference(tf.constant(value), tf.constant(expected))
    return Difference(max(before.error, now.error), max(before.size, now.size))


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
        if not worst.of_allowed(tolerance, _ABSOLUTE.get(quantize or "", ABSOLUTE)) <= 1:
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
    batches = []
    for number in range(4):
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
