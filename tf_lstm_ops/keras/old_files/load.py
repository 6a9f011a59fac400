"""load_h5 and load_h5_weights."""

from __future__ import annotations

import itertools
import os
import textwrap
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import keras

from tf_lstm_ops import _files, _keras_private
from tf_lstm_ops._arrays import Array
from tf_lstm_ops.keras import convert
from tf_lstm_ops.keras.old_files import (
    arguments,
    budget,
    defaults,
    keras_files,
    layer_weights,
    layers,
    models,
    safety,
    saved_models,
)
from tf_lstm_ops.keras.requirements import require_model
from tf_lstm_ops.weights import h5_file
from tf_lstm_ops.weights.h5_file import H5File, NamedArray


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
        _files.check_readable(str(where))
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
    file = h5_file.read(path)
    if file.config is None:
        raise ValueError(
            f"{path} has the weights of a model (Keras {file.version}), not its layers. Make "
            "the model in Python and call tf_lstm_ops.keras.load_h5_weights(model, path), or pass "
            "config=, what model.to_json() returned"
        )
    if file.major >= 3:
        return _of_keras_3(path, file.config, _numbers(file))
    return _filled(file, objects)


def _numbers(file: H5File) -> int:
    """The count of numbers in all arrays of a file."""
    return sum(array.value.size for arrays in file.layers.values() for array in arrays)


def _text(config: str | os.PathLike[str]) -> str:
    """The JSON of an argument config."""
    if isinstance(config, str) and config.lstrip().startswith("{"):
        return config
    name = os.fsdecode(_files.checked(config))
    _files.check_readable(name)
    try:
        return Path(name).read_text("utf-8")
    except UnicodeError as error:
        raise ValueError(f"{name} is no text: {error}") from error


def _of_two_files(path: Path, text: str, objects: dict[str, Any]) -> Any:
    """A model of the layers that `to_json` wrote, and a file of `save_weights`."""
    if path.is_dir() or zipfile.is_zipfile(path):
        raise ValueError(f"{path} has the layers of a model, so config must be None")
    file = h5_file.read(path)
    if file.config is not None or file.major >= 3:
        raise ValueError(
            f"config is for an .h5 file with the weights of Keras 1 or 2 only, and {path} "
            + ("is of Keras 3" if file.major >= 3 else "has the layers of a model")
        )
    return _filled(file._replace(config=h5_file.parsed_config("config", text)), objects)


def _filled(file: H5File, objects: dict[str, Any]) -> Any:
    """The model of an .h5 file of Keras 1 or 2 with the values of its weights."""
    model = _made(file, objects, _numbers(file))
    _assign(model, _values_by_name(model, file))
    return model


def _of_keras_3(path: Path, config: Any, numbers: int) -> Any:
    """A model of Keras 3 in a file with some count of numbers.

    Before Keras 3.11.3 only .keras files had a safe mode.
    """
    if (found := safety.find(config)) is not None:
        raise ValueError(
            f"layer {found.name} ({found.kind}) of {path} is not made: {found.reason}. If you "
            "trust the file: convert_model(keras.models.load_model(path, safe_mode=False))"
        )
    with _keras_private.safe_mode(), budget.limited(numbers):
        try:
            return keras.models.load_model(path, compile=False)
        except (OSError, ValueError):
            raise
        except Exception as error:  # of a damaged file anything
            said = textwrap.shorten(str(error), 500)
            raise ValueError(
                f"Keras does not read {path}: {type(error).__name__}: {said}"
            ) from error


def _made(file: H5File, objects: dict[str, Any], numbers: int) -> Any:
    """The model of a file of Keras 1 or 2 with some count of numbers, without their values."""
    if (found := safety.find(file.config)) is not None:
        raise layers.not_made(*found)
    with budget.limited(numbers):
        return models.model_of(file.config, models.source_of(file, objects))


def _of_saved_model(folder: Path, objects: dict[str, Any]) -> Any:
    saved = saved_models.read(folder)
    # Keras 3 writes no layers into a SavedModel.
    file = H5File(str(folder), "2", "tensorflow", saved.config, {})
    model = _made(file, objects, sum(array.value.size for array in saved.arrays))
    arrays = iter(saved.arrays)
    values: list[tuple[Any, Array]] = []
    for layer in _leaves(model, saved.config):
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
    archive = keras_files.read(path)
    if h5_file.major(archive.version) >= 3:
        return _of_keras_3(path, archive.config, keras_files.count_of_numbers(archive))
    file = H5File(str(path), archive.version, "tensorflow", archive.config, {})
    model = _made(file, objects, keras_files.count_of_numbers(archive))
    pairs = keras_files.arrays_of(archive, model)
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
    file = h5_file.read(path)
    pairs = _pairs(model, file)
    values = [
        each for layer, arrays in pairs for each in layer_weights.values_of(layer, arrays, file)
    ]
    _assign(model, values)
    if file.major < 3:
        arguments.mark_hard_sigmoid(model)
        defaults.warn_of_others(model, file, pairs)


def _values_by_name(model: Any, file: H5File) -> list[tuple[Any, Array]]:
    """The values of the weights of a model that was made from the same file."""
    by_name = {layers.renamed(name): arrays for name, arrays in file.layers.items()}
    values: list[tuple[Any, Array]] = []
    for layer in model.layers:
        values += layer_weights.values_of(layer, by_name.pop(layer.name, []), file)
    if unknown := [name for name, arrays in by_name.items() if arrays]:
        raise ValueError(f"{file.path} has weights of {', '.join(unknown)}, which is no layer")
    return values


def _pairs(model: Any, file: H5File) -> list[tuple[Any, list[NamedArray]]]:
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
