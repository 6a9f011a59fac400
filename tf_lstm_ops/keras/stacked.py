"""StackedLSTM and StackedGRU: torch.nn.LSTM and nn.GRU as Keras layers, one op for all layers."""

from __future__ import annotations

from typing import Any

import keras

from tf_lstm_ops import weights
from tf_lstm_ops.keras.fused import PACKAGE
from tf_lstm_ops.keras.lstm_cell import require_projection_size
from tf_lstm_ops.keras.stacked_rnn import StackedRNN


@keras.saving.register_keras_serializable(package=PACKAGE)
class StackedLSTM(StackedRNN):
    """Several LSTM layers in one op: ``torch.nn.LSTM`` as a Keras layer.

    A stack of ``keras.layers.LSTM``, or of ``Bidirectional`` ones, with the same weights gives the
    same results. Forward and backward are one op each for all layers, with any boolean mask. In
    training with dropout they are one op each for each layer. Rules: docs/reference/keras.md.

    Args:
      units: positive integer H, the number of units of each direction of each layer.
      num_layers: positive integer L.
      bidirectional: whether each layer has a second direction, which runs backwards in time. The
        outputs of the two are concatenated.
      dropout: in [0, 1), the fraction of the outputs of each layer but the last that is dropped in
        training.
      dropout_per: "step": each step has a mask of its own, as in PyTorch and cuDNN; "sequence": one
        mask for all steps (Gal and Ghahramani 2016).
      use_bias, return_sequences, stateful, seed: as in ``keras.layers.LSTM``.
      return_state: whether the final states of all layers are returned, too.
      go_backwards: whether the sequence is reversed first, with bidirectional=False only.
      zero_output_for_mask: whether the output is zero at masked steps. None: as
        ``keras.layers.Bidirectional`` with two directions, else False.
      projection_size: P, positive and below units: h is multiplied by a weight [H, P]. None: P = H.
      unit_forget_bias: whether the bias of the forget gate starts at one.
      **kwargs: ``kernel_initializer``, ``recurrent_initializer``, ``bias_initializer``, and the
        same with ``_regularizer`` and ``_constraint``, for the weights of all layers;
        ``activity_regularizer``, ``name``, ``dtype`` and others of ``keras.layers.Layer``.

    Call arguments:
      sequences: [B, T, I], or ragged.
      initial_state: list of h [B, P] and c [B, H] of each direction of each layer, in the order
        layer * directions + direction; zeros by default.
      mask: [B, T] boolean; a step that is False does not change the states.
      training: whether dropout applies.

    Call returns:
      [B, D*P], the last output of all directions; with return_sequences [B, T, D*P]. With
      return_state, a list of it and the final states, in the order of initial_state.

    Raises:
      ValueError: an argument is out of range.
    """

    _mode = "lstm"
    _weights_class = weights.LSTMWeights

    def __init__(
        self,
        units: int,
        num_layers: int = 1,
        *,
        bidirectional: bool = False,
        dropout: float = 0.0,
        dropout_per: str = "step",
        use_bias: bool = True,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        zero_output_for_mask: bool | None = None,
        seed: int | None = None,
        projection_size: int | None = None,
        unit_forget_bias: bool = True,
        **kwargs: Any,
    ) -> None:
        if projection_size is not None:
            require_projection_size(projection_size, units)
        super().__init__(
            units,
            num_layers,
            bidirectional=bidirectional,
            dropout=dropout,
            dropout_per=dropout_per,
            use_bias=use_bias,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            zero_output_for_mask=zero_output_for_mask,
            seed=seed,
            projection_size=projection_size,
            unit_forget_bias=unit_forget_bias,
            **kwargs,
        )
        self.unit_forget_bias = unit_forget_bias

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the layer again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        own = {name: getattr(self, name) for name in ("projection_size", "unit_forget_bias")}
        return {**super().get_config(), **own}


@keras.saving.register_keras_serializable(package=PACKAGE)
class StackedGRU(StackedRNN):
    """Several GRU layers in one op: ``torch.nn.GRU`` as a Keras layer.

    A stack of ``keras.layers.GRU`` with ``reset_after=True``, or of ``Bidirectional`` ones, with
    the same weights gives the same results.

    Args:
      units: positive integer H, the number of units of each direction of each layer.
      num_layers: positive integer L.
      bidirectional: whether each layer has a second direction, which runs backwards in time. The
        outputs of the two are concatenated.
      dropout: in [0, 1), the fraction of the outputs of each layer but the last that is dropped in
        training.
      dropout_per: "step": each step has a mask of its own, as in PyTorch and cuDNN; "sequence": one
        mask for all steps (Gal and Ghahramani 2016).
      use_bias, return_sequences, stateful, seed: as in ``keras.layers.LSTM``.
      return_state: whether the final states of all layers are returned, too.
      go_backwards: whether the sequence is reversed first, with bidirectional=False only.
      zero_output_for_mask: whether the output is zero at masked steps. None: as
        ``keras.layers.Bidirectional`` with two directions, else False.
      **kwargs: ``kernel_initializer``, ``recurrent_initializer``, ``bias_initializer``, and the
        same with ``_regularizer`` and ``_constraint``, for the weights of all layers;
        ``activity_regularizer``, ``name``, ``dtype`` and others of ``keras.layers.Layer``.

    Call arguments:
      As in StackedLSTM; initial_state is a list of h [B, H] of each direction of each layer.

    Call returns:
      As StackedLSTM, with H for P.

    Raises:
      ValueError: an argument is out of range.
    """

    _mode = "gru"
    _weights_class = weights.GRUWeights

    def __init__(
        self,
        units: int,
        num_layers: int = 1,
        *,
        bidirectional: bool = False,
        dropout: float = 0.0,
        dropout_per: str = "step",
        use_bias: bool = True,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        zero_output_for_mask: bool | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        for name in {"projection_size", "unit_forget_bias"} & kwargs.keys():
            raise TypeError(f"StackedGRU has no argument {name}, which is of an LSTM")
        super().__init__(
            units,
            num_layers,
            bidirectional=bidirectional,
            dropout=dropout,
            dropout_per=dropout_per,
            use_bias=use_bias,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            zero_output_for_mask=zero_output_for_mask,
            seed=seed,
            **kwargs,
        )
