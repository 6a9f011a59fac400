"""Makes models of Keras 3 from their configurations in files of Keras 1 and 2."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import keras

from tf_lstm_ops._refusal import refused
from tf_lstm_ops.files.contents import Contents, NamedArray
from tf_lstm_ops.files.keras_zip import snake_case
from tf_lstm_ops.keras.old_files import layers
from tf_lstm_ops.keras.old_files.layers import Source
from tf_lstm_ops.keras.old_files.masks import Masks

_Pairs = Iterator[tuple[Any, list[NamedArray]]]

_Tensors: TypeAlias = dict[tuple[str, int], Any]  # the results of a layer's calls
# A Sequential without these layers passes masks on as in Keras 2.
_PROBED = ("TimeDistributed", "Identity", "Normalization", "Rescaling", "input_layers")
# The number of sizes in the reference of a tensor: layer, call, index of the result, arguments.
_REFERENCE = (3, 4)


def model_of(file: Contents, custom_objects: Mapping[str, Any]) -> Any:
    """Makes the model of a file.

    Args:
      file: the file.
      custom_objects: the user's classes and functions by name.

    Returns:
      The model, built.

    Raises:
      ValueError: a layer cannot be made, or the graph of the layers is not valid.
    """
    return _model_of(file.config, Source(file, custom_objects, [], Masks(), _model_of))


def _model_of(data: Any, source: Source) -> Any:
    """The model of a configuration."""
    kind, config = _class_and_config(data)
    if kind == "Sequential":
        return _sequential(config, source)
    if kind in layers.MODELS or "input_layers" in config:
        return _functional(config, source)
    raise layers.not_made(
        str(config.get("name", kind)), kind, "it is a class of your own without a known graph"
    )


def in_order(model: Any, data: Any) -> Iterator[tuple[Any, Any]]:
    """The layers of a model in the order of its configuration.

    Args:
      model: what `model_of` returned.
      data: its configuration.

    Yields:
      A layer, or a model inside the model, and its configuration; not the input of a Sequential.

    Raises:
      ValueError: a layer with weights has no name.
    """
    by_name = {layer.name: layer for layer in model.layers}
    for part in _class_and_config(data)[1]["layers"]:
        kind, config = _class_and_config(part)
        name = str(config.get("name", kind))
        layer = by_name.get(layers.renamed(name))
        if layer is not None:
            yield layer, part
        elif kind != "InputLayer":
            raise ValueError(f"the weights of layer {name} are not found, which has no name")


def _class_and_config(data: Any) -> tuple[str, dict[str, Any]]:
    """As of a layer. The Sequential of Keras before 2.2 is a list of layers."""
    if isinstance(data, dict) and isinstance(data.get("config"), list):
        data = {**data, "config": {"layers": data["config"]}}
    return layers.class_and_config(data)


def _part(data: Any, source: Source) -> Any:
    """A layer, or a model inside a model."""
    kind, config = _class_and_config(data)
    if layers.is_model(data, source):
        return _model_of(data, source)
    name = str(config.get("name", kind))
    return layers.layer_of(data, source._replace(arrays=source.file.layers.get(name, [])))


def _sequential(config: dict[str, Any], source: Source) -> Any:
    found = config.get("layers")
    if not isinstance(found, list) or not found:
        raise ValueError("the file has a Sequential without layers")
    parts: list[Any] = []
    if _class_and_config(found[0])[0] == "InputLayer":
        parts, found = [_input(_class_and_config(found[0])[1])], found[1:]
    elif (shape := _input_shape(found[0], config)) is not None:
        kind, first = _class_and_config(found[0])
        dtype = "int32" if kind == "Embedding" else first.get("dtype")
        parts = [_input({"batch_input_shape": shape, "dtype": dtype})]
    name = config.get("name") and layers.renamed(config["name"])
    if parts and any(kind in str(found) for kind in _PROBED):
        own = source._replace(masks=Masks())  # and layers that no model gets
        chain = [*parts, *(_part(data, own) for data in found)]
        if own.masks.needs_arguments(chain):
            return _chain(parts[0], [_part(data, source) for data in found], source, name)
    parts += [_part(data, source) for data in found]
    model = keras.Sequential(parts, name=name)
    if not model.built:
        raise ValueError(
            f"the file does not say the shape of the input of the Sequential {model.name}. Make "
            "the model in Python and call tf_lstm_ops.keras.load_h5_weights(model, path)"
        )
    return model


def _chain(tensor: Any, parts: list[Any], source: Source, name: Any) -> Any:
    """A functional model of a chain of layers, which can have arguments in their calls."""
    end = tensor
    for part in parts:
        end = source.masks.called(part, end)
    return keras.Model(tensor, end, name=name)


def _input_shape(data: Any, config: dict[str, Any]) -> Any:
    """The shape of the input of a Sequential, with the batch, by its first layer or its build."""
    kind, first = _class_and_config(data)
    inner = first.get("layer") if kind == "Bidirectional" else None
    for each in (first, *([_class_and_config(inner)[1]] if inner else [])):
        for key in ("batch_input_shape", "batch_shape"):
            if each.get(key) is not None:
                return each[key]
        if each.get("input_shape") is not None:
            return [None, *each["input_shape"]]
        if kind == "Embedding":
            return [None, each.get("input_length")]
        if each.get("input_dim") is not None:
            steps = [] if kind == "Dense" else [each.get("input_length")]
            return [None, *steps, each["input_dim"]]
    return config.get("build_input_shape")


def _input(config: dict[str, Any]) -> Any:
    """A symbolic input."""
    shape = config.get("batch_input_shape", config.get("batch_shape"))
    if shape is None and config.get("input_shape") is not None:
        shape = [None, *config["input_shape"]]
    if isinstance(shape, dict):
        shape = shape.get("items")
    if not isinstance(shape, list | tuple) or not all(s is None or type(s) is int for s in shape):
        raise ValueError(f"the file has an input of shape {shape}, which is no shape")
    dtype = config.get("dtype")
    name = config.get("name") and layers.renamed(str(config["name"]))
    kinds = {key: True for key in ("sparse", "ragged") if config.get(key)}
    return keras.Input(
        batch_shape=tuple(shape),
        dtype=dtype if isinstance(dtype, str) else None,
        name=name,
        **kinds,
    )


def _functional(config: dict[str, Any], source: Source) -> Any:
    """Calls the layers of a graph in an order in which their inputs exist."""
    for key in ("layers", "input_layers", "output_layers"):
        if not isinstance(config.get(key), list | dict) or not config[key]:
            raise ValueError(f"the file has a model without {key}")
    first_calls = _first_calls(config)
    _reserve_names([_name(data) for data in config["layers"]])
    tensors: _Tensors = {}
    waiting: collections.deque[tuple[str, Any, int, Any]] = collections.deque()
    for data in config["layers"]:
        kind, own = _class_and_config(data)
        name = _name(data)
        if kind == "InputLayer":
            tensors[name, 0] = _input({**own, "name": name})
            continue
        nodes, layer = data.get("inbound_nodes"), _part(data, source)
        if not isinstance(nodes, list) or not nodes:
            raise refused("it has no inputs", _in_file(name))
        for number, node in enumerate(nodes, first_calls.get(name, 0)):
            waiting.append((name, layer, number, node))
    _call_all(waiting, tensors, source.masks)
    ends = [_structure(config[f"{kind}_layers"], tensors) for kind in ("input", "output")]
    inputs, outputs = (end[0] if isinstance(end, list) and len(end) == 1 else end for end in ends)
    return keras.Model(inputs, outputs, name=config.get("name") and layers.renamed(config["name"]))


def _reserve_names(names: list[str]) -> None:
    """Keeps Keras from giving them to the operations of masks, which it counts by their kinds."""
    for name in names:
        match = re.fullmatch(r"(.+)_(\d{1,5})", name)
        stem, number = (match[1], int(match[2])) if match else (name, 0)
        while keras.backend.get_uid(stem) <= number:
            pass


def _name(data: Any) -> str:
    return str(data.get("name", _class_and_config(data)[1].get("name")))


def _first_calls(config: dict[str, Any]) -> dict[str, int]:
    """The number of the first call of each layer: 1 of a model, whose call 0 made the model."""
    nodes = [data.get("inbound_nodes") for data in config["layers"] if isinstance(data, dict)]
    found: dict[str, int] = {}
    for name, call, *_ in _references([nodes, config["output_layers"]]):
        found[name] = min(call, found.get(name, call))
    models = {
        str(data.get("name"))
        for data in config["layers"]
        if isinstance(data, dict) and data.get("class_name") in layers.MODELS
    }
    return {name: call for name, call in found.items() if name in models}


def _is_reference(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) in _REFERENCE
        and isinstance(value[0], str)
        and all(type(each) is int for each in value[1:3])
    )


def _references(value: Any) -> Iterator[list[Any]]:
    """All references of tensors in a structure."""
    if _is_reference(value):
        yield value
        value = value[3] if len(value) > 3 else None
    if isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _references(each)


def _call_all(waiting: collections.deque[Any], tensors: _Tensors, masks: Masks) -> None:
    """Makes all calls; those whose inputs do not exist yet wait."""
    in_vain = 0
    while waiting:
        name, layer, number, node = waiting.popleft()
        missing = [r[0] for r in _references(node) if (r[0], r[1]) not in tensors]
        if missing:
            waiting.append((name, layer, number, node))
            in_vain += 1
            if in_vain > len(waiting):
                why = f"it has the input {missing[0]}, which is none"
                raise refused(why, _in_file(name))
            continue
        in_vain = 0
        tensors[name, number] = _call(name, layer, node, tensors, masks)


def _in_file(name: str) -> str:
    return f"layer {name} of the file"


def _call(name: str, layer: Any, node: Any, tensors: _Tensors, masks: Masks) -> Any:
    if not isinstance(node, list) or not node:
        raise refused("it has a call without inputs", _in_file(name))
    references = [node] if _is_reference(node) else node
    if not all(map(_is_reference, references)):
        why = f"it has inputs that are no tensors: {str(node)[:80]}"
        raise refused(why, _in_file(name))
    inputs = [_tensor(reference, tensors) for reference in references]
    given: dict[str, Any] = {}
    for reference in references:
        given |= reference[3] if len(reference) > 3 and isinstance(reference[3], dict) else {}
    options = {k: _structure(v, tensors) for k, v in given.items() if v is not None}
    if isinstance(layer, keras.layers.RNN | keras.layers.Bidirectional) and len(inputs) > 1:
        options["initial_state"] = inputs[1:]
        inputs = inputs[:1]
    with layers.making(name, type(layer).__name__):
        return masks.called(layer, inputs[0] if len(inputs) == 1 else inputs, **options)


def _tensor(reference: list[Any], tensors: _Tensors) -> Any:
    name, number, index = reference[:3]
    found = tensors.get((name, number))
    results = found if isinstance(found, list | tuple) else [found]
    if found is None or not 0 <= index < len(results):
        raise ValueError(f"the file has no result {index} of call {number} of layer {name}")
    return results[index]


def _structure(value: Any, tensors: _Tensors) -> Any:
    """A structure with tensors in place of their references."""
    if _is_reference(value):
        return _tensor(value, tensors)
    if isinstance(value, dict):
        return {key: _structure(each, tensors) for key, each in value.items()}
    if isinstance(value, list):
        return [_structure(each, tensors) for each in value]
    return value


def arrays_of(file: Contents, model: Any) -> _Pairs:
    """The arrays of the layers of a model, in Keras 2's order.

    Args:
      file: the file.
      model: the model that was made of it.

    Returns:
      Each layer, also those of models inside the model, with its arrays.

    Raises:
      ValueError: the file has a layer that keeps its weights in an unknown way.
    """
    return _of_model(file, "layers", model, file.config)


def _of_model(file: Contents, group: str, model: Any, config: Any) -> _Pairs:
    """As `arrays_of`. Groups are named by the classes of the layers, which are counted."""
    counts: collections.Counter[str] = collections.Counter()
    for layer, own in in_order(model, config):
        name = snake_case(own["class_name"])
        part = f"{name}_{counts[name]}" if counts[name] else name
        counts[name] += 1
        yield from _of_layer(file, f"{group}/{part}", layer, own)


def _of_layer(file: Contents, group: str, layer: Any, config: Any) -> _Pairs:
    """A layer with its arrays; the model inside of a TimeDistributed has several."""
    if isinstance(layer, keras.layers.TimeDistributed):
        inner = config["config"].get("layer")
        yield from _of_layer(file, f"{group}/layer", layer.layer, inner)
    elif isinstance(layer, keras.Model):
        yield from _of_model(file, f"{group}/layers", layer, config)
    else:
        yield layer, _arrays(file, group, layer)


def _arrays(file: Contents, group: str, layer: Any) -> list[NamedArray]:
    if isinstance(layer, keras.layers.Bidirectional):
        halves = {"forward_layer": layer.forward_layer, "backward_layer": layer.backward_layer}
        parts = (_arrays(file, f"{group}/{name}", half) for name, half in halves.items())
        return [array for part in parts for array in part]
    if isinstance(layer, keras.layers.RNN):
        if isinstance(layer.cell, keras.layers.StackedRNNCells):
            raise ValueError(f"layer {layer.name} has several cells, which is not read from .keras")
        group = f"{group}/cell"
    own = [path for path in file.arrays if path.rpartition("/")[0] == f"{group}/vars"]
    return [NamedArray(path, file.arrays[path]) for path in sorted(own, key=_by_number)]


def _by_number(path: str) -> tuple[int, str]:
    return len(path), path
