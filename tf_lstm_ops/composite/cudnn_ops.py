"""The CudnnRNN ops with their arguments and results. The equations: cudnn_rnn.py."""

from __future__ import annotations

import functools
import math
from typing import Any

import tensorflow as tf

from tf_lstm_ops.composite.common import Composite, with_unused
from tf_lstm_ops.composite.cudnn_rnn import (
    cudnn_rnn,
    cudnn_rnn_backprop,
    model_attributes,
    model_of,
)
from tf_lstm_ops.cudnn_layout import Model

_INPUTS = ("input", "input_h", "input_c", "params")


def _rnn(
    *,
    version: int,
    sequence_lengths: tf.Tensor | None = None,
    is_training: bool,
    dropout: float,
    seed: int,
    seed2: int,
    **others: Any,
) -> list[tf.Tensor]:
    """CudnnRNN, V2 and V3.

    The random values of dropout are TensorFlow's, from the same seeds; if both are 0, TensorFlow
    chooses them.
    """
    input, input_h, input_c, params = (others[name] for name in _INPUTS)
    settings = model_attributes(others)
    model = checked_model(input, input_h, input_c, sequence_lengths, settings)
    if settings["rnn_mode"] != "lstm":
        params = with_unused(params, input_c)
    mask = None
    if is_training and _drops(model, dropout):
        time, batch = tf.unstack(tf.shape(input)[:2])[:: 1 if settings["time_major"] else -1]
        shape = [model.num_layers - 1, time, batch, model.directions * model.output_size]
        draws = tf.raw_ops.RandomUniform(shape=shape, dtype=tf.float32, seed=seed, seed2=seed2)
        mask = tf.where(draws < dropout, 0.0, 1 / (1 - dropout) if dropout < 1 else 0.0)
    results = cudnn_rnn(input, input_h, input_c, params, sequence_lengths, mask, **settings)
    results.append(tf.zeros([0] if is_training else [], input.dtype))
    if version > 1:
        results.append(tf.zeros([2] if version == 2 and is_training else [], tf.int8))
    return results


def _rnn_backprop(
    *, sequence_lengths: tf.Tensor | None = None, dropout: float, **others: Any
) -> list[tf.Tensor]:
    """CudnnRNNBackprop, V2 and V3. The forward pass is computed again."""
    input, input_h, input_c, params = (others[name] for name in _INPUTS)
    settings = model_attributes(others)
    model = checked_model(input, input_h, input_c, sequence_lengths, settings)
    if _drops(model, dropout):
        raise ValueError(
            f"dropout must be 0 but is {dropout}: where only plain TensorFlow ops may run, such as "
            "in XLA, its mask cannot be read from reserve_space; differentiate the forward op there"
        )
    output_grads = [others[f"output{end}_backprop"] for end in ("", "_h", "_c")]
    inputs = [input, input_h, input_c, params]
    return cudnn_rnn_backprop(inputs, output_grads, sequence_lengths, None, **settings)


def _drops(model: Model, dropout: float) -> bool:
    return dropout > 0 and model.num_layers > 1


def checked_model(
    input: tf.Tensor,
    input_h: tf.Tensor,
    input_c: tf.Tensor,
    lengths: tf.Tensor,
    settings: dict[str, Any],
) -> Model:
    """Checks the shapes that TensorFlow would broadcast or not check.

    Args:
      input, input_h, input_c: as the ops take them.
      lengths: sequence_lengths, or None.
      settings: rnn_mode, input_mode, direction, num_proj and time_major.

    Returns:
      The model.

    Raises:
      ValueError: two shapes do not fit together, or a size that must be static is not.
    """
    batch_axis = 1 if settings["time_major"] else 0
    batch, rows = input.shape[batch_axis], input_h.shape[batch_axis]
    if None not in (batch, rows) and rows != batch:
        raise ValueError(f"input_h.dim_size({batch_axis}) != batch_size: {rows} vs. {batch}")
    if lengths is not None and not lengths.shape.is_compatible_with([batch]):
        raise ValueError(f"sequence_lengths must have shape [{batch}] but has {lengths.shape}")
    is_lstm = settings["rnn_mode"] == "lstm"
    if is_lstm and not input_h.shape[:2].is_compatible_with(input_c.shape[:2]):
        raise ValueError(f"input_h and input_c do not fit: {input_h.shape} {input_c.shape}")
    return model_of(input, input_h, input_c, **settings)


def _params_size(*, S: tf.DType, **model: Any) -> list[tf.Tensor]:
    """CudnnRNNParamsSize, [1] of the type S."""
    size = _model_of_sizes(**model).size()
    if size > S.max:  # tf.constant would drop the high bits
        text = f"params has {size} elements, which overflows {S.name}"
        raise tf.errors.InvalidArgumentError(None, None, text)
    return [tf.constant([size], S)]


def _canonical_to_params(
    *, weights: list[tf.Tensor], biases: list[tf.Tensor], **model: Any
) -> list[tf.Tensor]:
    """CudnnRNNCanonicalToParams and V2. The buffer is in the order of the lists."""
    flat = []
    for name, values, shapes in _canonical(model, weights=weights, biases=biases):
        for n, (value, shape) in enumerate(zip(values, shapes, strict=True)):
            if value.shape.num_elements() not in (None, math.prod(shape)):
                raise ValueError(
                    f"{name}[{n}] must have {math.prod(shape)} elements, "
                    f"{' x '.join(map(str, shape))}, but has shape {value.shape}"
                )
            flat.append(tf.reshape(value, [math.prod(shape)]))
    return [tf.concat(flat, axis=0)]


def _params_to_canonical(
    *, params: tf.Tensor, num_params_weights: int, num_params_biases: int, **model: Any
) -> list[tf.Tensor]:
    """CudnnRNNParamsToCanonicalV2: the weights, then the biases."""
    counts = {"weights": range(num_params_weights), "biases": range(num_params_biases)}
    shapes = [shape for _, _, each in _canonical(model, **counts) for shape in each]
    values = tf.split(params, [math.prod(shape) for shape in shapes])
    return [tf.reshape(value, shape) for value, shape in zip(values, shapes, strict=True)]


def _params_to_canonical_v1(*, num_params: int, **others: Any) -> list[tf.Tensor]:
    counts = {"num_params_weights": num_params, "num_params_biases": num_params}
    return _params_to_canonical(**counts, **others)


def _model_of_sizes(**given: Any) -> Model:
    """The model of num_layers, num_units and input_size, which must be known while tracing."""
    names = ("num_layers", "num_units", "input_size")
    values = [tf.get_static_value(given[name]) for name in names]
    for name, value in zip(names, values, strict=True):
        if value is None:
            raise ValueError(f"{name} must be a constant where only plain TensorFlow ops may run")
    layers, units, inputs = map(int, values)
    directions = 2 if given["direction"] == "bidirectional" else 1
    projection = given.get("num_proj", 0)
    mode, input_mode = given["rnn_mode"], given["input_mode"]
    return Model(mode, inputs, units, layers, directions, projection, input_mode)


def _canonical(given: dict[str, Any], **lists: Any) -> list[tuple[str, Any, list[tuple[int, ...]]]]:
    """For weights and biases the name, the list given and the shapes that are due: one for each
    gate of each region of the buffer, in its order.
    """
    model = _model_of_sizes(**given)
    due: dict[str, list[tuple[int, ...]]] = {"weights": [], "biases": []}
    for region in model.regions():
        name = "biases" if region.kind.endswith("bias") else "weights"
        due[name] += [region.shape[1:]] * region.shape[0]
    for name, shapes in due.items():
        if len(lists[name]) != len(shapes):
            raise ValueError(
                f"Number of {name} must be {len(shapes)} for {model.num_layers} layers in "
                f"{model.directions} directions but is {len(lists[name])}"
            )
    return [(name, lists[name], shapes) for name, shapes in due.items()]


COMPOSITES: dict[str, Composite] = {
    "CudnnRNN": functools.partial(_rnn, version=1),
    "CudnnRNNV2": functools.partial(_rnn, version=2),
    "CudnnRNNV3": functools.partial(_rnn, version=3),
    "CudnnRNNBackprop": _rnn_backprop,
    "CudnnRNNBackpropV2": _rnn_backprop,
    "CudnnRNNBackpropV3": _rnn_backprop,
    "CudnnRNNParamsSize": _params_size,
    "CudnnRNNCanonicalToParams": _canonical_to_params,
    "CudnnRNNCanonicalToParamsV2": _canonical_to_params,
    "CudnnRNNParamsToCanonical": _params_to_canonical_v1,
    "CudnnRNNParamsToCanonicalV2": _params_to_canonical,
}
