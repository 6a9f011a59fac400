"""The cases: models, lengths and types as data, and how to run one on package and oracle."""

import itertools
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from block_cell.grid import round_to
from oracle.block_cell import Array, Store, keep
from oracle.cudnn_rnn import Arguments, Layer, Model, Results, cudnn_rnn, cudnn_rnn_backward
from tf_lstm_ops import raw_ops

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
VERSIONS = {1: "CudnnRNN", 2: "CudnnRNNV2", 3: "CudnnRNNV3"}


class Case(NamedTuple):
    model: Model
    time: int
    batch: int
    lengths: str = "full"

    def __str__(self) -> str:
        m = self.model
        parts = [m.mode, f"L{m.layers}-D{m.directions}-T{self.time}-B{self.batch}"]
        parts.append(f"I{m.inputs}-H{m.units}" + (f"-P{m.num_proj}" if m.num_proj else ""))
        parts += ["skip"] if m.skip_input else []
        parts += [] if m.time_major else ["batch_major"]
        return "-".join([*parts, self.lengths])


def lengths_of(case: Case) -> Array | None:
    """The lengths by their name; None for "full"."""
    time = case.time
    pattern = {
        "full": None,
        "unsorted": [2, time, 0, 1, time - 1],
        "no zero": [2, time, 1, time - 1],
        "nothing": [0],
    }[case.lengths]
    if pattern is None:
        return None
    return np.resize(np.clip(pattern, 0, time), case.batch).astype(np.int32)


def model(mode: str, **options: Any) -> Model:
    """A small one; sizes that differ from each other, so that none can be taken for another."""
    return Model(mode, **{"inputs": 3, "units": 5, **options})


STACKS = list(itertools.product([1, 2, 3], [1, 2]))  # layers, directions
MODELS = [model(mode, layers=n, directions=d) for mode in MODES for n, d in STACKS]
MODELS += [model("lstm", layers=n, directions=d, num_proj=2) for n, d in STACKS]
SKIPPING = [model(mode, inputs=5, layers=2, directions=2, skip_input=True) for mode in MODES]
SKIPPING += [replace(SKIPPING[0], num_proj=2)]
MODELS += SKIPPING

CASES = [
    Case(replace(m, time_major=major), 4, 6, lengths)
    for m in MODELS
    for major in (True, False)
    for lengths in ("full", "unsorted")
]
# Ones, primes, one below and above the widths of vectors and tiles, sizes beyond one tile, more
# rows than are summed at once, many steps. T, B, I, H.
SIZES = [
    (1, 1, 1, 1),
    (5, 1, 2, 1),
    (2, 3, 5, 2),
    (3, 7, 1, 15),
    (2, 4, 16, 16),
    (3, 3, 17, 17),
    (6, 9, 8, 31),
    (3, 1, 4, 33),
    (2, 33, 33, 64),
    (2, 70, 7, 65),
    (2, 3, 64, 130),
    (40, 3, 4, 8),
]
SIZED = [
    Case(Model(mode, inputs, units, layers=2, directions=2), time, batch, lengths)
    for mode in MODES
    for time, batch, inputs, units in SIZES
    for lengths in ("full", "unsorted")
]
SIZED += [
    Case(Model("lstm", inputs, units, 2, 2, num_proj=units // 2 + 1), time, batch, "unsorted")
    for time, batch, inputs, units in SIZES
    if units > 2
]
# Two layers, two directions, lengths, and a projection: what tests of a single rule run on.
TYPICAL = [Case(model(mode, layers=2, directions=2), 4, 6, "unsorted") for mode in MODES] + [
    Case(model("lstm", layers=2, directions=2, num_proj=2), 4, 6, "unsorted")
]


def random_arguments(rng: np.random.Generator, case: Case, dtype: str = "float64") -> Arguments:
    """float64 arrays with values that the type can hold; pre-activations of size one."""
    m = case.model
    states = m.layers * m.directions
    values = Arguments(
        input=rng.normal(size=(case.time, case.batch, m.inputs)),
        input_h=rng.uniform(-1, 1, size=(states, case.batch, m.hidden)),
        input_c=rng.normal(size=(states, case.batch, m.units))
        if m.mode == "lstm"
        else np.zeros(()),
        params=m.join([random_layer(rng, shapes) for shapes in m.shapes]),
    )
    return Arguments(*map(round_to(dtype), m.majors_exchanged(values)))


def random_layer(rng: np.random.Generator, shapes: Layer) -> Layer:
    scale = 1 / np.sqrt(shapes.w[-1] + shapes.r[-1])
    scales = Layer(w=scale, r=scale, projection=1 / np.sqrt(shapes.projection[-1]), bw=0.3, br=0.3)
    return Layer(
        *(rng.normal(scale=s, size=shape) for s, shape in zip(scales, shapes, strict=True))
    )


def rows(values: Any, chosen: list[int]) -> Any:
    """The chosen rows of the batch, of time-major tensors or arrays."""
    return type(values)(*(np.asarray(a)[:, chosen] if np.ndim(a) == 3 else a for a in values))


def call(
    case: Case, arguments: Arguments, version: int = 3, module: Any = raw_ops, **options: Any
) -> Any:
    """The op on tensors; `options` replace attributes and sequence_lengths."""
    m = case.model
    attributes = {
        "rnn_mode": m.mode,
        "input_mode": "skip_input" if m.skip_input else "linear_input",
        "direction": "bidirectional" if m.directions == 2 else "unidirectional",
    }
    if version == 3:
        lengths = lengths_of(case)
        attributes["sequence_lengths"] = (
            np.full(case.batch, case.time, np.int32) if lengths is None else lengths
        )
        attributes |= {"num_proj": m.num_proj, "time_major": m.time_major}
    return getattr(module, VERSIONS[version])(**arguments._asdict(), **(attributes | options))


def reference(
    case: Case, arguments: Arguments, store: Store = keep, dropout: Array | None = None
) -> Results:
    """The oracle's results, in the precision of the arguments."""
    return cudnn_rnn(case.model, arguments, lengths_of(case), dropout, store)


def reference_backward(
    case: Case,
    arguments: Arguments,
    upstream: Results,
    store: Store = keep,
    dropout: Array | None = None,
) -> Arguments:
    """The oracle's gradients of all arguments."""
    lengths = lengths_of(case)
    return cudnn_rnn_backward(case.model, arguments, upstream, lengths, dropout, store)


def tape_grads(
    case: Case, arguments: Arguments, upstream: Results, version: int = 3, **options: Any
) -> tuple[Results, Arguments]:
    """Results, and gradients by all arguments of Σ upstream∘results, on tensors."""
    with tf.GradientTape() as tape:
        tape.watch(list(arguments))
        results = Results(*call(case, arguments, version, **options)[:3])
    gradients = tape.gradient(
        list(results), list(arguments), list(upstream), unconnected_gradients="zero"
    )
    return results, Arguments(*gradients)
