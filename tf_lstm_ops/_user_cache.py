"""The package's folder in the user's cache. Nobody else can write to it, nor to its files.

Processes load libraries from this folder and believe the records in it. Links are not followed, so
that no other folder can take its place.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import stat
import tempfile

_NAME = "tf_lstm_ops"
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def path(*names: str) -> pathlib.Path:
    """A path in the folder. Nothing is created or checked.

    Args:
      *names: the parts of the path below the folder.

    Returns:
      The path in $XDG_CACHE_HOME/tf_lstm_ops, or in ~/.cache/tf_lstm_ops. For a user without a home
      folder it is a folder of the user in $TMPDIR or /tmp.
    """
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return pathlib.Path(cache, _NAME, *names)
    try:
        return pathlib.Path(pathlib.Path.home(), ".cache", _NAME, *names)
    except RuntimeError:  # neither $HOME nor an entry in the list of users
        temporary = os.environ.get("TMPDIR") or "/tmp"
        return pathlib.Path(temporary, f"{_NAME}_of_user_{os.geteuid()}", *names)


def folder(*names: str) -> pathlib.Path:
    """Creates a folder of mode 0700 and those above it, up to the package's.

    Args:
      *names: as for `path`.

    Returns:
      The folder.

    Raises:
      OSError: a folder cannot be created.
      PermissionError: a folder is a link, belongs to another user, or others can write to it.
    """
    path().parent.mkdir(parents=True, exist_ok=True)
    for depth in range(len(names) + 1):
        part = path(*names[:depth])
        with contextlib.suppress(FileExistsError):
            part.mkdir(mode=0o700)
        require_own(part)
        part.chmod(0o700)
    return path(*names)


def require_own(file: pathlib.Path) -> None:
    """Checks that nobody but this user can have written a file or a folder.

    Args:
      file: the file or folder.

    Raises:
      FileNotFoundError: it does not exist.
      PermissionError: it is a link or a device, belongs to another user, or others can write to it.
    """
    found = os.lstat(file)
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        problem = "must be a file or a folder, not a link"
    elif found.st_uid != os.geteuid():
        problem = f"must belong to the user {os.geteuid()} but belongs to {found.st_uid}"
    elif found.st_mode & _WRITABLE_BY_OTHERS:
        problem = f"must be writable by its owner only but has the mode {found.st_mode & 0o777:o}"
    else:
        return
    raise PermissionError(
        f"{file} {problem}. Delete it, or name another cache folder in $XDG_CACHE_HOME"
    )


def write(file: pathlib.Path, text: str) -> None:
    """Writes a file of mode 0600. Another process sees the old text or the new one.

    Args:
      file: a file in a folder that `folder` returned.
      text: its text.

    Raises:
      OSError: it cannot be written.
    """
    descriptor, part = tempfile.mkstemp(dir=file.parent)  # of mode 0600
    try:
        with os.fdopen(descriptor, "w") as opened:
            opened.write(text)
        os.replace(part, file)
    except BaseException:
        os.unlink(part)
        raise
