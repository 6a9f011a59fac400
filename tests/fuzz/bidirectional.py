"""The ops behind keras.Bidirectional, beside the ops of its two layers, which keras.py draws."""

from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import composite, dialects, op_definitions

from . import keras
from .call import Array, Call
from .draw import choose, happens, spoil, uniform, wide

PREFIX = "backward_"
OPS = [op.replace("Keras", "KerasBidirectional", 1) for op in keras.OPS]


def draw(rng: np.random.Generator) -> Call:
    layer = keras.draw_layer(rng)
    first = keras.tensors_of(rng, layer)
    shapes = {name: shape for name, shape in layer.shapes.items() if name != "mask"}
    spoilt = spoil(rng, shapes) if happens(rng, 0.3) else shapes
    is_spoilt = spoilt != shapes
    spoilt["x"] = choose(rng, [(0,), spoilt["x"]])
    second = {name: uniform(rng, shape, layer.dtype) for name, shape in spoilt.items()}
    attributes = {k: v for k, v in layer.attributes.items() if k != "go_backwards"}
    tensors = {**first, **{PREFIX + name: value for name, value in second.items()}}
    errors = None if is_spoilt else layer.errors
    make = _forward if happens(rng, 0.6) else _gradient
    return make(rng, layer, attributes, tensors, errors)


def _run(op: str, names: list[str], attributes: dict[str, Any], *values: Any) -> Any:
    given = {**dict(zip(names, values, strict=True)), **attributes}
    if composite.plain_ops_required():
        return dialects.COMPOSITES[op](**given)
    return op_definitions.function(op)(**given)


def _layers(tensors: dict[str, tf.Tensor]) -> list[dict[str, Any]]:
    """The arguments of the ops of the two layers."""
    second = {k.removeprefix(PREFIX): v for k, v in tensors.items() if k.startswith(PREFIX)}
    first = {k: v for k, v in tensors.items() if not k.startswith(PREFIX)}
    second = {**first, **second}
    if second["x"].shape == [0]:
        second["x"] = first["x"]
    return [{**first, "go_backwards": False}, {**second, "go_backwards": True}]


def _forward(
    rng: np.random.Generator, layer: Any, attributes: dict[str, Any], tensors: Any, errors: Any
) -> Call:
    op = layer.op.replace("Keras", "KerasBidirectional", 1)
    attributes = {**attributes, "training": happens(rng, 0.7)}
    names = list(tensors)

    def want() -> list[Array | None]:
        function = op_definitions.function(layer.op)
        (output, *states, _), (other, *others, _) = (
            [wide(t) for t in function(**given, **attributes)] for given in _layers(tensors)
        )
        if attributes["return_sequences"]:
            other = other[:, ::-1]
        return [np.concatenate([output, other], -1), *states, *others, None]

    return Call(
        f"own {op}",
        lambda *values: _run(op, names, attributes, *values),
        list(tensors.values()),
        errors,
        want if errors == [] else None,
        layer.dtype,
    )


def _gradient(
    rng: np.random.Generator, layer: Any, attributes: dict[str, Any], tensors: Any, errors: Any
) -> Call:
    """The gradient op, with the reserve of its own call or any other one."""
    op = layer.op.replace("Keras", "KerasBidirectional", 1)
    sizes = layer.sizes
    steps = sizes.time if attributes["return_sequences"] else 1
    right = {"output_grad": (sizes.batch, steps, 2 * sizes.hidden)}
    widths = {"h": sizes.hidden, "c": sizes.units}
    for prefix in ("", PREFIX):
        right |= {
            f"{prefix}final_{s}_grad": (sizes.batch, widths[s])
            for s in keras.LAYERS[layer.kind].states
        }
    shapes = spoil(rng, right)
    more = {k: uniform(rng, s, layer.dtype) for k, s in shapes.items()}
    is_right = errors == [] and shapes == right
    if errors == []:
        own = op_definitions.function(op)(**tensors, **attributes, training=True)
        output, reserve = own.output, own.reserve
    else:
        output = uniform(rng, right["output_grad"], layer.dtype)
        reserve = uniform(rng, (int(rng.integers(0, 500)),), layer.dtype)
    values = {**tensors, "output": output, "reserve": reserve, **more}
    names = list(values)

    def want() -> list[Array]:
        found: list[list[Array]] = []
        for given, prefix in zip(_layers(tensors), ("", PREFIX), strict=True):
            own = op_definitions.function(layer.op)(**given, **attributes, training=True)
            half = tf.split(more["output_grad"], 2, -1)[bool(prefix)]
            if prefix and attributes["return_sequences"]:
                half = tf.reverse(half, [1])
            upstream = {
                k.removeprefix(prefix): v
                for k, v in more.items()
                if k.startswith(f"{prefix}final_")
            }
            grads = op_definitions.function(f"{layer.op}Grad")(
                **given,
                output=own.output,
                reserve=own.reserve,
                output_grad=half,
                **upstream,
                **attributes,
            )
            found.append([wide(g) for g in grads])
        if tensors[f"{PREFIX}x"].shape == [0]:
            found[0][0] = found[0][0] + found[1][0]
            found[1][0] = np.zeros(0)
        return [*found[0], *found[1]]

    return Call(
        f"own {op}Grad",
        lambda *given: _run(f"{op}Grad", names, attributes, *given),
        list(values.values()),
        [] if is_right else None,
        want if is_right else None,
        layer.dtype,
    )
