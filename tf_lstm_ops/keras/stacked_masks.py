"""Any mask as sequence lengths: the valid steps of each row are moved to its beginning.

A masked step changes no state of any layer, so the stack computes the valid steps alone. B rows, T
steps, D directions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tf_lstm_ops.converters import plain_ops_required
from tf_lstm_ops.keras import ragged


@dataclasses.dataclass(frozen=True)
class Steps:
    """The steps of a batch that a stack computes.

    Attributes:
      sequence: [B, T, I], the valid steps of each row first.
      lengths: int32 [B], the number of valid steps.
      mask: bool [B, T] in the order of the layer's outputs; None: all steps are valid.
      is_padding: whether the mask is padding on the right, so that no step moves; None: not known.
    """

    sequence: tf.Tensor
    lengths: tf.Tensor
    mask: tf.Tensor | None
    is_padding: tf.Tensor | None = None

    @classmethod
    def of(cls, x: tf.Tensor, mask: tf.Tensor, reverse: bool) -> Steps:
        """The steps of a call.

        Args:
          x: [B, T, I].
          mask: None or [B, T], [B, T, 1] or with 1 for B; a list has the mask as its first element.
          reverse: whether the steps run from the last to the first.

        Returns:
          The steps.
        """
        x = tf.reverse(x, [1]) if reverse else x
        batch, time = tf.unstack(tf.shape(x)[:2])
        if mask is None:
            return cls(x, tf.fill([batch], time), None)
        mask = _as_rows(mask, batch, time)
        mask = tf.reverse(mask, [1]) if reverse else mask
        lengths = tf.math.count_nonzero(mask, axis=1, dtype=tf.int32)
        # Converters and XLA get no branches.
        later = None if plain_ops_required() else mask[:, 1:] & ~mask[:, :-1]
        steps = cls(x, lengths, mask, None if later is None else ~tf.reduce_any(later))

        def moved() -> tf.Tensor:
            order = tf.argsort(tf.cast(~mask, tf.int32), axis=1, stable=True)
            return tf.gather(x, order, batch_dims=1)

        sequence = steps._by_mask(lambda: tf.identity(x), moved)
        sequence.set_shape(x.shape)
        return dataclasses.replace(steps, sequence=sequence)

    def _by_mask(
        self, padding: Callable[[], tf.Tensor], other: Callable[[], tf.Tensor]
    ) -> tf.Tensor:
        """The result of the function for masks that are padding on the right, or for others."""
        return other() if self.is_padding is None else tf.cond(self.is_padding, padding, other)

    def outputs(self, output: tf.Tensor, directions: int, zero_where_masked: bool) -> tf.Tensor:
        """The outputs of all steps.

        Args:
          output: [B, T, D*P], of the valid steps and zero after them.
          directions: D.
          zero_where_masked: whether a masked step has the output zero instead of that of the step
            that a direction computed before; zero if there is none.

        Returns:
          [B, T, D*P], a step at its place in the mask.
        """
        if self.mask is None:
            return output
        result = self._by_mask(
            lambda: self._padded(output, directions, zero_where_masked),
            lambda: self._moved_back(output, directions, zero_where_masked),
        )
        result.set_shape(output.shape)
        return result

    def _padded(self, output: tf.Tensor, directions: int, zero_where_masked: bool) -> tf.Tensor:
        """`outputs` where the mask is padding on the right."""
        if zero_where_masked:
            return tf.identity(output)
        # The first direction has its last output in the padding. The second one starts there.
        first, *second = tf.split(output, directions, axis=2)
        steps = tf.range(tf.shape(output)[1])[tf.newaxis, :, tf.newaxis]
        ends = (self.lengths - 1)[:, tf.newaxis, tf.newaxis]
        last = tf.where(steps == ends, first, tf.zeros([], first.dtype))
        last = tf.reduce_sum(last, axis=1, keepdims=True)  # of one number each: no rounding
        return tf.concat([tf.where(steps > ends, last, first), *second], axis=2)

    def _moved_back(self, output: tf.Tensor, directions: int, zero_where_masked: bool) -> tf.Tensor:
        """`outputs` of any mask."""
        assert self.mask is not None
        valid = tf.cast(self.mask, tf.int32)
        count = tf.cumsum(valid, axis=1)  # of valid steps up to each step
        # The place among the valid steps of the last one up to a step, and of the first one from it
        # on, which the second direction has computed before.
        places = [count - 1, count - valid][:directions]
        results = []
        for part, place in zip(tf.split(output, directions, axis=2), places, strict=True):
            known = self.mask if zero_where_masked else (place >= 0) & (place < count[:, -1:])
            inside = tf.clip_by_value(place, 0, tf.maximum(tf.shape(place)[1] - 1, 0))
            moved = tf.gather(part, inside, batch_dims=1)
            results.append(tf.where(known[:, :, tf.newaxis], moved, tf.zeros([], part.dtype)))
        return tf.concat(results, axis=2)

    def last(self, final: list[tf.Tensor]) -> tf.Tensor:
        """The output of the valid step that each direction computes last.

        Args:
          final: the final h of each direction, [B, P].

        Returns:
          [B, D*P], zero in rows without a valid step.
        """
        known = (self.lengths > 0)[:, tf.newaxis]
        return tf.concat([tf.where(known, h, tf.zeros([], h.dtype)) for h in final], axis=1)


def last_steps(sequences: Any, mask: tf.Tensor, directions: int, reverse: bool) -> list[tf.Tensor]:
    """Whether the step that each direction computes last is valid.

    Args:
      sequences: [B, T, I], or ragged.
      mask: as in `Steps.of`; of a ragged tensor also ragged.
      directions: D.
      reverse: whether the steps run from the last to the first.

    Returns:
      bool [B, 1] for each direction; False for a batch without steps.
    """
    if isinstance(sequences, tf.RaggedTensor):
        mask = ragged.pad(sequences, mask, left=False).mask
        ends = sequences.row_lengths() - 1
    else:
        mask = _as_rows(mask, *tf.unstack(tf.shape(sequences)[:2]))
        ends = tf.fill(tf.shape(mask)[:1], tf.shape(mask, tf.int64)[1] - 1)
    mask = tf.pad(mask, [[0, 0], [0, 1]])  # there may be no step
    first = mask[:, :1]
    last = tf.gather(mask, tf.maximum(ends, 0)[:, tf.newaxis], batch_dims=1)
    return [first] if reverse else [last, first][:directions]


def _as_rows(mask: tf.Tensor, batch: Any, time: Any) -> tf.Tensor:
    """bool [B, T] of the mask of a call."""
    mask = tf.cast(mask[0] if isinstance(mask, list | tuple) else mask, tf.bool)
    mask = tf.squeeze(mask, axis=-1) if mask.shape.rank == 3 else mask
    return tf.broadcast_to(mask, [batch, time])
