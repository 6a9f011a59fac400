"""Which layer of a Keras model makes the mask that a call has as an argument.

A model that was loaded, cloned or copied computes the mask of a call by operations of its own,
which its configuration has, beside those of the layer that makes the mask. Both are the same
operations on the same arguments.

The mask of sequence_lengths is the output of a layer, `SequenceMask`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from tf_lstm_ops import _keras_private
from tf_lstm_ops.inference import file, graph, layers
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.keras.sequence_mask import SequenceMask


class MaskOfLengths(layers.Layer):
    """The mask of sequence_lengths: a value that is its own mask, too."""

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Value:
        x, lengths = inputs
        record = file.Layer(self.name, file.MASK_OF_LENGTHS)
        (mask,) = graph.node(record, [lengths, x], batch_axes)
        return mask.with_mask(mask)


def is_of_lengths(tensor: Any) -> bool:
    """Whether a symbolic tensor is the mask of sequence_lengths.

    Args:
      tensor: the symbolic tensor of a functional model.

    Returns:
      Whether a `SequenceMask` computes it.
    """
    return isinstance(_keras_private.producer(tensor)[0], SequenceMask)


def are_carried(tensors: Any, masks: Any) -> bool:
    """Whether symbolic tensors carry some masks.

    Args:
      tensors: a structure of symbolic tensors.
      masks: a structure of the argument mask of a call.

    Returns:
      Whether the masks are those of the tensors, in this order.
    """
    carried = [_keras_private.mask_of(each) for each in keras.tree.flatten(tensors)]
    given = keras.tree.flatten(masks)
    return len(carried) == len(given) and all(map(_are_computed_alike, carried, given))


def carrier(model: Any, mask: Any) -> Any:
    """The tensor in the graph of a model with which a mask begins.

    Args:
      model: a functional or Sequential model, built.
      mask: a symbolic tensor.

    Returns:
      The output of the layer that makes the mask; None: no layer of the graph makes it. Outputs of
      layers that pass the mask on come later in the graph.
    """
    if isinstance(mask, keras.KerasTensor) and (is_of_lengths(mask) or _is_given(model, mask)):
        return mask
    found = (each for each in _keras_private.tensors(model) if are_carried(each, mask))
    first = next(found, None)
    if first is None:
        return None
    _, inputs, _, _ = _keras_private.producer(first)
    got = any(are_carried(each, mask) or _are_computed_alike(each, mask) for each in inputs)
    return None if got else first


def _is_given(model: Any, mask: Any) -> bool:
    """Whether a mask is an input of a model."""
    return any(mask is each for each in model.inputs)


def _are_computed_alike(one: Any, other: Any) -> bool:
    """Whether two symbolic tensors are computed by the same operations on the same arguments."""
    pending, seen = [(one, other)], set()
    while pending:
        one, other = pending.pop()
        if one is other or (id(one), id(other)) in seen:
            continue
        seen.add((id(one), id(other)))
        if not isinstance(one, keras.KerasTensor) or not isinstance(other, keras.KerasTensor):
            if type(one) is not type(other) or one != other:
                return False
        elif _keras_private.call_of(one) != _keras_private.call_of(other):
            (kind, arguments), (other_kind, other_arguments) = _operation(one), _operation(other)
            if kind is None or kind != other_kind or len(arguments) != len(other_arguments):
                return False
            pending += zip(arguments, other_arguments, strict=True)
    return True


def _operation(tensor: Any) -> tuple[Any, list[Any]]:
    """What an operation computes, and its arguments; None for a layer, which may have weights."""
    operation, _, args, kwargs = _keras_private.producer(tensor)
    if isinstance(operation, keras.Layer):
        return None, []
    try:
        config = operation.get_config()
    except NotImplementedError:
        return None, []
    config.pop("name", None)
    _, index = _keras_private.call_of(tensor)
    return (type(operation), config, index, sorted(kwargs)), keras.tree.flatten((args, kwargs))
