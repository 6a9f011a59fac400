"""The classes and functions in a model that are not of Keras, by names that Keras looks up."""

from __future__ import annotations

import collections
import contextlib
import inspect
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import FunctionType, MappingProxyType
from typing import Any

import keras

from tf_lstm_ops import _keras_private
from tf_lstm_ops.keras.stacked_weights import WeightOptions

_FUNCTIONS = ("activations", "constraints", "initializers", "losses", "metrics", "regularizers")
_KERAS_NAMES = frozenset(name for module in _FUNCTIONS for name in dir(getattr(keras, module)))
_known: ContextVar[Mapping[str, Any]] = ContextVar("known", default=MappingProxyType({}))


@contextlib.contextmanager
def known(model: keras.Model, custom_objects: dict[str, Any] | None = None) -> Iterator[None]:
    """A context in which Keras finds what configurations of a model name.

    A function gets a name of its own if its name does not identify it: a lambda, a namesake of
    another one or of one of Keras', and those with which the model is compiled. `named` puts these
    names into configurations.

    Args:
      model: a Keras model or layer.
      custom_objects: further objects by name, as for ``keras.models.load_model``.

    Yields:
      None.
    """
    names: dict[str, Any] = {}
    layers = _keras_private.layers_of(model)
    compiled = list(filter(None, map(_keras_private.compile_arguments, layers)))
    for item in _reachable(compiled):
        _add(item, names, in_layer=False)
    for item in _reachable(layers):
        _add(item, names, in_layer=True)
    names.update(custom_objects or {})
    token = _known.set(names)
    try:
        with keras.saving.custom_object_scope(names):
            yield
    finally:
        _known.reset(token)


@contextlib.contextmanager
def named() -> Iterator[None]:
    """A context in which functions have the names that `known` gave them.

    Keras writes them into configurations by these names, lambdas too, and reads the same objects.

    Yields:
      None.
    """
    renamed = {name: item for name, item in _known.get().items() if name.startswith("function ")}
    before = {name: function.__name__ for name, function in renamed.items()}
    try:
        for name, function in renamed.items():
            function.__name__ = name
        yield
    finally:
        for name, function in renamed.items():
            function.__name__ = before[name]


def registered_name(module: str | None, class_name: str, name: str | None) -> str | None:
    """The name by which Keras finds the class of a configuration.

    Args:
      module, class_name, name: the entries "module", "class_name" and "registered_name".

    Returns:
      The new "registered_name". That of an op of Keras is the name of its class, as if it were a
      class of the user's, and may be that of a layer; two classes of the user's may share one.
    """
    if name != class_name or module is None:
        return name
    if module.partition(".")[0] == "keras":
        return None
    return qualified if (qualified := f"{module}>{name}") in _known.get() else name


def _add(item: Any, names: dict[str, Any], in_layer: bool) -> None:
    kind = item if isinstance(item, FunctionType) else type(item)
    if (kind.__module__ or "").partition(".")[0] in ("keras", "builtins"):
        return
    if any(kind is other for other in names.values()):
        return
    name = keras.saving.get_registered_name(kind)
    if isinstance(kind, type):
        names[f"{kind.__module__}>{name}"] = kind
        names.setdefault(name, kind)
        return
    is_registered = name != kind.__name__
    identifies = in_layer and name.isidentifier() and name not in {*names, *_KERAS_NAMES}
    names[name if is_registered or identifies else f"function {len(names)} {name}"] = kind


def _reachable(root: Any) -> list[Any]:
    """The functions, and the objects that have a configuration, in some containers of objects."""
    found: list[Any] = []
    seen: dict[int, Any] = {}
    queue = collections.deque([root])
    while queue:
        item = queue.popleft()
        if id(item) in seen:
            continue
        seen[id(item)] = item
        if isinstance(item, dict):
            queue.extend(item.values())
        elif isinstance(item, list | tuple | set):
            queue.extend(item)
        elif isinstance(item, WeightOptions):
            queue.extend(vars(item).values())
        elif isinstance(item, FunctionType):
            found.append(item)
        elif hasattr(item, "get_config") and not inspect.isclass(item):
            found.append(item)
            queue.extend(_options(item))
    return found


def _options(item: Any) -> Iterator[Any]:
    """The attributes of an object but those that stand for its methods."""
    for name, value in getattr(item, "__dict__", {}).items():
        if not (hasattr(type(item), name) or hasattr(type(item), f"make_{name}")):
            yield value
