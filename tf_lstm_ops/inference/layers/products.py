"""Layers with products and tables: Dense, Embedding and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_lstm_ops.inference import file, graph
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers import checks
from tf_lstm_ops.inference.layers.activations import Function, fields
from tf_lstm_ops.inference.layers.base import Chain, Layer, Record, one

_PADDINGS = ("valid", "same", "causal")


def _arrays(kernel: Any, bias: Any, units: int) -> list[dict[str, Any]]:
    arrays = {"kernel": kernel}
    if bias is not None:
        arrays["bias"] = checks.weight("bias", bias, [units])
    return [arrays]


class Dense(Record):
    """activation(x W + b) of the last axis.

    Args:
      kernel: W [I, units]. The weight of PyTorch's nn.Linear is its transpose.
      bias: b [units]; None: none.
      activation: a name of Keras 3, such as "tanh".
      name: for messages.

    Raises:
      ValueError: a shape is wrong, or the activation unknown.
    """

    def __init__(
        self,
        kernel: Any,
        bias: Any = None,
        activation: Function = "linear",
        name: str | None = None,
    ) -> None:
        kernel = checks.weight("kernel", kernel, [None, None])
        inputs, units = kernel.shape
        record = file.Layer(
            name or "Dense",
            file.DENSE,
            *(inputs, units, units),
            arrays=_arrays(kernel, bias, units),
            **fields("activation", activation),
        )
        super().__init__(record, passes_mask=True)


class Embedding(Layer):
    """Rows of a table by indices.

    Its input is an `Input` of type int32. An index that is not in the table is an error.

    Args:
      table: [rows, units].
      mask_zero: whether steps with index 0 do not count for recurrent layers behind it.
      name: for messages.

    Raises:
      ValueError: the shape of the table is wrong.
    """

    def __init__(self, table: Any, mask_zero: bool = False, name: str | None = None) -> None:
        super().__init__(name)
        table = checks.weight("table", table, [None, None])
        self._mask_zero = bool(mask_zero)
        self._record = file.Layer(
            self.name,
            file.EMBEDDING,
            input_size=table.shape[0],
            units=table.shape[1],
            flags=file.RETURNS_MASK if mask_zero else 0,
            arrays=[{"kernel": table}],
        )

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Value:
        x = one(self, inputs)
        if not isinstance(x.node, file.Input) or x.node.dtype != "int32":
            raise ValueError(
                f"layer {self.name} must have an Input of dtype 'int32' as its input, not what "
                "another layer computes"
            )
        y, *masks = graph.node(self._record, [x], batch_axes, 1 + self._mask_zero)
        return y.with_mask(masks[0] if masks else None)


def mask_of(marks: Value) -> Value:
    """An input as a mask.

    Args:
      marks: an `Input` of type int32, [B, T], of zeros and ones.

    Returns:
      The mask of the steps with ones.
    """
    mask = Embedding([[0.0], [1.0]], mask_zero=True, name="mask")(marks).mask
    assert mask is not None
    return mask


Padding = str | Sequence[int]


def _windows(
    size: int, strides: Any, padding: Padding, dilation_rate: Any, groups: int
) -> tuple[int, ...]:
    """The integers of a convolution."""
    stride, dilation = checks.size("strides", strides), checks.size("dilation_rate", dilation_rate)
    if not isinstance(padding, str):
        return size, stride, dilation, groups, 0, *checks.pair("padding", padding)
    checks.choice("padding", padding, _PADDINGS)
    before = (size - 1) * dilation if padding == "causal" else 0
    return size, stride, dilation, groups, int(padding == "same"), before, 0


class Conv1D(Record):
    """A convolution over time, [B, T, C] to [B, T', units].

    A causal one with stride 1 can be part of a stream. One with a group for each channel and unit
    is computed as a `DepthwiseConv1D`.

    Args:
      kernel: [k, C / groups, units].
      bias: [units]; None: none.
      strides: steps between windows.
      padding: "valid", "same" or "causal"; or the numbers of zeros before and behind.
      dilation_rate: steps between the elements of a window.
      groups: how many parts the channels have.
      activation: a name of Keras 3.
      name: for messages.

    Raises:
      ValueError: a shape or an argument is wrong.
      TypeError: an argument is no integer.
    """

    def __init__(
        self,
        kernel: Any,
        bias: Any = None,
        strides: int = 1,
        padding: Padding = "valid",
        dilation_rate: int = 1,
        groups: int = 1,
        activation: Function = "linear",
        name: str | None = None,
    ) -> None:
        kernel = checks.weight("kernel", kernel, [None, None, None])
        size, channels, units = kernel.shape
        groups = checks.size("groups", groups)
        if units % groups:
            raise ValueError(f"groups must divide the units {units}. Received: groups={groups}")
        is_depthwise = groups == units > 1 == channels
        if is_depthwise:
            kernel = np.ascontiguousarray(kernel.transpose(0, 2, 1))
        windows = _windows(size, strides, padding, dilation_rate, 0 if is_depthwise else groups)
        record = file.Layer(
            name or "Conv1D",
            file.DEPTHWISE if is_depthwise else file.CONVOLUTION,
            *(channels * groups, units),
            ints=windows,
            arrays=_arrays(kernel, bias, units),
            **fields("activation", activation),
        )
        super().__init__(record)


class DepthwiseConv1D(Record):
    """A convolution of each channel by itself, [B, T, C] to [B, T', C · m].

    Args:
      kernel: [k, C, m].
      bias: [C · m]; None: none.
      strides: steps between windows.
      padding: "valid", "same" or "causal"; or the numbers of zeros before and behind.
      dilation_rate: steps between the elements of a window.
      activation: a name of Keras 3.
      name: for messages.

    Raises:
      ValueError: a shape or an argument is wrong.
      TypeError: an argument is no integer.
    """

    def __init__(
        self,
        kernel: Any,
        bias: Any = None,
        strides: int = 1,
        padding: Padding = "valid",
        dilation_rate: int = 1,
        activation: Function = "linear",
        name: str | None = None,
    ) -> None:
        kernel = checks.weight("kernel", kernel, [None, None, None])
        size, channels, multiplier = kernel.shape
        units = channels * multiplier
        record = file.Layer(
            name or "DepthwiseConv1D",
            file.DEPTHWISE,
            *(channels, units),
            ints=_windows(size, strides, padding, dilation_rate, 0),
            arrays=_arrays(kernel, bias, units),
            **fields("activation", activation),
        )
        super().__init__(record)


class SeparableConv1D(Chain):
    """A depthwise convolution, then a product of the channels.

    Args:
      depthwise_kernel: [k, C, m].
      pointwise_kernel: [1, C · m, units].
      bias: [units]; None: none.
      strides: steps between windows.
      padding: "valid", "same" or "causal"; or the numbers of zeros before and behind.
      dilation_rate: steps between the elements of a window.
      activation: a name of Keras 3.
      name: for messages.

    Raises:
      ValueError: a shape or an argument is wrong.
      TypeError: an argument is no integer.
    """

    def __init__(
        self,
        depthwise_kernel: Any,
        pointwise_kernel: Any,
        bias: Any = None,
        strides: int = 1,
        padding: Padding = "valid",
        dilation_rate: int = 1,
        activation: Function = "linear",
        name: str | None = None,
    ) -> None:
        name = name or "SeparableConv1D"
        depthwise = DepthwiseConv1D(
            depthwise_kernel, None, strides, padding, dilation_rate, name=name
        )
        kernel = checks.weight(
            "pointwise_kernel", pointwise_kernel, [1, depthwise.record.units, None]
        )
        pointwise = Dense(np.ascontiguousarray(kernel[0]), bias, activation, name)
        super().__init__([depthwise, pointwise], name)

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Any:
        return super()._apply([each.with_mask(None) for each in inputs], batch_axes)
