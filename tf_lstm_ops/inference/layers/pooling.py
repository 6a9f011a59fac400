"""Pooling over time, and the first and last step."""

from __future__ import annotations

from collections.abc import Sequence

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import file, graph
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers import checks
from tf_lstm_ops.inference.layers.base import Layer, Record, one
from tf_lstm_ops.inference.layers.shapes import ZeroPadding1D

_MAXIMUM, _AVERAGE, _LAST_STEP, _FIRST_STEP, _SUM = range(5)


class _Pooling(Record):
    _mode: int

    def __init__(
        self,
        pool_size: int = 2,
        strides: int | None = None,
        padding: str = "valid",
        name: str | None = None,
    ) -> None:
        size = checks.size("pool_size", pool_size)
        stride = size if strides is None else checks.size("strides", strides)
        is_same = checks.choice("padding", padding, ("valid", "same")) == "same"
        ints = (size, stride, int(is_same), self._mode)
        super().__init__(file.Layer(name or type(self).__name__, file.POOLING, ints=ints))


class MaxPooling1D(_Pooling):
    """The maximum of windows over time, [B, T, C] to [B, T', C].

    Args:
      pool_size: steps of a window.
      strides: steps between windows; None: pool_size.
      padding: "valid" or "same".
      name: for messages.

    Raises:
      ValueError: an argument is wrong.
      TypeError: an argument is no integer.
    """

    _mode = _MAXIMUM


class AveragePooling1D(_Pooling):
    """The average of windows over time without the padding, [B, T, C] to [B, T', C].

    Args:
      pool_size: steps of a window.
      strides: steps between windows; None: pool_size.
      padding: "valid" or "same".
      name: for messages.

    Raises:
      ValueError: an argument is wrong.
      TypeError: an argument is no integer.
    """

    _mode = _AVERAGE


def pooling(
    kind: type[_Pooling],
    size: int,
    strides: int,
    padding: str | Sequence[int],
    counts_padding: bool = False,
    name: str | None = None,
) -> list[Layer]:
    """Pooling whose padding may be numbers of steps, as other programs have it.

    Args:
      kind: MaxPooling1D or AveragePooling1D.
      size: steps of a window.
      strides: steps between windows.
      padding: "valid", "same", or the steps before and behind.
      counts_padding: whether an average counts the padding, as zeros.
      name: for messages.

    Returns:
      The layers, one after the other.

    Raises:
      ValueError: a session has no such padding, or an argument is wrong.
    """
    counts = counts_padding and kind is AveragePooling1D
    if not isinstance(padding, str):
        is_same = strides == 1 and [*padding] == [(size - 1) // 2, size // 2]
        if counts and any(padding):
            return [ZeroPadding1D(padding, name), kind(size, strides, name=name)]
        padding = "valid" if not any(padding) else "same" if is_same else f"of {[*padding]}"
    if padding not in ("valid", "same") or (padding == "same" and counts):
        refuse(
            "it pads its input. With a maximum, or count_include_pad=False, a session has "
            "padding=0, or padding=(kernel_size - 1) / 2 with stride=1. Received: "
            f"kernel_size={size}, stride={strides}, padding {padding}"
        )
    return [kind(size, strides, padding, name)]


class _WithoutMask(Record):
    _mode: int

    def __init__(self, keepdims: bool = False, name: str | None = None) -> None:
        ints = (self._mode, int(bool(keepdims)))
        super().__init__(file.Layer(name or type(self).__name__, file.GLOBAL_POOLING, ints=ints))


class GlobalMaxPooling1D(_WithoutMask):
    """The maximum over time, [B, T, C] to [B, C]. It has no mask, as in Keras.

    Args:
      keepdims: whether the result is [B, 1, C].
      name: for messages.
    """

    _mode = _MAXIMUM


class GlobalSumPooling1D(_WithoutMask):
    """The sum over time, [B, T, C] to [B, C]. It has no mask.

    Args:
      keepdims: whether the result is [B, 1, C].
      name: for messages.
    """

    _mode = _SUM


class LastStep(_WithoutMask):
    """The last step of a sequence, [B, T, C] to [B, C]; zeros without steps. It has no mask.

    Directly behind an `LSTM`, `GRU` or `SimpleRNN` that reads forwards, or behind layers that
    compute each step by itself, a session computes these layers for the last step only, and of
    zeros without steps. In a stream it is the last step of each call. Behind steps that a mask
    leaves out it is the last one of the array.

    Args:
      keepdims: whether the result is [B, 1, C].
      name: for messages.
    """

    _mode = _LAST_STEP


class FirstStep(_WithoutMask):
    """The first step of a sequence, [B, T, C] to [B, C]; zeros without steps. It has no mask.

    Args:
      keepdims: whether the result is [B, 1, C].
      name: for messages.
    """

    _mode = _FIRST_STEP


class GlobalAveragePooling1D(Layer):
    """The average over the steps that count, [B, T, C] to [B, C].

    Args:
      keepdims: whether the result is [B, 1, C].
      name: for messages.
    """

    def __init__(self, keepdims: bool = False, name: str | None = None) -> None:
        super().__init__(name)
        ints = (_AVERAGE, int(bool(keepdims)))
        self._record = file.Layer(self.name, file.GLOBAL_POOLING, ints=ints)

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Value:
        x = one(self, inputs)
        (y,) = graph.node(self._record, [x, x.mask], batch_axes)
        return y
