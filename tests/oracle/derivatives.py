"""Numerical derivatives that owe nothing to a derivation by hand."""

from collections.abc import Callable, Sequence

import numpy as np

Array = np.ndarray


def complex_step(
    function: Callable[[Sequence[Array]], float], arguments: Sequence[Array]
) -> list[Array]:
    """The gradient of an analytic scalar function by Im f(a + ih)/h, h = 1e-30.

    Nothing is subtracted, so the result is exact to rounding.
    """
    step = 1e-30
    point = [np.array(a, np.complex128) for a in arguments]
    gradients = [np.zeros(a.shape) for a in point]
    for argument, gradient in zip(point, gradients, strict=True):
        for k in np.ndindex(*argument.shape):
            argument[k] += 1j * step
            gradient[k] = np.imag(function(point)) / step
            argument[k] = argument[k].real
    return gradients


def unit_direction(rng: np.random.Generator, arguments: Sequence[Array]) -> list[Array]:
    """A random direction in the space of all arguments together, of length one."""
    parts = [rng.normal(size=np.shape(a)) for a in arguments]
    length = np.sqrt(sum(np.sum(p * p) for p in parts))
    return [p / length for p in parts]


def central_difference(
    function: Callable[[Sequence[Array]], float],
    arguments: Sequence[Array],
    direction: Sequence[Array],
    step: float = 1e-3,
) -> float:
    """The derivative of a scalar function along a direction, in float64, of fourth order.

    Error: h⁴·f⁽⁵⁾/30 and ε·|f|/h, both of the order 1e-13 to 1e-12 for smooth f of size one.
    """

    def difference(distance: float) -> float:
        ahead, behind = (
            function([a + s * d for a, d in zip(arguments, direction, strict=True)])
            for s in (distance, -distance)
        )
        return ahead - behind

    return (8 * difference(step) - difference(2 * step)) / (12 * step)
