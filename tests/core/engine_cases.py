"""The grid of cases for engine_program.cc."""

import itertools
import zlib
from collections.abc import Callable, Iterator

import numpy as np

from mpsgraph.cases import PAIRS

from .engine_case import BITS, LARGE_BATCHES, PLANS, SIZES, Case, Problem, make_case
from .engine_problems import any_cell, block, custom_lstm, keras_cell, norm_cell

CELL_VARIANTS = [
    "lstm",
    "lstm projected",
    "lstm skipped",
    "gru",
    "gru skipped",
    "rnn_tanh",
    "rnn_relu",
]
KERAS_VARIANTS = [
    "lstm",
    "lstm dropout clip",
    "lstm peephole",
    "lstm peephole clip",
    "lstm peephole clip dropout",
    "gru dropout",
    "reset_before_gru",
    "reset_before_gru dropout",
]
NORM_VARIANTS = [
    "norm_lstm",
    "norm_lstm carries",
    "norm_lstm dropout",
    "norm_gru",
    "norm_gru dropout",
]
DIRECTED = [case for case in PAIRS if case.direction != "bidirectional"]


def problems() -> Iterator[tuple[str, Callable[[np.random.Generator], Problem]]]:
    """Every variant in every size; sequences, layouts and custom activations in turn."""
    sequences = [*SIZES, *LARGE_BATCHES]
    for n, (variant, sizes) in enumerate(itertools.product(CELL_VARIANTS, sequences)):
        for k, kind in enumerate(PLANS):
            yield (
                f"{variant}-{kind}-{tuple(sizes)}",
                lambda rng, a=(sizes, variant, kind, n + k): any_cell(rng, *a),
            )
    for n, (variant, sizes) in enumerate(itertools.product(KERAS_VARIANTS, sequences)):
        kind = PLANS[n % len(PLANS)]
        yield (
            f"keras-{variant}-{kind}-{tuple(sizes)}",
            lambda rng, a=(sizes, variant, kind, n): keras_cell(rng, *a),
        )
    for n, (variant, sizes) in enumerate(itertools.product(NORM_VARIANTS, sequences)):
        kind = PLANS[n % len(PLANS)]
        yield (
            f"{variant}-{kind}-{tuple(sizes)}",
            lambda rng, a=(sizes, variant, kind, n): norm_cell(rng, *a),
        )
    for sizes, (peephole, clip) in itertools.product(SIZES, [(False, 0), (True, 0), (True, 0.25)]):
        yield (
            f"block-{peephole}-{clip}-{tuple(sizes)}",
            lambda rng, a=(sizes, peephole, clip): block(rng, *a),
        )
    for sizes, case in zip(itertools.cycle(SIZES), DIRECTED, strict=False):
        yield (
            f"custom-{case}-{tuple(sizes)}",
            lambda rng, a=(sizes, case): custom_lstm(rng, *a),
        )


def make_cases() -> list[Case]:
    return [
        make_case(name, dtype, make(np.random.default_rng(zlib.crc32(name.encode()))))
        for name, make in problems()
        for dtype in BITS
    ]
