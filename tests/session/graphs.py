"""Small graphs of every kind of layer, for the tests of version 2 of the session file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from . import graph_oracle, layers
from . import session_file as f

Array = np.ndarray
C = 6  # channels of most inputs


class Builder:
    """Nodes over some inputs. A call adds one and returns the numbers of its values."""

    def __init__(self, rng: np.random.Generator, *inputs: f.Input):
        self.rng, self.inputs = rng, inputs
        self.nodes: list[f.Node] = []
        self.count = 2 * len(inputs)

    def mask(self, k: int = 0) -> int:
        """The mask of an input."""
        return len(self.inputs) + k

    def add(self, layer: f.Layer, *operands: int | None, **fields: Any) -> list[int]:
        self.nodes.append(f.Node(layer, operands, **fields))
        first, self.count = self.count, self.count + graph_oracle.output_count(self.nodes[-1])
        return [*range(first, self.count)]

    def one(self, layer: f.Layer, *operands: int | None, **fields: Any) -> int:
        """The first value of a node."""
        return self.add(layer, *operands, **fields)[0]

    def plain(self, kind: int, *operands: int | None, **fields: Any) -> int:
        """A node without sizes and arrays."""
        return self.one(f.Layer(kind, 0, 0), *operands, **fields)

    def lstm(self, x: int, inputs: int, units: int, *rest: int | None, **fields: Any) -> list[int]:
        return self.add(layers.recurrent(self.rng, f.LSTM, inputs, units, **fields), x, *rest)

    def dense(self, x: int, inputs: int, units: int, function: str = "linear", axes: int = 1):
        layer = layers.dense(self.rng, inputs, units, function)
        return self.one(layer, x, batch_axes=axes)

    def convolution(self, x: int, inputs: int, units: int, ints: Sequence[int], **fields: Any):
        layer = convolution(self.rng, inputs, units, ints[0], ints[3], **fields)
        return self.one(layer, x, ints=ints)

    def graph(self, *outputs: int, **fields: Any) -> f.Graph:
        return f.Graph(self.inputs, self.nodes, outputs, **fields)


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def convolution(
    rng: np.random.Generator, inputs: int, units: int, k: int, groups: int, function: str = "linear"
) -> f.Layer:
    arrays = {"kernel": normal(rng, k, inputs // groups, units), "bias": normal(rng, units)}
    return f.Layer(
        f.CONVOLUTION, inputs, units, activation=function, hidden_size=0, arrays=[arrays]
    )


def depthwise(rng: np.random.Generator, inputs: int, m: int, k: int) -> f.Layer:
    arrays = {"kernel": normal(rng, k, inputs, m), "bias": normal(rng, inputs * m)}
    return f.Layer(f.DEPTHWISE, inputs, inputs * m, hidden_size=0, arrays=[arrays])


def scale(rng: np.random.Generator, width: int) -> f.Layer:
    arrays = {"kernel": normal(rng, width), "bias": normal(rng, width)}
    return f.Layer(f.SCALE, width, 0, arrays=[arrays])


def normalization(rng: np.random.Generator, width: int) -> f.Layer:
    arrays = {"input_gamma": normal(rng, width), "bias": normal(rng, width)}
    return f.Layer(f.NORMALIZATION, width, 0, epsilon=1e-3, arrays=[arrays])


def embedding(rng: np.random.Generator, rows: int, units: int, flags: int = 0) -> f.Layer:
    arrays = [{"kernel": normal(rng, rows, units)}]
    return f.Layer(f.EMBEDDING, rows, units, hidden_size=0, flags=flags, arrays=arrays)


def function_layer(function: str, width: int = 0) -> f.Layer:
    return f.Layer(f.ACTIVATION, width, width, activation=function)


FLOATS = f.Input([-1, C])
ONE_STEP = ([2, 0], [2, 1], [3, 0], [3, 1])  # of a global pooling: the last and the first
NUMBERS = {
    "relu with numbers": [0.1, 1.5, 0.25],
    "elu with a number": [0.7],
    "celu": [0.7],
    "squareplus": [4.0],
    "soft_shrink": [0.5],
    "hard_shrink": [0.5],
    "threshold": [0.3, -1.0],
}


def _functions(rng: np.random.Generator) -> f.Graph:
    b = Builder(rng, FLOATS)
    outputs = [
        b.one(function_layer(name, C * (k % 2)), 0, numbers=NUMBERS.get(name, []))
        for k, name in enumerate(f.FUNCTIONS | f.FUNCTIONS_2)
        if name != "prelu"
    ]
    for shape in ([C], [4, C]):
        size = int(np.prod(shape))
        x = 0 if len(shape) == 1 else b.plain(f.REPETITION, b.plain(f.GLOBAL_POOLING, 0), ints=[4])
        alpha = [{"kernel": normal(rng, size)}]
        outputs.append(
            b.one(f.Layer(f.ACTIVATION, size, size, activation="prelu", arrays=alpha), x)
        )
    outputs.append(b.dense(0, C, 5, "mish"))
    return b.graph(*outputs, output_structure=1)


def _stream_of_convolutions(rng: np.random.Generator) -> f.Graph:
    """All layers that keep a stream: causal convolutions, pointwise layers, sums."""
    b = Builder(rng, FLOATS)
    x = b.convolution(0, C, 8, [3, 1, 1, 1, 0, 2, 0], function="relu")
    x = b.convolution(x, 8, 8, [2, 1, 3, 2, 0, 3, 0])
    y = b.one(depthwise(rng, 8, 1, 3), x, ints=[3, 1, 2, 0, 0, 4, 0])
    y = b.one(normalization(rng, 8), b.one(scale(rng, 8), y))
    y = b.plain(f.COMBINATION, x, y, ints=[0])
    y = b.plain(f.CONCATENATION, y, 0, ints=[2])
    y = b.plain(f.SLICE, b.plain(f.PAIRS, y, ints=[1]), ints=[-1, 1, 6])
    [y] = b.lstm(y, 5, 5)
    z = b.one(normalization(rng, 5), y, ints=[1])
    z = b.one(function_layer("relu with numbers"), z, numbers=[0.1, 0.0, 0.0])
    return b.graph(b.dense(z, 5, 3, "softmax"), y, output_structure=1)


def _convolutions(rng: np.random.Generator) -> f.Graph:
    b, outputs = Builder(rng, f.Input([12, C])), []
    for ints in ([3, 2, 1, 2, 1, 0, 0], [4, 1, 2, 1, 0, 2, 1], [2, 3, 1, 6], [5, 5, 1, 3, 1]):
        outputs.append(b.convolution(0, C, 12, ints, function="tanh"))
    for ints in ([3, 2, 1, 0, 1], [2, 1, 3, 0, 0, 3, 0]):
        outputs.append(b.one(depthwise(rng, C, 2, ints[0]), 0, ints=ints))
    return b.graph(*outputs, output_structure=1)


def _pooling(rng: np.random.Generator) -> f.Graph:
    b = Builder(rng, f.Input([11, C]))
    outputs = [
        b.plain(f.POOLING, 0, ints=[*sizes, is_same, mode])
        for sizes in ([2, 2], [3, 1], [4, 3])
        for is_same in (0, 1)
        for mode in (0, 1)
    ]
    outputs += [
        b.plain(f.GLOBAL_POOLING, 0, ints=ints) for ints in ([0, 1], [1, 0], [4, 0], *ONE_STEP)
    ]
    outputs += [b.plain(f.GLOBAL_POOLING, 0, b.mask(), ints=[1, 1])]
    return b.graph(*outputs, output_structure=1)


SLICES = [1, 1, 3], [2, -3, 2**54], [-1, 0, -1], [1, 0, 2**54, 1], [-1, 1, -1, 1]


def _shapes(rng: np.random.Generator) -> f.Graph:
    b = Builder(rng, f.Input([4, C]))
    flat = b.plain(f.RESHAPE, 0, ints=[1, -1])
    outputs = [
        *(flat, b.plain(f.RESHAPE, 0, ints=[3, 2, -1, 3])),
        b.plain(f.TRANSPOSITION, b.plain(f.RESHAPE, 0, ints=[3, 2, 3, 4]), ints=[3, 3, 1, 2]),
        *(b.plain(f.REPETITION, flat, ints=[3]), b.plain(f.UPSAMPLING, 0, ints=[2])),
        *(b.plain(f.PADDING, 0, ints=ints) for ints in ([2, 1], [-1, 3], [-1, -2], [2, 3, 1])),
        b.plain(f.CONCATENATION, 0, b.plain(f.PADDING, 0, ints=[1, 0]), ints=[1]),
        *(b.plain(f.PAIRS, 0, ints=[mode]) for mode in (0, 1)),
        *(b.plain(f.SLICE, 0, ints=ints) for ints in SLICES),
    ]
    return b.graph(*outputs, output_structure=1)


def _combinations(rng: np.random.Generator) -> f.Graph:
    inputs = [f.Input([-1, C], name=name) for name in ("a", "b", "c")]
    b = Builder(rng, *inputs)
    row = b.plain(f.GLOBAL_POOLING, 0, ints=[1, 1])
    outputs = [b.plain(f.COMBINATION, 0, 1, 2, ints=[mode]) for mode in (0, 2, 3, 4, 5)]
    outputs += [b.plain(f.COMBINATION, *pair, ints=[1]) for pair in ((0, 1), (row, 2), (0, row))]
    names = [f"y{k}" for k in range(len(outputs))]
    return b.graph(*outputs, output_names=names, input_structure=2, output_structure=2)


def _embeddings(rng: np.random.Generator) -> f.Graph:
    """Two inputs of words with masks, and their combinations."""
    b = Builder(rng, f.Input([-1], f.INTS, "words"), f.Input([-1], f.INTS, "tags"))
    words, word_mask = b.add(embedding(rng, 9, 5, f.MAKES_MASK), 0)
    tags, tag_mask = b.add(embedding(rng, 4, 3, f.MAKES_MASK), 1)
    both = b.plain(f.MASKS, word_mask, tag_mask)
    any_ = b.plain(f.MASKS, word_mask, tag_mask, b.mask(), ints=[1])
    x = b.plain(f.CONCATENATION, words, tags, ints=[2])
    y = b.lstm(x, 8, 4, both, flags=f.SEQUENCE | f.ZERO_OUTPUT)[0]
    z = b.one(layers.recurrent(rng, f.GRU, 8, 6, flags=0), x, any_)
    mean = b.plain(f.GLOBAL_POOLING, y, word_mask, ints=[1])
    return b.graph(y, z, mean, input_structure=1, output_structure=1)


def _stream_of_words(rng: np.random.Generator) -> f.Graph:
    b = Builder(rng, f.Input([-1], f.INTS), FLOATS)
    words, mask = b.add(embedding(rng, 9, 5, f.MAKES_MASK), 0)
    x = b.plain(f.CONCATENATION, words, 1, ints=[2])
    x = b.one(layers.recurrent(rng, f.GRU, 5 + C, 4), x, b.plain(f.MASKS, mask, b.mask(1)))
    y = b.one(layers.recurrent(rng, f.LSTM, 4, 4, flags=0), x, mask)
    return b.graph(x, b.dense(y, 4, 2), input_structure=1, output_structure=1)


def _encoder_and_decoder(rng: np.random.Generator) -> f.Graph:
    b = Builder(rng, FLOATS, f.Input([-1, 4]))
    encoded = b.lstm(0, C, 5, b.mask(), flags=f.STATES)
    decoded = b.lstm(1, 4, 5, b.mask(1), *encoded[1:], flags=f.SEQUENCE | f.STATES)
    layer = layers.recurrent(
        *(rng, f.GRU, 5, 4),
        **{"directions": f.BOTH, "merge": f.CONCATENATE, "flags": f.SEQUENCE | f.STATES},
    )
    both = b.add(layer, decoded[0])
    again = b.add(layer, decoded[0], None, *both[1:])  # a layer that is called twice
    outputs = [b.dense(again[0], 8, 3, "softmax"), *decoded[1:], *again[1:]]
    return b.graph(*outputs, input_structure=1, output_structure=1)


def _states_of_a_stream(rng: np.random.Generator) -> f.Graph:
    b = Builder(rng, FLOATS)
    y, h, c = b.lstm(0, C, 5, flags=f.SEQUENCE | f.STATES)
    last = b.dense(b.plain(f.COMBINATION, h, c), 5, 3, "tanh")
    return b.graph(y, h, c, last, output_structure=1)


def _last_step_of_a_stream(rng: np.random.Generator) -> f.Graph:
    """With layers behind it, which compute once for each call."""
    b = Builder(rng, FLOATS)
    y = b.one(layers.recurrent(rng, f.GRU, C, 5), 0)
    last, kept = (b.plain(f.GLOBAL_POOLING, y, ints=ints) for ints in ONE_STEP[:2])
    z = b.one(layers.recurrent(rng, f.LSTM, 5, 4, flags=0), b.plain(f.UPSAMPLING, kept, ints=[3]))
    return b.graph(y, last, kept, b.dense(last, 5, 3, "softmax"), z, output_structure=1)


def _time_distributed(rng: np.random.Generator) -> f.Graph:
    """A CNN of each step before an LSTM, as in Silero VAD."""
    b = Builder(rng, f.Input([-1, 16]))
    x = b.plain(f.RESHAPE, 0, batch_axes=2, ints=[2, 16, 1])
    x = b.plain(f.PADDING, x, batch_axes=2, ints=[0, 4, 1])
    x = b.one(convolution(rng, 1, 6, 8, 1), x, batch_axes=2, ints=[8, 4, 1, 1])
    x = b.plain(f.PAIRS, x, batch_axes=2, ints=[0])
    layer = convolution(rng, 3, 4, 3, 1, "relu")
    x = b.one(layer, x, batch_axes=2, ints=[3, 2, 1, 1, 0, 1, 1])
    x = b.plain(f.POOLING, x, batch_axes=2, ints=[2, 2, 1, 0])
    [x] = b.lstm(b.plain(f.RESHAPE, x, batch_axes=2, ints=[1, -1]), 4, 5)
    return b.graph(b.dense(x, 5, 1, "sigmoid", axes=2))


def _layers_of_steps(rng: np.random.Generator) -> f.Graph:
    """Layers that need a whole sequence, inside of each step."""
    b = Builder(rng, f.Input([-1, 6, 4]))
    step = {"batch_axes": 2}
    x = b.plain(f.TRANSPOSITION, 0, ints=[2, 2, 1], **step)
    x = b.plain(f.UPSAMPLING, x, ints=[2], **step)
    x = b.plain(f.COMBINATION, x, b.plain(f.PADDING, x, ints=[1, -1], **step), ints=[1], **step)
    x = b.one(depthwise(rng, 6, 1, 3), x, ints=[3, 2, 1, 0, 1], **step)
    x = b.plain(f.REPETITION, b.plain(f.RESHAPE, x, ints=[1, 24], **step), ints=[2], **step)
    x = b.plain(f.COMBINATION, x, b.plain(f.GLOBAL_POOLING, x, ints=[3, 1], **step), **step)
    x = b.one(layers.recurrent(rng, f.GRU, 24, 5, directions=f.BACKWARDS, flags=0), x, **step)
    return b.graph(b.one(layers.recurrent(rng, f.GRU, 5, 4), x))


def _hierarchy(rng: np.random.Generator) -> f.Graph:
    """A layer with masks for each sentence, and one over the sentences."""
    b = Builder(rng, f.Input([-1, 5], f.INTS))
    x, mask = b.add(embedding(rng, 7, 4, f.MAKES_MASK), 0, batch_axes=2)
    x = b.one(layers.recurrent(rng, f.LSTM, 4, 5, flags=0), x, mask, batch_axes=2)
    x, mask = b.add(layers.masking(5), x)
    return b.graph(b.one(layers.recurrent(rng, f.GRU, 5, 4), x, mask))


def _masking(rng: np.random.Generator) -> f.Graph:
    b = Builder(rng, FLOATS)
    x, mask = b.add(f.Layer(f.MASKING, 0, 0, number=0.5), 0)
    x = b.one(layers.recurrent(rng, f.SIMPLE_RNN, C, 5), x, b.plain(f.MASKS, mask, b.mask()))
    return b.graph(b.plain(f.GLOBAL_POOLING, x, mask, ints=[1]))


def of_layers(rng: np.random.Generator, chain: Sequence[f.Layer]) -> f.Graph:
    """A chain of version 1 as a graph."""
    b = Builder(rng, f.Input([-1, layers.INPUTS]))
    x, mask = 0, b.mask()
    for layer in chain:
        operands = [x, mask] if layer.kind == f.RECURRENT else [x]
        x, *rest = b.add(layer, *operands)
        mask = rest[0] if layer.kind == f.MASKING else mask
    return b.graph(x)


def of_chain(name: str) -> Callable[[np.random.Generator], f.Graph]:
    return lambda rng: of_layers(rng, layers.chain(name, rng))


STREAMS = {
    "stream of convolutions": _stream_of_convolutions,
    "states of a stream": _states_of_a_stream,
    "last step of a stream": _last_step_of_a_stream,
    "time distributed": _time_distributed,
    "layers of steps": _layers_of_steps,
    "stream of words": _stream_of_words,
    "hierarchy": _hierarchy,
    **{name: of_chain(name) for name in ("stack with dense", "masking, last step")},
}
GRAPHS = STREAMS | {
    "embeddings": _embeddings,
    "functions": _functions,
    "convolutions": _convolutions,
    "pooling": _pooling,
    "shapes": _shapes,
    "combinations": _combinations,
    "encoder and decoder": _encoder_and_decoder,
    "masking": _masking,
    "two of both": of_chain("two of both"),
}


def make(name: str, weights: int = f.FLOAT32) -> f.Graph:
    """A graph whose weights have a type."""
    return with_weights(GRAPHS[name](np.random.default_rng(len(name))), weights)


def with_weights(graph: f.Graph, weights: int) -> f.Graph:
    """The same graph with weights of a type where the format allows it."""
    nodes = [
        replace(node, layer=replace(node.layer, weights=weights))
        if node.layer.kind in f.TYPED
        else node
        for node in graph.nodes
    ]
    return replace(graph, nodes=nodes)


def draw(
    graph: f.Graph, rng: np.random.Generator, batch: int, time: int
) -> tuple[list[Array], list[Array | None]]:
    """Inputs and masks of a graph; `time` is the size of axes of any size."""
    rows = [node.layer for node in graph.nodes if node.layer.kind == f.EMBEDDING]
    least = min([layer.input_size for layer in rows], default=0)
    inputs: list[Array] = []
    for record in graph.inputs:
        shape = [batch, *(time if size < 0 else size for size in record.dims)]
        if record.type == f.INTS:
            inputs.append(rng.integers(0, least, shape).astype(np.int32))
        else:
            inputs.append(rng.standard_normal(shape).astype(np.float32))
    masks = []
    for x in inputs:
        mask = rng.integers(0, 4, x.shape[:2]) > 0
        mask[:, :1] = True
        masks.append(mask)
    return inputs, masks
