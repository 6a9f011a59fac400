"""Tensors in files beside an ONNX file, and places where they must not be."""

import os
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx, whose files these are, is not installed")
from onnx import helper  # noqa: E402

from tf_lstm_ops.onnx_graph.constants import Constants  # noqa: E402
from tf_lstm_ops.onnx_graph.load import load  # noqa: E402

from . import models  # noqa: E402

ARRAY = np.arange(6, dtype="f4").reshape(2, 3)


def write(folder: Path, **place: str) -> Path:
    """A model with the tensor a in a.bin, 8 bytes after its beginning, unless `place` says else."""
    nodes = [helper.make_node("Add", ["x", "a"], ["y"])]
    model = models.model(models.graph(nodes, {"a": ARRAY}))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": "a.bin", "offset": "8", "length": "24", **place}.items():
        if value is not None:
            tensor.external_data.add(key=key, value=value)
    folder.mkdir(exist_ok=True)
    (folder / "a.bin").write_bytes(bytes(8) + ARRAY.tobytes())
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("place", [{}, {"length": None}, {"location": "./a.bin"}])
def test_the_tensor_is_read(place: dict[str, str], tmp_path: Path) -> None:
    model = load(write(tmp_path, **place))
    np.testing.assert_array_equal(Constants(model.graph).get("a"), ARRAY)


def test_a_tensor_of_a_node_in_a_branch(tmp_path: Path) -> None:
    path = write(tmp_path)
    model = onnx.load(path, load_external_data=False)
    node = helper.make_node("Constant", [], ["a"], value=model.graph.initializer[0])
    branch = models.graph([node], inputs=())
    nodes = [helper.make_node("If", ["x"], ["y"], then_branch=branch, else_branch=branch)]
    path.write_bytes(models.model(models.graph(nodes)).SerializeToString())
    found = load(path).graph.node[0].attribute
    for each in found:
        np.testing.assert_array_equal(Constants(each.g).get("a"), ARRAY)


def test_of_another_folder_by_the_working_directory(tmp_path: Path, monkeypatch) -> None:
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(Constants(load("m.onnx").graph).get("a"), ARRAY)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"location": "../a.bin"}, "'../a.bin', which is outside the folder"),
        ({"location": "/etc/passwd"}, "'/etc/passwd', which is outside the folder"),
        ({"location": "link"}, "'link', which is outside the folder"),
        ({"location": ""}, "tensor a is in another file, whose name is ''"),
        ({"location": None}, "tensor a is in another file, whose name is ''"),
        ({"location": "a\0b"}, "tensor a is in another file, whose name is "),
        ({"offset": "9"}, "must have the bytes 9 to 33 of a.bin, which has 32 bytes"),
        ({"offset": "-1"}, "tensor a has the offset '-1', which is no number"),
        ({"offset": "x"}, "tensor a has the offset 'x', which is no number"),
        ({"offset": "9" * 5000}, "which is no number$"),
        ({"length": "20"}, "must have 24 bytes by its sizes but has the length 20"),
        ({"length": ""}, "tensor a has the length '', which is no number"),
    ],
)
def test_wrong_places(place: dict[str, str], message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "folder", **place)
    (tmp_path / "a.bin").write_bytes(bytes(99))
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "a.bin")
    with pytest.raises(ValueError, match=message):
        load(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"tensor a is in the file 'b\.bin', which is missing"
    ):
        load(write(tmp_path, location="b.bin"))


def test_no_regular_file(tmp_path: Path) -> None:
    path = write(tmp_path, location="pipe")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="Not a regular file"):
        load(path)
    with pytest.raises(ValueError, match="outside the folder"):
        load(write(tmp_path, location="."))


def test_a_model_has_no_folder(tmp_path: Path) -> None:
    model = onnx.load(write(tmp_path), load_external_data=False)
    with pytest.raises(ValueError, match="tensor a is in another file; pass the path"):
        load(model)


def test_tensors_that_share_bytes_too_often(tmp_path: Path) -> None:
    """Small files that would fill the memory."""
    path = write(tmp_path)
    model = onnx.load(path, load_external_data=False)
    for k in range(8):
        model.graph.initializer.add().CopyFrom(model.graph.initializer[0])
        model.graph.initializer[-1].name = f"a{k}"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=r"tensors share a\.bin too often"):
        load(path)
