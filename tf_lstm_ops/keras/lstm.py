"""LSTM: keras.layers.LSTM on one fused op per sequence."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops.keras import cudnn_path
from tf_lstm_ops.keras.activations import described, name_of
from tf_lstm_ops.keras.fused import PACKAGE, own_config
from tf_lstm_ops.keras.lstm_cell import OWN_ARGUMENTS, LSTMCell
from tf_lstm_ops.keras.op_inputs import optional, required
from tf_lstm_ops.keras.single_layer import SingleLayerRNN


@keras.saving.register_keras_serializable(package=PACKAGE)
class LSTM(SingleLayerRNN, keras.layers.LSTM):
    """``keras.layers.LSTM``, faster and for any mask.

    All arguments, weights (names, shapes, gate order i, f, c, o) and results are those of
    ``keras.layers.LSTM``. A sequence is one fused op, forward and backward, with any boolean mask,
    dropout, recurrent dropout, initial state and direction, if ``activation`` and
    ``recurrent_activation`` are functions of Keras that the op has: tanh, sigmoid, relu,
    hard_sigmoid, hard_tanh, softsign, linear, elu, leaky_relu, silu or gelu. Otherwise Keras' own
    loop runs, with the same results. ``uses_fused_op`` and ``fallback_reason`` show which one runs.
    Rules and equations:
    docs/reference/keras.md.

    Args:
      units: positive integer H, the size of the output.
      activation, recurrent_activation, use_bias, kernel_initializer, recurrent_initializer,
        bias_initializer, unit_forget_bias, kernel_regularizer, recurrent_regularizer,
        bias_regularizer, activity_regularizer, kernel_constraint, recurrent_constraint,
        bias_constraint, dropout, recurrent_dropout, seed, return_sequences, return_state,
        go_backwards, stateful: as in ``keras.layers.LSTM``.
      unroll: accepted; it changes nothing.
      use_cudnn: True asks for Keras' own cuDNN path; "auto" and False do not. With use_peephole,
        cell_clip, projection_size or layer_normalization, True is an error, and the attribute is
        False.
      use_peephole: adds the weight ``peephole_kernel`` [3, H]; see LSTMCell.
      cell_clip: bounds the cell state to [-cell_clip, cell_clip]; see LSTMCell.
      projection_size: P, positive and below units: h is multiplied by the weight
        ``projection_kernel`` [H, P]; see LSTMCell. None: no projection, P = H.
      layer_normalization: False, True, "haste" or "addons"; see LSTMCell. The fused op needs the
        default activations and no peepholes, clip or projection.
      layer_normalization_epsilon: see LSTMCell.
      **kwargs: other arguments of ``keras.layers.LSTM``, such as name and dtype.

    Call arguments:
      sequences: [B, T, I].
      initial_state: list of two tensors, h [B, P] and c [B, H]; zeros by default.
      mask: [B, T] boolean; a step that is False does not change the states.
      training: whether dropout applies.

    Call returns:
      [B, P], the last output; with return_sequences all outputs, [B, T, P]. With return_state, a
      list of it and the final states h [B, P] and c [B, H].

    Raises:
      ValueError: units, cell_clip or layer_normalization_epsilon is not positive; projection_size
        is out of range; layer_normalization is unknown; use_cudnn is True together with
        use_peephole, cell_clip, projection_size or layer_normalization; or another argument is not
        valid in keras.layers.LSTM.
    """

    _state_names = ("h", "c")

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        use_cudnn: str | bool = "auto",
        *,
        use_peephole: bool = False,
        cell_clip: float | None = None,
        projection_size: int | None = None,
        layer_normalization: bool | str | None = None,
        layer_normalization_epsilon: float | None = None,
        **kwargs: Any,
    ) -> None:
        if use_cudnn not in ("auto", True, False):
            raise ValueError(
                f"use_cudnn must be 'auto', True or False. Received: use_cudnn={use_cudnn}"
            )
        own = use_peephole or cell_clip is not None or projection_size is not None
        own = bool(own or layer_normalization)
        if use_cudnn is True and own:
            raise ValueError(
                "use_cudnn=True asks for Keras' own cuDNN path, which has no use_peephole, "
                "cell_clip, projection_size or layer_normalization; leave use_cudnn='auto'"
            )
        cell = LSTMCell(
            units,
            activation=activation,
            recurrent_activation=recurrent_activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            unit_forget_bias=unit_forget_bias,
            kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint,
            dropout=dropout,
            recurrent_dropout=recurrent_dropout,
            seed=seed,
            use_peephole=use_peephole,
            cell_clip=cell_clip,
            projection_size=projection_size,
            layer_normalization=layer_normalization,
            layer_normalization_epsilon=layer_normalization_epsilon,
            implementation=kwargs.pop("implementation", 2),
            dtype=kwargs.get("dtype"),
            trainable=kwargs.get("trainable", True),
            name="lstm_cell",
        )
        # keras.layers.LSTM's own constructor would make its own cell.
        keras.layers.RNN.__init__(
            self,
            cell,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
            activity_regularizer=activity_regularizer,
            **kwargs,
        )
        self.input_spec = keras.layers.InputSpec(ndim=3)
        # False keeps Keras from computing a Bidirectional around this layer by its kernels alone.
        self.use_cudnn = False if own else use_cudnn

    @property
    def use_peephole(self) -> bool:
        """Whether the cell has peepholes."""
        return self.cell.use_peephole

    @property
    def cell_clip(self) -> float | None:
        """The bound of the cell state; None if there is none."""
        return self.cell.cell_clip

    @property
    def projection_size(self) -> int | None:
        """The size P of h; None without a projection."""
        return self.cell.projection_size

    @property
    def layer_normalization(self) -> str | None:
        """The form of layer normalisation, "haste" or "addons"; None without."""
        return self.cell.layer_normalization

    @property
    def layer_normalization_epsilon(self) -> float | None:
        """The epsilon of layer normalisation; None without."""
        return self.cell.layer_normalization_epsilon

    @property
    def fallback_reason(self) -> str | None:
        """Why a call runs Keras' own loop; None if it runs the fused op."""
        reason = super().fallback_reason
        if reason is not None or self.layer_normalization is None:
            return reason
        options = {
            "use_peephole": self.use_peephole,
            "cell_clip": self.cell_clip is not None,
            "projection_size": self.projection_size is not None,
        }
        given = [name for name, is_given in options.items() if is_given]
        if not given:
            return None
        return f"layer_normalization with {' and '.join(given)} has no fused op"

    @property
    def _uncovered_activation(self) -> str | None:
        """Which activation has no fused op; None if both have."""
        if self.layer_normalization is not None:  # only the default ones
            return super()._uncovered_activation
        for name in ("activation", "recurrent_activation"):
            function = getattr(self, name)
            if name_of(function) is None:
                return f"{name} is {described(function)}, which has no fused op"
        return None

    @property
    def _op(self) -> str:
        if self.layer_normalization is not None:
            return "KerasLayerNormLSTM"
        return "KerasLSTM"

    @property
    def _has_cuda(self) -> bool:
        names = name_of(self.activation), name_of(self.recurrent_activation)
        return self.projection_size is None and names == ("tanh", "sigmoid")

    @property
    def _has_cudnn(self) -> bool:
        is_standard = self._op == "KerasLSTM" and self._has_cuda
        return is_standard and not self.use_peephole and not self.cell_clip

    @property
    def _has_metal(self) -> bool:
        return self._has_cudnn

    def _call_op(self, initial_state: list[Any], **arguments: Any) -> tuple[Any, list[Any]]:
        h, c = initial_state
        if self.layer_normalization is not None:
            return self._call_norm_op(h, c, arguments)
        arguments["peephole"] = optional(self.cell.peephole_kernel, h.dtype)
        arguments["cell_clip"] = self.cell_clip or 0.0
        arguments["projection"] = optional(self.cell.projection_kernel, h.dtype)
        arguments["activation"] = name_of(self.activation)
        arguments["recurrent_activation"] = name_of(self.recurrent_activation)
        arguments.update(initial_h=h, initial_c=c)
        output, *states = cudnn_path.run(self._op, arguments)
        return output, states

    def _call_norm_op(self, h: Any, c: Any, arguments: dict[str, Any]) -> tuple[Any, list[Any]]:
        cell = self.cell
        for name in ("input_gamma", "recurrent_gamma", "state_gamma", "state_beta"):
            arguments[name] = required(getattr(cell, name))
        if self.layer_normalization == "addons":
            biases = [cell.input_beta, cell.recurrent_beta, cell.bias]
            # One op: TensorFlow makes other ops of two additions in a graph, which round otherwise.
            arguments["bias"] = tf.add_n([tf.convert_to_tensor(b) for b in biases if b is not None])
        arguments["epsilon"] = self.layer_normalization_epsilon
        arguments["carries_normalized_state"] = self.layer_normalization == "addons"
        arguments.update(initial_h=h, initial_c=c)
        output, *states = cudnn_path.run(self._op, arguments)
        return output, states

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the layer again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        return {**super().get_config(), **own_config(self, OWN_ARGUMENTS)}
