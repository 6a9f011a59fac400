"""The base class of all layers: ragged sequences, masks of the next layer, configuration."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _deviation, _placement
from tf_lstm_ops.keras import call_checks, options, ragged, sequence_mask
from tf_lstm_ops.keras.old_files import arguments
from tf_lstm_ops.keras.requirements import require_keras_3
from tf_lstm_ops.keras.types import GPUPath, Results, Sequences

PACKAGE = sequence_mask.PACKAGE


def own_config(layer: keras.Layer, names: Iterable[str]) -> dict[str, Any]:
    """The part of a configuration that ``keras.layers`` does not know.

    Args:
      layer: a layer or cell.
      names: its arguments beyond those of the stock class. The default of each is None or False.

    Returns:
      Those that differ from their defaults: the stock class takes the configuration of a layer that
      has none of them.
    """
    values = {name: getattr(layer, name) for name in names}
    return {
        name: value for name, value in values.items() if value is not None and value is not False
    }


def own_option(layer: Any, name: str) -> Any:
    """An option of the cell of a layer that the cells of ``keras.layers`` do not have.

    Args:
      layer: a recurrent layer.
      name: the option.

    Returns:
      Its value; None if the cell does not have it, since users may give a layer another cell.
    """
    return getattr(layer.cell, name, None)


class FusedRNN(keras.layers.RNN):
    """A layer that runs one op per sequence if possible, else the loop of ``keras.layers.RNN``."""

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

    def _pass_no_masks(self) -> None:
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
          config: what ``get_config`` returned, also that of the layer of the same name in Keras 2.

        Returns:
          The layer.
        """
        config = dict(config)
        if arguments.is_of_keras_2(config):
            config = arguments.of_single_layer(cls, config)
        passes_masks = config.pop("supports_masking", True)
        layer = cls(**config)
        if not passes_masks:
            layer._pass_no_masks()
        return layer

    def __call__(self, *args: Any, sequence_lengths: Any = None, **kwargs: Any) -> Any:
        """Calls the layer.

        Args:
          *args, **kwargs: the arguments of ``call``.
          sequence_lengths: [B] integers, how many steps of each row count, the first ones; in place
            of a mask. None: all.

        Returns:
          What ``call`` returns.

        Raises:
          ValueError: as of ``call``; or sequence_lengths are not valid, or there is a mask, too.
        """
        if "tf_keras" in sys.modules:
            # A tensor of its functional models would be taken as one of TensorFlow: the model would
            # lack this layer and its weights.
            for value in keras.tree.flatten((args, kwargs)):
                require_keras_3("the input", value)
        for value in (*args[:1], kwargs.get("sequences")):  # before the layer is built from it
            if isinstance(value, tf.RaggedTensor):
                ragged.require_rows_of_steps(value)
        if sequence_lengths is not None:
            args, kwargs = sequence_mask.with_mask(self, sequence_lengths, args, kwargs)
        return super().__call__(*args, **kwargs)

    def call(
        self,
        sequences: Sequences,
        initial_state: Sequence[tf.Tensor] | None = None,
        mask: tf.Tensor | None = None,
        training: bool = False,
    ) -> Results:
        """Runs the layer; ``__call__`` calls it.

        Args:
          sequences: [B, T, I]; or a RaggedTensor [B, (steps), I].
          initial_state: [B, H] tensors, one for each state; None: zeros.
          mask: [B, T] boolean, ragged or padded on the right where sequences is ragged; or None.
          training: whether dropout applies.

        Returns:
          The last output [B, H]; with return_sequences all outputs, [B, T, H], ragged where
          sequences is. With return_state, also the final states.

        Raises:
          ValueError: a size is not that of the layer or of the sequences.
        """
        call_checks.require_fitting(self, sequences, initial_state, mask)
        options = {"initial_state": initial_state, "training": training}
        if not isinstance(sequences, tf.RaggedTensor):
            if sequences.shape[1] == 0:
                return self._call_without_steps(sequences, options)
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

    def _call_without_steps(self, sequences: Any, options: dict[str, Any]) -> Any:
        """The results of one masked step. Keras' call reads the first step."""
        step = tf.pad(tf.convert_to_tensor(sequences), [[0, 0], [0, 1], [0, 0]])
        results = super().call(step, mask=tf.zeros_like(step[:, :, 0], tf.bool), **options)
        if not self.return_sequences:
            return results
        output, *states = results if self.return_state else [results]
        return (output[:, :0], *states) if self.return_state else output[:, :0]

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
    def _names_of_states(self) -> Sequence[str]:
        """The names of the states of a call, in order."""
        raise NotImplementedError

    @property
    def _expected_states(self) -> str:
        """What initial_state must be or have."""
        return f"be [{', '.join(self._names_of_states)}]"

    @property
    def uses_fused_op(self) -> bool:
        """Whether a call runs the fused op rather than Keras' own loop."""
        return self.fallback_reason is None

    @property
    def fallback_reason(self) -> str | None:
        """Why a call runs Keras' own loop; None if it runs the fused op."""
        return _deviation.of(self)

    @property
    def gpu_path(self) -> GPUPath:
        """What computes a call on a GPU.

        One of: "no GPU"; "GPU kernels", those of this package; "cuDNN", TensorFlow's own op
        CudnnRNNV3; "plain ops", a loop of TensorFlow's ops; "CPU kernels"; "Keras' own loop", see
        fallback_reason. While the GPU kernels are off, eager calls of a layer with "plain ops" run
        the CPU kernel.
        """
        if not self.uses_fused_op:
            return "Keras' own loop"
        return _placement.path(self._op, options.of(self, options.STEP))

    @property
    def _op(self) -> str:
        """The op that a call runs."""
        return "CudnnRNNV3"

    @property
    def supports_jit(self) -> bool:
        """Whether Keras may compile a call with XLA, in which plain ops replace the fused op.

        False where GPU kernels or cuDNN run, also on Keras' own path to cuDNN. On a machine with a
        GPU, Keras by default compiles models whose layers all return True.
        """
        if self.uses_fused_op:
            return self.gpu_path not in ("GPU kernels", "cuDNN")
        return self._supports_jit and getattr(self, "use_cudnn", None) is not True

    @supports_jit.setter
    def supports_jit(self, value: bool) -> None:
        self._supports_jit = value
