"""The inputs of a session of a Keras model, which the nodes say that read them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tf_lstm_ops.inference import file
from tf_lstm_ops.inference.from_keras.kinds import FLOATS
from tf_lstm_ops.inference.from_keras.recurrent import unsupported

# What nodes of these kinds compute depends on the number of steps of the model.
_OF_FIXED_STEPS = (file.RESHAPE, file.TRANSPOSITION)


def finished(lowered: file.Graph, tensors: Sequence[Any]) -> file.Graph:
    """Sets the types and sizes of inputs by the nodes that read them.

    Args:
      lowered: the graph.
      tensors: the symbolic inputs of the model.

    Returns:
      The graph with other inputs.

    Raises:
      ValueError: a session has no such input.
    """
    inputs = [
        _typed(lowered, k, given, tensor)
        for k, (given, tensor) in enumerate(zip(lowered.inputs, tensors, strict=True))
    ]
    return dataclasses.replace(lowered, inputs=inputs)


def _typed(lowered: file.Graph, index: int, given: file.Input, tensor: Any) -> file.Input:
    dtype = tensor.dtype
    readers = [node.layer for node in lowered.nodes if index in node.operands]
    is_output = any(value == index for _, value in lowered.outputs)
    are_lengths = readers and all(layer.kind == file.MASK_OF_LENGTHS for layer in readers)
    if are_lengths and not is_output:
        return dataclasses.replace(given, dtype="int32")
    if len(tensor.shape) < 2:
        raise ValueError(
            f"a session does not compute this model: its input {given.name} has 1 axis and is not "
            "only that of sequence_lengths. Keep this part of the model in Keras"
        )
    if not readers and not is_output:  # a call has it, and nothing depends on it
        kind = "float32" if dtype in FLOATS else "int32"
        return dataclasses.replace(given, dtype=kind)
    embeddings = [layer for layer in readers if layer.kind == file.EMBEDDING]
    if embeddings and (len(embeddings) < len(readers) or is_output):
        raise unsupported(embeddings[0], "its input is also that of layers that are no Embedding")
    if not embeddings and dtype not in FLOATS:
        raise ValueError(
            f"a session does not compute this model: its input {given.name} has dtype {dtype}, not "
            "float32, and is no input of an Embedding. Keep this part of the model in Keras"
        )
    dims = [*given.dims]
    if embeddings:
        is_fixed = _needs_steps(lowered)
        return file.Input(given.name, "int32", (dims[0] if is_fixed else None, *dims[1:]))
    if len(dims) > 1 and not _needs_steps(lowered):
        dims[0] = None
    if dims[-1] is None:
        dims[-1] = _features(lowered)
    return file.Input(given.name, "float32", tuple(dims))


def _needs_steps(lowered: file.Graph) -> bool:
    return any(
        node.layer.kind in _OF_FIXED_STEPS and node.batch_axes == 1 for node in lowered.nodes
    )


def _features(lowered: file.Graph) -> int:
    """The number of features of the only input, by the first layer with weights."""
    for node in lowered.nodes if len(lowered.inputs) == 1 else ():  # those before it keep the size
        if node.layer.input_size:
            return node.layer.input_size
    raise ValueError("the number of features is not known. Begin the layers with keras.Input")
