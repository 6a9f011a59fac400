"""load_h5 and load_h5_weights."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import keras

from tf_lstm_ops.keras import convert
from tf_lstm_ops.keras.old_files import layer_weights, layers, models
from tf_lstm_ops.keras.requirements import require_model
from tf_lstm_ops.weights import h5_file
from tf_lstm_ops.weights.arrays import Array
from tf_lstm_ops.weights.h5_file import H5File, NamedArray


def load_h5(
    path: str | os.PathLike[str], custom_objects: Mapping[str, Any] | None = None
) -> keras.Model:
    """Loads a model of an .h5 file that Keras 1 or 2 wrote, as the version that wrote it meant it.

    The model has the layers of ``tf_lstm_ops.keras`` in place of LSTM, GRU, SimpleRNN, CuDNNLSTM,
    CuDNNGRU and Bidirectional, as after `convert_model`, and the other layers of ``keras.layers``.
    It computes what it computed in the version of Keras that wrote the file. That holds for
    "hard_sigmoid" too, which is another function in Keras 3: the weights of the gates are scaled by
    1.2, or the layer has the activation `keras_2_hard_sigmoid`. The model is not compiled. No code
    in the file is run. A file of Keras 3 is loaded by Keras, then converted.

    Args:
      path: a file of ``model.save``.
      custom_objects: your own classes of layers by name; each must have a ``from_config`` that
        takes the configuration in the file.

    Returns:
      The model.

    Raises:
      OSError: the file cannot be read.
      ValueError: it has weights only, is damaged, or has a layer that cannot be made in Keras 3;
        the message names the layer and says what still works.
    """
    file, objects = h5_file.read(path), dict(custom_objects or {})
    if file.config is None:
        raise ValueError(
            f"{file.path} has the weights of a model (Keras {file.version}), not its layers. Make "
            "the model in Python and call tf_lstm_ops.keras.load_h5_weights(model, path)"
        )
    with keras.saving.custom_object_scope(objects):
        if file.major >= 3:
            model = keras.models.load_model(file.path, compile=False)
        else:
            model = models.model_of(file.config, layers.Source(file, objects, []))
            _put_by_name(model, file)
        return convert.convert_loaded(model)


def load_h5_weights(model: keras.Model, path: str | os.PathLike[str]) -> None:
    """Sets the weights of a model by an .h5 file that Keras 1 or 2 wrote.

    The counterpart of ``model.load_weights`` for files of ``save_weights``, and of ``save``. The
    layers of the model are those of the file by name if all names agree, else by order. Arrays of
    CuDNNLSTM and CuDNNGRU, and those of Keras 1, are converted. If the file is of Keras 1 or 2, and
    a layer of the model has recurrent_activation="hard_sigmoid", the weights are scaled as by
    `load_h5`.

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
    _put(model, h5_file.read(path))


def _put_by_name(model: Any, file: H5File) -> None:
    """Sets the weights of a model that was made from the same file."""
    by_name = {layers.renamed(name): arrays for name, arrays in file.layers.items()}
    values: list[tuple[Any, Array]] = []
    for layer in model.layers:
        values += layer_weights.values_of(layer, by_name.pop(layer.name, []), file)
    if unknown := [name for name, arrays in by_name.items() if arrays]:
        raise ValueError(f"{file.path} has weights of {', '.join(unknown)}, which is no layer")
    _assign(values)


def _put(model: Any, file: H5File) -> None:
    own = [layer for layer in model.layers if layer_weights.has_weights(layer)]
    given = {layers.renamed(name): arrays for name, arrays in file.layers.items() if arrays}
    if {layer.name for layer in own} == given.keys():
        pairs: list[tuple[Any, list[NamedArray]]] = [(layer, given[layer.name]) for layer in own]
    elif len(own) == len(given):
        pairs = list(zip(own, given.values(), strict=True))
    else:
        raise ValueError(
            f"{file.path} has weights of {len(given)} layers ({', '.join(given)}), and the model "
            f"{model.name} has {len(own)} ({', '.join(layer.name for layer in own)})"
        )
    values = [
        each for layer, arrays in pairs for each in layer_weights.values_of(layer, arrays, file)
    ]
    _assign(values)


def _assign(values: list[tuple[Any, Array]]) -> None:
    for weight, value in values:
        weight.assign(value)
