"""The base class of layers of one cell: the choice of the fused op or the loop, and dropout."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _keras_private
from tf_lstm_ops.keras import directions, op_arguments
from tf_lstm_ops.keras.fused import FusedRNN
from tf_lstm_ops.keras.op_inputs import optional


def _per_row(value: tf.Tensor | None, x: tf.Tensor, axis: int = 0) -> tf.Tensor | None:
    """A tensor with the batch size of x in a dimension; Keras also allows 1."""
    if value is None or value.shape[axis] != 1 or x.shape[0] == 1:
        return value
    before, after = tf.shape(value)[:axis], tf.shape(value)[axis + 1 :]
    return tf.broadcast_to(value, tf.concat([before, tf.shape(x)[:1], after], axis=0))


def _as_boolean(mask: tf.Tensor) -> Any:
    mask = tf.cast(mask, tf.bool)
    return tf.squeeze(mask, axis=-1) if mask.shape.rank == 3 else mask


class SingleLayerRNN(FusedRNN):
    """A layer of one cell that runs one op per sequence if possible, else Keras' loop.

    It must come before the stock layer in the bases of a class.
    """

    _state_names: tuple[str, ...]

    @property
    def fallback_reason(self) -> str | None:
        """Why a call runs Keras' own loop; None if it runs the fused op."""
        if getattr(self, "use_cudnn", None) is True:  # SimpleRNN has no such argument
            return "use_cudnn=True asks for Keras' own cuDNN path"
        return super().fallback_reason or op_arguments.why_no_op(self)

    @property
    def _op(self) -> str:
        return op_arguments.op_of(self)

    def inner_loop(
        self, sequences: Any, initial_state: Any, mask: tf.Tensor, training: bool = False
    ) -> Any:
        """Runs the layer over a batch of sequences; ``keras.layers.RNN`` calls it.

        Args:
          sequences: [B, T, I].
          initial_state: list of [B, H] tensors, one for each state; [1, H] is broadcast. Of an LSTM
            with a projection, h is [B, P].
          mask: [B, T] or [B, T, 1] boolean, or None: all steps are valid.
          training: whether dropout applies.

        Returns:
          Without return_sequences: the last output twice, [B, H] and [B, 1, H]. With it: the final
          h [B, H], which Keras does not read, and all outputs [B, T, H]. Then the list of the final
          states, [B, H] each.
        """
        if getattr(self, "use_cudnn", None) is True:  # SimpleRNN has no such argument
            return super().inner_loop(sequences, initial_state, mask, training=training)
        if not self.uses_fused_op:
            # The stock layer's inner_loop would try cuDNN with a single dropout mask first.
            return keras.layers.RNN.inner_loop(
                self, sequences, initial_state, mask, training=training
            )
        x, input_dropout = self._drop_inputs(tf.cast(sequences, self.compute_dtype), training)
        h_dropout = _per_row(self._recurrent_multipliers(initial_state[0], training), x, axis=1)
        op = self._op
        weights = op_arguments.weights(self.cell, op)
        states = [_per_row(state, x) for state in initial_state]
        arguments = {
            "x": x,
            "mask": self._optional_mask(mask, x),
            **{f"initial_{n}": s for n, s in zip(self._state_names, states, strict=True)},
            **{name: optional(weight, x.dtype) for name, weight in weights.items()},
            "input_dropout": optional(input_dropout, x.dtype),
            "recurrent_dropout": optional(h_dropout, x.dtype),
            "go_backwards": self.go_backwards,
            "zero_output_for_mask": self.zero_output_for_mask,
            "return_sequences": self.return_sequences,
            "training": bool(training),
            **op_arguments.attributes(self),
        }
        output, *states = directions.run(op, arguments)
        steps = x.shape[1] if self.return_sequences else 1
        output.set_shape([x.shape[0], steps, None])
        last = states[0] if self.return_sequences else tf.squeeze(output, 1)
        return last, output, states

    @property
    def _names_of_states(self) -> tuple[str, ...]:
        return self._state_names

    @staticmethod
    def _optional_mask(mask: tf.Tensor, x: tf.Tensor) -> Any:
        if isinstance(mask, list | tuple):
            mask = mask[0]
        return optional(None if mask is None else _per_row(_as_boolean(mask), x), tf.bool)

    @staticmethod
    def _drops(rate: float) -> bool:
        """Whether the stock cell applies a rate of dropout in training."""
        return 0.0 < rate < 1.0

    def _drop_inputs(self, x: tf.Tensor, training: bool) -> tuple[Any, Any]:
        """Applies input dropout, or returns its multipliers if each gate has different ones."""
        if not (training and self._drops(self.dropout)):
            return x, None
        multipliers = _keras_private.input_multipliers(self.cell, x[:, 0, :])
        if isinstance(multipliers, list):  # implementation 1
            return x, tf.stack(multipliers)
        return x * multipliers[:, tf.newaxis], None

    def _recurrent_multipliers(self, h: tf.Tensor, training: bool) -> Any:
        """The gates' multipliers of h. Implementation 2 has none, as in the stock cells. If h has
        one row for all, so have the multipliers."""
        if not (training and self._drops(self.recurrent_dropout)):
            return None
        if getattr(self.cell, "implementation", 1) != 1:
            return None
        multipliers = _keras_private.recurrent_multipliers(self.cell, h)
        # Of the one product in a SimpleRNN they are no list.
        return tf.stack(multipliers if isinstance(multipliers, list) else [multipliers])
