"""The package's folder in the user's cache: nobody else can write to what is loaded from it."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from tf_lstm_ops import _cuda_stream, _gpu, _library, _user_cache


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


def test_a_user_without_a_home_folder(cache, monkeypatch):
    """Neither $HOME nor an entry in the list of users, as in containers: a folder of the user's."""
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("TMPDIR", str(cache))
    monkeypatch.setattr(Path, "home", lambda: Path("~").expanduser())
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    folder = _user_cache.folder("a")
    assert folder == cache / f"tf_lstm_ops_of_user_{os.geteuid()}" / "a"
    assert mode(folder) == mode(folder.parent) == 0o700
    assert _gpu.records() == []


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
    _cuda_stream.build()
    _cuda_stream.use()
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
    for call in (_cuda_stream.use, _cuda_stream.build):
        with pytest.raises(PermissionError, match=f"{library} must .*Delete it"):
            call()
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


@pytest.mark.parametrize("folder", [False, True])
def test_the_use_of_the_stream_library_compiles_nothing(cache, compiler, folder):
    """An import only uses it."""
    if folder:
        _user_cache.folder()
    before = sorted(cache.rglob("*"))
    with pytest.raises(FileNotFoundError, match=r"`tf-lstm-ops selftest --device GPU` builds it"):
        _cuda_stream.use()
    assert sorted(cache.rglob("*")) == before
    assert "TF_LSTM_OPS_CUDA_STREAM_LIBRARY" not in os.environ


# A process with an NVIDIA GPU, as far as the package sees, and a compiler that leaves a file.
IMPORT = """
import os
exists = os.path.exists
os.path.exists = lambda path: path == "/dev/nvidiactl" or exists(path)
import tensorflow as tf
tf.test.is_built_with_cuda = lambda: True
import tf_lstm_ops
from tensorflow.python.framework import kernels
found = kernels.get_registered_kernels_for_op("TfLstmOps>BlockLSTM").kernel
print({kernel.device_type for kernel in found})
from tf_lstm_ops.cli import doctor_environment, info
print(info.facts()["gpu_kernels"]["reason"])
print(*[each.change for each in doctor_environment.problems() if "stream" in each.problem])
"""


@pytest.mark.full  # a process that imports TensorFlow
def test_an_import_without_the_stream_library_registers_no_gpu_kernels(cache, compiler):
    library = _library.gpu_path()
    if library is None or not library.stem.endswith("cuda"):
        pytest.skip("this package has no kernels for CUDA")
    done = subprocess.run(
        [sys.executable, "-c", IMPORT],
        env={**os.environ, "TF_LSTM_OPS_GPU": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    kernels, reason, change = done.stdout.splitlines()
    assert kernels == "{'CPU'}"
    assert reason.startswith("off, because their library cannot be loaded: the stream library")
    assert change == "run tf-lstm-ops selftest --device GPU"
    assert not (cache / "tf_lstm_ops").exists()
