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


def drops(op: str, rate: float) -> bool:
    """Whether the stock cell applies a rate of dropout in training.

    Args:
      op: the op of the layer.
      rate: its dropout or recurrent_dropout.

    Returns:
      False for 0, and for 1, which the cells of LSTM and GRU ignore.
    """
    return rate > 0.0 and (rate < 1.0 or op == "KerasSimpleRNN")


def of(layer: Any, effects: tuple[Effect, ...] = tuple(Effect)) -> LayerOptions:
    """Reads the options of a layer.

    Args:
      layer: an LSTM, a GRU, a SimpleRNN or a stack; or a cell.
      effects: of the options that are read.

    Returns:
      Its options. An argument of its constructor that no table has is among them, unless it has its
      default.
    """
    cell = getattr(layer, "cell", layer)
    is_stack = hasattr(cell, "mode")  # a StackedCells
    op = _op_of_stack(layer) if is_stack else op_of(layer)
    given: dict[str, Any] = {}
    kinds = (type(layer),) if is_stack else (type(layer), type(cell))
    for name, default in _arguments(*map(_class_with_options, kinds)).items():
        if name not in OPTIONS:
            value = getattr(layer, name, getattr(cell, name, default))
            if _differs(value, default):
                given[name] = value
        elif OPTIONS[name].effect in effects:
            value = _value(layer, layer if is_stack else cell, name)
            if _targets.is_given(name, value):
                given[name] = value
    return LayerOptions(op, given)


def _differs(value: Any, default: Any) -> bool:
    """Whether an argument that no table has differs from its default."""
    if value is default:
        return False
    try:
        if default is inspect.Parameter.empty:
            return value not in (None, False)
        return bool(value != default)
    except ValueError:  # an array
        return True


def _op_of_stack(layer: Any) -> str:
    clips = (getattr(layer, name, None) for name in ("cell_clip", "proj_clip"))
    kind = "LSTM" if layer.cell.mode == "lstm" else "GRU"
    return f"{'Clipped' if any(clips) else ''}Stacked{kind}"


def _value(layer: Any, cell: Any, name: str) -> Any:
    """An option of the cell, or of the layer if no cell has it; the default if neither has it."""
    if name in DEFAULTS:
        if not hasattr(cell, name):  # a plain RNN, or a stack
            return DEFAULTS[name]
        function = getattr(cell, name)
        return name_of(function) or _targets.Unknown(described(function))
    if name == "use_cudnn":
        return getattr(layer, name, None) is True
    if OPTIONS[name].is_own and (value := getattr(cell, name, None)):
        return value  # users may give a layer another cell
    return getattr(layer, name, getattr(cell, name, OPTIONS[name].default))


def _class_with_options(kind: type) -> type:
    """The class of Keras or of this package that says what the options of a layer are."""
    kinds = _deviation.class_that_computes(kind).__mro__
    return next(k for k in kinds if k.__module__.partition(".")[0] in _PACKAGES)


@functools.cache
def _arguments_of(*constructors: Any) -> dict[str, Any]:
    """The arguments of constructors and their defaults."""
    found = (p for each in constructors for p in inspect.signature(each).parameters.values())
    return {
        p.name: p.default
        for p in found
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in _OF_EVERY_LAYER
    }


def arguments_of(kind: type) -> dict[str, Any]:
    """The arguments of the constructor of a class of layers, and their defaults.

    Args:
      kind: the class.

    Returns:
      The defaults by name; ``inspect.Parameter.empty`` without one. Arguments of all layers are not
      among them.
    """
    return _arguments(_class_with_options(kind))


def _arguments(*kinds: type) -> dict[str, Any]:
    """The arguments of classes and of their bases up to the layers of every kind."""
    bases = (each for kind in kinds for each in kind.__mro__ if issubclass(each, keras.Layer))
    own = (each for each in bases if each is not keras.Layer and "__init__" in vars(each))
    return _arguments_of(*(each.__init__ for each in own))  # type: ignore[misc]


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
