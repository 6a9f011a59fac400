"""``model.export(path, format="onnx")`` and ``format="litert"`` of models with layers of ours.

The arguments are those of Keras' own functions, which cannot write the fused ops.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops import _files, _keras_private
from tf_lstm_ops.export import batch, errors
from tf_lstm_ops.export.check import Difference
from tf_lstm_ops.export.lite import check
from tf_lstm_ops.export.lite.convert import convert
from tf_lstm_ops.export.lite.layers import recurrent_layers
from tf_lstm_ops.export.lite.trace import Traced, trace
from tf_lstm_ops.export.onnx import onnx as write_onnx
from tf_lstm_ops.export.signature import signature
from tf_lstm_ops.export.tflite import describe, write_checked
from tf_lstm_ops.keras.counterparts import is_ours

_SAMPLES = 4  # of representative_dataset, on which a file is checked


def replace() -> None:
    """Makes ``model.export`` write models with layers of ours by `onnx` and `litert`.

    All other models, and all other formats, stay with Keras.
    """
    _keras_private.replace_exports(
        {"onnx": onnx, "litert": litert},
        lambda model: any(map(is_ours, _keras_private.layers_of(model))),
    )


def onnx(
    model: keras.Model,
    filepath: str | os.PathLike[str],
    verbose: bool | None = None,
    input_signature: Sequence[Any] | None = None,
    opset_version: int | None = None,
    **others: Any,
) -> None:
    """Writes an ONNX file as `tf_lstm_ops.export.onnx` does.

    Args:
      model: a model with layers of this package.
      filepath: the file to write.
      verbose: whether to print that the file was written; None does so, too. True also prints what
        `tf_lstm_ops.export.onnx` prints.
      input_signature: as of ``model.export``.
      opset_version: the version of ONNX' operators; None: the default of `tf_lstm_ops.export.onnx`.
      **others: none.

    Raises:
      TypeError: there are other arguments; the text names them.
      ImportError, ValueError: as of `tf_lstm_ops.export.onnx`.
    """
    if others:
        raise TypeError(
            'model.export(path, format="onnx") takes verbose, input_signature and opset_version. '
            f"Received: {', '.join(others)}"
        )
    specs = None if input_signature is None else _keras_private.specs_of_export(input_signature)
    write_onnx(model, filepath, opset_version, bool(verbose), input_signature=specs)
    _say_saved(filepath, verbose)


def litert(
    model: keras.Model,
    filepath: str | os.PathLike[str],
    input_signature: Any = None,
    verbose: bool | None = None,
    **options: Any,
) -> None:
    """Writes a .tflite file with open batch sizes, as ``model.export`` does, and checks it.

    Recurrent layers become plain ops or a loop; an LSTM layer becomes the fused op where the batch
    size is known.

    Args:
      model: a model with layers of this package.
      filepath: the file to write; its name ends in ".tflite".
      input_signature: as of ``model.export``.
      verbose: as of `onnx`.
      **options: attributes of ``tf.lite.TFLiteConverter``, as Keras takes them.

    Raises:
      ValueError: the name does not end in ".tflite"; the converter has no such attribute; a layer
        is stateful; and as of `tf_lstm_ops.export.tflite`.
    """
    path = os.fspath(filepath)
    if not path.endswith(".tflite"):
        raise ValueError(f"filepath must end with .tflite. Received: {path}")
    quantize = _quantize(options)
    specs = batch.with_needed_sizes(model, signature(model, _specs(input_signature)))
    model = _functional(model, specs)
    errors.require_float32(model, "TensorFlow Lite in")
    for item in recurrent_layers(model):
        if item.layer.stateful:
            raise ValueError(
                f'layer {item.path} is stateful, which model.export(path, format="litert") cannot '
                "write. Call tf_lstm_ops.export.tflite(model, path, stateful=True)"
            )
    traced = trace(model, specs, None, stateful=False, loops=quantize != "int8")
    with errors.with_unknown_steps(model):
        content = convert(
            traced,
            quantize,
            lambda converter: _keras_private.configure_lite(converter, options),
            flex=True,
        )
        found = _written(content, path, model, traced, quantize, options)
    if verbose:
        describe(path, content, quantize, traced, found)
    _say_saved(path, verbose)


def _written(
    content: bytes,
    path: str,
    model: keras.Model,
    traced: Traced,
    quantize: str | None,
    options: dict[str, Any],
) -> dict[str, Difference]:
    """The difference of each output of the file, which is checked if its types are the model's."""
    others = sorted({"inference_input_type", "inference_output_type"} & options.keys())
    if not others:
        return write_checked(content, path, model, traced, _batches(traced, options), quantize)
    with _files.replacement(path, content):
        pass
    warnings.warn(
        f"{path} was not compared with the model: {', '.join(others)} gives it other types",
        stacklevel=4,
    )
    return {}


def _batches(traced: Traced, options: dict[str, Any]) -> list[check.Values]:
    """Inputs for the check: the first of representative_dataset, else random ones."""
    samples = options.get("representative_dataset")
    samples = getattr(samples, "input_gen", samples)  # tf.lite.RepresentativeDataset
    if samples is None:
        return check.random_batches(traced)
    batches = []
    for sample in itertools.islice(samples(), _SAMPLES):
        given = sample[1] if isinstance(sample, tuple) else sample  # the name of the signature
        named = given if isinstance(given, dict) else dict(zip(traced.inputs, given, strict=True))
        batches.append({name: np.asarray(named[name]) for name in traced.inputs})
    return batches


def _say_saved(filepath: str | os.PathLike[str], verbose: bool | None) -> None:
    if verbose is None or verbose:
        print(f"Saved artifact at '{os.fspath(filepath)}'.")


def _specs(input_signature: Any) -> list[Any] | None:
    """Keras takes one structure as the signature of one argument."""
    if input_signature is None:
        return None
    is_list = isinstance(input_signature, list | tuple)
    specs = _keras_private.specs_of_export(input_signature if is_list else [input_signature])
    return list(specs)


def _quantize(options: dict[str, Any]) -> str | None:
    """The name of the quantisation in `tf_lstm_ops.export.tflite`."""
    if options.get("representative_dataset") is not None:
        return "int8"
    target = options.get("target_spec") or {}
    types = target.get("supported_types") if isinstance(target, dict) else target.supported_types
    if tf.float16 in (types or []):
        return "float16"
    return "dynamic" if options.get("optimizations") else None


def _functional(model: keras.Model, specs: Sequence[Any]) -> keras.Model:
    """The model, or a functional model that calls it."""
    if getattr(model, "inputs", None) is not None:
        return model
    inputs = keras.tree.map_structure(
        lambda spec: keras.Input(batch_shape=tuple(spec.shape), dtype=spec.dtype.name), list(specs)
    )
    return keras.Model(inputs[0] if len(inputs) == 1 else inputs, model(*inputs))
