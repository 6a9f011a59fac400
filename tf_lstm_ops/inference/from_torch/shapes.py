"""Pooling, padding, Flatten and Upsample of PyTorch, and modules that do nothing in inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_torch.entry import BCT, BTC, Entry, Kind, channels_first


def _windows(entry: Entry) -> tuple[int, int, int]:
    """The size, stride and padding of a pooling."""
    entry.require("ceil_mode", False)
    size = entry.integer("kernel_size")
    stride = size if entry.options["stride"] is None else entry.integer("stride")
    return size, stride, entry.integer("padding")


def _is_same(size: int, stride: int, padding: int) -> bool:
    return stride == 1 and size == 2 * padding + 1


def _max_pool(entry: Entry, order: str) -> Sequence[layers.Layer]:
    size, stride, padding = _windows(entry)
    if entry.integer("dilation") != 1 or entry.options["return_indices"]:
        entry.refuse("a session has dilation=1 and return_indices=False only")
    if padding and not _is_same(size, stride, padding):
        entry.refuse(
            "a session has padding=0, or padding=(kernel_size - 1) / 2 with stride=1. Received: "
            f"kernel_size={size}, stride={stride}, padding={padding}"
        )
    return [layers.MaxPooling1D(size, stride, "same" if padding else "valid", entry.label)]


def _avg_pool(entry: Entry, order: str) -> Sequence[layers.Layer]:
    size, stride, padding = _windows(entry)
    if padding and not entry.options["count_include_pad"]:
        if not _is_same(size, stride, padding):
            entry.refuse(
                "with count_include_pad=False a session has padding=0, or padding=(kernel_size - "
                f"1) / 2 with stride=1. Received: padding={padding}"
            )
        return [layers.AveragePooling1D(size, stride, "same", entry.label)]
    pool = layers.AveragePooling1D(size, stride, name=entry.label)
    return [layers.ZeroPadding1D(padding, entry.label), pool] if padding else [pool]


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
    "MaxPool1d": _of_channels(_max_pool, **_POOL, dilation=1, return_indices=False),
    "AvgPool1d": _of_channels(_avg_pool, **_POOL, count_include_pad=True),
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
