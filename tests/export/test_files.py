"""Exports write a new file, and give it the name when it has been checked."""

import os
import stat
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from tf_lstm_ops import _files
from tf_lstm_ops.export import onnx, tflite
from tf_lstm_ops.keras import LSTM


def export(form: str, path: Path) -> None:
    model = keras.Sequential([keras.Input((3, 2)), LSTM(2)])
    if form == "onnx":
        pytest.importorskip("tf2onnx", reason="the converter")
        onnx(model, path)
    elif not hasattr(tf, "lite"):
        pytest.skip("this TensorFlow has no TensorFlow Lite")
    else:
        tflite(model, path)


@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("form", ["onnx", "tflite"])
def test_other_files_in_the_folder(form, tmp_path):
    """A file, and a link to a file elsewhere, of a name that one could guess."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path, target = folder / "model", tmp_path / "target"
    target.write_text("target")
    (folder / "model.unchecked").symlink_to(target)
    export(form, path)
    assert target.read_text() == "target"
    assert sorted(p.name for p in folder.iterdir()) == ["model", "model.unchecked"]


def test_an_existing_file_is_not_opened(tmp_path, monkeypatch):
    """Neither is a link, even if the random name is known."""
    known = b"known..."
    monkeypatch.setattr(_files.os, "urandom", lambda n: known)
    target = tmp_path / "target"
    target.write_text("target")
    (tmp_path / f".tf_lstm_ops_{known.hex()}").symlink_to(target)
    with pytest.raises(FileExistsError), _files.replacement(tmp_path / "model", b"content"):
        pass
    assert target.read_text() == "target"
    assert (tmp_path / f".tf_lstm_ops_{known.hex()}").is_symlink()


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_are_those_of_a_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        with _files.replacement(tmp_path / "model", b"content") as name:
            assert Path(name).read_bytes() == b"content"
    finally:
        os.umask(before)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "model").read_bytes() == b"content"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_nothing(error, tmp_path):
    path = tmp_path / "model"
    path.write_text("before")
    with pytest.raises(error), _files.replacement(path, b"content"):
        raise error
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_cannot_be_given(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    with pytest.raises(OSError), _files.replacement(path, b"content"):
        pass
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder(tmp_path):
    path = tmp_path / "missing" / "file"
    with (
        pytest.raises(FileNotFoundError, match=r"No such file.*missing/file"),
        _files.replacement(path, b""),
    ):
        pass


@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("form", ["onnx", "tflite"])
def test_special_files(form, tmp_path):
    """They are refused, and the target of a symbolic link is written."""
    fifo, link, target = (tmp_path / name for name in ("fifo", "link", "target"))
    os.mkfifo(fifo)
    with pytest.raises(OSError, match="Not a regular file"):
        export(form, fifo)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    target.write_bytes(b"old")
    target.chmod(0o600)
    link.symlink_to("target")
    export(form, link)
    assert link.is_symlink() and target.stat().st_size > 100
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
