"""Runs drawn calls one after the other. Call number n of seed s depends on n and s only."""

import functools
import mmap
from collections.abc import Callable

import numpy as np

from tf_lstm_ops import stock

from . import bidirectional, block_cell, conversions, cudnn_rnn, graphs, keras, loop, mpsgraph
from .call import Call, check, check_derivatives, ways
from .draw import choose
from .loop import Counts

# How often each is drawn.
FAMILIES: dict[str, tuple[Callable[[np.random.Generator], Call], float]] = {
    "block_cell": (block_cell.draw, 0.3),
    "cudnn_rnn": (cudnn_rnn.draw, 0.25),
    "conversions": (conversions.draw, 0.1),
    "keras": (keras.draw, 0.16),
    "bidirectional": (bidirectional.draw, 0.04),
    "mpsgraph": (mpsgraph.draw, 0.146),
    "graphs": (graphs.draw, 0.004),
}
MODULES = (block_cell, cudnn_rnn, conversions, keras, bidirectional, mpsgraph)
OPS = [op for module in MODULES for op in module.OPS]
STOCK = [*block_cell.STOCK, *(op for op in OPS if op.startswith("CudnnRNN"))]
NAMES = {f"own {op}" for op in OPS} | {f"stock {op}" for op in STOCK}
NAMES.remove("stock CudnnRNNDropoutMask")  # ours alone

# The ways of running a call, which cost a hundred times as much as an eager call.
TRACED = 0.01
FIRST_ORDER, SECOND_ORDER = 0.02, 0.01


def draw_call(rng: np.random.Generator) -> Call:
    """A call of any family."""
    family = rng.choice(list(FAMILIES), p=[weight for _, weight in FAMILIES.values()])
    return FAMILIES[family][0](rng)


def run_one(seed: int, number: int, counts: Counts, each: int | None = None) -> None:
    """Draws and runs a call, unless its op had `each` calls already.

    Raises:
      AssertionError: the call was accepted or refused wrongly, or a result is wrong.
    """
    rng = np.random.default_rng([seed, number])
    call = draw_call(rng)
    if each is not None and counts[call.name] >= each:
        return
    way = rng.random()
    how = choose(rng, ways(call)) if way < TRACED and call.how else "eager"
    counts[call.name] += 1
    accepted = check(call, how)
    counts["accepted" if accepted else "refused"] += 1
    counts[how] += 1
    if call.derivatives and accepted:
        _differentiate(call, rng, counts)


def _differentiate(call: Call, rng: np.random.Generator, counts: Counts) -> None:
    # Calls in float64 are one of four, and a half of them right.
    way = rng.random()
    order = 2 if way < 4 * SECOND_ORDER else 1 if way < 4 * (FIRST_ORDER + SECOND_ORDER) else 0
    if order:
        traced = rng.random() < 0.1
        check_derivatives(call, rng, order, traced)
        counts[f"derivative of order {order}"] += 1


def run(
    seed: int, numbers: range, record: mmap.mmap, failures: int = 1, each: int | None = None
) -> Counts:
    """Runs the calls of these numbers, as loop.run says."""
    stock.override()
    command = f"python -m tests.fuzz --seed {seed}"
    one = functools.partial(run_one, seed, each=each)
    return loop.run(one, numbers, record, command, failures, each, NAMES)
