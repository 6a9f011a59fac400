"""Wrong sizes in the call of a layer: the messages are in the words of the user, in all layers."""

import re
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.keras import GRU, LSTM, Bidirectional, StackedGRU, StackedLSTM

B, T, I, H = 2, 5, 3, 4  # noqa: E741  the letters of the documentation
X = np.zeros((B, T, I), "float32")
LAYERS: dict[str, tuple[Callable[..., Any], list[int]]] = {  # and the sizes of its states
    "LSTM": (lambda **k: LSTM(H, **k), [H, H]),
    "projection": (lambda **k: LSTM(H, projection_size=2, **k), [2, H]),
    "loop": (lambda **k: LSTM(H, activation="selu", **k), [H, H]),
    "GRU": (lambda **k: GRU(H, **k), [H]),
    "loop of a GRU": (lambda **k: GRU(H, activation="selu", **k), [H]),
    "StackedLSTM": (lambda **k: StackedLSTM(H, 2, **k), [H] * 4),
    "StackedGRU": (lambda **k: StackedGRU(H, 2, bidirectional=True, **k), [H] * 4),
    "Bidirectional": (lambda **k: Bidirectional(LSTM(H, **k)), [H] * 4),
    "Bidirectional, apart": (lambda **k: Bidirectional(GRU(H, activation="elu", **k)), [H] * 2),
}
each_layer = pytest.mark.parametrize("name", LAYERS)
in_functions = pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])


def built(name: str, **options: Any) -> Any:
    layer = LAYERS[name][0](**options)
    layer(X)
    return layer


def zeros(name: str, batch: int = B, more: int = 0) -> list[tf.Tensor]:
    return [tf.zeros([batch, size + more]) for size in LAYERS[name][1]]


def refused(layer: Any, text: str, x: Any, in_function: bool, **arguments: Any) -> None:
    """A call of known sizes is an error with the text."""
    call = tf.function(lambda x, arguments: layer(x, **arguments))
    with pytest.raises(ValueError, match=re.escape(text)):
        call(x, arguments) if in_function else layer(x, **arguments)


@in_functions
@each_layer
def test_features(name: str, in_function: bool) -> None:
    text = "the layer was built for 3 features. Received: 7, in an input of shape (2, 5, 7)"
    refused(built(name), text, np.zeros((B, T, 7), "float32"), in_function)


@in_functions
@pytest.mark.parametrize("shape", [(2, 4), (3, 5), (2, 5, 2), (5,)], ids=str)
@each_layer
def test_mask(name: str, shape: tuple[int, ...], in_function: bool) -> None:
    text = f"mask must be [2, 5] (batch, time). Received: {shape}"
    refused(built(name), text, X, in_function, mask=np.ones(shape, bool))


@in_functions
@each_layer
def test_states_of_another_batch(name: str, in_function: bool) -> None:
    size = LAYERS[name][1][0]
    text = f"initial_state must be [batch, {size}], here [2, {size}]. Received: (3, {size})"
    refused(built(name), text, X, in_function, initial_state=zeros(name, batch=3))


@each_layer
def test_states_of_another_size(name: str) -> None:
    size = LAYERS[name][1][0]
    text = f"initial_state must be [batch, {size}], here [2, {size}]. Received: (2, {size + 1})"
    refused(built(name), text, X, False, initial_state=zeros(name, more=1))


@each_layer
def test_number_of_states(name: str) -> None:
    states, layer = zeros(name), built(name)
    refused(layer, "initial_state must ", X, False, initial_state=[*states, states[0]])
    if len(states) > 1:
        refused(layer, "Received 1 tensor", X, False, initial_state=states[:1])


@in_functions
@each_layer
def test_stateful_layer_with_another_batch(name: str, in_function: bool) -> None:
    layer = built(name, stateful=True)
    for batch in (1, 3):
        text = f"is stateful and keeps states of batch size 2. Received: batch size {batch}."
        refused(layer, text, np.zeros((batch, T, I), "float32"), in_function)
    layer(X)


@each_layer
def test_ragged_sequences(name: str) -> None:
    layer = built(name)
    ragged = tf.ragged.constant([[[1.0] * 7], [[1.0] * 7] * 2], ragged_rank=1)
    refused(layer, "the layer was built for 3 features. Received: 7", ragged, False)
    ragged = tf.ragged.constant([[[1.0] * I], [[1.0] * I] * 2], ragged_rank=1)
    text = "mask must be [2, 2] (batch, time). Received: (2, 1)"
    refused(layer, text, ragged, False, mask=np.ones((2, 1), bool))


@each_layer
def test_unknown_sizes_are_left_to_the_op(name: str) -> None:
    layer = built(name, stateful=False)
    specs = [tf.TensorSpec([None, None, I]), tf.TensorSpec([None, None], tf.bool)]
    call = tf.function(lambda x, mask: layer(x, mask=mask), input_signature=specs)
    assert call(tf.constant(X), tf.ones([B, T], tf.bool)).shape[0] == B
    with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)):
        call(tf.constant(X), tf.ones([B, T - 1], tf.bool))


@each_layer
def test_what_is_right_is_no_error(name: str) -> None:
    """One row for all, a column, a list; a batch without rows, or without steps."""
    layer = built(name)
    layer(X, mask=np.ones((1, T), bool))
    layer(X, mask=np.ones((B, T, 1), bool))
    if layer.uses_fused_op:  # Keras' own loop takes no list and no empty batch
        layer(X, mask=[tf.ones([B, T], tf.bool)])
        layer(np.zeros((0, T, I), "float32"), mask=np.ones((0, T), bool))
    layer(X, initial_state=zeros(name, batch=1))
    layer(np.zeros((B, 0, I), "float32"), mask=np.ones((B, 0), bool))
    model = keras.Sequential([keras.Input((None, I)), keras.layers.Masking(), layer])
    model.predict(X, verbose=0)
