"""Activation functions of PyTorch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tf_lstm_ops import _activations
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_torch.entry import (
    ORDERS,
    Entry,
    Kind,
    channels_first,
)
from tf_lstm_ops.inference.layers.activations import GELU, Function, clipped

_LINEAR_FROM = 20.0  # log(1 + e^20) is 20 in float32


def _activation(entry: Entry, function: Function) -> Sequence[layers.Layer]:
    return [layers.Activation(function, entry.label)]


def _plain(function: str, **options: float) -> Kind:
    """A function whose numbers are the options in their order."""

    def build(entry: Entry, order: str) -> Sequence[layers.Layer]:
        numbers = [float(entry.options[name]) for name in options]
        return _activation(entry, (function, numbers) if options else function)

    attributes = () if options else ("args", "kwargs")
    return Kind(build, options=options, unused=("inplace",), attributes=attributes)


def _leaky_relu(entry: Entry, order: str) -> Sequence[layers.Layer]:
    return [layers.LeakyReLU(entry.options["negative_slope"], entry.label)]


def _hardtanh(entry: Entry, order: str) -> Sequence[layers.Layer]:
    return clipped(entry.options["min_val"], entry.options["max_val"], entry.label)


def _gelu(entry: Entry, order: str) -> Sequence[layers.Layer]:
    approximate = entry.options["approximate"]
    if approximate not in GELU:
        entry.refuse(f"approximate must be 'none' or 'tanh'. Received: {approximate!r}")
    return _activation(entry, GELU[approximate])


def _softplus(entry: Entry, order: str) -> Sequence[layers.Layer]:
    entry.require("beta", 1)
    if entry.options["threshold"] < _LINEAR_FROM:
        entry.refuse(
            f"a session has threshold={_LINEAR_FROM} or more. Received: "
            f"threshold={entry.options['threshold']}"
        )
    return _activation(entry, "softplus")


def _of_features(make: Any, dim: int | None = None) -> Kind:
    """A function of all features of a step."""
    return Kind(
        lambda entry, order: [make(entry)],
        options={"dim": dim},
        orders=lambda entry, rank: entry.axis_is_of_features(rank),
        follows=True,
    )


def _prelu_orders(entry: Entry, rank: int) -> Sequence[str]:
    """A factor for each channel is one of the second axis."""
    return ORDERS if entry.arrays["weight"].size == 1 else channels_first(entry, rank)


KINDS = {
    **{f.torch[0]: _plain(f.name, **f.torch[1]) for f in _activations.TABLE if f.torch},
    "ReLU6": dataclasses.replace(_plain(_activations.RELU6), attributes=("min_val", "max_val")),
    "LeakyReLU": Kind(_leaky_relu, options={"negative_slope": 0.01}, unused=("inplace",)),
    "Hardtanh": Kind(
        _hardtanh,
        options={"min_val": -1.0, "max_val": 1.0},
        unused=("inplace",),
        attributes=("min_value", "max_value"),  # old names
    ),
    "GELU": Kind(_gelu, options={"approximate": "none"}),
    "Softplus": Kind(_softplus, options={"beta": 1.0, "threshold": 20.0}),
    "Softmax": _of_features(lambda entry: layers.Softmax(entry.label)),
    "LogSoftmax": _of_features(lambda entry: layers.Activation("log_softmax", entry.label)),
    "GLU": _of_features(lambda entry: layers.GLU(entry.label), dim=-1),
    "PReLU": Kind(
        lambda entry, order: [layers.PReLU(entry.arrays["weight"], entry.label)],
        arrays=("weight",),
        unused=("num_parameters", "init", "device", "dtype"),
        orders=_prelu_orders,
        sizes=lambda entry: {"num_parameters": entry.arrays["weight"].size},
    ),
}
