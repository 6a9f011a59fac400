"""Reads the parts of protobuf messages that TensorFlow has no public class for."""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # the wire types
_MOST_BITS = 64  # of a number


def fields(message: bytes, size: int | None = None) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, in order.

    Args:
      message: the bytes, or the first ones.
      size: the count of all bytes; None: these are all.

    Yields:
      The number of a field, and its value: a number, or the bytes of a text or of a message.

    Raises:
      ValueError: the bytes are no message.
    """
    at, end = 0, len(message) if size is None else size
    while at < len(message):
        key, at = _number(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _number(message, at)
            yield key >> 3, value
            continue
        sizes = {_FIXED_64: 8, _FIXED_32: 4}
        if kind == _BYTES:
            count, at = _number(message, at)
        elif kind in sizes:
            count = sizes[kind]
        else:
            raise ValueError(f"the file has a message with a field of type {kind}")
        if count > end - at:
            raise ValueError("the file has a message that is cut off")
        yield key >> 3, message[at : at + count]
        at += count


def texts(message: bytes, number: int) -> list[bytes]:
    """The texts, or messages, of a field.

    Args:
      message: the bytes.
      number: the number of the field.

    Returns:
      The values.

    Raises:
      ValueError: as of `fields`.
    """
    return [v for n, v in fields(message) if n == number and isinstance(v, bytes)]


def _number(message: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and the position after it."""
    value = shift = 0
    while at < len(message) and shift < _MOST_BITS:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("the file has a message that is cut off")
