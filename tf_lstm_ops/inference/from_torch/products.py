"""Linear, Embedding, convolutions and normalisation of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_torch.entry import CHANNELS_FIRST, FEATURES_LAST, Entry, Kind

_EPSILON_OF_FLOAT32 = 2.0**-23


def _linear(entry: Entry) -> Sequence[layers.Layer]:
    weight, bias = entry.array("weight", 2), entry.optional("bias")
    units, inputs = weight.shape
    entry.tell(in_features=inputs, out_features=units, bias=bias is not None)
    return [layers.Dense(weight.T, bias, name=entry.label)]


def _embedding(entry: Entry) -> Sequence[layers.Layer]:
    if entry.options.take("max_norm") is not None:
        refuse(
            "max_norm changes rows of the table when they are read. Normalise all rows, and set "
            "max_norm = None"
        )
    table = entry.array("weight", 2)
    rows, columns = table.shape
    entry.tell(num_embeddings=rows, embedding_dim=columns)
    return [layers.Embedding(table, name=entry.label)]


def _zeros(entry: Entry, size: int) -> tuple[int, int]:
    """The padding before and behind."""
    given = entry.options.take("padding", 0)
    if not isinstance(given, str):
        return (entry.options.integer("padding", 0),) * 2
    if given == "same":
        stride = entry.options.take("stride", 1)
        entry.options.require("stride", (1,) if isinstance(stride, tuple) else 1)
        total = entry.options.integer("dilation", 1) * (size - 1)
        return total // 2, total - total // 2
    if given != "valid":
        refuse(f"padding must be a size, 'same' or 'valid'. Received: padding={given!r}")
    return 0, 0


def _conv(entry: Entry) -> Sequence[layers.Layer]:
    weight, bias, integer = entry.array("weight", 3), entry.optional("bias"), entry.options.integer
    units, channels, size = weight.shape
    stride, padding = integer("stride", 1), _zeros(entry, size)
    dilation, groups = integer("dilation", 1), integer("groups", 1)
    mode = entry.options.take("padding_mode", "zeros")
    entry.tell(in_channels=channels * groups, out_channels=units, kernel_size=size)
    entry.tell(bias=bias is not None)
    before: list[layers.Layer] = []
    if mode == "reflect":
        if any(padding):
            before.append(layers.ReflectPadding1D(padding, name=entry.label))
        padding = (0, 0)
    elif mode != "zeros":
        refuse(f"padding_mode must be 'zeros' or 'reflect'. Received: {mode!r}")
    conv = layers.Conv1D(
        weight.transpose(2, 1, 0),
        bias,
        strides=stride,
        padding=padding if any(padding) else "valid",
        dilation_rate=dilation,
        groups=groups,
        name=entry.label,
    )
    return [*before, conv]


def _batch_norm(entry: Entry) -> Sequence[layers.Layer]:
    gamma, beta = entry.optional("weight"), entry.optional("bias")
    mean, variance = entry.array("running_mean"), entry.array("running_var")
    entry.optional("num_batches_tracked")
    entry.options.require("track_running_stats", True)
    entry.tell(num_features=mean.size, affine=gamma is not None)
    epsilon = entry.options.take("eps", 1e-5)
    return [
        layers.BatchNormalization(
            gamma=gamma, beta=beta, mean=mean, variance=variance, epsilon=epsilon, name=entry.label
        )
    ]


def _size(entry: Entry) -> int:
    """The size of the axis of a normalisation."""
    given, weight = entry.options.take("normalized_shape"), entry.optional("weight")
    sizes = [*(given if isinstance(given, list | tuple) else [given])]
    if weight is not None:
        sizes = [*weight.shape]
    elif given is None and not entry.tensors.values:
        refuse(entry.missing("weight"))
    if len(sizes) != 1 or sizes[0] is None:
        refuse(
            "a session normalises the last axis only, of a size that the weight or the option "
            f"normalized_shape tells. Received: {sizes}"
        )
    entry.tell(normalized_shape=sizes[0], elementwise_affine=weight is not None)
    return int(sizes[0])


def _layer_norm(entry: Entry) -> Sequence[layers.Layer]:
    size, bias = _size(entry), entry.optional("bias")
    entry.tell(bias=bias is not None)
    weight, epsilon = entry.arrays.get("weight"), entry.options.take("eps", 1e-5)
    return [layers.LayerNormalization(size, weight, bias, epsilon, entry.label)]


def _rms_norm(entry: Entry) -> Sequence[layers.Layer]:
    size, epsilon = _size(entry), entry.options.take("eps")
    epsilon = _EPSILON_OF_FLOAT32 if epsilon is None else epsilon
    return [layers.RMSNormalization(size, entry.arrays.get("weight"), epsilon, entry.label)]


def _instance_norm(entry: Entry) -> Sequence[layers.Layer]:
    entry.options.require("track_running_stats", False)
    weight, bias = entry.optional("weight"), entry.optional("bias")
    entry.tell(affine=weight is not None)
    size, epsilon = entry.options.integer("num_features"), entry.options.take("eps", 1e-5)
    return [layers.GroupNormalization(size, size, weight, bias, epsilon, entry.label)]


def _group_norm(entry: Entry) -> Sequence[layers.Layer]:
    weight, bias = entry.optional("weight"), entry.optional("bias")
    entry.tell(affine=weight is not None)
    size, groups = (entry.options.integer(name) for name in ("num_channels", "num_groups"))
    epsilon = entry.options.take("eps", 1e-5)
    return [layers.GroupNormalization(size, groups, weight, bias, epsilon, entry.label)]


KINDS = {
    "Linear": Kind(_linear, orders=FEATURES_LAST),
    "Embedding": Kind(
        _embedding,
        ignored=(
            *("padding_idx", "norm_type", "scale_grad_by_freq", "sparse", "_weight", "_freeze"),
        ),
        orders=FEATURES_LAST,
    ),
    "Conv1d": Kind(_conv, orders=CHANNELS_FIRST, ranks=(3,)),
    "BatchNorm1d": Kind(
        _batch_norm, ignored=("momentum", "bias"), orders=CHANNELS_FIRST, ranks=(2, 3)
    ),
    "InstanceNorm1d": Kind(
        _instance_norm, ignored=("momentum", "bias"), orders=CHANNELS_FIRST, ranks=(3,)
    ),
    "GroupNorm": Kind(_group_norm, ignored=("bias",), orders=CHANNELS_FIRST, ranks=(3,)),
    "LayerNorm": Kind(_layer_norm, orders=FEATURES_LAST),
    "RMSNorm": Kind(_rms_norm, orders=FEATURES_LAST),
}
