"""The stack that computes what ``keras.layers.RNN`` of several cells computes."""

from __future__ import annotations

import copy
from typing import Any

import keras

from tf_lstm_ops._targets import STACK, Effect
from tf_lstm_ops.keras import class_names, options, user_objects
from tf_lstm_ops.keras.gru_cell import GRUCell
from tf_lstm_ops.keras.lstm_cell import LSTMCell
from tf_lstm_ops.keras.stacked import StackedGRU, StackedLSTM
from tf_lstm_ops.keras.stacked_rnn import StackedRNN

_STACKS: dict[type, type[StackedRNN]] = {
    keras.layers.LSTMCell: StackedLSTM,
    LSTMCell: StackedLSTM,
    keras.layers.GRUCell: StackedGRU,
    GRUCell: StackedGRU,
}


def is_of_cells(layer: keras.Layer) -> bool:
    """Whether a layer is ``keras.layers.RNN`` of ``StackedRNNCells``.

    Args:
      layer: a layer.

    Returns:
      False also for a layer of a subclass.
    """
    return type(layer) is keras.layers.RNN and type(layer.cell) is keras.layers.StackedRNNCells


def of(layer: keras.Layer) -> StackedRNN | str:
    """The stack for a layer.

    Args:
      layer: a layer for which `is_of_cells` holds.

    Returns:
      A layer that is not built; or the reason why there is none.
    """
    classes = {type(cell): None for cell in layer.cell.cells}
    for cls in classes:
        if cls is keras.layers.SimpleRNNCell:
            return "SimpleRNNCell has no fused op for several layers"
        if cls not in _STACKS:
            return f"{cls.__name__} has no fused op{class_names.why_not_known(cls, _STACKS)}"
    if len(classes) > 1:
        return f"its cells are of several classes: {', '.join(cls.__name__ for cls in classes)}"
    if len({id(cell) for cell in layer.cell.cells}) < len(layer.cell.cells):
        return "a cell occurs twice, so that its steps share weights"
    with user_objects.named():
        config, first, *others = (part.get_config() for part in (layer, *layer.cell.cells))
    config.pop("cell"), config.pop("unroll")
    differing = [k for k in first if any(cell.get(k) != first[k] for cell in others)]
    if keys := [k for k in differing if k not in ("name", "seed")]:
        return f"its cells differ in {', '.join(keys)}"
    if keys := [k for k in ("dtype", "trainable") if first[k] != config[k]]:
        return f"its cells have another {', '.join(keys)}"
    if "activity_regularizer" in first:
        return "its cells have an activity_regularizer"
    return _of_equal_cells(_STACKS[next(iter(classes))], config, first, len(others) + 1, layer)


def _of_equal_cells(
    cls: Any, config: dict[str, Any], cell: dict[str, Any], count: int, layer: keras.Layer
) -> StackedRNN | str:
    name = f"tf_lstm_ops.keras.{cls.__name__}"
    if cls is StackedLSTM and config["return_state"]:
        return f"its states are a list for each cell, those of {name} one list (return_state)"
    if reason := options.why_not(layer.cell.cells[0], STACK, tuple(Effect), f"{name} has"):
        return reason
    known = cls(1).get_config().keys() - {"name", "seed"}
    given = {k: v for k, v in cell.items() if k in known}
    stack = cls(num_layers=count, **{**given, **config})
    if not layer.supports_masking:  # stock layers of Keras 3.16
        stack._pass_no_masks()
    return stack


def replacement(config: dict[str, Any]) -> StackedRNN | None:
    """The stack in place of a layer of several cells.

    Args:
      config: of any object of Keras, serialised, or a part of it.

    Returns:
      The stack; None if this is no such layer, or there is no stack for it.
    """
    if config.get("class_name") != "RNN" or config.get("module") != "keras.layers":
        return None
    layer = keras.layers.RNN.from_config(copy.deepcopy(config["config"]))
    stack = of(layer) if is_of_cells(layer) else None
    return stack if isinstance(stack, StackedRNN) else None
