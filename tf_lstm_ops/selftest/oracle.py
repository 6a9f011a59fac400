"""The expected results of the CPU's kernels: the equations in plain TensorFlow ops, in float64.

A comparison of the CPU with itself would say nothing. The equations are those of `composite`, in
float64, of inputs that have been rounded to the type of the check. No kernel of this package
computes them. Only the mask of dropout, which is random, is read from a kernel.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_lstm_ops import composite, op_definitions
from tf_lstm_ops.composite import cudnn_rnn
from tf_lstm_ops.raw_ops import common

DTYPE = tf.float64
NAME = "plain TensorFlow ops in float64"  # in reports


def is_oracle(device: str) -> bool:
    """Whether the results on a device are compared with the oracle, not with the CPU's kernels.

    Args:
      device: such as "CPU:0".

    Returns:
      True for a CPU.
    """
    return device.startswith("CPU")


def constant(value: Any, dtype: tf.DType) -> tf.Tensor:
    """A constant of the oracle.

    Args:
      value: an array.
      dtype: the type of the check, to which the value is rounded.

    Returns:
      A tensor of float64.
    """
    return tf.cast(tf.constant(value, dtype), DTYPE)


def call(op: str, **arguments: Any) -> Any:
    """What an op must return.

    Args:
      op: the op's name without its namespace.
      **arguments: its inputs and attributes by name, with tensors of float64.

    Returns:
      The results, as the op returns them; of a gradient op a list of the gradients.
    """
    given = {
        **op_definitions.defaults(op),
        **arguments,
    }  # some composites take the inputs in the op's order
    arguments = {name: given[name] for name in op_definitions.inputs(op)}
    arguments |= {name: given[name] for name in op_definitions.attributes(op)}
    if arguments.get("dropout"):
        is_forward = op == "CudnnRNNV3"
        return _with_dropout(arguments) if is_forward else _backprop_with_dropout(arguments)
    with composite.plain_ops():
        return common.run(op, arguments)


def _with_dropout(arguments: dict[str, Any]) -> Any:
    """CudnnRNNV3 with the kernel's dropout mask, which is in reserve_space of the result.

    The mask is the only thing that comes from a kernel: no equation says which elements a seed
    drops.
    """
    op = op_definitions.function("CudnnRNNV3")
    given = op(**arguments)
    mask = op_definitions.function("CudnnRNNDropoutMask")(reserve_space=given.reserve_space)
    rate = arguments["dropout"]
    kept = tf.abs(mask * (1 - rate) - 1) < 1e-6
    share = float(tf.reduce_mean(tf.cast(kept, DTYPE)))
    if not tf.reduce_all(kept | (mask == 0)) or abs(share - (1 - rate)) > 0.2:
        raise RuntimeError(f"the dropout mask is wrong: {share:.0%} of the elements are kept")
    inputs = {name: arguments[name] for name in op_definitions.inputs("CudnnRNNV3")}
    model = cudnn_rnn.model_attributes(arguments)
    output, h, c = cudnn_rnn.cudnn_rnn(**inputs, dropout_mask=mask, **model)
    return given._replace(output=output, output_h=h, output_c=c, reserve_space=mask)


def _backprop_with_dropout(arguments: dict[str, Any]) -> list[Any]:
    *inputs, lengths = (arguments[name] for name in op_definitions.inputs("CudnnRNNV3"))
    output_grads = [arguments[f"output{end}_backprop"] for end in ("", "_h", "_c")]
    mask, model = arguments["reserve_space"], cudnn_rnn.model_attributes(arguments)
    return cudnn_rnn.cudnn_rnn_backprop(inputs, output_grads, lengths, mask, **model)
