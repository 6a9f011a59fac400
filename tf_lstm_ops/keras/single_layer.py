"""The sequences of a layer of one cell by one op, and the base class of such layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _keras_private, _targets, op_definitions
from tf_lstm_ops.keras import directions, op_arguments, options
from tf_lstm_ops.keras.fused import FusedRNN, own_config, own_option
from tf_lstm_ops.keras.op_inputs import optional

OPTION = "learned_initial_state"
_STATE = "initial_"  # before the name of a state in that of an op's input


def state_names(op: str) -> tuple[str, ...]:
    """The states of an op.

    Args:
      op: the op's name without its namespace.

    Returns:
      "h", and "c" of an LSTM.
    """
    inputs = op_definitions.inputs(op)
    return tuple(name.removeprefix(_STATE) for name in inputs if name.startswith(_STATE))


def run_op(
    layer: Any, sequences: Any, initial_state: Any, mask: Any, training: Any = False
) -> tuple[Any, Any, list[Any]]:
    """Computes the sequences of a layer by its op.

    Args:
      layer: a layer of this package, or one of ``keras.layers`` with a cell of ``keras.layers``;
        `_targets.CPU` computes it.
      sequences: [B, T, I].
      initial_state: list of [B, H] tensors, one for each state; [1, H] is broadcast. Of an LSTM
        with a projection, h is [B, P].
      mask: [B, T] or [B, T, 1] boolean, or None: all steps are valid.
      training: whether dropout applies.

    Returns:
      Without return_sequences: the last output twice, [B, H] and [B, 1, H]. With it: the final
      h [B, H], which Keras does not read, and all outputs [B, T, H]. Then the list of the final
      states, [B, H] each.
    """
    op, cell = options.op_of(layer), layer.cell
    x = tf.cast(sequences, layer.compute_dtype)
    x, input_dropout = _drop_inputs(cell, x, training and options.drops(op, cell.dropout))
    drops_h = training and options.drops(op, cell.recurrent_dropout)
    h_dropout = _per_row(_recurrent_multipliers(cell, initial_state[0], drops_h), x, axis=1)
    weights = op_arguments.weights(cell, op)
    states = [_per_row(state, x) for state in initial_state]
    returns_sequences = bool(layer.return_sequences)
    arguments = {
        "x": x,
        "mask": _optional_mask(mask, x),
        **{_STATE + name: s for name, s in zip(state_names(op), states, strict=True)},
        **{name: _weight(weight, x.dtype) for name, weight in weights.items()},
        "input_dropout": optional(input_dropout, x.dtype),
        "recurrent_dropout": optional(h_dropout, x.dtype),
        "go_backwards": bool(layer.go_backwards),
        "zero_output_for_mask": bool(layer.zero_output_for_mask),
        "return_sequences": returns_sequences,
        "training": bool(training),
        **op_arguments.attributes(layer),
    }
    output, *states = directions.run(op, arguments)
    output.set_shape([x.shape[0], x.shape[1] if returns_sequences else 1, None])
    last = states[0] if returns_sequences else tf.squeeze(output, 1)
    return last, output, states


def _per_row(value: tf.Tensor | None, x: tf.Tensor, axis: int = 0) -> tf.Tensor | None:
    """A tensor with the batch size of x in a dimension; Keras also allows 1."""
    if value is None or value.shape[axis] != 1 or x.shape[0] == 1:
        return value
    before, after = tf.shape(value)[:axis], tf.shape(value)[axis + 1 :]
    return tf.broadcast_to(value, tf.concat([before, tf.shape(x)[:1], after], axis=0))


def _as_boolean(mask: tf.Tensor) -> Any:
    mask = tf.cast(mask, tf.bool)
    return tf.squeeze(mask, axis=-1) if mask.shape.rank == 3 else mask


def _optional_mask(mask: Any, x: tf.Tensor) -> Any:
    if isinstance(mask, list | tuple):
        mask = mask[0]
    return optional(None if mask is None else _per_row(_as_boolean(mask), x), tf.bool)


def _weight(value: Any, dtype: tf.DType) -> Any:
    """A weight in the type of the inputs. Keras casts it, but not in a direct call of ``call``."""
    value = optional(value, dtype)
    return value if value.dtype == dtype else tf.cast(value, dtype)


def _drop_inputs(cell: Any, x: tf.Tensor, drops: bool) -> tuple[Any, Any]:
    """Applies input dropout, or returns its multipliers if each gate has different ones."""
    if not drops:
        return x, None
    multipliers = _keras_private.input_multipliers(cell, x[:, 0, :])
    if isinstance(multipliers, list):  # implementation 1
        return x, tf.stack(multipliers)
    return x * multipliers[:, tf.newaxis], None


def _recurrent_multipliers(cell: Any, h: Any, drops: bool) -> Any:
    """The gates' multipliers of h. Implementation 2 has none, as in the stock cells. If h has one
    row for all, so have the multipliers."""
    if not drops or getattr(cell, "implementation", 1) != 1:
        return None
    multipliers = _keras_private.recurrent_multipliers(cell, h)
    # Of the one product in a SimpleRNN they are no list.
    return tf.stack(multipliers if isinstance(multipliers, list) else [multipliers])


class _LearnedStates(keras.layers.Layer):
    """With what each row of a recurrent layer begins: a weight for each state, zeros at first."""

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
        """The initial states of a batch: h [B, P] and, of an LSTM, c [B, H]."""
        if not self.built:
            raise ValueError("the layer has no initial states yet. Build it first")
        weights = [each for each in (self.initial_h, self.initial_c) if each is not None]
        return [
            tf.broadcast_to(tf.cast(tf.convert_to_tensor(each), dtype), [batch_size, size])
            for each, size in zip(weights, self._sizes, strict=True)
        ]


class SingleLayerRNN(FusedRNN):
    """A layer of one cell that runs one op per sequence if possible, else Keras' loop.

    It must come before the stock layer in the bases of a class.

    Attributes:
      learned_states: the weights of learned_initial_state; None without them.
    """

    learned_states: _LearnedStates | None = None
    _own_options: Sequence[str] = (OPTION,)  # that the stock layer does not have

    def _learn_states(self) -> None:
        """Adds the weights that are the initial states."""
        if self.stateful:
            raise ValueError(
                f"{OPTION}=True needs stateful=False: a stateful layer begins with the final "
                "states of the batch before"
            )
        self.learned_states = _LearnedStates(
            self.state_size,
            dtype=self.dtype_policy,
            trainable=self.trainable,
            name="initial_states",
        )

    @property
    def learned_initial_state(self) -> bool:
        """Whether weights are the initial state of a call that has none."""
        return self.learned_states is not None

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        """Creates the weights; Keras calls it.

        Args:
          sequences_shape: [B, T, I].
          initial_state_shape: that of the states, or None.
        """
        if not isinstance(self, SingleLayerRNN):
            # Keras binds build to a new object, which convert_model has made a stock layer since.
            type(self).build(self, sequences_shape, initial_state_shape)
            return
        super().build(sequences_shape, initial_state_shape)
        if self.learned_states is not None:
            self.learned_states.build()

    def get_initial_state(self, batch_size: Any) -> list[Any]:
        """The initial state of a call that has none; Keras calls it.

        Args:
          batch_size: the number of rows B.

        Returns:
          A tensor for each state, [B, H]; of an LSTM with a projection h is [B, P].

        Raises:
          ValueError: the states are learned, and the layer is not built.
        """
        if self.learned_states is None:
            states: list[Any] = super().get_initial_state(batch_size)
            return states
        return self.learned_states.rows(batch_size, self.cell.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the layer again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        return {**super().get_config(), **own_config(self, self._own_options)}

    @property
    def fallback_reason(self) -> str | None:
        """Why a call runs Keras' own loop; None if it runs the fused op."""
        return super().fallback_reason or options.why_not(self, _targets.CPU)

    @property
    def _op(self) -> str:
        return options.op_of(self)

    def inner_loop(
        self, sequences: Any, initial_state: Any, mask: tf.Tensor, training: bool = False
    ) -> Any:
        """Runs the layer over a batch of sequences; ``keras.layers.RNN`` calls it.

        Args:
          sequences, initial_state, mask, training: as of `run_op`.

        Returns:
          What `run_op` returns.
        """
        if getattr(self, "use_cudnn", None) is True:  # SimpleRNN has no such argument
            return super().inner_loop(sequences, initial_state, mask, training=training)
        if not self.uses_fused_op:
            # The stock layer's inner_loop would try cuDNN with a single dropout mask first.
            return keras.layers.RNN.inner_loop(
                self, sequences, initial_state, mask, training=training
            )
        return run_op(self, sequences, initial_state, mask, training)

    @property
    def _names_of_states(self) -> tuple[str, ...]:
        return state_names(self._op)


class GatedRNN(SingleLayerRNN):
    """What `LSTM` and `GRU` have in common."""

    def _start(
        self, cell: Any, use_cudnn: Any, has_own_options: bool, is_learned: bool, **options: Any
    ) -> None:
        """In place of the constructor of the stock layer, which would make its own cell."""
        if use_cudnn not in ("auto", True, False):
            raise ValueError(
                f"use_cudnn must be 'auto', True or False. Received: use_cudnn={use_cudnn}"
            )
        keras.layers.RNN.__init__(self, cell, **options)
        self.input_spec = keras.layers.InputSpec(ndim=3)
        if is_learned:
            self._learn_states()
        # False keeps Keras from computing a Bidirectional around this layer by its kernels alone.
        self.use_cudnn = False if has_own_options else use_cudnn

    @property
    def layer_normalization(self) -> str | None:
        """The form of layer normalisation, "haste" or, of an LSTM, "addons"; None without."""
        return own_option(self, "layer_normalization")

    @property
    def layer_normalization_epsilon(self) -> float | None:
        """The epsilon of layer normalisation; None without."""
        return own_option(self, "layer_normalization_epsilon")
