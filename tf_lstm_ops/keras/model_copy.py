"""A copy of a model, made from its configuration, with the same weights and training state."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import keras

from tf_lstm_ops import _deviation, _keras_private
from tf_lstm_ops.keras import counterparts, object_copy, ours_stack, stock_stack, user_objects
from tf_lstm_ops.keras.stacked_rnn import StackedRNN

_WITHOUT_CONFIGURATION = (
    "convert_model(model, in_place=True) converts the model itself, which needs no configuration."
)


def copied(model: keras.Model, to: str, stacks: dict[str, str | None]) -> Any:
    """Copies a model. Stacks and their stock layers are replaced by each other, no other layers.

    Args:
      model: the model.
      to: "fused" or "stock", the layers that are to replace others.
      stacks: the paths of the stacks that stock layers are to replace.

    Returns:
      The copy, which is not compiled.

    Raises:
      ValueError: the model, or a part of it, cannot be made from its configuration; it has stacks
        to replace, and nested models that share layers.
    """
    shares = _shares_layers(model)
    if shares and stacks:
        raise ValueError(
            "stock layers cannot express these layers of a model whose nested models share layers:"
            f"{''.join(f'{chr(10)}  {path}' for path in stacks)}"
        )
    try:
        copy = _cloned(model, to) if shares else _made(model, to, bool(stacks))
        if model.built and not copy.built:
            copy.build_from_config(model.get_build_config())
    except Exception as error:  # a class of the user's may raise anything
        raise ValueError(
            f"convert_model cannot make {_culprit(model) or model.name} from its configuration, as "
            f"Keras does when it loads a model. {_WITHOUT_CONFIGURATION} {error}"
        ) from error
    _copy_state(model, copy)
    return copy


def _made(layer: Any, to: str, has_stacks: bool) -> Any:
    """A layer or model from the configuration of one."""
    config = counterparts.config_of(layer)
    if to == "fused":
        config = _replaced(config, ours_stack.replacement)
    elif has_stacks:
        config = _replaced(config, stock_stack.replacement)
    return counterparts.deserialise(type(layer), config)


def _replaced(config: Any, replacement: Callable[[dict[str, Any]], Any]) -> Any:
    """A model's configuration, or a part of it, with other layers where there is a replacement."""
    if isinstance(config, list | tuple):
        return type(config)(_replaced(value, replacement) for value in config)
    if not isinstance(config, dict):
        return config
    if (new := replacement(config)) is not None:
        with user_objects.named():
            return {**config, **keras.saving.serialize_keras_object(new)}
    return {key: _replaced(value, replacement) for key, value in config.items()}


def _shares_layers(model: keras.Model) -> bool:
    """Whether two models or wrappers have the same layer, which a configuration has twice."""
    parents = Counter(
        id(child)
        for parent in _keras_private.layers_of(model)
        if _is_of_layers(parent) or type(parent) is keras.layers.TimeDistributed
        for child in _keras_private.children(parent)
    )
    return _is_of_layers(model) and max(parents.values(), default=0) > 1


def _is_of_layers(layer: Any) -> bool:
    return isinstance(layer, keras.Sequential) or _keras_private.is_functional(layer)


def _cloned(model: keras.Model, to: str) -> Any:
    """A copy of a model that calls the copy of each layer where the model calls the layer."""
    clones: dict[int, Any] = {}

    def inputs_of(model: Any) -> Any:
        """The inputs of the clone. Keras makes those of a Sequential model."""
        if isinstance(model, keras.Sequential):
            return None
        return keras.tree.map_structure(
            lambda tensor: clone(_keras_private.producer(tensor)[0]).output, model.input
        )

    def clone(layer: Any) -> Any:
        if id(layer) not in clones:
            clones[id(layer)] = new(layer)
        return clones[id(layer)]

    def new(layer: Any) -> Any:
        if _is_of_layers(layer):
            return keras.models.clone_model(
                layer, input_tensors=inputs_of(layer), clone_function=clone
            )
        if type(layer) is keras.layers.TimeDistributed:  # which may have a shared layer
            options = {n: getattr(layer, n) for n in ("name", "trainable")}
            return type(layer)(clone(layer.layer), dtype=layer.dtype_policy, **options)
        if to == "fused" and ours_stack.is_of_cells(layer):
            stack = ours_stack.of(layer)
            if not isinstance(stack, str):
                return stack
        return _made(layer, to, has_stacks=False)

    with warnings.catch_warnings(), user_objects.named():
        # Keras compiles the clone, too, which `copy_training` does completely.
        warnings.simplefilter("ignore")
        copy = clone(model)
    for nested in filter(_is_of_layers, _keras_private.layers_of(model)):
        both = nested, clones[id(nested)]
        names = [[layer.name for layer in _keras_private.children(m)] for m in both]
        if names[0] != names[1]:
            raise ValueError(f"the clone of {nested.name} has other layers, or in another order")
    return copy


def _culprit(parent: Any, path: str = "") -> str | None:
    """The first layer, innermost first, that cannot be made from its configuration."""
    for layer in _keras_private.children(parent):
        name = path + layer.name
        if inner := _culprit(layer, f"{name}/"):
            return inner
        try:
            counterparts.deserialise(type(layer), counterparts.config_of(layer))
        except Exception:  # a class of the user's may raise anything
            return f"{name} (of class {type(layer).__name__})"
    return None


def _copy_state(model: keras.Model, copy: Any) -> None:
    pairs = _pairs(model, copy)
    sizes = [[v.shape for v in m.weights] for m in (model, copy)]
    if None in pairs or sizes[0] != sizes[1]:
        counts = [len(_keras_private.layers_of(m)) for m in (model, copy)]
        raise ValueError(
            f"the configuration of {model.name} does not describe the whole model: made from it, a "
            f"model has {counts[1]} layers and {len(sizes[1])} weights, not {counts[0]} "
            f"and {len(sizes[0])}, or other shapes. Possible causes are a class without get_config "
            "or get_build_config, and a layer that nested models share. "
            f"{_WITHOUT_CONFIGURATION}"
        )
    _require_the_same_classes(pairs)
    _require_described(pairs)
    for source, target in pairs:
        if isinstance(source, StackedRNN) != isinstance(target, StackedRNN):
            target.trainable = source.trainable  # also of stock layers, which lack the argument
            target.set_weights(source.get_weights())
            _assign(_states(target), _states(source))
        else:
            _copy_layer(source, target)
    for pair in pairs:  # also the variables of the seeds, but those of a stack that was replaced
        if len({str([v.shape for v in layer.variables]) for layer in pair}) == 1:
            _assign(*(layer.variables for layer in reversed(pair)))


def _states(layer: Any) -> list[Any]:
    """The states of a stack, or of what it replaces or what replaces it."""
    parts = stock_stack.recurrent(layer) if isinstance(layer, keras.Sequential) else [layer]
    return [state for part in parts for state in keras.tree.flatten(part.states or [])]


def _require_the_same_classes(pairs: list[Any]) -> None:
    """A configuration names the class of a layer, which may be the name of another class, too."""
    kinds = {type(source): type(target) for source, target in pairs}
    for kind, found in kinds.items():
        if found is not kind and (kind.__module__, kind.__name__) == (
            found.__module__,
            found.__name__,
        ):
            raise ValueError(
                f"the model has two classes {kind.__module__}.{kind.__name__}, which its "
                "configuration does not tell apart. Give them different names. "
                f"{_WITHOUT_CONFIGURATION}"
            )


def _require_described(pairs: list[Any]) -> None:
    """A configuration lacks what was replaced, unless its class does that: methods, cells, weights
    and layers."""
    copies = {id(source): target for source, target in pairs}
    for source, target in pairs:
        methods, cell = _deviation.replaced_methods(source), _deviation.of_cell(source)
        lost = sorted({*methods} - {*_deviation.replaced_methods(target)})
        reason = f"{', '.join(lost)} replaced" if lost else cell
        if lost or cell != _deviation.of_cell(target):
            raise ValueError(
                f"the configuration of {source.name} does not describe it: {reason}. "
                f"{_WITHOUT_CONFIGURATION}"
            )
        other = None
        if type(source) is not type(target):  # a stack or the layers that it replaces
            if isinstance(source, keras.layers.RNN) and source.built:
                other = _deviation.of_weights(source)
        elif names := _other_parts(source, target, copies):
            other = f"{' and '.join(names)} replaced"
        if other:
            raise ValueError(
                f"the configuration of {source.name} does not describe it: {other}. "
                f"{_WITHOUT_CONFIGURATION}"
            )


def _other_parts(source: Any, target: Any, copies: dict[int, Any]) -> list[str]:
    """The attributes of a layer that hold a weight or a layer in its copy only, or another one."""
    made = {*map(id, copies.values())}
    weights = [{id(w): n for n, w in enumerate(layer.variables)} for layer in (source, target)]

    def is_other(value: Any, of_copy: Any) -> bool:
        if isinstance(of_copy, keras.Variable):
            return weights[0].get(id(value)) != weights[1].get(id(of_copy))
        return id(of_copy) in made and copies.get(id(value)) is not of_copy

    found = vars(source)
    return sorted(
        name for name, part in vars(target).items() if name in found and is_other(found[name], part)
    )


def _pairs(model: keras.Model, copy: Any) -> list[Any]:
    """Each layer of a model beside that of its copy; None where the copy has other layers."""
    pairs: dict[int, Any] = {}

    def visit(source: Any, target: Any) -> None:
        if id(source) in pairs:
            return
        pairs[id(source)] = source, target
        if isinstance(source, StackedRNN) != isinstance(target, StackedRNN):
            return
        children = _keras_private.children(source), _keras_private.children(target)
        if len(children[0]) != len(children[1]):
            pairs[id(source)] = None
            return
        for pair in zip(*children, strict=True):
            visit(*pair)

    visit(model, copy)
    return list(pairs.values())


def _copy_layer(source: Any, target: Any) -> None:
    """Copies the layer's own state by the methods with which Keras saves and loads it."""
    target.trainable = source.trainable
    for name in "implementation", "use_cudnn":  # which the configuration lacks
        if name in vars(source):
            setattr(target, name, vars(source)[name])
    variables: dict[str, Any] = {}
    source.save_own_variables(variables)
    target.load_own_variables(variables)
    _share_parts(source, target)
    if hasattr(source, "save_assets"):
        with tempfile.TemporaryDirectory() as folder:
            source.save_assets(folder)
            target.load_assets(folder)
    if isinstance(source, keras.layers.RNN) and source.states is not None:
        _assign(keras.tree.flatten(target.states), keras.tree.flatten(source.states))


def copy_training(model: keras.Model, copy: Any) -> None:
    """Compiles the copy of a model, and copies the state of its optimizer.

    Args:
      model: the model, compiled.
      copy: what `copied` returned for it.

    Raises:
      ValueError: the model's class overrides ``compile``, but not ``compile_from_config``. A loss
        or a metric of the user's may raise other errors.
    """
    if type(model).compile is keras.Model.compile:
        given = _keras_private.compile_arguments(model)
        copy.compile(**keras.tree.map_structure(object_copy.copied, given))
    else:
        with user_objects.named():
            config = model.get_compile_config()
        copy.compile_from_config(config)
        if not copy.compiled:
            raise ValueError("its class overrides compile but not compile_from_config")
    if model.optimizer.built:
        copy.optimizer.build(copy.trainable_variables)
        _assign(copy.optimizer.variables, model.optimizer.variables)
    keys = [
        [_keras_private.variable_key(model.optimizer, each) for each in both.weights]
        for both in (model, copy)
    ]
    object_copy.copy_attributes(model.optimizer, copy.optimizer, dict(zip(*keys, strict=True)))


def _assign(targets: Any, sources: Any) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.assign(source)


def _share_parts(source: Any, target: Any) -> None:
    """Gives a layer the constraints and regularizers of the one from whose configuration it is."""
    kinds = (keras.constraints.Constraint, keras.regularizers.Regularizer)
    for name, value in vars(source).items():
        if isinstance(value, kinds) and isinstance(vars(target).get(name), kinds):
            setattr(target, name, value)
    for original, made in zip(source.weights, target.weights, strict=True):
        for name in ("constraint", "regularizer"):
            if isinstance(getattr(original, name, None), kinds):
                setattr(made, name, getattr(original, name))
