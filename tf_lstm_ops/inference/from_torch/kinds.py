"""The classes of torch.nn that a session computes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from tf_lstm_ops import _activations, _cells
from tf_lstm_ops._refusal import refuse, require
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_torch import products
from tf_lstm_ops.inference.from_torch.entry import (
    BCT,
    BTC,
    CHANNELS_FIRST,
    FEATURES_LAST,
    ORDERS,
    TBC,
    Build,
    Entry,
    Kind,
)
from tf_lstm_ops.inference.layers.activations import GELU, Function, clipped
from tf_lstm_ops.inference.layers.pooling import pooling
from tf_lstm_ops.inference.layers.recurrent import layer_class
from tf_lstm_ops.weights import class_of

_LINEAR_FROM = 20.0  # log(1 + e^20) is 20 in float32
_OF_RNN = "RNN_"  # the beginning of the mode of an RNN, behind which its function is


def _recurrent(entry: Entry) -> Sequence[layers.Layer]:
    take, cell = entry.options.take, _cells.BY_COMMON[entry.name]
    options: dict[str, Any] = {"return_sequences": bool(take("return_sequences", True))}
    take("batch_first", False)
    if entry.module is not None:
        mode = take("mode")
        if mode.startswith(_OF_RNN):
            options["activation"] = mode.removeprefix(_OF_RNN).lower()
    elif cell is _cells.SIMPLE_RNN:
        options["activation"] = take("nonlinearity", "tanh")
    first = entry.array("weight_ih_l0")
    entry.array("weight_hh_l0")
    for name in getattr(entry.module, "_flat_weights_names", entry.tensors.values):
        entry.optional(name)
    read = class_of(cell).from_torch(entry.arrays)
    entry.tell(
        input_size=first.shape[1],
        hidden_size=first.shape[0] // len(cell.gates),
        num_layers=read.num_layers,
        bias="bias_ih_l0" in entry.arrays,
        bidirectional=read.directions == 2,
    )
    if cell is _cells.LSTM:
        projection = entry.arrays.get("weight_hr_l0")
        entry.tell(proj_size=0 if projection is None else projection.shape[0])
    return [layer_class(read)(read, **options, name=entry.label)]


def _orders(entry: Entry, rank: int) -> Sequence[str]:
    return (BTC if entry.options.take("batch_first", False) else TBC,)


_RECURRENT = dict.fromkeys(
    _cells.BY_COMMON,
    Kind(
        _recurrent,
        ignored=("proj_size", "dropout"),
        listed=("return_sequences",),
        orders=_orders,
        ranks=(3,),
    ),
)


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


_OTHER_FUNCTIONS: dict[str, Build] = {
    "LeakyReLU": _leaky_relu,
    "GELU": _gelu,
    "Softplus": _softplus,
}
_FUNCTIONS = {
    **{f.torch[0]: _plain(f.name, f.torch[1]) for f in _activations.TABLE if f.torch},
    "ReLU6": _plain(_activations.RELU6, {}),
    **{name: Kind(build) for name, build in _OTHER_FUNCTIONS.items()},
    "Hardtanh": Kind(_hardtanh, ignored=("min_value", "max_value")),  # old names
    "Softmax": _of_features(layers.Softmax),
    "LogSoftmax": _of_features(functools.partial(layers.Activation, "log_softmax")),
    "GLU": _of_features(layers.GLU, dim=-1),
    "PReLU": Kind(_prelu, ignored=("init",), orders=_prelu_orders),
}


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

_SHAPES = {
    **dict.fromkeys(("Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d"), _NOTHING),
    **dict.fromkeys(("AlphaDropout", "FeatureAlphaDropout"), _NOTHING),
    **{n: Kind(build, orders=CHANNELS_FIRST, ranks=(3,)) for n, build in _OF_CHANNELS.items()},
    "Flatten": Kind(_flatten, orders=(BTC, BCT), ranks=(2, 3), placed=_placed_flatten),
    "Upsample": Kind(
        _upsample, ignored=("recompute_scale_factor",), orders=CHANNELS_FIRST, ranks=(3,)
    ),
}
KINDS: Mapping[str, Kind] = {
    **_RECURRENT,
    **products.KINDS,
    **_FUNCTIONS,
    **_SHAPES,
}


def kind_of(name: str) -> Kind:
    """A class by its name.

    Args:
      name: the name of the class in torch.nn.

    Returns:
      How a session computes it.

    Raises:
      Refused: it does not. The text does not name the module.
    """
    cell = _cells.BY_COMMON.get(name.removesuffix("Cell"))
    if cell is not None and name.endswith("Cell"):
        refuse(
            f"torch.nn.{name} computes one step, and the loop is in your forward. If the loop "
            "gives each output to the next step as it is, pass in its place: "
            f"layers.{cell.keras}({cell.weights}.from_torch(cell), return_sequences=True)"
        )
    require(
        name in KINDS,
        f"a session does not compute torch.nn.{name}. The reference page 'Models of other "
        "programs in sessions' lists the classes",
    )
    return KINDS[name]
