"""The masks of Keras 2 in a graph of layers. Keras 3 passes some of them on by other rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras

from tf_lstm_ops import _keras_private

_RECURRENT = (keras.layers.RNN, keras.layers.Bidirectional)
# Layers that pass a mask on in Keras 3 and did not in Keras 2.
_WITHOUT_MASK = (keras.layers.Identity, keras.layers.Normalization, keras.layers.Rescaling)
# In Keras 2 the mask of the result was true where all masks are, whatever inputs have none. In
# Keras 3 it is true where one of them is, and there is none if an input has none.
_MERGES = (
    *(keras.layers.Add, keras.layers.Subtract, keras.layers.Multiply),
    *(keras.layers.Average, keras.layers.Maximum, keras.layers.Minimum),
)


class Masks:
    """Calls layers so that they get the masks which they had in Keras 2.

    A symbolic tensor has the mask of Keras 2 as its mask. When the model runs, Keras 3 computes
    masks anew by its own rules, so a mask that these rules do not give is an argument of the call
    of the layer that uses it. Then `Model.save` writes it, too.
    """

    def __init__(self) -> None:
        # Tensors whose mask will be another one when the model runs, by their ids.
        self._differing: dict[int, Any] = {}
        self._arguments = 0  # the number of masks that are arguments

    def called(self, layer: Any, *inputs: Any, **options: Any) -> Any:
        """Calls a layer on symbolic tensors.

        Args:
          layer: a layer or a model of Keras 3.
          *inputs: its positional arguments.
          **options: the other arguments, without those that are None.

        Returns:
          Its results.

        Raises:
          ValueError: the layer cannot get the mask that it had.
        """
        options |= self._mask_arguments(layer, inputs, options)
        result = layer(*inputs, **options)
        if not isinstance(layer, keras.layers.Layer):  # an operation of a mask
            return result
        outputs = keras.tree.flatten(result)
        if isinstance(layer, keras.Model):
            self._mark_model(layer, inputs[0], outputs)
        elif (rule := _rule(layer)) is not None:
            self._set(outputs[0], rule(layer, inputs[0]))
        elif options.get("mask") is None and layer.supports_masking and self._differs(inputs):
            self._differing |= {id(each): each for each in outputs}
        return result

    def needs_arguments(self, layers: list[Any]) -> bool:
        """Whether a layer of a chain needs its mask as an argument.

        Args:
          layers: a symbolic input, and layers that are not used elsewhere.

        Returns:
          True if a Sequential of the layers would compute with other masks than in Keras 2.
        """
        tensor, *rest = layers
        for layer in rest:
            tensor = self.called(layer, tensor)
        return self._arguments > 0

    def _differs(self, tensors: Any) -> bool:
        return any(id(each) in self._differing for each in keras.tree.flatten(tensors))

    def _set(self, tensor: Any, mask: Any) -> None:
        """Gives a tensor its mask of Keras 2."""
        if mask is not _SAME:
            _keras_private.set_mask(tensor, mask)
            self._differing[id(tensor)] = tensor

    def _mask_arguments(self, layer: Any, inputs: Any, options: dict[str, Any]) -> dict[str, Any]:
        """The masks that Keras 3 would not pass to the layer, as arguments of its call."""
        names = inspect.signature(layer.call).parameters
        of_arguments = dict(zip(names, inputs, strict=False)) | options
        first = next(iter(names))
        has_states = isinstance(layer, _RECURRENT) and options.get("initial_state") is not None
        found: dict[str, Any] = {}
        for name, value in of_arguments.items():
            key = f"{name}_mask" if f"{name}_mask" in names else "mask"
            is_needed = self._differs([value]) or (has_states and name == first)
            if not is_needed or key not in names or key in options:
                continue
            if key == "mask" and name != first:
                continue
            masks = keras.tree.map_structure(_keras_private.mask_of, value)
            if all(mask is None for mask in keras.tree.flatten(masks)):
                if self._differs([value]):
                    raise ValueError("it had no mask in Keras 2, and gets one in Keras 3")
                continue
            found[key] = masks
        self._arguments += len(found)
        return found

    def _mark_model(self, model: Any, inputs: Any, outputs: list[Any]) -> None:
        """Gives the results of a model inside the model their masks."""
        given = [_keras_private.mask_of(each) for each in keras.tree.flatten(inputs)]
        if all(mask is None for mask in given) and not _makes_masks(model):
            return
        before = self._arguments
        inner = keras.tree.flatten(_keras_private.run_graph(model, inputs, self._caller))
        if self._arguments > before or self._differs(inner):
            raise ValueError("a model inside the model gets a mask, which Keras 3 does not pass on")
        for tensor, same in zip(outputs, inner, strict=True):
            _keras_private.set_mask(tensor, _keras_private.mask_of(same))

    def _caller(self, layer: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.called(
            layer, *args, **{key: value for key, value in kwargs.items() if value is not None}
        )


_SAME = object()  # the mask of the result is that of Keras 3


def _rule(layer: Any) -> Callable[[Any, Any], Any] | None:
    """The function of a layer and its inputs that gives the mask of its result."""
    rules: list[tuple[Any, Callable[[Any, Any], Any]]] = [
        (_WITHOUT_MASK, _of_nothing),
        (_MERGES, _of_merge),
        (keras.layers.Concatenate, _of_concatenate),
        (keras.layers.TimeDistributed, _of_time_distributed),
        (keras.layers.GroupNormalization, _of_group_normalization),
    ]
    return next((rule for classes, rule in rules if isinstance(layer, classes)), None)


def _of_nothing(layer: Any, tensor: Any) -> Any:
    return _SAME if _keras_private.mask_of(tensor) is None else None


def _of_group_normalization(layer: Any, tensor: Any) -> Any:
    if _keras_private.mask_of(tensor) is not None:
        raise ValueError("it uses its mask in Keras 2, and does not in Keras 3")
    return _SAME


def _of_merge(layer: Any, tensors: Any) -> Any:
    masks = [_keras_private.mask_of(each) for each in tensors]
    if all(mask is masks[0] for mask in masks):
        return _SAME
    first, *rest = [mask for mask in masks if mask is not None]
    for mask in rest:
        first = keras.ops.logical_and(first, mask)
    return first


def _of_concatenate(layer: Any, tensors: Any) -> Any:
    masks = [_keras_private.mask_of(each) for each in tensors]
    is_along_steps = layer.axis not in (-1, len(tensors[0].shape) - 1)
    if all(mask is masks[0] for mask in masks) or (is_along_steps and None not in masks):
        return _SAME
    parts = [_of_elements(*pair) for pair in zip(tensors, masks, strict=True)]
    return keras.ops.all(keras.ops.concatenate(parts, layer.axis), axis=-1)


def _of_elements(tensor: Any, mask: Any) -> Any:
    if mask is None:
        return keras.ops.ones_like(tensor, dtype="bool")
    return keras.ops.expand_dims(mask, -1) if len(mask.shape) < len(tensor.shape) else mask


def _of_time_distributed(layer: Any, tensor: Any) -> Any:
    before = _keras_private.mask_of(tensor)
    after = _of_steps(layer, tensor, before, 2)
    return _SAME if after is before else after


def _of_steps(layer: Any, tensor: Any, mask: Any, axes: int) -> Any:
    """The mask of a TimeDistributed; None without. The batch and the steps are `axes` axes."""
    inner = layer.layer
    if isinstance(inner, keras.layers.TimeDistributed):
        found = _of_steps(inner, tensor, mask, axes + 1)
    elif isinstance(inner, keras.Model):
        found = _of_model_of_steps(inner, tensor, mask, axes)
    elif isinstance(inner, keras.layers.Embedding | keras.layers.Masking):
        found = inner.compute_mask(tensor, None)
    elif isinstance(inner, _RECURRENT):
        found = mask if inner.return_sequences else None
    elif isinstance(inner, _WITHOUT_MASK) or not inner.supports_masking or mask is None:
        found = None
    else:
        found = inner.compute_mask(tensor, mask)
    if found is None and mask is not None and len(mask.shape) > axes:
        return keras.ops.any(mask, axis=tuple(range(axes, len(mask.shape))))
    return mask if found is None else found


def _of_model_of_steps(model: Any, tensor: Any, mask: Any, axes: int) -> Any:
    if mask is None and not _makes_masks(model):
        return None
    one = keras.Input(batch_shape=(None, *tensor.shape[axes:]), dtype=tensor.dtype)
    if mask is not None:
        _keras_private.set_mask(one, keras.Input(batch_shape=(None, *mask.shape[axes:])))
    masks, output = Masks(), keras.layers.Identity()(one)  # a tensor to give a mask to
    _keras_private.set_mask(output, _keras_private.mask_of(one))
    masks._mark_model(model, one, [output])
    found = _keras_private.mask_of(output)
    if found is None:
        return None
    if mask is not None or axes > 2:
        raise ValueError("a model inside of it gets a mask, and passes one on")
    return keras.layers.TimeDistributed(keras.Model(one, found))(tensor)


def _makes_masks(layer: Any) -> bool:
    """Whether a layer or one in it makes a mask of its inputs."""
    return any(
        isinstance(part, keras.layers.Masking) or getattr(part, "mask_zero", False)
        for part in _keras_private.layers_of(layer)
    )


def without_mask(model: Any) -> list[str]:
    """The layers of a model that have no mask in Keras 3, and had one in Keras 2.

    Args:
      model: a model that was written for Keras 3.

    Returns:
      The names of the recurrent layers whose sequences have a mask and that get initial states, but
      not the argument mask.
    """
    found: list[str] = []
    for layer in _keras_private.layers_of(model):
        if isinstance(layer, _RECURRENT):
            for args, kwargs in _keras_private.symbolic_calls(layer):
                has_states = kwargs.get("initial_state") is not None or len(args) > 1
                mask = _keras_private.mask_of(args[0]) if args else None
                if has_states and mask is not None and kwargs.get("mask") is None:
                    found.append(layer.name)
    return list(dict.fromkeys(found))
