"""The options of the op as data, their combinations, and random arguments that fit."""

import itertools
from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from block_cell.grid import DTYPES, round_to
from oracle.block_cell import Array
from oracle.derivatives import unit_direction
from oracle.mpsgraph import ACTIVATIONS, Arguments, Options, mpsgraph_lstm

BOOLEANS = [False, True]
ACTIVATION_OF = {
    "i": "input_gate_activation",
    "f": "forget_gate_activation",
    "z": "cell_gate_activation",
    "o": "output_gate_activation",
}
GATE_ACTIVATIONS = list(ACTIVATION_OF.values())
OPTIONAL = ["input_weight", "bias", "peephole", "init_state", "init_cell"]
# What may be broadcast to [N, D*H].
MASKS = ["none", "full", "row", "column", "vector", "scalar"]

FACTORS: dict[str, list[Any]] = {
    "direction": ["forward", "reverse", "bidirectional"],
    "forget_gate_last": BOOLEANS,
    **{name: list(ACTIVATIONS) for name in (*GATE_ACTIVATIONS, "activation")},
    **dict.fromkeys(OPTIONAL, BOOLEANS),
    "mask": MASKS,
}


class Outputs(NamedTuple):
    """What the op returns, with produce_cell and training."""

    output: Array
    cell: Array
    z_state: Array


@dataclass(frozen=True)
class Case:
    direction: str = "forward"
    forget_gate_last: bool = False
    input_gate_activation: str = "sigmoid"
    forget_gate_activation: str = "sigmoid"
    cell_gate_activation: str = "tanh"
    output_gate_activation: str = "sigmoid"
    activation: str = "tanh"
    # Whether these are there.
    input_weight: bool = True
    bias: bool = True
    peephole: bool = True
    init_state: bool = True
    init_cell: bool = True
    mask: str = "full"
    time: int = 3
    batch: int = 2
    inputs: int = 4
    units: int = 5

    def __str__(self) -> str:
        """What differs from the defaults."""
        other = [f for f in fields(self) if getattr(self, f.name) != f.default]
        names = (f"{f.name.removesuffix('_activation')}={getattr(self, f.name)}" for f in other)
        return "-".join(names) or "defaults"

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    @property
    def attributes(self) -> dict[str, Any]:
        """The descriptor's, but for produce_cell and training."""
        names = ("forget_gate_last", *GATE_ACTIVATIONS, "activation")
        return {
            "reverse": self.direction == "reverse",
            "bidirectional": self.directions == 2,
            **{name: getattr(self, name) for name in names},
        }

    @property
    def shapes(self) -> Arguments:
        """None: absent."""
        d, gates = self.directions, 4 * self.units
        lead = (2,) if d == 2 else ()
        width = self.inputs if self.input_weight else d * gates
        shapes = Arguments(
            source=(self.time, self.batch, width),
            recurrent_weight=(*lead, gates, self.units),
            input_weight=(d * gates, self.inputs),
            bias=(d * gates,),
            peephole=(*lead, gates),
            init_state=(self.batch, d * self.units),
            init_cell=(self.batch, d * self.units),
        )
        return shapes._replace(**{name: None for name in OPTIONAL if not getattr(self, name)})

    @property
    def mask_shape(self) -> tuple[int, ...] | None:
        width = self.directions * self.units
        return {
            "none": None,
            "full": (self.batch, width),
            "row": (1, width),
            "column": (self.batch, 1),
            "vector": (width,),
            "scalar": (),
        }[self.mask]

    def options(self, mask: Array | None) -> Options:
        return Options(mask=mask, **self.attributes)


def pairwise(factors: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Choices of one value for each factor, such that every pair of values is in some choice."""
    names = list(factors)
    pairs = {
        ((a, v), (b, w)): None  # in the order of the factors, so that all processes choose alike
        for a, b in itertools.combinations(names, 2)
        for v in factors[a]
        for w in factors[b]
    }
    choices = []
    while pairs:
        chosen = dict(next(iter(pairs)))
        for name in (n for n in names if n not in chosen):
            values = [(name, value) for value in factors[name]]
            gains = [
                sum((c, v) in pairs or (v, c) in pairs for c in chosen.items()) for v in values
            ]
            chosen[name] = factors[name][int(np.argmax(gains))]
        chosen = {name: chosen[name] for name in names}
        choices.append(chosen)
        for pair in itertools.combinations(chosen.items(), 2):
            pairs.pop(pair, None)
    return choices


PAIRS = [Case(**choice) for choice in pairwise(FACTORS)]
# With types: (dtype, case).
TYPED = [(choice.pop("dtype"), Case(**choice)) for choice in pairwise({"dtype": DTYPES, **FACTORS})]
# Ones, odd numbers, one below and above the widths of vectors, sizes beyond one tile. T, N, I, H.
SIZES = [(1, 1, 1, 1), (2, 3, 5, 1), (5, 1, 2, 17), (2, 7, 9, 33), (40, 3, 1, 8), (1, 70, 7, 65)]
SIZED = [
    Case("bidirectional", input_weight=n != 1, time=time, batch=batch, inputs=inputs, units=units)
    for n, (time, batch, inputs, units) in enumerate(SIZES)
]


def every(names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        dict(zip(names, values, strict=True))
        for values in itertools.product(*(FACTORS[name] for name in names))
    ]


# All activations of all gates, and all that may be absent, each with the rest as it comes in PAIRS.
ACTIVATED = every([*GATE_ACTIVATIONS, "activation"])
LAID_OUT = every(["direction", "forget_gate_last", *OPTIONAL, "mask"])
EVERYTHING = [
    [replace(rest, **choice) for choice, rest in zip(choices[k::10], itertools.cycle(PAIRS))]
    for choices in (ACTIVATED, LAID_OUT)
    for k in range(10)
]


def random_arguments(
    rng: np.random.Generator, case: Case, dtype: str = "float64"
) -> tuple[Arguments, Array | None]:
    """The arguments and the mask: float64 arrays with values that the type can hold.

    Pre-activations reach beyond the kinks of hard_sigmoid, but are small for an activation without
    bounds, which would let the results grow.
    """
    names = (getattr(case, ACTIVATION_OF[gate]) for gate in case.options(None).order)
    sizes = [0.7 if name in ("none", "relu") else 2.0 for name in names]
    one = np.repeat(sizes, case.units)
    all_gates = np.tile(one, case.directions)
    width = 1 / np.sqrt(case.inputs + case.units)
    scales = Arguments(
        source=1.0 if case.input_weight else all_gates,
        recurrent_weight=width * one[:, None],
        input_weight=width * all_gates[:, None],
        bias=0.5 * all_gates,
        peephole=0.5 * one,
        init_state=0.5,
        init_cell=1.0,
    )
    store = round_to(dtype)
    arguments = Arguments(
        *(
            None if shape is None else store(scale * rng.normal(size=shape))
            for scale, shape in zip(scales, case.shapes, strict=True)
        )
    )
    if case.mask_shape is None:
        return arguments, None
    return arguments, store(rng.uniform(0.5, 2, size=case.mask_shape))


def random_like(rng: np.random.Generator, values: Any, dtype: str = "float64") -> Any:
    """Random elements in the shapes of arrays, of which some may be absent."""
    store = round_to(dtype)
    return type(values)(
        *(None if a is None else store(rng.normal(size=np.shape(a))) for a in values)
    )


def present(values: Any) -> Any:
    """A tuple of what is not absent, with its names."""
    named = {k: v for k, v in zip(values._fields, values, strict=True) if v is not None}
    return namedtuple("Present", named)(**named)


# --- what a difference must not step over ----------------------------------------------------

STEP = 1e-3  # that of central_difference


def sides(case: Case, arguments: Arguments, mask: Array | None) -> Array:
    """Of a kink of its activation, on which side each gate and cell state is."""
    results = mpsgraph_lstm(arguments, case.options(mask))
    cells = ACTIVATIONS[case.activation].value(results.cell)
    values = np.concatenate([results.z_state, cells], axis=-1)
    return np.stack([values > 0, values >= 1])


def with_values(arguments: Arguments, values: Sequence[Array]) -> Arguments:
    """The arguments with the first of the values for those that are there."""
    rest = iter(values)
    return Arguments(*(None if a is None else next(rest) for a in arguments))


def smooth_direction(
    rng: np.random.Generator,
    case: Case,
    arguments: Arguments,
    mask: Array | None,
    others: Sequence[Array] = (),
) -> list[Array]:
    """A direction of length one, for the arguments that are there and others, along which nothing
    crosses a kink as far as central_difference goes."""
    given = [a for a in arguments if a is not None]
    here = sides(case, arguments, mask)
    for _ in range(20):
        direction = unit_direction(rng, [*given, *others])
        steps = [k * STEP for k in (-2, -1, 1, 2)]
        ahead = ([a + step * d for a, d in zip(given, direction, strict=False)] for step in steps)
        if all(
            np.array_equal(sides(case, with_values(arguments, values), mask), here)
            for values in ahead
        ):
            return direction
    raise AssertionError("every direction leads over a kink")
