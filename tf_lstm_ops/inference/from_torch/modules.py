"""Entries of modules of PyTorch. This is the only file that decides which modules are read."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tf_lstm_ops import _received
from tf_lstm_ops.inference.from_torch import kinds
from tf_lstm_ops.inference.from_torch.entry import Entry, read_array
from tf_lstm_ops.inference.from_torch.kinds import KINDS

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_RECURRENT = ("LSTM", "GRU", "RNN")
# Classes around a module, and the attribute that has the module.
_WRAPPERS = {
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "OptimizedModule": "_orig_mod",  # of torch.compile
}
_MODES = {"RNN_TANH": "tanh", "RNN_RELU": "relu"}


def entries(path: str, module: Any, options: Mapping[str, Any]) -> Iterator[Entry]:
    """The entries of a module, or of the modules of a Sequential.

    Args:
      path: where the module is, for messages; empty for a single one.
      module: the module.
      options: those of the pair (module, options).

    Yields:
      Each entry.

    Raises:
      ValueError: a session does not compute a module.
    """
    label = f"module {path} ({type(module).__name__})" if path else type(module).__name__
    _require_known(label, module)
    if type(module).__name__ == "Sequential":
        _require_options(label, options, ())
        for number, child in enumerate(module):  # a module may be there twice
            yield from entries(f"{path}.{number}" if path else str(number), child, {})
    else:
        yield _entry(label, module, options)


def _children(module: Any) -> Iterator[tuple[str, Any]]:
    """The modules in a Sequential. named_children leaves out those that come again."""
    for name, child in module.named_modules(remove_duplicate=False):
        if name and "." not in name:
            yield name, child


def _require_options(label: str, options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ValueError(
            f"{label}: the options in a list are {', '.join(known) or 'none'}; a module has its "
            f"own. Received: {', '.join(map(str, unknown))}"
        )


def _require_known(label: str, module: Any) -> None:
    """Refuses what may compute something else than the class of torch.nn says."""
    nn = sys.modules["torch"].nn
    cls = type(module)
    if hasattr(module, inside := _WRAPPERS.get(cls.__name__, "")):
        raise ValueError(f"{label}: it is another form of a module. Pass its attribute {inside}")
    if cls is not nn.Sequential:
        if cls is not getattr(nn, cls.__name__, None):
            raise ValueError(f"{label}: {_other_class(cls, nn)}")
        kinds.kind_of(label, cls.__name__)
    if any(getattr(module, name, None) for name in _HOOKS):
        raise ValueError(
            f"{label}: it has hooks, which may change what it computes. Remove them with the "
            "method remove of their handles, torch.nn.utils.remove_weight_norm or "
            "torch.nn.utils.prune.remove"
        )
    replaced = [name for name in vars(module) if callable(getattr(cls, name, None))]
    if replaced:
        raise ValueError(
            f"{label}: its method {replaced[0]} was replaced. A session would compute that of "
            f"torch.nn.{cls.__name__}. Remove it with: del module.{replaced[0]}"
        )


def _other_class(cls: type, nn: Any) -> str:
    """Why a module that is none of torch.nn is not read, and what to do."""
    if cls.__name__.startswith("Parametrized"):
        return (
            "it is parametrized. Call torch.nn.utils.parametrize.remove_parametrizations(module, "
            "name) first"
        )
    if "quantized" in cls.__module__ or cls.__module__.startswith(("torch.ao", "torch.jit")):
        return (
            f"a session does not read {cls.__module__}.{cls.__qualname__}. Pass the module from "
            "before the quantization or torch.jit, or a state dict of floats with layers="
        )
    bases = [base.__name__ for base in cls.__mro__ if base is getattr(nn, base.__name__, ())]
    known = [name for name in bases if name in KINDS or name == "Sequential"]
    if known:
        return (
            f"it is a subclass of torch.nn.{known[0]}, whose forward may compute something else. "
            f"Pass a torch.nn.{known[0]} with the same arguments and state dict"
        )
    return (
        "its forward is code, which is not read. Pass the list of its modules in the order of "
        "forward, such as [net.lstm, layers.LastStep(), net.head], or write it with "
        "torch.onnx.export and use Session.from_onnx"
    )


def _entry(label: str, module: Any, options: Mapping[str, Any]) -> Entry:
    name = type(module).__name__
    kind = KINDS[name]
    is_recurrent = name in _RECURRENT
    _require_options(label, options, ("return_sequences",) if is_recurrent else ())
    _require_arguments(label, module)
    own = {"recurse": False, "remove_duplicate": False}  # one tensor may have two names
    tensors = dict([*module.named_parameters(**own), *module.named_buffers(**own)])
    arrays = {each: read_array(f"{label}: {each}", value) for each, value in tensors.items()}
    possible = {*kind.arrays, *kind.optional, *getattr(module, "_flat_weights_names", ())}
    for each in sorted(possible - {*tensors}):
        if getattr(module, each, None) is not None:
            raise ValueError(
                f"{label}: its {each} is neither a parameter nor a buffer, so that PyTorch does "
                f"not save it. Write: module.{each} = torch.nn.Parameter(module.{each})"
            )
    missing = [each for each in kind.arrays if each not in arrays]
    if missing:
        why = ". It has track_running_stats=False" if "running_mean" in missing else ""
        raise ValueError(f"{label}: it has no {missing[0]}{why}")
    names = [each for each in kind.options if each != "return_sequences"]
    read = {each: getattr(module, each) for each in names if hasattr(module, each)}
    if name == "RNN":
        read["nonlinearity"] = _MODES[module.mode]
    return kinds.entry(label, name, {**read, **options}, arrays, module)


def _require_arguments(label: str, module: Any) -> None:
    """Refuses options of later versions of PyTorch."""
    cls, kind = type(module), KINDS[type(module).__name__]
    names = {*inspect.signature(cls.__init__).parameters, *getattr(cls, "__constants__", ())}
    known = {*kind.options, *kind.unused, *kind.attributes, *kind.arrays, *kind.optional}
    unknown = names - {"self"} - known
    if unknown:
        raise ValueError(
            f"{label}: this version of PyTorch has the option {min(unknown)}, which a session does "
            "not know. Pass the state dict with layers="
        )


def is_module(value: Any) -> bool:
    """Whether a value is a module of PyTorch.

    Args:
      value: any value.

    Returns:
      The answer. It does not import PyTorch.
    """
    return _received.is_torch_module(value)
