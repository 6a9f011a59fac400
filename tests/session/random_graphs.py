"""Random functional Keras models of all layers that a session computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import layers as stock

from tf_lstm_ops import keras as ours

Array = np.ndarray
Shape = tuple[Any, ...]
WORDS = 7  # rows of the smallest embedding
CLASSES = (ours.LSTM, ours.GRU, stock.LSTM, stock.GRU, stock.SimpleRNN)
# Those of one formula.
FUNCTIONS = (
    *("linear", "relu", "relu6", "tanh", "sigmoid", "hard_sigmoid", "hard_tanh", "softsign"),
    *("elu", "leaky_relu", "silu", "gelu", "softmax", "celu", "selu", "softplus", "squareplus"),
    *("tanh_shrink", "sparse_plus", "sparse_sigmoid", "hard_silu", "mish", "log_sigmoid"),
    *("log_softmax", "soft_shrink", "hard_shrink", "exponential"),
)


@dataclass
class Value:
    """A tensor of a model, and the shape that it has in a call, whose number of steps is known."""

    tensor: Any
    shape: Shape

    @property
    def is_sequence(self) -> bool:
        return len(self.shape) == 3


class RandomModel:
    """Builds `model` from random numbers."""

    def __init__(self, rng: np.random.Generator, has_masks: bool = False):
        self.rng, self.has_masks = rng, has_masks
        self.steps = int(rng.integers(6, 14))
        self.has_fixed_steps = bool(rng.integers(2))
        self.inputs = [self.input(f"x{k}") for k in range(rng.choice([1, 1, 2, 3]))]
        self.values = [self.begin(value) for value in self.inputs]
        self.used: set[int] = set()  # numbers of values that are no output
        self.calls: list[tuple[keras.Layer, Shape]] = []
        for _ in range(rng.integers(2, 8)):
            self.extend()
        self.has_names = bool(rng.integers(2))
        self.model = keras.Model(
            self.structure([each.tensor for each in self.inputs], "x"),
            self.structure([each.tensor for each in self.outputs()], "y"),
        )
        randomize(self.model, rng)

    def one_of(self, choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def input(self, name: str) -> Value:
        steps = self.steps if self.has_fixed_steps else None
        kind = self.one_of(["features", "features", "words", "frames"])
        rest = {"features": (self.one_of([1, 3, 6]),), "words": (), "frames": (9, 2)}[kind]
        dtype = "int32" if kind == "words" else "float32"
        return Value(keras.Input((steps, *rest), dtype=dtype, name=name), (None, self.steps, *rest))

    def begin(self, value: Value) -> Value:
        """A sequence of features."""
        if len(value.shape) == 2:
            rows, units = WORDS + self.rng.integers(3), self.one_of([2, 4])
            mask_zero = self.has_masks and bool(self.rng.integers(3))
            return self.apply(stock.Embedding(int(rows), units, mask_zero=mask_zero), value)
        if len(value.shape) == 4:
            return self.apply(stock.TimeDistributed(self.step_model(value.shape[2:])), value)
        return value

    def step_model(self, shape: Shape) -> keras.Layer:
        """What a model computes in each step: a chain from [W, C] to features."""
        layers = [
            stock.Conv1D(4, 3, strides=2, padding=self.one_of(["same", "valid"])),
            self.one_of([stock.MaxPooling1D(2), stock.BatchNormalization(), stock.ReLU(0.5)]),
            self.one_of([stock.Flatten(), stock.GlobalAveragePooling1D(), stock.LSTM(3)]),
        ]
        return keras.Sequential([keras.Input(shape), *layers])

    def apply(self, layer: keras.Layer, *values: Value, **arguments: Any) -> Value:
        """The first output of a layer, which also returns its states to `extend_by_states`."""
        tensors = [each.tensor for each in values]
        shapes = [each.shape for each in values]
        is_one = len(values) == 1
        tensor = layer(tensors[0] if is_one else tensors, **arguments)
        shape = layer.compute_output_shape(shapes[0] if is_one else shapes)
        return Value(tensor, tuple(shape))

    def extend(self) -> None:
        """Adds one layer, or a few that belong together."""
        way = self.rng.integers(12)
        if way == 0 and self.extend_by_states():
            return
        if way in (1, 2, 3) and self.extend_by_merge():
            return
        number = self.pick()
        value = self.values[number]
        found = self.called_before(value) if way in (4, 5) else None
        # Keras passes masks into nested models in calls, but not when it builds a model.
        if way == 6 and found is None and not self.has_masks:
            found = self.nested(value)
        found = found or self.layer(value)
        self.calls.append((found, value.shape))
        self.used.add(number)
        self.values.append(self.apply(found, value))

    def pick(self) -> int:
        """The number of a value, mostly of a late one."""
        count = len(self.values)
        return count - 1 if self.rng.integers(3) else int(self.rng.integers(count))

    def called_before(self, value: Value) -> keras.Layer | None:
        layers = [layer for layer, shape in self.calls if shape == value.shape]
        return self.one_of(layers) if layers else None

    def nested(self, value: Value) -> keras.Layer:
        """A model in the model: a chain, or two branches."""
        shape = value.tensor.shape[1:]
        inner = Value(keras.Input(shape), value.shape)
        x = self.apply(self.layer(inner), inner)
        y = self.apply(self.layer(x), x)
        if x.shape == y.shape and x.tensor.shape == y.tensor.shape:
            y = self.apply(stock.Add(), x, y)
        return keras.Model(inner.tensor, y.tensor)

    def layer(self, value: Value) -> keras.Layer:
        makers = SEQUENCES if value.is_sequence else ROWS
        while True:
            layer = self.one_of(makers)(self, value)
            if layer is not None:
                return layer

    def extend_by_merge(self) -> bool:
        number = self.pick()
        first = self.values[number]
        # With masks the others compute something else, which a session refuses.
        layer = self.one_of(MERGES_OF_MASKED if self.has_masks else MERGES)()
        fits = [
            k
            for k, other in enumerate(self.values)
            if len(other.shape) == len(first.shape)
            and other.shape[:-1] == first.shape[:-1]
            and other.tensor.shape[:-1] == first.tensor.shape[:-1]
            and (isinstance(layer, stock.Concatenate) or other.shape == first.shape)
        ]
        count = 2 if isinstance(layer, stock.Subtract) else self.one_of([2, 2, 3])
        chosen = [number, *(self.one_of(fits) for _ in range(count - 1))]
        if len({*chosen}) < 2:
            return False
        self.used |= {*chosen}
        self.values.append(self.apply(layer, *(self.values[k] for k in chosen)))
        return True

    def extend_by_states(self) -> bool:
        """An encoder and a decoder, which begins with the states of the encoder."""
        sequences = [k for k, value in enumerate(self.values) if value.is_sequence]
        if not sequences:
            return False
        kind, units = self.one_of(CLASSES), self.one_of([2, 5])
        encoder = kind(units, return_sequences=bool(self.rng.integers(2)), return_state=True)
        source = self.values[self.one_of(sequences)]
        y, *states = encoder(source.tensor)
        shape = tuple(encoder.compute_output_shape(source.shape)[0])
        self.values.append(Value(y, shape))
        target = self.values[self.one_of(sequences)]
        decoder = kind(units, return_sequences=bool(self.rng.integers(2)))
        tensor = decoder(target.tensor, initial_state=states if len(states) > 1 else states[0])
        self.values.append(Value(tensor, tuple(decoder.compute_output_shape(target.shape))))
        if self.rng.integers(2):
            self.values.append(Value(states[0], (None, units)))
        return True

    def outputs(self) -> list[Value]:
        inputs = {id(value.tensor) for value in self.inputs}
        found = [
            value
            for k, value in enumerate(self.values)
            if k not in self.used and id(value.tensor) not in inputs
        ]
        return found or [self.values[-1]]

    def structure(self, tensors: list[Any], name: str) -> Any:
        """A dictionary, a list, or the only tensor."""
        if self.has_names:
            return {f"{name}{k}": tensor for k, tensor in enumerate(tensors)}
        return tensors if len(tensors) > 1 else tensors[0]

    def draw(self, batch: int) -> Any:
        """Inputs of a call, in the structure of the model's."""
        return self.structure([self.draw_one(value, batch) for value in self.inputs], "x")

    def draw_one(self, value: Value, batch: int) -> Array:
        shape = (batch, *value.shape[1:])
        if value.tensor.dtype == "int32":
            return self.rng.integers(0, WORDS, shape).astype(np.int32)
        return self.rng.standard_normal(shape).astype(np.float32)


def randomize(model: keras.Model, rng: np.random.Generator) -> None:
    """No weight keeps an initial zero or one, which would hide that it is not read."""
    for weight in model.weights:
        shape, name = weight.shape, weight.path.split("/")[-1]
        if name in ("gamma", "moving_variance", "scale"):
            weight.assign(rng.uniform(0.5, 1.5, shape))
        else:
            fan_in = max(int(np.prod(shape[:-1])), 1)
            weight.assign(rng.standard_normal(shape) / np.sqrt(fan_in))


def function(build: RandomModel) -> str:
    return build.one_of(FUNCTIONS)


def convolution(build: RandomModel, value: Value) -> keras.Layer | None:
    kind = build.one_of(["Conv1D", "Conv1D", "SeparableConv1D", "DepthwiseConv1D"])
    k, dilation = build.one_of([1, 2, 3, 5]), build.one_of([1, 1, 2])
    stride = build.one_of([1, 1, 2, 3]) if dilation == 1 else 1
    paddings = ["same", "valid", *(["causal"] * 2 if kind == "Conv1D" else [])]
    padding = build.one_of(paddings)
    if padding == "valid" and (k - 1) * dilation >= value.shape[1]:
        return None
    options = {"strides": stride, "dilation_rate": dilation, "padding": padding}
    options["activation"] = function(build)
    options["use_bias"] = bool(build.rng.integers(3))
    if kind == "DepthwiseConv1D":
        return stock.DepthwiseConv1D(k, depth_multiplier=build.one_of([1, 2]), **options)
    if kind == "SeparableConv1D":
        return stock.SeparableConv1D(4, k, depth_multiplier=build.one_of([1, 2]), **options)
    groups = build.one_of([g for g in (1, 2, 3) if value.shape[2] % g == 0])
    return stock.Conv1D(6, k, groups=groups, **options)


def recurrent(build: RandomModel, value: Value) -> keras.Layer:
    kind, units = build.one_of(CLASSES), build.one_of([1, 3, 6])
    sequences = bool(build.rng.integers(4))
    layer = kind(units, return_sequences=sequences, go_backwards=bool(build.rng.integers(6) == 0))
    if build.rng.integers(5) or layer.go_backwards:
        return layer
    mode = build.one_of(["concat", "sum", "mul", "ave"])
    return stock.Bidirectional(kind(units, return_sequences=sequences), merge_mode=mode)


def pooling(build: RandomModel, value: Value) -> keras.Layer | None:
    kind = build.one_of([stock.MaxPooling1D, stock.AveragePooling1D])
    size, padding = build.one_of([1, 2, 3]), build.one_of(["same", "valid"])
    if padding == "valid" and size > value.shape[1]:
        return None
    return kind(size, strides=build.one_of([None, 1, 2]), padding=padding)


def global_pooling(build: RandomModel, value: Value) -> keras.Layer:
    kind = build.one_of([stock.GlobalMaxPooling1D, stock.GlobalAveragePooling1D])
    return kind(keepdims=bool(build.rng.integers(4) == 0))


def crop(build: RandomModel, value: Value) -> keras.Layer | None:
    return stock.Cropping1D((1, 2)) if value.shape[1] > 4 else None


def pad(build: RandomModel, value: Value) -> keras.Layer | None:
    return stock.ZeroPadding1D((2, 1)) if value.shape[1] < 20 else None


def upsample(build: RandomModel, value: Value) -> keras.Layer | None:
    return stock.UpSampling1D(2) if value.shape[1] < 12 else None


def reshape(build: RandomModel, value: Value) -> keras.Layer | None:
    """Of a fixed number of steps."""
    if value.tensor.shape[1] is None:
        return None
    steps, width = value.shape[1:]
    ways = [stock.Flatten(), stock.Permute((2, 1)), stock.Reshape((-1, steps))]
    return build.one_of([*ways, stock.Reshape((steps * width, 1))])


def time_distributed(build: RandomModel, value: Value) -> keras.Layer:
    width = value.shape[2]
    chain = [keras.Input((width,)), stock.Dense(4, function(build))]
    layers = [stock.Dense(3), stock.LayerNormalization(epsilon=0.1), keras.Sequential(chain)]
    return stock.TimeDistributed(build.one_of(layers))


def activation(build: RandomModel, value: Value) -> keras.Layer:
    ways = [
        stock.LeakyReLU(0.3),
        stock.ELU(0.7),
        stock.ReLU(max_value=1.5, negative_slope=0.1, threshold=0.25),
        *([] if build.has_masks else [stock.Softmax()]),  # Keras fails at most masks
        stock.PReLU(shared_axes=[1] if value.is_sequence else None),
    ]
    return build.one_of([stock.Activation(function(build)), build.one_of(ways)])


def pointwise(build: RandomModel, value: Value) -> keras.Layer:
    return build.one_of(
        [
            stock.Dense(4, activation=function(build), use_bias=bool(build.rng.integers(3))),
            stock.BatchNormalization(scale=bool(build.rng.integers(3))),
            # With a smaller epsilon they enlarge the errors of small numbers.
            stock.LayerNormalization(epsilon=0.1, center=bool(build.rng.integers(3))),
            stock.RMSNormalization(epsilon=0.1),
            stock.Dropout(0.3),
        ]
    )


def masking(build: RandomModel, value: Value) -> keras.Layer | None:
    return stock.Masking(0.0) if build.has_masks else None


def repeat(build: RandomModel, value: Value) -> keras.Layer | None:
    return stock.RepeatVector(3) if value.shape[1] < 20 else None


def row_reshape(build: RandomModel, value: Value) -> keras.Layer:
    return stock.Reshape((-1, 1))


Maker = Callable[[RandomModel, Value], keras.Layer | None]
SEQUENCES: list[Maker] = [
    *(convolution, convolution, recurrent, recurrent, pooling, global_pooling, crop, pad, upsample),
    *(reshape, time_distributed, activation, activation, pointwise, pointwise, masking),
]
ROWS: list[Maker] = [activation, pointwise, pointwise, repeat, row_reshape]
MERGES_OF_MASKED = [stock.Add, stock.Subtract, stock.Average, stock.Concatenate]
MERGES = [*MERGES_OF_MASKED, stock.Concatenate, stock.Multiply, stock.Maximum, stock.Minimum]
