"""What the six ops accept, and the text with which they refuse the rest.

Written from the documented rules, independently of the package: batch_size, input_size and
time_length come from x, cell_size from cs_prev. Ranks of all inputs are checked first, in order,
then that cs_prev has units, then all dimensions in order.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import raw_ops

Shape = tuple[int, ...]

STEP = {
    "x": ("B", "I"),
    "cs_prev": ("B", "H"),
    "h_prev": ("B", "H"),
    "w": ("I+H", "4H"),
    "wci": ("H",),
    "wcf": ("H",),
    "wco": ("H",),
    "b": ("4H",),
}
SEQUENCE = {"seq_len_max": (), **STEP, "x": ("T", "B", "I")}
SAVED = ("i", "cs", "f", "o", "ci", "co")
STEP_GRADIENT = {**STEP, **dict.fromkeys((*SAVED, "cs_grad", "h_grad"), ("B", "H"))}
SEQUENCE_GRADIENT = {
    **SEQUENCE,
    **dict.fromkeys((*SAVED, "h", "cs_grad", "h_grad"), ("T", "B", "H")),
}
SIGNATURES = {
    "LSTMBlockCell": STEP,
    "LSTMBlockCellGrad": STEP_GRADIENT,
    "BlockLSTM": SEQUENCE,
    "BlockLSTMGrad": SEQUENCE_GRADIENT,
    "BlockLSTMV2": SEQUENCE,
    "BlockLSTMGradV2": SEQUENCE_GRADIENT,
}
SEQUENCE_OPS = [name for name, inputs in SIGNATURES.items() if "seq_len_max" in inputs]

WHAT = {
    "T": "time_length",
    "B": "batch_size",
    "H": "cell_size",
    "4H": "cell_size * 4",
    "I+H": "input_size + cell_size",
}


def extents(time: int, batch: int, inputs: int, units: int) -> dict[str, int]:
    return {"T": time, "B": batch, "I": inputs, "H": units, "4H": 4 * units, "I+H": inputs + units}


def wrong_shapes(right: Shape) -> Iterator[Shape]:
    """Other ranks, and other sizes one dimension at a time."""
    if right:
        yield ()
        yield right[1:]
    yield (1, *right)
    yield (*right, 1)
    for k, size in enumerate(right):
        for other in (size - 1, size + 1, 2 * size, 0):
            yield (*right[:k], other, *right[k + 1 :])


def right_shapes(op: str, **sizes: int) -> dict[str, Shape]:
    sizes = extents(**sizes)
    return {name: tuple(sizes[d] for d in dims) for name, dims in SIGNATURES[op].items()}


def shape_error(op: str, shapes: dict[str, Shape]) -> str | None:
    """The text about the first wrong shape; None where all are right."""
    inputs = SIGNATURES[op]
    for name, dims in inputs.items():
        if len(shapes[name]) != len(dims):
            return f"{name} must be rank {len(dims)} but is rank {len(shapes[name])}"
    state = shapes["cs_prev"]
    if state[1] == 0:
        return f"cs_prev is empty, has shape: [{state[0]},{state[1]}]"
    sizes = extents(shapes["x"][0], *shapes["x"][-2:], state[1])
    for name, dims in inputs.items():
        for k, (got, dim) in enumerate(zip(shapes[name], dims, strict=True)):
            if got != sizes[dim]:
                return f"{name}.dim_size({k}) != {WHAT[dim]}: {got} vs. {sizes[dim]}"
    return None


def length_error(op: str, shapes: dict[str, Shape], length: int) -> str | None:
    """The text about seq_len_max; None where it is right, or the op has none."""
    if "seq_len_max" not in SIGNATURES[op] or len(shapes["x"]) != 3:
        return None
    time = shapes["x"][0]
    if 0 <= length <= time:
        return None
    return f"seq_len_max must be between 0 and {time} but is {length}"


def arguments(
    op: str, shapes: dict[str, Shape], length: int = 0, dtype: str = "float32", seed: int = 0
) -> dict[str, tf.Tensor]:
    """Tensors of these shapes with small random elements."""
    rng = np.random.default_rng(seed)
    return {
        name: tf.fill(shapes[name], tf.constant(length, tf.int64))
        if name == "seq_len_max"
        else tf.constant(rng.uniform(-0.5, 0.5, size=shapes[name]), tf.as_dtype(dtype))
        for name in SIGNATURES[op]
    }


def call(op: str, values: dict[str, Any], **options: Any) -> Any:
    if op.endswith(("Grad", "GradV2")):
        options.setdefault("use_peephole", True)
    return getattr(raw_ops, op)(**values, **options)


def trace(op: str, specs: dict[str, tf.TensorSpec], **options: Any) -> Any:
    """A traced function of all inputs, in their order: shape inference runs here."""
    names = list(specs)

    def function(*values: tf.Tensor) -> Any:
        return call(op, dict(zip(names, values, strict=True)), **options)

    return tf.function(function).get_concrete_function(*specs.values())


def specification(values: dict[str, tf.Tensor], shape_known: bool) -> dict[str, tf.TensorSpec]:
    return {k: tf.TensorSpec(v.shape if shape_known else None, v.dtype) for k, v in values.items()}
