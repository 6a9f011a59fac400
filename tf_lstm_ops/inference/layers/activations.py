"""Layers that are functions of one number, and softmax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf_lstm_ops import _activations
from tf_lstm_ops.inference import file
from tf_lstm_ops.inference.layers import checks
from tf_lstm_ops.inference.layers.base import Identity, Layer, Record

_LARGEST = float(np.finfo(np.float32).max)  # a bound that bounds nothing
# An activation of a layer: a name, or a name and numbers.
Function = str | tuple[str, Sequence[float]]

# Names for users.
_NAMES = (*(each.name for each in _activations.TABLE if each.is_named), *_activations.ALIASES)


def fields(name: str, function: Function) -> dict[str, Any]:
    """The fields of a record with an activation.

    Args:
      name: of the argument, for messages.
      function: a name of `names`, or a name and the numbers of the format.

    Returns:
      The fields activation and numbers.

    Raises:
      ValueError: the name is unknown, or numbers are not finite or too many.
    """
    if isinstance(function, str):
        checks.choice(name, function, _NAMES)
        function = _activations.ALIASES.get(function, function)
    if isinstance(function, str):
        function = function, _activations.BY_NAME[function].defaults
    text, numbers = function
    checks.choice(name, text, [*_activations.BY_NAME])
    fits = len(numbers) == len(_activations.BY_NAME[text].defaults)
    if not fits or not np.all(np.isfinite(np.asarray(numbers, np.float32))):
        raise ValueError(f"{name}: the numbers of {text} must be finite. Received: {numbers}")
    return {"activation": file.ALL_FUNCTIONS[text], "numbers": tuple(map(float, numbers))}


class Activation(Record):
    """An activation function by its name.

    Args:
      activation: a name of Keras 3, such as "tanh", "softmax" or "mish", with its default numbers.
      name: for messages.

    Raises:
      ValueError: the name is unknown.
    """

    def __init__(self, activation: Function, name: str | None = None) -> None:
        text = name or type(self).__name__
        super().__init__(
            file.Layer(text, file.ACTIVATION, **fields("activation", activation)), passes_mask=True
        )


class ReLU(Activation):
    """max(z, 0), with the arguments of Keras' layer.

    Args:
      max_value: the largest result, positive; None: any.
      negative_slope: of z below the threshold.
      threshold: from which on the result is z.
      name: for messages.

    Raises:
      ValueError: max_value is not positive, or a number is not finite.
    """

    def __init__(
        self,
        max_value: float | None = None,
        negative_slope: float = 0.0,
        threshold: float = 0.0,
        name: str | None = None,
    ) -> None:
        if max_value is not None and not max_value > 0:
            raise ValueError(f"max_value must be positive. Received: max_value={max_value}")
        numbers = (negative_slope, max_value or 0.0, threshold)
        super().__init__(("relu_with", numbers) if any(numbers) else "relu", name)


def clipped(low: float | None, high: float | None, name: str | None = None) -> list[Layer]:
    """max(z, low), then min of it and high.

    Args:
      low: the smallest result; None: any.
      high: the largest result, positive; None: any.
      name: for messages.

    Returns:
      The layers, one after the other.

    Raises:
      ValueError: high is not positive.
    """
    low, high = (
        None if bound is None or sign * bound >= _LARGEST else float(bound)
        for bound, sign in ((low, -1), (high, 1))
    )
    if (low, high) == (-1.0, 1.0):
        return [Activation("hard_tanh", name)]
    if low == 0:
        return [ReLU(high, name=name)]
    found: list[Layer] = [] if low is None else [Activation(("threshold", (low, low)), name)]
    if high is not None:
        found.append(ReLU(high, negative_slope=1.0, name=name))
    return found or [Identity(name)]


# The functions by the values of `approximate` in PyTorch and ONNX.
GELU: Mapping[str, Function] = {"none": "gelu", "tanh": ("gelu_tanh", ())}


class LeakyReLU(Activation):
    """z if it is positive, else negative_slope · z.

    Args:
      negative_slope: the slope.
      name: for messages.

    Raises:
      ValueError: the slope is not finite.
    """

    def __init__(self, negative_slope: float = 0.3, name: str | None = None) -> None:
        super().__init__(("relu_with", (negative_slope, 0.0, 0.0)), name)


class ELU(Activation):
    """z if it is positive, else alpha · (e^z - 1).

    Args:
      alpha: the factor.
      name: for messages.

    Raises:
      ValueError: alpha is not finite.
    """

    def __init__(self, alpha: float = 1.0, name: str | None = None) -> None:
        super().__init__(("elu_with", (alpha,)), name)


class Softmax(Activation):
    """Softmax over the last axis.

    Args:
      name: for messages.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__("softmax", name)


class PReLU(Record):
    """z if it is positive, else alpha · z, with a factor for each element.

    Args:
      alpha: of the last axes of the input, such as [C] or [T, C].
      name: for messages.

    Raises:
      ValueError: alpha has no element.
    """

    def __init__(self, alpha: Any, name: str | None = None) -> None:
        alpha = checks.weight("alpha", np.ravel(np.asarray(alpha)), [None])
        record = file.Layer(
            name or "PReLU",
            file.ACTIVATION,
            *(alpha.size, alpha.size, alpha.size),
            activation=file.ALL_FUNCTIONS["prelu"],
            arrays=[{"kernel": alpha}],
        )
        super().__init__(record, passes_mask=True)
