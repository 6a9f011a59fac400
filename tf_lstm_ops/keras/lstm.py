"""LSTM: keras.layers.LSTM on one fused op per sequence."""

from __future__ import annotations

from typing import Any, Literal

import keras

from tf_lstm_ops import _targets
from tf_lstm_ops.keras.fused import PACKAGE, own_option
from tf_lstm_ops.keras.lstm_cell import LSTMCell
from tf_lstm_ops.keras.single_layer import OPTION, GatedRNN
from tf_lstm_ops.keras.types import Activation, Constraint, Initializer, Normalization, Regularizer


@keras.saving.register_keras_serializable(package=PACKAGE)
class LSTM(GatedRNN, keras.layers.LSTM):
    """``keras.layers.LSTM`` with one fused op for a whole sequence, and any mask.

    Arguments, weights and weight files are those of ``keras.layers.LSTM``; six arguments are new.
    Results are equal within rounding. The fused op runs with any boolean mask, dropout, initial
    state and direction, if the activations are among tanh, sigmoid, relu, hard_sigmoid, hard_tanh,
    softsign, linear, elu, leaky_relu, silu and gelu. Otherwise Keras' own loop runs, with the same
    results. `fallback_reason` says why.

    >>> import numpy as np
    >>> from tf_lstm_ops.keras import LSTM
    >>> x = np.ones((32, 10, 8), "float32")  # 32 sequences of 10 steps
    >>> layer = LSTM(4, return_sequences=True, return_state=True)
    >>> output, h, c = layer(x)
    >>> output.shape, h.shape, c.shape
    (TensorShape([32, 10, 4]), TensorShape([32, 4]), TensorShape([32, 4]))
    >>> layer.uses_fused_op
    True

    Args:
      units: H, positive: the size of the cell state c, and of h and the output without a
        projection.
      activation: function of the candidate, and of the cell state in the output: a name, a function
        or None, which is linear.
      recurrent_activation: function of the gates, as ``activation``.
      use_bias: whether there is a bias.
      kernel_initializer: initial values of ``kernel``, by which the input is multiplied.
      recurrent_initializer: initial values of ``recurrent_kernel``, by which h is multiplied.
      bias_initializer: initial values of ``bias``.
      unit_forget_bias: whether the bias of the forget gate starts at one.
      kernel_regularizer: a loss of ``kernel`` that Keras adds to the model's.
      recurrent_regularizer: a loss of ``recurrent_kernel``.
      bias_regularizer: a loss of ``bias``.
      activity_regularizer: a loss of the output.
      kernel_constraint: a function of ``kernel`` after each update by the optimizer.
      recurrent_constraint: a function of ``recurrent_kernel``.
      bias_constraint: a function of ``bias``.
      dropout: in [0, 1), the fraction of the input's elements that training sets to zero, the same
        elements at all steps of a row.
      recurrent_dropout: in [0, 1), the same fraction for h, before the product with
        ``recurrent_kernel``.
      seed: of the dropout; None: a random one.
      return_sequences: whether to return the outputs of all steps, not only the last one.
      return_state: whether to return the final states too.
      go_backwards: whether to read the sequence from the last step to the first. The output is in
        the order of computation.
      stateful: whether row i of a batch starts from the final states of row i of the batch before.
      unroll: changes nothing; accepted because ``keras.layers.LSTM`` has it.
      use_cudnn: True: Keras' own path to cuDNN; an error together with an option below. "auto" and
        False: the fused op, or TensorFlow's op for cuDNN on an NVIDIA GPU.
      use_peephole: whether the gates read the cell state: adds the weight ``peephole_kernel``
        [3, H].
      cell_clip: bounds the cell state to [-cell_clip, cell_clip]. None: no bound.
      projection_size: P, from 1 to H - 1: multiplies h by the weight ``projection_kernel`` [H, P].
        None: no projection, and P = H below.
      proj_clip: bounds the projected h to [-proj_clip, proj_clip], with the gradient of
        ``tf.clip_by_value``; needs ``projection_size``. None: no bound.
      layer_normalization: True or "haste", or "addons": see `LSTMCell`. None or False: none. The
        fused op needs the default activations and none of the four options above.
      layer_normalization_epsilon: positive, added to the variances. None: 1e-5, or 1e-3 for
        "addons".
      learned_initial_state: whether weights are the initial state of a call that has none:
        ``initial_h`` [P] and ``initial_c`` [H], zeros at first, behind the other weights. Needs
        ``stateful=False``.
      **kwargs: other arguments of ``keras.layers.LSTM``, such as ``name`` and ``dtype``.

    Call arguments:
      sequences: [B, T, I], or a ragged tensor of B rows.
      initial_state: list of h [B, P] and c [B, H], or with one row for all; None: zeros.
      mask: boolean [B, T] or [B, T, 1], or with 1 for B. At a step where it is False the states
        stay, and the output repeats.
      training: whether dropout applies.
      sequence_lengths: integers [B] from 0 to T, in place of a mask: how many steps of each row
        count, the first ones. None: all.

    Call returns:
      The last output [B, P]; with ``return_sequences`` all outputs [B, T, P]. With
      ``return_state``, a tuple of this output, the final h [B, P] and the final c [B, H].

    Raises:
      ValueError: units, cell_clip, proj_clip or layer_normalization_epsilon is not positive;
        projection_size is out of range, or None together with proj_clip; layer_normalization is
        unknown, or layer_normalization_epsilon is given without it; use_cudnn is True together with
        use_peephole, cell_clip, projection_size, layer_normalization or learned_initial_state;
        learned_initial_state and stateful are both True; or another argument is not valid in
        ``keras.layers.LSTM``.
    """

    _own_options = (OPTION, *_targets.OWN_OF_CELLS)

    def __init__(
        self,
        units: int,
        activation: Activation = "tanh",
        recurrent_activation: Activation = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Initializer = "glorot_uniform",
        recurrent_initializer: Initializer = "orthogonal",
        bias_initializer: Initializer = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Regularizer = None,
        recurrent_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        activity_regularizer: Regularizer = None,
        kernel_constraint: Constraint = None,
        recurrent_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        use_cudnn: bool | Literal["auto"] = "auto",
        *,
        use_peephole: bool = False,
        cell_clip: float | None = None,
        projection_size: int | None = None,
        proj_clip: float | None = None,
        layer_normalization: bool | Normalization | None = None,
        layer_normalization_epsilon: float | None = None,
        learned_initial_state: bool = False,
        **kwargs: Any,
    ) -> None:
        own = use_peephole or cell_clip is not None or projection_size is not None
        own = bool(own or layer_normalization or learned_initial_state)
        if use_cudnn is True and own:
            raise ValueError(
                "use_cudnn=True asks for Keras' own cuDNN path, which has no use_peephole, "
                "cell_clip, projection_size, layer_normalization or learned_initial_state; leave "
                "use_cudnn='auto'"
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
            proj_clip=proj_clip,
            layer_normalization=layer_normalization,
            layer_normalization_epsilon=layer_normalization_epsilon,
            implementation=kwargs.pop("implementation", 2),
            dtype=kwargs.get("dtype"),
            trainable=kwargs.get("trainable", True),
            name="lstm_cell",
        )
        self._start(
            cell,
            use_cudnn,
            has_own_options=own,
            is_learned=learned_initial_state,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
            activity_regularizer=activity_regularizer,
            **kwargs,
        )

    @property
    def use_peephole(self) -> bool:
        """Whether the cell has peepholes."""
        return own_option(self, "use_peephole") or False

    @property
    def cell_clip(self) -> float | None:
        """The bound of the cell state; None if there is none."""
        return own_option(self, "cell_clip")

    @property
    def projection_size(self) -> int | None:
        """The size P of h; None without a projection."""
        return own_option(self, "projection_size")

    @property
    def proj_clip(self) -> float | None:
        """The bound of the projected h; None if there is none."""
        return own_option(self, "proj_clip")
