"""Measures a case: makes the calls of all peers, compares their outputs, times them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from one_row.cases import Case
from one_row.keras_model import keras_model
from one_row.peers import BOUND, Peer, Prepared
from one_row.timing import Percentiles, interleaved

CHECKED_CALLS = 3


class Wrong(Exception):
    """A peer's output differs from that of the Keras model."""


def measure(
    case: Case, peers: Mapping[str, Peer], rounds: int, folder: Path
) -> dict[str, dict[str, Any]]:
    """Measures a case.

    Args:
      case: the case.
      peers: those that are installed, by name.
      rounds: the number of rounds.
      folder: an existing folder for files.

    Returns:
      By the peer's name: "p50" and "p99" in microseconds, "calls", and "how" if the peer has
      several ways, of which this was the fastest.

    Raises:
      Wrong: a peer computes something else.
    """
    model = keras_model(case, case.keeps_states)
    ways: dict[str, list[Prepared]] = {}
    for name, peer in peers.items():
        if case.group in peer.groups:
            ways[name] = peer.prepare(case, model, folder)
    expected = expected_outputs(case)
    for name, prepared in ways.items():
        for way in prepared:
            if way.x.size:
                what = f"{case.name}: {name} {way.label}"
                check(case, what, way, model, expected, peers[name].bound)
    best = {name: _fastest(prepared) for name, prepared in ways.items()}
    found = interleaved({name: way.measured() for name, way in best.items()}, rounds)
    return {name: _record(found[name], best[name].label) for name in found}


def _record(found: Percentiles, label: str) -> dict[str, Any]:
    record = {"p50": found.p50 * 1e6, "p99": found.p99 * 1e6, "calls": found.calls}
    return {**record, "how": label} if label else record


def _fastest(ways: list[Prepared]) -> Prepared:
    if len(ways) == 1:
        return ways[0]
    found = interleaved({str(k): way.measured() for k, way in enumerate(ways)}, rounds=2)
    return ways[min(range(len(ways)), key=lambda k: found[str(k)].p50)]


def _inputs(case: Case) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.standard_normal((CHECKED_CALLS, case.time, case.inputs), np.float32)


def expected_outputs(case: Case) -> np.ndarray:
    """The outputs of the Keras model for the inputs, which are one sequence if states are kept."""
    model, x = keras_model(case, False), _inputs(case)
    # Layer by layer, as the model takes case.time steps only.
    y = x.reshape(1, CHECKED_CALLS, case.inputs) if case.keeps_states else x
    for layer in model.layers:
        y = layer(y)
    return np.asarray(y).reshape(CHECKED_CALLS, -1)


def check(
    case: Case,
    what: str,
    way: Prepared,
    model: keras.Model,
    expected: np.ndarray,
    bound: float = BOUND,
) -> None:
    for layer in model.layers:
        if getattr(layer, "stateful", False):
            layer.reset_states()
    for number, x in enumerate(_inputs(case)):
        np.copyto(way.x, x.reshape(way.x.shape))
        y = np.array(way.output(way.call())).ravel()
        if y.shape != expected[number].shape:
            raise Wrong(f"{what}: the output has {y.size} elements")
        if not (difference := np.abs(y - expected[number]).max()) <= bound:
            raise Wrong(f"{what}: call {number} differs by {difference:.2g}")
