"""The options of recurrent layers, and what computes which of them.

An option is an argument of a layer or of its cell. A target is something that computes layers: a
kernel, a session, a node of a file. The tables below are the only ones. What a target does not
list, it does not compute.

This module imports neither TensorFlow nor Keras.
"""
# CONTRIBUTING.md says what a new option needs.

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from tf_lstm_ops import _cells
from tf_lstm_ops._activations import DEFAULTS, OF_CELLS, OF_PLAIN_RNN, TABLE


class Effect(enum.Enum):
    """What an option changes."""

    STEP = "what a step computes"
    SIZES = "the shapes of the weights"
    RESULTS = "which steps are computed, and what is returned"
    START = "with what the first step begins"
    TRAINING = "what a step computes in training"
    WEIGHTS = "initial values, losses and constraints"
    LOOP = "how Keras computes the steps"


class Option(NamedTuple):
    """An argument of a recurrent layer.

    Attributes:
      effect: what it changes.
      default: its default. None, False, 0 and "auto" mean the same.
      is_own: whether the layers of ``keras.layers`` lack it.
    """

    effect: Effect
    default: Any = None
    is_own: bool = False


OPTIONS = {
    **{name: Option(Effect.STEP, function) for name, function in DEFAULTS.items()},
    "use_peephole": Option(Effect.STEP, False, is_own=True),
    "cell_clip": Option(Effect.STEP, is_own=True),
    "projection_size": Option(Effect.STEP, is_own=True),
    "proj_clip": Option(Effect.STEP, is_own=True),
    "layer_normalization": Option(Effect.STEP, is_own=True),
    "layer_normalization_epsilon": Option(Effect.STEP, is_own=True),
    "reset_after": Option(Effect.STEP, True),
    "units": Option(Effect.SIZES),
    "use_bias": Option(Effect.SIZES, True),
    "num_layers": Option(Effect.SIZES),
    "bidirectional": Option(Effect.SIZES),
    "return_sequences": Option(Effect.RESULTS),
    "return_state": Option(Effect.RESULTS),
    "go_backwards": Option(Effect.RESULTS),
    "stateful": Option(Effect.RESULTS),
    "zero_output_for_mask": Option(Effect.RESULTS),
    "learned_initial_state": Option(Effect.START, False, is_own=True),
    "dropout": Option(Effect.TRAINING),
    "recurrent_dropout": Option(Effect.TRAINING),
    "dropout_per": Option(Effect.TRAINING, "step"),
    "seed": Option(Effect.TRAINING),
    "unit_forget_bias": Option(Effect.WEIGHTS, True),
    "activity_regularizer": Option(Effect.WEIGHTS),
    **{
        f"{weight}_{kind}": Option(Effect.WEIGHTS)
        for weight in ("kernel", "recurrent", "bias")
        for kind in ("initializer", "regularizer", "constraint")
    },
    "implementation": Option(Effect.LOOP, 2),
    "unroll": Option(Effect.LOOP),
    "use_cudnn": Option(Effect.LOOP),
}


def is_given(name: str, value: Any) -> bool:
    """Whether an option differs from its default.

    Args:
      name: the option.
      value: its value.

    Returns:
      True if it does.
    """
    default = OPTIONS[name].default
    if value in (None, False, 0, "auto"):
        return default not in (None, False, 0)
    return bool(value != default)


OWN = tuple(name for name, option in OPTIONS.items() if option.is_own)
OWN_OF_CELLS = tuple(name for name in OWN if OPTIONS[name].effect is Effect.STEP)
NORMALIZATION = ("layer_normalization", "layer_normalization_epsilon")


class Unknown(NamedTuple):
    """A function that no table has.

    Attributes:
      text: its name, or its text.
    """

    text: str

    def __str__(self) -> str:
        return self.text


class _Any(Collection[Any]):
    """All values."""

    def __contains__(self, value: object) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0


ANY = _Any()
Given = Mapping[str, Any]  # options that differ from their defaults, and their values
Values = Mapping[str, Collection[Any]]  # by option, those other than the default


class _Lack(NamedTuple):
    """What a target does not compute of a layer."""

    target: Target
    name: str
    op: str
    given: Given
    missing: list[str]

    def with_values(self) -> str:
        """The names of the missing options, and the values of numbers and functions."""
        return ", ".join(map(self._with_value, self.missing))

    def _with_value(self, option: str) -> str:
        value = self.given.get(option)
        if option in DEFAULTS:
            return f"{option}={value}"
        return f"{option}={value!r}" if isinstance(value, bool | int | float | str) else option

    @property
    def listed(self) -> str:
        """The missing options."""
        return " and ".join(self.missing)


@dataclasses.dataclass(frozen=True)
class Target:
    """Something that computes recurrent layers.

    Attributes:
      name: in messages.
      ops: by the op of a layer, the values of options that it computes, besides the defaults. An
        option of `Effect.STEP` that is missing there it does not compute, nor an op that is
        missing.
      lacks: the options of other effects that it does not compute.
      words: makes a message; None: "NAME no OPTION".
    """

    name: str
    ops: Mapping[str, Values]
    lacks: Collection[str] = ()
    words: Callable[[_Lack], str] | None = None


def _lacking(target: Target, op: str, given: Given) -> list[str]:
    """The names of the options that a target lacks; that of the op if it has it with no options."""
    values = target.ops.get(op)
    if values is None:
        own = [name for name in given if name in OWN]
        return own or [op]
    return [name for name, value in given.items() if not _computes(target, values, name, value)]


def _computes(target: Target, values: Values, name: str, value: Any) -> bool:
    if name in values:
        return value in values[name]
    return name in OPTIONS and OPTIONS[name].effect is not Effect.STEP and name not in target.lacks


def computes(target: Target, op: str, given: Given) -> bool:
    """Whether a target computes a layer.

    Args:
      target: the target.
      op: the op of the layer, without its namespace.
      given: the options that differ from their defaults.

    Returns:
      True if it computes the op with all options.
    """
    return not _lacking(target, op, given)


def why_not(target: Target, op: str, given: Given, name: str | None = None) -> str | None:
    """Why a target does not compute a layer.

    Args:
      target, op, given: as of `computes`.
      name: of the target in the message; None: its own.

    Returns:
      The reason, with the names of the options; None if it does.
    """
    missing = _lacking(target, op, given)
    if not missing:
        return None
    if NORMALIZATION[0] in missing:
        missing = [option for option in missing if option != NORMALIZATION[1]]
    lack = _Lack(target, name or target.name, op, given, missing)
    if target.words is not None:
        return target.words(lack)
    shown = (f"{option} {given[option]}" if option in DEFAULTS else option for option in missing)
    return f"{lack.name} no {' and '.join(shown)}"


def is_listed(target: Target, option: str) -> bool:
    """Whether a target knows an option.

    Args:
      target: the target.
      option: its name.

    Returns:
      True if some layer with another value than the default is computed.
    """
    is_step = option not in OPTIONS or OPTIONS[option].effect is Effect.STEP
    if not is_step:
        return option not in target.lacks
    return any(option in values for values in target.ops.values())


def _words_of_ops(lack: _Lack) -> str:
    given, missing = lack.given, lack.missing
    if "use_cudnn" in missing:
        return "use_cudnn=True asks for Keras' own cuDNN path"
    for name in DEFAULTS:
        if name in missing:
            known = [OPTIONS[name].default, *lack.target.ops[lack.op].get(name, ())]
            return f"{name} is {given[name]}, {_other_than(dict.fromkeys(known))}"
    beside = [name for name in given if name in OWN and name not in (*missing, NORMALIZATION[1])]
    with_others = f"{' and '.join(beside)} with " if beside else ""
    return f"{with_others}{lack.listed} has no fused op"


def _other_than(known: Collection[str]) -> str:
    if len(known) > 2:
        return "which has no fused op"
    return f"neither {' nor '.join(known)}" if len(known) == 2 else f"not {next(iter(known))}"


def _words_of_sessions(lack: _Lack) -> str:
    if unknown := [name for name in lack.missing if not is_listed(lack.target, name)]:
        return f"it has {' and '.join(unknown)}, which a session does not know"
    return _words_of_ops(lack)


def _words_with_values(lack: _Lack) -> str:
    return f"{lack.name} no {lack.with_values()}"


def _words_of_weights(lack: _Lack) -> str:
    return f"{lack.name} has {lack.listed}, which other formats of weights do not have"


def _functions(functions: Collection[str], op: str) -> dict[str, Collection[str]]:
    return dict.fromkeys(_cells.BY_OP[op].activations, functions)


_LSTM, _GRU, _RESET_BEFORE = "KerasLSTM", "KerasGRU", "KerasResetBeforeGRU"
_RNN = "KerasSimpleRNN"
# Stacks, of which those with clips run another op.
_STACKED_LSTM, _STACKED_GRU = "StackedLSTM", "StackedGRU"
_CLIPPED = "ClippedStackedLSTM"
_CLIPS = {"cell_clip": ANY, "proj_clip": ANY}
_IN_ONNX = tuple(f.name for f in TABLE if f.is_of_cells and f.onnx_cell)

_NORMALIZED = {
    op: dict.fromkeys(NORMALIZATION, ANY) for op in ("KerasLayerNormLSTM", "KerasLayerNormGRU")
}


def _all_options(functions: Collection[str], of_rnn: Collection[str]) -> dict[str, Any]:
    """All options of the ops without layer normalization, with some activation functions."""
    return {
        _LSTM: {
            **_functions(functions, _LSTM),
            **{"use_peephole": ANY, "projection_size": ANY},
            **_CLIPS,
        },
        _GRU: _functions(functions, _GRU),
        _RESET_BEFORE: {**_functions(functions, _GRU), "reset_after": (False,)},
        _RNN: _functions(of_rnn, _RNN),
        _CLIPPED: {"projection_size": ANY, **_CLIPS},
        _STACKED_LSTM: {"projection_size": ANY},
        _STACKED_GRU: {},
    }


# The kernels of this package for CPUs.
CPU = Target(
    "the fused op has",
    {**_all_options(OF_CELLS, OF_PLAIN_RNN), **_NORMALIZED},
    ("use_cudnn",),
    _words_of_ops,
)
SESSION = Target(
    "a session has",
    {**_all_options(OF_CELLS, OF_CELLS), **_NORMALIZED},
    words=_words_of_sessions,
)
# The kernels of this package for NVIDIA GPUs, and TensorFlow's own op for cuDNN. With
# recurrent_dropout each gate has multipliers of its own.
_OF_GATES = ("dropout", "recurrent_dropout")
CUDA = Target(
    "the CUDA kernels have",
    {
        _LSTM: {"use_peephole": ANY, "cell_clip": ANY},
        _CLIPPED: {"cell_clip": ANY},
        _STACKED_LSTM: {"projection_size": ANY},
        _STACKED_GRU: {},
    },
    _OF_GATES,
)
CUDNN = Target("cuDNN has", {_LSTM: {}, _GRU: {}, _STACKED_LSTM: {}, _STACKED_GRU: {}}, _OF_GATES)
METAL = Target("the Metal kernels have", {_LSTM: {}, _STACKED_LSTM: {}}, _OF_GATES)
ONNX_NODE = Target(
    "ONNX' recurrent nodes have",
    {
        _LSTM: {**_functions(_IN_ONNX, _LSTM), "use_peephole": ANY},
        _GRU: _functions(_IN_ONNX, _GRU),
        _RESET_BEFORE: {**_functions(_IN_ONNX, _GRU), "reset_after": (False,)},
        _RNN: _functions(OF_PLAIN_RNN, _RNN),
    },
    ("use_cudnn",),
)
LITE = Target(
    "the fused op of TensorFlow Lite has",
    {_LSTM: {"use_peephole": ANY, "cell_clip": ANY}},
    # A file with states has other ops.
    ("return_state", "stateful", "use_cudnn", "learned_initial_state"),
)
# Layers of keras.layers, with any functions.
STOCK = Target(
    "keras.layers has",
    {
        _LSTM: _functions(ANY, _LSTM),
        _GRU: _functions(ANY, _GRU),
        _RESET_BEFORE: {**_functions(ANY, _GRU), "reset_after": (False,)},
        _RNN: {**_functions(ANY, _RNN), "activity_regularizer": ()},  # SimpleRNN ignores it
        _STACKED_LSTM: {},
        _STACKED_GRU: {},
    },
    ("learned_initial_state",),
    _words_with_values,
)
# StackedLSTM and StackedGRU in place of several cells.
STACK = Target(
    "the stack has",
    {_LSTM: {"projection_size": ANY, **_CLIPS}, _GRU: {}, _RESET_BEFORE: {}},
    (*_OF_GATES, "learned_initial_state"),
    _words_with_values,
)
# The formats of tf_lstm_ops.weights, whose arrays do not have the functions and the clips.
WEIGHTS = Target(
    "other formats of weights have",
    _all_options(ANY, OF_PLAIN_RNN),
    ("learned_initial_state",),
    _words_of_weights,
)
TARGETS = {
    "CPU": CPU,
    "session": SESSION,
    "CUDA": CUDA,
    "cuDNN": CUDNN,
    "Metal": METAL,
    "ONNX node": ONNX_NODE,
    "Lite op": LITE,
    "keras.layers": STOCK,
    "stack": STACK,
    "weights": WEIGHTS,
}

# Arguments of a call of a layer's op that are no options.
_OF_CALLS = frozenset({"training", "needs_x_grad"})
# Inputs of an op that stand for an option, if they are there.
_INPUTS = {
    "peephole": "use_peephole",
    "projection": "projection_size",
    "input_dropout": "dropout",
    "recurrent_dropout": "recurrent_dropout",
}


def of_call(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a call of an op of a layer.

    Args:
      arguments: inputs and attributes of the op, by name. An input of the shape [0] is absent.

    Returns:
      Those that differ from the defaults. An attribute that no option has is there by its own name.
    """
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in _INPUTS:
            if value.shape != [0]:
                given[_INPUTS[name]] = True
        elif isinstance(value, bool | int | float | str) and name not in _OF_CALLS:
            option = OPTIONS.get(name)
            if value and (option is None or value != option.default):
                given[name] = value
    return given
