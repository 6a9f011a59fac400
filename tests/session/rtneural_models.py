"""The test models of RTNeural: files, their layers as in Keras, inputs and recorded outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FOLDER = Path(__file__).parent / "rtneural"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


class Model(NamedTuple):
    """A model and what RTNeural recorded of it.

    Attributes:
      path: the file.
      inputs: features of the input.
      layers: the objects of the file, whose `weights` are what Keras' set_weights takes.
      x: float32 [1, T, I].
      y: float32 [1, T, O], the recorded outputs.
    """

    path: Path
    inputs: int
    layers: list[dict[str, Any]]
    x: np.ndarray
    y: np.ndarray


def read(name: str) -> Model:
    """Reads a model of `NAMES`."""
    path = FOLDER / f"{name}.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    x, y = (_sequence(f"{name}_{which}_python") for which in "xy")
    return Model(path, found["in_shape"][-1], found["layers"], x, y)


def _sequence(name: str) -> np.ndarray:
    values = np.loadtxt(FOLDER / f"{name}.csv", dtype=np.float32, delimiter=",", ndmin=2)
    return values[None]
