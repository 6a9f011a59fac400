"""The numbers of steps of a call, its sequence_lengths, as a mask."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops.keras import call_checks

PACKAGE = "tf_lstm_ops"  # the package name of the classes in Keras' registry
_MASK = 2  # the position of the argument mask of a call


def with_mask(
    layer: Any, lengths: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with a mask in place of sequence_lengths.

    As any mask that is an argument it replaces the one that the sequences carry.

    Args:
      layer: the recurrent layer.
      lengths: [B] integers.
      args: the positional arguments of the call.
      kwargs: the others, without sequence_lengths.

    Returns:
      The arguments.

    Raises:
      ValueError: there is a mask, too, the sequences are ragged, or the lengths are not valid.
    """
    sequences = args[0] if args else kwargs.get("sequences")
    if (args[_MASK] if len(args) > _MASK else kwargs.get("mask")) is not None:
        raise ValueError(
            f"layer {layer.name} takes either mask or sequence_lengths. Received: both"
        )
    if isinstance(sequences, tf.RaggedTensor) or getattr(sequences, "ragged", False):
        raise ValueError(
            f"layer {layer.name} takes sequence_lengths of dense sequences. Received: a ragged "
            "tensor, whose rows have lengths of their own"
        )
    if not isinstance(lengths, keras.KerasTensor):
        lengths = tf.convert_to_tensor(lengths)
    if any(isinstance(each, keras.KerasTensor) for each in (sequences, lengths)):
        call_checks.require_lengths(lengths, sequences)
        mask = SequenceMask()([sequences, lengths])
    else:
        mask = _mask(sequences, lengths)
    if len(args) > _MASK:
        return (*args[:_MASK], mask, *args[_MASK + 1 :]), kwargs
    return args, {**kwargs, "mask": mask}


def _mask(sequences: Any, lengths: Any) -> Any:
    call_checks.require_lengths(lengths, sequences)
    shape = getattr(sequences, "shape", None)
    time = tf.shape(sequences)[1] if shape is None or shape[1] is None else shape[1]
    known = tf.get_static_value(lengths)
    if shape is None or shape[0] is None:
        # A comparison and a kernel of XLA would repeat one length for all rows.
        lengths = tf.reshape(lengths, tf.shape(sequences)[:1])
        known = None
    if known is not None and isinstance(time, int):  # one op, as a mask that the caller makes
        return tf.constant(np.arange(time) < known[:, np.newaxis])
    steps = tf.range(tf.cast(time, tf.int64))  # other types of integers may not have the number
    return steps < tf.expand_dims(tf.cast(lengths, tf.int64), 1)


@keras.saving.register_keras_serializable(package=PACKAGE)
class SequenceMask(keras.layers.Layer):
    """The mask of the first steps of each row, in a functional model.

    Args:
      **kwargs: those of ``keras.layers.Layer``.

    Call arguments:
      inputs: list of sequences [B, T, I] and lengths [B], integers.

    Call returns:
      Boolean [B, T], True for the first steps of each row.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs, autocast=False)
        self.supports_masking = True

    def call(self, inputs: Any) -> Any:
        """Computes the mask; ``__call__`` calls it.

        Args:
          inputs: list of sequences [B, T, I] and lengths [B].

        Returns:
          Boolean [B, T].
        """
        return _mask(*inputs)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> None:
        """The mask of the output; Keras calls it.

        Args:
          inputs: as of ``call``.
          previous_mask: the masks of the inputs.

        Returns:
          None.
        """

    def compute_output_spec(self, inputs: Any) -> Any:
        """The shape and type of the output of a symbolic call; Keras calls it.

        Args:
          inputs: as of ``call``, symbolic.

        Returns:
          A symbolic tensor.
        """
        sequences, lengths = inputs
        batch = sequences.shape[0] if lengths.shape[0] is None else lengths.shape[0]
        return keras.KerasTensor((batch, sequences.shape[1]), "bool")
