"""What does not fit is refused with words that say what, and what to do."""

import dataclasses

import keras
import numpy as np
import pytest

from tf_lstm_ops.weights import CellWeights, GRUWeights, LSTMWeights

from .formats import INPUTS, UNITS, Shape, random_weights

RNG = np.random.default_rng(0)
PLAIN = random_weights(Shape(), RNG)
GRU = random_weights(Shape("gru"), RNG)
RESET_BEFORE = dataclasses.replace(GRU, reset_after=False)
STACK = random_weights(Shape(layers=2), RNG)
BIDIRECTIONAL = random_weights(Shape(directions=2), RNG)
PEEPHOLE = random_weights(Shape(peephole=True), RNG)
PROJECTED = random_weights(Shape(num_proj=2), RNG)
BLOCK = PLAIN.to_block_cell(gate_order="ICFO", forget_bias=0.0)
NODE = PLAIN.to_onnx()
GRAPH = PLAIN.to_mpsgraph()
ICFO = {"gate_order": "ICFO", "forget_bias": 1.0}
SIZES = {"input_size": INPUTS, "units": UNITS}


CANNOT_HOLD = {
    "peephole in cudnn": (lambda: PEEPHOLE.to_cudnn(), "no peepholes; use to_keras"),
    "peephole in torch": (lambda: PEEPHOLE.to_torch(), "no peepholes; use to_keras"),
    "reset before in cudnn": (
        lambda: RESET_BEFORE.to_cudnn(),
        "cuDNN's GRU has the equation of reset_after=True, .* use to_keras or to_onnx",
    ),
    "reset before in torch": (
        lambda: RESET_BEFORE.to_torch(),
        "PyTorch's GRU has the equation of reset_after=True",
    ),
    "reset before in safetensors": (
        lambda: RESET_BEFORE.to_safetensors("never_written"),
        "PyTorch's GRU has the equation of reset_after=True",
    ),
    "projection in block cell": (
        lambda: PROJECTED.to_block_cell(**ICFO),
        "no projection; use to_cudnn",
    ),
    "layers in block cell": (
        lambda: STACK.to_block_cell(**ICFO),
        "one layer of one direction, not 2; convert each direction separately",
    ),
    "directions in block cell": (
        lambda: BIDIRECTIONAL.to_block_cell(**ICFO),
        "one layer of one direction, not 2; convert each direction separately",
    ),
    "projection in onnx": (lambda: PROJECTED.to_onnx(), "no projection; use to_cudnn"),
    "projection in mpsgraph": (lambda: PROJECTED.to_mpsgraph(), "no projection; use to_cudnn"),
    "layers in onnx": (
        lambda: STACK.to_onnx(),
        r"an ONNX node has one layer, not 2; .* with LSTMWeights\(cells\[k : k \+ 1\], 1\)",
    ),
    "layers in mpsgraph": (
        lambda: random_weights(Shape(layers=2, directions=2), RNG).to_mpsgraph(),
        r"one layer, not 2; convert each layer .* LSTMWeights\(cells\[k : k \+ 2\], 2\)",
    ),
    "peephole in mpsgraph": (
        lambda: PEEPHOLE.to_mpsgraph(),
        "reads the previous cell state, not the new one, .* use to_keras, to_block_cell or to_onnx",
    ),
    "bias in keras": (lambda: GRU.to_keras(use_bias=False), "biases other than zero"),
    "bias in torch": (lambda: STACK.to_torch(bias=False), "biases other than zero"),
    "skipped input, other sizes": (
        lambda: PLAIN.to_cudnn(input_mode="skip_input"),
        "skip_input needs input_size == units: 3 vs. 4",
    ),
}

CUDNN = {
    "too long": ({"params": np.zeros(145)}, r"params must be \(144,\) but is \(145,\)"),
    "rank 2": ({"params": np.zeros((144, 1))}, r"params must be \(144,\) but is \(144, 1\)"),
    "other input size": ({"input_size": 2}, r"params must be \(128,\) but is \(144,\)"),
    "negative": ({"input_size": -1}, "input_size must be positive but is -1"),
    "no cell": ({"units": 0}, "units must be positive but is 0"),
    "many layers": ({"num_layers": 10**12}, r"params must be \(\d+,\) but is \(144,\)"),
    "layers as a text": ({"num_layers": "2"}, "num_layers must be an integer but is '2'"),
    "half a cell": ({"units": 4.5}, "units must be an integer but is 4.5"),
    "narrow integer": ({"num_layers": np.int8(2)}, r"params must be \(304,\) but is \(144,\)"),
    "no layers": ({"num_layers": 0}, "num_layers must be positive but is 0"),
    "directions": ({"directions": 3}, "directions must be 1 or 2 but is 3"),
    "projection": (
        {"projection_size": 5},
        r"projection_size \(num_proj\) must be between 0 and 4 but is 5",
    ),
    "input mode": ({"input_mode": "skip"}, "input_mode must be .* but is skip"),
}

NO_NUMBERS = "must be an array of numbers but has the dtype"

MALFORMED = {
    "cudnn, no array": (
        lambda: LSTMWeights.from_cudnn([[1.0], [2.0, 3.0]], **SIZES),
        "params must be an array but is .*inhomogeneous",
    ),
    "cudnn, truth values": (
        lambda: LSTMWeights.from_cudnn(np.zeros(144, bool), **SIZES),
        f"params {NO_NUMBERS} bool",
    ),
    "keras, None": (
        lambda: LSTMWeights.from_keras([None, *PLAIN.to_keras()[1:]]),
        r"source\[0\] must be an array but is None",
    ),
    "keras, texts": (
        lambda: GRUWeights.from_keras([GRU.to_keras(), [np.array(["a"]), *GRU.to_keras()[1:]]]),
        rf"source\[1\]\[0\] {NO_NUMBERS} <U1",
    ),
    "keras, kernel of rank 1": (
        lambda: LSTMWeights.from_keras([np.zeros(3), *PLAIN.to_keras()[1:]]),
        r"kernel must be \(I, G\*H\) but is \(3,\)",
    ),
    "keras, large without elements": (
        lambda: LSTMWeights.from_keras([np.zeros((0, 2**50)), np.zeros((0, 2**50))]),
        "recurrent_kernel must not be empty",
    ),
    "torch, large without elements": (
        lambda: LSTMWeights.from_torch(
            {"weight_ih_l0": np.zeros((2**50, 0)), "weight_hh_l0": np.zeros((0, 2**48))}
        ),
        "the recurrent weights must be .* but is",
    ),
    "torch, prefix": (
        lambda: LSTMWeights.from_torch(PLAIN.to_torch(), prefix=None),
        "prefix must be a text but is None",
    ),
    "torch, many other keys": (
        lambda: LSTMWeights.from_torch({**PLAIN.to_torch(), **dict.fromkeys("abcdefg")}),
        "the state dict has a, b, c, d, e and 2 more, which belongs to no layer",
    ),
    "torch, a long key": (
        lambda: LSTMWeights.from_torch({**PLAIN.to_torch(), "a" * 9999: None}),
        r"the state dict has a{60}\.\.\., which belongs to no layer",
    ),
    "block cell, None": (
        lambda: LSTMWeights.from_block_cell(None, BLOCK.b, **ICFO),
        "w must be an array of 2 dimensions but is None",
    ),
    "block cell, rank of b": (
        lambda: LSTMWeights.from_block_cell(BLOCK.w, BLOCK.b[None], **ICFO),
        r"b must be an array of 1 dimension but has the shape \(1, 16\)",
    ),
    "block cell, b of no gates": (
        lambda: LSTMWeights.from_block_cell(BLOCK.w, BLOCK.b[:15], **ICFO),
        r"b must be \(12,\) but is \(15,\)",
    ),
    "block cell, short peephole": (
        lambda: LSTMWeights.from_block_cell(*BLOCK[:4], BLOCK.wco[:3], **ICFO),
        r"wco must be \(4,\) but is \(3,\)",
    ),
    "block cell, projection of another cell": (
        lambda: LSTMWeights.from_block_cell(*BLOCK, **ICFO, projection=np.ones([3, 2])),
        r"projection must be \(4, P\) with 0 < P < 4 but is \(3, 2\)",
    ),
    "block cell, wide projection": (
        lambda: LSTMWeights.from_block_cell(*BLOCK, **ICFO, projection=np.ones([4, 4])),
        r"projection must be \(4, P\) with 0 < P < 4 but is \(4, 4\)",
    ),
    "block cell, w without the rows of a projection": (
        lambda: LSTMWeights.from_block_cell(
            BLOCK.w[:1], *BLOCK[1:], **ICFO, projection=np.ones([4, 2])
        ),
        r"w must be \(I\+2, 16\) but is \(1, 16\)",
    ),
    "block cell, dtype of a peephole": (
        lambda: LSTMWeights.from_block_cell(*BLOCK[:4], BLOCK.wco.astype("float32"), **ICFO),
        "wco must be float64 but is float32",
    ),
    "block cell, forget_bias": (
        lambda: LSTMWeights.from_block_cell(*BLOCK, gate_order="ICFO", forget_bias=None),
        "forget_bias must be a number but is None",
    ),
    "block cell, forget_bias of integers": (
        lambda: LSTMWeights.from_block_cell(
            BLOCK.w.astype(int), BLOCK.b.astype(int), gate_order="ICFO", forget_bias=0.5
        ),
        "forget_bias must be an integer, as b is int64, but is 0.5",
    ),
    "onnx, None": (
        lambda: LSTMWeights.from_onnx(None, NODE.R),
        "W must be an array but is None",
    ),
    "onnx, large without elements": (
        lambda: LSTMWeights.from_onnx(NODE.W, np.zeros((1, 0, 2**50))),
        r"R must be \(1, \d+, \d+\) but is",
    ),
    "mpsgraph, objects": (
        lambda: LSTMWeights.from_mpsgraph(*GRAPH[:2], np.zeros(16, object)),
        f"bias {NO_NUMBERS} object",
    ),
    "mpsgraph, large without elements": (
        lambda: LSTMWeights.from_mpsgraph(None, np.zeros((0, 2**50))),
        r"recurrent_weight must be \(\d+, \d+\) but is",
    ),
    "gru with projection": (
        lambda: GRUWeights.from_cudnn(np.zeros(9), **SIZES, projection_size=2),
        r"projection_size \(num_proj\) must be 0 for gru but is 2",
    ),
    "keras layer of the other kind": (
        lambda: LSTMWeights.from_keras(GRU.to_keras()),
        r"recurrent_kernel must be \(3, 12\) but is \(4, 12\)",
    ),
    "keras layer not built": (
        lambda: LSTMWeights.from_keras(keras.layers.LSTM(UNITS, name="young")),
        "young has no weights yet; build it first",
    ),
    "shape of a gru's bias": (
        lambda: GRUWeights.from_keras([*GRU.to_keras()[:2], np.zeros((3, 12))]),
        r"bias must be \(2, 3H\), or \(3H,\) with reset_after=False, but is \(3, 12\)",
    ),
    "some reset before": (
        lambda: GRUWeights.from_keras([GRU.to_keras(), RESET_BEFORE.to_keras()]),
        "some of the layers have reset_after=False and some do not",
    ),
    "some bidirectional": (
        lambda: LSTMWeights.from_keras([PLAIN.to_keras(), BIDIRECTIONAL.to_keras()]),
        "some of the layers are bidirectional and some are not",
    ),
    "no stack": (
        lambda: LSTMWeights.from_keras([PLAIN.to_keras(), PLAIN.to_keras()]),
        r"cells\[1\]: kernel must be \(4, 16\) but is \(3, 16\)",
    ),
    "a model": (
        lambda: LSTMWeights.from_keras(keras.Sequential([keras.layers.LSTM(2)])),
        "neither a recurrent layer nor the list of its weights",
    ),
    "an array alone": (
        lambda: LSTMWeights.from_keras([PLAIN.cells[0].kernel]),
        "neither a recurrent layer nor the list of its weights",
    ),
    "gru with too many": (
        lambda: GRUWeights.from_keras([*GRU.to_keras(), np.zeros(1)] * 2),
        "4 arrays are more than those of a GRU layer",
    ),
    "lstm with too many": (
        lambda: LSTMWeights.from_keras([*PEEPHOLE.to_keras(), np.zeros(1)] * 2),
        "5 arrays are more than those of an LSTM layer",
    ),
    "block cell, gate order": (
        lambda: LSTMWeights.from_block_cell(*BLOCK, gate_order="icfo", forget_bias=0.0),
        "gate_order must be 'ICFO' or 'IFCO' but is 'icfo'",
    ),
    "to block cell, gate order": (
        lambda: PLAIN.to_block_cell(gate_order="IOFC", forget_bias=0.0),
        "gate_order must be 'ICFO' or 'IFCO' but is 'IOFC'",
    ),
    "block cell, one peephole": (
        lambda: LSTMWeights.from_block_cell(BLOCK.w, BLOCK.b, BLOCK.wci, **ICFO),
        "give all of wci, wcf and wco, or none",
    ),
    "block cell, short w": (
        lambda: LSTMWeights.from_block_cell(BLOCK.w[:3], BLOCK.b, **ICFO),
        r"w must be \(I\+4, 16\) but is \(3, 16\)",
    ),
    "block cell, short b": (
        lambda: LSTMWeights.from_block_cell(BLOCK.w, BLOCK.b[:12], **ICFO),
        r"w must be \(I\+3, 12\) but is \(7, 16\)",
    ),
    "block cell, no cell": (
        lambda: LSTMWeights.from_block_cell(np.zeros((3, 0)), np.zeros(0), **ICFO),
        "units must be positive but is 0",
    ),
    "onnx, the other kind": (
        lambda: LSTMWeights.from_onnx(*GRU.to_onnx()[:3]),
        r"R must be \(1, 16, 4\) but is \(1, 12, 4\)",
    ),
    "onnx, rank of R": (
        lambda: LSTMWeights.from_onnx(NODE.W, NODE.R[0]),
        r"R must be \(D, 4H, H\) but is \(16, 4\)",
    ),
    "onnx, rank of W": (
        lambda: LSTMWeights.from_onnx(NODE.W[0], NODE.R),
        r"W must be \(1, 16, I\) but is \(16, 3\)",
    ),
    "onnx, half a bias": (
        lambda: LSTMWeights.from_onnx(NODE.W, NODE.R, NODE.B[:, :16]),
        r"B must be \(1, 32\) but is \(1, 16\)",
    ),
    "onnx, peephole of four": (
        lambda: LSTMWeights.from_onnx(*NODE[:3], np.zeros((1, 16))),
        r"P must be \(1, 12\) but is \(1, 16\)",
    ),
    "onnx, three directions": (
        lambda: LSTMWeights.from_onnx(*(np.repeat(a, 3, axis=0) for a in NODE[:3])),
        "directions must be 1 or 2 but is 3",
    ),
    "mpsgraph, rank of recurrent_weight": (
        lambda: LSTMWeights.from_mpsgraph(GRAPH.input_weight, GRAPH.bias),
        r"recurrent_weight must be \(4H, H\) but is \(16,\)",
    ),
    "mpsgraph, three gates": (
        lambda: LSTMWeights.from_mpsgraph(GRAPH.input_weight, GRAPH.recurrent_weight[:12]),
        r"recurrent_weight must be \(16, 4\) but is \(12, 4\)",
    ),
    "mpsgraph, three directions": (
        lambda: LSTMWeights.from_mpsgraph(GRAPH.input_weight, np.zeros((3, 16, 4))),
        r"recurrent_weight must be \(2, 4H, H\) but is \(3, 16, 4\)",
    ),
    "mpsgraph, input_weight of one direction": (
        lambda: LSTMWeights.from_mpsgraph(GRAPH.input_weight, np.zeros((2, 16, 4))),
        r"input_weight must be \(32, I\) but is \(16, 3\)",
    ),
    "mpsgraph, two biases": (
        lambda: LSTMWeights.from_mpsgraph(*GRAPH[:2], np.zeros((2, 16))),
        r"bias must be \(16,\) but is \(2, 16\)",
    ),
    "mpsgraph, peephole of three": (
        lambda: LSTMWeights.from_mpsgraph(*GRAPH[:3], np.zeros(12)),
        r"peephole must be \(16,\) but is \(12,\)",
    ),
    "mpsgraph, peephole of c": (
        lambda: LSTMWeights.from_mpsgraph(*GRAPH[:3], np.repeat([0.0, 0, 1, 0], UNITS)),
        "peephole must be zero for the gates c and o",
    ),
    "mpsgraph, peephole of o": (
        lambda: LSTMWeights.from_mpsgraph(
            *GRAPH[:3], np.repeat([0.0, 0, 0, 1], UNITS), forget_gate_last=True
        ),
        "peephole must be zero for the gates c and o, .* train the model without these",
    ),
    "no layers": (lambda: LSTMWeights(()), "cells must hold a multiple of 1 cells but holds 0"),
    "odd layers": (
        lambda: LSTMWeights(PLAIN.cells, directions=2),
        "cells must hold a multiple of 2 cells but holds 1",
    ),
    "a projection in one layer only": (
        lambda: LSTMWeights((*PROJECTED.cells, *PLAIN.cells)),
        r"cells\[1\] must have the arrays of cells\[0\]",
    ),
    "three directions": (
        lambda: LSTMWeights(PLAIN.cells * 3, directions=3),
        "directions must be 1 or 2 but is 3",
    ),
}


@pytest.mark.parametrize("name", CANNOT_HOLD)
def test_what_a_form_cannot_hold(name):
    call, message = CANNOT_HOLD[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", CUDNN)
def test_cudnn_arguments(name):
    changed, message = CUDNN[name]
    arguments = {"params": PLAIN.to_cudnn(), **SIZES}
    assert LSTMWeights.from_cudnn(**arguments).input_size == INPUTS
    with pytest.raises(ValueError, match=message):
        LSTMWeights.from_cudnn(**{**arguments, **changed})


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name):
    call, message = MALFORMED[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(CellWeights)])
def test_every_array_is_checked(field):
    """Its shape and its dtype."""
    (cell,) = (PROJECTED if field == "projection" else PEEPHOLE).cells
    array = getattr(cell, field)
    for wrong in (array[:-1], array.astype("float32")):
        with pytest.raises(ValueError, match=r"cells\[1\]: \w+ must be"):
            LSTMWeights((cell, dataclasses.replace(cell, **{field: wrong})), directions=2)


@pytest.mark.parametrize("field", ["peephole", "projection"])
def test_a_gru_has_neither_peephole_nor_projection(field):
    (cell,) = GRU.cells
    extra = {"peephole": np.zeros((3, UNITS)), "projection": np.zeros((UNITS, 2))}[field]
    with pytest.raises(ValueError, match=f"a GRU has no {field}"):
        GRUWeights((dataclasses.replace(cell, **{field: extra}),))


def test_a_projection_makes_h_smaller():
    (cell,) = PLAIN.cells
    square = dataclasses.replace(cell, projection=np.eye(UNITS))
    with pytest.raises(ValueError, match="with a projection h must be smaller than 4, not 4"):
        LSTMWeights((square,))
