"""GRU: keras.layers.GRU on one fused op per sequence."""

from __future__ import annotations

from typing import Any, Literal

import keras

from tf_lstm_ops import _targets
from tf_lstm_ops.keras.fused import PACKAGE
from tf_lstm_ops.keras.gru_cell import GRUCell
from tf_lstm_ops.keras.single_layer import OPTION, GatedRNN
from tf_lstm_ops.keras.types import Activation, Constraint, Initializer, Regularizer


@keras.saving.register_keras_serializable(package=PACKAGE)
class GRU(GatedRNN, keras.layers.GRU):
    """``keras.layers.GRU`` with one fused op for a whole sequence, and any mask.

    Arguments, weights and weight files are those of ``keras.layers.GRU``; two arguments are new.
    Results are equal within rounding. The fused op runs with any boolean mask, dropout, initial
    state and direction, if the activations are among tanh, sigmoid, relu, hard_sigmoid, hard_tanh,
    softsign, linear, elu, leaky_relu, silu and gelu. Otherwise Keras' own loop runs, with the same
    results. `fallback_reason` says why.

    >>> import numpy as np
    >>> from tf_lstm_ops.keras import GRU
    >>> x = np.ones((32, 10, 8), "float32")  # 32 sequences of 10 steps
    >>> GRU(4)(x).shape
    TensorShape([32, 4])
    >>> GRU(4, activation="selu").fallback_reason
    'activation is selu, which has no fused op'

    Args:
      units: H, positive: the size of h and of the output.
      activation: function of the candidate: a name, a function or None, which is linear.
      recurrent_activation: function of the gates, as ``activation``.
      use_bias: whether there is a bias.
      kernel_initializer: initial values of ``kernel``, by which the input is multiplied.
      recurrent_initializer: initial values of ``recurrent_kernel``, by which h is multiplied.
      bias_initializer: initial values of ``bias``.
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
      return_state: whether to return the final state too.
      go_backwards: whether to read the sequence from the last step to the first. The output is in
        the order of computation.
      stateful: whether row i of a batch starts from the final state of row i of the batch before.
      unroll: changes nothing; accepted because ``keras.layers.GRU`` has it.
      reset_after: whether the reset gate multiplies the product of h with ``recurrent_kernel``, as
        in cuDNN and PyTorch, or h itself.
      use_cudnn: True: Keras' own path to cuDNN. "auto" and False: the fused op, or TensorFlow's op
        for cuDNN on an NVIDIA GPU.
      layer_normalization: True or "haste": normalises the products of the input and of h, and adds
        the weights ``input_gamma`` and ``recurrent_gamma`` [3H]. None or False: none. Needs
        ``reset_after=True``.
      layer_normalization_epsilon: positive, added to the variances. None: 1e-5.
      learned_initial_state: whether weights are the initial state of a call that has none:
        ``initial_h`` [H], zeros at first, behind the other weights. Needs
        ``stateful=False``.
      **kwargs: other arguments of ``keras.layers.GRU``, such as ``name`` and ``dtype``.

    Call arguments:
      sequences: [B, T, I], or a ragged tensor of B rows.
      initial_state: [B, H] or [1, H], or a list of it; None: zeros.
      mask: boolean [B, T] or [B, T, 1], or with 1 for B. At a step where it is False the state
        stays, and the output repeats.
      training: whether dropout applies.
      sequence_lengths: integers [B] from 0 to T, in place of a mask: how many steps of each row
        count, the first ones. None: all.

    Call returns:
      The last output [B, H]; with ``return_sequences`` all outputs [B, T, H]. With
      ``return_state``, a tuple of this output and the final h [B, H].

    Raises:
      ValueError: units or layer_normalization_epsilon is not positive; layer_normalization is
        unknown, or given together with reset_after=False or use_cudnn=True;
        layer_normalization_epsilon is given without it; learned_initial_state is True together with
        stateful or use_cudnn=True; or another argument is not valid in ``keras.layers.GRU``.
    """

    _own_options = (OPTION, *_targets.NORMALIZATION)

    def __init__(
        self,
        units: int,
        activation: Activation = "tanh",
        recurrent_activation: Activation = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Initializer = "glorot_uniform",
        recurrent_initializer: Initializer = "orthogonal",
        bias_initializer: Initializer = "zeros",
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
        reset_after: bool = True,
        use_cudnn: bool | Literal["auto"] = "auto",
        *,
        layer_normalization: bool | Literal["haste"] | None = None,
        layer_normalization_epsilon: float | None = None,
        learned_initial_state: bool = False,
        **kwargs: Any,
    ) -> None:
        own = bool(layer_normalization or learned_initial_state)
        if use_cudnn is True and own:
            raise ValueError(
                "use_cudnn=True asks for Keras' own cuDNN path, which has no layer_normalization "
                "or learned_initial_state; leave use_cudnn='auto'"
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
