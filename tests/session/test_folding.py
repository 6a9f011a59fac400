"""Batch normalisation as part of its neighbour gives what both layers give one by one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tf_lstm_ops.inference import Session, layers

CHANNELS = 3


class Norm:
    """A layer, and its computation in float64."""

    def __init__(self, rng: np.random.Generator):
        self.scale, self.offset = rng.uniform(0.5, 2, CHANNELS), rng.standard_normal(CHANNELS)
        ones, zeros = np.ones(CHANNELS), np.zeros(CHANNELS)
        self.layer = layers.BatchNormalization(
            gamma=self.scale, beta=self.offset, mean=zeros, variance=ones, epsilon=0.0
        )

    def __call__(self, x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return x * np.float32(self.scale) + np.float32(self.offset)
        return self.layer(x)


class Product:
    """A Dense."""

    def __init__(self, rng: np.random.Generator):
        self.kernel = rng.standard_normal((CHANNELS, CHANNELS)).astype(np.float32)
        self.layer = layers.Dense(self.kernel, np.ones(CHANNELS))

    def __call__(self, x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return x @ self.kernel.astype(np.float64) + 1
        return self.layer(x)


# By name: the outputs of an input, two norms, two products; and the number of layers in the file.
GRAPHS: dict[str, tuple[Callable[..., list[Any]], int]] = {
    "behind": (lambda x, n, m, p, q: [n(p(x))], 1),
    "before": (lambda x, n, m, p, q: [p(n(x))], 1),
    "between": (lambda x, n, m, p, q: [q(n(p(x)))], 2),
    "two": (lambda x, n, m, p, q: [m(n(p(x)))], 1),
    "called twice": (lambda x, n, m, p, q: [p(x), n(p(x))], 2),
    "product is read": (lambda x, n, m, p, q: (lambda y: [y, n(y)])(p(x)), 2),
    "norm is read": (lambda x, n, m, p, q: (lambda y: [y, m(y)])(n(p(x))), 2),
    "norm is read by two": (lambda x, n, m, p, q: (lambda y: [m(y), n(y)])(n(p(x))), 3),
    "norm is read by products": (lambda x, n, m, p, q: (lambda y: [p(y), q(y)])(n(x)), 3),
    "norm of norm is read": (lambda x, n, m, p, q: (lambda y: [m(y), q(m(y))])(n(p(x))), 3),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_folding(name: str, rng: np.random.Generator) -> None:
    graph, count = GRAPHS[name]
    parts = [Norm(rng), Norm(rng), Product(rng), Product(rng)]
    x = layers.Input((None, CHANNELS))
    session = Session.from_graph(x, graph(x, *parts))
    assert f"layers={count}," in repr(session)
    data = rng.standard_normal((2, 4, CHANNELS)).astype(np.float32)
    wanted = graph(data.astype(np.float64), *parts)
    for got, want in zip(session(data), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)  # float32
