"""SimpleRNN: keras.layers.SimpleRNN on one fused op per sequence."""

from __future__ import annotations

from typing import Any

import keras

from tf_lstm_ops.keras.fused import PACKAGE
from tf_lstm_ops.keras.single_layer import SingleLayerRNN
from tf_lstm_ops.keras.types import Activation, Constraint, Initializer, Regularizer


@keras.saving.register_keras_serializable(package=PACKAGE)
class SimpleRNN(SingleLayerRNN, keras.layers.SimpleRNN):
    """``keras.layers.SimpleRNN`` with one fused op for a whole sequence, and any mask.

    Arguments, weights and weight files are those of ``keras.layers.SimpleRNN``. Results are equal
    within rounding. The fused op runs with any boolean mask, dropout, initial state and direction,
    if ``activation`` is tanh or relu. Otherwise Keras' own loop runs, with the same results.
    `fallback_reason` says why.

    >>> import numpy as np
    >>> from tf_lstm_ops.keras import SimpleRNN
    >>> x = np.ones((32, 10, 8), "float32")  # 32 sequences of 10 steps
    >>> SimpleRNN(4, activation="relu")(x).shape
    TensorShape([32, 4])
    >>> SimpleRNN(4, activation="elu").fallback_reason
    'activation is elu, neither tanh nor relu'

    Args:
      units: H, positive: the size of h and of the output.
      activation: function of the sum: a name, a function or None, which is linear.
      use_bias: whether there is a bias.
      kernel_initializer: initial values of ``kernel``, by which the input is multiplied.
      recurrent_initializer: initial values of ``recurrent_kernel``, by which h is multiplied.
      bias_initializer: initial values of ``bias``.
      kernel_regularizer: a loss of ``kernel`` that Keras adds to the model's.
      recurrent_regularizer: a loss of ``recurrent_kernel``.
      bias_regularizer: a loss of ``bias``.
      activity_regularizer: a loss of the output. ``keras.layers.SimpleRNN`` ignores this argument.
      kernel_constraint: a function of ``kernel`` after each update by the optimizer.
      recurrent_constraint: a function of ``recurrent_kernel``.
      bias_constraint: a function of ``bias``.
      dropout: in [0, 1), the fraction of the input's elements that training sets to zero, the same
        elements at all steps of a row.
      recurrent_dropout: in [0, 1), the same fraction for h, before the product with
        ``recurrent_kernel``.
      return_sequences: whether to return the outputs of all steps, not only the last one.
      return_state: whether to return the final state too.
      go_backwards: whether to read the sequence from the last step to the first. The output is in
        the order of computation.
      stateful: whether row i of a batch starts from the final state of row i of the batch before.
      unroll: changes nothing; accepted because ``keras.layers.SimpleRNN`` has it.
      seed: of the dropout; None: a random one.
      learned_initial_state: whether weights are the initial state of a call that has none:
        ``initial_h`` [H], zeros at first, behind the other weights. Needs
        ``stateful=False``.
      **kwargs: other arguments of ``keras.layers.SimpleRNN``, such as ``name`` and ``dtype``.

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
      ValueError: units is not positive; learned_initial_state and stateful are both True; or
        another argument is not valid in ``keras.layers.SimpleRNN``.
    """

    def __init__(
        self,
        units: int,
        activation: Activation = "tanh",
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
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        seed: int | None = None,
        *,
        learned_initial_state: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            units,
            activation=activation,
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
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
            seed=seed,
            **kwargs,
        )
        self.activity_regularizer = keras.regularizers.get(activity_regularizer)
        if learned_initial_state:
            self._learn_states()
