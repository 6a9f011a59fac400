"""The package's folder in the user's cache: nobody else can write to what is loaded from it."""

import os
import stat
from pathlib import Path

import pytest
import tensorflow as tf

from tf_lstm_ops import _cuda_stream, _gpu, _user_cache


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the user's, with a umask that lets the user's group write."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = os.umask(0o002)
    yield tmp_path
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def test_folders_have_the_mode_0700(cache):
    assert _user_cache.folder("a", "b") == cache / "tf_lstm_ops" / "a" / "b"
    for path in ("tf_lstm_ops", "tf_lstm_ops/a", "tf_lstm_ops/a/b"):
        assert mode(cache / path) == 0o700


def test_a_folder_that_others_can_read_is_closed(cache):
    (cache / "tf_lstm_ops").mkdir(mode=0o755)
    _user_cache.folder()
    assert mode(cache / "tf_lstm_ops") == 0o700


def test_a_folder_that_others_can_write_to_is_refused(cache):
    (cache / "tf_lstm_ops").mkdir()
    (cache / "tf_lstm_ops").chmod(0o777)
    with pytest.raises(PermissionError, match="writable by its owner only but has the mode 777"):
        _user_cache.folder("a")


def test_a_link_is_refused(cache):
    (cache / "elsewhere").mkdir()
    (cache / "tf_lstm_ops").symlink_to(cache / "elsewhere")
    with pytest.raises(PermissionError, match="must be a file or a folder, not a link"):
        _user_cache.folder("a")
    assert not any((cache / "elsewhere").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(cache):
    (cache / "tf_lstm_ops").mkdir(mode=0o700)
    os.chown(cache / "tf_lstm_ops", 12345, 12345)
    with pytest.raises(PermissionError, match="must belong to the user 0 but belongs to 12345"):
        _user_cache.folder()


def test_a_file_is_written_for_its_owner_only():
    file = _user_cache.folder() / "file"
    _user_cache.write(file, "old")
    _user_cache.write(file, "new")
    assert file.read_text() == "new"
    assert mode(file) == 0o600
    assert [file] == list(file.parent.iterdir())


def stream_library() -> Path:
    """Where the library is, once it has been made. The compiler is a script."""
    assert _cuda_stream.is_ready()
    return Path(os.environ["TF_LSTM_OPS_CUDA_STREAM_LIBRARY"])


@pytest.fixture
def compiler(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a GPU, and a compiler that appends a line to its output file."""
    script = cache / "cxx"
    script.write_text('#!/bin/sh\nfor last; do :; done\necho compiled >> "$last"\n')
    script.chmod(0o700)
    source = cache / "source"
    source.mkdir()
    (source / "stream.cc").write_text("")
    monkeypatch.setattr(_cuda_stream, "_FOLDER", source)
    monkeypatch.setattr(_gpu, "DRIVERS", (str(cache),))
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: True)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.delenv("TF_LSTM_OPS_CUDA_STREAM_LIBRARY", raising=False)
    return script


def test_the_stream_library_is_made_once_for_its_owner_only(cache, compiler, monkeypatch):
    library = stream_library()
    assert library.read_text() == "compiled\n"
    assert mode(library) == mode(library.parent) == mode(cache / "tf_lstm_ops") == 0o700
    compiler.unlink()
    monkeypatch.delenv("TF_LSTM_OPS_CUDA_STREAM_LIBRARY")
    assert stream_library() == library


@pytest.mark.parametrize("damage", ["link", "mode", "owner"])
def test_a_stream_library_of_anyone_else_is_refused(cache, compiler, monkeypatch, damage):
    library = stream_library()
    if damage == "link":
        library.rename(cache / "moved.so")
        library.symlink_to(cache / "moved.so")
    elif damage == "mode":
        library.chmod(0o777)
    elif os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    else:
        os.chown(library, 12345, 12345)
    monkeypatch.delenv("TF_LSTM_OPS_CUDA_STREAM_LIBRARY")
    with pytest.warns(UserWarning, match=f"{library} must .*Delete it") as caught:
        assert not _cuda_stream.is_ready()
    assert len(caught) == 1
    assert "TF_LSTM_OPS_CUDA_STREAM_LIBRARY" not in os.environ


@pytest.mark.parametrize("version, released", [("2.21.0", True), ("2.21.0-rc1", False)])
def test_a_release_of_tensorflow_takes_the_library_of_the_wheel(
    cache, compiler, monkeypatch, version, released
):
    """A candidate or a nightly build can have other classes, so its library is compiled."""
    monkeypatch.setattr(tf, "__version__", version)
    shipped = cache / "source" / "tf_lstm_ops_cuda_stream_2.21.so"
    shipped.write_text("shipped")
    assert (stream_library() == shipped) == released
    assert (stream_library().read_text() == "shipped") == released


def test_a_missing_compiler_is_a_warning(compiler):
    compiler.unlink()
    with pytest.warns(UserWarning, match=r"cannot be compiled or loaded .*\$CXX"):
        assert not _cuda_stream.is_ready()
