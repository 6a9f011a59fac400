"""The part of a model behind some of its values."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tf_lstm_ops import _optional
from tf_lstm_ops._refusal import require
from tf_lstm_ops.onnx_graph.attributes import short

if TYPE_CHECKING:
    import onnx


def beginning_at(
    model: onnx.ModelProto, names: Sequence[str], shapes: Mapping[str, Any]
) -> onnx.ModelProto:
    """A model in which values within the graph are inputs.

    Args:
      model: the model.
      names: of the values. Inputs of the model may be among them.
      shapes: sizes of axes by the names of values of floats whose shape the model does not tell.

    Returns:
      A model with these inputs and those of the model.

    Raises:
      ValueError: a name is that of no value, is there twice, or has no known shape.
      TypeError: names is no list of names.
    """
    _require_names(model, names)
    own = {value.name for value in model.graph.input}
    found = _optional.require("onnx", "an ONNX file", "onnx", "onnxruntime").ModelProto()
    found.CopyFrom(model)
    for name in names:
        if name not in own:
            found.graph.input.append(_described(model, name, shapes))
    for node in found.graph.node:  # one of several outputs may be an input now
        for k, name in enumerate(node.output):
            if name in names:
                node.output[k] = f"{name} of the model"
    return found


def _require_names(model: onnx.ModelProto, names: Any) -> None:
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if not is_list or not all(isinstance(name, str) for name in names):
        raise TypeError(f"inputs must be a list of names. Received: inputs={names!r}")
    made = {name for node in model.graph.node for name in node.output if name}
    own = [value.name for value in model.graph.input]
    for name in names:
        if name not in made and name not in own:
            raise ValueError(
                f"inputs has {name!r}, which the model does not compute. Its inputs are {own}"
            )
    if not names or len({*names}) < len(names):
        raise ValueError(f"inputs must have one name or more, each once. Received: {names}")


def _described(model: onnx.ModelProto, name: str, shapes: Mapping[str, Any]) -> Any:
    """The type and shape of a value."""
    onnx = _optional.require("onnx", "an ONNX file", "onnx", "onnxruntime")
    inferred = model
    with contextlib.suppress(onnx.shape_inference.InferenceError):  # of unknown operators
        inferred = onnx.shape_inference.infer_shapes(model)
    for value in (*model.graph.output, *inferred.graph.value_info, *inferred.graph.output):
        if value.name == name and value.type.tensor_type.HasField("shape"):
            return value
    require(
        name in shapes,
        f"the model does not tell the shape of {short(name)}. Pass shapes={{{name!r}: [sizes]}}, "
        "with None for any",
    )
    sizes = [size if isinstance(size, int) else None for size in shapes[name]]
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, sizes)
