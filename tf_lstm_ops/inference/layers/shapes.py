"""Layers that move, repeat, add or leave out elements, and pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tf_lstm_ops.inference import file, graph
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers import checks
from tf_lstm_ops.inference.layers.base import Layer, Record, one

_ZEROS, _REFLECTION = 0, 1


class Reshape(Record):
    """The same elements with other axes behind the batch.

    Args:
      target_shape: their sizes; one may be -1.
      name: for messages.

    Raises:
      ValueError: there are more than 5 sizes, or more than one is -1.
      TypeError: a size is no integer.
    """

    def __init__(self, target_shape: Sequence[int], name: str | None = None) -> None:
        sizes = [checks.size("target_shape", size, -1) for size in target_shape]
        if not 1 <= len(sizes) <= 5 or sizes.count(-1) > 1 or 0 in sizes:
            raise ValueError(
                "target_shape must have 1 to 5 sizes, of which one may be -1. Received: "
                f"{target_shape}"
            )
        super().__init__(file.Layer(name or "Reshape", file.RESHAPE, ints=(len(sizes), *sizes)))


class Flatten(Reshape):
    """All axes behind the batch as one.

    Args:
      name: for messages.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__((-1,), name or "Flatten")


class Permute(Record):
    """The axes behind the batch in another order.

    Args:
      dims: the axes, from 1 on, such as (2, 1).
      name: for messages.

    Raises:
      ValueError: dims is not a permutation of 1 to at most 5.
    """

    def __init__(self, dims: Sequence[int], name: str | None = None) -> None:
        if sorted(dims) != [*range(1, len(dims) + 1)] or not 1 <= len(dims) <= 5:
            raise ValueError(f"dims must be a permutation of 1 to at most 5. Received: dims={dims}")
        super().__init__(
            file.Layer(name or "Permute", file.TRANSPOSITION, ints=(len(dims), *map(int, dims)))
        )


class RepeatVector(Record):
    """n equal steps, [B, C] to [B, n, C].

    Args:
      n: the number of steps.
      name: for messages.

    Raises:
      ValueError: n is not positive.
      TypeError: n is no integer.
    """

    def __init__(self, n: int, name: str | None = None) -> None:
        ints = (checks.size("n", n),)
        super().__init__(file.Layer(name or "RepeatVector", file.REPETITION, ints=ints))


class UpSampling1D(Record):
    """Each step several times, [B, T, C] to [B, size · T, C].

    Args:
      size: how often.
      name: for messages.

    Raises:
      ValueError: size is not positive.
      TypeError: size is no integer.
    """

    def __init__(self, size: int = 2, name: str | None = None) -> None:
        ints = (checks.size("size", size),)
        super().__init__(file.Layer(name or "UpSampling1D", file.UPSAMPLING, ints=ints))


class ZeroPadding1D(Record):
    """Zeros before and behind a sequence.

    Args:
      padding: the number of steps, or (before, behind).
      name: for messages.

    Raises:
      ValueError: a number is negative.
      TypeError: a number is no integer.
    """

    def __init__(self, padding: int | Sequence[int] = 1, name: str | None = None) -> None:
        ints = (*checks.pair("padding", padding), _ZEROS)
        super().__init__(file.Layer(name or "ZeroPadding1D", file.PADDING, ints=ints))


class ReflectPadding1D(Record):
    """A sequence reflected at its ends, which are not repeated, as numpy.pad with mode="reflect".

    Args:
      padding: the number of steps, or (before, behind), less than T.
      name: for messages.

    Raises:
      ValueError: a number is negative.
      TypeError: a number is no integer.
    """

    def __init__(self, padding: int | Sequence[int], name: str | None = None) -> None:
        ints = (*checks.pair("padding", padding), _REFLECTION)
        super().__init__(file.Layer(name or "ReflectPadding1D", file.PADDING, ints=ints))


class Slice(Record):
    """Elements of an axis from start to stop, as x[:, start:stop] in NumPy, or backwards.

    Args:
      axis: -1 for the last one, or from 1 on, where 1 is that behind the batch.
      start: the first element; a negative number counts from the end.
      stop: the element behind the last one; None: the end.
      reverse: whether the elements are in the opposite order.
      name: for messages.

    Raises:
      ValueError: axis is another one, or a number is too large.
      TypeError: a number is no integer.
    """

    def __init__(
        self,
        axis: int = -1,
        start: int = 0,
        stop: int | None = None,
        reverse: bool = False,
        name: str | None = None,
    ) -> None:
        axis = checks.size("axis", axis, -file.MAX_SIZE)
        if axis != -1 and not 1 <= axis <= 5:
            raise ValueError(f"axis must be -1, or from 1 to 5. Received: axis={axis}")
        first = checks.size("start", start, -file.MAX_SIZE)
        end = file.MAX_SIZE if stop is None else checks.size("stop", stop, -file.MAX_SIZE)
        if max(first, end) > file.MAX_SIZE:
            raise ValueError(f"start and stop must be at most 2^54. Received: {start}, {stop}")
        ints = (axis, first, end, int(bool(reverse)))
        super().__init__(file.Layer(name or "Slice", file.SLICE, ints=ints))


class Cropping1D(Record):
    """A sequence without its first and last steps.

    Args:
      cropping: the number of steps, or (first, last).
      name: for messages.

    Raises:
      ValueError: a number is negative.
      TypeError: a number is no integer.
    """

    def __init__(self, cropping: int | Sequence[int] = 1, name: str | None = None) -> None:
        first, last = checks.pair("cropping", cropping)
        super().__init__(
            file.Layer(name or "Cropping1D", file.PADDING, ints=(-first, -last, _ZEROS))
        )


class Masking(Layer):
    """Steps whose features are all equal to a value do not count; their features become 0.

    Args:
      mask_value: the value.
      name: for messages.

    Raises:
      ValueError: the value is not finite.
    """

    def __init__(self, mask_value: float = 0.0, name: str | None = None) -> None:
        super().__init__(name)
        with np.errstate(over="ignore"):
            value = float(np.float32(mask_value))  # what is compared
        if not np.isfinite(value):
            raise ValueError(f"mask_value must be finite in float32. Received: {mask_value}")
        self._record = file.Layer(self.name, file.MASKING, number=value)

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Value:
        y, mask = graph.node(self._record, [one(self, inputs)], batch_axes, 2)
        return y.with_mask(mask)


class _Pairs(Record):
    _mode: int

    def __init__(self, name: str | None = None) -> None:
        record = file.Layer(name or type(self).__name__, file.PAIRS, ints=(self._mode,))
        super().__init__(record, passes_mask=True)


class Magnitude(_Pairs):
    """sqrt(a² + b²) of the first half a and the second half b of the last axis.

    Args:
      name: for messages.
    """

    _mode = 0


class GLU(_Pairs):
    """a · sigmoid(b) of the first half a and the second half b of the last axis.

    Args:
      name: for messages.
    """

    _mode = 1
