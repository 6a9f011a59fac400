"""Session.compare: the errors of a session beside a reference, and the time of a call of both."""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tf_lstm_ops.inference.arguments import Arguments
from tf_lstm_ops.inference.arrays import as_array

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

_MIN_PAIRS, _MIN_SECONDS = 5, 0.2  # of the timed calls
_HEADER = ("output", "elements", "largest error", "mean error", "relative norm", "equal argmax")


@dataclasses.dataclass(frozen=True)
class OutputErrors:
    """How far an output of a session is from the reference.

    The error of an element is the absolute difference, in float64. It is 0 where both have the same
    infinity or both have NaN. Else NaN in one of them makes NaN, and infinity makes infinity. An
    output without elements has errors of 0.

    Attributes:
      name: of the output; "output 0" and so on for outputs without a name.
      elements: their number.
      largest: the largest error; NaN if an error is NaN.
      mean: the mean error.
      relative_norm: the square root of the sum of the squared errors, over that of the squared
        finite elements of the reference. It is 0 if all errors are 0, else infinity if the
        reference has zeros only.
      equal_argmax: the share, from 0 to 1, of rows whose largest element has the same index in
        both. A row has the elements of the last axis. Of equal elements the first one counts. NaN
        is larger than any number, but a row with NaN in one of both is not equal. None if the last
        axis has less than two elements, or if there are no rows.
    """

    name: str
    elements: int
    largest: float
    mean: float
    relative_norm: float
    equal_argmax: float | None


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What `Session.compare` returns. `str` makes a table of it.

    Attributes:
      outputs: an `OutputErrors` for each output of the session.
      seconds: the median time of a call of the session.
      other_seconds: the median time of a call of what it was compared with.
    """

    outputs: tuple[OutputErrors, ...]
    seconds: float
    other_seconds: float

    def __str__(self) -> str:
        rows = [_HEADER, *map(_cells, self.outputs)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in rows
        ]
        times = _digits(1e3 * self.seconds), _digits(1e3 * self.other_seconds)
        ratio = _digits(self.other_seconds / self.seconds) if self.seconds else "inf"
        lines += [f"time of a call: {times[0]} ms; other: {times[1]} ms, {ratio} times as long"]
        return "\n".join(lines)


def compare(
    session: Callable[..., Any],
    other: Any,
    x: Any,
    mask: Any,
    inputs: Sequence[Arguments],
    outputs: Arguments,
) -> Comparison:
    """Compares a session with a reference.

    Args:
      session: the session.
      other: computes the reference; see `Session.compare`.
      x: of the call.
      mask: of the call, or None.
      inputs: what x and mask consist of.
      outputs: what the results consist of.

    Returns:
      The errors and times.

    Raises:
      ValueError: the outputs of other have other shapes, another number or other names.
      TypeError: other is not callable, or its outputs have another structure.
    """
    if not callable(other):
        raise TypeError(
            "model_or_session must be a Session, a Keras model, or a function that takes x. "
            f"Received: {type(other).__name__}"
        )
    results = Arguments("model_or_session(x)", outputs.specs, outputs.structure)
    x, mask = _converted(x, mask, inputs)
    other = _in_a_graph(other)
    masks = {} if mask is None else {"mask": mask}

    def run_session() -> list[Array]:
        return _arrays(outputs, session(x, **masks))

    def run_other() -> list[Array]:
        return _arrays(results, other(x, **masks))

    ours, theirs = run_session(), run_other()
    errors = []
    for k, (spec, a, b) in enumerate(zip(outputs.specs, ours, theirs, strict=True)):
        if a.shape != b.shape:
            name = f"{spec.name!r}" if spec.name else f"{k}"
            raise ValueError(
                f"the output {name} of the session has the shape {a.shape}, and "
                f"{results.labels[k]} the shape {b.shape}. They must be equal"
            )
        errors.append(output_errors(spec.name or f"output {k}", a, b))
    return Comparison(tuple(errors), *_seconds(run_session, run_other))


def _in_a_graph(other: Any) -> Any:
    """A Keras model as a tf.function, as `predict` runs it; anything else as it is."""
    keras, tensorflow = sys.modules.get("keras"), sys.modules.get("tensorflow")
    if not (keras and tensorflow and isinstance(other, keras.Model)):
        return other
    if other.run_eagerly or keras.backend.backend() != "tensorflow":
        return other
    return tensorflow.function(other, autograph=False)


def differences(a: Array, b: Array) -> Doubles:
    """The error of each element.

    Args:
      a: of any type of real numbers.
      b: of the same shape.

    Returns:
      The absolute differences; 0 where both have NaN, or the same infinity.
    """
    a, b = a.astype(np.float64), b.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(same, 0.0, np.abs(a - b))


def _converted(x: Any, mask: Any, inputs: Sequence[Arguments]) -> tuple[Any, Any]:
    """x and mask as both take them: Keras needs arrays for lists, and booleans for masks."""
    parts, masks = inputs
    values = parts.flat(x)
    if not all(hasattr(value, "dtype") for value in values):
        x = parts.packed([as_array(*each) for each in zip(parts.labels, values, strict=True)])
    if mask is None:
        return x, None
    given = zip(masks.labels, masks.flat(mask), strict=True)
    flags = [None if m is None else as_array(label, m).astype(np.bool_) for label, m in given]
    return x, masks.packed(flags)


def _arrays(outputs: Arguments, results: Any) -> list[Array]:
    """The results of a call as NumPy arrays. Of a tensor on a device, this waits for the result."""
    return [
        as_array(label, value)
        for label, value in zip(outputs.labels, outputs.flat(results), strict=True)
    ]


def output_errors(name: str, a: Array, b: Array) -> OutputErrors:
    """The errors of an output.

    Args:
      name: of the output.
      a: of any type of real numbers.
      b: the reference, of the same shape.

    Returns:
      The errors.
    """
    errors, finite = differences(a, b), b[np.isfinite(b)].astype(np.float64)
    return OutputErrors(
        name,
        elements=a.size,
        largest=float(errors.max(initial=0.0)),
        mean=float(errors.mean()) if a.size else 0.0,
        relative_norm=_ratio(_norm(errors), _norm(finite)),
        equal_argmax=_equal_argmax(a, b),
    )


def _ratio(error: float, size: float) -> float:
    if size:
        return error / size
    return error if error == 0 or np.isnan(error) else np.inf


def _norm(values: Doubles) -> float:
    """Without overflow and underflow of the squares."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(values / largest))


def _equal_argmax(a: Array, b: Array) -> float | None:
    if a.ndim < 2 or a.shape[-1] < 2 or not a.size:
        return None
    same_nan = np.isnan(a).any(axis=-1) == np.isnan(b).any(axis=-1)
    return float(np.mean((a.argmax(axis=-1) == b.argmax(axis=-1)) & same_nan))


def _seconds(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[float, float]:
    """The median times of two functions, called one after the other. Both have run once."""
    first(), second()
    times: list[tuple[float, float]] = []
    end = time.perf_counter() + _MIN_SECONDS
    while len(times) < _MIN_PAIRS or time.perf_counter() < end:
        start = time.perf_counter()
        first()
        middle = time.perf_counter()
        second()
        times.append((middle - start, time.perf_counter() - middle))
    ours, theirs = zip(*times, strict=True)
    return statistics.median(ours), statistics.median(theirs)


def _cells(output: OutputErrors) -> tuple[str, ...]:
    """A row of the table. A share below one is never 100 %."""
    share = output.equal_argmax
    if share is not None and share < 1:
        share = min(share, 0.9999)
    return (
        output.name,
        str(output.elements),
        *(f"{error:.2e}" for error in (output.largest, output.mean, output.relative_norm)),
        "-" if share is None else f"{share:.2%}",
    )


def _digits(number: float) -> str:
    """Three digits, without an exponent."""
    return np.format_float_positional(number, precision=3, fractional=False, trim="-")
