"""Files by their path: which ones can be read, and writing them as a whole.

An exception of a signal handler may come between any two steps of Python. So a file that is open is
always in a file object, which closes it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import shutil
import stat
from typing import Any

import numpy as np
import numpy.typing as npt

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

# The errors of a folder that takes no new file, or of a file that is a mount point.
_NO_NEW_FILE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY)


def checked(path: Any) -> str | bytes:
    """Checks the type of a path.

    Args:
      path: the argument of the user.

    Returns:
      Its name.

    Raises:
      TypeError: path is neither a string, nor bytes, nor a path.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path must be a string, bytes or a path. Received: path={path!r}")
    return os.fspath(path)


def check_readable(name: str | bytes) -> None:
    """Checks that a file can be opened for reading.

    Args:
      name: the path.

    Raises:
      OSError: the error of open, or the file is not a regular one.
      ValueError: the file is empty.
    """
    status = os.stat(name)
    _check_regular(status, name)
    if not status.st_size:
        raise ValueError(f"{os.fsdecode(name)}: the file is empty")
    io.FileIO(name).close()


def _check_regular(status: os.stat_result, name: str | bytes) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(status.st_mode):  # open would wait for the other end of a FIFO
        raise OSError(errno.EINVAL, "Not a regular file", name)


def write(name: str | bytes, content: npt.NDArray[np.uint8]) -> None:
    """Writes a file where ``open(name, "wb")`` would, but only when all is written.

    Args:
      name: the path. If it is a symbolic link, its target is written.
      content: the bytes.

    Raises:
      OSError: the file cannot be written, or is not a regular one.
    """
    try:
        _write(name, content)
    except OSError as error:  # of the path that the user knows
        raise OSError(error.errno, error.strerror, name) from None


def _write(name: str | bytes, content: npt.NDArray[np.uint8]) -> None:
    target = os.path.realpath(os.fsdecode(name))
    try:
        status = os.stat(name)
    except FileNotFoundError:
        folder, last = os.path.split(os.fsdecode(name))
        if not last or not os.path.isdir(folder or os.curdir):
            raise
        _replace(target, content, None)
        return
    _check_regular(status, name)
    io.FileIO(name, "a").close()  # the errors of open
    try:
        _replace(target, content, status)
    except OSError as error:
        if error.errno not in _NO_NEW_FILE:
            raise
        data = content.tobytes()  # a session may have mapped this file
        with open(name, "r+b") as file:
            file.write(data)
            file.truncate()


def _replace(target: str, content: npt.NDArray[np.uint8], status: os.stat_result | None) -> None:
    """Writes a new file, and gives it the name and what else the old one has."""
    temporary = os.path.join(os.path.dirname(target), f".tf_lstm_ops_{os.urandom(8).hex()}")
    mode = 0o666 if status is None else 0o600  # without the bits of the umask
    try:
        # A function of Python could be interrupted before it returns the number of the open file.
        opener = functools.partial(os.open, mode=mode)
        with open(temporary, "xb", opener=opener) as file:
            file.write(content.data)
        if status is not None:
            _take_over(target, status, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise


def _take_over(old: str, status: os.stat_result, new: str) -> None:
    """Gives a file the owner, the permissions and the attributes of another one."""
    mode = stat.S_IMODE(status.st_mode)
    if hasattr(os, "chown"):
        for owner in (status.st_uid, -1):  # only root can set it
            with contextlib.suppress(PermissionError):
                os.chown(new, owner, status.st_gid)
                break
        else:
            mode &= ~stat.S_IRWXG  # they were not given to this group
    shutil.copystat(old, new)
    os.chmod(new, mode)
    os.utime(new)
