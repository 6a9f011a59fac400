"""The ops behind tf_lstm_ops.keras.

B batch, T time, I input size, H units, P size of h (less than H with a projection).
"""
# Equations: cc/core/*_cell.h, docs/reference/keras.md.

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from tf_lstm_ops.composite.activations import KERAS as ACTIVATIONS
from tf_lstm_ops.composite.common import (
    cast,
    compute_dtype,
    is_absent,
    masked_clip,
    straight_through_clip,
    zero_where_not,
)
from tf_lstm_ops.composite.scan import scan


def _product(value: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """[B, K] or [T, B, K] times [K, Z]."""
    if value.shape.rank == 2:
        return tf.matmul(value, weights)
    return tf.einsum("tbk,kz->tbz", value, weights)


def _per_gate(value: tf.Tensor, dropout: tf.Tensor, weights: tf.Tensor, gates: int) -> tf.Tensor:
    """value times weights. Each gate multiplies the value by its own dropout [B, K] first."""
    if is_absent(dropout):
        return _product(value, weights)
    columns = tf.split(weights, gates, axis=-1)
    products = [_product(value * dropout[g], column) for g, column in enumerate(columns)]
    return tf.concat(products, axis=-1)


def _time_major(x: tf.Tensor, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor | None]:
    """x as [T, B, I], zero where masked, and the valid steps, bool [T, B] or None."""
    x = tf.transpose(x, [1, 0, 2])
    if is_absent(mask):
        return x, None
    valid = tf.transpose(mask)
    return zero_where_not(valid, x), valid


def _run(
    cell: Callable[..., list[tf.Tensor]],
    x_terms: tf.Tensor,
    valid: tf.Tensor | None,
    states: list[tf.Tensor],
    *,
    go_backwards: bool,
    zero_output_for_mask: bool,
    return_sequences: bool,
) -> list[tf.Tensor]:
    """Runs a cell over the input's terms [T, B, ...]; returns the output and the final states."""
    outputs, last, states = scan(
        cell, x_terms, valid, states, reverse=go_backwards, zero_output=zero_output_for_mask
    )
    output = tf.transpose(outputs, [1, 0, 2]) if return_sequences else tf.expand_dims(last, 1)
    return [output, *states]


def _looking_at(c: tf.Tensor, z: tf.Tensor, peephole: tf.Tensor | None) -> tf.Tensor:
    """The pre-activation z of a gate with its peephole, which may be None."""
    # TensorFlow Lite's int8 has no range for a product with zero.
    return z if peephole is None else z + peephole * c


def keras_lstm(
    x: tf.Tensor,
    mask: tf.Tensor,
    initial_h: tf.Tensor,
    initial_c: tf.Tensor,
    kernel: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    bias: tf.Tensor,
    peephole: tf.Tensor,
    projection: tf.Tensor,
    input_dropout: tf.Tensor,
    recurrent_dropout: tf.Tensor,
    *,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
    cell_clip: float,
    proj_clip: float = 0.0,
    **loop: bool,
) -> list[tf.Tensor]:
    """KerasLSTM without its output reserve.

    Args:
      x, mask, initial_h, initial_c, kernel, recurrent_kernel, bias, peephole, projection,
        input_dropout, recurrent_dropout: as the op takes them.
      activation, recurrent_activation, cell_clip, proj_clip: attributes of the op.
      **loop: its attributes go_backwards, zero_output_for_mask and return_sequences.

    Returns:
      output, final_h, final_c.
    """
    dtype = x.dtype
    arguments = (x, initial_h, initial_c, kernel, recurrent_kernel, bias, peephole)
    arguments = cast((*arguments, input_dropout, recurrent_dropout), compute_dtype(dtype))
    x, initial_h, initial_c, kernel, recurrent_kernel, bias, peephole, *dropouts = arguments
    input_dropout, recurrent_dropout = dropouts
    wci, wcf, wco = [None] * 3 if is_absent(peephole) else tf.unstack(peephole)
    projected = not is_absent(projection)
    if projected:
        projection = tf.cast(projection, x.dtype)
    of_state, of_gate = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]

    def cell(z: tf.Tensor, h: tf.Tensor, c: tf.Tensor) -> list[tf.Tensor]:
        z += _per_gate(h, recurrent_dropout, recurrent_kernel, 4)
        zi, zf, zc, zo = tf.split(z, 4, axis=-1)
        zi, zf = _looking_at(c, zi, wci), _looking_at(c, zf, wcf)
        c = of_gate(zi) * of_state(zc) + of_gate(zf) * c
        c = straight_through_clip(c, cell_clip)
        h = of_gate(_looking_at(c, zo, wco)) * of_state(c)
        if projected:
            h = masked_clip(tf.matmul(h, projection), proj_clip)
        return [h, c]

    x, valid = _time_major(x, mask)
    z = _per_gate(x, input_dropout, kernel, 4)
    if not is_absent(bias):
        z += bias
    return cast(_run(cell, z, valid, [initial_h, initial_c], **loop), dtype)


def keras_gru(
    x: tf.Tensor,
    mask: tf.Tensor,
    initial_h: tf.Tensor,
    kernel: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    bias: tf.Tensor,
    input_dropout: tf.Tensor,
    recurrent_dropout: tf.Tensor,
    *,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
    **loop: bool,
) -> list[tf.Tensor]:
    """KerasGRU without its output reserve.

    Args:
      x, mask, initial_h, kernel, recurrent_kernel, bias, input_dropout, recurrent_dropout: as the
        op takes them.
      activation, recurrent_activation: attributes of the op.
      **loop: its attributes go_backwards, zero_output_for_mask and return_sequences.

    Returns:
      output, final_h.
    """
    dtype = x.dtype
    arguments = (x, initial_h, kernel, recurrent_kernel, bias, input_dropout, recurrent_dropout)
    x, initial_h, kernel, recurrent_kernel, bias, input_dropout, recurrent_dropout = cast(
        arguments, compute_dtype(dtype)
    )
    input_bias, recurrent_bias = (0.0, 0.0) if is_absent(bias) else tf.unstack(bias)
    of_candidate, of_gate = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]

    def cell(x_terms: tf.Tensor, h: tf.Tensor) -> list[tf.Tensor]:
        h_terms = _per_gate(h, recurrent_dropout, recurrent_kernel, 3) + recurrent_bias
        xz, xr, xh = tf.split(x_terms, 3, axis=-1)
        hz, hr, hh = tf.split(h_terms, 3, axis=-1)
        z = of_gate(xz + hz)
        return [z * h + (1 - z) * of_candidate(xh + of_gate(xr + hr) * hh)]

    x, valid = _time_major(x, mask)
    x_terms = _per_gate(x, input_dropout, kernel, 3) + input_bias
    return cast(_run(cell, x_terms, valid, [initial_h], **loop), dtype)


def keras_reset_before_gru(
    x: tf.Tensor,
    mask: tf.Tensor,
    initial_h: tf.Tensor,
    kernel: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    bias: tf.Tensor,
    input_dropout: tf.Tensor,
    recurrent_dropout: tf.Tensor,
    *,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
    **loop: bool,
) -> list[tf.Tensor]:
    """KerasResetBeforeGRU without its output reserve.

    Args:
      x, mask, initial_h, kernel, recurrent_kernel, bias, input_dropout, recurrent_dropout: as the
        op takes them.
      activation, recurrent_activation: attributes of the op.
      **loop: its attributes go_backwards, zero_output_for_mask and return_sequences.

    Returns:
      output, final_h.
    """
    dtype = x.dtype
    arguments = (x, initial_h, kernel, recurrent_kernel, bias, input_dropout, recurrent_dropout)
    x, initial_h, kernel, recurrent_kernel, bias, input_dropout, recurrent_dropout = cast(
        arguments, compute_dtype(dtype)
    )
    *kernels, candidate_kernel = tf.split(recurrent_kernel, 3, axis=-1)
    gates_kernel = tf.concat(kernels, axis=-1)
    of_candidate, of_gate = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]

    def cell(x_terms: tf.Tensor, h: tf.Tensor) -> list[tf.Tensor]:
        xz, xr, xh = tf.split(x_terms, 3, axis=-1)
        hz, hr = tf.split(_per_gate(h, recurrent_dropout, gates_kernel, 2), 2, axis=-1)
        z = of_gate(xz + hz)
        dropped = h if is_absent(recurrent_dropout) else h * recurrent_dropout[2]
        hh = tf.matmul(of_gate(xr + hr) * dropped, candidate_kernel)
        return [z * h + (1 - z) * of_candidate(xh + hh)]

    x, valid = _time_major(x, mask)
    x_terms = _per_gate(x, input_dropout, kernel, 3)
    if not is_absent(bias):
        x_terms += bias
    return cast(_run(cell, x_terms, valid, [initial_h], **loop), dtype)


def normalized(z: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Layer normalisation without scale and offset.

    Args:
      z: tensor of any rank.
      epsilon: positive; added to the variance.

    Returns:
      z minus its mean over the last axis, divided by its standard deviation over that axis.
    """
    # tf.nn.moments takes the mean for a constant in the variance: second derivatives are wrong.
    z -= tf.reduce_mean(z, axis=-1, keepdims=True)
    epsilon = tf.cast(tf.constant(epsilon, tf.float32), z.dtype)  # as the op has it
    return z * tf.math.rsqrt(tf.reduce_mean(z * z, axis=-1, keepdims=True) + epsilon)


def keras_layer_norm_lstm(
    x: tf.Tensor,
    mask: tf.Tensor,
    initial_h: tf.Tensor,
    initial_c: tf.Tensor,
    kernel: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    bias: tf.Tensor,
    input_gamma: tf.Tensor,
    recurrent_gamma: tf.Tensor,
    state_gamma: tf.Tensor,
    state_beta: tf.Tensor,
    input_dropout: tf.Tensor,
    recurrent_dropout: tf.Tensor,
    *,
    epsilon: float,
    carries_normalized_state: bool,
    **loop: bool,
) -> list[tf.Tensor]:
    """KerasLayerNormLSTM without its output reserve.

    Args:
      x, mask, initial_h, initial_c, kernel, recurrent_kernel, bias, input_gamma, recurrent_gamma,
        state_gamma, state_beta, input_dropout, recurrent_dropout: as the op takes them.
      epsilon, carries_normalized_state: attributes of the op.
      **loop: its attributes go_backwards, zero_output_for_mask and return_sequences.

    Returns:
      output, final_h, final_c.
    """
    dtype = x.dtype
    arguments = (x, initial_h, initial_c, kernel, recurrent_kernel, bias)
    arguments = cast(arguments, compute_dtype(dtype))
    x, initial_h, initial_c, kernel, recurrent_kernel, bias = arguments
    norms = (input_gamma, recurrent_gamma, state_gamma, state_beta)
    input_gamma, recurrent_gamma, state_gamma, state_beta = cast(norms, x.dtype)
    input_dropout, recurrent_dropout = cast((input_dropout, recurrent_dropout), x.dtype)

    def cell(z: tf.Tensor, h: tf.Tensor, c: tf.Tensor) -> list[tf.Tensor]:
        recurrent = _per_gate(h, recurrent_dropout, recurrent_kernel, 4)
        z += recurrent_gamma * normalized(recurrent, epsilon)
        zi, zf, zc, zo = tf.split(z, 4, axis=-1)
        c = tf.sigmoid(zi) * tf.tanh(zc) + tf.sigmoid(zf) * c
        n = state_gamma * normalized(c, epsilon) + state_beta
        return [tf.sigmoid(zo) * tf.tanh(n), n if carries_normalized_state else c]

    x, valid = _time_major(x, mask)
    z = input_gamma * normalized(_per_gate(x, input_dropout, kernel, 4), epsilon)
    if not is_absent(bias):
        z += bias
    return cast(_run(cell, z, valid, [initial_h, initial_c], **loop), dtype)


def keras_layer_norm_gru(
    x: tf.Tensor,
    mask: tf.Tensor,
    initial_h: tf.Tensor,
    kernel: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    bias: tf.Tensor,
    input_gamma: tf.Tensor,
    recurrent_gamma: tf.Tensor,
    input_dropout: tf.Tensor,
    recurrent_dropout: tf.Tensor,
    *,
    epsilon: float,
    **loop: bool,
) -> list[tf.Tensor]:
    """KerasLayerNormGRU without its output reserve.

    Args:
      x, mask, initial_h, kernel, recurrent_kernel, bias, input_gamma, recurrent_gamma,
        input_dropout, recurrent_dropout: as the op takes them.
      epsilon: attribute of the op.
      **loop: its attributes go_backwards, zero_output_for_mask and return_sequences.

    Returns:
      output, final_h.
    """
    dtype = x.dtype
    arguments = (x, initial_h, kernel, recurrent_kernel, bias, input_gamma, recurrent_gamma)
    arguments = cast((*arguments, input_dropout, recurrent_dropout), compute_dtype(dtype))
    x, initial_h, kernel, recurrent_kernel, bias, *others = arguments
    input_gamma, recurrent_gamma, input_dropout, recurrent_dropout = others
    input_bias, recurrent_bias = (0.0, 0.0) if is_absent(bias) else tf.unstack(bias)

    def cell(x_terms: tf.Tensor, h: tf.Tensor) -> list[tf.Tensor]:
        h_terms = normalized(_per_gate(h, recurrent_dropout, recurrent_kernel, 3), epsilon)
        h_terms = recurrent_gamma * h_terms + recurrent_bias
        xz, xr, xh = tf.split(x_terms, 3, axis=-1)
        hz, hr, hh = tf.split(h_terms, 3, axis=-1)
        z = tf.sigmoid(xz + hz)
        return [z * h + (1 - z) * tf.tanh(xh + tf.sigmoid(xr + hr) * hh)]

    x, valid = _time_major(x, mask)
    x_terms = input_gamma * normalized(_per_gate(x, input_dropout, kernel, 3), epsilon)
    return cast(_run(cell, x_terms + input_bias, valid, [initial_h], **loop), dtype)


def keras_simple_rnn(
    x: tf.Tensor,
    mask: tf.Tensor,
    initial_h: tf.Tensor,
    kernel: tf.Tensor,
    recurrent_kernel: tf.Tensor,
    bias: tf.Tensor,
    input_dropout: tf.Tensor,
    recurrent_dropout: tf.Tensor,
    *,
    activation: str,
    **loop: bool,
) -> list[tf.Tensor]:
    """KerasSimpleRNN without its output reserve.

    Args:
      x, mask, initial_h, kernel, recurrent_kernel, bias, input_dropout, recurrent_dropout: as the
        op takes them.
      activation: attribute of the op.
      **loop: its attributes go_backwards, zero_output_for_mask and return_sequences.

    Returns:
      output, final_h.
    """
    dtype = x.dtype
    arguments = (x, initial_h, kernel, recurrent_kernel, bias, input_dropout, recurrent_dropout)
    x, initial_h, kernel, recurrent_kernel, bias, input_dropout, recurrent_dropout = cast(
        arguments, compute_dtype(dtype)
    )
    function = ACTIVATIONS[activation]

    def cell(z: tf.Tensor, h: tf.Tensor) -> list[tf.Tensor]:
        return [function(z + _per_gate(h, recurrent_dropout, recurrent_kernel, 1))]

    x, valid = _time_major(x, mask)
    z = _per_gate(x, input_dropout, kernel, 1)
    if not is_absent(bias):
        z += bias
    return cast(_run(cell, z, valid, [initial_h], **loop), dtype)


# The function of each op.
LAYERS: dict[str, Callable[..., list[tf.Tensor]]] = {
    "KerasLSTM": keras_lstm,
    "KerasGRU": keras_gru,
    "KerasResetBeforeGRU": keras_reset_before_gru,
    "KerasLayerNormLSTM": keras_layer_norm_lstm,
    "KerasLayerNormGRU": keras_layer_norm_gru,
    "KerasSimpleRNN": keras_simple_rnn,
}
