"""The ops behind tf_lstm_ops.keras.

B batch, T time, I input size, H units, P size of h (less than H with a projection).

A function of an op takes its inputs and attributes by name, but not its attribute training. It
returns the op's outputs without the reserve: output, final_h and, of an LSTM, final_c.
"""
# Equations: cc/core/*_cell.h, docs/reference/keras.md.

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

from tf_lstm_ops import _cells
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

_Cell = Callable[..., list[tf.Tensor]]  # of `scan`, on the input's terms [B, G*H] and the states

# The function of each op.
LAYERS: dict[str, Callable[..., list[tf.Tensor]]] = {}


def _product(value: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """[B, K] or [T, B, K] times [K, Z]."""
    if value.shape.rank == 2:
        return tf.matmul(value, weights)
    return tf.einsum("tbk,kz->tbz", value, weights)


def _per_gate(value: tf.Tensor, dropout: Any, weights: tf.Tensor, gates: int) -> tf.Tensor:
    """value times weights. Each gate multiplies the value by its own dropout [B, K] first."""
    if dropout is None:
        return _product(value, weights)
    columns = tf.split(weights, gates, axis=-1)
    products = [_product(value * dropout[g], column) for g, column in enumerate(columns)]
    return tf.concat(products, axis=-1)


def _plus(terms: tf.Tensor, added: tf.Tensor | None) -> tf.Tensor:
    # TensorFlow Lite's int8 has no range for a sum or a product with zero.
    return terms if added is None else terms + added


def _looking_at(c: tf.Tensor, z: tf.Tensor, peephole: tf.Tensor | None) -> tf.Tensor:
    """The pre-activation z of a gate with its peephole, which may be None."""
    return z if peephole is None else z + peephole * c


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


def _layer(op: str) -> Callable[[Callable[..., _Cell]], Callable[..., list[tf.Tensor]]]:
    """Makes the function of an op of what makes its cell.

    That is a function of the op's inputs, in the type of the computation and None if absent, and of
    the attributes that only some ops have. A bias with a row for each side is split: the input's
    terms, which the cell gets, have the first row, and recurrent_bias is the second one.
    """
    gates, reset_after = len(_cells.BY_OP[op].gates), _cells.BY_OP[op].reset_after

    def decorated(cell_of: Callable[..., _Cell]) -> Callable[..., list[tf.Tensor]]:
        @functools.wraps(cell_of)
        def layer(
            *,
            x: tf.Tensor,
            mask: tf.Tensor,
            go_backwards: bool,
            zero_output_for_mask: bool,
            return_sequences: bool,
            **others: Any,
        ) -> list[tf.Tensor]:
            dtype = x.dtype
            names = [name for name, value in others.items() if tf.is_tensor(value)]
            given = [x, *(others.pop(name) for name in names)]
            x, *inputs = cast(given, compute_dtype(dtype))
            present = [None if is_absent(value) else value for value in inputs]
            w = SimpleNamespace(**dict(zip(names, present, strict=True)))
            bias, w.recurrent_bias = w.bias, None
            if reset_after and bias is not None:
                bias, w.recurrent_bias = tf.unstack(bias)
            x, valid = tf.transpose(x, [1, 0, 2]), None
            if not is_absent(mask):
                valid = tf.transpose(mask)
                x = zero_where_not(valid, x)
            terms = _per_gate(x, w.input_dropout, w.kernel, gates)
            if "epsilon" in others:
                terms = w.input_gamma * normalized(terms, others["epsilon"])
            outputs, last, states = scan(
                cell_of(w, **others),
                _plus(terms, bias),
                valid,
                [getattr(w, f"initial_{state}") for state in _cells.BY_OP[op].states],
                reverse=go_backwards,
                zero_output=zero_output_for_mask,
            )
            steps = (
                tf.transpose(outputs, [1, 0, 2]) if return_sequences else tf.expand_dims(last, 1)
            )
            return cast([steps, *states], dtype)

        LAYERS[op] = layer
        return layer

    return decorated


@_layer("KerasLSTM")
def _lstm(
    w: SimpleNamespace,
    *,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
    cell_clip: float,
    proj_clip: float = 0.0,
) -> _Cell:
    """KerasLSTM."""
    wci, wcf, wco = [None] * 3 if w.peephole is None else tf.unstack(w.peephole)
    of_state, of_gate = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]

    def cell(z: tf.Tensor, h: tf.Tensor, c: tf.Tensor) -> list[tf.Tensor]:
        z += _per_gate(h, w.recurrent_dropout, w.recurrent_kernel, 4)
        zi, zf, zc, zo = tf.split(z, 4, axis=-1)
        zi, zf = _looking_at(c, zi, wci), _looking_at(c, zf, wcf)
        c = of_gate(zi) * of_state(zc) + of_gate(zf) * c
        c = straight_through_clip(c, cell_clip)
        h = of_gate(_looking_at(c, zo, wco)) * of_state(c)
        if w.projection is not None:
            h = masked_clip(tf.matmul(h, w.projection), proj_clip)
        return [h, c]

    return cell


def _gru_step(
    x_terms: tf.Tensor, h_terms: tf.Tensor, h: tf.Tensor, of_candidate: Any, of_gate: Any
) -> list[tf.Tensor]:
    """With the reset gate behind the matrix product."""
    xz, xr, xh = tf.split(x_terms, 3, axis=-1)
    hz, hr, hh = tf.split(h_terms, 3, axis=-1)
    z = of_gate(xz + hz)
    return [z * h + (1 - z) * of_candidate(xh + of_gate(xr + hr) * hh)]


@_layer("KerasGRU")
def _gru(
    w: SimpleNamespace, *, activation: str = "tanh", recurrent_activation: str = "sigmoid"
) -> _Cell:
    """KerasGRU."""
    functions = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]

    def cell(x_terms: tf.Tensor, h: tf.Tensor) -> list[tf.Tensor]:
        h_terms = _per_gate(h, w.recurrent_dropout, w.recurrent_kernel, 3)
        return _gru_step(x_terms, _plus(h_terms, w.recurrent_bias), h, *functions)

    return cell


@_layer("KerasResetBeforeGRU")
def _reset_before_gru(
    w: SimpleNamespace, *, activation: str = "tanh", recurrent_activation: str = "sigmoid"
) -> _Cell:
    """KerasResetBeforeGRU."""
    *kernels, candidate_kernel = tf.split(w.recurrent_kernel, 3, axis=-1)
    gates_kernel = tf.concat(kernels, axis=-1)
    of_candidate, of_gate = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]

    def cell(x_terms: tf.Tensor, h: tf.Tensor) -> list[tf.Tensor]:
        xz, xr, xh = tf.split(x_terms, 3, axis=-1)
        hz, hr = tf.split(_per_gate(h, w.recurrent_dropout, gates_kernel, 2), 2, axis=-1)
        z = of_gate(xz + hz)
        dropped = h if w.recurrent_dropout is None else h * w.recurrent_dropout[2]
        hh = tf.matmul(of_gate(xr + hr) * dropped, candidate_kernel)
        return [z * h + (1 - z) * of_candidate(xh + hh)]

    return cell


@_layer("KerasLayerNormLSTM")
def _layer_norm_lstm(
    w: SimpleNamespace, *, epsilon: float, carries_normalized_state: bool
) -> _Cell:
    """KerasLayerNormLSTM."""

    def cell(z: tf.Tensor, h: tf.Tensor, c: tf.Tensor) -> list[tf.Tensor]:
        recurrent = _per_gate(h, w.recurrent_dropout, w.recurrent_kernel, 4)
        z += w.recurrent_gamma * normalized(recurrent, epsilon)
        zi, zf, zc, zo = tf.split(z, 4, axis=-1)
        c = tf.sigmoid(zi) * tf.tanh(zc) + tf.sigmoid(zf) * c
        n = w.state_gamma * normalized(c, epsilon) + w.state_beta
        return [tf.sigmoid(zo) * tf.tanh(n), n if carries_normalized_state else c]

    return cell


@_layer("KerasLayerNormGRU")
def _layer_norm_gru(w: SimpleNamespace, *, epsilon: float) -> _Cell:
    """KerasLayerNormGRU."""

    def cell(x_terms: tf.Tensor, h: tf.Tensor) -> list[tf.Tensor]:
        h_terms = normalized(_per_gate(h, w.recurrent_dropout, w.recurrent_kernel, 3), epsilon)
        h_terms = _plus(w.recurrent_gamma * h_terms, w.recurrent_bias)
        return _gru_step(x_terms, h_terms, h, tf.tanh, tf.sigmoid)

    return cell


@_layer("KerasSimpleRNN")
def _simple_rnn(w: SimpleNamespace, *, activation: str) -> _Cell:
    """KerasSimpleRNN."""
    function = ACTIVATIONS[activation]
    return lambda z, h: [function(z + _per_gate(h, w.recurrent_dropout, w.recurrent_kernel, 1))]
