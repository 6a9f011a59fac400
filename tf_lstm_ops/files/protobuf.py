"""Reads the parts of protobuf messages that TensorFlow has no public class for."""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # the wire types
_MOST_BITS = 64  # of a number


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, in order.

    Args:
      message: the bytes.

    Yields:
      The number of a field, and its value: a number, or the bytes of a text or of a message.

    Raises:
      ValueError: the bytes are no message.
    """
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _number(message, at)
            yield key >> 3, value
            continue
        sizes = {_FIXED_64: 8, _FIXED_32: 4}
        if kind == _BYTES:
            size, at = _number(message, at)
        elif kind in sizes:
            size = sizes[kind]
        else:
            raise ValueError(f"the file has a message with a field of type {kind}")
        if size > len(message) - at:
            raise ValueError("the file has a message that is cut off")
        yield key >> 3, message[at : at + size]
        at += size


def outline(start: bytes, size: int) -> Iterator[tuple[int, int | bytes]]:
    """The fields with which a message begins. The last one may be cut off.

    Args:
      start: the first bytes of the message.
      size: those of the whole message.

    Yields:
      As of `fields`. It ends where no field follows.
    """
    at = 0
    while at < len(start):
        try:
            key, at = _number(start, at)
            if key & 7 not in (_VARINT, _BYTES) or not key >> 3:
                return
            value, at = _number(start, at)
        except ValueError:
            return
        if key & 7 == _VARINT:
            yield key >> 3, value
        elif value > size - at:
            return
        else:
            yield key >> 3, start[at : at + value]
            at += value


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
