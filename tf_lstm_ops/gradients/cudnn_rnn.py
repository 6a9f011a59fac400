"""Gradients of the cuDNN family: first ones of our own names, second ones of all.

TensorFlow has first ones of the stock names itself.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_lstm_ops import _library, composite
from tf_lstm_ops.gradients.common import Gradient, attributes, filled, vector_jacobian

_MODEL = ("rnn_mode", "input_mode", "direction", "dropout", "seed", "seed2")
_V3 = ("num_proj", "time_major")
_INPUTS = 4  # input, input_h, input_c, params


def _first(name: str) -> Gradient:
    version = name.removeprefix("CudnnRNN").lower()

    def gradient(op: Any, *grads: Any) -> list[Any]:
        if not op.get_attr("is_training"):
            raise ValueError(f"To use {name} in gradients, is_training must be set to True.")
        function = f"tf_lstm_ops_cudnn_rnn_backprop{'_' if version else ''}{version}"
        results, kept = op.outputs[:3], op.outputs[3:]
        found = getattr(_library.load(), function)(
            *op.inputs,
            *results,
            *filled(grads[:3], results),
            *kept,
            **attributes(op, (*_MODEL, *(_V3 if version == "v3" else ()))),
        )
        return [*found, *[None for _ in op.inputs[_INPUTS:]]]  # sequence_lengths have none

    return gradient


def _dropout_mask(reserve_space: Any, dropout: float) -> Any:
    if dropout == 0:
        return None
    return _library.load().tf_lstm_ops_cudnn_rnn_dropout_mask(reserve_space=reserve_space)


def _second(name: str) -> Gradient:
    """The gradient of a Backprop op.

    The forward op's outputs and reserve_space, which it takes too, are functions of its other
    inputs: the whole derivative goes through the forward composite, and they have none.
    """
    is_v3 = name.endswith("V3")

    def gradient(op: Any, *grads: Any) -> list[Any]:
        settings = {"num_proj": 0, "time_major": True}
        settings |= attributes(op, ("rnn_mode", "input_mode", "direction", *(_V3 if is_v3 else ())))
        first = _INPUTS + is_v3  # of output, output_h, output_c, their gradients, reserve_space
        lengths = op.inputs[_INPUTS] if is_v3 else None
        upstream, kept = op.inputs[first + 3 : first + 6], op.inputs[first + 6 :]
        mask = _dropout_mask(kept[0], op.get_attr("dropout"))

        def composed(*values: Any) -> Any:
            inputs, upstream = list(values[:_INPUTS]), list(values[_INPUTS:])
            return composite.cudnn_rnn_backprop(inputs, upstream, lengths, mask, **settings)

        found = vector_jacobian(composed, [*op.inputs[:_INPUTS], *upstream], grads)
        none = [None]
        return [*found[:_INPUTS], *none * (is_v3 + 3), *found[_INPUTS:], *none * len(kept)]

    return gradient


def _of_from_params(version: str) -> Gradient:
    """The gradient of ParamsToCanonical: both move elements, so it is the way back."""

    def gradient(op: Any, *grads: Any) -> list[Any]:
        upstream = filled(grads, op.outputs)
        weights = int(op.get_attr("num_params_weights" if version else "num_params"))
        function = f"tf_lstm_ops_cudnn_rnn_canonical_to_params{version}"
        params = getattr(_library.load(), function)(
            *op.inputs[:3],
            weights=upstream[:weights],
            biases=upstream[weights:],
            **attributes(op, (*_MODEL, *(("num_proj",) if version else ()))),
        )
        return [None, None, None, params]

    return gradient


def _of_to_params(version: str) -> Gradient:
    counts = ("num_params_weights", "num_params_biases") if version else ("num_params",)

    def gradient(op: Any, params_grad: Any) -> list[Any]:
        function = f"tf_lstm_ops_cudnn_rnn_params_to_canonical{version}"
        found = getattr(_library.load(), function)(
            *op.inputs[:3],
            params=params_grad,
            **attributes(op, (*_MODEL, *counts, *(("num_proj",) if version else ()))),
        )
        parts = [*found.weights, *found.biases]
        given = op.inputs[3:]
        shaped = [tf.reshape(g, tf.shape(v)) for g, v in zip(parts, given, strict=True)]
        return [None, None, None, *shaped]

    return gradient


_STOCK: dict[str, Gradient] = {
    "CudnnRNNBackprop": _second("CudnnRNNBackprop"),
    "CudnnRNNBackpropV2": _second("CudnnRNNBackpropV2"),
    "CudnnRNNBackpropV3": _second("CudnnRNNBackpropV3"),
    "CudnnRNNParamsToCanonical": _of_from_params(""),
    "CudnnRNNParamsToCanonicalV2": _of_from_params("_v2"),
    "CudnnRNNCanonicalToParams": _of_to_params(""),
    "CudnnRNNCanonicalToParamsV2": _of_to_params("_v2"),
}

GRADIENTS: dict[str, Gradient] = {
    **_STOCK,
    **{f"TfLstmOps>{name}": gradient for name, gradient in _STOCK.items()},
    **{f"TfLstmOps>{name}": _first(name) for name in ("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")},
}

WITHOUT_GRADIENT = ("TfLstmOps>CudnnRNNDropoutMask", "TfLstmOps>CudnnRNNParamsSize")
