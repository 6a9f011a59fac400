"""Pooling, padding, Flatten and Upsample of PyTorch, and modules that do nothing in inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_torch.entry import BCT, BTC, CHANNELS_FIRST, Build, Entry, Kind
from tf_lstm_ops.inference.layers.pooling import pooling


def _pool(kind: Any) -> Build:
    def build(entry: Entry) -> Sequence[layers.Layer]:
        options, counts = entry.options, False
        options.require("ceil_mode", False)
        if kind is layers.AveragePooling1D:
            counts = options.take("count_include_pad", True)
        else:
            options.require("dilation", 1)
            options.require("return_indices", False)
        size, padding = options.integer("kernel_size"), options.integer("padding", 0)
        stride = size if options.take("stride") is None else options.integer("stride")
        return pooling(kind, size, stride, (padding, padding), counts, entry.label)

    return build


def _adaptive(make: Any) -> Build:
    def build(entry: Entry) -> Sequence[layers.Layer]:
        if entry.options.integer("output_size") != 1:
            refuse("a session has output_size=1 only, the pooling of the whole sequence")
        if make is layers.GlobalMaxPooling1D:
            entry.options.require("return_indices", False)
        return [make(keepdims=True, name=entry.label)]

    return build


def _flatten_axes(entry: Entry) -> list[int]:
    defaults = {"start_dim": 1, "end_dim": -1}
    return [entry.options.integer(name, default) for name, default in defaults.items()]


def _flatten(entry: Entry) -> Sequence[layers.Layer]:
    _flatten_axes(entry)
    return [layers.Flatten(entry.label)]


def _placed_flatten(entry: Entry, order: str) -> Sequence[layers.Layer]:
    rank, axes = 3 if order else 2, _flatten_axes(entry)
    if [axis + rank if axis < 0 else axis for axis in axes] != [1, rank - 1]:
        refuse(
            f"a session joins all axes after the batch. Received: start_dim={axes[0]}, "
            f"end_dim={axes[1]} for {rank} axes"
        )
    if not order:  # [B, C]
        return [layers.Identity(entry.label)]
    return [*([layers.Permute((2, 1), entry.label)] * (order == BCT)), *entry.layers]


def _zero_pad(entry: Entry) -> Sequence[layers.Layer]:
    entry.options.require("value", 0)
    return [layers.ZeroPadding1D(entry.options.take("padding"), entry.label)]


def _reflection_pad(entry: Entry) -> Sequence[layers.Layer]:
    return [layers.ReflectPadding1D(entry.options.take("padding"), entry.label)]


def _upsample(entry: Entry) -> Sequence[layers.Layer]:
    for name, value in {"size": None, "mode": "nearest", "align_corners": None}.items():
        entry.options.require(name, value)
    given = entry.options.take("scale_factor")
    factor = given[0] if isinstance(given, list | tuple) and len(given) == 1 else given
    if not isinstance(factor, int | float) or factor != int(factor):
        refuse(f"scale_factor must be a whole number. Received: {given!r}")
    return [layers.UpSampling1D(int(factor), entry.label)]


_OF_CHANNELS: dict[str, Build] = {
    "MaxPool1d": _pool(layers.MaxPooling1D),
    "AvgPool1d": _pool(layers.AveragePooling1D),
    "AdaptiveAvgPool1d": _adaptive(layers.GlobalAveragePooling1D),
    "AdaptiveMaxPool1d": _adaptive(layers.GlobalMaxPooling1D),
    "ConstantPad1d": _zero_pad,
    "ZeroPad1d": _zero_pad,
    "ReflectionPad1d": _reflection_pad,
}
_NOTHING = Kind(lambda entry: [layers.Identity(entry.label)], ignored=("p",))

KINDS = {
    **dict.fromkeys(("Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d"), _NOTHING),
    **dict.fromkeys(("AlphaDropout", "FeatureAlphaDropout"), _NOTHING),
    **{n: Kind(build, orders=CHANNELS_FIRST, ranks=(3,)) for n, build in _OF_CHANNELS.items()},
    "Flatten": Kind(_flatten, orders=(BTC, BCT), ranks=(2, 3), placed=_placed_flatten),
    "Upsample": Kind(
        _upsample, ignored=("recompute_scale_factor",), orders=CHANNELS_FIRST, ranks=(3,)
    ),
}
