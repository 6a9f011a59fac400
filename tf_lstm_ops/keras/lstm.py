"""LSTM: keras.layers.LSTM on one fused op per sequence."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from tf_lstm_ops import composite
from tf_lstm_ops.keras.fused import PACKAGE, FusedRNN
from tf_lstm_ops.raw_ops.common import optional, run


@keras.saving.register_keras_serializable(package=PACKAGE)
class LSTMCell(keras.layers.LSTMCell):
    """``keras.layers.LSTMCell`` with peepholes and a clipped cell state.

    Equations: docs/reference/keras.md.

    Args:
      units: positive integer H, the size of the output.
      *args: as in ``keras.layers.LSTMCell``.
      use_peephole: adds the weight ``peephole_kernel`` [3, H], rows i, f and o. The input
        and the forget gate read the previous cell state, the output gate reads the new one.
      cell_clip: bounds the cell state to [-cell_clip, cell_clip]; the gradient of the clip is the
        identity. None: no bound.
      **kwargs: as in ``keras.layers.LSTMCell``.

    Raises:
      ValueError: cell_clip is not positive, or another argument is not valid in
        keras.layers.LSTMCell.
    """

    def __init__(
        self,
        units: int,
        *args: Any,
        use_peephole: bool = False,
        cell_clip: float | None = None,
        **kwargs: Any,
    ) -> None:
        if cell_clip is not None and not cell_clip > 0:
            raise ValueError(f"cell_clip must be None or positive. Received: {cell_clip}")
        super().__init__(units, *args, **kwargs)
        self.use_peephole = use_peephole
        self.cell_clip = cell_clip
        self.peephole_kernel: Any = None

    def build(self, input_shape: Any) -> None:
        """Creates the weights; Keras calls it.

        Args:
          input_shape: the shape of the cell's input, [B, I].
        """
        super().build(input_shape)
        if self.use_peephole:
            self.peephole_kernel = self.add_weight(
                shape=(3, self.units),
                name="peephole_kernel",
                initializer=self.kernel_initializer,
                regularizer=self.recurrent_regularizer,
                constraint=self.recurrent_constraint,
            )

    def _compute_carry_and_output(self, x: Any, h_tm1: Any, c_tm1: Any) -> Any:
        recurrent = ops.split(self.recurrent_kernel, 4, axis=1)
        z = [a + ops.matmul(h, r) for a, h, r in zip(x, h_tm1, recurrent, strict=True)]
        return self._compute_carry_and_output_fused(z, c_tm1)

    def _compute_carry_and_output_fused(self, z: Any, c_tm1: Any) -> Any:
        zi, zf, zc, zo = z
        if self.use_peephole:
            wci, wcf, wco = ops.unstack(ops.convert_to_tensor(self.peephole_kernel))
            zi, zf = zi + wci * c_tm1, zf + wcf * c_tm1
        c = self.recurrent_activation(zf) * c_tm1
        c += self.recurrent_activation(zi) * self.activation(zc)
        if self.cell_clip is not None:
            c = composite.straight_through_clip(c, self.cell_clip)
        if self.use_peephole:
            zo += wco * c
        return c, self.recurrent_activation(zo)

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the cell again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        config = super().get_config()
        return {**config, "use_peephole": self.use_peephole, "cell_clip": self.cell_clip}


@keras.saving.register_keras_serializable(package=PACKAGE)
class LSTM(FusedRNN, keras.layers.LSTM):
    """``keras.layers.LSTM``, faster and for any mask.

    All arguments, weights (names, shapes, gate order i, f, c, o) and results are those of
    ``keras.layers.LSTM``. A sequence is one fused op, forward and backward, with any boolean mask,
    dropout, recurrent dropout, initial state and direction, if ``activation`` is tanh and
    ``recurrent_activation`` is sigmoid. Otherwise Keras' own loop runs, with the same results.
    ``uses_fused_op`` and ``fallback_reason`` show which one runs. Rules and equations:
    docs/reference/keras.md.

    Args:
      units: positive integer H, the size of the output.
      activation, recurrent_activation, use_bias, kernel_initializer, recurrent_initializer,
        bias_initializer, unit_forget_bias, kernel_regularizer, recurrent_regularizer,
        bias_regularizer, activity_regularizer, kernel_constraint, recurrent_constraint,
        bias_constraint, dropout, recurrent_dropout, seed, return_sequences, return_state,
        go_backwards, stateful: as in ``keras.layers.LSTM``.
      unroll: accepted; it changes nothing.
      use_cudnn: True asks for Keras' own cuDNN path; "auto" and False do not.
      use_peephole: adds the weight ``peephole_kernel`` [3, H]; see LSTMCell.
      cell_clip: bounds the cell state to [-cell_clip, cell_clip]; see LSTMCell.
      **kwargs: other arguments of ``keras.layers.LSTM``, such as name and dtype.

    Call arguments:
      sequences: [B, T, I].
      initial_state: list of two [B, H] tensors, h and c; zeros by default.
      mask: [B, T] boolean; a step that is False does not change the states.
      training: whether dropout applies.

    Call returns:
      [B, H], the last output; with return_sequences all outputs, [B, T, H]. With return_state, a
      list of it and the final states h and c, [B, H] each.

    Raises:
      ValueError: units or cell_clip is not positive, use_cudnn is True together with use_peephole
        or cell_clip, or another argument is not valid in keras.layers.LSTM.
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
        **kwargs: Any,
    ) -> None:
        if use_cudnn not in ("auto", True, False):
            raise ValueError(
                f"use_cudnn must be 'auto', True or False. Received: use_cudnn={use_cudnn}"
            )
        if use_cudnn is True and (use_peephole or cell_clip is not None):
            raise ValueError(
                "use_cudnn=True asks for Keras' own cuDNN path, which has neither use_peephole nor "
                "cell_clip; leave use_cudnn='auto'"
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
        self.use_cudnn = use_cudnn

    @property
    def use_peephole(self) -> bool:
        """Whether the cell has peepholes."""
        return self.cell.use_peephole

    @property
    def cell_clip(self) -> float | None:
        """The bound of the cell state; None if there is none."""
        return self.cell.cell_clip

    def _call_op(self, initial_state: list[Any], **arguments: Any) -> tuple[Any, list[Any]]:
        h, c = initial_state
        arguments["peephole"] = optional(self.cell.peephole_kernel, h.dtype)
        arguments["cell_clip"] = self.cell_clip or 0.0
        output, h, c, _ = run("KerasLSTM", {"initial_h": h, "initial_c": c, **arguments})
        return output, [h, c]

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the layer again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        config = super().get_config()
        return {**config, "use_peephole": self.use_peephole, "cell_clip": self.cell_clip}
