"""The multi-layer RNN of the CudnnRNN ops.

T time, B batch, I input size, H units, P size of h, L layers, D directions.
"""
# Equations and layouts: docs/reference/cudnn_rnn.md.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tf_lstm_ops import op_definitions
from tf_lstm_ops.composite.common import cast, compute_dtype, gradients, valid_steps, zero_where_not
from tf_lstm_ops.composite.scan import scan
from tf_lstm_ops.cudnn_layout import Model


def _static(name: str, tensor: tf.Tensor, axis: int) -> int:
    size = tensor.shape[axis]
    if size is None:
        raise ValueError(f"{name}.shape[{axis}] must be known here; set it with set_shape")
    return size


def model_attributes(given: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that determine the model and the layout of the sequences.

    Args:
      given: attributes of one of the ops, and others.

    Returns:
      rnn_mode, input_mode, direction, num_proj and time_major; those that are not given have the
      defaults of CudnnRNNV3.
    """
    names = ("rnn_mode", "input_mode", "direction", "num_proj", "time_major")
    every = {**op_definitions.defaults("CudnnRNNV3"), **given}
    return {name: every[name] for name in names}


def model_of(
    input: tf.Tensor,
    input_h: tf.Tensor,
    input_c: tf.Tensor,
    rnn_mode: str,
    input_mode: str,
    direction: str,
    num_proj: int,
    time_major: bool,
) -> Model:
    """The model of a call of an op, from its shapes and attributes.

    Args:
      input, input_h, input_c: as the ops take them.
      rnn_mode, input_mode, direction, num_proj, time_major: the ops' attributes.

    Returns:
      The model.

    Raises:
      ValueError: the input size, the number of pseudo-layers or the state's size is not static.
    """
    directions = 2 if direction == "bidirectional" else 1
    cell = ("input_c", input_c) if rnn_mode == "lstm" else ("input_h", input_h)
    return Model(
        mode=rnn_mode,
        input_size=_static("input", input, 2),
        units=_static(*cell, 2),
        num_layers=_static("input_h", input_h, 0 if time_major else 1) // directions,
        directions=directions,
        projection_size=num_proj,
        input_mode=input_mode,
    )


def _split(params: tf.Tensor, model: Model) -> list[dict[str, tf.Tensor]]:
    """For each pseudo-layer its weights by kind, with gates and rows as one axis. There is no kind
    "input" where the input is skipped."""
    weights: list[dict[str, tf.Tensor]] = [{} for _ in range(model.pseudo_layers)]
    regions = [region for region in model.regions() if region.size]
    values = tf.split(params, [region.size for region in regions])
    for region, value in zip(regions, values, strict=True):
        weights[region.pseudo_layer][region.kind] = tf.reshape(value, region.matrix_shape)
    return weights


def _input_side(sequence: tf.Tensor, weights: dict[str, tf.Tensor], model: Model) -> tf.Tensor:
    """The input's term of the gate pre-activations of all steps, [T, B, G*H]."""
    if "input" in weights:
        return tf.einsum("tbi,gi->tbg", sequence, weights["input"]) + weights["input_bias"]
    return tf.tile(sequence, [1, 1, model.gates]) + weights["input_bias"]


def _cell(mode: str, weights: dict[str, tf.Tensor]) -> Callable[..., list[tf.Tensor]]:
    """One step: the new h and c from the input's term, h and, for lstm, c."""

    def recurrent(h: tf.Tensor) -> Any:
        return tf.matmul(h, weights["recurrent"], transpose_b=True) + weights["recurrent_bias"]

    def lstm(z: tf.Tensor, h: tf.Tensor, c: tf.Tensor) -> list[tf.Tensor]:
        zi, zf, zc, zo = tf.split(z + recurrent(h), 4, axis=-1)
        c = tf.sigmoid(zf) * c + tf.sigmoid(zi) * tf.tanh(zc)
        h = tf.sigmoid(zo) * tf.tanh(c)
        if "projection" in weights:
            h = tf.matmul(h, weights["projection"], transpose_b=True)
        return [h, c]

    def gru(z: tf.Tensor, h: tf.Tensor) -> list[tf.Tensor]:
        xr, xu, xn = tf.split(z, 3, axis=-1)
        hr, hu, hn = tf.split(recurrent(h), 3, axis=-1)
        u = tf.sigmoid(xu + hu)
        n = tf.tanh(xn + tf.sigmoid(xr + hr) * hn)
        return [(1 - u) * n + u * h]

    def rnn(z: tf.Tensor, h: tf.Tensor) -> list[tf.Tensor]:
        activation = tf.tanh if mode == "rnn_tanh" else tf.nn.relu
        return [activation(z + recurrent(h))]

    cells: dict[str, Callable[..., list[tf.Tensor]]] = {"lstm": lstm, "gru": gru}
    return cells.get(mode, rnn)


def _layer(
    model: Model,
    weights: list[dict[str, Any]],
    sequence: tf.Tensor,
    valid: tf.Tensor,
    states: list[tf.Tensor],
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """All directions of a layer: the outputs [T, B, D*P] and the final states of each direction."""
    outputs, finals = [], []
    for reverse in range(model.directions):
        found, _, final = scan(
            _cell(model.mode, weights[reverse]),
            _input_side(sequence, weights[reverse], model),
            valid,
            [state[reverse] for state in states],
            reverse=bool(reverse),
            zero_output=True,
        )
        outputs.append(tf.reverse(found, [0]) if reverse else found)
        finals.append(final)
    return tf.concat(outputs, axis=-1), finals


def cudnn_rnn(
    input: Any,
    input_h: tf.Tensor,
    input_c: tf.Tensor,
    params: tf.Tensor,
    sequence_lengths: tf.Tensor,
    dropout_mask: tf.Tensor,
    **attributes: Any,
) -> list[tf.Tensor]:
    """CudnnRNN, V2 and V3: output, output_h, output_c.

    Args:
      input, input_h, input_c, params: as the ops take them.
      sequence_lengths: int32 [B], or None: all steps are valid.
      dropout_mask: multipliers [L-1, T, B, D*P] as of CudnnRNNDropoutMask, or None.
      **attributes: as of `model_attributes`.

    Returns:
      output, output_h, output_c; output_c is a scalar unless rnn_mode is "lstm".

    Raises:
      ValueError: the input size, the number of pseudo-layers or the state's size is not static.
    """
    dtype, swap = input.dtype, [1, 0, 2]
    model = model_of(input, input_h, input_c, **attributes)
    time_major, is_lstm = attributes["time_major"], model.mode == "lstm"
    states = [input_h, input_c] if is_lstm else [input_h]
    sequence, params, *states = cast([input, params, *states], compute_dtype(dtype))
    if not time_major:
        sequence, *states = [tf.transpose(v, swap) for v in (sequence, *states)]
    valid = None
    if sequence_lengths is not None:
        valid = valid_steps(sequence, sequence_lengths)
        sequence = zero_where_not(valid, sequence)

    finals, weights = [], _split(params, model)
    for layer in range(model.num_layers):
        own = slice(layer * model.directions, (layer + 1) * model.directions)
        sequence, final = _layer(model, weights[own], sequence, valid, [s[own] for s in states])
        finals += final
        if dropout_mask is not None and layer < model.num_layers - 1:
            sequence *= tf.cast(dropout_mask[layer], sequence.dtype)

    results = [sequence, *(tf.stack(final) for final in zip(*finals, strict=True))]
    if not time_major:
        results = [tf.transpose(v, swap) for v in results]
    if not is_lstm:
        results.append(tf.zeros([], dtype))
    return cast(results, dtype)


def cudnn_rnn_backprop(
    inputs: list[tf.Tensor],
    output_grads: list[tf.Tensor],
    sequence_lengths: tf.Tensor,
    dropout_mask: tf.Tensor,
    **attributes: Any,
) -> list[tf.Tensor]:
    """CudnnRNNBackprop, V2 and V3.

    Args:
      inputs: input, input_h, input_c, params.
      output_grads: gradients of output, output_h and output_c.
      sequence_lengths, dropout_mask: as in cudnn_rnn.
      **attributes: as of `model_attributes`.

    Returns:
      The gradients of the inputs.
    """
    used = 3 if attributes["rnn_mode"] == "lstm" else 2  # no other mode has output_c

    def forward(
        input: Any, input_h: tf.Tensor, input_c: tf.Tensor, params: tf.Tensor
    ) -> list[tf.Tensor]:
        inputs = input, input_h, input_c, params
        outputs = cudnn_rnn(*inputs, sequence_lengths, dropout_mask, **attributes)
        return outputs[:used]

    return gradients(forward, inputs, lambda _: output_grads[:used])
