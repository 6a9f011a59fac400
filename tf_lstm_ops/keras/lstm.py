"""LSTM: keras.layers.LSTM on one fused op per sequence."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from tf_lstm_ops import composite
from tf_lstm_ops.keras.activations import described, name_of
from tf_lstm_ops.keras.fused import PACKAGE, FusedRNN
from tf_lstm_ops.raw_ops.common import optional, run

_OWN_ARGUMENTS = ("use_peephole", "cell_clip", "projection_size")  # which stock Keras lacks


def require_projection_size(projection_size: Any, units: int) -> None:
    """Checks the argument projection_size of an LSTM.

    Args:
      projection_size: the argument, not None.
      units: the number of units H.

    Raises:
      ValueError: projection_size is not an integer from 1 to H - 1.
    """
    is_integer = isinstance(projection_size, int) and not isinstance(projection_size, bool)
    if not (is_integer and 0 < projection_size < units):
        raise ValueError(
            f"projection_size must be None or an integer from 1 to {units - 1}, below units. "
            f"Received: {projection_size}"
        )


@keras.saving.register_keras_serializable(package=PACKAGE)
class LSTMCell(keras.layers.LSTMCell):
    """``keras.layers.LSTMCell`` with peepholes, a clipped cell state and a projection.

    Equations: docs/reference/keras.md.

    Args:
      units: positive integer H, the size of the output.
      *args: as in ``keras.layers.LSTMCell``.
      use_peephole: adds the weight ``peephole_kernel`` [3, H], rows i, f and o. The input
        and the forget gate read the previous cell state, the output gate reads the new one.
      cell_clip: bounds the cell state to [-cell_clip, cell_clip]; the gradient of the clip is the
        identity. None: no bound.
      projection_size: P, positive and below units: adds the weight ``projection_kernel`` [H, P],
        by which h is multiplied; ``recurrent_kernel`` is [P, 4H]. None: no projection.
      **kwargs: as in ``keras.layers.LSTMCell``.

    Raises:
      ValueError: cell_clip is not positive, projection_size is out of range, or another argument is
        not valid in
        keras.layers.LSTMCell.
    """

    def __init__(
        self,
        units: int,
        *args: Any,
        use_peephole: bool = False,
        cell_clip: float | None = None,
        projection_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        if cell_clip is not None and not cell_clip > 0:
            raise ValueError(f"cell_clip must be None or positive. Received: {cell_clip}")
        super().__init__(units, *args, **kwargs)
        if projection_size is not None:
            require_projection_size(projection_size, units)
            self.state_size = [projection_size, units]
            self.output_size = projection_size
        self.projection_size = projection_size
        self.projection_kernel: Any = None
        self.use_peephole = use_peephole
        self.cell_clip = cell_clip
        self.peephole_kernel: Any = None

    def build(self, input_shape: Any) -> None:
        """Creates the weights; Keras calls it.

        Args:
          input_shape: the shape of the cell's input, [B, I].
        """
        if self.projection_size is None:
            super().build(input_shape)
        else:
            self._build_with_projection(input_shape[-1])
        if self.use_peephole:
            self.peephole_kernel = self.add_weight(
                shape=(3, self.units),
                name="peephole_kernel",
                initializer=self.kernel_initializer,
                regularizer=self.recurrent_regularizer,
                constraint=self.recurrent_constraint,
            )
        if self.projection_size is not None:
            self.projection_kernel = self.add_weight(
                shape=(self.units, self.projection_size),
                name="projection_kernel",
                initializer=self.kernel_initializer,
                regularizer=self.recurrent_regularizer,
                constraint=self.recurrent_constraint,
            )

    def _build_with_projection(self, inputs: int) -> None:
        """The weights of the stock cell, whose own build gives recurrent_kernel H rows."""
        for name, rows in (("kernel", inputs), ("recurrent_kernel", self.projection_size)):
            kind = name.removesuffix("_kernel")
            weight = self.add_weight(
                shape=(rows, 4 * self.units),
                name=name,
                initializer=getattr(self, f"{kind}_initializer"),
                regularizer=getattr(self, f"{kind}_regularizer"),
                constraint=getattr(self, f"{kind}_constraint"),
            )
            setattr(self, name, weight)
        self.bias = self._add_bias() if self.use_bias else None

    def _add_bias(self) -> Any:
        def initial(shape: Any, *args: Any, **kwargs: Any) -> Any:
            bias = self.bias_initializer(shape, *args, **kwargs)
            if not self.unit_forget_bias:
                return bias
            i, _, c, o = ops.split(bias, 4)
            return ops.concatenate([i, ops.ones_like(i), c, o])

        return self.add_weight(
            shape=(4 * self.units,),
            name="bias",
            initializer=initial,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
        )

    def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
        """Computes one step; ``__call__`` calls it.

        Args:
          inputs: [B, I].
          states: h [B, P], P = H without a projection, and c [B, H].
          training: whether dropout applies.

        Returns:
          The new h, and the list of the new h and c.
        """
        h, states = super().call(inputs, states, training=training)
        if self.projection_size is None:
            return h, states
        h = ops.matmul(h, self.projection_kernel)
        return h, [h, states[1]]

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
        return {**config, **{name: getattr(self, name) for name in _OWN_ARGUMENTS}}


@keras.saving.register_keras_serializable(package=PACKAGE)
class LSTM(FusedRNN, keras.layers.LSTM):
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
      use_cudnn: True asks for Keras' own cuDNN path; "auto" and False do not.
      use_peephole: adds the weight ``peephole_kernel`` [3, H]; see LSTMCell.
      cell_clip: bounds the cell state to [-cell_clip, cell_clip]; see LSTMCell.
      projection_size: P, positive and below units: h is multiplied by the weight
        ``projection_kernel`` [H, P]; see LSTMCell. None: no projection, P = H.
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
      ValueError: units or cell_clip is not positive, projection_size is out of range, use_cudnn is
        True together with use_peephole, cell_clip or projection_size, or another argument is not
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
        **kwargs: Any,
    ) -> None:
        if use_cudnn not in ("auto", True, False):
            raise ValueError(
                f"use_cudnn must be 'auto', True or False. Received: use_cudnn={use_cudnn}"
            )
        own = use_peephole or cell_clip is not None or projection_size is not None
        if use_cudnn is True and own:
            raise ValueError(
                "use_cudnn=True asks for Keras' own cuDNN path, which has no use_peephole, "
                "cell_clip or projection_size; leave use_cudnn='auto'"
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

    @property
    def projection_size(self) -> int | None:
        """The size P of h; None without a projection."""
        return self.cell.projection_size

    @property
    def _uncovered_activation(self) -> str | None:
        """Which activation has no fused op; None if both have."""
        for name in ("activation", "recurrent_activation"):
            function = getattr(self, name)
            if name_of(function) is None:
                return f"{name} is {described(function)}, which has no fused op"
        return None

    def _call_op(self, initial_state: list[Any], **arguments: Any) -> tuple[Any, list[Any]]:
        h, c = initial_state
        arguments["peephole"] = optional(self.cell.peephole_kernel, h.dtype)
        arguments["cell_clip"] = self.cell_clip or 0.0
        op, names = "KerasLSTM", (name_of(self.activation), name_of(self.recurrent_activation))
        if self.projection_size is not None or names != ("tanh", "sigmoid"):
            op = "KerasLSTMV2"
            arguments["projection"] = optional(self.cell.projection_kernel, h.dtype)
            arguments["activation"], arguments["recurrent_activation"] = names
        output, h, c, _ = run(op, {"initial_h": h, "initial_c": c, **arguments})
        return output, [h, c]

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the layer again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        config = super().get_config()
        return {**config, **{name: getattr(self, name) for name in _OWN_ARGUMENTS}}
