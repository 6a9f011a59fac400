"""Session.save writes where ``open(path, "wb")`` would, as a whole, or refuses."""

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from session import layers, native_program, special_files
from tf_lstm_ops.inference import Session

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and permissions of POSIX")
X = np.ones((2, 3, layers.INPUTS), np.float32)
NOBODY = 65534


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session.load(native_program.write(tmp_path_factory.mktemp("saved"), "lstm"))


def check(session: Session, path: Path, mode: int | None = None) -> None:
    np.testing.assert_array_equal(Session.load(path)(X), session(X))
    if mode is not None:
        assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that a user who is not root can use."""
    path = Path(tempfile.mkdtemp()).resolve()
    path.chmod(0o777)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    yield path
    path.chmod(0o777)
    shutil.rmtree(path)


@pytest.fixture
def user(folder: Path) -> Iterator[None]:
    """The test runs as a user with no rights of root."""
    is_root = os.geteuid() == 0
    if is_root:
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    yield
    if is_root:
        os.seteuid(0)
        os.setegid(0)


def test_the_umask(session: Session, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        session.save(tmp_path / "file")
    finally:
        os.umask(before)
    check(session, tmp_path / "file", 0o640)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o400, 0o755])
def test_permissions_stay(session: Session, tmp_path: Path, mode: int) -> None:
    if not mode & stat.S_IWUSR and os.geteuid():
        pytest.skip("only root can write it")
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.utime(path, (1e9, 1e9))
    path.chmod(mode)
    session.save(path)
    check(session, path, mode)
    assert path.stat().st_mtime > 1e9


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="changes the owner")
def test_the_owner_stays(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    os.chown(path, NOBODY, NOBODY)
    session.save(path)
    check(session, path, 0o640)
    assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)


def test_symbolic_links(session: Session, tmp_path: Path) -> None:
    """The target is written: a file, one that does not exist yet, one behind several links."""
    target, missing = tmp_path / "below" / "target", tmp_path / "below" / "missing"
    target.parent.mkdir()
    target.write_bytes(b"old")
    links = {"to": target, "relative": Path("below/target"), "dangling": missing}
    links |= {"twice": tmp_path / "to", "folder": target.parent}
    for name, to in links.items():
        (tmp_path / name).symlink_to(to)
    for name in ("to", "relative", "dangling", "twice", "folder/other"):
        session.save(tmp_path / name)
        check(session, tmp_path / name)
    assert all((tmp_path / name).is_symlink() for name in links)
    assert sorted(os.listdir(target.parent)) == ["missing", "other", "target"]
    check(session, target)
    check(session, missing)


def test_hard_links(session: Session, tmp_path: Path) -> None:
    """The other name keeps the old file."""
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"old")
    other.hardlink_to(path)
    session.save(path)
    check(session, path)
    assert other.read_bytes() == b"old"


@pytest.mark.parametrize("kind", special_files.KINDS)
def test_no_regular_file(session: Session, tmp_path: Path, kind: str) -> None:
    with special_files.made(kind, tmp_path) as path:
        link = tmp_path / "link"
        link.symlink_to(path)
        before, names = os.stat(path), sorted(os.listdir(tmp_path))
        for name in (path, link):
            for call in (session.save, Session.load):
                with pytest.raises(OSError, match=r"Not a regular file|Is a directory") as caught:
                    call(name)
                assert caught.value.filename == str(name)
                assert "None" not in str(caught.value)
        after = os.stat(path)
        assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
        assert sorted(os.listdir(tmp_path)) == names


def test_errors_are_those_of_open(session: Session, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "nowhere").symlink_to(tmp_path / "none" / "file")
    names = ["none/file", ".", "y" * 256, "file/below", "loop", "none/.", "nowhere"]
    for path in (*(f"{tmp_path}/{name}" for name in names), "", b"", f"{tmp_path}/", b"/none/f"):
        with pytest.raises(OSError) as wanted:
            open(path, "wb")  # noqa: SIM115  it fails
        with pytest.raises(OSError) as caught:
            session.save(path)
        assert str(caught.value) == str(wanted.value)
        assert type(caught.value) is type(wanted.value)
    with pytest.raises(ValueError, match=r"null (byte|character)"):
        session.save("a\0b")
    assert (tmp_path / "file").read_bytes() == b"old"


class OfBytes:
    def __init__(self, path: Path) -> None:
        self.path = os.fsencode(path)

    def __fspath__(self) -> bytes:
        return self.path


def test_types_of_paths(session: Session, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "模型"
    monkeypatch.chdir(tmp_path)
    for same in (path, str(path), os.fsencode(path), OfBytes(path), "模型", "模型".encode()):
        session.save(same)
        np.testing.assert_array_equal(Session.load(same)(X), session(X))
        path.unlink()
    for wrong in (3, None, True, 1.5, [path]):
        for call in (session.save, Session.load):
            with pytest.raises(TypeError, match="path must be a string, bytes or a path"):
                call(wrong)


def test_an_error_leaves_the_file(session: Session, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a", None, "b")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match=r"No space left on device: '[^']*file'$"):
        session.save(path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]


def test_over_its_own_file(tmp_path: Path) -> None:
    path = native_program.write(tmp_path, "lstm")
    content, session = path.read_bytes(), Session.load(path)
    want = session(X)
    session.save(path)
    assert path.read_bytes() == content
    np.testing.assert_array_equal(session(X), want)


def test_a_read_only_file(session: Session, folder: Path, user: None) -> None:
    path = folder / "file"
    path.write_bytes(b"old")
    path.chmod(0o400)
    with pytest.raises(PermissionError, match=r"Permission denied: '[^']*file'$"):
        session.save(path)
    assert path.read_bytes() == b"old" and os.listdir(folder) == ["file"]


@pytest.mark.parametrize("old", [3, 1_000_000])
def test_a_read_only_folder(session: Session, folder: Path, user: None, old: int) -> None:
    """The file is written in place. A new one is refused."""
    path = folder / "file"
    path.write_bytes(bytes(old))
    path.chmod(0o600)
    number = path.stat().st_ino
    folder.chmod(0o555)
    session.save(path)
    check(session, path, 0o600)
    assert path.stat().st_ino == number
    Session.load(path).save(path)
    check(session, path)
    with pytest.raises(PermissionError, match=r"Permission denied: '[^']*new'$"):
        session.save(folder / "new")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="makes a file of root")
def test_a_file_of_another_user(session: Session, folder: Path, request) -> None:
    """Who cannot keep its owner and group does not give the group's permissions to another one."""
    path = folder / "file"
    path.write_bytes(b"old")
    path.chmod(0o666)
    request.getfixturevalue("user")
    session.save(path)
    assert path.stat().st_uid == NOBODY
    check(session, path, 0o606)
