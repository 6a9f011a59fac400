"""The inputs and outputs of an ONNX model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.axes import Factor, Traced
from tf_lstm_ops.inference.file import NAME_BYTES
from tf_lstm_ops.inference.from_onnx.values import Array

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
    """

    name: str
    dtype: str
    sizes: tuple[int | None, ...]

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
    tensors = {tensor.name for tensor in model.graph.initializer}
    return [_given(value) for value in model.graph.input if value.name not in tensors]


def _given(value: Any) -> Given:
    kinds = _FLOATS | _INTEGERS | _OTHERS
    tensor = value.type.tensor_type
    if tensor.elem_type not in kinds or not tensor.HasField("shape"):
        raise ValueError(
            f"the input {value.name} must be an array of floats or integers with a shape. The file "
            f"says the type {tensor.elem_type}"
        )
    sizes = [
        each.dim_value if each.HasField("dim_value") and each.dim_value > 0 else None
        for each in tensor.shape.dim
    ]
    return Given(value.name, kinds[tensor.elem_type], tuple(sizes))


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
        sizes: Any = (shapes or {}).get(each.name, each.sizes)
        if isinstance(sizes, str) or not isinstance(sizes, Iterable):
            raise TypeError(f"shapes[{each.name!r}] must be a list of sizes. Received: {sizes!r}")
        sizes = tuple(int(size) if isinstance(size, np.integer) else size for size in sizes)
        fits = len(sizes) == len(each.sizes) and all(
            own is None or own == size for own, size in zip(each.sizes, sizes, strict=True)
        )
        positive = all(size is None or (type(size) is int and size > 0) for size in sizes)
        if not fits or not positive:
            raise ValueError(
                f"shapes[{each.name!r}] must be {_text(each.sizes)}, with a size or None for any. "
                f"Received: {_text(sizes)}"
            )
        found.append(dataclasses.replace(each, sizes=sizes))
    return found


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
        return own
    is_list = isinstance(outputs, list | tuple)
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
        array = np.asarray(value, by_name[name].dtype)
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


def axes_of(given: Given, batch_axis: int, batch: Factor, drops: bool) -> Traced:
    """An input as an array whose batch is one of its axes.

    Args:
      given: the input.
      batch_axis: 0 or 1.
      batch: the factor that stands for the batch.
      drops: whether the value has no axis for the one in front of the batch, of size 1.

    Returns:
      The array. Any size may stand for that of its second axis until a layer needs it.

    Raises:
      ValueError: the input has no axes, or more than 6.
    """
    if not 1 <= len(given.sizes) <= 6:
        raise ValueError(f"the input {given.name} has {len(given.sizes)} axes, not 1 to 6")
    axes = [(Factor(size),) for size in given.sizes]
    axes[batch_axis] = (batch,)
    if given.may_be_second and not drops:
        axes[1 - batch_axis] = (Factor(None, given.sizes[1 - batch_axis]),)
    rest = [p for k, p in enumerate(axes) if k != batch_axis and not (drops and k == 0)]
    if not rest:
        rest = [(Factor(1),)]
    name = given.name if len(given.name.encode()) <= NAME_BYTES else ""
    dims = [product[0].size for product in rest]
    value = layers.Input(dims, "float32" if given.is_float else "int32", name)
    return Traced(value, ((batch,), *rest), tuple(axes), given.is_float)


def steps(array: Traced) -> int | None:
    """The size of the second axis of an input, if a layer needs it.

    Args:
      array: the input.

    Returns:
      The size; None: any.
    """
    return array.groups[1][0].size
