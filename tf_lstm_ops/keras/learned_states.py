"""Initial states that training changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

OPTION = "learned_initial_state"


class LearnedStates(keras.layers.Layer):
    """With what each row of a recurrent layer begins: a weight for each state, zeros at first.

    Args:
      sizes: of the states: [H], or P and H.
      **kwargs: those of ``keras.layers.Layer``.
    """

    def __init__(self, sizes: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._sizes = [*sizes]
        self.initial_h: Any = None
        self.initial_c: Any = None

    def build(self) -> None:
        """Creates the weights."""
        names = ("initial_h", "initial_c")[: len(self._sizes)]
        for name, size in zip(names, self._sizes, strict=True):
            setattr(self, name, self.add_weight(shape=(size,), name=name, initializer="zeros"))

    def rows(self, batch_size: Any, dtype: str) -> list[Any]:
        """The initial states of a batch.

        Args:
          batch_size: the number of rows B.
          dtype: of the states.

        Returns:
          h [B, P] and, of an LSTM, c [B, H].

        Raises:
          ValueError: the layer is not built.
        """
        if not self.built:
            raise ValueError("the layer has no initial states yet. Build it first")
        weights = [each for each in (self.initial_h, self.initial_c) if each is not None]
        return [
            tf.broadcast_to(tf.cast(tf.convert_to_tensor(each), dtype), [batch_size, size])
            for each, size in zip(weights, self._sizes, strict=True)
        ]


def of(layer: Any, is_learned: bool) -> LearnedStates | None:
    """The part of a recurrent layer that has its learned initial states.

    Args:
      layer: the layer, not built.
      is_learned: its argument learned_initial_state.

    Returns:
      The part; None: the layer begins with zeros.

    Raises:
      ValueError: the layer is stateful.
    """
    if not is_learned:
        return None
    if layer.stateful:
        raise ValueError(
            f"{OPTION}=True needs stateful=False: a stateful layer begins with the final states of "
            "the batch before"
        )
    return LearnedStates(
        layer.state_size, dtype=layer.dtype_policy, trainable=layer.trainable, name="initial_states"
    )
