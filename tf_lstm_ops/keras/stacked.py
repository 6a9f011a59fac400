"""StackedLSTM and StackedGRU: torch.nn.LSTM and nn.GRU as Keras layers, one op for all layers."""

from __future__ import annotations

from typing import Any, Literal

import keras

from tf_lstm_ops import weights
from tf_lstm_ops.keras import stacked_clips
from tf_lstm_ops.keras.fused import PACKAGE
from tf_lstm_ops.keras.lstm_cell import checked_projection_size, require_valid_clips
from tf_lstm_ops.keras.stacked_rnn import StackedRNN


@keras.saving.register_keras_serializable(package=PACKAGE)
class StackedLSTM(StackedRNN):
    """Several LSTM layers in one op: ``torch.nn.LSTM`` as a Keras layer.

    A stack of ``keras.layers.LSTM``, or of ``Bidirectional`` ones, with the same weights gives the
    same results. The forward pass of all layers is one op, with any boolean mask, and so is the
    backward pass. In training with dropout each layer has a forward and a backward op of its own;
    with a clip each direction of each layer has.

    >>> import numpy as np
    >>> from tf_lstm_ops.keras import StackedLSTM
    >>> x = np.ones((32, 10, 8), "float32")  # 32 sequences of 10 steps
    >>> StackedLSTM(4, num_layers=2, bidirectional=True)(x).shape
    TensorShape([32, 8])

    Args:
      units: H, positive: the number of units of each direction of each layer.
      num_layers: L, positive.
      bidirectional: whether each layer also reads the sequence backwards. The outputs of the two
        directions are concatenated, so D = 2 below; else D = 1.
      dropout: in [0, 1), the fraction of the outputs of each layer but the last that training sets
        to zero; with one layer none, and a warning.
      dropout_per: "step": each step draws its own zeros, as in PyTorch and cuDNN; "sequence": one
        draw for all steps (Gal and Ghahramani 2016).
      use_bias: whether there are biases.
      return_sequences: whether to return the outputs of all steps, not only the last one.
      return_state: whether to return the final states of all layers too.
      go_backwards: whether to read the sequence from the last step to the first. Needs
        ``bidirectional=False``.
      stateful: whether row i of a batch starts from the final states of row i of the batch before.
      zero_output_for_mask: whether the output is zero at masked steps. None: as
        ``keras.layers.Bidirectional`` does with two directions, else False.
      seed: of the dropout; None: a random one.
      projection_size: P, from 1 to H - 1: multiplies h by a weight [H, P]. None: no projection, and
        P = H below.
      cell_clip: bounds the cell states to [-cell_clip, cell_clip]; the gradient of the clip is the
        identity. None: no bound.
      proj_clip: bounds the projected h to [-proj_clip, proj_clip], with the gradient of
        ``tf.clip_by_value``; needs ``projection_size``. None: no bound.
      unit_forget_bias: whether the bias of the forget gate starts at one.
      **kwargs: ``kernel_initializer``, ``recurrent_initializer`` and ``bias_initializer``, the same
        with ``_regularizer`` and ``_constraint``, for the weights of all layers;
        ``activity_regularizer``; and those of ``keras.layers.Layer``, such as ``name``.

    Call arguments:
      sequences: [B, T, I], or a ragged tensor of B rows.
      initial_state: list of h [B, P] and c [B, H] of each direction of each layer, in the order
        layer * D + direction; None: zeros.
      mask: boolean [B, T]. At a step where it is False the states stay, and the output repeats or,
        with ``zero_output_for_mask``, is zero.
      training: whether dropout applies.
      sequence_lengths: integers [B] from 0 to T, in place of a mask: how many steps of each row
        count, the first ones. None: all.

    Call returns:
      The last output [B, D*P]; with ``return_sequences`` all outputs [B, T, D*P]. With
      ``return_state``, a tuple of this output and the final states, in the order of
      ``initial_state``.

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
        dropout_per: Literal["step", "sequence"] = "step",
        use_bias: bool = True,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        zero_output_for_mask: bool | None = None,
        seed: int | None = None,
        projection_size: int | None = None,
        cell_clip: float | None = None,
        proj_clip: float | None = None,
        unit_forget_bias: bool = True,
        **kwargs: Any,
    ) -> None:
        projection_size = checked_projection_size(projection_size, units)
        require_valid_clips(cell_clip, proj_clip, projection_size)
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
        self.cell_clip, self.proj_clip = cell_clip, proj_clip

    @property
    def _op(self) -> str:
        return "KerasLSTM" if stacked_clips.attributes(self) else super()._op

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the layer again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        names = ("projection_size", *stacked_clips.CLIPS, "unit_forget_bias")
        own = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **own}


@keras.saving.register_keras_serializable(package=PACKAGE)
class StackedGRU(StackedRNN):
    """Several GRU layers in one op: ``torch.nn.GRU`` as a Keras layer.

    A stack of ``keras.layers.GRU`` with ``reset_after=True``, or of ``Bidirectional`` ones, with
    the same weights gives the same results. The forward pass of all layers is one op, with any
    boolean mask, and so is the backward pass. In training with dropout each layer has a forward and
    a backward op of its own.

    >>> import numpy as np
    >>> from tf_lstm_ops.keras import StackedGRU
    >>> x = np.ones((32, 10, 8), "float32")  # 32 sequences of 10 steps
    >>> output, *states = StackedGRU(4, num_layers=2, return_state=True)(x)
    >>> output.shape, len(states)
    (TensorShape([32, 4]), 2)

    Args:
      units: H, positive: the number of units of each direction of each layer.
      num_layers: L, positive.
      bidirectional: whether each layer also reads the sequence backwards. The outputs of the two
        directions are concatenated, so D = 2 below; else D = 1.
      dropout: in [0, 1), the fraction of the outputs of each layer but the last that training sets
        to zero; with one layer none, and a warning.
      dropout_per: "step": each step draws its own zeros, as in PyTorch and cuDNN; "sequence": one
        draw for all steps (Gal and Ghahramani 2016).
      use_bias: whether there are biases.
      return_sequences: whether to return the outputs of all steps, not only the last one.
      return_state: whether to return the final states of all layers too.
      go_backwards: whether to read the sequence from the last step to the first. Needs
        ``bidirectional=False``.
      stateful: whether row i of a batch starts from the final states of row i of the batch before.
      zero_output_for_mask: whether the output is zero at masked steps. None: as
        ``keras.layers.Bidirectional`` does with two directions, else False.
      seed: of the dropout; None: a random one.
      **kwargs: ``kernel_initializer``, ``recurrent_initializer`` and ``bias_initializer``, the same
        with ``_regularizer`` and ``_constraint``, for the weights of all layers;
        ``activity_regularizer``; and those of ``keras.layers.Layer``, such as ``name``.

    Call arguments:
      sequences: [B, T, I], or a ragged tensor of B rows.
      initial_state: list of h [B, H] of each direction of each layer, in the order
        layer * D + direction; None: zeros.
      mask: boolean [B, T]. At a step where it is False the states stay, and the output repeats or,
        with ``zero_output_for_mask``, is zero.
      training: whether dropout applies.
      sequence_lengths: integers [B] from 0 to T, in place of a mask: how many steps of each row
        count, the first ones. None: all.

    Call returns:
      The last output [B, D*H]; with ``return_sequences`` all outputs [B, T, D*H]. With
      ``return_state``, a tuple of this output and the final states, in the order of
      ``initial_state``.

    Raises:
      ValueError: an argument is out of range.
      TypeError: an argument is of an LSTM only.
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
        dropout_per: Literal["step", "sequence"] = "step",
        use_bias: bool = True,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        zero_output_for_mask: bool | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        of_lstm = {"projection_size", *stacked_clips.CLIPS, "unit_forget_bias"}
        for name in of_lstm & kwargs.keys():
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
