"""Sessions of ONNX files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from tf_lstm_ops.inference import file, graph
from tf_lstm_ops.inference.from_onnx import inputs
from tf_lstm_ops.inference.from_onnx.quantized import rounds
from tf_lstm_ops.inference.from_onnx.source import Source
from tf_lstm_ops.inference.from_onnx.trace import Followed, follow
from tf_lstm_ops.inference.graph import lower
from tf_lstm_ops.inference.source_check import OF_ROUNDED, TOLERANCE, words_of
from tf_lstm_ops.onnx_graph.functions import inlined
from tf_lstm_ops.onnx_graph.load import load, opset
from tf_lstm_ops.onnx_graph.part import beginning_at

__all__ = ["read"]


def read(
    source: Any,
    outputs: Sequence[str] | None = None,
    constants: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    begins: Sequence[str] | None = None,
) -> tuple[file.Graph, Source]:
    """Reads the graph of a model.

    Args:
      source: as of `Session.from_onnx`.
      outputs: likewise.
      constants: likewise.
      shapes: likewise.
      begins: its argument inputs.

    Returns:
      The graph, and the model for a comparison.

    Raises:
      ImportError: the package onnx is not installed.
      OSError, TypeError, ValueError: as of `Session.from_onnx`.
    """
    model = load(source)
    if model.functions:
        model = load(inlined(model))
    if begins is not None:
        model = beginning_at(model, begins, shapes or {})
    given = inputs.with_shapes(inputs.inputs_of(model), shapes)
    names = inputs.chosen(model, outputs)
    fixed = inputs.fixed(given, constants)
    followed = follow(model, opset(model), given, fixed, names)
    free = [each for each in given if each.name in followed.inputs]
    lowered = lower(_structured(followed.inputs), _structured(followed.outputs))
    lowered = _with_sizes(lowered, free, followed)
    tolerance = OF_ROUNDED if rounds(model) else TOLERANCE
    words = words_of(lowered)
    return lowered, Source(model, given, free, names, fixed, followed.axes, words, tolerance)


def _structured(values: Mapping[str, graph.Value]) -> Any:
    """One value as it is, several in a dictionary, or in a list if a file cannot have a name."""
    if len(values) == 1:
        return next(iter(values.values()))
    if any(len(name.encode()) > file.NAME_BYTES for name in values):
        return [*values.values()]
    return dict(values)


def _with_sizes(
    lowered: file.Graph, given: Sequence[inputs.Given], followed: Followed
) -> file.Graph:
    """Sets the sizes of inputs that a layer needs, or that the file fixes."""
    sizes = [inputs.sizes_of_call(each, followed.axes[each.name]) for each in given]
    batch = next((own[0] for own in sizes if own[0] is not None), None)
    found = [
        dataclasses.replace(each, dims=own[1:], batch=batch, is_whole=own[1] is not None)
        for each, own in zip(lowered.inputs, sizes, strict=True)
    ]
    return dataclasses.replace(lowered, inputs=found)
