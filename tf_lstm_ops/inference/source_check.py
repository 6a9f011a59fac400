"""The check of a session: its results are compared with those of its source."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tf_lstm_ops.inference import file
from tf_lstm_ops.inference.arguments import Spec
from tf_lstm_ops.inference.compare import differences

Array = npt.NDArray[Any]
Run = Callable[[list[Array]], Sequence[Array]]


class _Session(Protocol):
    @property
    def inputs(self) -> tuple[Spec, ...]: ...
    @property
    def outputs(self) -> tuple[Spec, ...]: ...
    def __call__(self, x: Any, mask: Any = None, out: Any = None) -> Any: ...


LENGTHS = range(1, 1 << 31)  # of sequences of any number of steps
ROWS, STEPS = 3, 7  # of random inputs, where the model leaves sizes open
# Half of the digits of float32. Programs round in another order, and layers amplify the errors of
# those before them. A wrong gate order, state or weight changes the first digits.
TOLERANCE = math.sqrt(2.0**-23)
# Of programs that round activations to 8 bits, which sessions do not: a few roundings of 1 in 256,
# whose errors recurrent layers carry on.
OF_ROUNDED = 2.0**-4
# Allowed in addition, for outputs near 0: six times the error of the sigmoid of ONNX Runtime, 4e-8.
ABSOLUTE = 2.0**-22


def compare(
    session: _Session,
    run: Run,
    source: str,
    *,
    sizes: Sequence[Sequence[int]] | None = None,
    words: Sequence[range | None] | None = None,
    advice: str = "Please report this with the model",
    tolerance: float = TOLERANCE,
) -> float:
    """Compares a session with its source on random inputs.

    Args:
      session: the session.
      run: computes the outputs of the source. It takes the inputs in the shapes of the session, and
        returns arrays of the shapes of the outputs of the session, in their order.
      source: what the source is called in messages.
      sizes: the shape of each input; None: those of the session, with `ROWS` and `STEPS` where it
        takes any.
      words: for each input the indices that it may have; None: floats.
      advice: what to do about a difference, for the message.
      tolerance: of a difference, as a part of the largest element.

    Returns:
      The largest difference of an element.

    Raises:
      ValueError: the source cannot run, or its outputs differ from those of the session.
    """
    specs = session.inputs
    given = sizes or [
        [ROWS, *(STEPS if size is None else size for size in spec.shape[1:])] for spec in specs
    ]
    limits = words or [None] * len(specs)
    rng = np.random.default_rng(0)
    inputs = [
        rng.standard_normal(shape, np.float32)
        if spec.dtype == "float32"
        else _integers(rng, limit or range(1), given, shape)
        for spec, shape, limit in zip(specs, given, limits, strict=True)
    ]
    try:
        expected = [np.asarray(each) for each in run(inputs)]
    except (RuntimeError, ValueError, TypeError) as error:
        raise ValueError(
            f"{source} cannot run on random inputs of the shapes {[x.shape for x in inputs]}, so "
            f"the session is not compared with it: {error}. check=False leaves the comparison out"
        ) from error
    results = _flat(session(_packed(session, inputs)))
    return max(
        _checked(result, other, source, spec.name, advice, tolerance)
        for result, other, spec in zip(results, expected, session.outputs, strict=True)
    )


def _integers(
    rng: np.random.Generator, limit: range, shapes: Sequence[Sequence[int]], shape: Sequence[int]
) -> Array:
    """Random integers of a range; lengths, of the steps that all sequences have."""
    steps = min((each[1] for each in shapes if len(each) > 2), default=1)
    stop = steps + 1 if limit == LENGTHS else limit.stop
    return rng.integers(limit.start, stop, shape, np.int32)


def words_of(graph: file.Graph) -> list[range | None]:
    """The indices that each input of a graph may have.

    Args:
      graph: the graph.

    Returns:
      Those of the rows of the smallest table that an `Embedding` of it has; `LENGTHS`; None for
      floats.
    """
    found: list[range | None] = []
    for k, given in enumerate(graph.inputs):
        readers = [n.layer for n in graph.nodes if n.operands and n.operands[0] == k]
        rows = [layer.input_size for layer in readers if layer.kind == file.EMBEDDING]
        if any(layer.kind == file.MASK_OF_LENGTHS for layer in readers):
            found.append(LENGTHS)
        else:
            found.append(range(min(rows, default=1)) if given.dtype == "int32" else None)
    return found


def _packed(session: _Session, inputs: Sequence[Array]) -> Any:
    """The argument of a call."""
    if len(inputs) == 1:
        return inputs[0]
    names = [spec.name for spec in session.inputs]
    return dict(zip(names, inputs, strict=True)) if all(names) else [*inputs]


def _flat(results: Any) -> list[Array]:
    if isinstance(results, Mapping):
        return [*results.values()]
    return [*results] if isinstance(results, list | tuple) else [results]


def _checked(
    result: Array, expected: Array, source: str, name: str, advice: str, tolerance: float
) -> float:
    """The largest difference, which must be small."""
    what = f"the output {name}" if name else "the output"
    if result.shape != expected.shape:
        raise ValueError(
            f"{what} of {source} has the shape {expected.shape}, and that of the session "
            f"{result.shape}. {advice}"
        )
    error = differences(result, expected)
    largest = float(np.nan_to_num(error, nan=np.inf).max(initial=0.0))
    size = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    if largest > tolerance * size + ABSOLUTE:
        raise ValueError(
            f"{what} of the session differs from that of {source} by {largest:.2g}, where the "
            f"largest element is {size:.2g}. {advice}"
        )
    return largest
