"""Sessions of modules and state dicts of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tf_lstm_ops import _received
from tf_lstm_ops._refusal import Refusals
from tf_lstm_ops.inference import file
from tf_lstm_ops.inference.from_torch import modules, states
from tf_lstm_ops.inference.from_torch.entry import Entry
from tf_lstm_ops.inference.from_torch.kinds import KINDS
from tf_lstm_ops.inference.from_torch.plan import Plan
from tf_lstm_ops.inference.from_torch.reference import Reference
from tf_lstm_ops.inference.graph import Value, lower
from tf_lstm_ops.inference.layers import Chain, Embedding, Layer
from tf_lstm_ops.inference.layers.inputs import input_of

__all__ = ["read"]

_Parts = list[list[Entry | Layer]]  # of each element of a list its modules, or a layer


def read(source: Any, listed: Any) -> tuple[file.Graph, Reference]:
    """The graph of a source, and what computes the same in PyTorch.

    Args:
      source: see `Session.from_torch`.
      listed: its argument layers.

    Returns:
      The graph and the reference.

    Raises:
      ImportError, OSError, TypeError, ValueError: see `Session.from_torch`.
    """
    is_chain, refusals = isinstance(source, list | tuple), Refusals("modules")
    if is_chain or _received.is_torch_module(source):
        if listed is not None:
            raise ValueError(
                "layers is for state dicts and files. Modules say themselves what they are: pass "
                "them without layers="
            )
        elements = [*source] if is_chain else [source]
        x, parts = _first_input(elements), _of_modules(elements, is_chain, refusals)
    else:
        state = states.state_of(source)
        x, parts = _first_input(listed), states.parts(state, listed, refusals)
    refusals.finish()
    if not any(parts):
        raise ValueError("a chain has one module or more. Received: none")
    return _graph(x, parts)


def _first_input(elements: Any) -> Value | None:
    """A layers.Input at the beginning of a list."""
    is_given = isinstance(elements, list | tuple) and elements and isinstance(elements[0], Value)
    return elements[0] if is_given else None


def _of_modules(elements: Sequence[Any], is_chain: bool, refusals: Refusals) -> _Parts:
    parts: _Parts = []
    for number, element in enumerate(elements):
        if isinstance(element, Value) and not number:
            continue
        if isinstance(element, Layer):
            parts.append([element])
            continue
        is_pair = isinstance(element, tuple) and len(element) == 2
        module, options = element if is_pair else (element, {})
        if not _received.is_torch_module(module) or not isinstance(options, Mapping):
            hint = ". Call the class" if isinstance(element, type) else ""
            raise TypeError(
                "an element of a list must be a module of PyTorch, a pair (module, {options}) or a "
                f"layer of tf_lstm_ops.inference.layers. Element {number} is "
                f"{getattr(element, '__name__', _received.text(element))}{hint}"
            )
        path = str(number) if is_chain else ""
        parts.append([*modules.entries(path, module, options, refusals)])
    return parts


def _graph(x: Value | None, parts: _Parts) -> tuple[file.Graph, Reference]:
    first = next((part[0] for part in parts if part), None)
    is_table = isinstance(first, Embedding) or getattr(first, "kind", None) is KINDS["Embedding"]
    dims = x.node.dims if x is not None else (None,) if is_table else (None, None)  # type: ignore[union-attr]
    plan = Plan(1 + len(dims), dims[0] is not None)
    for part in parts:
        plan.begin_element()
        for each in part:
            plan.add(each) if isinstance(each, Entry) else plan.add_layer(each)
    plan.finish()
    chain = [layer for step in plan.steps for layer in step.layers]
    x = input_of(chain) if x is None else x
    lowered = lower(x, Chain(chain)(x))
    return lowered, Reference(plan.steps, lowered)
