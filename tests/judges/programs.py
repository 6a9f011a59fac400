"""The ops, the layers and sessions of this package, called alike: weights, x and initial states."""

from typing import Any, NamedTuple

import numpy as np

import tf_lstm_ops
from tf_lstm_ops import raw_ops
from tf_lstm_ops.inference import Session, layers
from tf_lstm_ops.weights import GRUWeights, LSTMWeights, RNNWeights

Array = np.ndarray
Weights = LSTMWeights | GRUWeights | RNNWeights  # of one direction
SESSION_LAYERS = {LSTMWeights: layers.LSTM, GRUWeights: layers.GRU, RNNWeights: layers.SimpleRNN}


class States(NamedTuple):
    """[L, B, H] each. What is no LSTM returns c as it is."""

    h: Array
    c: Array


def cudnn(weights: Weights, x: Array, states: States) -> tuple[Array, States]:
    """CudnnRNNV2 in inference, of all layers.

    Args:
      weights: those of a GRU have reset_after=True.
      x: [T, B, I].
      states: before the first step.

    Returns:
      The output [T, B, H] of the last layer, and the states after the last step.
    """
    is_lstm = isinstance(weights, LSTMWeights)
    modes = {LSTMWeights: "lstm", GRUWeights: "gru"}
    found = raw_ops.CudnnRNNV2(
        input=x,
        input_h=states.h,
        input_c=states.c if is_lstm else np.zeros((), x.dtype),
        params=weights.to_cudnn().astype(x.dtype),
        rnn_mode=modes.get(type(weights)) or f"rnn_{weights.activation}",
        is_training=False,
    )
    c = found.output_c.numpy() if is_lstm else states.c
    return found.output.numpy(), States(found.output_h.numpy(), c)


def keras_layers(weights: Weights, x: Array, states: States) -> tuple[Array, States]:
    """A layer of tf_lstm_ops.keras for each layer. See `cudnn`."""
    y, finals = x.swapaxes(0, 1), []
    for cell, h, c in zip(weights.cells, *states, strict=True):
        layer = keras_layer(weights, x.dtype.name)
        layer.build((None, None, y.shape[-1]))
        layer.set_weights(one_layer(weights, cell).to_keras())
        y, *final = layer(y, initial_state=[h, c] if isinstance(weights, LSTMWeights) else [h])
        finals.append([*final, c][:2])
    results = (np.stack([np.array(a) for a in each]) for each in zip(*finals, strict=True))
    return np.array(y).swapaxes(0, 1), States(*results)


def keras_layer(weights: Weights, dtype: str) -> Any:
    options = {"return_sequences": True, "return_state": True, "dtype": dtype}
    if isinstance(weights, LSTMWeights):
        return tf_lstm_ops.keras.LSTM(weights.units, **options)
    if isinstance(weights, GRUWeights):
        return tf_lstm_ops.keras.GRU(weights.units, reset_after=weights.reset_after, **options)
    return tf_lstm_ops.keras.SimpleRNN(weights.units, activation=weights.activation, **options)


def one_layer(weights: Weights, cell: Any) -> Weights:
    more = {
        name: getattr(weights, name)
        for name in ("reset_after", "activation")
        if hasattr(weights, name)
    }
    return type(weights)((cell,), **more)


def session(weights: Weights, x: Array, states: States) -> tuple[Array, States]:
    """A session with a layer that has all layers of the weights. See `cudnn`."""
    count = 2 if isinstance(weights, LSTMWeights) else 1
    layer = SESSION_LAYERS[type(weights)](weights, return_sequences=True, return_state=True)
    given = layers.Input((None, weights.input_size))
    initial = [layers.Input((weights.units,)) for _ in range(count * len(states.h))]
    made = Session.from_graph([given, *initial], layer(given, initial_state=initial))
    values = [a[k] for k in range(len(states.h)) for a in states[:count]]
    y, *final = made([x.swapaxes(0, 1), *values])
    found = [np.stack(final[k::count]) for k in range(count)]
    return y.swapaxes(0, 1), States(*[*found, states.c][:2])
