"""Random layers for the tests of sessions."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import session_file as f

Array = np.ndarray
GATES = {
    **{f.LSTM: 4, f.GRU: 3, f.GRU_RESET_BEFORE: 3, f.LAYER_NORM_LSTM: 4, f.LAYER_NORM_GRU: 3},
    f.SIMPLE_RNN: 1,
}


def _normal(rng: np.random.Generator, *shape: int) -> Array:
    return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def _arrays(
    rng: np.random.Generator, cell: int, inputs: int, units: int, hidden: int, absent: set[str]
) -> dict[str, Array]:
    width = GATES[cell] * units
    arrays = {
        "kernel": _normal(rng, inputs, width),
        "recurrent_kernel": _normal(rng, hidden, width),
        "bias": rng.standard_normal(width).astype(np.float32),
    }
    if cell in (f.GRU, f.LAYER_NORM_GRU):
        arrays["recurrent_bias"] = rng.standard_normal(width).astype(np.float32)
    if cell == f.LSTM:
        arrays["peephole"] = rng.standard_normal((3, units)).astype(np.float32)
    if hidden < units:
        arrays["projection"] = _normal(rng, units, hidden)
    if cell in (f.LAYER_NORM_LSTM, f.LAYER_NORM_GRU):
        for name in ("input_gamma", "recurrent_gamma"):
            arrays[name] = rng.uniform(0.5, 1.5, width).astype(np.float32)
    if cell == f.LAYER_NORM_LSTM:
        arrays["state_gamma"] = rng.uniform(0.5, 1.5, units).astype(np.float32)
        arrays["state_beta"] = rng.standard_normal(units).astype(np.float32)
    return {name: array for name, array in arrays.items() if name not in absent}


def recurrent(
    rng: np.random.Generator,
    cell: int,
    inputs: int,
    units: int,
    *,
    hidden: int | None = None,
    absent: tuple[str, ...] = ("peephole",),
    directions: int = f.FORWARDS,
    flags: int = f.SEQUENCE,
    **fields: Any,
) -> f.Layer:
    """A recurrent layer without the arrays in `absent`."""
    if cell in (f.LAYER_NORM_LSTM, f.LAYER_NORM_GRU):
        fields.setdefault("epsilon", 1e-3)
    fields.setdefault("activation", "tanh")
    fields.setdefault("recurrent_activation", "linear" if cell == f.SIMPLE_RNN else "sigmoid")
    count = 2 if directions == f.BOTH else 1
    width = units if hidden is None else hidden
    return f.Layer(
        f.RECURRENT,
        inputs,
        units,
        cell=cell,
        hidden_size=hidden,
        directions=directions,
        flags=flags,
        arrays=[_arrays(rng, cell, inputs, units, width, {*absent}) for _ in range(count)],
        **fields,
    )


def dense(
    rng: np.random.Generator,
    inputs: int,
    units: int,
    activation: str = "linear",
    has_bias: bool = True,
) -> f.Layer:
    arrays = {"kernel": _normal(rng, inputs, units)}
    if has_bias:
        arrays["bias"] = rng.standard_normal(units).astype(np.float32)
    return f.Layer(f.DENSE, inputs, units, activation=activation, arrays=[arrays])


def activation(function: str, width: int) -> f.Layer:
    return f.Layer(f.ACTIVATION, width, width, activation=function)


def masking(width: int, mask_value: float = 0.0) -> f.Layer:
    return f.Layer(f.MASKING, width, width, number=mask_value)


INPUTS = 5


def chain(name: str, rng: np.random.Generator) -> list[f.Layer]:
    """The layers of a case, whose input has INPUTS features."""
    return CHAINS[name](rng)


def _one(cell: int, **options: Any):
    return lambda rng: [recurrent(rng, cell, INPUTS, 7, **options)]


def _both(cell: int, merge: int, **options: Any):
    return _one(cell, directions=f.BOTH, merge=merge, **options)


FORWARD_CHAINS = {
    "lstm": _one(f.LSTM),
    "lstm without bias": _one(f.LSTM, absent=("peephole", "bias")),
    "lstm with peepholes": _one(f.LSTM, absent=()),
    "lstm that clips": _one(f.LSTM, absent=(), number=0.3),
    "lstm with a projection": _one(f.LSTM, hidden=3),
    "lstm that clips both": _one(f.LSTM, hidden=3, number=0.3, proj_clip=0.05),
    "lstm with a projection and peepholes": _one(f.LSTM, hidden=3, absent=()),
    "lstm with relu": _one(f.LSTM, activation="softsign", recurrent_activation="hard_sigmoid"),
    "lstm with gelu": _one(f.LSTM, activation="gelu", recurrent_activation="sigmoid", absent=()),
    "gru": _one(f.GRU),
    "gru without recurrent bias": _one(f.GRU, absent=("recurrent_bias",)),
    "gru without bias": _one(f.GRU, absent=("bias", "recurrent_bias")),
    "gru, reset before": _one(f.GRU_RESET_BEFORE),
    "gru of old Keras": _one(f.GRU, recurrent_activation="hard_sigmoid"),
    "gru with gelu": _one(f.GRU_RESET_BEFORE, activation="gelu"),
    "layer norm lstm": _one(f.LAYER_NORM_LSTM),
    "layer norm lstm carrying n": _one(f.LAYER_NORM_LSTM, flags=f.SEQUENCE | f.CARRIES_NORMALIZED),
    "layer norm gru": _one(f.LAYER_NORM_GRU),
    "simple rnn": _one(f.SIMPLE_RNN),
    "simple rnn with relu": _one(f.SIMPLE_RNN, activation="relu", absent=("bias",)),
    "last step": _one(f.LSTM, flags=0),
    "zero outputs": _one(f.GRU, flags=f.SEQUENCE | f.ZERO_OUTPUT),
    "last step, zero output": _one(f.LSTM, flags=f.ZERO_OUTPUT),
    "stack with dense": lambda rng: [
        recurrent(rng, f.LSTM, INPUTS, 18),
        activation("leaky_relu", 18),
        recurrent(rng, f.GRU, 18, 9),
        dense(rng, 9, 4, "sigmoid"),
        recurrent(rng, f.LSTM, 4, 33, flags=0),
        dense(rng, 33, 150, "relu"),
        dense(rng, 150, 3, "softmax", has_bias=False),
    ],
    "masking": lambda rng: [masking(INPUTS, 0.25), recurrent(rng, f.LSTM, INPUTS, 7)],
    "masking, last step": lambda rng: [
        dense(rng, INPUTS, INPUTS),
        activation("relu", INPUTS),  # a row may become 0, and so masked
        masking(INPUTS),
        recurrent(rng, f.GRU, INPUTS, 7),
        recurrent(rng, f.LSTM, 7, 6, flags=f.ZERO_OUTPUT),
        dense(rng, 6, 2),
    ],
    "dense only": lambda rng: [dense(rng, INPUTS, 3, "tanh")],
}
CHAINS = FORWARD_CHAINS | {
    "backwards": _one(f.LSTM, directions=f.BACKWARDS),
    "backwards in order": _one(f.GRU, directions=f.BACKWARDS, flags=f.SEQUENCE | f.IN_ORDER),
    "backwards, last step": _one(f.GRU, directions=f.BACKWARDS, flags=0),
    "both": _both(f.LSTM, f.CONCATENATE),
    "both, sum": _both(f.GRU, f.SUM),
    "both, product": _both(f.LSTM, f.PRODUCT, hidden=4),
    "both, average": _both(f.GRU_RESET_BEFORE, f.AVERAGE),
    "both simple rnn": _both(f.SIMPLE_RNN, f.CONCATENATE, activation="relu"),
    "both, last step": _both(f.LSTM, f.CONCATENATE, flags=0),
    "both, last step, average": _both(f.LAYER_NORM_GRU, f.AVERAGE, flags=0),
    "both, zero outputs": _both(f.LSTM, f.SUM, flags=f.SEQUENCE | f.ZERO_OUTPUT),
    "two of both": lambda rng: [
        recurrent(rng, f.LSTM, INPUTS, 7, directions=f.BOTH, merge=f.CONCATENATE),
        recurrent(rng, f.GRU, 14, 6, directions=f.BOTH, merge=f.CONCATENATE, flags=0),
        dense(rng, 12, 3),
    ],
}
