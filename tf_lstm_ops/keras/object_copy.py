"""Copies of the losses, metrics and optimizers of a model.

A configuration may lack arguments: Keras' base classes have one that knows nothing of a subclass.
So a loss gets the attributes of the original, without its configuration. A metric or an optimizer,
which have variables, is made from its configuration and then gets the other attributes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from tf_lstm_ops.keras import user_objects

Keys = Mapping[Any, Any]  # by which an optimizer knows variables: those of the copy by the model's


def copied(item: Any) -> Any:
    """What a copy of a model is compiled with instead of something.

    Args:
      item: an argument of ``compile``, or a part of one.

    Returns:
      A new loss, metric or optimizer; else the same object.

    Raises:
      ValueError: a metric of the user's made variables that its constructor does not make.
    """
    if isinstance(item, keras.losses.Loss):
        made = object.__new__(type(item))
        vars(made).update(_with_keys(vars(item), {}))
        return made
    if not isinstance(item, keras.metrics.Metric | keras.optimizers.Optimizer):
        return item
    with user_objects.named():
        config = keras.saving.serialize_keras_object(item)
    made = keras.saving.deserialize_keras_object(config, safe_mode=False)
    if isinstance(item, keras.metrics.Metric):
        _require_all_variables(item, made)
        copy_attributes(item, made, {})
    return made


def _require_all_variables(metric: Any, made: Any) -> None:
    """An attribute may say that variables exist. Those of Keras' classes are in order."""
    if len(metric.variables) == len(made.variables):
        return
    if not _is_of_libraries(metric):
        raise ValueError(
            f"the metric {metric.name} has {len(metric.variables)} variables, but "
            f"{len(made.variables)} when it is made from its configuration"
        )


def copy_attributes(source: Any, target: Any, keys: Keys) -> None:
    """Gives a metric or an optimizer the attributes of the one from whose configuration it is.

    Variables, and what the library itself keeps for an object, stay as they are.

    Args:
      source: the original.
      target: the copy, built if the original is.
      keys: as of the type.
    """
    if len(source.variables) != len(target.variables):
        return  # of Keras: it makes the other variables later, and notes which it has
    for name, value in vars(source).items():
        if name.startswith("_self_"):  # of TensorFlow's tracking of objects
            continue
        own = vars(target).get(name)
        if isinstance(value, keras.metrics.Metric | keras.optimizers.Optimizer):
            if type(own) is type(value):
                copy_attributes(value, own, keys)
        elif _is_known(value):
            found = _with_keys(value, keys)
            if name not in vars(target) or not _are_equal(found, own):
                setattr(target, name, found)


_Parts = (list, tuple, set, frozenset)
# Objects of Keras without state of their own.
_SHARED = (
    keras.losses.Loss,
    keras.optimizers.schedules.LearningRateSchedule,
    keras.constraints.Constraint,
    keras.regularizers.Regularizer,
)


def _is_known(value: Any) -> bool:
    """Whether a copy may have the same value: no variable, and nothing that Keras keeps there."""
    if isinstance(value, dict):
        return all(map(_is_known, value.values()))
    if isinstance(value, _Parts):
        return all(map(_is_known, value))
    return isinstance(value, _SHARED) or not _is_of_libraries(value)


def _is_of_libraries(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in ("keras", "tensorflow", "threading")


def _with_keys(value: Any, keys: Keys) -> Any:
    """A copy of a container, with the keys of the copy's variables; other values as they are."""
    kind = type(value)
    if isinstance(value, dict):
        found = {_key(name, keys): _with_keys(each, keys) for name, each in value.items()}
        if kind is dict or _is_of_libraries(value):
            return found
        made = copy.copy(value)  # such as defaultdict
        made.clear()
        made.update(found)
        return made
    if isinstance(value, tuple) and hasattr(kind, "_fields"):  # a namedtuple
        return kind(*(_with_keys(each, keys) for each in value))
    for base in _Parts:
        if kind is base or (isinstance(value, base) and _is_of_libraries(value)):
            return base(_with_keys(each, keys) for each in value)
    return _key(value, keys)


def _key(value: Any, keys: Keys) -> Any:
    return keys.get(value, value) if isinstance(value, str | int) else value


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other)
    try:
        return one is other or bool(one == other)
    except (TypeError, ValueError):  # an operator of the user's, or arrays in a container
        return False
