"""load_h5 and load_h5_weights."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import re
import textwrap
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _files, _keras_private
from tf_lstm_ops._arrays import Array
from tf_lstm_ops.files import hdf5, json, keras_zip, limits
from tf_lstm_ops.files.contents import Contents, NamedArray
from tf_lstm_ops.keras import convert
from tf_lstm_ops.keras.old_files import (
    arguments,
    layer_weights,
    layers,
    masks,
    models,
    safety,
    saved_models,
)
from tf_lstm_ops.keras.requirements import require_model

_CONVOLUTIONS = (keras.layers.ConvLSTM1D, keras.layers.ConvLSTM2D, keras.layers.ConvLSTM3D)
_GATED = (keras.layers.LSTM, keras.layers.GRU, *_CONVOLUTIONS)
_CELLS = (keras.layers.LSTMCell, keras.layers.GRUCell)


def load_h5(
    path: str | os.PathLike[str],
    custom_objects: Mapping[str, Any] | None = None,
    *,
    config: str | os.PathLike[str] | None = None,
) -> keras.Model:
    """Loads a model that Keras 1 or 2 wrote, as the version that wrote it meant it.

    The model has the layers of ``tf_lstm_ops.keras`` in place of LSTM, GRU, SimpleRNN, CuDNNLSTM,
    CuDNNGRU and Bidirectional, as after `convert_model`, and the other layers of ``keras.layers``.
    It computes what it computed in the version of Keras that wrote the file. That holds for
    "hard_sigmoid" too, which is another function in Keras 3: the weights of the gates are scaled by
    1.2, or the layer has the activation `keras_2_hard_sigmoid`. The model is not compiled. No code
    in the file is run. A file of Keras 3 is loaded by Keras, then converted.

    >>> import keras
    >>> from tf_lstm_ops.keras import load_h5
    >>> model = keras.Sequential([keras.Input((None, 8)), keras.layers.LSTM(4)])
    >>> model.save("model.h5")
    >>> load_h5("model.h5").layers[0].uses_fused_op
    True

    Args:
      path: an .h5 file of ``model.save``; or a folder with a SavedModel of ``model.save`` of Keras
        2, or a .keras file of Keras 2.12 to 2.15.
      custom_objects: your own classes of layers by name; each must have a ``from_config`` that
        takes the configuration in the file. A class that is derived from a layer of Keras gets
        the arguments of Keras 3.
      config: what ``model.to_json()`` of Keras 1 or 2 returned, or the path of a file with it, for
        an .h5 file of ``model.save_weights``.

    Returns:
      The model.

    Raises:
      OSError: the file cannot be read.
      TypeError: path is no path, or config is neither a text nor a path.
      ValueError: it has weights only and config is None, is damaged, or has a layer that cannot be
        made in Keras 3 or that runs code; the message names the layer and says what still works.
    """
    where, objects = Path(os.fsdecode(_files.checked(path))), dict(custom_objects or {})
    if not where.is_dir():
        limits.check_readable(str(where))
    text = None if config is None else _text(config)
    with keras.saving.custom_object_scope(objects):
        if text is not None:
            model = _of_two_files(where, text, objects)
        elif where.is_dir():
            model = _of_saved_model(where, objects)
        elif zipfile.is_zipfile(where):
            model = _of_keras_file(where, objects)
        else:
            model = _of_h5_file(where, objects)
        model = convert.convert_loaded(model)
        arguments.mark_hard_sigmoid(model)
        return model


def _of_h5_file(path: Path, objects: dict[str, Any]) -> Any:
    file = hdf5.read_model(path)
    if file.config is None:
        raise ValueError(
            f"{path} has the weights of a model (Keras {file.version}), not its layers. Make "
            "the model in Python and call tf_lstm_ops.keras.load_h5_weights(model, path), or pass "
            "config=, what model.to_json() returned"
        )
    if file.major >= 3:
        return _of_keras_3(file)
    return _filled(file, objects)


def _text(config: str | os.PathLike[str]) -> str:
    """The JSON of an argument config."""
    if isinstance(config, str) and config.lstrip().startswith("{"):
        return config
    try:
        return limits.content(config).decode("utf-8")
    except UnicodeError as error:
        raise ValueError(f"{os.fspath(config)} is no text: {error}") from error


def _of_two_files(path: Path, text: str, objects: dict[str, Any]) -> Any:
    """A model of the layers that `to_json` wrote, and a file of `save_weights`."""
    if path.is_dir() or zipfile.is_zipfile(path):
        raise ValueError(f"{path} has the layers of a model, so config must be None")
    file = hdf5.read_model(path)
    if file.config is not None or file.major >= 3:
        raise ValueError(
            f"config is for an .h5 file with the weights of Keras 1 or 2 only, and {path} "
            + ("is of Keras 3" if file.major >= 3 else "has the layers of a model")
        )
    return _filled(dataclasses.replace(file, config=json.config("config", text)), objects)


def _filled(file: Contents, objects: dict[str, Any]) -> Any:
    """The model of an .h5 file of Keras 1 or 2 with the values of its weights."""
    model = _made(file, objects)
    _assign(model, _values_by_name(model, file))
    return model


def _of_keras_3(file: Contents) -> Any:
    """A model of Keras 3. Before Keras 3.11.3 only .keras files had a safe mode."""
    if (found := safety.find(file.config)) is not None:
        raise ValueError(
            f"layer {found.name} ({found.kind}) of {file.path} is not made: {found.reason}. If you "
            "trust the file: convert_model(keras.models.load_model(path, safe_mode=False))"
        )
    with _keras_private.safe_mode(), _limited(file.numbers):
        try:
            return keras.models.load_model(file.path, compile=False)
        except (OSError, ValueError):
            raise
        except Exception as error:  # of a damaged file anything
            said = textwrap.shorten(str(error), 500)
            raise ValueError(
                f"Keras does not read {file.path}: {type(error).__name__}: {said}"
            ) from error


def _made(file: Contents, objects: dict[str, Any]) -> Any:
    """The model of a file of Keras 1 or 2, without the values of its weights."""
    if (found := safety.find(file.config)) is not None:
        raise layers.not_made(*found)
    with _limited(file.numbers):
        return models.model_of(file, objects)


def _of_saved_model(folder: Path, objects: dict[str, Any]) -> Any:
    file, listed = saved_models.read(folder)
    model, arrays = _made(file, objects), iter(listed)
    values: list[tuple[Any, Array]] = []
    for layer in _leaves(model, file.config):
        own = list(itertools.islice(arrays, layer_weights.count(layer)))
        values += layer_weights.values_of(layer, own, file)
    if left := len(list(arrays)):
        raise ValueError(f"{folder} has {left} variables more than its layers have weights")
    _assign(model, values)
    return model


def _leaves(model: Any, config: Any) -> Iterator[Any]:
    """The layers of a model and of the models in it, in the order of the configuration."""
    for layer, own in models.in_order(model, config):
        if isinstance(layer, keras.Model):
            yield from _leaves(layer, own)
        else:
            yield layer


def _of_keras_file(path: Path, objects: dict[str, Any]) -> Any:
    file = keras_zip.read(path)
    if file.major >= 3:
        return _of_keras_3(file)
    model = _made(file, objects)
    pairs = models.arrays_of(file, model)
    values = [each for one, own in pairs for each in layer_weights.values_of(one, own, file)]
    _assign(model, values)
    return model


def load_h5_weights(model: keras.Model, path: str | os.PathLike[str]) -> None:
    """Sets the weights of a model by an .h5 file that Keras 1 or 2 wrote.

    The counterpart of ``model.load_weights`` for files of ``save_weights``, and of ``save``. The
    layers of the model are those of the file by name if all names agree, else by order. Arrays of
    CuDNNLSTM and CuDNNGRU, and those of Keras 1, are converted. If the file is of Keras 1 or 2, and
    a layer of the model has recurrent_activation="hard_sigmoid", the weights are scaled as by
    `load_h5`.

    >>> import keras
    >>> from tf_lstm_ops.keras import load_h5_weights
    >>> model = keras.Sequential([keras.Input((None, 8)), keras.layers.LSTM(4)])
    >>> model.save("model.h5")
    >>> load_h5_weights(model, "model.h5")

    Args:
      model: a built model of ``keras.Model``, with layers of ``keras.layers`` or of this package.
      path: the file.

    Raises:
      OSError: the file cannot be read.
      TypeError: model is not a ``keras.Model``.
      ValueError: the file is damaged, or its arrays are not those of the model's layers; the
        message names the layer, and no weight is set.
    """
    require_model(model)
    if not model.built:
        raise ValueError(f"the model {model.name} is not built. Call it once, or give it an Input")
    file = hdf5.read_model(path)
    pairs = _pairs(model, file)
    values = [
        each for layer, arrays in pairs for each in layer_weights.values_of(layer, arrays, file)
    ]
    _assign(model, values)
    if file.major < 3:
        arguments.mark_hard_sigmoid(model)
        _warn_of_others(model, file, pairs)


def _values_by_name(model: Any, file: Contents) -> list[tuple[Any, Array]]:
    """The values of the weights of a model that was made from the same file."""
    by_name = {layers.renamed(name): arrays for name, arrays in file.layers.items()}
    values: list[tuple[Any, Array]] = []
    for layer in model.layers:
        values += layer_weights.values_of(layer, by_name.pop(layer.name, []), file)
    if unknown := [name for name, arrays in by_name.items() if arrays]:
        raise ValueError(f"{file.path} has weights of {', '.join(unknown)}, which is no layer")
    return values


def _pairs(model: Any, file: Contents) -> list[tuple[Any, list[NamedArray]]]:
    """The layers of a model, each with its arrays in a file of another model like it."""
    own = [layer for layer in model.layers if layer_weights.count(layer)]
    given = {layers.renamed(name): arrays for name, arrays in file.layers.items() if arrays}
    if {layer.name for layer in own} == given.keys():
        return [(layer, given[layer.name]) for layer in own]
    if len(own) == len(given):
        return list(zip(own, given.values(), strict=True))
    raise ValueError(
        f"{file.path} has weights of {len(given)} layers ({', '.join(given)}), and the model "
        f"{model.name} has {len(own)} ({', '.join(layer.name for layer in own)})"
    )


def _assign(model: Any, values: list[tuple[Any, Array]]) -> None:
    for weight, value in values:
        weight.assign(value)
    _keras_private.finalize_states(model)


def _warn_of_others(
    model: Any, file: Contents, pairs: Sequence[tuple[Any, Sequence[NamedArray]]]
) -> None:
    """Warns if a layer has a default of Keras 3 where the version of the file had another.

    The file has no arguments of layers. So a layer may have been made with what is now the default.
    """
    found = [part.name for layer, arrays in pairs for part in _with_sigmoid(layer, arrays, file)]
    if names := list(dict.fromkeys(found)):
        warnings.warn(
            f"{file.path} is of Keras {file.version}, where recurrent_activation was "
            f'"hard_sigmoid" by default, and {_listed(names)} has "sigmoid". If the model was '
            'made with the default, make the layer with recurrent_activation="hard_sigmoid" and '
            "load the weights again",
            UserWarning,
            stacklevel=3,
        )
    if names := masks.without_mask(model):
        warnings.warn(
            f"{_listed(names)} gets initial states and a sequence with a mask. In Keras "
            f"{file.version} the layer used the mask, in Keras 3 it does not: pass mask= in the "
            "call of the layer, such as embedding.compute_mask(words)",
            UserWarning,
            stacklevel=3,
        )


def _with_sigmoid(layer: Any, arrays: Sequence[NamedArray], file: Contents) -> Iterator[Any]:
    """The layers in a layer that have Keras 3's default where the file's version had another."""
    parts = _keras_private.layers_of(layer)
    of_layers = {id(part.cell) for part in parts if isinstance(part, _GATED)}
    shapes = [array.value.shape for array in arrays]
    for part in parts:
        is_part = isinstance(part, _GATED) or (
            isinstance(part, _CELLS) and id(part) not in of_layers
        )
        if not is_part or part.recurrent_activation is not keras.activations.sigmoid:
            continue
        if isinstance(part, _CONVOLUTIONS):
            yield part
        elif _is_before_2_3(file.version):
            gates = 3 if isinstance(part, keras.layers.GRU | keras.layers.GRUCell) else 4
            if (2 * gates * part.units,) not in shapes:  # CuDNNLSTM and CuDNNGRU have sigmoid
                yield part


def _is_before_2_3(version: str) -> bool:
    """Keras before 2.3, and tf.keras of TensorFlow 1, whose last version is 2.2.4-tf."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    return (*numbers, 0)[:2] < (2, 3)


def _listed(names: list[str]) -> str:
    return "layer " + ", ".join(names[:5]) + ("" if len(names) < 6 else " and others")


@contextlib.contextmanager
def _limited(numbers: int) -> Iterator[None]:
    """A context in which Keras makes no more variables than the arrays of a file fill.

    Keras makes the variables that the configuration asks for before their values are known.
    """
    left = limits.KERAS_TIMES * numbers + limits.KERAS_MORE

    def creator(next_creator: Any, **options: Any) -> Any:
        nonlocal left
        left -= _size_of(options.get("initial_value"))
        if left < 0:
            raise ValueError(f"its weights are larger than those of the file, {numbers} numbers")
        return next_creator(**options)

    with tf.variable_creator_scope(creator):
        try:
            yield
        except (tf.errors.ResourceExhaustedError, MemoryError) as error:
            raise ValueError("its layers need more memory than there is") from error


def _size_of(value: Any) -> int:
    """The count of numbers of an initial value, of which a function is not run."""
    if callable(value):
        try:
            with tf.Graph().as_default():
                value = value()
        except TypeError as error:
            raise ValueError(f"its initial values cannot be computed: {error}") from error
    return int(value.shape.num_elements() or 0) if isinstance(value, tf.Tensor) else 0
