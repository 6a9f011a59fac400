"""What a file may name: classes that run no code of a file and read no other file."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import keras

# All classes of keras.layers that compute with their own arguments and weights only. Lambda,
# TFSMLayer, JaxLayer, FlaxLayer and TorchModuleWrapper run code; a class of a later Keras may.
# Those with a number of axes, as in Conv1D.
_OF_AXES = (
    *("AdaptiveAveragePooling", "AdaptiveMaxPooling", "AveragePooling", "AvgPool", "Conv"),
    *("ConvLSTM", "Convolution", "Cropping", "DepthwiseConv", "GlobalAveragePooling"),
    *("GlobalAvgPool", "GlobalMaxPool", "GlobalMaxPooling", "MaxPool", "MaxPooling"),
    *("SeparableConv", "SeparableConvolution", "SpatialDropout", "UpSampling", "ZeroPadding"),
)
_RANDOM = (
    *("Brightness", "ColorDegeneration", "ColorJitter", "Contrast", "Crop", "ElasticTransform"),
    *("Erasing", "Flip", "GaussianBlur", "Grayscale", "Hue", "Invert", "Perspective"),
    *("Posterization", "Rotation", "Saturation", "Sharpness", "Shear", "Translation", "Zoom"),
)
_OTHERS = (
    *("Activation", "ActivityRegularization", "Add", "AdditiveAttention", "AlphaDropout"),
    *("Attention", "AugMix", "AutoContrast", "Average", "BatchNormalization", "Bidirectional"),
    *("CategoryEncoding", "CenterCrop", "Concatenate"),
    *("ContrastLimitedAdaptiveHistogramEqualization", "CutMix", "Dense", "Discretization", "Dot"),
    *("Dropout", "ELU", "EinsumDense", "Embedding", "Equalization", "Flatten", "GRU", "GRUCell"),
    *("GaussianDropout", "GaussianNoise", "GroupNormalization", "GroupQueryAttention"),
    *("HashedCrossing", "Hashing", "Identity", "InputLayer", "IntegerLookup", "LSTM", "LSTMCell"),
    *("LayerNormalization", "LeakyReLU", "Masking", "MaxNumBoundingBoxes", "Maximum"),
    *("MelSpectrogram", "Minimum", "MixUp", "MultiHeadAttention", "Multiply", "Normalization"),
    *("PReLU", "Permute", "Pipeline", "RMSNormalization", "RNN", "RandAugment", "ReLU"),
    *("RepeatVector", "Rescaling", "Reshape", "Resizing", "ReversibleEmbedding"),
    *("STFTSpectrogram", "SimpleRNN", "SimpleRNNCell", "Softmax", "Solarization"),
    *("SpectralNormalization", "StackedRNNCells", "StringLookup", "Subtract"),
    *("TextVectorization", "TimeDistributed", "UnitNormalization"),
)
_TRANSPOSED = tuple(f"Conv{end}{axes}DTranspose" for end in ("", "olution") for axes in (1, 2, 3))
_LAYERS = frozenset(
    (
        *(f"{name}{axes}D" for name in _OF_AXES for axes in (1, 2, 3)),
        *(f"Random{name}" for name in _RANDOM),
        *_TRANSPOSED,
        *_OTHERS,
    )
)
_CODE = ("Lambda", "__lambda__")
# Arguments that Keras takes for the path of a file if they are a text.
_PATHS = ("vocabulary", "idf_weights")


def layer_class(name: str) -> Any:
    """A class of layers that a file may name.

    Args:
      name: the name of the class in keras.layers.

    Returns:
      The class; None if there is none, or if it runs code.
    """
    return getattr(keras.layers, name, None) if name in _LAYERS else None


class Unsafe(NamedTuple):
    """A part of a configuration that is not made.

    Attributes:
      name: the name of the layer, or of the class.
      kind: the name of the class.
      reason: why.
    """

    name: str
    kind: str
    reason: str


def find(config: Any) -> Unsafe | None:
    """Looks through all parts of a configuration, before anything is made of it.

    Args:
      config: the configuration of a model.

    Returns:
      A part of a class of Keras that runs code of the file or reads another file; None if there is
      none.
    """
    waiting = [config]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if reason := _reason(part):
                own = part.get("config")
                kind = str(part["class_name"])
                return Unsafe(str(own.get("name") if isinstance(own, dict) else kind), kind, reason)
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return None


def _reason(part: dict[str, Any]) -> str | None:
    """Why an object is not made; None if it may be."""
    kind, config = part.get("class_name"), part.get("config")
    if not isinstance(kind, str) or _is_of_user(kind):
        return None
    bare = re.split(r"[>.]", kind)[-1]
    if bare in _CODE:
        return "it is Python code in the file, which is not run"
    if bare not in _LAYERS and hasattr(keras.layers, bare):
        return "it may run Python code or read other files"
    for key in _PATHS:
        if isinstance(config, dict) and isinstance(config.get(key), str):
            return f"its {key} is the path of another file, {config[key]!r}, which is not read"
    return None


def _is_of_user(kind: str) -> bool:
    """Whether the user gave or registered a class of this name."""
    names = (kind, kind.rpartition(">")[2], f"Custom>{kind}")
    return any(keras.saving.get_registered_object(name) is not None for name in names)
