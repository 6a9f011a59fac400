"""SavedModels of Keras models: with the fused ops, or with TensorFlow's own ops only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tf_lstm_ops import composite
from tf_lstm_ops.keras.requirements import require_model

if TYPE_CHECKING:
    import keras


def export(model: keras.Model, path: str | os.PathLike[str], portable: bool = False) -> None:
    """Writes a model as a SavedModel for inference, as ``model.export`` does.

    Signature, types and unknown sizes are those of ``model.export``. The object that
    ``tf.saved_model.load`` returns has the model as its method ``serve``.

    Args:
      model: a ``keras.Model`` whose inputs are known: built, or called once.
      path: the folder to write.
      portable: whether to write plain TensorFlow ops instead of the fused ones. Any TensorFlow,
        such as TensorFlow Serving, can then load the file without this package. The predictions are
        the same, but slower.

    Raises:
      TypeError: model is not a ``keras.Model``; a model of tf_keras is not one.
      ValueError: the model is not built; or a portable export still has custom ops, for example of
        a loaded SavedModel or a concrete function that the model calls. The file exists then.
    """
    require_model(model)
    if not portable:
        model.export(path, verbose=False)
        return
    with composite.plain_ops():
        model.export(path, verbose=False)
    custom = sorted({op for op in _ops(path) if ">" in op})  # stock ops have no namespace
    if custom:
        raise ValueError(
            f"the SavedModel in {os.fspath(path)} is not portable, it has custom ops: "
            f"{', '.join(custom)}. Does the model call a loaded SavedModel, a concrete function or "
            "ops of another package?"
        )


def _ops(path: str | os.PathLike[str]) -> Iterator[str]:
    """The ops of all nodes of a SavedModel, including those of its functions."""
    saved = saved_model_pb2.SavedModel()
    with tf.io.gfile.GFile(os.path.join(path, "saved_model.pb"), "rb") as file:
        saved.ParseFromString(file.read())
    for meta_graph in saved.meta_graphs:
        graph = meta_graph.graph_def
        for nodes in graph.node, *(function.node_def for function in graph.library.function):
            yield from (node.op for node in nodes)
