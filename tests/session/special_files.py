"""Files that are not regular, for tests of what opens files."""

import contextlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

KINDS = ["fifo", "device", "zeros", "socket", "folder"]


@contextlib.contextmanager
def made(kind: str, folder: Path) -> Iterator[Path]:
    """A file of this kind. Devices are new nodes: a test must not endanger those of the system."""
    path = folder / kind
    with contextlib.ExitStack() as stack:
        if kind == "fifo":
            os.mkfifo(path)
            # With both ends open, no open waits.
            stack.callback(os.close, os.open(path, os.O_RDWR | os.O_NONBLOCK))
        elif kind == "folder":
            path.mkdir()
        elif kind == "socket":
            bound = stack.enter_context(socket.socket(socket.AF_UNIX))
            bound.bind(str(path))
        else:
            if not hasattr(os, "mknod") or os.geteuid():
                pytest.skip("only root makes devices")
            number = os.makedev(1, 3 if kind == "device" else 5)  # null, zero
            try:
                os.mknod(path, 0o666 | stat.S_IFCHR, number)
            except PermissionError:
                pytest.skip("a container that makes no devices")
        yield path
