"""Reads an ONNX file and checks that its graph can be followed."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from tf_lstm_ops import _files, _optional
from tf_lstm_ops._refusal import Refused, require, within
from tf_lstm_ops.files import limits
from tf_lstm_ops.onnx_graph import external
from tf_lstm_ops.onnx_graph.attributes import label, short, subgraphs

if TYPE_CHECKING:
    import onnx

# LSTM, GRU and RNN have had their inputs and attributes since 7, Add and Mul their broadcasting. 25
# is the newest of which the operators were read when this was written.
OPSETS = range(7, 26)


def load(source: _files.Path | onnx.ModelProto) -> onnx.ModelProto:
    """Reads an ONNX file.

    Tensors in other files are read from the folder of the file, and from no other place.

    Args:
      source: the path, or a ModelProto, which is not changed.

    Returns:
      The model, with the data of all its tensors.

    Raises:
      ImportError: the package onnx is not installed.
      OSError: a file cannot be read, or is not a regular one.
      TypeError: source is neither a path nor a ModelProto.
      ValueError: the file is no ONNX file, or damaged, or of an opset that is not read. The text
        names the file.
    """
    onnx = _optional.require("onnx", "an ONNX file", "onnx", "onnxruntime")
    if isinstance(source, onnx.ModelProto):
        return _checked(source, "the model", None)
    words, data = os.fsdecode(_files.checked(source)), limits.content(source)
    folder = os.path.dirname(words) or os.curdir
    model = onnx.ModelProto()
    message = importlib.import_module("google.protobuf.message")  # onnx needs protobuf
    try:
        model.ParseFromString(data)
    except (message.DecodeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{words} is no ONNX file, or it is damaged: {error}") from error
    return _checked(model, words, folder)


def opset(model: onnx.ModelProto) -> int:
    """The version of the default domain of a model.

    Args:
      model: the model.

    Returns:
      The version, one of `OPSETS`.

    Raises:
      ValueError: there is none, there are several, or it is not one of `OPSETS`.
    """
    found = {entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")}
    if len(found) != 1:
        raise ValueError(f"the model must have one opset of ONNX but has {len(found)}")
    (version,) = found
    if version not in OPSETS:
        raise ValueError(
            f"the model has the opset {version}; {OPSETS[0]} to {OPSETS[-1]} are read. Convert it "
            "with onnx.version_converter.convert_version"
        )
    return version


def _checked(model: onnx.ModelProto, words: str, folder: str | None) -> onnx.ModelProto:
    with within(words):
        require(model.ir_version, "there is no ir_version, so it is no ONNX model")
        has_nodes = model.HasField("graph") and model.graph.node
        require(has_nodes, "there is no graph with nodes in it")
        opset(model)
        try:
            _check_graph(model.graph, [])
            external.load(model.graph, folder)
        except UnicodeDecodeError as error:
            raise Refused(f"a name is no text: {error}") from error
    return model


def _check_graph(graph: onnx.GraphProto, outer: list[set[str]]) -> None:
    """Checks that each value is made once, before it is read."""
    if len(outer) > limits.GRAPH_DEPTH:
        raise ValueError(f"graphs are inside each other more than {limits.GRAPH_DEPTH} deep")
    _check_names(graph)
    own: set[str] = set()
    _add(own, [value.name for value in graph.input], "input of the graph")
    tensors = [tensor.name for tensor in graph.initializer]
    tensors += [tensor.values.name for tensor in graph.sparse_initializer]
    constants: set[str] = set()
    _add(constants, tensors, "initializer")
    own |= constants  # before IR version 4 they are inputs, too
    later = {name for node in graph.node for name in node.output}
    visible = [*outer, own]
    for node in graph.node:
        for name in filter(None, node.input):
            _require_made(name, visible, later, label(node))
        for _, part in subgraphs(node):
            _check_graph(part, visible)
        _add(own, [name for name in node.output if name], f"output of the {label(node)}:")
    for value in graph.output:
        _require_made(value.name, visible, later, "an output of the graph")


def _check_names(graph: onnx.GraphProto) -> None:
    """Checks that names are texts. Protobuf gives bytes for what is none, or raises an error."""
    names: list[Any] = [value.name for value in (*graph.input, *graph.output)]
    names += [tensor.name for tensor in graph.initializer]
    names += [tensor.values.name for tensor in graph.sparse_initializer]
    for node in graph.node:
        names += [node.name, node.op_type, node.domain, *node.input, *node.output]
        names += [attribute.name for attribute in node.attribute]
    wrong = next((name for name in names if not isinstance(name, str)), None)
    if wrong is not None:
        raise ValueError(f"a name is no text: {wrong[:60]!r}")


def _add(names: set[str], more: list[str], what: str) -> None:
    for name in more:
        if name in names:
            raise ValueError(f"{what} {short(name)} is there twice; each value must be made once")
        names.add(name)


def _require_made(name: str, visible: list[set[str]], later: set[str], reader: str) -> None:
    if any(name in names for names in visible):
        return
    if name in later:
        raise ValueError(
            f"{reader} reads {short(name)}, which a later node makes, or it makes itself; the "
            "nodes are not in order, or there is a cycle"
        )
    raise ValueError(f"{reader} reads {short(name)}, which nothing makes")
