"""The layers of a Keras model as a file of a session describes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import keras

from tf_lstm_ops import _deviation, _keras_private, _received
from tf_lstm_ops.inference import file, keras_layers
from tf_lstm_ops.inference.recurrent_layers import unsupported

_RECURRENT = (keras.layers.RNN, keras.layers.Bidirectional)


def layers_of(model: Any) -> list[file.Layer]:
    """Describes the layers of a model and copies their weights.

    Args:
      model: a built ``keras.Model``, Sequential or functional, or a list of built layers.

    Returns:
      The layers, one or more, with all sizes.

    Raises:
      ValueError: the model is not built, is not a chain, or has a layer that a session does not
        compute. The message names the layer.
      TypeError: model is neither a model nor a list of layers.
    """
    is_list = isinstance(model, list | tuple)
    if not is_list and not isinstance(model, keras.Model):
        raise TypeError(
            "a session is made from a keras.Model or a list of layers. Received: "
            f"{_received.text(model)}{_instead(model)}"
        )
    chain = list(_of_list(model) if is_list else _of_model(model))
    seen: set[int] = set()
    for layer in chain:
        if id(layer) in seen:
            raise unsupported(layer, "the model calls it more than once")
        seen.add(id(layer))
    _require_masks_pass(chain)
    described = [record for layer in chain for record in keras_layers.describe(layer)]
    size = _input_size([] if is_list else [model], chain, described)
    if not described:  # nothing but layers such as Dropout
        described = [file.Layer("identity", file.ACTIVATION)]
    return list(_with_sizes(described, size))


def _instead(value: Any) -> str:
    """What to do with an argument that is neither a model nor a list."""
    if _received.is_path(value):
        return (
            ". Session.load opens a file that Session.save wrote. For a Keras model: "
            f"Session(keras.models.load_model({_received.text(value)}))"
        )
    if isinstance(value, keras.Layer):
        return ". Pass a list of layers: Session([layer])"
    return _received.instead_of_model(value)


def _of_list(layers: Sequence[Any]) -> Iterator[Any]:
    if not layers:
        raise ValueError("the list of layers is empty")
    for layer in layers:
        if not isinstance(layer, keras.Layer):
            raise TypeError(
                f"the list must have Keras layers. Received: {_received.text(layer)}"
                f"{_received.instead_of_model(layer)}"
            )
        yield from _of_layer(layer)


def _of_layer(layer: Any) -> Iterator[Any]:
    """A layer, or the layers of a nested model."""
    if isinstance(layer, keras.Model):
        yield from _of_model(layer)
    else:
        yield layer


def _of_model(model: Any) -> Iterator[Any]:
    """The layers of a model without its input, in the order of computation."""
    if reason := _deviation.of(model):
        raise unsupported(model, reason)
    if type(model) is keras.Sequential:
        if not model.built:
            raise ValueError(
                f"the model {model.name} is not built. Call it once, or give it a keras.Input"
            )
        _require_supported_inputs(model)
        for layer in model.layers:
            yield from _of_layer(layer)
    elif _keras_private.is_functional(model) and not _is_of_a_subclass(model):
        chain = _functional_chain(model)
        _require_supported_inputs(model)
        for layer in chain:
            yield from _of_layer(layer)
    else:
        raise unsupported(
            model, f"{type(model).__name__} is a class of its own, whose call is not known"
        )


def _require_supported_inputs(model: Any) -> None:
    for tensor in model.inputs or []:  # None where a call of the model built it
        keras_layers.require_supported_input(model, tensor)


def _is_of_a_subclass(model: Any) -> bool:
    """Whether the class of a functional model is not Keras' own."""
    return type(model).__module__.partition(".")[0] != "keras"


def _functional_chain(model: Any) -> list[Any]:
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        raise unsupported(
            model,
            f"it has {len(model.inputs)} inputs and {len(model.outputs)} outputs, not one of each",
        )
    layers: list[Any] = []
    tensor = model.outputs[0]
    while tensor is not model.inputs[0]:
        layer, inputs, args, kwargs = _keras_private.producer(tensor)
        if not isinstance(layer, keras.Layer):
            raise unsupported(layer, f"it is {type(layer).__name__}, not a layer")
        if len(inputs) != 1:
            raise unsupported(layer, f"it has {len(inputs)} inputs, and the layers must be a chain")
        given = [*args[1:], *kwargs.values()]
        if any(value is not None and value is not False for value in given):
            raise unsupported(layer, "its call has further arguments")
        layers.append(layer)
        tensor = inputs[0]
    return layers[::-1]


def _input_size(models: list[Any], chain: list[Any], described: list[file.Layer]) -> int:
    """The number of features of the input."""
    shapes = [model.input_shape for model in models]
    shapes += [layer.batch_shape for layer in chain if type(layer) is keras.layers.InputLayer]
    for shape in shapes[:1]:
        if len(shape) != 3:
            raise ValueError(
                f"the input must have the shape [batch, steps, features]. Received: {shape}"
            )
        if shape[2] is not None:
            return int(shape[2])
    for record in described:  # those before the first one with weights keep the size
        if record.input_size is not None:
            return record.input_size
    raise ValueError("the number of features is not known. Begin the layers with keras.Input")


def _with_sizes(records: Sequence[file.Layer], size: int) -> Iterator[file.Layer]:
    """Sets the sizes of layers that keep them, and checks that the layers fit each other."""
    last: file.Layer | None = None  # the layer that returns the last output only
    for record in records:
        if record.kind in (file.ACTIVATION, file.MASKING):
            record = dataclasses.replace(record, input_size=size, units=size, hidden_size=size)
        if record.input_size != size:
            raise ValueError(
                f"layer {record.name} has an input of {record.input_size} features, and the layer "
                f"before it has an output of {size}"
            )
        if last and record.kind in (file.RECURRENT, file.MASKING):
            raise ValueError(
                f"layer {record.name} needs a sequence, and layer {last.name} has "
                "return_sequences=False"
            )
        if record.kind == file.RECURRENT and not record.flags & file.RETURNS_SEQUENCE:
            last = record
        size = record.output_size
        yield record


def _require_masks_pass(chain: list[Any]) -> None:
    """Stock recurrent layers of Keras 3.16 do not pass masks on; those of a session do."""
    masking, stopped = False, None
    for layer in chain:
        if stopped and isinstance(layer, _RECURRENT):
            raise unsupported(
                stopped, f"it does not pass the mask of the Masking layer on to layer {layer.name}"
            )
        masking = masking or type(layer) is keras.layers.Masking
        if masking and not layer.supports_masking:
            stopped = layer
