"""Writes .h5 files as Keras 1 and 2 wrote them, and the equations of their layers in float64."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

UNITS = 8  # of layers that the tests do not say otherwise of
Arrays = list[tuple[str, np.ndarray]]
Gate = Callable[[Any], Any]


def write(
    path: Path,
    version: str | None,
    config: Any,
    arrays: dict[str, Arrays],
    *,
    class_name: str = "Sequential",
    backend: str = "tensorflow",
) -> Path:
    """Writes a file of `model.save`, or of `save_weights` if config is None."""
    with h5py.File(path, "w") as file:
        group = file if config is None else file.create_group("model_weights")
        if config is not None:
            file.attrs["model_config"] = json.dumps({"class_name": class_name, "config": config})
        if version is not None:
            group.attrs["keras_version"] = version
            group.attrs["backend"] = backend.encode()
        group.attrs["layer_names"] = [name.encode() for name in arrays]
        for layer, own in arrays.items():
            part = group.create_group(layer)
            part.attrs["weight_names"] = [name.encode() for name, _ in own]
            for name, array in own:
                part[name] = array
    return path


def layer(kind: str, name: str, shape: Sequence[int | None] | None = None, **options: Any) -> Any:
    """The configuration of a layer; with the shape of its input if it is the first one."""
    config = {"name": name, "trainable": True, **options}
    if kind in ("LSTM", "GRU"):
        config = {"units": UNITS, **config}
        config = {"activation": "tanh", "recurrent_activation": "hard_sigmoid", **config}
        config = {"use_bias": True, "return_sequences": False, "implementation": 0, **config}
    if shape is not None:
        config |= {"batch_input_shape": list(shape), "dtype": "float32"}
    return {"class_name": kind, "config": config}


def arrays(scope: str, units: int, features: int, gates: int, bias: Sequence[int]) -> Arrays:
    """Random arrays of a recurrent layer."""
    rng = np.random.default_rng(0)
    shapes = {
        "kernel": (features, gates * units),
        "recurrent_kernel": (units, gates * units),
        "bias": tuple(bias),
    }
    return [(f"{scope}/{k}:0", rng.normal(size=s).astype("float32")) for k, s in shapes.items()]


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def hard_sigmoid(z: Any) -> Any:
    """Keras 2's."""
    return np.clip(0.2 * z + 0.5, 0, 1)


def lstm(x: Any, kernel: Any, recurrent: Any, bias: Any, gate: Gate = hard_sigmoid) -> Any:
    """All outputs. Gates i, f, c, o."""
    x, kernel, recurrent, bias = (np.asarray(a, "float64") for a in (x, kernel, recurrent, bias))
    h = c = np.zeros((len(x), len(recurrent)))
    outputs = []
    for step in x.swapaxes(0, 1):
        i, f, g, o = np.split(step @ kernel + h @ recurrent + bias, 4, axis=-1)
        c = gate(f) * c + gate(i) * np.tanh(g)
        h = gate(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs, 1)


def gru(x: Any, kernel: Any, recurrent: Any, bias: Any, gate: Gate = hard_sigmoid) -> Any:
    """All outputs. Gates z, r, h. reset_after=False where the bias has one dimension."""
    x, kernel, recurrent, bias = (np.asarray(a, "float64") for a in (x, kernel, recurrent, bias))
    h = np.zeros((len(x), len(recurrent)))
    outputs = []
    for step in x.swapaxes(0, 1):
        xz, xr, xh = np.split(step @ kernel + (bias if bias.ndim == 1 else bias[0]), 3, axis=-1)
        rz, rr, rh = np.split(recurrent, 3, axis=-1)
        bz, br, bh = np.split(bias[1], 3) if bias.ndim == 2 else (0, 0, 0)
        z, r = gate(xz + h @ rz + bz), gate(xr + h @ rr + br)
        candidate = r * (h @ rh + bh) if bias.ndim == 2 else (r * h) @ rh
        h = z * h + (1 - z) * np.tanh(xh + candidate)
        outputs.append(h)
    return np.stack(outputs, 1)
