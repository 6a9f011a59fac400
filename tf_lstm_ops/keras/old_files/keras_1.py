"""The names of Keras 1 in configurations of layers, and their names in Keras 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_DENSE = {
    "output_dim": "units",
    "init": "kernel_initializer",
    "bias": "use_bias",
    "W_regularizer": "kernel_regularizer",
    "b_regularizer": "bias_regularizer",
    "W_constraint": "kernel_constraint",
    "b_constraint": "bias_constraint",
}
_RECURRENT = {
    **_DENSE,
    "inner_init": "recurrent_initializer",
    "inner_activation": "recurrent_activation",
    "U_regularizer": "recurrent_regularizer",
    "dropout_W": "dropout",
    "dropout_U": "recurrent_dropout",
}
_CONVOLUTION = {
    **{name: _DENSE[name] for name in _DENSE if name != "output_dim"},
    "nb_filter": "filters",
    "border_mode": "padding",
    "atrous_rate": "dilation_rate",
}
_CONV_1D = {**_CONVOLUTION, "filter_length": "kernel_size", "subsample_length": "strides"}
_CONV_ND = {**_CONVOLUTION, "subsample": "strides"}
_SEPARABLE = {
    **_CONV_ND,
    "depthwise_init": "depthwise_initializer",
    "pointwise_init": "pointwise_initializer",
}
_POOLING_1D = {"pool_length": "pool_size", "stride": "strides", "border_mode": "padding"}
_POOLING_ND = {"border_mode": "padding"}
# The layers of Keras 2 that are modes of Merge, and the argument of each.
_MERGES: dict[str, tuple[str, dict[str, str]]] = {
    "sum": ("Add", {}),
    "mul": ("Multiply", {}),
    "ave": ("Average", {}),
    "max": ("Maximum", {}),
    "concat": ("Concatenate", {"concat_axis": "axis"}),
    "dot": ("Dot", {"dot_axes": "axes"}),
}
# Arguments that are one in Keras 2.
_KERNEL_SIZES = {
    **dict.fromkeys(("Conv2D", "SeparableConv2D"), ("nb_row", "nb_col")),
    "Conv3D": ("kernel_dim1", "kernel_dim2", "kernel_dim3"),
}
_NAMES: dict[str, dict[str, str]] = {
    "Dense": _DENSE,
    "LSTM": _RECURRENT,
    "GRU": _RECURRENT,
    "SimpleRNN": _RECURRENT,
    "Embedding": {"init": "embeddings_initializer", "W_regularizer": "embeddings_regularizer"},
    "Conv1D": _CONV_1D,
    "Conv2D": _CONV_ND,
    "Conv3D": _CONV_ND,
    "SeparableConv2D": _SEPARABLE,
    "MaxPooling1D": _POOLING_1D,
    "AveragePooling1D": _POOLING_1D,
    **dict.fromkeys(("MaxPooling2D", "AveragePooling2D"), _POOLING_ND),
    **dict.fromkeys(("MaxPooling3D", "AveragePooling3D"), _POOLING_ND),
    "BatchNormalization": {"beta_init": "beta_initializer", "gamma_init": "gamma_initializer"},
    "Dropout": {"p": "rate"},
    **{f"SpatialDropout{axes}D": {"p": "rate"} for axes in (1, 2, 3)},
    "PReLU": {"init": "alpha_initializer"},
    "GaussianDropout": {"p": "rate"},
    "GaussianNoise": {"sigma": "stddev"},
    "UpSampling1D": {"length": "size"},
}
_CLASSES = {
    **{f"Convolution{axes}D": f"Conv{axes}D" for axes in (1, 2, 3)},
    **{f"AtrousConvolution{axes}D": f"Conv{axes}D" for axes in (1, 2)},
    "SeparableConvolution2D": "SeparableConv2D",
}
_INITIALIZERS = {
    "one": "ones",
    "zero": "zeros",
    "normal": "random_normal",
    "uniform": "random_uniform",
}
# Arguments without a counterpart, and whether a value has the meaning of none.
_WITHOUT_COUNTERPART: dict[str, Callable[[Any], bool]] = {
    "consume_less": lambda value: True,  # how the matrices are multiplied
    "forget_bias_init": lambda value: True,  # the biases are in the file
    "input_dtype": lambda value: True,
    "bias_regularizer": lambda value: value is None,
    "mode": lambda value: value == 0,
    "dropout": lambda value: not value,
}


def is_of_keras_1(name: str, config: dict[str, Any]) -> bool:
    """Whether a configuration has Keras 1's names.

    Args:
      name: the name of the layer's class.
      config: its configuration.

    Returns:
      True if an argument or the class has a name that Keras 2 does not know.
    """
    names = _NAMES.get(_CLASSES.get(name, name), {})
    return (
        name == "Merge"
        or name in _CLASSES
        or any(k in config for k in names if k not in names.values())
    )


def renamed(name: str, config: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Gives a configuration the names of Keras 2.

    Args:
      name: the name of the layer's class.
      config: its configuration.

    Returns:
      The class and the configuration in Keras 2.

    Raises:
      ValueError: an argument has a value that later versions cannot express.
    """
    if name == "Merge":
        return _merge(config)
    new, config = _CLASSES.get(name, name), dict(config)
    if new == "Embedding" and config.get("output_dim") is None:
        raise ValueError("it has no output_dim")
    names, found = _NAMES.get(new, {}), dict[str, Any]()
    if parts := [config.pop(key) for key in _KERNEL_SIZES.get(new, ()) if key in config]:
        found["kernel_size"] = parts
    for key, value in config.items():
        if key in names:
            found[names[key]] = _value(names[key], value)
        elif key in _WITHOUT_COUNTERPART and not (key == "dropout" and new != "Embedding"):
            if not _WITHOUT_COUNTERPART[key](value):
                raise ValueError(f"it has Keras 1's {key}={value!r}, which later versions lack")
        else:
            found[key] = value
    return new, found


def _merge(config: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Merge of Keras 1 and 2.0, whose mode is a layer of its own in Keras 2."""
    mode = config.get("mode")
    if config.get("mode_type", "raw") != "raw" or not isinstance(mode, str) or mode not in _MERGES:
        raise ValueError(f"its mode {str(mode)[:80]} has no layer in later versions")
    if config.get("layers"):
        raise ValueError("it has the models that it merges")
    new, names = _MERGES[mode]
    found = {key: config[key] for key in ("name", "trainable") if key in config}
    return new, found | {names[key]: config[key] for key in names if key in config}


def _value(name: str, value: Any) -> Any:
    if name.endswith("initializer") and isinstance(value, str):
        return _INITIALIZERS.get(value, value)
    return value
