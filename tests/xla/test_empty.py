"""A batch of no rows, and sequences without steps, where XLA compiles."""

import itertools

import keras
import pytest
import tensorflow as tf

import tf_lstm_ops
from empties import SIZES, assert_zero, derivatives
from tf_lstm_ops import raw_ops

INPUTS, UNITS = 3, 4
PEEPHOLES = ("wci", "wcf", "wco")


def shapes_of(op: str, time: int, batch: int) -> dict[str, tuple[int, ...]]:
    """Of the arguments of floating point."""
    state, gates = (batch, UNITS), 4 * UNITS
    if op == "CudnnRNNV3":
        size = (INPUTS + UNITS + 2) * gates
        states = dict.fromkeys(("input_h", "input_c"), (1, *state))
        return {"input": (time, batch, INPUTS), **states, "params": (size,)}
    if op == "MPSGraphLSTM":
        weights = {"recurrent_weight": (gates, UNITS), "input_weight": (gates, INPUTS)}
        states = dict.fromkeys(("init_state", "init_cell"), state)
        return {"source": (time, batch, INPUTS), **weights, **states, "peephole": (gates,)}
    states = dict.fromkeys(("cs_prev", "h_prev"), state)
    weights = {"w": (INPUTS + UNITS, gates), **dict.fromkeys(PEEPHOLES, (UNITS,)), "b": (gates,)}
    x = (batch, INPUTS) if op == "LSTMBlockCell" else (time, batch, INPUTS)
    return {"x": x, **states, **weights}


def others_of(op: str, time: int, batch: int) -> dict[str, object]:
    return {
        "LSTMBlockCell": {"use_peephole": True},
        "BlockLSTMV2": {"use_peephole": True, "seq_len_max": time},
        "CudnnRNNV3": {"sequence_lengths": tf.fill([batch], time)},
        "MPSGraphLSTM": {"training": True},
    }[op]


OPS = ("BlockLSTMV2", "CudnnRNNV3", "MPSGraphLSTM")
# By default each op and each combination of sizes once.
CASES = [
    ("LSTMBlockCell", {"batch": 0}),
    *(
        pytest.param(op, sizes, marks=() if k == n else pytest.mark.full)
        for (k, op), (n, sizes) in itertools.product(enumerate(OPS), enumerate(SIZES))
    ),
]


@pytest.mark.parametrize(("op", "sizes"), CASES, ids=str)
def test_ops(op, sizes):
    """As without XLA. The states that CudnnRNNV3 passes on are what is not zero."""
    time, batch = ({"time": 2, "batch": 3} | sizes).values()
    shapes = shapes_of(op, time, batch)
    values = [tf.random.stateless_normal(s, (1, k)) for k, s in enumerate(shapes.values())]
    others = others_of(op, time, batch)

    def function(*values):
        return getattr(raw_ops, op)(**dict(zip(shapes, values, strict=True)), **others)[:3]

    wanted, got = (derivatives(function, values, mode) for mode in ("eager", "xla"))
    for wanted_part, got_part in zip(wanted, got, strict=True):
        for a, b in zip(wanted_part, got_part, strict=True):
            assert a.shape == b.shape
            assert (a == b).all()


@pytest.mark.full  # test_ops has the same for the ops
@pytest.mark.parametrize("name", ["GRU", pytest.param("LSTM", marks=pytest.mark.slow)])
def test_layers(name):
    layer = getattr(tf_lstm_ops.keras, name)(UNITS, return_sequences=True)
    layer.build((None, None, INPUTS))
    weights = [tf.constant(w.value) for w in layer.trainable_variables]

    def function(x, *weights):
        pairs = [*zip(layer.trainable_variables, weights, strict=True)]
        with keras.StatelessScope(state_mapping=pairs):
            return [layer(x, training=True)]

    values = [tf.zeros((0, 2, INPUTS)), *weights]
    found = derivatives(function, values, "xla")
    assert_zero(found.results[0], (0, 2, UNITS))
    for gradients in (found.first, found.second):
        for got, like in zip(gradients, values, strict=True):
            assert_zero(got, like.shape)
