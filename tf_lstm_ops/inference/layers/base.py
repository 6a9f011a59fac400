"""The base of all layers, inputs, and wrappers."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

from tf_lstm_ops.inference import file, graph
from tf_lstm_ops.inference.graph import Value

_MAX_BATCH_AXES = 4


class Layer(abc.ABC):
    """A layer of a session, with its weights. It is called on values, and returns values.

    A sequence has the shape [B, T, ...]. No layer checks shapes of values: a `Session` does, when
    it is made or called.

    Args:
      name: for messages; None: the name of the class.

    Attributes:
      name: the argument.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name or type(self).__name__

    def __call__(self, *inputs: Any) -> Any:
        """Adds the layer to the graph of its inputs.

        Args:
          *inputs: values; a layer that merges takes several, or a list of them.

        Returns:
          A value, or a tuple of them.
        """
        return self.apply(_values(self, inputs), 1)

    def apply(self, inputs: Sequence[Value], batch_axes: int) -> Any:
        """Adds the layer to the graph of its inputs.

        Args:
          inputs: values; of a recurrent layer the initial states follow.
          batch_axes: how many axes count as the batch: 1, or more within TimeDistributed.

        Returns:
          A value, or a tuple of them.
        """
        return self._apply(inputs, batch_axes)

    @abc.abstractmethod
    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Any:
        pass


def _values(layer: Layer, inputs: Sequence[Any]) -> list[Value]:
    found: list[Value] = []
    for each in inputs:
        found += each if isinstance(each, list | tuple) else [each]
    if not found or not all(isinstance(each, Value) for each in found):
        raise TypeError(
            f"layer {layer.name} must be called on values, which layers.Input and other layers "
            f"return. Received: {[type(each).__name__ for each in found]}"
        )
    return found


def one(layer: Layer, inputs: Sequence[Value]) -> Value:
    """The only input of a layer.

    Args:
      layer: the layer.
      inputs: its inputs.

    Returns:
      The input.

    Raises:
      ValueError: there are several.
    """
    if len(inputs) != 1:
        raise ValueError(f"layer {layer.name} must have one input. Received: {len(inputs)}")
    return inputs[0]


class Record(Layer):
    """A layer of one input and one output that its record describes.

    Args:
      record: the record.
      passes_mask: whether the mask of the input is that of the output.
    """

    def __init__(self, record: file.Layer, passes_mask: bool = False) -> None:
        super().__init__(record.name)
        self.record, self._passes_mask = record, passes_mask

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Value:
        x = one(self, inputs)
        (y,) = graph.node(self.record, [x], batch_axes)
        return y.with_mask(x.mask) if self._passes_mask else y


def Input(shape: Sequence[int | None], dtype: str = "float32", name: str = "") -> Value:
    """An input of a model.

    >>> from tf_lstm_ops.inference import layers
    >>> x = layers.Input((None, 8))  # [B, T, 8]

    Args:
      shape: the sizes of 1 to 5 axes behind the batch; None: any size.
      dtype: "float32", or "int32" for the indices of an embedding.
      name: of the input.

    Returns:
      The value.

    Raises:
      ValueError: shape has no such axes, or dtype is another one.
    """
    dims = tuple(None if size is None else int(size) for size in shape)
    if not 1 <= len(dims) <= 5 or any(size is not None and size < 1 for size in dims):
        raise ValueError(
            f"shape must have 1 to 5 axes of a positive size or None. Received: shape={shape}"
        )
    if dtype not in ("float32", "int32"):
        raise ValueError(f"dtype must be 'float32' or 'int32'. Received: dtype={dtype!r}")
    return graph.input_value(file.Input(name, dtype, dims))


class Identity(Layer):
    """A layer that does nothing, such as Dropout in inference."""

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Value:
        return one(self, inputs)


class Chain(Layer):
    """Layers one after the other.

    Args:
      layers: one or more.
      name: for messages.

    Raises:
      TypeError: an element is no layer, or there is none.
    """

    def __init__(self, layers: Sequence[Layer], name: str | None = None) -> None:
        super().__init__(name)
        self._parts = [*layers]
        wrong = [type(each).__name__ for each in self._parts if not isinstance(each, Layer)]
        if wrong or not self._parts:
            raise TypeError(
                "layers must be a list of layers of tf_lstm_ops.inference.layers, one or more. "
                f"Received: {wrong or 'an empty list'}. A session also takes weights, and pairs "
                "(kernel [I, units], bias [units])"
            )

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Any:
        result: Any = inputs
        for layer in self._parts:
            result = layer.apply(
                result if isinstance(result, list | tuple) else [result], batch_axes
            )
        return result


class TimeDistributed(Layer):
    """A layer that computes each step by itself: [B, T, ...] as T · B arrays [...].

    >>> from tf_lstm_ops.inference import layers
    >>> windows = layers.Input((None, 64, 3))  # 64 steps of 3 features, for each step
    >>> y = layers.TimeDistributed(layers.GlobalMaxPooling1D())(windows)  # [B, T, 3]

    Args:
      layer: a layer, or a list of layers, which are a chain.
      name: for messages.
    """

    def __init__(self, layer: Layer | Sequence[Layer], name: str | None = None) -> None:
        super().__init__(name)
        self.layer = layer if isinstance(layer, Layer) else Chain(layer)

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Any:
        if batch_axes == _MAX_BATCH_AXES:
            raise ValueError(f"at most {_MAX_BATCH_AXES - 1} TimeDistributed may be nested")
        x = one(self, inputs)
        # Of the steps within a step only a mask with more axes says something.
        is_inner = x.mask is not None and graph.mask_axes(x.mask) > batch_axes + 1
        y = self.layer.apply([x if is_inner else x.with_mask(None)], batch_axes + 1)
        return y.with_mask(x.mask) if isinstance(y, Value) else y
