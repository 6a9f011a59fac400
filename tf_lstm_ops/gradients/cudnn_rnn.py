"""Gradients of the CudnnRNN ops: first derivatives of our own ops, second ones of all ops.

TensorFlow itself has the first derivatives of the stock ops. On a GPU they get a copy of the
reserve.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_lstm_ops import _placement, op_definitions
from tf_lstm_ops.composite import cudnn_rnn as composite
from tf_lstm_ops.composite.common import copy_of_reserve
from tf_lstm_ops.gradients.common import Gradient, attributes, filled, vector_jacobian

_INPUTS = 4  # input, input_h, input_c, params
_RESERVE = 3  # reserve_space among the outputs


def _first(name: str) -> Gradient:
    backprop = name.replace("CudnnRNN", "CudnnRNNBackprop")

    def gradient(op: tf.Operation, *grads: tf.Tensor) -> list[tf.Tensor]:
        settings = attributes(op, op_definitions.attributes(backprop))
        outputs = op.outputs
        if not op.get_attr("is_training"):  # activations were not saved: run the pass again
            settings["dropout"] = 0.0
            outputs = op_definitions.function(name)(*op.inputs, is_training=True, **settings)
        results, saved = outputs[:3], outputs[3:]
        output_grads = filled(grads[:3], results)
        found = op_definitions.function(backprop)(
            *op.inputs, *results, *output_grads, *saved, **settings
        )
        return [*found, *[None for _ in op.inputs[_INPUTS:]]]  # sequence_lengths has none

    return gradient


class _WithOutputs:
    """An op as a gradient function gets it, with other outputs."""

    def __init__(self, op: tf.Operation, outputs: list[tf.Tensor]) -> None:
        self._op, self.outputs = op, outputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._op, name)


def _with_reserve_of_its_own(original: Gradient, op: tf.Operation, *grads: tf.Tensor) -> Any:
    """TensorFlow's gradient of a stock op. cuDNN's backward pass writes to reserve_space, and
    TensorFlow gives the only one to each pass, so that a second pass of one call is wrong."""
    if not (_placement.may_use_cuda() and op.get_attr("is_training")):
        return original(op, *grads)
    outputs = list(op.outputs)
    outputs[_RESERVE] = copy_of_reserve(outputs[_RESERVE])
    return original(_WithOutputs(op, outputs), *grads)


def _dropout_mask(reserve_space: Any, dropout: float, checked_by: Any) -> Any:
    """The mask of a call. The op takes the sizes from reserve_space, which `checked_by` checks."""
    if dropout == 0:
        return None
    # A control dependency would not do: TensorFlow folds an op of constants before any check runs.
    # Both branches are the same; it is the condition that must be known first.
    is_checked = tf.reduce_all(tf.equal(checked_by, checked_by))
    checked = tf.where(is_checked, reserve_space, reserve_space)
    return op_definitions.function("CudnnRNNDropoutMask")(reserve_space=checked)


def _second(name: str) -> Gradient:
    """The gradient of a Backprop op.

    Its inputs output, output_h, output_c and reserve_space are functions of the other inputs. The
    whole derivative goes through the composite of the forward pass, so these have none of their
    own.
    """
    is_v3 = name.endswith("V3")

    def gradient(op: tf.Operation, *grads: tf.Tensor) -> list[tf.Tensor]:
        settings = attributes(op, op_definitions.attributes(name))
        settings = composite.model_attributes(settings)
        first = _INPUTS + is_v3  # of output, output_h, output_c, their gradients, reserve_space
        lengths = op.inputs[_INPUTS] if is_v3 else None
        output_grads, saved = op.inputs[first + 3 : first + 6], op.inputs[first + 6 :]
        mask = _dropout_mask(saved[0], op.get_attr("dropout"), op.outputs[0])

        def composed(*values: Any) -> Any:
            inputs, output_grads = list(values[:_INPUTS]), list(values[_INPUTS:])
            return composite.cudnn_rnn_backprop(inputs, output_grads, lengths, mask, **settings)

        found = vector_jacobian(composed, [*op.inputs[:_INPUTS], *output_grads], grads)
        none = [None]
        return [*found[:_INPUTS], *none * (is_v3 + 3), *found[_INPUTS:], *none * len(saved)]

    return gradient


def _of_params_to_canonical(version: str) -> Gradient:
    """Both conversions only move elements, so the gradient of one is the other."""
    inverse = f"CudnnRNNCanonicalToParams{version}"

    def gradient(op: tf.Operation, *grads: tf.Tensor) -> list[tf.Tensor]:
        output_grads = filled(grads, op.outputs)
        weights = int(op.get_attr("num_params_weights" if version else "num_params"))
        params_grad = op_definitions.function(inverse)(
            *op.inputs[:3],
            weights=output_grads[:weights],
            biases=output_grads[weights:],
            **attributes(op, op_definitions.attributes(inverse)),
        )
        return [None, None, None, params_grad]

    return gradient


def _of_canonical_to_params(version: str) -> Gradient:
    inverse = f"CudnnRNNParamsToCanonical{version}"

    def gradient(op: tf.Operation, params_grad: Any) -> list[tf.Tensor]:
        found = op_definitions.function(inverse)(
            *op.inputs[:3],
            params=params_grad,
            **attributes(op, op_definitions.attributes(inverse)),
        )
        grads = [*found.weights, *found.biases]
        inputs = op.inputs[3:]
        shaped = [tf.reshape(g, tf.shape(v)) for g, v in zip(grads, inputs, strict=True)]
        return [None, None, None, *shaped]

    return gradient


_STOCK: dict[str, Gradient] = {
    "CudnnRNNBackprop": _second("CudnnRNNBackprop"),
    "CudnnRNNBackpropV2": _second("CudnnRNNBackpropV2"),
    "CudnnRNNBackpropV3": _second("CudnnRNNBackpropV3"),
    "CudnnRNNParamsToCanonical": _of_params_to_canonical(""),
    "CudnnRNNParamsToCanonicalV2": _of_params_to_canonical("V2"),
    "CudnnRNNCanonicalToParams": _of_canonical_to_params(""),
    "CudnnRNNCanonicalToParamsV2": _of_canonical_to_params("V2"),
}

GRADIENTS: dict[str, Gradient] = {
    **_STOCK,
    **{f"TfLstmOps>{name}": gradient for name, gradient in _STOCK.items()},
    **{f"TfLstmOps>{name}": _first(name) for name in ("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")},
}

# In place of TensorFlow's own gradients of its ops.
AROUND = {name: _with_reserve_of_its_own for name in ("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")}

NOT_DIFFERENTIABLE = ("TfLstmOps>CudnnRNNDropoutMask", "TfLstmOps>CudnnRNNParamsSize")
