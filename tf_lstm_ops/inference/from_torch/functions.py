"""Activation functions of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tf_lstm_ops import _activations
from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_torch.entry import (
    CHANNELS_FIRST,
    FEATURES_LAST,
    ORDERS,
    Build,
    Entry,
    Kind,
)
from tf_lstm_ops.inference.layers.activations import GELU, Function, clipped

_LINEAR_FROM = 20.0  # log(1 + e^20) is 20 in float32


def _plain(function: str, defaults: Mapping[str, float]) -> Kind:
    """A function whose numbers are the options in their order."""

    def build(entry: Entry) -> Sequence[layers.Layer]:
        numbers = [float(entry.options.take(*default)) for default in defaults.items()]
        made: Function = (function, numbers) if defaults else function
        return [layers.Activation(made, entry.label)]

    return Kind(build)


def _leaky_relu(entry: Entry) -> Sequence[layers.Layer]:
    return [layers.LeakyReLU(entry.options.take("negative_slope", 0.01), entry.label)]


def _hardtanh(entry: Entry) -> Sequence[layers.Layer]:
    take = entry.options.take
    return clipped(take("min_val", -1.0), take("max_val", 1.0), entry.label)


def _gelu(entry: Entry) -> Sequence[layers.Layer]:
    approximate = entry.options.take("approximate", "none")
    if approximate not in GELU:
        refuse(f"approximate must be 'none' or 'tanh'. Received: {approximate!r}")
    return [layers.Activation(GELU[approximate], entry.label)]


def _softplus(entry: Entry) -> Sequence[layers.Layer]:
    entry.options.require("beta", 1)
    threshold = entry.options.take("threshold", 20.0)
    if threshold < _LINEAR_FROM:
        refuse(f"a session has threshold={_LINEAR_FROM} or more. Received: threshold={threshold}")
    return [layers.Activation("softplus", entry.label)]


def _of_features(make: Any, dim: int | None = None) -> Kind:
    """A function of all features of a step."""

    def build(entry: Entry) -> Sequence[layers.Layer]:
        entry.options.take("dim")
        return [make(entry.label)]

    def orders(entry: Entry, rank: int) -> Sequence[str]:
        given = entry.options.take("dim", dim)
        if given in (-1, rank - 1) or (given is None and rank == 2):
            return FEATURES_LAST
        if given in (1, -2) and rank == 3:
            return CHANNELS_FIRST
        refuse(f"dim must be the axis of the features. Received: dim={given!r}")

    return Kind(build, orders=orders, follows=True)


def _prelu(entry: Entry) -> Sequence[layers.Layer]:
    factors = entry.array("weight")
    entry.tell(num_parameters=factors.size)
    return [layers.PReLU(factors, entry.label)]


def _prelu_orders(entry: Entry, rank: int) -> Sequence[str]:
    """A factor for each channel is one of the second axis."""
    return ORDERS if entry.arrays["weight"].size == 1 else CHANNELS_FIRST


def _log_softmax(label: str) -> layers.Layer:
    return layers.Activation("log_softmax", label)


_OTHERS: dict[str, Build] = {
    "LeakyReLU": _leaky_relu,
    "GELU": _gelu,
    "Softplus": _softplus,
}
KINDS = {
    **{f.torch[0]: _plain(f.name, f.torch[1]) for f in _activations.TABLE if f.torch},
    "ReLU6": _plain(_activations.RELU6, {}),
    **{name: Kind(build) for name, build in _OTHERS.items()},
    "Hardtanh": Kind(_hardtanh, ignored=("min_value", "max_value")),  # old names
    "Softmax": _of_features(layers.Softmax),
    "LogSoftmax": _of_features(_log_softmax),
    "GLU": _of_features(layers.GLU, dim=-1),
    "PReLU": Kind(_prelu, ignored=("init",), orders=_prelu_orders),
}
