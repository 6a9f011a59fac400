"""The cases: ops, sizes, options and types as data, and how to run one on package and oracle."""

import itertools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from oracle import block_cell
from oracle.block_cell import Array, Inputs, Outputs, Store, keep
from tf_lstm_ops import raw_ops


@dataclass(frozen=True)
class Op:
    """A forward op and what the oracle must know of it."""

    name: str
    grad: str
    is_sequence: bool
    gate_order: str
    defaults: dict[str, Any] = field(hash=False)

    def oracle_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """All of them. TensorFlow holds forget_bias and cell_clip in float32, for every type."""
        chosen = {"forget_bias": 0.0, "gate_order": self.gate_order, **self.defaults, **options}
        floats = {k: float(np.float32(v)) for k, v in chosen.items() if isinstance(v, float)}
        return {**chosen, **floats}

    def select(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options that this op has."""
        return {k: v for k, v in options.items() if k in self.defaults}


V1 = {"forget_bias": 1.0, "cell_clip": 3.0, "use_peephole": False}
V2 = {"cell_clip": 0.0, "use_peephole": False}
CELL = Op("LSTMBlockCell", "LSTMBlockCellGrad", False, "icfo", V1)
SEQUENCE = Op("BlockLSTM", "BlockLSTMGrad", True, "icfo", V1)
SEQUENCE_V2 = Op("BlockLSTMV2", "BlockLSTMGradV2", True, "ifco", V2)
OPS = {op.name: op for op in (CELL, SEQUENCE, SEQUENCE_V2)}
SEQUENCES = [SEQUENCE.name, SEQUENCE_V2.name]

DTYPES = ["half", "bfloat16", "float32", "float64"]


class Sizes(NamedTuple):
    time: int
    batch: int
    inputs: int
    units: int

    def __str__(self) -> str:
        return "T{}-B{}-I{}-H{}".format(*self)


# Ones, no input at all, primes, one below and above the widths of vectors and tiles, and sizes
# beyond one tile. Small enough that the grid takes seconds.
SIZES = [
    Sizes(1, 1, 1, 1),
    Sizes(2, 1, 0, 1),
    Sizes(3, 2, 3, 1),
    Sizes(2, 1, 5, 2),
    Sizes(4, 3, 2, 5),
    Sizes(1, 5, 0, 7),
    Sizes(5, 2, 7, 8),
    Sizes(3, 7, 1, 15),
    Sizes(2, 4, 16, 16),
    Sizes(3, 3, 17, 17),
    Sizes(3, 17, 10, 12),
    Sizes(1, 33, 2, 4),
    Sizes(2, 9, 8, 31),
    Sizes(3, 1, 4, 33),
    Sizes(2, 5, 33, 64),
    Sizes(2, 2, 3, 65),
    Sizes(7, 1, 130, 3),
    Sizes(2, 3, 64, 130),
]
# More rows than are summed at once, several blocks of rows and columns, enough work for threads.
BIG_SIZES = [Sizes(5, 70, 40, 210), Sizes(1, 300, 210, 70)]
# Sums of so many terms that the order of summation matters.
LONG_SUMS = [Sizes(4, 80, 40, 210), Sizes(2, 8, 512, 512)]
SMALL_SIZES = [Sizes(1, 1, 1, 1), Sizes(2, 1, 0, 3), Sizes(3, 2, 3, 2), Sizes(2, 3, 2, 5)]

CLIP = 0.25  # below most of |cs| in the cases, so that it really clips
OPTIONS = {
    "defaults": {},
    "plain": {"forget_bias": 0.0, "cell_clip": 0.0},
    "unclipped": {"forget_bias": -0.7, "cell_clip": -1.0},
    "clip": {"cell_clip": CLIP},
    "peephole": {"use_peephole": True, "cell_clip": 0.0, "forget_bias": 0.3},
    "peephole_clip": {"use_peephole": True, "cell_clip": CLIP},
}

CASES = [*itertools.product(SIZES, OPTIONS), *((sizes, "peephole_clip") for sizes in BIG_SIZES)]


def tf_dtype(dtype: str) -> tf.DType:
    return tf.as_dtype(dtype)


def round_to(dtype: str) -> Store:
    """Rounds to the type's values, keeping the array's own type."""
    numpy_type = tf_dtype(dtype).as_numpy_dtype
    return lambda a: a.astype(numpy_type).astype(a.dtype)


def random_inputs(
    rng: np.random.Generator, op: Op, sizes: Sizes, dtype: str = "float64", spread: float = 1.0
) -> Inputs:
    """float64 arrays with values that the type can hold; pre-activations of size `spread`."""
    time, batch, inputs, units = sizes
    rows = inputs + units
    x_shape = (time, batch, inputs) if op.is_sequence else (batch, inputs)
    values = Inputs(
        x=rng.normal(size=x_shape),
        cs_prev=rng.normal(size=(batch, units)),
        h_prev=rng.uniform(-1, 1, size=(batch, units)),
        w=rng.normal(scale=spread / np.sqrt(rows), size=(rows, 4 * units)),
        wci=rng.normal(size=units),
        wcf=rng.normal(size=units),
        wco=rng.normal(size=units),
        b=rng.normal(scale=spread / 2, size=4 * units),
    )
    return Inputs(*map(round_to(dtype), values))


def random_like(rng: np.random.Generator, values: Any, dtype: str = "float64") -> Any:
    return type(values)(*(round_to(dtype)(rng.normal(size=np.shape(a))) for a in values))


def tensors(values: Any, dtype: str) -> Any:
    """The same named tuple with tensors for arrays."""
    return type(values)(*(tf.constant(a, tf_dtype(dtype)) for a in values))


def arrays(values: Any) -> list[Array]:
    return [tf.cast(a, tf.float64).numpy() for a in values]


def call(op: Op, inputs: Inputs, length: Any = None, module: Any = raw_ops, **options: Any) -> Any:
    """The op on tensors; a sequence runs for `length` steps, by default for all."""
    if op.is_sequence:
        steps = tf.shape(inputs.x, tf.int64)[0] if length is None else length
        options["seq_len_max"] = steps
    return getattr(module, op.name)(**inputs._asdict(), **options)


def call_grad(
    op: Op,
    inputs: Inputs,
    outputs: Outputs,
    cs_grad: Any,
    h_grad: Any,
    length: Any = None,
    module: Any = raw_ops,
    use_peephole: bool = False,
) -> Any:
    """The gradient op of a forward op, on tensors."""
    saved = dict(zip(Outputs._fields, outputs, strict=True))
    if op.is_sequence:
        steps = tf.shape(inputs.x, tf.int64)[0] if length is None else length
        saved["seq_len_max"] = steps
    else:
        del saved["h"]
    return getattr(module, op.grad)(
        **inputs._asdict(), **saved, cs_grad=cs_grad, h_grad=h_grad, use_peephole=use_peephole
    )


def reference(
    op: Op, inputs: Inputs, length: int | None = None, store: Store = keep, **options: Any
) -> Outputs:
    """The oracle's outputs, in the precision of the inputs."""
    options = op.oracle_options(options)
    if not op.is_sequence:
        return Outputs(*map(store, block_cell.cell(inputs, **options)))
    steps = inputs.x.shape[0] if length is None else length
    return block_cell.sequence(steps, inputs, store=store, **options)


def reference_backward(
    op: Op,
    inputs: Inputs,
    outputs: Outputs,
    upstream: Outputs,
    length: int | None = None,
    store: Store = keep,
    use_peephole: bool = False,
) -> Inputs:
    """The oracle's gradients of all inputs."""
    options = {"use_peephole": use_peephole, "gate_order": op.gate_order, "store": store}
    if not op.is_sequence:
        gradients = block_cell.cell_backward(inputs, outputs, upstream, **options).inputs
        return Inputs(*map(store, gradients))
    steps = inputs.x.shape[0] if length is None else length
    return block_cell.sequence_backward(steps, inputs, outputs, upstream, **options)
