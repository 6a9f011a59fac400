"""What of a layer is not as its class says: its cell, or a method that was replaced.

Code that concludes from the class of a layer what the layer computes asks `of` first. The module
does not import Keras: it also serves layers of tf_keras.
"""

from __future__ import annotations

from typing import Any

from tf_lstm_ops import _keras_private

# The class of the cell of a layer, by their names. A layer of another class may have any cell.
_CELLS = {
    **{"LSTM": "LSTMCell", "GRU": "GRUCell", "SimpleRNN": "SimpleRNNCell"},
    **{"StackedLSTM": "StackedCells", "StackedGRU": "StackedCells"},
}
# The class of this package that has the cell of Keras.
_HAS_STOCK_CELL = ("tf_lstm_ops", "SimpleRNN")
# Where the classes of these packages are.
_PACKAGES = {
    "keras": "keras.layers",
    "tf_keras": "tf_keras.layers",
    "tf_lstm_ops": "tf_lstm_ops.keras",
}
# Attributes of layers and models that Keras itself sets, and that have no effect on a call.
_SET_BY_KERAS = frozenset({"build", "quantize", "loss"})
# What a class may have of its own and compute what its base does.
_WITHOUT_COMPUTATION = frozenset(
    {
        *("__init__", "get_config", "from_config"),
        *("__module__", "__qualname__", "__doc__", "__annotations__", "__orig_bases__"),
        *("__firstlineno__", "__static_attributes__", "__classcell__", "__annotate_func__"),
    }
)
# Methods of models that a call of the model does not run.
_OUTSIDE_CALLS = frozenset(
    {
        *("compile", "compute_loss", "compute_metrics", "evaluate", "export", "fit", "predict"),
        *("get_compile_config", "load_weights", "save", "save_weights", "summary"),
        *("make_predict_function", "make_test_function", "make_train_function"),
        *("predict_on_batch", "test_on_batch", "train_on_batch"),
        *("predict_step", "test_step", "train_step"),
    }
)


def class_that_computes(kind: type) -> type:
    """The class whose methods compute what a layer of a class does.

    A class of the user's that has only a constructor and a configuration of its own computes what
    its base does, with the options that the base keeps. Such classes drop arguments of old files.

    Args:
      kind: the class of a layer.

    Returns:
      The class, or one of its bases.
    """
    while (
        _package(kind) not in _PACKAGES
        and len(kind.__bases__) == 1
        and vars(kind).keys() <= _WITHOUT_COMPUTATION
    ):
        kind = kind.__bases__[0]
    return kind


def of(layer: Any) -> str | None:
    """Why the class of a layer does not say what the layer computes.

    Args:
      layer: a Keras layer, model or cell, of any class.

    Returns:
      The reason, such as "its call was replaced"; None if the layer has the methods of its class
      and the cell of its class. Layers in a wrapper or a model are not looked at.
    """
    if names := [name for name in replaced_methods(layer) if name not in _OUTSIDE_CALLS]:
        return f"its {_was_replaced(names)}"
    return of_cell(layer)


def of_cell(layer: Any) -> str | None:
    """Why the class of a layer does not say what its cell computes.

    Args:
      layer: as of `of`.

    Returns:
      The reason; None also for a layer without a cell.
    """
    cell = getattr(layer, "cell", None)
    if cell is None:
        return None
    base = _class_with_cell(type(layer))
    if base is not None:
        wanted = f"{_PACKAGES[_package(base)]}.{_CELLS[base.__name__]}"
        if _name(type(cell)) != wanted:
            return f"its cell is a {_name(type(cell))}, not a {wanted}"
    for part in (cell, *getattr(cell, "cells", ())):
        if names := replaced_methods(part):
            return f"the {_was_replaced(names, f' of its {type(part).__name__}')}"
        if getattr(part, "use_bias", None) is False and getattr(part, "bias", None) is not None:
            return f"use_bias of its {type(part).__name__} was set after it was built"
    return None


def of_weights(layer: Any) -> str | None:
    """Why the weights of a layer are not what its cell computes with.

    Args:
      layer: a built layer with a cell.

    Returns:
      The reason, such as "the kernel of its LSTMCell was replaced"; None if there is none.
    """
    own = {*map(id, layer.weights)}
    for part in (layer.cell, *getattr(layer.cell, "cells", ())):
        used = {name: getattr(part, name, None) for name in ("kernel", "recurrent_kernel", "bias")}
        if names := [n for n, w in used.items() if w is not None and id(w) not in own]:
            return f"the {_was_replaced(names, f' of its {type(part).__name__}')}"
    return None


def _was_replaced(names: list[str], of_what: str = "") -> str:
    return f"{' and '.join(names)}{of_what} {'was' if len(names) == 1 else 'were'} replaced"


def replaced_methods(layer: Any) -> list[str]:
    """The methods of a layer that are not those of its class.

    Args:
      layer: a Keras layer, model or cell.

    Returns:
      Their names, sorted. Loops of `_keras_private.replaced_loops` do not count.
    """
    kind = type(layer)
    return sorted(
        name
        for name, value in vars(layer).items()
        if callable(value)
        and callable(getattr(kind, name, None))
        and name not in _SET_BY_KERAS
        and not isinstance(value, _keras_private.TemporaryLoop)
    )


def _class_with_cell(cls: type) -> type | None:
    """The class of Keras or of this package that says which cell layers of a class have."""
    known = (c for c in cls.__mro__ if c.__name__ in _CELLS and _package(c) in _PACKAGES)
    return next((c for c in known if (_package(c), c.__name__) != _HAS_STOCK_CELL), None)


def _package(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _name(cls: type) -> str:
    where = _PACKAGES.get(_package(cls), cls.__module__)
    return f"{where}.{cls.__name__}"
