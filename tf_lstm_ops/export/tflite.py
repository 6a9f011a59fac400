"""Export of Keras models to TensorFlow Lite (LiteRT)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops import _files
from tf_lstm_ops.export import errors
from tf_lstm_ops.export.check import Difference
from tf_lstm_ops.export.lite import check, flatbuffer
from tf_lstm_ops.export.lite.convert import configured, convert
from tf_lstm_ops.export.lite.layers import recurrent_layers
from tf_lstm_ops.export.lite.trace import Traced, trace
from tf_lstm_ops.export.signature import signature
from tf_lstm_ops.keras.requirements import require_model


def tflite(
    model: keras.Model,
    filepath: str | os.PathLike[str],
    quantize: str | None = None,
    representative_data: Any = None,
    *,
    batch_size: int = 1,
    stateful: bool = False,
    verbose: bool = False,
    input_signature: Sequence[Any] | None = None,
) -> None:
    """Writes a model as a .tflite file for TensorFlow Lite, now called LiteRT.

    The file has TensorFlow Lite's own ops only. An LSTM layer with the default activations and
    without a mask becomes the fused op UNIDIRECTIONAL_SEQUENCE_LSTM, other recurrent layers become
    plain ops or a loop. Each call of the file starts from zero states, as a call of the model does.
    The file has one signature, ``serving_default``, with the names of the model's inputs and
    outputs. Before it returns, the function runs the file and compares it with the model.

    >>> import keras
    >>> from tf_lstm_ops import export
    >>> from tf_lstm_ops.keras import LSTM
    >>> model = keras.Sequential([keras.Input((20, 8)), LSTM(4)])
    >>> export.tflite(model, "model.tflite", quantize="float16")

    Args:
      model: a functional or Sequential ``keras.Model`` in float32, with layers of this package,
        stock layers or both.
      filepath: the file to write.
      quantize: None: float32. "float16": weights in float16. "dynamic": weights in int8, other
        values in float32. "int8": weights and other values in int8, inputs and outputs in float32;
        recurrent layers then need a known number of steps.
      representative_data: for "int8", inputs by which the ranges of values are measured: an array
        [N, ...], or a list or dict of arrays, as ``model.predict`` takes them, with N at least
        batch_size; or a function without arguments that returns an iterable of batches of
        batch_size rows. If given, the file is checked on them instead of random inputs.
      batch_size: the batch size of the file. The number of steps is that of the model's inputs; it
        may be unknown there, and then the interpreter takes any.
      stateful: whether the states of all recurrent layers are inputs and outputs of the file, to
        compute a sequence in pieces. Their names are those of the layers with ``_h`` or ``_c``, the
        same for input and output, [batch_size, H] each; of a StackedLSTM, ``_l0_h``, ``_l0_c``,
        ``_l1_h`` and so on. The first piece begins with zeros.
      verbose: whether to print the form of each layer, the ops, the size and the differences.
      input_signature: the inputs of the file, as of `saved_model`. It can fix a number of steps
        that the model leaves open. A batch size in it must be batch_size.

    Raises:
      TypeError: model is not a ``keras.Model``, or batch_size, representative_data or
        input_signature has a wrong type.
      ImportError: this TensorFlow has no ``tf.lite.TFLiteConverter``.
      ValueError: an argument is not valid; a layer cannot be written as asked, which the text
        names; TensorFlow's converter fails; the file would need ops that TensorFlow Lite does not
        have, or cannot run; with "int8", representative_data leaves a sum zero; or the file's
        results differ from the model's by more than the tolerance of ``quantize``. There is no new
        file then; a file that was there before is unchanged.
    """
    _check_arguments(model, batch_size, quantize, representative_data)
    _check_layers(model, stateful)
    specs = signature(model, input_signature, batch_size)
    traced = trace(model, specs, batch_size, stateful=stateful, loops=quantize != "int8")
    batches = check.random_batches(traced)
    if representative_data is not None:
        batches = list(_batches(representative_data, model, traced, batch_size))
    samples = _with_states(batches, traced) if quantize == "int8" else None
    with errors.with_unknown_steps(model):
        content = convert(traced, quantize, configured(quantize, samples))
        found = write_checked(content, os.fspath(filepath), model, traced, batches, quantize)
    if verbose:
        describe(os.fspath(filepath), content, quantize, traced, found)


def _check_arguments(
    model: keras.Model, batch_size: Any, quantize: Any, representative_data: Any
) -> None:
    require_model(model)
    if getattr(model, "inputs", None) is None:
        raise ValueError(
            f"model must be a functional or a built Sequential model. {model.name} is neither; "
            "keras.Model(x, model(x)) with x = keras.Input(...) makes one of it"
        )
    if not isinstance(batch_size, int) or isinstance(batch_size, bool):
        raise TypeError(f"batch_size must be an integer. Received: {batch_size!r}")
    if batch_size < 1:
        raise ValueError(f"batch_size must be positive. Received: {batch_size}")
    if quantize not in check.TOLERANCES:
        raise ValueError(
            f"quantize must be None, 'float16', 'dynamic' or 'int8'. Received: {quantize!r}"
        )
    if quantize == "int8" and representative_data is None:
        raise ValueError(
            "quantize='int8' needs representative_data, inputs by which the ranges of values are "
            "measured"
        )


def _check_layers(model: keras.Model, stateful: bool) -> None:
    hint = "; quantize='float16' stores them in 16 bits"
    errors.require_float32(model, "TensorFlow Lite in", hint)
    for item in recurrent_layers(model):
        if item.layer.stateful and not stateful:
            raise ValueError(
                f"layer {item.path} is stateful. Pass stateful=True, which makes its states inputs "
                "and outputs of the file"
            )


def _batches(
    data: Any, model: keras.Model, traced: Traced, batch_size: int
) -> Iterator[dict[str, np.ndarray]]:
    """The representative data as inputs by name."""
    if callable(data):
        batches = [_by_name(batch, model, traced) for batch in data()]
        if not batches:
            raise ValueError("representative_data returned no batch")
        yield from batches
        return
    arrays = _by_name(data, model, traced)
    rows = min(map(len, arrays.values()))
    if rows < batch_size:
        raise ValueError(
            f"representative_data must have at least batch_size={batch_size} rows. Received: {rows}"
        )
    for start in range(0, rows - batch_size + 1, batch_size):
        yield {name: array[start : start + batch_size] for name, array in arrays.items()}


def _by_name(data: Any, model: keras.Model, traced: Traced) -> dict[str, np.ndarray]:
    if isinstance(data, dict):
        arrays = [data.get(tensor.name) for tensor in model.inputs]
    else:
        arrays = list(data) if isinstance(data, list | tuple) else [data]
    if len(arrays) != len(traced.inputs) or any(array is None for array in arrays):
        raise ValueError(
            f"representative_data must have an array for each of the model's inputs "
            f"{[tensor.name for tensor in model.inputs]}"
        )
    result = {}
    for (name, spec), array in zip(traced.inputs.items(), arrays, strict=True):
        result[name] = np.asarray(array, spec.dtype.as_numpy_dtype)
        if not spec.shape[1:].is_compatible_with(result[name].shape[1:]):
            raise ValueError(
                f"representative_data for input {name} must have the shape [N, "
                f"{', '.join(map(str, spec.shape[1:]))}]. Received: {list(result[name].shape)}"
            )
    return result


def _with_states(
    batches: list[dict[str, np.ndarray]], traced: Traced
) -> list[dict[str, np.ndarray]]:
    """The batches with the states with which each begins, if they follow one another."""
    states = {name: np.zeros(spec.shape, "float32") for name, spec in traced.states.items()}
    samples = []
    for batch in batches:
        samples.append({**batch, **states})
        if states:
            results = traced.function(*map(tf.constant, samples[-1].values()))
            states = {name: results[name].numpy() for name in states}
    return samples


def write_checked(
    content: bytes,
    path: str,
    model: keras.Model,
    traced: Traced,
    batches: Iterable[dict[str, np.ndarray]],
    quantize: str | None,
) -> dict[str, Difference]:
    """Writes a file if it predicts what the model predicts.

    Args:
      content: the file.
      path: its name.
      model: the model.
      traced: the function from which the file was made.
      batches: inputs of the model by name.
      quantize: the quantisation.

    Returns:
      The difference of each output.

    Raises:
      ValueError: the file cannot run, or predicts something else.
    """
    with _files.replacement(path, content) as unchecked:
        found = check.differences(unchecked, model, traced, batches, quantize)
        check.reject(found, quantize)
    return found


def describe(
    path: str,
    content: bytes,
    quantize: str | None,
    traced: Traced,
    found: dict[str, Difference],
) -> None:
    """Prints the form of each layer, the ops, the size and the differences.

    Args:
      path: the name of the file.
      content: the file.
      quantize: the quantisation.
      traced: the function from which the file was made.
      found: the difference of each output.
    """
    print(f"{path}: {len(content):,} bytes, quantize={quantize!r}")
    for layer, form in traced.lowering.forms.items():
        print(f"  layer {layer}: {form}")
    ops = sorted(flatbuffer.operations(content).items())
    print(f"  ops: {', '.join(f'{name} {count}' for name, count in ops)}")
    tolerance, reason = check.TOLERANCES[quantize]
    for name, difference in found.items():
        print(
            f"  output {name}: largest difference {difference.error:.2g}, "
            f"{difference.relative:.2g} of the largest element {difference.size:.3g}"
        )
    print(f"  tolerance: {tolerance} of the largest element ({reason})")
