"""How exact a result must be, and why.

The yardstick is the error that a plain evaluation of the equations makes in the same type: NumPy
in float32, for the 16-bit types with every stored result rounded to the type (they calculate in
float32). A tensor's largest error, measured against the oracle in float64, may be twice that.

One plain evaluation of a tiny tensor may be right by luck. So the yardstick is the largest of
several, each but the first from inputs that are off by one unit of roundoff, which shows how the
result is conditioned; and eight units of roundoff of the tensor's largest element are always
allowed: the sum before σ or tanh, the function itself, a product and a rounding cost about two
each. In 16 bits only the final roundings are of the type's own size, at most two in a row (cs
before co): two units.

Errors are proportional to the unit roundoff u of the type. The bound in float64 therefore is the
one of float32 times u(float64)/u(float32), once more for the reference, which is float64 itself.

Over sums of many terms nothing is left to luck: `assert_root_mean_square`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from oracle.block_cell import Array, Store, keep

from .grid import arrays, round_to

UNIT_ROUNDOFF = {"half": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
EVALUATIONS = 6

# evaluate(cast, store): the oracle's results, every input passed through `cast`.
Evaluation = Callable[[Callable[[Array], Array], Store], Any]


def largest(a: Array) -> float:
    return float(np.max(np.abs(a), initial=0.0))


def float32_inputs(evaluation: int, dtype: str) -> Callable[[Array], Array]:
    """Casts to float32; all evaluations but the first move each number by one unit roundoff."""
    rng = np.random.default_rng(evaluation)
    u = UNIT_ROUNDOFF[dtype] if evaluation else 0.0
    return lambda a: (a * (1 + u * rng.choice([-1, 1], size=a.shape))).astype(np.float32)


class Bounds(NamedTuple):
    want: Any  # the reference
    allowed: list[float]  # the largest error in each of its tensors


def bounds(evaluate: Evaluation, dtype: str) -> Bounds:
    want = exact = evaluate(keep, keep)
    calculated, store, factor, scale, luck = dtype, round_to(dtype), 2, 1.0, 2
    if dtype in ("float32", "float64"):
        calculated, store, luck = "float32", keep, 8
    if dtype == "float64":
        exact = evaluate(round_to("float32"), keep)
        factor, scale = 3, UNIT_ROUNDOFF["float64"] / UNIT_ROUNDOFF["float32"]
    plain = [evaluate(float32_inputs(k, calculated), store) for k in range(EVALUATIONS)]
    allowed = []
    for k, right in enumerate(want):
        yardstick = max(largest(p[k].astype(np.float64) - exact[k]) for p in plain)
        floor = luck * UNIT_ROUNDOFF[dtype] * largest(right)
        allowed.append(factor * scale * yardstick + floor)
    return Bounds(want, allowed)


def assert_accurate(got: Any, limits: Bounds) -> None:
    want, allowed = limits
    for name, value, right, bound in zip(want._fields, arrays(got), want, allowed, strict=True):
        assert value.shape == right.shape, name
        error = largest(value - right)
        assert error <= bound, f"{name}: error {error:.3g}, allowed {bound:.3g}"


def assert_root_mean_square(got: Any, evaluate: Evaluation) -> None:
    """float32, over so many elements that luck plays no part: no allowance but the factor two."""
    want, plain = evaluate(keep, keep), evaluate(float32_inputs(0, "float32"), keep)
    ratios = {}
    for name, value, p, right in zip(want._fields, arrays(got), plain, want, strict=True):
        error, yardstick = (np.sqrt(np.mean((a - right) ** 2)) for a in (value, p))
        ratios[name] = round(float(error / yardstick), 2)
    assert max(ratios.values()) <= 2, ratios


def assert_close_to_stock(ours: Any, stock: Any, limits: Bounds) -> None:
    """Ours and stock's differ by no more than their two errors: where they do differ, it is the
    stock op that is farther off."""
    want, allowed = limits
    pairs = zip(want._fields, arrays(ours), arrays(stock), want, allowed, strict=True)
    for name, a, b, right, bound in pairs:
        assert largest(a - b) <= largest(b - right) + bound, name
