"""Entries of state dicts, and the files that have them."""

from __future__ import annotations

import functools
import os
import re
import textwrap
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tf_lstm_ops import _files, _optional, _received
from tf_lstm_ops._arrays import Array
from tf_lstm_ops._refusal import Refusals, naming
from tf_lstm_ops.files import kinds as file_kinds
from tf_lstm_ops.files import limits, safetensors
from tf_lstm_ops.files.contents import Lazy
from tf_lstm_ops.inference.from_torch import kinds
from tf_lstm_ops.inference.from_torch.entry import Entry, read_array
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers import Layer
from tf_lstm_ops.inference.reader import Reader
from tf_lstm_ops.weights import torch as torch_format

_PICKLES = (".pt", ".pth", ".bin", ".ckpt")
_EXTRA = "_extra_state"  # what a module saves besides its tensors, of any type
_UNUSED = ("num_batches_tracked", _EXTRA)
_MOST = 20  # prefixes in a message
State = Mapping[str, Any]


def state_of(source: Any) -> State:
    """The state dict of a source.

    Args:
      source: a state dict, or the path of a file.

    Returns:
      Arrays or tensors by names.

    Raises:
      ImportError, OSError, TypeError, ValueError: see `Session.from_torch`.
    """
    if _received.is_path(source):
        state = _file(source)
        if not isinstance(state, Mapping):
            raise ValueError(f"{source} has {_received.text(state)} in it, not a state dict")
    else:
        state = source
    if not isinstance(state, Mapping):
        raise TypeError(
            "source must be a module of PyTorch, a list of modules, a state dict or the path of a "
            f"file. Received: {_received.text(state)}"
        )
    for key in state:
        if not isinstance(key, str):
            raise ValueError(f"the names of a state dict must be texts. Received: {key!r}")
    return _of_checkpoint(state)


def _of_checkpoint(state: State) -> State:
    """The state dict in a checkpoint such as {"state_dict": weights, "epoch": 3}."""
    nested = [
        key
        for key, value in _items(state)
        if isinstance(value, Mapping) and not key.endswith(_EXTRA)
    ]
    if not nested:
        return state
    weights = [key for key in nested if _has_weights_only(state[key])]
    if len(weights) == 1 and not any(hasattr(value, "shape") for value in state.values()):
        return state[weights[0]]
    raise ValueError(
        f"this is a dictionary of {', '.join([*state][:_MOST])}, not a state dict. Pass the "
        f"one that has the weights, such as checkpoint[{(weights or nested)[0]!r}]"
    )


def _has_weights_only(found: Mapping[Any, Any]) -> bool:
    """Whether a dictionary is a state dict."""
    keys = [key for key in found if not (isinstance(key, str) and key.endswith(_EXTRA))]
    return bool(keys) and all(isinstance(k, str) and hasattr(found[k], "shape") for k in keys)


def _items(state: State) -> Iterator[tuple[str, Any]]:
    """Of an open file nothing is read for this."""
    return iter(() if isinstance(state, Lazy) else state.items())


def _file(path: Any) -> State:
    text = os.fsdecode(_files.checked(path))
    is_pickle = os.path.splitext(text)[1].lower() in _PICKLES
    kind = file_kinds.by_content(text) or ("torch" if is_pickle else file_kinds.by_name(text))
    if kind == "safetensors":
        return Lazy(safetensors.read(text).arrays)
    if kind == "torch":
        found: State = _read_saved(text)
        return found
    if advice := file_kinds.advice(text):
        raise ValueError(f"{text} is {advice}")
    raise ValueError(
        f"{text}: the name must end with .safetensors, {', '.join(_PICKLES[:-1])} or {_PICKLES[-1]}"
    )


def parts(state: State, listed: Any, refusals: Refusals) -> list[list[Entry | Layer]]:
    """The entries of a state dict.

    Args:
      state: the state dict.
      listed: what its prefixes are.
      refusals: gets the elements that do not fit the state dict, or that a session does not
        compute.

    Returns:
      Each entry, or a layer, in a list of its own.

    Raises:
      ValueError: there are no elements.
      TypeError: an element is something else.
    """
    if listed is None:
        raise ValueError(f"layers must say what the weights are. {_call(state)}")
    if not isinstance(listed, list | tuple):
        raise TypeError(
            "layers must be a list such as [('lstm', 'LSTM'), layers.LastStep(), ('head', "
            f"'Linear')]. Received: {_received.text(listed)}"
        )
    found: list[list[Entry | Layer]] = []
    for each in listed[1:] if listed and isinstance(listed[0], Value) else listed:
        if isinstance(each, Layer):
            found.append([each])
            continue
        prefix, name, options = _read(each)
        label = f"{prefix} ({name})" if prefix else name
        with refusals.part(), naming(label):
            found.append([_entry(state, label, prefix, name, options)])
    return found


def _entry(state: State, label: str, prefix: str, name: str, options: Mapping[str, Any]) -> Entry:
    kind = kinds.kind_of(name)
    torch_format.require_plain(state, f"{prefix}." if prefix else "")
    own = _own(state, prefix)
    tensors = Reader({key: functools.partial(_array, state, own[key]) for key in own})

    def like() -> str:
        return f"Its weights look like those of {_guess(state, own)}"

    def missing(array: str) -> str:
        if not own:
            return f"the state dict has no names that begin so. {_call(state)}"
        return f"the state dict has no {array} for it. {like()}"

    def unknown(names: Sequence[str]) -> str:
        known = [each for each in made.options.taken if each not in made.sizes]
        return (
            f"the options of {name} that change results are {', '.join(known) or 'none'}. "
            f"Received: {', '.join(map(str, names))}"
        )

    made = Entry(label, name, kind, Reader(options), tensors, missing)
    made.build()
    tensors.ignore(_UNUSED)
    if prefix or tensors.taken:
        tensors.finish(
            lambda names: f"the state dict has {names[0]}, which is none of it. {like()}"
        )
    made.options.finish(unknown)
    return made


def _array(state: State, name: str) -> Array:
    return read_array(name, state[name])


def _read(element: Any) -> tuple[str, str, Mapping[str, Any]]:
    """The prefix, class and options of an element."""
    values = list(element) if isinstance(element, list | tuple) else [element]
    options = values.pop() if values and isinstance(values[-1], Mapping) else {}
    if not 1 <= len(values) <= 2 or not all(isinstance(value, str) for value in values):
        raise TypeError(
            "an element of layers must be a pair (prefix, kind), a triple (prefix, kind, "
            "{options}), a kind without weights such as 'ReLU', or a layer of "
            f"tf_lstm_ops.inference.layers. Received: {element!r}"
        )
    prefix = values[0].removesuffix(".") if len(values) == 2 else ""
    return prefix, values[-1], options


def _own(state: State, prefix: str) -> dict[str, str]:
    """The names of a module without the prefix, and with it."""
    start = f"{prefix}." if prefix else ""
    found = {name[len(start) :]: name for name in state if name.startswith(start)}
    return {name: full for name, full in found.items() if "." not in name}


def _prefixes(state: State) -> dict[str, dict[str, str]]:
    return {p: _own(state, p) for p in dict.fromkeys(name.rpartition(".")[0] for name in state)}


def _shape(state: State, name: str) -> tuple[int, ...]:
    if isinstance(state, Lazy):
        return state.variables[name].shape
    return tuple(getattr(state[name], "shape", ()))


def _guess(state: State, own: Mapping[str, str]) -> str:
    """The class that has weights of these names and shapes."""

    def shape(name: str) -> Sequence[int]:
        return _shape(state, own[name]) if name in own else ()

    if "weight_ih_l0" in own:
        rows, units = (
            shape("weight_ih_l0")[:1],
            shape("weight_hr_l0")[1:] or shape("weight_hh_l0")[1:],
        )
        gates = rows[0] // max(units[0], 1) if rows and units else 0
        return {4: "LSTM", 3: "GRU", 1: "RNN"}.get(gates, "LSTM")
    if "weight_ih" in own:
        return "LSTMCell"
    if "running_mean" in own:
        return "BatchNorm1d"
    ranks = {3: "Conv1d", 1: "LayerNorm"}
    if len(shape("weight")) == 2:
        return "Linear" if "bias" in own else "Embedding"
    return ranks.get(len(shape("weight")), "?")


def _call(state: State) -> str:
    """The call for a state dict, as far as its names and shapes tell."""
    found = _prefixes(state)
    pairs = [f"({prefix!r}, {_guess(state, own)!r})" for prefix, own in [*found.items()][:_MOST]]
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return (
        "Its weights look like these, of which you give the order and what is between: "
        f"Session.from_torch(state, layers=[{', '.join(pairs)}]){more}"
    )


def _read_saved(path: str) -> Any:
    """Reads what torch.save wrote, if it has tensors only: nothing of the file is executed."""
    name = limits.readable(path)
    torch = _optional.require("torch", "a file of torch.save", "torch")
    _require_small(name, _size_of_members(name))
    try:
        found: Any = torch.load(name, map_location="cpu", weights_only=True)
    except Exception as error:  # of a damaged file anything
        text = re.sub(r"\x1b\[\d*m", "", str(error))  # without colours
        classes = re.search(r"GLOBAL (\S+)", text)
        said = f"it has a {classes[1]}" if classes else textwrap.shorten(text, 200)
        raise ValueError(
            f"{name} cannot be read as a state dict: {type(error).__name__}: {said}. A file must "
            "have tensors only: write it with torch.save(model.state_dict(), path). A whole model "
            "is code, as is a checkpoint with other objects. If you trust it, load it yourself "
            "with torch.load(path, weights_only=False), and pass its modules or state dict"
        ) from None
    tensors = [each for each in _nested_values(found) if isinstance(each, torch.Tensor)]
    _require_small(name, sum(each.numel() * each.element_size() for each in tensors))
    return found


def _size_of_members(name: str) -> int:
    """The bytes of the members of an archive, which torch.save does not compress."""
    try:
        with zipfile.ZipFile(name) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile:  # of PyTorch before 1.6
        return 0
    limits.require_different((member.filename for member in members), name)
    return sum(member.file_size for member in members)


def _require_small(name: str, size: int) -> None:
    most = limits.most_bytes(limits.NAMES_OF_A_TENSOR * os.path.getsize(name))
    if size > most:
        raise ValueError(
            f"{name} stands for {size} bytes, more than {most}, which its own size allows. Write "
            "copies of its tensors: {name: tensor.clone() for name, tensor in state.items()}"
        )


def _nested_values(value: Any) -> Iterator[Any]:
    """The values of nested dictionaries."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _nested_values(each)
    else:
        yield value
