"""The operators of ONNX that a session computes: a line for each.

What a version of ONNX changed is in the schemas of the package onnx, from which attributes have
their defaults. Nodes of constants are those of `onnx_graph.folding`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tf_lstm_ops import _activations
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_onnx import elementwise, products, recurrent, shapes
from tf_lstm_ops.inference.from_onnx.values import Call, Operand


class Operator(NamedTuple):
    """How an operator is computed.

    Attributes:
      function: adds the layers of a node, and returns what its outputs stand for.
      moves: whether it only moves elements of its first operand.
      of_integers: whether an operand may be integers of an input: it moves or reads indices.
      of_squares: whether it takes squares, of which the operands of others are sums.
      ignored: attributes without an effect on what is computed here: of training, of a precision or
        type that is not read, of an output that is not read, or what the weights say.
    """

    function: Callable[[Call], Sequence[Operand]]
    moves: bool = False
    of_integers: bool = False
    of_squares: bool = False
    ignored: tuple[str, ...] = ()


def _plain(function: _activations.Activation) -> Operator:
    """An activation whose numbers are attributes."""
    assert function.onnx is not None
    return Operator(functools.partial(elementwise.plain, function.name, [*function.onnx[1]]))


_move = functools.partial(Operator, moves=True, of_integers=True)
_part = functools.partial(Operator, moves=True)
_read = functools.partial(Operator, of_integers=True)


def _merge(layer: type[layers.Layer] | None, of_squares: bool = False) -> Operator:
    function = functools.partial(elementwise.combination, layer)
    return Operator(function, of_squares=of_squares)


def _pool(layer: type[layers.Layer], ignored: tuple[str, ...] = ()) -> Operator:
    return Operator(functools.partial(products.pool, layer), ignored=ignored)


def _reduce(layer: type[layers.Layer]) -> Operator:
    return Operator(functools.partial(products.reduce, layer))


def _global_pool(layer: type[layers.Layer]) -> Operator:
    return Operator(functools.partial(products.global_pool, layer))


OPERATORS: dict[str, Operator] = {
    # Elements that move.
    "Transpose": _move(shapes.transpose),
    "Squeeze": _move(shapes.squeeze),
    "Unsqueeze": _move(shapes.unsqueeze),
    "Reshape": _move(shapes.reshape),
    "Flatten": _move(shapes.flatten),
    "Gather": _move(shapes.gather),
    "Slice": _part(shapes.part),
    "Split": _part(shapes.split),
    "ReverseSequence": _part(shapes.reverse_sequence, ignored=("batch_axis",)),
    "Expand": _read(shapes.expand),
    "Cast": _read(shapes.cast, ignored=("saturate", "round_mode")),
    "Identity": _read(elementwise.same, of_squares=True),
    "Shape": _read(shapes.shape),
    "Size": _read(shapes.size),
    "Concat": Operator(shapes.concat),
    "Pad": Operator(shapes.pad),
    "Dropout": Operator(elementwise.dropout, ignored=("ratio", "seed")),
    # Elements of arrays together.
    "Add": _merge(layers.Add, of_squares=True),
    "Sum": _merge(layers.Add),
    "Sub": _merge(layers.Subtract),
    "Mul": _merge(layers.Multiply),
    "Div": _merge(None),
    "Max": _merge(layers.Maximum),
    "Min": _merge(layers.Minimum),
    "Mean": _merge(layers.Average),
    # Functions of elements.
    **{each.onnx[0]: _plain(each) for each in _activations.TABLE if each.onnx},
    "LeakyRelu": Operator(elementwise.leaky_relu),
    "Selu": Operator(elementwise.selu),
    "ThresholdedRelu": Operator(elementwise.thresholded_relu),
    "Shrink": Operator(elementwise.shrink),
    "Gelu": Operator(elementwise.gelu),
    "HardSigmoid": Operator(elementwise.hard_sigmoid),
    "Clip": Operator(elementwise.clip),
    "PRelu": Operator(elementwise.prelu),
    "Softmax": Operator(functools.partial(elementwise.softmax, "softmax")),
    "LogSoftmax": Operator(functools.partial(elementwise.softmax, "log_softmax")),
    "Pow": Operator(elementwise.power),
    "Sqrt": Operator(elementwise.root, of_squares=True),
    "Neg": Operator(elementwise.negative),
    # Products with weights, windows, sums, norms.
    "MatMul": Operator(products.matmul),
    "Gemm": Operator(products.gemm),
    "Conv": Operator(products.conv),
    "MaxPool": _pool(layers.MaxPooling1D, ignored=("storage_order",)),
    "AveragePool": _pool(layers.AveragePooling1D),
    "GlobalMaxPool": _global_pool(layers.GlobalMaxPooling1D),
    "GlobalAveragePool": _global_pool(layers.GlobalAveragePooling1D),
    "ReduceSum": _reduce(layers.GlobalSumPooling1D),
    "ReduceMax": _reduce(layers.GlobalMaxPooling1D),
    "ReduceMean": _reduce(layers.GlobalAveragePooling1D),
    "BatchNormalization": Operator(products.batch_normalization, ignored=("momentum",)),
    "LayerNormalization": Operator(products.layer_normalization, ignored=("stash_type",)),
    # Recurrent layers.
    "LSTM": Operator(recurrent.recurrent),
    "GRU": Operator(recurrent.recurrent),
    "RNN": Operator(recurrent.recurrent),
}
