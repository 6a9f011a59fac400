"""Files that are read, and those that are refused in words."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx, whose files these are, is not installed")
from onnx import helper  # noqa: E402

from tf_lstm_ops.onnx_graph.load import OPSETS, load, opset  # noqa: E402

from . import models  # noqa: E402


def node(op: str, inputs: list[str], outputs: list[str], **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, **attributes)


def small() -> onnx.ModelProto:
    """x + a, then a Neg in a branch of an If, which reads a value around it."""
    inner = models.graph([node("Neg", ["s"], ["n"])], inputs=())
    nodes = [
        node("Add", ["x", "a"], ["s"], name="sum"),
        node("If", ["c"], ["y"], then_branch=inner, else_branch=inner),
    ]
    return models.model(models.graph(nodes, {"a": np.ones(2, "f4"), "c": np.array(True)}))


@pytest.mark.parametrize("form", [str, os.fsencode, Path, lambda path: onnx.load(path)])
def test_each_form_of_a_source(form: Callable[[str], object], tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(small(), path)
    found = load(form(str(path)))
    assert found == small()
    assert opset(found) == 17


def test_neither_a_path_nor_a_model() -> None:
    with pytest.raises(TypeError, match="path must be a string, bytes or a path"):
        load(3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "m.onnx: the file is empty"),
        (b"\xff" * 40, "m.onnx is no ONNX file, or it is damaged: "),
        (b"PK\x03\x04" + bytes(30), "m.onnx is no ONNX file, or it is damaged: "),
        (small().SerializeToString()[:-9], "m.onnx is no ONNX file, or it is damaged: "),
        (small().SerializeToString().replace(b"sum", b"\xff\xffm"), "m.onnx: a name is no text"),
    ],
    ids=["empty", "no message", "a zip file", "cut off", "no text"],
)
def test_a_file_that_is_no_onnx_file(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load(path)


def test_no_regular_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.onnx")
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(OSError, match="Not a regular file"):
        load(tmp_path / "pipe.onnx")


def deep(levels: int) -> onnx.GraphProto:
    found = models.graph([node("Neg", ["x"], ["y"])], inputs=())
    for _ in range(levels):
        found = models.graph([node("If", ["c"], ["y"], then_branch=found)], inputs=())
    return models.graph(list(found.node), inputs=("c", "x"))


def add_node(model: onnx.ModelProto, *arguments: object) -> None:
    model.graph.node.append(node(*arguments))


def add_tensor(model: onnx.ModelProto, name: str) -> None:
    model.graph.initializer.extend(models.tensors({name: np.zeros(1)}))


# What is changed in `small()`, and the error.
DAMAGE: dict[str, tuple[Callable[[onnx.ModelProto], object], str]] = {
    "no ir_version": (lambda m: m.ClearField("ir_version"), "there is no ir_version"),
    "no graph": (lambda m: m.ClearField("graph"), "there is no graph with nodes"),
    "no nodes": (lambda m: m.graph.ClearField("node"), "there is no graph with nodes"),
    "no opset": (lambda m: m.opset_import.pop(0), "must have one opset of ONNX but has 0"),
    "two opsets": (
        lambda m: m.opset_import.append(helper.make_opsetid("ai.onnx", 18)),
        "must have one opset of ONNX but has 2",
    ),
    "an output twice": (
        lambda m: add_node(m, "Neg", ["x"], ["s"]),
        r"output of the node with the output s \(Neg\): s is there twice",
    ),
    "an output that is an input": (
        lambda m: add_node(m, "Neg", ["s"], ["x"]),
        "x is there twice",
    ),
    "an output that is a tensor": (
        lambda m: add_node(m, "Neg", ["s"], ["a"]),
        "a is there twice",
    ),
    "a tensor twice": (lambda m: add_tensor(m, "a"), "initializer a is there twice"),
    "an input twice": (
        lambda m: m.graph.input.append(models.value("x")),
        "input of the graph x is there twice",
    ),
    "an input of nothing": (
        lambda m: add_node(m, "Neg", ["q"], ["z"]),
        r"node with the output z \(Neg\) reads q, which nothing makes",
    ),
    "an input of nothing in a branch": (
        lambda m: m.graph.node[1].attribute[0].g.node[0].input.__setitem__(0, "q"),
        r"node with the output n \(Neg\) reads q, which nothing makes",
    ),
    "a value of a branch outside of it": (
        lambda m: add_node(m, "Neg", ["n"], ["z"]),
        "reads n, which nothing makes",
    ),
    "an output of nothing": (
        lambda m: m.graph.output.append(models.value("q")),
        "an output of the graph reads q, which nothing makes",
    ),
    "not in order": (
        lambda m: m.graph.node[0].input.__setitem__(1, "y"),
        r"node sum \(Add\) reads y, which a later node makes, or it makes itself",
    ),
    "a node that reads itself": (
        lambda m: m.graph.node[0].input.__setitem__(1, "s"),
        r"node sum \(Add\) reads s, which a later node makes, or it makes itself",
    ),
    "deep": (lambda m: m.graph.CopyFrom(deep(17)), "graphs are inside each other more than 16"),
    "a long name": (lambda m: add_node(m, "Neg", ["q" * 10**5], ["z"]), "^.{,300}$"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage(name: str, tmp_path: Path) -> None:
    change, message = DAMAGE[name]
    model = small()
    change(model)
    with pytest.raises(ValueError, match=message):
        load(model)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=r"m\.onnx: "):
        load(path)


def test_a_tensor_may_be_an_input_too() -> None:
    """Before IR version 4 all were."""
    model = small()
    model.graph.input.append(models.value("a"))
    assert load(model) is model


@pytest.mark.parametrize("version", [-1, 0, 6, 26, 2**40])
def test_other_opsets(version: int) -> None:
    with pytest.raises(ValueError, match=f"has the opset {version}; 7 to 25 are read"):
        load(models.model(small().graph, version))


def test_all_opsets_that_are_read() -> None:
    assert [opset(load(models.model(small().graph, k))) for k in OPSETS] == list(range(7, 26))


def test_neither_tensorflow_nor_a_runtime_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(small(), path)
    program = f"""
import sys
for name in "tensorflow", "keras", "torch", "onnxruntime":
    sys.modules[name] = None
from tf_lstm_ops.onnx_graph import constants, load, recurrent
assert "onnx" not in sys.modules
assert not [m for m in sys.modules if m.startswith(("tf_lstm_ops.weights", "tf_lstm_ops.inf"))]
model = load.load({str(path)!r})
print(constants.Constants(model.graph).get("a"), recurrent.recurrent_nodes(model))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "[1. 1.] []\n", run.stderr
