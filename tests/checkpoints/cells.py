"""Cells of other programs: random arrays by their names, and each program's own equation.

The equations are written from the programs' sources, gate by gate, and use no code of this package.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray
Arrays = Mapping[str, Array]
INPUTS, UNITS, PROJECTION, STEPS, BATCH = 3, 4, 2, 5, 2


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def normal(rng: np.random.Generator, **shapes: tuple[int, ...]) -> dict[str, Array]:
    return {name: rng.normal(0, 0.5, shape).astype("float32") for name, shape in shapes.items()}


def sequence(width: int = INPUTS) -> Array:
    return np.random.default_rng(5).normal(size=(BATCH, STEPS, width))


def run(step: Any, x: Array, states: tuple[Array, ...], *, backwards: bool = False) -> Array:
    """Runs `step(x_t, *states)`, which returns the new states, of which the first is the output."""
    steps = range(x.shape[1])
    outputs = {}
    for t in reversed(steps) if backwards else steps:
        states = step(x[:, t], *states)
        outputs[t] = states[0]
    return np.stack([outputs[t] for t in steps], 1)


def lstm(
    a: Arrays,
    x: Array,
    order: str,
    forget_bias: float,
    *,
    kernel: str = "kernel",
    bias: str = "bias",
    projection: str = "projection/kernel",
    backwards: bool = False,
) -> Array:
    """An LSTM with one kernel of [x, h]. `order` has i, f, o, and j for the cell's input."""
    a = {name: array.astype("float64") for name, array in a.items()}
    units = a[kernel].shape[1] // 4
    zero = np.zeros(units)
    w_i, w_f, w_o = (a.get(f"w_{gate}_diag", zero) for gate in "ifo")

    def step(x_t: Array, h: Array, c: Array) -> tuple[Array, Array]:
        z = np.concatenate([x_t, h], 1) @ a[kernel] + a.get(bias, 0.0)
        gate = {letter: z[:, k * units : (k + 1) * units] for k, letter in enumerate(order)}
        i, f = sigmoid(gate["i"] + w_i * c), sigmoid(gate["f"] + forget_bias + w_f * c)
        c = f * c + i * np.tanh(gate["j"])
        m = sigmoid(gate["o"] + w_o * c) * np.tanh(c)
        return (m @ a[projection] if projection in a else m), c

    size = a[projection].shape[1] if projection in a else units
    start = np.zeros((len(x), size)), np.zeros((len(x), units))
    return run(step, x, start, backwards=backwards)


def gru_cell(a: Arrays, x: Array, *, backwards: bool = False) -> Array:
    """GRUCell of TensorFlow 1: the reset gate multiplies the state."""
    units = a["candidate/bias"].size

    def step(x_t: Array, h: Array) -> tuple[Array]:
        gates = sigmoid(np.concatenate([x_t, h], 1) @ a["gates/kernel"] + a["gates/bias"])
        r, u = gates[:, :units], gates[:, units:]
        candidate = np.concatenate([x_t, r * h], 1) @ a["candidate/kernel"] + a["candidate/bias"]
        return (u * h + (1 - u) * np.tanh(candidate),)

    return run(step, x, (np.zeros((len(x), units)),), backwards=backwards)


def cudnn_gru_cell(a: Arrays, x: Array) -> Array:
    """CudnnCompatibleGRUCell: the reset gate multiplies the product of the state."""
    name = "candidate/{}_projection/{}".format
    units = a["gates/bias"].size // 2

    def step(x_t: Array, h: Array) -> tuple[Array]:
        gates = sigmoid(np.concatenate([x_t, h], 1) @ a["gates/kernel"] + a["gates/bias"])
        r, u = gates[:, :units], gates[:, units:]
        of_x = x_t @ a[name("input", "kernel")] + a[name("input", "bias")]
        of_h = h @ a[name("hidden", "kernel")] + a[name("hidden", "bias")]
        return ((1 - u) * np.tanh(of_x + r * of_h) + u * h,)

    return run(step, x, (np.zeros((len(x), units)),))


def joined(rng: np.random.Generator, inputs: int = INPUTS, **more: Any) -> dict[str, Array]:
    """The arrays of an LSTM of TensorFlow 1, and further ones."""
    size = PROJECTION if "projection/kernel" in more else UNITS
    return normal(rng, kernel=(inputs + size, 4 * UNITS), bias=(4 * UNITS,), **more)


PEEPHOLES = {f"w_{gate}_diag": (UNITS,) for gate in "ifo"}


def random_gru(rng: np.random.Generator, inputs: int = INPUTS) -> dict[str, Array]:
    return normal(
        rng,
        **{
            "gates/kernel": (inputs + UNITS, 2 * UNITS),
            "gates/bias": (2 * UNITS,),
            "candidate/kernel": (inputs + UNITS, UNITS),
            "candidate/bias": (UNITS,),
        },
    )


def random_cudnn_gru(rng: np.random.Generator) -> dict[str, Array]:
    return normal(
        rng,
        **{
            "gates/kernel": (INPUTS + UNITS, 2 * UNITS),
            "gates/bias": (2 * UNITS,),
            "candidate/input_projection/kernel": (INPUTS, UNITS),
            "candidate/input_projection/bias": (UNITS,),
            "candidate/hidden_projection/kernel": (UNITS, UNITS),
            "candidate/hidden_projection/bias": (UNITS,),
        },
    )
