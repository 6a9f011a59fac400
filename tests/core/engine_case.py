"""A case for engine_program.cc: its arrays, the expected results and the bounds of the errors."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from block_cell.accuracy import bounds
from block_cell.grid import round_to

Array = np.ndarray
Arrays = dict[str, Array]
Cast = Callable[[Array], Array]

CELLS = {"lstm": 0, "custom": 1, "gru": 2, "rnn_tanh": 3, "rnn_relu": 4}
CELLS |= {"norm_lstm": 6, "norm_gru": 7, "reset_before_gru": 8}
# The numbers of C++ Activation, by the names of MPSGraph.
ACTIVATIONS = {"none": 0, "relu": 1, "tanh": 2, "sigmoid": 3, "hard_sigmoid": 11}
# The block of each gate of the engine's own order in the weights.
ICFO, IFCO, RUN, URN, PLAIN = [0, 1, 2, 3], [0, 2, 1, 3], [2, 0, 1, 2], [2, 1, 0, 2], [0] * 4


class Sizes(NamedTuple):
    time: int
    batch: int
    inputs: int
    units: int


# Ones, one below and above the vectors of every instruction set and the blocks of rows, one more
# than a chain of products, and the last two large enough for a team of threads.
SIZES = [
    Sizes(1, 1, 1, 1),
    Sizes(3, 2, 3, 5),
    Sizes(2, 7, 1, 3),
    Sizes(4, 5, 9, 15),
    Sizes(3, 6, 16, 16),
    Sizes(3, 13, 7, 17),
    Sizes(9, 1, 129, 33),
    Sizes(2, 25, 5, 31),
    Sizes(2, 3, 8, 130),
    Sizes(5, 12, 70, 65),
    Sizes(6, 33, 20, 129),
]
# The backward pass divides the batch of the first two into slices, of one and of several chunks of
# steps. The last one has no slices and two chunks.
LARGE_BATCHES = [Sizes(5, 50, 6, 20), Sizes(72, 26, 3, 17), Sizes(13, 40, 4, 130)]

BITS = {"bfloat16": 16, "float32": 32, "float64": 64}

# Products of bfloat16 may err by what it costs to move every input by a unit of roundoff: h and the
# gradients of pre-activations are rounded to it too, all else is float.
#
# The rule of block_cell.accuracy, and half as much again: of some six thousand tensors, six plain
# evaluations of each are not the worst that there is. The largest error found was 1.12 times the
# rule's, the next 0.93.
SLACK = 1.5


@dataclass
class Problem:
    """One call forward and one backward, in the terms of engine_program.cc."""

    config: dict[str, Any]  # beside DEFAULTS
    # What the engine reads, and what it should write, of arrays in any precision.
    drawn: Arrays
    given: Callable[[Arrays], Arrays]
    want: Callable[[Arrays], Arrays]
    # Of results of which only a part is written: which.
    written: Arrays = field(default_factory=dict)


DEFAULTS = {
    "forget_bias": 0,
    "cell_clip": 0,
    "x_gate_stride": 0,
    "activations": [0] * 5,
    "by_unit": 0,
    "keeps_h": 1,
    "epsilon": 0,
    "carries_n": 0,
}


class Case(NamedTuple):
    name: str
    given: Arrays
    want: Arrays
    allowed: dict[str, float]  # the largest error of each result
    written: Arrays


def make_case(name: str, dtype: str, problem: Problem) -> Case:
    drawn = {k: round_to(dtype)(v) for k, v in problem.drawn.items()}
    names = list(problem.want(drawn))

    def evaluate(cast: Cast, _store: Any) -> list[Array]:
        return [np.ravel(a) for a in problem.want({k: cast(v) for k, v in drawn.items()}).values()]

    want, allowed = bounds(evaluate, dtype)
    given = {**DEFAULTS, **problem.config, **problem.given(drawn), "bits": BITS[dtype]}
    return Case(
        f"{name}-{dtype}",
        given,
        dict(zip(names, want, strict=True)),
        dict(zip(names, SLACK * np.array(allowed), strict=True)),
        problem.written,
    )


def errors(case: Case, got: Arrays) -> list[str]:
    """What is wrong with the results, in words."""
    if got.keys() != case.want.keys():
        return [f"{case.name}: {sorted(got)} in place of {sorted(case.want)}"]
    found = []
    for name, want in case.want.items():
        written = np.ravel(case.written.get(name, np.ones(want.shape, bool)))
        if (np.isnan(got[name]) == written).any():
            found.append(f"{case.name}: {name}: wrong elements are written")
            continue
        error = np.max(np.abs(got[name] - want), where=written, initial=0)
        if error > case.allowed[name]:
            allowed = case.allowed[name]
            found.append(f"{case.name}: {name}: error {error:.3g}, allowed {allowed:.3g}")
    return found


# --- sequences -------------------------------------------------------------------------------


class Plan(NamedTuple):
    """Which steps are valid, and how they lie in memory."""

    kind: str
    valid: Array  # [T, B]
    time_major: bool
    reversed: bool

    @property
    def config(self) -> dict[str, Any]:
        time, batch = self.valid.shape
        config = {"sequence": [batch, time, self.time_major, self.reversed]}
        if self.kind == "lengths":
            config["lengths"] = self.valid.sum(0)
        elif not self.time_major:
            config["mask"] = self.valid.T
        return config

    def rows(self, values: Array) -> Array:
        """[T, B, ...] as the rows of the input."""
        return values if self.time_major else values.swapaxes(0, 1)

    def output_rows(self, values: Array) -> Array:
        """A mask's output stands in the order of the steps."""
        flips = self.reversed and "mask" in self.config
        return self.rows(values[::-1] if flips else values)


PLANS = ["all", "lengths", "holes"]


def make_plan(rng: np.random.Generator, kind: str, sizes: Sizes, turned: int) -> Plan:
    time, batch = sizes.time, sizes.batch
    valid = np.ones((time, batch), bool)
    if kind == "lengths":
        valid = np.arange(time)[:, None] < rng.integers(0, time + 1, batch)
        valid[0, -1] = True
    if kind == "holes":
        valid = rng.random((time, batch)) < 0.6
    time_major = kind == "all" or (kind == "lengths" and turned % 2 == 0)
    return Plan(kind, valid, time_major, turned // 2 % 2 == 1)


# --- weights ---------------------------------------------------------------------------------


def laid_out(w: Array, by_unit: bool) -> Array:
    """[gates, H, K], cuDNN's layout, as it is or as Keras' [K, gates * H]."""
    return w if by_unit else np.concatenate(w.swapaxes(1, 2), axis=1)


def draw(rng: np.random.Generator, **shapes: tuple[int, ...]) -> Arrays:
    """Pre-activations are of size one: matrices "w", "r" and "p" are scaled by their inputs."""
    return {
        name: rng.normal(size=shape) / (np.sqrt(shape[-1]) if name in ("w", "r", "p") else 1)
        for name, shape in shapes.items()
    }
