"""Reads the test models of RTNeural: layers with weights, inputs and recorded outputs.

A file has `in_shape`, and `layers`: objects with `type`, `activation`, `shape` and `weights`. The
last number of `shape` is the size of the layer's output. The arrays of `weights` are those of
Keras, with the gates in the order of Keras:

* "dense" and "time-distributed-dense": the kernel [I, units] and the bias [units];
* "lstm": kernel [I, 4 H], recurrent kernel [H, 4 H] and bias [4 H];
* "gru": kernel [I, 3 H], recurrent kernel [H, 3 H] and biases [2, 3 H], with `reset_after`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER = Path(__file__).parent / "rtneural"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
KINDS = {"dense": "dense", "time-distributed-dense": "dense", "lstm": "lstm", "gru": "gru"}


class Layer(NamedTuple):
    """A layer.

    Attributes:
      kind: "dense", "lstm" or "gru".
      units: features of the output.
      activation: its name in Keras.
      weights: float32 arrays, as Keras' set_weights takes them.
    """

    kind: str
    units: int
    activation: str
    weights: list[np.ndarray]


class Model(NamedTuple):
    """A model and what RTNeural recorded of it.

    Attributes:
      inputs: features of the input.
      layers: in the order in which data go through them.
      x: float32 [1, T, I].
      y: float32 [1, T, O], the recorded outputs.
    """

    inputs: int
    layers: list[Layer]
    x: np.ndarray
    y: np.ndarray


def read(name: str) -> Model:
    """Reads a model of `NAMES`.

    Raises:
      ValueError: the file has a layer of another type, or arrays of other shapes.
    """
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    inputs = size = found["in_shape"][-1]
    layers = []
    for number, fields in enumerate(found["layers"]):
        layers.append(_layer(f"{name}.json: layer {number}", fields, size))
        size = layers[-1].units
    return Model(inputs, layers, _sequence(f"{name}_x_python"), _sequence(f"{name}_y_python"))


def _layer(where: str, fields: dict, inputs: int) -> Layer:
    if fields["type"] not in KINDS:
        raise ValueError(f"{where}: type must be one of {list(KINDS)} but is {fields['type']!r}")
    kind, units = KINDS[fields["type"]], fields["shape"][-1]
    weights = [np.array(array, np.float32) for array in fields["weights"]]
    expected = {
        "dense": [(inputs, units), (units,)],
        "lstm": [(inputs, 4 * units), (units, 4 * units), (4 * units,)],
        "gru": [(inputs, 3 * units), (units, 3 * units), (2, 3 * units)],
    }[kind]
    if (shapes := [array.shape for array in weights]) != expected:
        raise ValueError(f"{where}: weights must have the shapes {expected} but have {shapes}")
    return Layer(kind, units, fields["activation"] or "linear", weights)


def _sequence(name: str) -> np.ndarray:
    values = np.loadtxt(FOLDER / f"{name}.csv", dtype=np.float32, delimiter=",", ndmin=2)
    return values[None]
