"""Linear, Embedding, Conv1d and normalisations of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_torch.entry import Entry, Kind, channels_first, features_last

_EPSILON_OF_FLOAT32 = 2.0**-23


def _ranked(entry: Entry, name: str, rank: int) -> Any:
    array = entry.arrays[name]
    if array.ndim != rank:
        entry.refuse(f"{name} must have {rank} axes. Received: {array.shape}")
    return array


def _linear(entry: Entry, order: str) -> Sequence[layers.Layer]:
    weight = _ranked(entry, "weight", 2)
    return [layers.Dense(weight.T, entry.arrays.get("bias"), name=entry.label)]


def _embedding(entry: Entry, order: str) -> Sequence[layers.Layer]:
    if entry.options["max_norm"] is not None:
        entry.refuse(
            "max_norm changes rows of the table when they are read. Normalise all rows, and set "
            "max_norm = None"
        )
    return [layers.Embedding(_ranked(entry, "weight", 2), name=entry.label)]


def _zeros(entry: Entry, size: int) -> tuple[int, int]:
    """The padding before and behind."""
    given = entry.options["padding"]
    if not isinstance(given, str):
        return (entry.integer("padding"),) * 2
    if given == "same":
        entry.require("stride", (1,) if isinstance(entry.options["stride"], tuple) else 1)
        total = entry.integer("dilation") * (size - 1)
        return total // 2, total - total // 2
    if given != "valid":
        entry.refuse(f"padding must be a size, 'same' or 'valid'. Received: padding={given!r}")
    return 0, 0


def _conv(entry: Entry, order: str) -> Sequence[layers.Layer]:
    weight = _ranked(entry, "weight", 3)
    padding, mode = _zeros(entry, weight.shape[2]), entry.options["padding_mode"]
    before: list[layers.Layer] = []
    if mode == "reflect":
        if any(padding):
            before.append(layers.ReflectPadding1D(padding, name=entry.label))
        padding = (0, 0)
    elif mode != "zeros":
        entry.refuse(f"padding_mode must be 'zeros' or 'reflect'. Received: {mode!r}")
    conv = layers.Conv1D(
        weight.transpose(2, 1, 0),
        bias=entry.arrays.get("bias"),
        strides=entry.integer("stride"),
        padding=padding if any(padding) else "valid",
        dilation_rate=entry.integer("dilation"),
        groups=entry.integer("groups"),
        name=entry.label,
    )
    return [*before, conv]


def _batch_norm(entry: Entry, order: str) -> Sequence[layers.Layer]:
    get = entry.arrays.get
    entry.require("track_running_stats", True)
    return [
        layers.BatchNormalization(
            gamma=get("weight"),
            beta=get("bias"),
            mean=get("running_mean"),
            variance=get("running_var"),
            epsilon=entry.options["eps"],
            name=entry.label,
        )
    ]


def _size(entry: Entry) -> int:
    """The size of the axis of a normalisation."""
    given = entry.options["normalized_shape"]
    sizes = [*(given if isinstance(given, list | tuple) else [given])]
    if "weight" in entry.arrays:
        sizes = [*entry.arrays["weight"].shape]
    if len(sizes) != 1 or sizes[0] is None:
        entry.refuse(
            "a session normalises the last axis only, of a size that the weight or the option "
            f"normalized_shape tells. Received: {sizes}"
        )
    return int(sizes[0])


def _layer_norm(entry: Entry, order: str) -> Sequence[layers.Layer]:
    weight, bias = entry.arrays.get("weight"), entry.arrays.get("bias")
    arguments = _size(entry), weight, bias, entry.options["eps"], entry.label
    return [layers.LayerNormalization(*arguments)]


def _rms_norm(entry: Entry, order: str) -> Sequence[layers.Layer]:
    eps = entry.options["eps"]
    epsilon = _EPSILON_OF_FLOAT32 if eps is None else eps
    weight = entry.arrays.get("weight")
    return [layers.RMSNormalization(_size(entry), weight, epsilon, entry.label)]


def _matrix_sizes(first: str, second: str) -> Any:
    def sizes(entry: Entry) -> Mapping[str, Any]:
        rows, columns = entry.arrays["weight"].shape
        return {first: rows, second: columns}

    return sizes


def _linear_sizes(entry: Entry) -> Mapping[str, Any]:
    rows, columns = entry.arrays["weight"].shape
    return {"in_features": columns, "out_features": rows, "bias": "bias" in entry.arrays}


def _conv_sizes(entry: Entry) -> Mapping[str, Any]:
    units, channels, size = entry.arrays["weight"].shape
    return {
        "in_channels": channels * entry.integer("groups"),
        "out_channels": units,
        "kernel_size": size,
        "bias": "bias" in entry.arrays,
    }


def _batch_norm_sizes(entry: Entry) -> Mapping[str, Any]:
    return {"num_features": entry.arrays["running_mean"].size, "affine": "weight" in entry.arrays}


def _norm_sizes(entry: Entry) -> Mapping[str, Any]:
    found = {"normalized_shape": _size(entry), "elementwise_affine": "weight" in entry.arrays}
    return found | ({"bias": "bias" in entry.arrays} if entry.kind == "LayerNorm" else {})


_MADE = ("bias", "device", "dtype")  # arguments that arrays tell

KINDS = {
    "Linear": Kind(
        _linear,
        arrays=("weight",),
        optional=("bias",),
        unused=("in_features", "out_features", *_MADE),
        orders=features_last,
        sizes=_linear_sizes,
    ),
    "Embedding": Kind(
        _embedding,
        arrays=("weight",),
        options={"max_norm": None},
        unused=(
            *("num_embeddings", "embedding_dim", "padding_idx", "norm_type", "scale_grad_by_freq"),
            *("sparse", *_MADE),
        ),
        attributes=("_weight", "_freeze"),
        orders=features_last,
        sizes=_matrix_sizes("num_embeddings", "embedding_dim"),
    ),
    "Conv1d": Kind(
        _conv,
        arrays=("weight",),
        optional=("bias",),
        options={
            **{"stride": 1, "padding": 0, "dilation": 1, "groups": 1},
            "padding_mode": "zeros",
        },
        unused=("in_channels", "out_channels", "kernel_size", *_MADE),
        attributes=("output_padding",),
        orders=channels_first,
        ranks=(3,),
        sizes=_conv_sizes,
    ),
    "BatchNorm1d": Kind(
        _batch_norm,
        arrays=("running_mean", "running_var"),
        optional=("weight", "bias", "num_batches_tracked"),
        options={"eps": 1e-5, "track_running_stats": True},
        unused=("num_features", "momentum", "affine", *_MADE),
        orders=channels_first,
        ranks=(2, 3),
        sizes=_batch_norm_sizes,
    ),
    "LayerNorm": Kind(
        _layer_norm,
        optional=("weight", "bias"),
        options={"eps": 1e-5, "normalized_shape": None},
        unused=("elementwise_affine", *_MADE),
        orders=features_last,
        sizes=_norm_sizes,
    ),
    "RMSNorm": Kind(
        _rms_norm,
        optional=("weight",),
        options={"eps": None, "normalized_shape": None},
        unused=("elementwise_affine", *_MADE),
        orders=features_last,
        sizes=_norm_sizes,
    ),
}
