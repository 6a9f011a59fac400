"""Entries of modules of PyTorch. This is the only file that decides which modules are read."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tf_lstm_ops._refusal import Refusals, naming, refuse, require
from tf_lstm_ops.inference.from_torch import kinds
from tf_lstm_ops.inference.from_torch.entry import Entry, read_array
from tf_lstm_ops.inference.from_torch.kinds import KINDS
from tf_lstm_ops.inference.reader import Reader

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
# Classes around a module, and the attribute that has the module.
_WRAPPERS = {
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "OptimizedModule": "_orig_mod",  # of torch.compile
}


def entries(
    path: str, module: Any, options: Mapping[str, Any], refusals: Refusals
) -> Iterator[Entry]:
    """The entries of a module, or of the modules of a Sequential.

    Args:
      path: where the module is, for messages; empty for a single one.
      module: the module.
      options: those of the pair (module, options).
      refusals: gets the modules that a session does not compute.

    Yields:
      Each entry.
    """
    label = f"module {path} ({type(module).__name__})" if path else type(module).__name__
    found = None
    with refusals.part(), naming(label):
        _require_plain(module)
        if _is_sequential(module):
            _require_options(options, ())
        else:
            found = _entry(label, module, options)
            found.build()
            found.options.finish(_is_new)
    if found is not None:
        yield found
    elif _is_sequential(module):
        for number, child in enumerate(module):  # a module may be there twice
            yield from entries(f"{path}.{number}" if path else str(number), child, {}, refusals)


def _is_sequential(module: Any) -> bool:
    return type(module) is sys.modules["torch"].nn.Sequential


def _is_new(names: Sequence[str]) -> str:
    """Why a module with options of later versions of PyTorch is not read."""
    return (
        f"this version of PyTorch has the option {min(names)}, which a session does not know. Pass "
        "the state dict with layers="
    )


def _require_options(options: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = [name for name in options if name not in known]
    require(
        not unknown,
        f"the options in a list are {', '.join(known) or 'none'}; a module has its own. Received: "
        f"{', '.join(map(str, unknown))}",
    )


def _require_plain(module: Any) -> None:
    """Refuses what may compute something else than the class of torch.nn says."""
    nn = sys.modules["torch"].nn
    cls = type(module)
    if hasattr(module, inside := _WRAPPERS.get(cls.__name__, "")):
        refuse(f"it is another form of a module. Pass its attribute {inside}")
    if cls is not nn.Sequential:
        require(cls is getattr(nn, cls.__name__, None), _other_class(cls, nn))
        kinds.kind_of(cls.__name__)
    if any(getattr(module, name, None) for name in _HOOKS):
        refuse(
            "it has hooks, which may change what it computes. Remove them with the method remove "
            "of their handles, torch.nn.utils.remove_weight_norm or torch.nn.utils.prune.remove"
        )
    replaced = [name for name in vars(module) if callable(getattr(cls, name, None))]
    if replaced:
        refuse(
            f"its method {replaced[0]} was replaced. A session would compute that of "
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
    kind = kinds.kind_of(name)
    _require_options(options, kind.listed)
    arguments = _arguments(type(module))
    values = {each: getattr(module, each, _NOT_KEPT) for each in arguments}
    own = {"recurse": False, "remove_duplicate": False}  # one tensor may have two names
    tensors = dict([*module.named_parameters(**own), *module.named_buffers(**own)])
    read = {n: functools.partial(read_array, f"{label}: {n}", t) for n, t in tensors.items()}

    def missing(array: str) -> str:
        without = getattr(module, "track_running_stats", True) is False
        return f"it has no {array}{'. It has track_running_stats=False' if without else ''}"

    reader = Reader({**values, **options}, arguments)
    return Entry(label, name, kind, reader, Reader(read), missing, module)


_NOT_KEPT = object()  # the value of an argument that is no attribute of the module


def _arguments(cls: type) -> dict[str, Any]:
    """The arguments of a class, and their defaults."""
    found: dict[str, Any] = {}
    module = sys.modules["torch"].nn.Module
    for base in cls.__mro__[: cls.__mro__.index(module)]:
        if "__init__" not in vars(base):
            continue
        _, *parameters = inspect.signature(base.__init__).parameters.values()  # type: ignore[misc]
        named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        found = {p.name: p.default for p in named} | found
        if not any(p.kind == p.VAR_KEYWORD for p in parameters):
            break
    return found
