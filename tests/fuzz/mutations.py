"""Changes of the arguments of an importer."""

import datetime
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from weights.formats import Weights

from .draw import HUGE, INT32, choose, happens, wrong_shape


class Import(NamedTuple):
    """An importer and right arguments.

    Attributes:
      name: what is called, for the count.
      read: from arrays by name, and options, to weights.
      write: from weights to such arrays.
      arrays: right arrays.
      options: right options.
      want: the weights that the right arguments hold.
      optional: names of arrays for which None is no error.
    """

    name: str
    read: Callable[..., Weights]
    write: Callable[[Weights], dict[str, Any]]
    arrays: dict[str, Any]
    options: dict[str, Any]
    want: Weights
    optional: tuple[str, ...] = ()


class Mutation(NamedTuple):
    """Changed arguments of a call.

    Attributes:
      arrays, options: the arguments.
      kind: for the count.
      text: what was changed, for a failure.
      verdict: "accepted", "refused", or "any" where both are right.
      named: what the text of the error must name.
      is_comparable: whether accepted weights, written again, are the arrays.
    """

    arrays: dict[str, Any]
    options: dict[str, Any]
    kind: str
    text: str
    verdict: str = "any"
    named: str = ""
    is_comparable: bool = True


def is_array(value: Any) -> bool:
    return hasattr(value, "shape") or isinstance(value, list)


# What is no array of numbers.
NO_ARRAYS: list[Any] = [
    None,
    "text",
    b"bytes",
    1.5,
    3,
    True,
    2**70,
    {},
    {"a": np.zeros(2)},
    set(),
    object(),
    float,
    [[1.0], [2.0, 3.0]],
    ["a", "b"],
    [None],
    datetime.datetime(2026, 1, 1),
    slice(1),
    np.array("text"),
    np.array(None),
]
# Types of elements that are no numbers.
NO_NUMBERS = ["U3", "S3", "O", "?", "c16", "M8[s]", "m8[s]", "V4", [("a", "f8")]]
CONTENTS = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 65504.0, 1e300]


def mutate(rng: np.random.Generator, right: Import) -> Mutation:
    """Changes an array, or two."""
    name = choose(rng, _read(right))
    kind = choose(rng, list(KINDS))
    arrays = dict(right.arrays)
    found = KINDS[kind](rng, right, arrays, name)
    return Mutation(arrays, right.options, kind, f"{right.name}, {name}: {kind}")._replace(**found)


def _read(right: Import) -> list[str]:
    """The names of arrays that are read; the others may be anything."""
    return [name for name in right.arrays if name != "head.weight"]


def _value(rng: Any, right: Import, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    arrays[name] = value = choose(rng, NO_ARRAYS)
    if value is None and name in right.optional:
        return {"verdict": "accepted"}
    # Of a list Keras' importer takes the elements for arrays of a layer.
    named = name.partition("[")[0] if isinstance(value, list) else name
    return {"verdict": "refused", "named": named, "text": f"{right.name}, {name}: {value!r}"}


def _elements(rng: Any, right: Import, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    dtype = choose(rng, NO_NUMBERS)
    arrays[name] = np.zeros(np.shape(arrays[name]), np.dtype(dtype))
    text = f"{right.name}, {name}: elements of {dtype}"
    return {"verdict": "refused", "named": name, "text": text}


def _dtype(rng: Any, right: Import, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    """Another type of numbers, of one array or of all."""
    dtype = choose(rng, ["f2", "f4", "f8", ">f4", ">f8", "g", "i1", "i8", "u2"])
    for key in [name] if happens(rng, 0.5) else list(arrays):
        if isinstance(arrays[key], np.ndarray):
            arrays[key] = arrays[key].astype(dtype)
    return {"text": f"{right.name}, {name} or all: {dtype}", "is_comparable": dtype[0] not in "iu"}


def _shape(rng: Any, right: Import, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    array = np.asarray(arrays[name])
    shape = wrong_shape(rng, array.shape)
    try:
        arrays[name] = np.zeros(shape, array.dtype)
    except ValueError:  # too large also without elements
        arrays[name] = np.zeros((0, 2**31), array.dtype)
    return {"text": f"{right.name}, {name}: {array.shape} becomes {arrays[name].shape}"}


def _huge(rng: Any, right: Import, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    """Arrays without elements and with large sizes, which fit together in part."""
    size = choose(rng, [2**20, 2**33, 2**40])
    for key, array in arrays.items():
        if isinstance(array, np.ndarray) and (key == name or happens(rng, 0.5)):
            rank = max(array.ndim, 2)
            shape = choose(rng, [(0, size), (size, 0), (4 * size, 0), (0, 4 * size)])
            arrays[key] = np.zeros((1,) * (rank - 2) + shape, array.dtype)
    shapes = {key: np.shape(array) for key, array in arrays.items()}
    return {"text": f"{right.name}: {shapes}"}


def _swap(rng: Any, right: Import, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    other = choose(rng, _read(right))
    arrays[name], arrays[other] = arrays[other], arrays[name]
    return {"text": f"{right.name}: {name} and {other} exchanged"}


def _remove(rng: Any, right: Import, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    if right.name in ("torch", "keras"):
        del arrays[name]
        return {"verdict": "refused" if right.name == "torch" else "any", "is_comparable": False}
    arrays[name] = None
    if name in right.optional:
        return {"verdict": "accepted"}
    return {"verdict": "refused", "named": name}


def _add(rng: Any, right: Import, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    if right.name == "torch":
        prefix = right.options["prefix"]
        key = choose(rng, ["weight", "bias_ih_l7", "weight_ih_l0_", "", "a" * 99, 7, None, b"x"])
        arrays[prefix + key if isinstance(key, str) else key] = arrays[name]
        text = f"torch: a key {key!r} more"  # long ones are cut in errors
        return {"verdict": "refused", "text": text, "named": str(key)[:50]}
    if right.name == "keras":
        arrays["source[9]" if "source[0]" in arrays else "source[0][9]"] = arrays[name]
        return {"is_comparable": False}
    return _value(rng, right, arrays, name)


def _contents(rng: Any, right: Import, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    """Special values. MPSGraph's peephole must be zero at some places."""
    arrays[name] = array = np.array(arrays[name])
    with np.errstate(over="ignore"):
        if array.size and array.dtype.kind != "U":
            array.reshape(-1)[rng.integers(array.size)] = choose(rng, CONTENTS)
    return {"verdict": "any" if name == "peephole" else "accepted"}


def _form(rng: Any, right: Import, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    """The same values in another form."""
    array = arrays[name]
    if not isinstance(array, np.ndarray) or array.dtype.kind == "U":
        return {"verdict": "accepted"}
    twice = np.repeat(array, 2, axis=-1)[..., ::2]
    frozen = np.array(array)
    frozen.flags.writeable = False
    backwards = np.ascontiguousarray(array[::-1])[::-1]
    forms = [np.asfortranarray(array), twice, frozen, backwards, tf.constant(array)]
    if array.dtype == np.float64 and right.name != "keras":  # which takes a list for a layer
        forms += [array.tolist(), array.view(np.matrix) if array.ndim == 2 else array]
    arrays[name] = choose(rng, forms)
    return {"verdict": "accepted", "text": f"{right.name}, {name}: {type(arrays[name])}"}


KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "value": _value,
    "elements": _elements,
    "dtype": _dtype,
    "shape": _shape,
    "huge": _huge,
    "swap": _swap,
    "remove": _remove,
    "add": _add,
    "contents": _contents,
    "form": _form,
}
NO_OPTIONS: list[Any] = [None, "text", b"x", [], [1, 2], {}, object(), 1j]


def mutate_option(rng: np.random.Generator, right: Import) -> Mutation:
    """Changes an option: a value of another type, or any number."""
    name = choose(rng, list(right.options))
    of_text, is_none = isinstance(right.options[name], str), right.options[name] is None
    wrong = [v for v in NO_OPTIONS if not (of_text and isinstance(v, str))]
    wrong = [v for v in wrong if not (is_none and v is None)]
    wrong += [1, 0.5] if of_text else [] if name == "forget_bias" else [0.5, np.nan, np.inf]
    texts = ["", "text", "skip_input", "auto_select", "icfo", "IFCO", "encoder"]
    numbers = [*INT32, *HUGE, 2, 3, 2**70, True, np.int8(3)]
    is_wrong = happens(rng, 0.5)
    value = choose(rng, wrong if is_wrong else texts if of_text else numbers)
    return Mutation(
        right.arrays,
        {**right.options, name: value},
        "option",
        f"{right.name}, {name}={value!r}",
        "refused" if is_wrong else "any",
        name if is_wrong else "",
        is_comparable=False,
    )
