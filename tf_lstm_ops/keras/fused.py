"""The base class of the layers: the choice of the fused op or the loop, masks and dropout."""

from __future__ import annotations

import sys
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _gpu
from tf_lstm_ops.keras import ragged
from tf_lstm_ops.keras.activations import described, name_of
from tf_lstm_ops.keras.requirements import require_keras_3
from tf_lstm_ops.raw_ops.common import optional

PACKAGE = "tf_lstm_ops"  # the package name of the classes in Keras' registry


def _per_row(value: Any, batch: Any) -> Any:
    """A tensor whose first dimension is the batch size; Keras also allows 1."""
    if value.shape[0] != 1:
        return value
    return tf.broadcast_to(value, tf.concat([[batch], tf.shape(value)[1:]], axis=0))


def _as_boolean(mask: Any) -> Any:
    mask = tf.cast(mask, tf.bool)
    return tf.squeeze(mask, axis=-1) if mask.shape.rank == 3 else mask


class FusedRNN(keras.layers.RNN):
    """A layer that runs one op per sequence if possible, else the loop of ``keras.layers.RNN``.

    It must come before the stock layer in the bases of a class.
    """

    _state_names: tuple[str, ...]

    @property
    def supports_masking(self) -> bool:
        """Whether the next layer gets the mask, with return_sequences.

        True, as of stock recurrent layers up to Keras 3.15. Those of Keras 3.16 do not pass masks
        on; nor does a layer that `convert_model` made of one, so that predictions stay the same.
        """
        return self.__dict__.get("_passes_masks", True)

    @supports_masking.setter
    def supports_masking(self, value: bool) -> None:
        pass  # by the constructor of Keras

    def pass_no_masks(self) -> None:
        """Makes supports_masking False."""
        self._passes_masks = False

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the layer again.

        Returns:
          The arguments of the constructor by name, serialised; and "supports_masking" if False.
        """
        config = super().get_config()
        return config if self.supports_masking else {**config, "supports_masking": False}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes a layer.

        Args:
          config: what ``get_config`` returned.

        Returns:
          The layer.
        """
        config = dict(config)
        passes_masks = config.pop("supports_masking", True)
        layer = super().from_config(config)
        if not passes_masks:
            layer.pass_no_masks()
        return layer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "tf_keras" in sys.modules:
            # A tensor of its functional models would be taken as one of TensorFlow: the model would
            # lack this layer and its weights.
            for value in keras.tree.flatten((args, kwargs)):
                require_keras_3("the input", value)
        for value in (*args[:1], kwargs.get("sequences")):  # before the layer is built from it
            if isinstance(value, tf.RaggedTensor):
                ragged.require_rows_of_steps(value)
        return super().__call__(*args, **kwargs)

    def call(
        self, sequences: Any, initial_state: Any = None, mask: Any = None, training: bool = False
    ) -> Any:
        """Runs the layer; ``__call__`` calls it.

        Args:
          sequences: [B, T, I]; or a RaggedTensor [B, (steps), I].
          initial_state: [B, H] tensors, one for each state; None: zeros.
          mask: [B, T] boolean, ragged or padded on the right where sequences is ragged; or None.
          training: whether dropout applies.

        Returns:
          The last output [B, H]; with return_sequences all outputs, [B, T, H], ragged where
          sequences is. With return_state, also the final states.
        """
        options = {"initial_state": initial_state, "training": training}
        if not isinstance(sequences, tf.RaggedTensor):
            return super().call(sequences, mask=mask, **options)
        # The last step computed must be one of the row where its output may be set to zero.
        left = self.zero_output_for_mask and not self.go_backwards
        padded = ragged.pad(sequences, mask, left)
        results = super().call(padded.sequences, mask=padded.mask, **options)
        if not self.return_sequences:
            return results
        output, *states = results if self.return_state else [results]
        output = ragged.unpad(output, padded, sequences, self.go_backwards)
        return (output, *states) if self.return_state else output

    def compute_output_spec(self, sequences: Any, *args: Any, **kwargs: Any) -> Any:
        """The shapes and types of the results of a symbolic call; Keras calls it.

        Args:
          sequences: symbolic tensor [B, T, I], ragged or not.
          *args, **kwargs: the other arguments of ``call``.

        Returns:
          Symbolic tensors; the outputs of all steps are ragged where sequences is.
        """
        results = super().compute_output_spec(sequences, *args, **kwargs)
        if not (self.return_sequences and getattr(sequences, "ragged", False)):
            return results
        output, *states = results if self.return_state else [results]
        output = keras.KerasTensor(output.shape, output.dtype, ragged=True)
        return (output, *states) if self.return_state else output

    @property
    def uses_fused_op(self) -> bool:
        """Whether a call runs the fused op rather than Keras' own loop."""
        return self.fallback_reason is None

    @property
    def fallback_reason(self) -> str | None:
        """Why a call runs Keras' own loop; None if it runs the fused op."""
        if self.use_cudnn is True:
            return "use_cudnn=True asks for Keras' own cuDNN path"
        return self._uncovered_activation

    @property
    def _uncovered_activation(self) -> str | None:
        """Which activation has no fused op; None if both have."""
        for name, only in (("activation", "tanh"), ("recurrent_activation", "sigmoid")):
            function = getattr(self, name)
            if name_of(function) != only:
                return f"{name} is {described(function)}, not {only}"
        return None

    @property
    def supports_jit(self) -> bool:
        """Whether Keras may compile a call with XLA, in which plain ops replace the fused op.

        False where GPU kernels run: by default Keras uses XLA on a machine with a GPU.
        """
        if self.uses_fused_op:
            return not _gpu.kernels_run()
        return self._supports_jit

    @supports_jit.setter
    def supports_jit(self, value: bool) -> None:
        self._supports_jit = value

    def inner_loop(
        self, sequences: Any, initial_state: Any, mask: Any, training: bool = False
    ) -> Any:
        """Runs the layer over a batch of sequences; ``keras.layers.RNN`` calls it.

        Args:
          sequences: [B, T, I].
          initial_state: list of [B, H] tensors, one for each state; [1, H] is broadcast. Of an LSTM
            with a projection, h is [B, P].
          mask: [B, T] or [B, T, 1] boolean, or None: all steps are valid.
          training: whether dropout applies.

        Returns:
          The last output [B, H]; all outputs [B, T, H], or [B, 1, H] without return_sequences; the
          list of the final states, [B, H] each.

        Raises:
          ValueError: initial_state has the wrong length.
        """
        if self.use_cudnn is True:
            return super().inner_loop(sequences, initial_state, mask, training=training)
        if not self.uses_fused_op:
            # The stock layer's inner_loop would try cuDNN with a single dropout mask first.
            return keras.layers.RNN.inner_loop(
                self, sequences, initial_state, mask, training=training
            )
        if len(initial_state) != len(self._state_names):
            raise ValueError(
                f"initial_state must be [{', '.join(self._state_names)}]. "
                f"Received {len(initial_state)} tensors"
            )
        x, input_dropout = self._drop_inputs(tf.cast(sequences, self.compute_dtype), training)
        batch = tf.shape(x)[0]
        output, states = self._call_op(
            [_per_row(state, batch) for state in initial_state],
            x=x,
            mask=self._optional_mask(mask, batch),
            kernel=tf.convert_to_tensor(self.cell.kernel),
            recurrent_kernel=tf.convert_to_tensor(self.cell.recurrent_kernel),
            bias=optional(self.cell.bias, x.dtype),
            input_dropout=optional(input_dropout, x.dtype),
            recurrent_dropout=optional(
                self._recurrent_multipliers(initial_state[0], training), x.dtype
            ),
            go_backwards=self.go_backwards,
            zero_output_for_mask=self.zero_output_for_mask,
            return_sequences=self.return_sequences,
            training=bool(training),
        )
        output.set_shape(
            [x.shape[0], x.shape[1] if self.return_sequences else 1, self.cell.output_size]
        )
        return output[:, -1], output, states

    def _call_op(self, initial_state: list[Any], **arguments: Any) -> tuple[Any, list[Any]]:
        """Runs the layer's op: the output, [B, T, H] or [B, 1, H], and the final states."""
        raise NotImplementedError

    @staticmethod
    def _optional_mask(mask: Any, batch: Any) -> Any:
        if isinstance(mask, list | tuple):
            mask = mask[0]
        return optional(None if mask is None else _per_row(_as_boolean(mask), batch), tf.bool)

    def _drop_inputs(self, x: Any, training: bool) -> tuple[Any, Any]:
        """Applies input dropout, or returns its multipliers if each gate has different ones."""
        if not (training and 0.0 < self.dropout < 1.0):
            return x, None
        multipliers = self.cell.get_dropout_mask(x[:, 0, :])
        if isinstance(multipliers, list):  # implementation 1
            return x, tf.stack(multipliers)
        return x * multipliers[:, tf.newaxis], None

    def _recurrent_multipliers(self, h: Any, training: bool) -> Any:
        """The gates' multipliers of h. Implementation 2 has none, as in the stock cells."""
        if not (training and 0.0 < self.recurrent_dropout < 1.0 and self.cell.implementation == 1):
            return None
        return tf.stack(self.cell.get_recurrent_dropout_mask(h))
