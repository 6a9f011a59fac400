"""The options of a layer, read once for all that ask what computes it.

All functions take the layers of this package and those of ``keras.layers``, also ``RNN`` of one
cell: the options are the cell's.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, NamedTuple

import keras

from tf_lstm_ops import _deviation, _targets
from tf_lstm_ops._activations import DEFAULTS
from tf_lstm_ops._targets import OPTIONS, Effect, Target
from tf_lstm_ops.keras.activations import described, name_of

# Those that say which op computes a layer.
STEP = (Effect.STEP, Effect.LOOP)
_PACKAGES = ("keras", "tf_lstm_ops")
# Arguments of all layers of Keras.
_OF_EVERY_LAYER = frozenset(
    {"self", "cell", "name", "dtype", "trainable", "autocast", "input_shape", "weights"}
)


class LayerOptions(NamedTuple):
    """The options of a layer.

    Attributes:
      op: its op, without the namespace.
      given: the options that differ from their defaults, also those that no table has.
    """

    op: str
    given: dict[str, Any]


def op_of(layer: Any) -> str:
    """The op of a layer.

    Args:
      layer: an LSTM, a GRU or a SimpleRNN.

    Returns:
      The op's name without its namespace.
    """
    cell = getattr(layer, "cell", layer)
    if isinstance(cell, keras.layers.SimpleRNNCell):
        return "KerasSimpleRNN"
    is_lstm = isinstance(cell, keras.layers.LSTMCell)
    if getattr(cell, "layer_normalization", None) is not None:
        return "KerasLayerNormLSTM" if is_lstm else "KerasLayerNormGRU"
    if is_lstm:
        return "KerasLSTM"
    return "KerasGRU" if cell.reset_after else "KerasResetBeforeGRU"


def of(layer: Any, effects: tuple[Effect, ...] = tuple(Effect)) -> LayerOptions:
    """Reads the options of a layer.

    Args:
      layer: an LSTM, a GRU, a SimpleRNN or a stack; or a cell.
      effects: of the options that are read.

    Returns:
      Its options. An argument of its constructor that no table has is among them, unless it is None
      or False.
    """
    cell = getattr(layer, "cell", layer)
    is_stack = hasattr(cell, "mode")  # a StackedCells
    op = _op_of_stack(layer) if is_stack else op_of(layer)
    given: dict[str, Any] = {}
    for name, option in OPTIONS.items():
        if option.effect in effects:
            value = _value(layer, layer if is_stack else cell, name)
            if _targets.is_given(name, value):
                given[name] = value
    kinds = (type(layer),) if is_stack else (type(layer), type(cell))
    for name in _unknown(*map(_class_with_options, kinds)):
        value = getattr(layer, name, getattr(cell, name, None))
        if value not in (None, False):
            given[name] = value
    return LayerOptions(op, given)


def _op_of_stack(layer: Any) -> str:
    clips = (getattr(layer, name, None) for name in ("cell_clip", "proj_clip"))
    kind = "LSTM" if layer.cell.mode == "lstm" else "GRU"
    return f"{'Clipped' if any(clips) else ''}Stacked{kind}"


def _value(layer: Any, cell: Any, name: str) -> Any:
    """An option of the cell, or of the layer if no cell has it; the default if neither has it."""
    if name in DEFAULTS:
        function = getattr(cell, name, None)
        if function is None:
            return DEFAULTS[name]
        return name_of(function) or _targets.Unknown(described(function))
    default = OPTIONS[name].default
    if OPTIONS[name].is_own and (value := getattr(cell, name, None)):
        return value  # users may give a layer another cell
    return getattr(layer, name, getattr(cell, name, default))


def _class_with_options(kind: type) -> type:
    """The class of Keras or of this package that says what the options of a layer are."""
    kinds = _deviation.class_that_computes(kind).__mro__
    return next(k for k in kinds if k.__module__.partition(".")[0] in _PACKAGES)


def _unknown(*kinds: type) -> tuple[str, ...]:
    """The arguments of constructors that no table has."""
    constructors = tuple(kind.__init__ for kind in kinds)  # type: ignore[misc]
    return tuple(name for name in _arguments(*constructors) if name not in OPTIONS)


@functools.cache
def _arguments(*constructors: Any) -> tuple[str, ...]:
    found = (p for each in constructors for p in inspect.signature(each).parameters.values())
    named = [p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return tuple(dict.fromkeys(name for name in named if name not in _OF_EVERY_LAYER))


def why_not(
    layer: Any,
    target: Target,
    effects: tuple[Effect, ...] = STEP,
    name: str | None = None,
) -> str | None:
    """Why a target does not compute a layer.

    Args:
      layer: as of `of`.
      target: one of `_targets.TARGETS`.
      effects: of the options that count.
      name: of the target in the message; None: its own.

    Returns:
      The reason; None if it computes the layer.
    """
    return _targets.why_not(target, *of(layer, effects), name)
