"""What a session computes, in NumPy with float64, from the layers of session_file.

The recurrent layers are those of tests/oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oracle import keras_gru_v2, keras_lstm, keras_lstm_v2, keras_simple_rnn, layer_norm

from . import session_file as f

Array = np.ndarray


class _Call(NamedTuple):
    x: Array
    mask: Array | None
    backwards: bool
    states: Sequence[Array]  # h and, of an LSTM, c, before the first step


NAMES = {number: name for name, number in f.FUNCTIONS.items()}


def name_of(function: str | int) -> str:
    return function if isinstance(function, str) else NAMES[function]


def activate(function: str | int, x: Array) -> Array:
    name = name_of(function)
    if name == "softmax":
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)
    return keras_lstm_v2.ACTIVATIONS[name](x)


def _lstm(layer: f.Layer, a: dict[str, Array], call: _Call):
    """Outputs in the order of computation, h and c."""
    x, mask, backwards, states = call
    weights = (a["kernel"], a["recurrent_kernel"], a.get("bias", np.zeros(4 * layer.units)))
    peephole = a.get("peephole", np.zeros((3, layer.units)))
    names = [name_of(layer.activation), name_of(layer.recurrent_activation)]
    if "projection" in a or names != ["tanh", "sigmoid"]:
        projection = a.get("projection", np.eye(layer.units))
        return keras_lstm_v2.keras_lstm_v2(
            keras_lstm_v2.Arguments(x, *states, *weights, peephole, projection),
            **dict(zip(["activation", "recurrent_activation"], names, strict=True)),
            cell_clip=layer.number,
            proj_clip=layer.proj_clip,
            mask=mask,
            go_backwards=backwards,
        )
    options = keras_lstm.Options(mask, backwards, cell_clip=layer.number or None)
    return keras_lstm.keras_lstm(keras_lstm.Arguments(x, *states, *weights, peephole), options)


def _gru(layer: f.Layer, a: dict[str, Array], call: _Call):
    x, mask, backwards, [h] = call
    bias = a.get("bias", np.zeros(3 * layer.units))
    if layer.cell == f.GRU:
        bias = np.stack([bias, a.get("recurrent_bias", np.zeros(3 * layer.units))])
    return keras_gru_v2.keras_gru_v2(
        keras_gru_v2.Arguments(x, h, a["kernel"], a["recurrent_kernel"], bias),
        activation=name_of(layer.activation),
        recurrent_activation=name_of(layer.recurrent_activation),
        mask=mask,
        go_backwards=backwards,
    )


def _simple_rnn(layer: f.Layer, a: dict[str, Array], call: _Call):
    """Of relu by the LSTM's list of functions; `keras_simple_rnn` has tanh only."""
    x, mask, backwards, [h] = call
    bias = a.get("bias", np.zeros(layer.units))
    arguments = keras_simple_rnn.Arguments(x, h, a["kernel"], a["recurrent_kernel"], bias)
    function = keras_lstm_v2.ACTIVATIONS[name_of(layer.activation)]
    options = keras_lstm.Options(mask, backwards)
    return keras_simple_rnn.keras_simple_rnn(arguments, options, function)


def _layer_norm(layer: f.Layer, a: dict[str, Array], call: _Call):
    x, mask, backwards, states = call
    is_lstm = layer.cell == f.LAYER_NORM_LSTM
    gates, nothing = 4 if is_lstm else 3, np.zeros(0)
    bias = a.get("bias", np.zeros(gates * layer.units))
    if not is_lstm:
        bias = np.stack([bias, a.get("recurrent_bias", np.zeros(3 * layer.units))])
    state = (a["state_gamma"], a["state_beta"]) if is_lstm else (nothing, nothing)
    arguments = layer_norm.Arguments(
        *(x, states[0], states[1] if is_lstm else nothing, a["kernel"], a["recurrent_kernel"]),
        *(bias, a["input_gamma"], a["recurrent_gamma"], *state),
    )
    options = layer_norm.Options(
        mask,
        backwards,
        epsilon=layer.epsilon,
        carries_n=bool(layer.flags & f.CARRIES_NORMALIZED),
    )
    return layer_norm.layer_norm(arguments, options)


CELLS = {
    f.LSTM: _lstm,
    f.GRU: _gru,
    f.GRU_RESET_BEFORE: _gru,
    f.LAYER_NORM_LSTM: _layer_norm,
    f.LAYER_NORM_GRU: _layer_norm,
    f.SIMPLE_RNN: _simple_rnn,
}
MERGES = {
    f.CONCATENATE: lambda a, b: np.concatenate([a, b], axis=-1),
    f.SUM: lambda a, b: a + b,
    f.PRODUCT: lambda a, b: a * b,
    f.AVERAGE: lambda a, b: (a + b) / 2,
}


def is_lstm(layer: f.Layer) -> bool:
    return layer.cell in (f.LSTM, f.LAYER_NORM_LSTM)


def recurrent(
    layer: f.Layer, x: Array, mask: Array | None, initial: Sequence[Array] = ()
) -> tuple[Array, list[Array]]:
    """The output, and the final states of each direction. Without `initial` states are zero."""
    hidden = layer.units if layer.hidden_size is None else layer.hidden_size
    sizes = [hidden, layer.units] if is_lstm(layer) else [hidden]
    outputs, states = [], []
    for direction, arrays in enumerate(layer.arrays):
        a = {name: np.asanyarray(values, np.float64) for name, values in arrays.items()}
        backwards = layer.directions == f.BACKWARDS or direction == 1
        first = direction * len(sizes)
        before = initial[first : first + len(sizes)] or [np.zeros((len(x), n)) for n in sizes]
        result = CELLS[layer.cell](layer, a, _Call(x, mask, backwards, before))
        output = result.outputs
        if layer.flags & f.ZERO_OUTPUT and mask is not None:
            in_order = mask[:, ::-1] if backwards else mask
            output = output * in_order[:, :, None]
        if not layer.flags & f.SEQUENCE:
            output = output[:, -1]
        elif backwards and not layer.flags & f.IN_ORDER:
            output = output[:, ::-1]
        outputs.append(output)
        states += [result.h, *([result.c] if is_lstm(layer) else [])]
    return MERGES[layer.merge](*outputs) if len(outputs) == 2 else outputs[0], states


def run(
    layers: Sequence[f.Layer], x: Array, mask: Array | None = None
) -> tuple[Array, list[Array]]:
    """The output of the last layer, and the final states of all layers, of the first direction."""
    x, all_states = np.asarray(x, np.float64), []
    mask = None if mask is None else np.asarray(mask, bool)
    for layer in layers:
        if layer.kind == f.RECURRENT:
            x, states = recurrent(layer, x, mask)
            all_states += states[: 2 if is_lstm(layer) else 1]
        elif layer.kind == f.MASKING:
            mask = (x != np.float32(layer.number)).any(axis=-1)
            x = np.where(mask[:, :, None], x, 0)
        else:
            if layer.kind == f.DENSE:
                [arrays] = layer.arrays
                x = x @ arrays["kernel"].astype(np.float64) + arrays.get("bias", 0.0)
            x = activate(layer.activation, x)
    return x, all_states
