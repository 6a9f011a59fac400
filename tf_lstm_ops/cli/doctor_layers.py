"""Which path each recurrent layer of a model takes, and what to change for the fused op."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import keras

from tf_lstm_ops import _deviation
from tf_lstm_ops._activations import DEFAULTS
from tf_lstm_ops._targets import NORMALIZATION, OPTIONS
from tf_lstm_ops.keras import class_names, counterparts, model_layers, ours_stack, user_objects
from tf_lstm_ops.keras.fused import FusedRNN
from tf_lstm_ops.keras.old_files.arguments import (
    HARD_SIGMOID_DIFFERS,
    may_be_hard_sigmoid_of_keras_2,
)
from tf_lstm_ops.keras.types import GPUPath

CONVERT = "tf_lstm_ops.keras.convert_model replaces it"

_HARD_SIGMOID = (
    f"{HARD_SIGMOID_DIFFERS}: if Keras 2 trained the model, load its .h5 file with "
    "tf_lstm_ops.keras.load_h5"
)

# Options of layers of ours with the values that do not leave the fused op.
_FUSED_OPTIONS = {
    name: option.default
    for name, option in OPTIONS.items()
    if name in DEFAULTS or (option.is_own and name not in NORMALIZATION)
}
Path = Literal["fused op", "cuDNN", "plain ops", "stock loop"]

# What each value of FusedRNN.gpu_path is in a finding.
_PATHS: dict[GPUPath, Path] = {
    "no GPU": "fused op",
    "CPU kernels": "fused op",
    "GPU kernels": "fused op",
    "cuDNN": "cuDNN",
    "plain ops": "plain ops",
    "Keras' own loop": "stock loop",
}


class Change(NamedTuple):
    """What to change so that a layer runs the fused op.

    Attributes:
      sentence: what to do.
      same_results: whether the model then predicts the same without training.
      replacement: the layer after the change, not built.
    """

    sentence: str
    same_results: bool
    replacement: Any


class Finding(NamedTuple):
    """What is known of a layer without running it.

    Attributes:
      name: the path of names in the model, such as "bidirectional/forward_lstm".
      layer: the layer.
      path: "fused op"; "cuDNN"; "plain ops", a loop of TensorFlow's ops; "stock loop", Keras' own.
      reason: why it does not run the fused op; None if it does.
      change: None if there is nothing to change.
    """

    name: str
    layer: keras.Layer
    path: Path
    reason: str | None
    change: Change | None


def findings(model: keras.Model) -> list[Finding]:
    """Examines the recurrent layers of a model, also those of wrappers and nested models.

    Args:
      model: a Keras model.

    Returns:
      One finding for each layer, in the model's order.
    """
    with user_objects.known(model):
        return [_examine(item.path, item.layer) for item in _each(model)]


def halves(model: keras.Model) -> dict[str, str]:
    """Which layers are halves of a Bidirectional.

    Args:
      model: a Keras model.

    Returns:
      The name of the Bidirectional by that of the layer, as of `Finding.name`.
    """
    found = filter(_is_half, _each(model))
    return {item.path: item.path.rpartition("/")[0] for item in found}


def _each(model: keras.Model) -> list[model_layers.Located]:
    return [*{id(item.layer): item for item in model_layers.recurrent(model)}.values()]


def _is_half(item: model_layers.Located) -> bool:
    return isinstance(item.parents[-1], keras.layers.Bidirectional)


def count_of_ours(model: keras.Model) -> int:
    """The number of recurrent layers of this package in a model.

    Args:
      model: a Keras model.

    Returns:
      The number. A Bidirectional counts once.
    """
    ours = [i for i in _each(model) if type(i.layer).__module__.startswith("tf_lstm_ops.")]
    return len({id(item.parents[-1] if _is_half(item) else item.layer) for item in ours})


def _examine(name: str, layer: keras.Layer) -> Finding:
    if isinstance(layer, FusedRNN):
        path = _PATHS[layer.gpu_path]
        reason = layer.fallback_reason
        if reason is None and path == "plain ops":
            reason = "the GPU kernels are off or do not compute this layer"
        elif path == "cuDNN":
            reason = "TensorFlow's own op for cuDNN computes it"
        change = None
        if layer.fallback_reason and _deviation.of(layer) is None:
            change = _other_options(layer, "")
        return Finding(name, layer, path, reason, change)
    if _takes_cudnn(layer):
        reason = "Keras runs cuDNN, if the mask is padded on the right"
        return Finding(name, layer, "cuDNN", reason, None)
    if isinstance(layer, model_layers.CELLS):
        return Finding(name, layer, "plain ops", "a cell computes one step in a call", None)
    reason, change = _of_stock(layer)
    return Finding(name, layer, "stock loop", reason, change)


def _takes_cudnn(layer: keras.Layer) -> bool:
    """Whether Keras computes a stock layer with cuDNN. It turns XLA off for those layers."""
    is_stock = type(layer) in (keras.layers.LSTM, keras.layers.GRU)
    return is_stock and not layer.supports_jit and not layer.recurrent_dropout


def _of_stock(layer: keras.Layer) -> tuple[str, Change | None]:
    """Why a stock layer does not run the fused op, and what to change."""
    if ours_stack.is_of_cells(layer):
        return _of_stack(layer)
    new = counterparts.equivalent(layer)
    if isinstance(new, str):
        return new, None
    if new.fallback_reason is not None:
        return new.fallback_reason, _other_options(new, f"; then {CONVERT}")
    reason = f"it is {class_names.public(type(layer))}"
    if may_be_hard_sigmoid_of_keras_2(layer):
        return reason, Change(f"{CONVERT}. {_HARD_SIGMOID}", False, new)
    return reason, Change(CONVERT, True, new)


def _of_stack(layer: keras.Layer) -> tuple[str, Change | None]:
    """As `_of_stock`, of a layer of StackedRNNCells."""
    reason = ours_stack.of(layer)
    if not isinstance(reason, str):
        return f"it is {class_names.public(type(layer))}", Change(CONVERT, True, reason)
    cells = layer.cell.cells
    parts = []
    for number, cell in enumerate(cells, 1):
        options = {"dtype": cell.dtype_policy, "trainable": cell.trainable}
        options["return_sequences"] = layer.return_sequences or number < len(cells)
        options["go_backwards"] = layer.go_backwards and number == 1
        part = counterparts.ours(keras.layers.RNN(cell, **options))
        if isinstance(part, str):
            return f"{reason}; {cell.name}: {part}", None
        parts.append(part)
    sentence = "make one keras.layers.RNN of each cell; then convert_model replaces these layers"
    return reason, Change(sentence, True, keras.Sequential(parts))


def _other_options(layer: keras.Layer, then: str) -> Change | None:
    """The fewest options of a layer of ours to change, such that it runs the fused op."""
    config = counterparts.config_of(layer)
    options = {
        name: value
        for name, value in _FUSED_OPTIONS.items()
        if hasattr(layer, name) and getattr(layer, name) != _attribute(value)
    }
    if (new := _fused(layer, config, options)) is None:
        return None
    for name in list(options):
        fewer = {k: v for k, v in options.items() if k != name}
        if (other := _fused(layer, config, fewer)) is not None:
            options, new = fewer, other
    values = " and ".join(f"{name}={value!r}" for name, value in options.items())
    return Change(f"set {values} and train the model again{then}", False, new)


def _attribute(value: Any) -> Any:
    """An option as a layer keeps it: activations are functions."""
    return keras.activations.get(value) if isinstance(value, str) else value


def _fused(layer: keras.Layer, config: dict[str, Any], options: dict[str, Any]) -> Any:
    """A layer with other options; None if there is none, or if it does not run the fused op."""
    try:
        new = counterparts.deserialise(type(layer), {**config, **options})
    except ValueError:  # such as proj_clip without a projection
        return None
    return new if new.fallback_reason is None else None
