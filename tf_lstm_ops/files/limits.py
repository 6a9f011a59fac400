"""What a file of others may hold: the table of all limits, and the checks before it is read."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import Any

from tf_lstm_ops import _files
from tf_lstm_ops.files import kinds

# --- bytes and numbers, by the size of the file ---
# Bytes that a file may stand for beside its own size, by compression or repetition. Reading takes a
# few times as many.
FREE_BYTES = 1 << 26
# Names of one tensor in a file of torch.save, all of which count.
NAMES_OF_A_TENSOR = 3
# How often the bytes of a file beside an ONNX file are read at most: tensors may share them. A
# small ONNX file with many tensors could else fill the memory.
READS_OF_A_FILE = 4
# What the nodes of an ONNX file may make of constants: weights of 8 bits become four times as
# large, and arrays of sizes and zeros are small; at most as much as the largest ONNX file has.
MADE_TIMES, MADE_MORE, MADE_BYTES = 4, 1 << 27, 1 << 31
# Numbers that Keras makes for a file, by the count of its numbers: the layers of a Sequential may
# be made twice, to look at its masks, or an array be broadcast; more are states, or seeds.
KERAS_TIMES, KERAS_MORE = 2, 1 << 20
# --- of texts and graphs ---
# Bytes of JSON that describes a model. Python may need 25 times as many for the objects.
JSON_BYTES = 1 << 23
# The depth of lists and dictionaries in each other. A model in a model is 8 deep.
JSON_DEPTH = 200
# The depth of ONNX graphs in each other. A parser takes about 30.
GRAPH_DEPTH = 16
# Every size in a file of RTNeural.
RTNEURAL_SIZE = 1 << 24


def most_bytes(size: int) -> int:
    """The most bytes that the contents of a file may have in memory.

    Args:
      size: that of the file.

    Returns:
      Its size and `FREE_BYTES`.
    """
    return size + FREE_BYTES


class Limit:
    """Counts the bytes that a file stands for.

    Args:
      name: the name of the file in messages.
      size: the size of the file.
    """

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size, self._left = name, size, most_bytes(size)

    def take(self, part: str, count: int) -> None:
        """Counts the bytes of a part of the file, before they are read.

        Args:
          part: its name.
          count: its bytes in memory.

        Raises:
          ValueError: the parts together are much larger than the file.
        """
        self._left -= count
        if self._left < 0:
            raise ValueError(
                f"{part} of {self._name} has {count} bytes, with which the file of {self._size} "
                f"bytes stands for more than {most_bytes(self._size)}: arrays must not be larger "
                "than the file. Write it without compression"
            )


def check_readable(name: str | bytes) -> None:
    """Checks that a file can be opened for reading, and has its contents.

    Args:
      name: the path.

    Raises:
      OSError: the error of open, or the file is not a regular one.
      ValueError: the file is empty, or a pointer of Git LFS.
    """
    if not _files.check_regular(name).st_size:
        raise ValueError(f"{os.fsdecode(name)}: the file is empty")
    with io.FileIO(name) as file:
        if file.read(len(kinds.GIT_LFS)) == kinds.GIT_LFS:
            raise ValueError(f"{os.fsdecode(name)} is {kinds.TABLE['git-lfs'].advice}")


def readable(path: Any) -> str:
    """Checks a path that a user gives, and that the file can be opened for reading.

    Args:
      path: the argument.

    Returns:
      Its name.

    Raises:
      TypeError: path is neither a string, nor bytes, nor a path.
      OSError, ValueError: as of `check_readable`.
    """
    name = _files.checked(path)
    check_readable(name)
    return os.fsdecode(name)


def content(path: Any) -> bytes:
    """Reads a file.

    Args:
      path: as of `readable`.

    Returns:
      Its bytes.

    Raises:
      TypeError, OSError, ValueError: as of `readable`.
    """
    with open(readable(path), "rb") as file:
        return file.read()


def require_different(names: Iterable[str], where: str) -> None:
    """Checks that the parts of a file have different names: readers differ in which one counts.

    Args:
      names: the names.
      where: what has them, for the message.

    Raises:
      ValueError: a name is there twice.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{where} has the name {name[:200]!r} twice")
        seen.add(name)
