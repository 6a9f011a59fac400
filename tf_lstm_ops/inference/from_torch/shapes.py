"""Pooling, padding, Flatten and Upsample of PyTorch, and modules that do nothing in inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_torch.entry import BCT, BTC, Entry, Kind, channels_first
from tf_lstm_ops.inference.layers.shapes import pooling


def _pool(kind: Any) -> Any:
    def build(entry: Entry, order: str) -> Sequence[layers.Layer]:
        entry.require("ceil_mode", False)
        if kind is layers.MaxPooling1D:
            entry.require("dilation", 1)
            entry.require("return_indices", False)
        size = entry.integer("kernel_size")
        stride = size if entry.options["stride"] is None else entry.integer("stride")
        padding, counts = entry.integer("padding"), entry.options.get("count_include_pad", False)
        return pooling(kind, size, stride, (padding, padding), counts, entry.label)

    return build


def _adaptive(make: Any) -> Any:
    def build(entry: Entry, order: str) -> Sequence[layers.Layer]:
        if entry.integer("output_size") != 1:
            entry.refuse("a session has output_size=1 only, the pooling of the whole sequence")
        if "return_indices" in entry.options:
            entry.require("return_indices", False)
        return [make(keepdims=True, name=entry.label)]

    return build


def _flatten(entry: Entry, order: str) -> Sequence[layers.Layer]:
    rank = 3 if order else 2
    axes = [entry.integer(name) for name in ("start_dim", "end_dim")]
    if [axis + rank if axis < 0 else axis for axis in axes] != [1, rank - 1]:
        entry.refuse(
            f"a session joins all axes after the batch. Received: start_dim={axes[0]}, "
            f"end_dim={axes[1]} for {rank} axes"
        )
    if not order:  # [B, C]
        return [layers.Identity(entry.label)]
    flatten = layers.Flatten(entry.label)
    return [layers.Permute((2, 1), entry.label), flatten] if order == BCT else [flatten]


def _zero_pad(entry: Entry, order: str) -> Sequence[layers.Layer]:
    if "value" in entry.options:
        entry.require("value", 0)
    return [layers.ZeroPadding1D(entry.pair("padding"), entry.label)]


def _reflection_pad(entry: Entry, order: str) -> Sequence[layers.Layer]:
    return [layers.ReflectPadding1D(entry.pair("padding"), entry.label)]


def _upsample(entry: Entry, order: str) -> Sequence[layers.Layer]:
    for name, value in {"size": None, "mode": "nearest", "align_corners": None}.items():
        entry.require(name, value)
    given = entry.options["scale_factor"]
    factor = given[0] if isinstance(given, list | tuple) and len(given) == 1 else given
    if not isinstance(factor, int | float) or factor != int(factor):
        entry.refuse(f"scale_factor must be a whole number. Received: {given!r}")
    return [layers.UpSampling1D(int(factor), entry.label)]


def _of_channels(build: Any, **options: Any) -> Kind:
    return Kind(
        build, options=options, attributes=("name", "value"), orders=channels_first, ranks=(3,)
    )


_NOTHING = Kind(
    lambda entry, order: [layers.Identity(entry.label)],
    unused=("p", "inplace"),
    attributes=("args", "kwargs"),
)
_POOL: dict[str, Any] = {"kernel_size": None, "stride": None, "padding": 0, "ceil_mode": False}

KINDS = {
    **dict.fromkeys(("Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d"), _NOTHING),
    **dict.fromkeys(("AlphaDropout", "FeatureAlphaDropout"), _NOTHING),
    "MaxPool1d": _of_channels(
        _pool(layers.MaxPooling1D), **_POOL, dilation=1, return_indices=False
    ),
    "AvgPool1d": _of_channels(_pool(layers.AveragePooling1D), **_POOL, count_include_pad=True),
    "AdaptiveAvgPool1d": _of_channels(_adaptive(layers.GlobalAveragePooling1D), output_size=None),
    "AdaptiveMaxPool1d": _of_channels(
        _adaptive(layers.GlobalMaxPooling1D), output_size=None, return_indices=False
    ),
    "Flatten": Kind(
        _flatten,
        options={"start_dim": 1, "end_dim": -1},
        orders=lambda entry, rank: (BTC, BCT),
        ranks=(2, 3),
    ),
    "ConstantPad1d": _of_channels(_zero_pad, padding=None, value=0),
    "ZeroPad1d": _of_channels(_zero_pad, padding=None),
    "ReflectionPad1d": _of_channels(_reflection_pad, padding=None),
    "Upsample": _of_channels(
        _upsample,
        **{"size": None, "scale_factor": None, "mode": "nearest", "align_corners": None},
        recompute_scale_factor=None,
    ),
}
