"""The arguments of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _keras_private
from tf_lstm_ops.keras.requirements import require_model

_NOT_DENSE = (tf.RaggedTensorSpec, tf.SparseTensorSpec, tf.RaggedTensor, tf.SparseTensor)


def signature(
    model: keras.Model,
    input_signature: Sequence[Any] | None = None,
    batch_size: int | None = None,
) -> list[Any]:
    """The positional arguments of a model in a file.

    Args:
      model: the model.
      input_signature: a list with a structure of specs for each argument, as ``model.export`` takes
        it; None: as ``model.export`` finds them, with an unknown first dimension. A functional
        model has one argument.
      batch_size: the first dimension of the inputs whose spec leaves it unknown; None: unknown.

    Returns:
      One structure of ``tf.TensorSpec`` for each argument.

    Raises:
      TypeError: model is not a ``keras.Model``; a model of tf_keras is not one. input_signature is
        not a list of specs.
      ValueError: the model is not built; batch_size is not positive.
    """
    require_model(model)
    if batch_size is not None and not (isinstance(batch_size, int) and batch_size > 0):
        raise ValueError(f"batch_size must be None or positive. Received: batch_size={batch_size}")
    if input_signature is None:
        found = _keras_private.input_signature(model)
    else:
        found = _with_names(model, _checked(input_signature))

    def spec(argument: Any) -> tf.TensorSpec:
        first, *sizes = argument.shape
        dtype = getattr(argument, "dtype", None)
        return tf.TensorSpec(
            [batch_size if first is None else first, *sizes],
            "float32" if dtype is None else dtype,
            getattr(argument, "name", None),
        )

    return list(keras.tree.map_structure(spec, found))


def _checked(input_signature: Any) -> list[Any]:
    """The signature as a list, whose leaves have shapes of at least one dimension."""
    if not isinstance(input_signature, list | tuple):
        raise TypeError(
            "input_signature must be a list with a structure of specs for each argument of the "
            f"model. Received: {input_signature!r}"
        )
    for leaf in keras.tree.flatten(list(input_signature)):
        shape = None if isinstance(leaf, _NOT_DENSE) else getattr(leaf, "shape", None)
        if shape is None or not tf.TensorShape(shape).rank:  # unknown or 0
            raise TypeError(
                "input_signature must consist of keras.InputSpec, tf.TensorSpec or dense tensors, "
                f"of at least one dimension. Received: {leaf!r}"
            )
    return list(input_signature)


def _with_names(model: keras.Model, given: list[Any]) -> list[Any]:
    """Specs without a name or a type get those of the model's own inputs."""
    own = inputs_of(model, given)
    flat = keras.tree.flatten(given)
    if len(own) != len(flat):
        return given
    named = []
    for new, old in zip(flat, own, strict=True):
        dtype, name = getattr(new, "dtype", None), getattr(new, "name", None)
        named.append(
            tf.TensorSpec(new.shape, old.dtype if dtype is None else dtype, name or old.name)
        )
    return list(keras.tree.pack_sequence_as(given, named))


def inputs_of(model: keras.Model, signature: Sequence[Any]) -> list[Any]:
    """The model's own inputs, in the order of the specs of a signature.

    Args:
      model: the model.
      signature: a structure of specs for each argument.

    Returns:
      The symbolic inputs, each beside its spec in ``keras.tree.flatten(signature)``; empty if the
      model has none. The number of specs may be another.
    """
    own = keras.tree.flatten(getattr(model, "inputs", None) or [])
    by_name = {tensor.name: tensor for tensor in own}
    # Keras takes a list of inputs also as a dict by name, whose keys keras.tree sorts.
    if (
        len(signature) == 1
        and isinstance(signature[0], dict)
        and signature[0].keys() == by_name.keys()
    ):
        return list(keras.tree.flatten(by_name))
    return own


def own_batch_sizes(model: keras.Model, signature: Sequence[Any]) -> list[int | None]:
    """The batch sizes of the model's own inputs, as ``keras.Input(batch_shape=...)`` fixes them.

    Args:
      model: the model.
      signature: a structure of specs for each argument.

    Returns:
      One for each spec in ``tf.nest.flatten(signature)``; None if it is not fixed.
    """
    count = len(tf.nest.flatten(signature))
    own = inputs_of(model, signature)
    sizes = [tensor.shape[0] if tensor.shape else None for tensor in own]
    return sizes if len(own) == count else [None] * count
