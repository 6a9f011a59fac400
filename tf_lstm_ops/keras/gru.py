"""GRU: keras.layers.GRU on one fused op per sequence."""

from __future__ import annotations

from typing import Any

import keras

from tf_lstm_ops.keras.fused import PACKAGE, FusedRNN
from tf_lstm_ops.raw_ops.common import run


@keras.saving.register_keras_serializable(package=PACKAGE)
class GRU(FusedRNN, keras.layers.GRU):
    """``keras.layers.GRU``, faster and for any mask.

    All arguments, weights (names, shapes, gate order z, r, h) and results are those of
    ``keras.layers.GRU``. A sequence is one fused op, forward and backward, with any boolean mask,
    dropout, recurrent dropout, initial state and direction, if ``reset_after`` is True,
    ``activation`` is tanh and ``recurrent_activation`` is sigmoid. Otherwise Keras' own loop runs,
    with the same results. ``uses_fused_op`` and ``fallback_reason`` show which one runs. Rules and
    equations: docs/reference/keras.md.

    Args:
      units: positive integer H, the size of the output.
      *args, **kwargs: as in ``keras.layers.GRU``. ``unroll`` is accepted and changes nothing.

    Call arguments:
      sequences: [B, T, I].
      initial_state: [B, H] tensor, or a list of one; zeros by default.
      mask: [B, T] boolean; a step that is False does not change the state.
      training: whether dropout applies.

    Call returns:
      [B, H], the last output; with return_sequences all outputs, [B, T, H]. With return_state, a
      list of it and the final state [B, H].

    Raises:
      ValueError: units is not positive, or another argument is not valid in keras.layers.GRU.
    """

    _state_names = ("h",)

    @property
    def fallback_reason(self) -> str | None:
        """Why a call runs Keras' own loop; None if it runs the fused op."""
        reset_before = None if self.reset_after else "reset_after is False, not True"
        return super().fallback_reason or reset_before

    def _call_op(self, initial_state: list[Any], **arguments: Any) -> tuple[Any, list[Any]]:
        output, h, _ = run("KerasGRU", {"initial_h": initial_state[0], **arguments})
        return output, [h]
