"""Files that are checked before they get their name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def checked(path: str | os.PathLike[str], content: bytes) -> Iterator[str]:
    """A context with a new file in the folder of `path`, which gets that name at its end.

    If the context raises an error, the new file is removed and `path` stays as it was.

    Args:
      path: the final name.
      content: the bytes of the file.

    Yields:
      The name of the new file within the context.

    Raises:
      FileNotFoundError: the folder of `path` does not exist.
    """
    folder = os.path.dirname(os.fspath(path))
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError(f"the folder {folder} does not exist")
    temporary = os.path.join(folder, f".tf_lstm_ops_{os.urandom(8).hex()}")
    # Mode x opens no file and no link that is there already. Unlike tempfile.mkstemp it leaves the
    # permissions to the umask.
    file = open(temporary, "xb")  # noqa: SIM115  closed before the removal, which Windows needs
    try:
        with file:
            file.write(content)
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        os.remove(temporary)
        raise
