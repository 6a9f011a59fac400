"""convert_model: replaces stock recurrent layers of a model by ours, or ours by stock ones."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias

import keras

from tf_lstm_ops import _deviation, _keras_private
from tf_lstm_ops.keras import (
    counterparts,
    model_copy,
    model_layers,
    stock_layer,
    stock_stack,
    user_objects,
)
from tf_lstm_ops.keras.bidirectional import Bidirectional
from tf_lstm_ops.keras.fused import FusedRNN
from tf_lstm_ops.keras.old_files.arguments import (
    HARD_SIGMOID_DIFFERS,
    mark_hard_sigmoid,
    may_be_hard_sigmoid_of_keras_2,
)
from tf_lstm_ops.keras.policy import default_dtype_policy
from tf_lstm_ops.keras.requirements import require_model
from tf_lstm_ops.keras.stacked import StackedGRU, StackedLSTM

_Remember: TypeAlias = Callable[[Any], None]  # notes an object before it changes

_RNN = keras.layers.RNN
_TARGETS = {"fused": counterparts.ours, "stock": counterparts.stock}
# The class of the wrappers to convert.
_WRAPPERS = {"fused": keras.layers.Bidirectional, "stock": Bidirectional}


def convert_model(
    model: keras.Model,
    custom_objects: dict[str, Any] | None = None,
    *,
    to: Literal["fused", "stock"] = "fused",
    in_place: bool = False,
) -> keras.Model:
    """Copies a model and replaces stock recurrent layers by fused layers, or the reverse.

    >>> import keras
    >>> from tf_lstm_ops.keras import convert_model
    >>> model = keras.Sequential([keras.Input((None, 8)), keras.layers.LSTM(4)])
    >>> converted = convert_model(model)
    >>> converted.layers[0].uses_fused_op
    True

    With ``to="fused"``, ``keras.layers.LSTM``, ``GRU`` and ``SimpleRNN``, and ``keras.layers.RNN``
    of one of their cells, become the layers of ``tf_lstm_ops.keras`` of these names. ``RNN`` of
    several equal cells becomes ``StackedLSTM`` or ``StackedGRU``, and ``Bidirectional`` of two such
    layers becomes ``tf_lstm_ops.keras.Bidirectional``. A warning names the recurrent layers that
    are not replaced, each with the reason; ``fallback_reasons`` returns them. With ``to="stock"``,
    layers and cells of tf_lstm_ops become those of ``keras.layers``. Files of the new model need no
    tf_lstm_ops, except for `keras_2_hard_sigmoid`. If one of the layers has an option that its
    stock layer lacks, nothing is converted.

    Layers inside wrappers, nested models, and layers and models of the user's own are replaced too.
    Weights, their order, seeds, states of stateful layers, ``trainable``, and of a compiled model
    the loss, the metrics and the optimizer with its variables are copied, so training continues.
    The model itself does not change. The copy shares functions, constraints, regularizers,
    schedules and the variables of a loss with it.

    The results stay the same, up to rounding. They are those of Keras 3: a warning names layers
    with "hard_sigmoid", which was another function in Keras 2.

    The copy is made from the model's configuration, as by ``keras.models.load_model``. A subclassed
    model without ``get_config`` has none: convert it with ``in_place=True``.

    Args:
      model: a ``keras.Model``: Sequential, functional, or with a ``get_config`` of its own; with
        in_place any.
      custom_objects: classes and functions by name, as for ``keras.models.load_model``; needed only
        for objects that a ``from_config`` looks up by name and that are not attributes of a layer.
      to: "fused" or "stock".
      in_place: whether to convert the model itself instead of a copy. The layers stay the same
        objects with the same variables and get another class, so the model stays compiled. The
        model changes completely or, if there is an error, not at all.

    Returns:
      The new model, of the same class; with in_place the model.

    Raises:
      TypeError: model is not a ``keras.Model`` (a model of tf_keras is not one), or custom_objects
        not a dictionary.
      ValueError: to is neither "fused" nor "stock"; the model, or a part of it, cannot be made from
        its configuration; stock layers cannot express a layer: the text has the paths and reasons
        of all such layers.
    """
    require_model(model)
    if to not in _TARGETS:
        raise ValueError(f"to must be 'fused' or 'stock'. Received: to={to!r}")
    if not isinstance(custom_objects, dict | None):
        raise TypeError(f"custom_objects must be a dictionary. Received: {custom_objects!r}")
    doubtful = list(model_layers.located(model, may_be_hard_sigmoid_of_keras_2))
    if to == "fused" and doubtful:
        _warn_of_hard_sigmoid(dict.fromkeys(each.path for each in doubtful))
    if to == "fused":
        _warn_of_unrolled(model)
    with user_objects.known(model, custom_objects), default_dtype_policy(model.dtype_policy):
        stacks = _stock_stacks(model, in_place) if to == "stock" else {}
        if to == "stock":
            _require_stock_can_express(model, stacks)
            _warn_of_masks(model)
        if in_place:
            with _undone_on_error() as remember:
                _convert(model, to, remember)
                _warn_of_layers_left_alone(model, to)
                _keras_private.forget_traces(model)
            return model
        copy = model_copy.copied(model, to, stacks)
        with _undone_on_error() as remember:
            _convert(copy, to, remember)
        if not doubtful:
            mark_hard_sigmoid(copy)
        if model.compiled:
            try:
                model_copy.copy_training(model, copy)
            except Exception as error:  # a loss or a metric of the user's may raise anything
                warnings.warn(
                    f"compile the converted model; its optimizer has no state: {error}",
                    stacklevel=2,
                )
        _warn_of_layers_left_alone(copy, to)
        return copy


def convert_loaded(model: keras.Model) -> keras.Model:
    """Replaces the stock layers of a model that was just made of a file.

    Args:
      model: the model, which becomes the result.

    Returns:
      The model.
    """
    with user_objects.known(model), default_dtype_policy(model.dtype_policy):
        with _undone_on_error() as remember:
            _convert(model, "fused", remember)
        _warn_of_layers_left_alone(model, "fused")
    return model


def _convert(model: keras.Model, to: str, remember: _Remember) -> None:
    """Gives the layers of a model their new classes."""
    find = model_layers.recurrent if to == "fused" else _layers_of_ours
    layers = [item.layer for item in find(model)]
    _become_all(layers, _TARGETS[to], remember)
    for layer in _keras_private.layers_of(model):
        is_wrapper = _deviation.class_that_computes(type(layer)) is _WRAPPERS[to]
        if is_wrapper and _deviation.of(layer) is None:
            remember(layer)
            _convert_wrapper(layer, to)


def _warn_of_hard_sigmoid(paths: Iterable[str]) -> None:
    """A model does not say whether Keras 2 trained it, and Keras itself does not ask."""
    warnings.warn(
        f"{HARD_SIGMOID_DIFFERS}. If Keras 1 or 2 trained the model, open its file with "
        f"tf_lstm_ops.keras.load_h5 instead. Layers with hard_sigmoid: {', '.join(paths)}",
        stacklevel=3,
    )


def _warn_of_unrolled(model: keras.Model) -> None:
    """Keras itself computes something else with unroll than without it."""

    def differs(layer: keras.Layer) -> bool:
        is_recurrent = isinstance(layer, _RNN) and not isinstance(layer, FusedRNN)
        return is_recurrent and stock_layer.unrolled_differs(layer)

    paths = []
    for path, layer, parents in model_layers.located(model, differs):
        of_wrapper = isinstance(parents[-1], keras.layers.Bidirectional)
        if _keras_private.gets_mask(parents[-1] if of_wrapper else layer):
            paths.append(path)
    if paths:
        warnings.warn(
            "with unroll=True Keras computes other outputs for masked steps than without it. The "
            f"converted layers compute those without it: {', '.join(paths)}",
            stacklevel=3,
        )


def _warn_of_layers_left_alone(model: keras.Model, to: str) -> None:
    reasons = fallback_reasons(model) if to == "fused" else {}
    left_alone = [f"\n  {path}: {why}" for path, why in reasons.items() if why is not None]
    if left_alone:
        warnings.warn(
            f"convert_model did not replace these layers:{''.join(left_alone)}", stacklevel=3
        )


def fallback_reasons(model: keras.Layer) -> dict[str, str | None]:
    """Returns, for each recurrent layer of a model, why it does not run a fused op.

    Bare cells of the model, which run one step per call, are included. The cell of a recurrent
    layer is part of that layer and has no item of its own.

    >>> import keras
    >>> from tf_lstm_ops.keras import LSTM, fallback_reasons
    >>> x = keras.Input((None, 8))
    >>> x_encoded = LSTM(4, return_sequences=True, name="encoder")(x)
    >>> model = keras.Model(x, keras.layers.GRU(2, name="head")(x_encoded))
    >>> fallback_reasons(model)
    {'encoder': None, 'head': 'it is keras.layers.GRU; convert_model replaces it'}

    Args:
      model: a ``keras.Model``, or another ``keras.Layer``: a recurrent layer, or one that has
        recurrent layers, such as Bidirectional. There is no item for a cell given by itself.

    Returns:
      The reasons, None for a layer that runs a fused op. The keys are paths of names, such as
      ``"encoder/bidirectional/forward_lstm"``, in the model's order. They do not begin with the
      name of the model. The key of a recurrent layer that is given by itself is its name.

    Raises:
      TypeError: model is not a ``keras.Layer``; those of tf_keras are not.
    """
    require_model(model, keras.Layer)
    is_layer = isinstance(model, _RNN)
    layers = [(model.name, model)] if is_layer else _recurrent(model)
    # A model may have the cell of one of its layers as an attribute of its own, too.
    owned = {id(layer.cell) for _, layer in layers if isinstance(layer, _RNN)}
    with user_objects.known(model):
        return {path: _reason(layer) for path, layer in layers if id(layer) not in owned}


def _recurrent(model: keras.Model) -> list[tuple[str, Any]]:
    return [(item.path, item.layer) for item in model_layers.recurrent(model)]


def _layers_of_ours(model: keras.Model) -> Iterator[model_layers.Located]:
    """Without Bidirectional, which has the layers that are converted."""

    def is_wanted(layer: keras.Layer) -> bool:
        return counterparts.is_ours(layer) and type(layer) is not Bidirectional

    return model_layers.located(model, is_wanted)


def _convert_wrapper(layer: Any, to: str) -> None:
    """Bidirectional becomes ours where one op then computes both of its layers, or stock."""
    _keras_private.set_class(layer, _WRAPPERS["stock" if to == "fused" else "fused"])
    if to == "fused" and not layer.uses_fused_op:
        _keras_private.set_class(layer, keras.layers.Bidirectional)


def _reason(layer: keras.Layer) -> str | None:
    if isinstance(layer, FusedRNN):
        return layer.fallback_reason
    new = counterparts.ours(layer)
    if isinstance(new, str):
        return new
    return f"it is keras.layers.{type(layer).__name__}; convert_model replaces it"


def _stock_stacks(model: keras.Model, in_place: bool) -> dict[str, str | None]:
    """Why stock layers cannot replace each StackedLSTM and StackedGRU, or None, by its path."""
    found: dict[str, str | None] = {}
    kinds = (StackedLSTM, StackedGRU)
    for path, layer, parents in model_layers.located(model, lambda layer: type(layer) in kinds):
        if in_place:
            found[path] = "one layer becomes several, which needs a copy (in_place=False)"
        elif not (
            isinstance(parents[-1], keras.Sequential) or _keras_private.is_functional(parents[-1])
        ):
            found[path] = "only a layer of a Sequential or functional model becomes several layers"
        else:
            found[path] = _deviation.of(layer) or stock_stack.reason(layer, parents)
    return found


def _require_stock_can_express(model: keras.Model, stacks: dict[str, str | None]) -> None:
    found = [
        (path, stacks[path] if path in stacks else counterparts.stock(layer))
        for path, layer, _ in _layers_of_ours(model)
    ]
    wrappers = model_layers.located(model, lambda layer: type(layer) is Bidirectional)
    found += [(path, _deviation.of(layer)) for path, layer, _ in wrappers]
    lines = [f"\n  {path}: {new}" for path, new in found if isinstance(new, str)]
    if counterparts.is_ours(model):
        lines.insert(0, f"\n  {model.name}: the model is of class {type(model).__name__}")
    if lines:
        raise ValueError(f"stock layers cannot express these layers:{''.join(lines)}")


def _warn_of_masks(model: keras.Model) -> None:
    """A configuration does not say whether a stock layer passes masks on."""
    if model_layers.stock_passes_masks():
        return
    lines = [
        f"\n  {path}"
        for path, layer, _ in _layers_of_ours(model)
        if isinstance(layer, FusedRNN)
        and (layer.return_sequences and layer.supports_masking and _keras_private.gets_mask(layer))
    ]
    if lines:
        warnings.warn(
            "these layers pass their mask on. Stock layers of this version of Keras do not. The "
            f"converted layers do, but not after a model is loaded from a file:{''.join(lines)}",
            stacklevel=3,
        )


def _become_all(
    layers: Iterable[Any], counterpart: Callable[[Any], Any], remember: _Remember
) -> None:
    """Turns layers into their counterparts, in place.

    Each object stays the same, with its weights, seeds, states and name. What refers to it (a
    wrapper, a functional model, a list, a closure, an optimizer) stays valid.
    """
    for layer in {id(layer): layer for layer in layers}.values():
        new = counterpart(layer)
        if isinstance(new, str):
            continue
        kind = _deviation.class_that_computes(type(layer))
        plain = counterparts.deserialise(kind, counterparts.config_of(layer))
        _become(layer, plain, new, remember)
        if hasattr(layer, "cell"):
            _become(layer.cell, plain.cell, new.cell, remember)


def _become(layer: keras.Layer, plain: Any, new: Any, remember: _Remember) -> None:
    """Gives a layer the class of `new`. `plain` is a layer of the old class that is not built."""
    remember(layer)
    _keras_private.become(layer, plain, new)


@contextlib.contextmanager
def _undone_on_error() -> Iterator[_Remember]:
    """A context that restores the classes and attributes of objects if it ends with an error."""
    noted: list[tuple[Any, type, dict[str, Any]]] = []
    try:
        yield lambda layer: noted.append((layer, type(layer), dict(vars(layer))))
    except BaseException:
        for layer, cls, attributes in reversed(noted):
            _keras_private.set_class(layer, cls)
            vars(layer).clear()
            vars(layer).update(attributes)
        raise
