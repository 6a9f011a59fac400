"""The inputs and outputs of an ONNX model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.file import NAME_BYTES
from tf_lstm_ops.inference.from_onnx.values import Array
from tf_lstm_ops.inference.tracing.axes import Factor, Product, Traced
from tf_lstm_ops.onnx_graph import tensors
from tf_lstm_ops.onnx_graph.attributes import short, subgraphs

# The numbers of ONNX's types, and NumPy's types of arrays for them.
_FLOATS = {1: "float32", 10: "float16", 11: "float64"}
_INTEGERS = {6: "int32", 7: "int64"}
_OTHERS = {9: "bool", 3: "int8", 2: "uint8"}


@dataclasses.dataclass(frozen=True)
class Given:
    """An input of a model.

    Attributes:
      name: its name.
      dtype: of an array for it.
      sizes: of its axes; None: any.
      is_open: of its axes, whether calls may have other sizes: where the file or the caller says
        so. Constants of a file may have been computed from sizes that it fixes.
    """

    name: str
    dtype: str
    sizes: tuple[int | None, ...]
    is_open: tuple[bool, ...]

    @property
    def is_float(self) -> bool:
        """Whether it has floats; others are indices."""
        return self.dtype.startswith("float")

    @property
    def may_be_second(self) -> bool:
        """Whether it has time, so that the second axis may be the batch."""
        return len(self.sizes) > (2 if self.is_float else 1)


def inputs_of(model: Any) -> list[Given]:
    """The inputs of a model that are no initializers.

    Args:
      model: the ``onnx.ModelProto``.

    Returns:
      The inputs, in the order of the file.

    Raises:
      ValueError: one has no type, or one that no session has.
    """
    known = {tensor.name for tensor in model.graph.initializer}
    given = [_given(value) for value in model.graph.input if value.name not in known]
    indices = _read_as_integers(model.graph)
    return [
        dataclasses.replace(each, dtype="int32") if each.name in indices else each for each in given
    ]


def _read_as_integers(graph: Any) -> set[str]:
    """The names that nothing reads but casts to integers, such as indices of Keras' float input.

    A mask compares them, too.
    """
    readers: dict[str, set[bool]] = {}
    for node in graph.node:
        to = next((each.i for each in node.attribute if each.name == "to"), None)
        for name in node.input:
            is_cast = node.op_type == "Cast" and to in _INTEGERS
            if node.op_type != "Equal":
                readers.setdefault(name, set()).add(is_cast)
        for _, part in subgraphs(node):
            readers.update({name: {False} for each in part.node for name in each.input})
    outputs = {value.name for value in graph.output}
    return {name for name, kinds in readers.items() if kinds == {True}} - outputs


def _given(value: Any) -> Given:
    kinds = _FLOATS | _INTEGERS | _OTHERS
    tensor = value.type.tensor_type
    if tensor.elem_type not in kinds or not tensor.HasField("shape"):
        kind = tensors.name_of(tensor.elem_type)
        raise ValueError(
            f"the input {short(value.name)} must be an array of floats or integers with a shape. "
            f"The file says the type {kind}{'' if tensor.HasField('shape') else ' without a shape'}"
        )
    sizes = [
        each.dim_value if each.HasField("dim_value") and each.dim_value > 0 else None
        for each in tensor.shape.dim
    ]
    is_open = tuple(size is None for size in sizes)
    return Given(value.name, kinds[tensor.elem_type], tuple(sizes), is_open)


def with_shapes(
    given: Sequence[Given], shapes: Mapping[str, Sequence[int | None]] | None
) -> list[Given]:
    """Inputs with sizes that the caller gives.

    Args:
      given: the inputs.
      shapes: sizes of axes by the names of inputs; None: none.

    Returns:
      The inputs.

    Raises:
      ValueError: there is no such input, or it has other sizes.
      TypeError: shapes is no dictionary.
    """
    _require_known("shapes", shapes, given)
    found = []
    for each in given:
        if each.name in (shapes or {}):
            each = _merged(each, shapes[each.name])  # type: ignore[index]
        found.append(each)
    return found


def _merged(given: Given, sizes: Any) -> Given:
    """An input with the sizes of the file, else those of the caller, who opens axes by None."""
    found = [*sizes] if isinstance(sizes, Sequence | np.ndarray) else []
    integers = all(
        size is None or (isinstance(size, int | np.integer) and not isinstance(size, bool))
        for size in found
    )
    fits = len(found) == len(given.sizes) and integers
    pairs = [*zip(given.sizes, found, strict=False)]
    if not fits or not all(b is None or (b > 0 and a in (None, b)) for a, b in pairs):
        raise ValueError(
            f"shapes[{given.name!r}] must be {_text(given.sizes)}, with a size or None for any. "
            f"Received: {_text(found) if found else sizes!r}"
        )
    is_open = tuple(a is None or b is None for a, b in pairs)
    sizes = tuple(a if b is None else int(b) for a, b in pairs)
    return dataclasses.replace(given, sizes=sizes, is_open=is_open)


def _require_known(argument: str, given: Any, inputs: Sequence[Given]) -> None:
    """Checks the keys of a dictionary by the names of inputs."""
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise TypeError(f"{argument} must be a dictionary. Received: {type(given).__name__}")
    names = [each.name for each in inputs]
    for name in given:
        if name not in names:
            raise ValueError(f"{argument} has {name!r}, which is no input. The inputs are {names}")


def _text(sizes: Sequence[Any]) -> str:
    return f"[{', '.join('any' if size is None else str(size) for size in sizes)}]"


def chosen(model: Any, outputs: Sequence[str] | None) -> list[str]:
    """The names of the outputs.

    Args:
      model: the ``onnx.ModelProto``.
      outputs: names of outputs, or of values within the graph; None: the outputs.

    Returns:
      The names.

    Raises:
      ValueError: there is no such value, or one is named twice.
      TypeError: outputs is no list of names.
    """
    own = [value.name for value in model.graph.output]
    if outputs is None:
        if not own:
            raise ValueError("the model has no outputs. Pass outputs=[names]")
        return own
    is_list = isinstance(outputs, Sequence) and not isinstance(outputs, str)
    if not is_list or not all(isinstance(name, str) for name in outputs):
        raise TypeError(f"outputs must be a list of names. Received: outputs={outputs!r}")
    made = {name for node in model.graph.node for name in node.output}
    for name in outputs:
        if name not in made:
            raise ValueError(
                f"outputs has {name!r}, which the model does not compute. Its outputs are {own}"
            )
    if not outputs or len({*outputs}) < len(outputs):
        raise ValueError(f"outputs must have one name or more, each once. Received: {outputs}")
    return [*outputs]


def fixed(given: Sequence[Given], constants: Mapping[str, Any] | None) -> dict[str, Array]:
    """The values of inputs that do not change.

    Args:
      given: the inputs.
      constants: arrays or numbers by name; None: none.

    Returns:
      Arrays by name.

    Raises:
      ValueError: there is no such input, or the shape of a value differs.
      TypeError: constants is no dictionary.
    """
    _require_known("constants", constants, given)
    by_name = {each.name: each for each in given}
    found = {}
    for name, value in (constants or {}).items():
        array = _numbers(name, value, by_name[name].dtype)
        sizes = by_name[name].sizes
        fits = array.ndim == len(sizes) and all(
            want in (None, size) for want, size in zip(sizes, array.shape, strict=True)
        )
        # A number stands for an array of it, whose sizes a call decides.
        if array.ndim and not fits:
            raise ValueError(
                f"constants[{name!r}] must have the shape {_text(sizes)}. Received: {array.shape}"
            )
        found[name] = array
    return found


def _numbers(name: str, value: Any, dtype: str) -> Array:
    """An array of a dtype, which must have the numbers of a value."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"constants[{name!r}] must be a number or an array. Received: {value!r}")
    found = array.astype(dtype)
    if not dtype.startswith("float") and not np.array_equal(found, array):
        raise ValueError(f"constants[{name!r}] must be of the type {dtype}. Received: {value!r}")
    return found


class Plan(NamedTuple):
    """How an input is read.

    Attributes:
      batch_axis: which axis is the batch, 0 or 1; None: the file has no batch.
      is_open: whether any size may stand for that of the other one, and of axes that the caller
        opens, until a layer needs it.
      drops: whether the session has no axis for the one in front of the batch, of size 1.
    """

    batch_axis: int | None
    is_open: bool
    drops: bool = False


def axes_of(given: Given, plan: Plan, batch: Factor) -> Traced:
    """An input as an array whose batch is one of its axes.

    Args:
      given: the input.
      plan: how it is read.
      batch: the factor that stands for the batch.

    Returns:
      The array.

    Raises:
      ValueError: the input has no axes, or more than 6.
    """
    if not 1 <= len(given.sizes) <= 6:
        raise ValueError(f"the input {short(given.name)} has {len(given.sizes)} axes, not 1 to 6")
    opened = [is_open and plan.is_open for is_open in given.is_open]
    pairs = zip(given.sizes, opened, strict=True)
    axes = [(Factor(None, size) if is_open else Factor(size),) for size, is_open in pairs]
    if plan.batch_axis is None:
        return _without_batch(given, axes, plan, batch)
    axes[plan.batch_axis] = (batch,)
    time = 1 - plan.batch_axis
    if given.may_be_second and plan.is_open and not plan.drops:
        axes[time] = (Factor(None, given.sizes[time]),)
    if plan.drops:
        axes[time] = (Factor(given.sizes[time]),)
    left_out = (plan.batch_axis, 0) if plan.drops else (plan.batch_axis,)
    rest = [product for k, product in enumerate(axes) if k not in left_out]
    if not rest:
        rest = [(Factor(1),)]
    name = given.name if len(given.name.encode()) <= NAME_BYTES else ""
    dims = [product[0].size for product in rest]
    value = layers.Input(dims, "float32" if given.is_float else "int32", name)
    return Traced(value, ((batch,), *rest), tuple(axes), given.is_float)


def _without_batch(given: Given, axes: Sequence[Product], plan: Plan, batch: Factor) -> Traced:
    """An input whose first axis is the time of one sequence."""
    first: Product = (Factor(None, given.sizes[0]),) if plan.is_open else axes[0]
    axes = (first, *axes[1:])
    name = given.name if len(given.name.encode()) <= NAME_BYTES else ""
    dims = [product[0].size for product in axes]
    value = layers.Input(dims, "float32" if given.is_float else "int32", name)
    return Traced(value, ((batch,), *axes), tuple(axes), given.is_float)


def steps(array: Traced) -> int | None:
    """The size of the second axis of an input, if a layer needs it.

    Args:
      array: the input.

    Returns:
      The size; None: any.
    """
    return array.groups[1][0].size


def sizes_of_call(given: Given, array: Traced) -> tuple[int | None, ...]:
    """The sizes that calls of a session must have.

    Args:
      given: the input.
      array: the input as it was read.

    Returns:
      The size of each axis of its value; None: any. A size of the file holds where nobody opened
      it, also where no layer needs it.
    """
    found: list[int | None] = []
    for group in array.groups:
        (factor,) = group
        is_open = group in array.axes and given.is_open[array.axes.index(group)]
        if factor.is_batch and is_open:
            found.append(None)
        else:
            found.append(factor.given if factor.size is None and not is_open else factor.size)
    return tuple(found)


def is_closed(given: Given, array: Traced) -> bool:
    """Whether calls must have a size that no layer needs.

    Args:
      given: the input.
      array: the input as it was read.

    Returns:
      Whether the argument shapes can open an axis.
    """
    pairs = zip(sizes_of_call(given, array), _can_open(array), strict=True)
    return any(is_free and size is not None for size, is_free in pairs)


def opened(given: Given, array: Traced) -> list[int | None]:
    """The sizes by which the argument shapes opens all axes that no layer needs.

    Args:
      given: the input.
      array: the input as it was read.

    Returns:
      The sizes; None: any.
    """
    axes = [group for group, is_free in zip(array.groups, _can_open(array), strict=True) if is_free]
    pairs = zip(given.sizes, array.axes, strict=True)
    return [None if product in axes else size for size, product in pairs]


def _can_open(array: Traced) -> list[bool]:
    """For each axis of the value of an input whether no layer needs its size."""
    return [factor.is_batch or factor.size is None for (factor,) in array.groups]
