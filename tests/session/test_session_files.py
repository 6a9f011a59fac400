"""Paths and files of sessions: names, replaced files, errors that name the file."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from session import c_library as c
from session import layers, native_program, special_files
from tf_lstm_ops.inference import Session

X = np.ones((2, 3, layers.INPUTS), np.float32)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session.load(native_program.write(tmp_path, "lstm"))


@pytest.mark.parametrize("name", ["模型-ü.bin", "with blanks", "y" * 255])
def test_names(session: Session, tmp_path: Path, name: str) -> None:
    session.save(tmp_path / name)
    np.testing.assert_array_equal(Session.load(tmp_path / name)(X), session(X))
    library = c.load(c.path())
    np.testing.assert_array_equal(c.Session(library, tmp_path / name)(X), session(X))


def test_a_file_in_use_is_replaced(session: Session, tmp_path: Path) -> None:
    """A session keeps the file that it has mapped."""
    other = Session.load(native_program.write(tmp_path, "grus of 256"))
    path = tmp_path / "lstm.bin"
    want, stream = session(X), session.stream(2)
    again = Session.load(path, threads=2)
    in_c = c.Session(c.load(c.path()), path)
    other.save(path)
    for kept in (session, again, in_c, stream):
        np.testing.assert_array_equal(kept(X), want)
    np.testing.assert_array_equal(Session.load(path)(X), other(X))
    session.save(path)
    np.testing.assert_array_equal(Session.load(path)(X), want)


def test_a_file_that_is_removed(session: Session, tmp_path: Path) -> None:
    want = session(X)
    (tmp_path / "lstm.bin").unlink()
    np.testing.assert_array_equal(session(X), want)


def test_a_file_that_cannot_be_written(session: Session, tmp_path: Path) -> None:
    """The errors name the path of the call, and nothing is left behind."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (tmp_path / "none" / "file", folder, tmp_path / ("y" * 256)):
        with pytest.raises(OSError) as caught:
            session.save(path)
        assert caught.value.filename == str(path) and caught.value.filename2 is None
    assert sorted(os.listdir(tmp_path)) == ["folder", "lstm.bin"]


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    library = c.load(c.path())
    for path in (tmp_path, tmp_path / "none", Path("x" * 5000)):
        with pytest.raises(OSError) as caught:
            Session.load(path)
        assert caught.value.filename == str(path)
        with pytest.raises(c.CallError) as in_c:
            c.Session(library, path)
        assert in_c.value.code == c.NOT_FOUND
    with pytest.raises(ValueError, match=r"null (byte|character)"):
        Session.load("a\0b")


def test_a_read_only_file(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "lstm.bin"
    path.chmod(0o400)
    np.testing.assert_array_equal(Session.load(path)(X), session(X))
    np.testing.assert_array_equal(c.Session(c.load(c.path()), path)(X), session(X))


@pytest.mark.parametrize("kind", special_files.KINDS)
def test_no_regular_file_in_c(tmp_path: Path, kind: str) -> None:
    library = c.load(c.path())
    with special_files.made(kind, tmp_path) as path:
        link = tmp_path / "link"
        link.symlink_to(path)
        for name in (path, link):
            with pytest.raises(c.CallError, match=f"not a regular file: {name}") as caught:
                c.Session(library, name)
            assert caught.value.code == c.NOT_FOUND


IN_PYTHON = """
from tf_lstm_ops.inference import Session
Session.load(sys.argv[1])
"""
IN_C = """
from session import c_library as c
c.Session(c.load(c.path()), sys.argv[1])
"""


@pytest.mark.parametrize("program", [IN_PYTHON, IN_C], ids=["python", "c"])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFO")
def test_a_fifo_without_a_writer(tmp_path: Path, program: str) -> None:
    """To open it would wait for ever."""
    os.mkfifo(tmp_path / "fifo")
    start = f"import sys\nsys.path[:0] = {sys.path!r}\nsys.modules['tensorflow'] = None\n"
    command = [sys.executable, "-c", start + program, str(tmp_path / "fifo")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "ot a regular file" in done.stderr


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts Linux's descriptors")
def test_no_descriptor_stays_open(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "lstm.bin"
    before = os.listdir("/proc/self/fd")
    sessions = [Session.load(path, threads=k % 2 + 1) for k in range(20)]
    streams = [each.stream() for each in sessions]
    assert len(os.listdir("/proc/self/fd")) == len(before)
    sessions[-1].save(path)
    np.testing.assert_array_equal(sessions[0](X), session(X))
    assert len(streams) == 20


def test_the_bytes_of_a_session(tmp_path: Path) -> None:
    """In C, of a path and of data."""
    path = native_program.write(tmp_path, "grus of 256")
    library, content = c.load(c.path()), path.read_bytes()
    of_path, of_data = c.Session(library, path), c.Session(library, content)
    assert of_path.content == of_data.content == content
