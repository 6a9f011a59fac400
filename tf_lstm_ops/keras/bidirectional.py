"""Bidirectional: keras.layers.Bidirectional on one fused op for both directions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import keras
import tensorflow as tf

from tf_lstm_ops import _keras_private, _placement, converters
from tf_lstm_ops._targets import Effect
from tf_lstm_ops.keras import call_checks, directions, options, sequence_mask
from tf_lstm_ops.keras.fused import PACKAGE
from tf_lstm_ops.keras.gru import GRU
from tf_lstm_ops.keras.lstm import LSTM
from tf_lstm_ops.keras.of_cell import GRUOfCell, LSTMOfCell, SimpleRNNOfCell
from tf_lstm_ops.keras.simple_rnn import SimpleRNN

# Classes whose layers have nothing but the op between their inputs and outputs.
_KINDS = (LSTM, GRU, SimpleRNN, LSTMOfCell, GRUOfCell, SimpleRNNOfCell)
# What both layers must have alike, but for go_backwards.
_ALIKE = (Effect.STEP, Effect.SIZES, Effect.RESULTS)


def why_apart(
    wrapper: Any, kinds: Sequence[type], reason: Callable[[Any], str | None]
) -> str | None:
    """Why one op does not compute both layers of a Bidirectional.

    Args:
      wrapper: the Bidirectional, of this package or of ``keras.layers``.
      kinds: the classes that its layers may have.
      reason: why a layer of them has no op; None if it has one.

    Returns:
      The reason; None if one op computes both.
    """
    first, second = layers = wrapper.forward_layer, wrapper.backward_layer
    for layer in layers:
        if type(layer) not in kinds:
            return f"{layer.name} is a {type(layer).__name__}, not one of {PACKAGE}.keras"
        if (why := reason(layer)) is not None:
            return f"{layer.name}: {why}"
        if layer.activity_regularizer is not None:
            return f"{layer.name} has an activity_regularizer"
    for layer, backwards in ((first, False), (second, True)):
        if bool(layer.go_backwards) != backwards:
            return f"{layer.name} has go_backwards={layer.go_backwards}"
    for name in ("return_sequences", "return_state"):
        if bool(getattr(first, name)) != bool(getattr(wrapper, name)):
            return f"{first.name} has {name}={getattr(first, name)}"
    if first.compute_dtype != second.compute_dtype:
        return f"{first.name} and {second.name} have another compute_dtype"
    (op, of_first), (other_op, of_second) = (options.of(layer, _ALIKE) for layer in layers)
    if op != other_op:
        return f"{first.name} and {second.name} are layers of different kinds"
    for name in {**of_first, **of_second}:
        if name != "go_backwards" and of_first.get(name) != of_second.get(name):
            return f"{first.name} and {second.name} have another {name}"
    return None


def must_be_apart(wrapper: Any, sequences: Any) -> bool:
    """Whether each layer of a Bidirectional computes its own direction in a call.

    Args:
      wrapper: as of `why_apart`.
      sequences: [B, T, I].

    Returns:
      True on a GPU, in traces of converters, for ragged input and input without steps, and if a
      layer's loop is replaced for a time.
    """
    if isinstance(sequences, tf.RaggedTensor) or sequences.shape[1] == 0:
        return True
    if _placement.may_use_cuda() or _placement.on_metal():
        return True
    if converters.plain_ops_required() or directions.are_apart():
        return True
    layers = (wrapper.forward_layer, wrapper.backward_layer)
    return any(map(_keras_private.computes_otherwise, layers))


def run_joined(wrapper: Any, sequences: Any, initial_state: Any, mask: Any, training: Any) -> Any:
    """The results of a Bidirectional by one op.

    Args:
      wrapper: as of `why_apart`, which returns None for it.
      sequences, initial_state, mask, training: the arguments of its ``call``.

    Returns:
      What its ``call`` returns.
    """
    # Both layers get the same tensor, which the op then reads once.
    sequences = tf.cast(sequences, wrapper.forward_layer.compute_dtype)
    given = {"mask": mask, "training": training}
    half = 0 if initial_state is None else len(initial_state) // 2
    of_first, of_second = (
        None if initial_state is None else initial_state[part]
        for part in (slice(half), slice(half, None))
    )
    first, second = directions.joined(
        lambda: wrapper.forward_layer(sequences, initial_state=of_first, **given),
        lambda: wrapper.backward_layer(sequences, initial_state=of_second, **given),
    )
    merge = functools.partial(_merged, wrapper.merge_mode, wrapper.compute_dtype)
    if not wrapper.return_state:
        return merge(first)
    output, states = merge(first[0]), (*first[1:], *second[1:])
    return (*output, *states) if wrapper.merge_mode is None else (output, *states)


def _merged(merge_mode: str | None, dtype: str, output: tf.Tensor) -> Any:
    """The output of the op, [B, T, 2P] or [B, 2P], as merge_mode asks for it."""
    output = tf.cast(output, dtype)
    if merge_mode == "concat":
        return output
    first, second = directions.split(output)
    if merge_mode is None:
        return first, second
    if merge_mode == "mul":
        return first * second
    merged = first + second
    return merged / 2 if merge_mode == "ave" else merged


@keras.saving.register_keras_serializable(package=PACKAGE)
class Bidirectional(keras.layers.Bidirectional):
    """``keras.layers.Bidirectional`` with one fused op for both directions.

    Arguments, weights, names and files are those of ``keras.layers.Bidirectional``. The results
    are those of ``keras.layers.Bidirectional`` around the same two layers. One op
    computes both directions if both layers are `LSTM`, both are `GRU`, or both are `SimpleRNN`, of
    this package, with equal options. If the options do not allow it, `fallback_reason` says why,
    and each layer computes its own direction. So it does on a GPU, under XLA, in ONNX, LiteRT and
    portable exports, and for ragged input; `fallback_reason` does not show this.

    >>> import numpy as np
    >>> from tf_lstm_ops.keras import LSTM, Bidirectional
    >>> layer = Bidirectional(LSTM(4, return_sequences=True), merge_mode="sum")
    >>> layer(np.ones((32, 10, 8), "float32")).shape
    TensorShape([32, 10, 4])
    >>> layer.uses_fused_op
    True

    Args:
      layer: the layer that reads forwards; a copy of it reads backwards.
      merge_mode: "concat", "sum", "ave", "mul" or None: how the outputs become one; None returns
        both.
      weights: initial weights, of both layers one after the other.
      backward_layer: the layer that reads backwards, with ``go_backwards=True``; None: a copy of
        ``layer``.
      **kwargs: other arguments of ``keras.layers.Bidirectional``, such as ``name`` and ``dtype``.

    Call arguments:
      sequences: [B, T, I].
      initial_state: list of the states of the first layer, then of the second one; None: zeros.
      mask: boolean [B, T].
      training: whether dropout applies.
      sequence_lengths: integers [B] from 0 to T, in place of a mask: how many steps of each row
        count, the first ones. None: all.

    Call returns:
      The output of the wrapped layers, merged: 2P columns with "concat", else P. With
      ``return_state``, a tuple of it and the final states of the first and of the second layer.

    Raises:
      ValueError: an argument is not valid in ``keras.layers.Bidirectional``.
    """

    def __init__(
        self,
        layer: keras.layers.Layer,
        merge_mode: Literal["concat", "sum", "ave", "mul"] | None = "concat",
        weights: Sequence[Any] | None = None,
        backward_layer: keras.layers.Layer | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            layer, merge_mode=merge_mode, weights=weights, backward_layer=backward_layer, **kwargs
        )

    @property
    def uses_fused_op(self) -> bool:
        """Whether the layers' options allow one op for both directions."""
        return self.fallback_reason is None

    @property
    def fallback_reason(self) -> str | None:
        """Why the layers' options do not allow one op; None if they do."""
        return why_apart(self, _KINDS, lambda layer: layer.fallback_reason)

    def __call__(self, *args: Any, sequence_lengths: Any = None, **kwargs: Any) -> Any:
        """Calls the layer.

        Args:
          *args, **kwargs: the arguments of ``call``.
          sequence_lengths: [B] integers, how many steps of each row count, the first ones; in place
            of a mask. None: all.

        Returns:
          What ``call`` returns.

        Raises:
          ValueError: as of ``call``; or sequence_lengths are not valid, or there is a mask, too.
        """
        if sequence_lengths is not None:
            args, kwargs = sequence_mask.with_mask(self, sequence_lengths, args, kwargs)
        return super().__call__(*args, **kwargs)

    def call(
        self,
        sequences: Any,
        initial_state: Sequence[tf.Tensor] | None = None,
        mask: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> Any:
        """Runs the layer; ``__call__`` calls it.

        Args:
          sequences: [B, T, I]; or a RaggedTensor [B, (steps), I].
          initial_state: the states of both layers; None: zeros.
          mask: [B, T] boolean, or None.
          training: whether dropout applies.

        Returns:
          The merged output, or a tuple of it and the final states.

        Raises:
          ValueError: initial_state has not the states of both layers.
        """
        layers = (self.forward_layer, self.backward_layer)
        _require_states_of_both(*layers, initial_state)
        if must_be_apart(self, sequences) or not self.uses_fused_op:
            return super().call(
                sequences, initial_state=initial_state, mask=mask, training=training
            )
        return run_joined(self, sequences, initial_state, mask, training)


def _require_states_of_both(first: Any, second: Any, initial_state: Any) -> None:
    """Checks the number of the states that a Bidirectional distributes to its layers."""
    sizes = [getattr(layer, "state_size", None) for layer in (first, second)]
    if initial_state is None or None in sizes:  # a layer of the user's may have no states
        return
    wanted, count = len(keras.tree.flatten(sizes)), len(keras.tree.flatten(initial_state))
    if count != wanted:
        words, received = call_checks.tensors(wanted), call_checks.tensors(count)
        raise ValueError(
            f"initial_state must have {words}, those of {first.name} before those of "
            f"{second.name}. Received {received}"
        )
