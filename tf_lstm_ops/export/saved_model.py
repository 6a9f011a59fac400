"""SavedModels of Keras models: with the fused ops, or with TensorFlow's own ops only."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops import _tf_private, composite
from tf_lstm_ops.export import batch, check, errors
from tf_lstm_ops.export.signature import signature


def saved_model(
    model: keras.Model,
    filepath: str | os.PathLike[str],
    portable: bool = False,
    verbose: bool = False,
    *,
    input_signature: Sequence[Any] | None = None,
) -> None:
    """Writes a model as a SavedModel for inference, as ``model.export`` does, and checks the file.

    Signature, types and unknown sizes are those of ``model.export``. The object that
    ``tf.saved_model.load`` returns has the model as its method ``serve``.

    Before it returns, the function loads the file and compares its predictions for random inputs
    with those of the model, whose states do not change. The states of stateful layers are variables
    of the file, which begin with those of the model. If the model cannot run on random inputs or
    gives other outputs each time, a warning says that the file was not compared.

    >>> import keras
    >>> import tensorflow as tf
    >>> from tf_lstm_ops import export
    >>> from tf_lstm_ops.keras import LSTM
    >>> model = keras.Sequential([keras.Input((None, 8)), LSTM(4)])
    >>> export.saved_model(model, "folder", portable=True)
    >>> loaded = tf.saved_model.load("folder")
    >>> loaded.serve(tf.ones([2, 5, 8])).shape
    TensorShape([2, 4])

    Args:
      model: a ``keras.Model`` whose inputs are known: built, or called once.
      filepath: the folder to write.
      portable: whether to write plain TensorFlow ops instead of the fused ones. TensorFlow of the
        same version or newer can then load the file without this package. The predictions are the
        same within rounding, but slower. tf2onnx and TensorFlow Lite's converter can convert the
        file.
      verbose: whether to print the signature and the largest difference to the model.
      input_signature: the inputs of the file, as ``model.export`` takes them: a list with a
        structure of ``keras.InputSpec`` or ``tf.TensorSpec`` for each argument of the model; None:
        those of the model, with an unknown batch size. A known size makes it fixed in the file.

    Raises:
      TypeError: model is not a ``keras.Model``; a model of tf_keras is not one. input_signature is
        not a list of specs.
      ValueError: the model is not built; a portable export still has custom ops, for example of a
        loaded SavedModel or a concrete function that the model calls; the file cannot run, or
        predicts something else than the model. A file that was written is not removed.
    """
    specs = batch.with_needed_sizes(model, signature(model, input_signature))
    with composite.plain_ops() if portable else contextlib.nullcontext():
        model.export(filepath, verbose=verbose, input_signature=specs)
    if portable:
        _require_stock_ops(filepath)
    loaded = tf.saved_model.load(filepath)

    def run(inputs: list[np.ndarray]) -> list[tf.Tensor]:
        return tf.nest.flatten(loaded.serve(*tf.nest.pack_sequence_as(specs, inputs)))

    with errors.with_unknown_steps(model):
        check.compare(
            model, run, specs, f"the SavedModel in {os.fspath(filepath)}", verbose=verbose
        )


def _require_stock_ops(path: str | os.PathLike[str]) -> None:
    # Stock ops have no namespace.
    custom = sorted({node.op for node in nodes_of(path) if ">" in node.op})
    if custom:
        raise ValueError(
            f"the SavedModel in {os.fspath(path)} is not portable, it has custom ops: "
            f"{', '.join(custom)}. Does the model call a loaded SavedModel, a concrete function or "
            "ops of another package?"
        )


def nodes_of(path: str | os.PathLike[str]) -> Iterator[Any]:
    """The nodes of a SavedModel, including those of its functions.

    Args:
      path: the folder of the SavedModel.

    Yields:
      Each node, a protocol buffer with the fields ``op`` and ``name``.
    """
    with tf.io.gfile.GFile(os.path.join(path, "saved_model.pb"), "rb") as file:
        saved = _tf_private.saved_model_from(file.read())
    for meta_graph in saved.meta_graphs:
        graph = meta_graph.graph_def
        for nodes in graph.node, *(function.node_def for function in graph.library.function):
            yield from nodes
