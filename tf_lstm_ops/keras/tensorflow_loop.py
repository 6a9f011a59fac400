"""Where TensorFlow's ops take the place of the loop of a layer of ``keras.layers``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import (
    _deviation,
    _keras_private,
    _placement,
    _tf_private,
    composite,
    converters,
)
from tf_lstm_ops._keras_private import Tracer
from tf_lstm_ops.keras import bidirectional, directions, single_layer, stock_layer
from tf_lstm_ops.keras.fused import FusedRNN

JOINS_DIRECTIONS = True  # one op computes both directions of a Bidirectional
NotJoinedError = directions.NotJoinedError
run, run_joined = single_layer.run_op, bidirectional.run_joined
trace_again = _keras_private.trace_again

# In a Bidirectional: classes that compute nothing around their loop.
_KINDS = (*stock_layer.CLASSES_WITH_LOOP, keras.layers.SimpleRNN)
_MERGE_MODES = ("concat", "sum", "ave", "mul", None)


def is_own(layer: Any) -> bool:
    """Whether a layer is one of this package, whose loop this one is not.

    Args:
      layer: a recurrent layer or a Bidirectional.

    Returns:
      True for a layer of this package.
    """
    return isinstance(layer, FusedRNN | bidirectional.Bidirectional)


def guarded(stock: Callable[..., Any], loop: Callable[..., Any]) -> Callable[..., Any]:
    """The method that takes the place of a loop of Keras.

    Args:
      stock: the loop of Keras.
      loop: a loop that chooses between Keras' and an op.

    Returns:
      The method.
    """
    del stock
    return loop


def traced_by(sequences: Any) -> Tracer | None:
    """What traces a call.

    Args:
      sequences: of the call.

    Returns:
      The tracer; None in eager code.
    """
    del sequences
    if tf.executing_eagerly():
        return None
    return _keras_private.tracer(_tf_private.callers_in_trace())


def why_stock(
    layer: Any, sequences: Any, states: Any, mask: Any, training: Any, traced_by: Tracer | None
) -> str | None:
    """Why a call runs Keras' code.

    Args:
      layer: a layer of ``keras.layers`` whose cell an op knows.
      sequences: [B, T, I].
      states: the list of the initial states.
      mask: of the call, or a list with it; None: all steps are valid.
      training: of the call.
      traced_by: what `traced_by` returned.

    Returns:
      The reason; None if the fused op computes the same.
    """
    if tf.config.get_visible_devices("GPU") or _placement.on_metal():
        return "a GPU is visible"
    if traced_by is Tracer.OTHER and not _tf_private.trace_has_own_tape():
        return "a tf.function that may become a file"
    if composite.plain_ops_required() or converters.plain_ops_required():
        return "XLA or a converter traces the call"
    if isinstance(sequences, tf.RaggedTensor) or sequences.shape[1] == 0:
        return "ragged sequences, or no steps"
    if not (training is None or isinstance(training, bool | int)):
        return "training is a tensor"
    given = stock_layer.first_mask(mask)
    return (
        stock_layer.why_no_op(layer)
        or stock_layer.why_unrolled(layer, mask)
        or stock_layer.why_not_these_shapes(
            layer,
            sequences.shape,
            [state.shape for state in states],
            None if given is None else tf.convert_to_tensor(given).shape,
        )
    )


def why_apart(
    wrapper: Any,
    sequences: Any,
    initial_state: Any,
    mask: Any,
    training: Any,
    traced_by: Tracer | None,
) -> str | None:
    """Why each layer of a Bidirectional computes its own direction.

    Args:
      wrapper: the Bidirectional.
      sequences, initial_state, mask, training: the arguments of its call.
      traced_by: what `traced_by` returned.

    Returns:
      The reason; None if one op computes both.
    """
    if wrapper.merge_mode not in _MERGE_MODES:
        return f"merge_mode={wrapper.merge_mode}"
    reason = bidirectional.why_apart(wrapper, _KINDS, _why_not_alone)
    if reason or bidirectional.must_be_apart(wrapper, sequences):
        return reason or "a call of each layer"
    layers = (wrapper.forward_layer, wrapper.backward_layer)
    for k, layer in enumerate(layers):
        if initial_state is None:
            states = layer.states if layer.stateful else layer.get_initial_state(1)
        else:
            half = len(initial_state) // 2
            states = [tf.convert_to_tensor(s) for s in initial_state[k * half :][:half]]
        if reason := why_stock(layer, sequences, states, mask, training, traced_by):
            return reason
    return None


def _why_not_alone(layer: Any) -> str | None:
    return stock_layer.why_other_cell(layer) or _deviation.of(layer) or stock_layer.why_no_op(layer)
