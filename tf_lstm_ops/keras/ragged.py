"""Ragged sequences as padded ones with a mask, and back.

B rows, T steps of the longest row and at least one, I features, N steps of all rows together.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


def require_rows_of_steps(sequences: tf.RaggedTensor) -> None:
    """Checks that only the number of steps differs between the rows.

    Args:
      sequences: the input of a layer.

    Raises:
      ValueError: it is not [B, (steps), I] with a uniform number of features.
    """
    if sequences.ragged_rank != 1 or sequences.shape.rank != 3:
        raise ValueError(
            "a RaggedTensor must have the shape [rows, (steps), features] and ragged_rank 1, as of "
            "tf.ragged.constant(…, ragged_rank=1). Received: ragged_rank "
            f"{sequences.ragged_rank}, shape {sequences.shape}"
        )


class Padded(NamedTuple):
    """A batch of ragged rows as a dense tensor.

    Attributes:
      sequences: [B, T, I], zero in the padding.
      mask: bool [B, T], False in the padding and where the caller's mask is False.
      of_rows: bool [B, T], False in the padding.
    """

    sequences: tf.Tensor
    mask: tf.Tensor
    of_rows: tf.Tensor


def pad(sequences: tf.RaggedTensor, mask: tf.Tensor, left: bool) -> Padded:
    """Pads all rows to one length.

    Args:
      sequences: [B, (steps), I].
      mask: None, or boolean: [B, (steps)], or dense [B, T] for rows that are padded on the right.
      left: whether the padding precedes the rows instead of following them.

    Returns:
      The padded rows.
    """
    lengths = sequences.row_lengths()
    time = tf.reduce_max(tf.concat([[1], tf.cast(lengths, tf.int32)], axis=0))
    on_the_left = tf.sequence_mask(lengths, time)
    of_rows = tf.reverse(on_the_left, [1]) if left else on_the_left
    places = tf.where(of_rows)  # of the ragged tensor's steps, in their order

    def dense(values: tf.Tensor) -> tf.Tensor:
        shape = tf.concat([tf.shape(of_rows, tf.int64), tf.shape(values, tf.int64)[1:]], axis=0)
        padded = tf.scatter_nd(places, values, shape)
        padded.set_shape([sequences.shape[0], None, *values.shape[1:]])
        return padded

    values = sequences.values
    if mask is None:
        valid = tf.ones(tf.shape(values)[:1], tf.bool)
    else:
        ragged = isinstance(mask, tf.RaggedTensor)
        valid = tf.cast(mask.values if ragged else tf.boolean_mask(mask, on_the_left), tf.bool)
    return Padded(dense(values), dense(valid), of_rows)


def unpad(
    outputs: tf.Tensor, padded: Padded, like: tf.RaggedTensor, reverse: bool
) -> tf.RaggedTensor:
    """Leaves the padding out of a layer's outputs.

    Args:
      outputs: [B, T, H].
      padded: what the layer got.
      like: the ragged tensor that was padded.
      reverse: whether the outputs are in the opposite order of the steps.

    Returns:
      [B, (steps), H] with the row lengths of `like`. With `reverse` the steps of each row are in
      the order of the outputs.
    """
    of_rows = tf.reverse(padded.of_rows, [1]) if reverse else padded.of_rows
    return like.with_values(tf.boolean_mask(outputs, of_rows))
