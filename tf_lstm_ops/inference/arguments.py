"""The inputs and outputs of a session: what a call takes and returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tf_lstm_ops.inference import arrays, native

# What a call takes or returns, as the file of a session has it.
SINGLE, LIST, DICTIONARY = 0, 1, 2

Shape = tuple[int, ...]
_NAMES_OF_AXES = ("batch", "steps")


@dataclasses.dataclass(frozen=True)
class Spec:
    """An input or output of a session.

    Attributes:
      name: may be empty.
      dtype: "float32" or "int32".
      shape: with the batch; None: any size.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]

    @property
    def axes(self) -> str:
        """The axes in words, such as "batch, steps, 8"."""
        names = [*_NAMES_OF_AXES, *("any",) * len(self.shape)]
        return ", ".join(
            name if size is None else str(size)
            for name, size in zip(names, self.shape, strict=False)
        )

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether an array of a shape is such an input.

        Args:
          shape: of the array.

        Returns:
          Whether the number of axes and the sizes agree.
        """
        return len(shape) == len(self.shape) and all(
            wanted in (None, size) for wanted, size in zip(self.shape, shape, strict=True)
        )


def specs(kind: str, handle: Any, count: int) -> tuple[Spec, ...]:
    """The inputs or outputs of a session.

    Args:
      kind: "input" or "output".
      handle: the session.
      count: their number.

    Returns:
      A Spec for each.
    """
    described = [native.described(kind, handle, k) for k in range(count)]
    return tuple(
        Spec(
            name,
            "int32" if number == native.INT32 else "float32",
            tuple(None if size < 0 else size for size in shape),
        )
        for number, shape, name in described
    )


class Arguments:
    """What an argument or the result of a call consists of.

    Args:
      name: of the argument, for messages.
      specs: one for each part.
      structure: SINGLE, LIST or DICTIONARY.

    Attributes:
      specs, structure: the arguments.
      labels: how messages name the parts, such as "x", or "x[0]" and "x[1]".
    """

    def __init__(self, name: str, specs: tuple[Spec, ...], structure: int) -> None:
        self.specs, self.structure, self._name = specs, structure, name
        keys = [k if structure == LIST else each.name for k, each in enumerate(specs)]
        self.labels = [f"{name}[{key!r}]" for key in keys] if structure != SINGLE else [name]

    def flat(self, value: Any) -> Sequence[Any]:
        """The parts of an argument.

        Args:
          value: the argument: an array; a list or a dictionary of them, as the model has it.

        Returns:
          A value for each of `specs`.

        Raises:
          ValueError: the number of values is wrong, or a name is missing or unknown.
          TypeError: the argument is neither a list nor a dictionary.
        """
        if self.structure == SINGLE:
            return (value,)
        name = self._name
        names = [each.name for each in self.specs]
        if isinstance(value, Mapping):
            if {*value} != {*names} or len({*names}) < len(names):
                raise ValueError(f"{name} must have the keys {names}. Received: {[*value]}")
            return [value[key] for key in names]
        if self.structure == DICTIONARY or not isinstance(value, list | tuple):
            kind = f"dictionary with the keys {names}"
            if self.structure == LIST:
                kind = f"list of {len(names)} arrays"
            raise TypeError(f"{name} must be a {kind}. Received: {type(value).__name__}")
        if len(value) != len(names):
            raise ValueError(f"{name} must have {len(names)} arrays. Received: {len(value)}")
        return [*value]

    def packed(self, values: Sequence[Any]) -> Any:
        """Values as a call returns them.

        Args:
          values: one for each of `specs`.

        Returns:
          The value, a list or a dictionary.
        """
        if self.structure == SINGLE:
            return values[0]
        if self.structure == LIST:
            return [*values]
        return dict(zip((each.name for each in self.specs), values, strict=True))


def numbers(spec: Spec, name: str, value: Any) -> npt.NDArray[Any]:
    """An array of the type of an input.

    Args:
      spec: of the input.
      name: how messages call it.
      value: what `arrays.as_array` takes.

    Returns:
      The array; of an input of type int32 its values as int32. [B] becomes [B, 1] where an input
      has one number for each row, such as lengths.

    Raises:
      ValueError: NumPy cannot read the value, or an index is not an integer of 32 bits.
      TypeError: the elements are not real numbers.
    """
    array = arrays.as_array(name, value)
    if array.ndim == 1 and spec.shape[1:] == (1,):  # one number for each row
        array = array[:, None]
    if spec.dtype == "float32" or array.dtype == np.int32:
        return array
    with np.errstate(invalid="ignore"):
        indices = array.astype(np.int32)
    if not np.array_equal(indices, array):
        raise ValueError(f"{name} must have integers of 32 bits, which are indices of an embedding")
    return indices


def contiguous(spec: Spec, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array as the library reads it.

    Args:
      spec: of the input.
      array: a result of `numbers`.

    Returns:
      The same array if it is contiguous, aligned and of the type of the input, else a copy.
    """
    if spec.dtype == "float32":
        return arrays.as_floats(array)
    array = np.ascontiguousarray(array, np.int32)
    return array if array.flags.aligned else array.copy()


def struct(spec: Spec, shape: Sequence[int]) -> bytes:
    """The start of the struct of an input or output for the library, without addresses.

    Args:
      spec: of the input or output.
      shape: of the array.

    Returns:
      The first bytes of a tf_lstm_ops_array, to which `native.addresses` are added.
    """
    return native.packed(native.INT32 if spec.dtype == "int32" else native.FLOAT32, shape)


def structs(
    starts: Sequence[bytes],
    values: Sequence[npt.NDArray[Any]],
    masks: Sequence[npt.NDArray[Any] | None],
    are_lengths: bool = False,
) -> bytes:
    """The structs of all inputs or outputs.

    Args:
      starts: results of `struct`.
      values: the arrays.
      masks: a mask or None for each; empty: none has one.
      are_lengths: whether masks are lengths.

    Returns:
      The bytes of all structs.
    """
    if len(values) == 1 and not masks:  # the common case
        return starts[0] + native.addresses(arrays.pointer(values[0]), 0)
    parts = []
    for k, value in enumerate(values):
        mask = masks[k] if masks else None
        address = 0 if mask is None else arrays.pointer(mask)
        start = native.with_lengths(starts[k]) if are_lengths and address else starts[k]
        parts += [start, native.addresses(arrays.pointer(value), address)]
    return b"".join(parts)


def checked_threads(threads: Any) -> int:
    """The argument threads.

    Args:
      threads: the number of threads.

    Returns:
      The number.

    Raises:
      ValueError: it is out of range.
      TypeError: it is no integer.
    """
    if isinstance(threads, bool) or not hasattr(threads, "__index__"):
        raise TypeError(f"threads must be an integer. Received: threads={threads!r}")
    threads = int(threads)
    if not 1 <= threads <= native.MAX_THREADS:
        raise ValueError(
            f"threads must be from 1 to {native.MAX_THREADS}. Received: threads={threads}"
        )
    return threads


def checked_mask(label: str, mask: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """A mask as the library reads it.

    Args:
      label: of the argument, for messages.
      mask: not 0 where a step is valid.
      shape: that it must have.

    Returns:
      0 or 1, contiguous.

    Raises:
      ValueError: it has another shape.
      TypeError: it has no real numbers.
    """
    valid = arrays.as_array(label, mask)
    if valid.shape != shape:
        axes = ", ".join(map(str, shape))
        raise ValueError(f"{label} must have the shape [{axes}]. Received: {valid.shape}")
    return np.ascontiguousarray(valid, np.bool_).view(np.uint8)


def checked_lengths(label: str, lengths: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Lengths as the library reads them.

    Args:
      label: of the argument, for messages.
      lengths: the number of steps of each row.
      shape: the batch and the steps.

    Returns:
      int32, contiguous.

    Raises:
      ValueError: they have another shape, or one is not from 0 to the steps.
      TypeError: they are no integers.
    """
    found = arrays.as_array(label, lengths)
    if found.shape != shape[:1]:
        raise ValueError(f"{label} must have the shape [{shape[0]}]. Received: {found.shape}")
    if found.size and found.dtype.kind not in "iu":
        raise TypeError(f"{label} must have integers. Received: {found.dtype}")
    steps = shape[1]
    if found.size and not 0 <= found.min() <= found.max() <= steps:
        wrong = found[(found < 0) | (found > steps)][0]
        raise ValueError(f"{label} must be from 0 to {steps}, the steps. Received: {wrong}")
    return np.ascontiguousarray(found, np.int32)
