"""Files by their path: whether they are files, and writing them as a whole.

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
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Content: TypeAlias = "bytes | npt.NDArray[np.uint8]"

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


def check_regular(name: str | bytes) -> os.stat_result:
    """Checks that a path is a file, no folder, FIFO or device.

    Args:
      name: the path.

    Returns:
      Its status.

    Raises:
      OSError: it is something else, or there is nothing.
    """
    status = os.stat(name)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(status.st_mode):  # open would wait for the other end of a FIFO
        raise OSError(errno.EINVAL, "Not a regular file", name)
    return status


def write(name: str | bytes, content: Content) -> None:
    """Writes a file where ``open(name, "wb")`` would, but only when all is written.

    If the folder takes no new file, the content goes into the old file at once.

    Args:
      name: the path. If it is a symbolic link, its target is written.
      content: the bytes.

    Raises:
      OSError: the file cannot be written, or is not a regular one.
    """
    try:
        try:
            with replacement(name, content):
                pass
        except OSError as error:
            if error.errno not in _NO_NEW_FILE or not os.access(name, os.W_OK):
                raise
            data = bytes(content)  # a session may have mapped this file
            with open(name, "r+b") as file:
                file.write(data)
                file.truncate()
    except OSError as error:  # of the path that the user knows
        raise OSError(error.errno, error.strerror, name) from None


@contextlib.contextmanager
def replacement(name: str | bytes, content: Content) -> Iterator[str]:
    """A context with a new file, which takes the place of a file at its end.

    If the context raises an error, the new file is removed, and the old one stays as it was.

    Args:
      name: the path of the file, which need not exist. If it is a symbolic link, its target is
        replaced. The new file gets the owner, the permissions and the attributes of the old one.
      content: the bytes of the new file.

    Yields:
      The name of the new file, in the folder of the old one.

    Raises:
      OSError: the file cannot be written, or is not a regular one.
    """
    target, status = _target(name)
    temporary = os.path.join(os.path.dirname(target), f".tf_lstm_ops_{os.urandom(8).hex()}")
    mode = 0o666 if status is None else 0o600  # without the bits of the umask
    # A function of Python could be interrupted before it returns the number of the open file.
    opener = functools.partial(os.open, mode=mode)
    try:
        # Mode x opens no file and no link that is there already.
        with open(temporary, "xb", opener=opener) as file:
            file.write(content if isinstance(content, bytes) else content.data)
        yield temporary
        if status is not None:
            _take_over(target, status, temporary)
        os.replace(temporary, target)
    except BaseException as error:
        if not (isinstance(error, FileExistsError) and error.filename == temporary):
            with contextlib.suppress(OSError):
                os.remove(temporary)
        raise


def _target(name: str | bytes) -> tuple[str, os.stat_result | None]:
    """The file that ``open(name, "wb")`` would write, and its status; None for a new file."""
    target = os.path.realpath(os.fsdecode(name))
    try:
        status = check_regular(name)
    except FileNotFoundError:
        folder, last = os.path.split(os.fsdecode(name))
        if not last or not os.path.isdir(folder or os.curdir):
            raise
        return target, None
    io.FileIO(name, "a").close()  # the errors of open
    return target, status


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
