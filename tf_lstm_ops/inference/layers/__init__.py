"""Layers of a session from arrays. They need NumPy only.

A list of them is a chain for `Session.from_layers`. For other graphs they are called on values, of
which `Input` makes the first ones, and `Session.from_graph` takes the inputs and outputs.
"""

from tf_lstm_ops.inference.layers.activations import (
    ELU,
    Activation,
    LeakyReLU,
    PReLU,
    ReLU,
    Softmax,
)
from tf_lstm_ops.inference.layers.base import Chain, Identity, Input, Layer, TimeDistributed
from tf_lstm_ops.inference.layers.bidirectional import Bidirectional
from tf_lstm_ops.inference.layers.merging import (
    Add,
    Average,
    Concatenate,
    Maximum,
    Minimum,
    Multiply,
    Subtract,
)
from tf_lstm_ops.inference.layers.normalization import (
    BatchNormalization,
    GroupNormalization,
    LayerNormalization,
    RMSNormalization,
    UnitNormalization,
)
from tf_lstm_ops.inference.layers.pooling import (
    AveragePooling1D,
    FirstStep,
    GlobalAveragePooling1D,
    GlobalMaxPooling1D,
    GlobalSumPooling1D,
    LastStep,
    MaxPooling1D,
)
from tf_lstm_ops.inference.layers.products import (
    Conv1D,
    Dense,
    DepthwiseConv1D,
    Embedding,
    SeparableConv1D,
)
from tf_lstm_ops.inference.layers.recurrent import GRU, LSTM, SimpleRNN
from tf_lstm_ops.inference.layers.shapes import (
    GLU,
    Cropping1D,
    Flatten,
    Magnitude,
    Masking,
    Permute,
    ReflectPadding1D,
    RepeatVector,
    Reshape,
    Slice,
    UpSampling1D,
    ZeroPadding1D,
)

__all__ = [
    "ELU",
    "GLU",
    "GRU",
    "LSTM",
    "Activation",
    "Add",
    "Average",
    "AveragePooling1D",
    "BatchNormalization",
    "Bidirectional",
    "Chain",
    "Concatenate",
    "Conv1D",
    "Cropping1D",
    "Dense",
    "DepthwiseConv1D",
    "Embedding",
    "FirstStep",
    "Flatten",
    "GlobalAveragePooling1D",
    "GlobalMaxPooling1D",
    "GlobalSumPooling1D",
    "GroupNormalization",
    "Identity",
    "Input",
    "LastStep",
    "Layer",
    "LayerNormalization",
    "LeakyReLU",
    "Magnitude",
    "Masking",
    "MaxPooling1D",
    "Maximum",
    "Minimum",
    "Multiply",
    "PReLU",
    "Permute",
    "RMSNormalization",
    "ReLU",
    "ReflectPadding1D",
    "RepeatVector",
    "Reshape",
    "SeparableConv1D",
    "SimpleRNN",
    "Slice",
    "Softmax",
    "Subtract",
    "TimeDistributed",
    "UnitNormalization",
    "UpSampling1D",
    "ZeroPadding1D",
]
