"""GRU: keras.layers.GRU on one fused op per sequence."""

from __future__ import annotations

from typing import Any

import keras

from tf_lstm_ops.keras import cudnn_path, layer_norm
from tf_lstm_ops.keras.fused import PACKAGE, own_config
from tf_lstm_ops.keras.gru_cell import GRUCell
from tf_lstm_ops.keras.op_inputs import required
from tf_lstm_ops.keras.single_layer import SingleLayerRNN


@keras.saving.register_keras_serializable(package=PACKAGE)
class GRU(SingleLayerRNN, keras.layers.GRU):
    """``keras.layers.GRU``, faster and for any mask.

    All arguments, weights (names, shapes, gate order z, r, h) and results are those of
    ``keras.layers.GRU``. A sequence is one fused op, forward and backward, with any boolean mask,
    dropout, recurrent dropout, initial state and direction, if ``activation`` is tanh and
    ``recurrent_activation`` is sigmoid. Otherwise Keras' own loop runs, with the same results.
    ``uses_fused_op`` and ``fallback_reason`` show which one runs. Rules and equations:
    docs/reference/keras.md.

    Args:
      units: positive integer H, the size of the output.
      activation, recurrent_activation, use_bias, kernel_initializer, recurrent_initializer,
        bias_initializer, kernel_regularizer, recurrent_regularizer, bias_regularizer,
        activity_regularizer, kernel_constraint, recurrent_constraint, bias_constraint, dropout,
        recurrent_dropout, seed, return_sequences, return_state, go_backwards, stateful,
        reset_after: as in ``keras.layers.GRU``.
      unroll: accepted; it changes nothing.
      use_cudnn: True asks for Keras' own cuDNN path; "auto" and False do not.
      layer_normalization: normalises the products of the input and of h; adds the weights
        ``input_gamma`` and ``recurrent_gamma`` [3H]. False: none.
      layer_normalization_epsilon: positive; added to the variances. None: 1e-5.
      **kwargs: other arguments of ``keras.layers.GRU``, such as name and dtype.

    Call arguments:
      sequences: [B, T, I].
      initial_state: [B, H] tensor, or a list of one; zeros by default.
      mask: [B, T] boolean; a step that is False does not change the state.
      training: whether dropout applies.

    Call returns:
      [B, H], the last output; with return_sequences all outputs, [B, T, H]. With return_state, a
      list of it and the final state [B, H].

    Raises:
      ValueError: units or layer_normalization_epsilon is not positive, layer_normalization is given
        together with reset_after=False or use_cudnn=True, or another argument is not valid in
        keras.layers.GRU.
    """

    _state_names = ("h",)

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
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
        reset_after: bool = True,
        use_cudnn: str | bool = "auto",
        *,
        layer_normalization: bool | str | None = None,
        layer_normalization_epsilon: float | None = None,
        **kwargs: Any,
    ) -> None:
        if use_cudnn not in ("auto", True, False):
            raise ValueError(
                f"use_cudnn must be 'auto', True or False. Received: use_cudnn={use_cudnn}"
            )
        if use_cudnn is True and layer_normalization:
            raise ValueError(
                "use_cudnn=True asks for Keras' own cuDNN path, which has no layer_normalization; "
                "leave use_cudnn='auto'"
            )
        cell = GRUCell(
            units,
            activation=activation,
            recurrent_activation=recurrent_activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint,
            dropout=dropout,
            recurrent_dropout=recurrent_dropout,
            reset_after=reset_after,
            seed=seed,
            layer_normalization=layer_normalization,
            layer_normalization_epsilon=layer_normalization_epsilon,
            implementation=kwargs.pop("implementation", 2),
            dtype=kwargs.get("dtype"),
            trainable=kwargs.get("trainable", True),
            name="gru_cell",
        )
        # keras.layers.GRU's own constructor would make its own cell.
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
        self.use_cudnn = False if layer_normalization else use_cudnn

    @property
    def layer_normalization(self) -> str | None:
        """ "haste" with layer normalisation, None without."""
        return self.cell.layer_normalization

    @property
    def layer_normalization_epsilon(self) -> float | None:
        """The epsilon of layer normalisation; None without."""
        return self.cell.layer_normalization_epsilon

    @property
    def _op(self) -> str:
        if self.layer_normalization is not None:
            return "KerasLayerNormGRU"
        return "KerasGRU" if self.reset_after else "KerasResetBeforeGRU"

    @property
    def _has_cudnn(self) -> bool:
        return self._op == "KerasGRU"

    def _call_op(self, initial_state: list[Any], **arguments: Any) -> tuple[Any, list[Any]]:
        arguments["initial_h"] = initial_state[0]
        if self.layer_normalization is not None:
            for name in ("input_gamma", "recurrent_gamma"):
                arguments[name] = required(getattr(self.cell, name))
            arguments["epsilon"] = self.layer_normalization_epsilon
        output, *states = cudnn_path.run(self._op, arguments)
        return output, states

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the layer again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        return {**super().get_config(), **own_config(self, layer_norm.ARGUMENTS)}
