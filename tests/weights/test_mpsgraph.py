"""Weights in MPSGraph's format, run by the oracle, and the same in Keras' layers."""

from typing import Any

import numpy as np
import pytest

from oracle.mpsgraph import Arguments, Options, mpsgraph_lstm
from tf_lstm_ops.weights import LSTMWeights, MPSGraph

from .formats import INPUTS, PEEPHOLE, PLAIN, ROUNDING, UNITS, Array, Shape
from .runs import keras_layers, run_keras, set_weights

BATCH, TIME = 2, 4
LAYERS = [s for s in PLAIN + PEEPHOLE if (s.kind, s.layers) == ("lstm", 1)]
ORDERS = {False: ["i", "f", "z", "o"], True: ["i", "z", "f", "o"]}


def run_mpsgraph(given: MPSGraph, x: Array, forget_gate_last: bool) -> Array:
    """x [N, T, I] to h [N, T, D*H]."""
    arguments = Arguments(source=x.swapaxes(0, 1), **given._asdict())
    options = Options(
        bidirectional=given.recurrent_weight.ndim == 3, forget_gate_last=forget_gate_last
    )
    return mpsgraph_lstm(arguments, options).output.swapaxes(0, 1)


def random_mpsgraph(rng: np.random.Generator, shape: Shape, order: list[str]) -> MPSGraph:
    d, n = shape.directions, 4 * UNITS
    lead = () if d == 1 else (2,)
    peephole = np.zeros((*lead, 4, UNITS))
    if shape.peephole:
        for gate in "if":
            peephole[..., order.index(gate), :] = rng.normal(size=(*lead, UNITS))
    return MPSGraph(
        rng.normal(size=(d * n, INPUTS)),
        rng.normal(size=(*lead, n, UNITS)),
        rng.normal(size=d * n),
        peephole.reshape(*lead, n),
    )


def as_given(given: MPSGraph, shape: Shape) -> dict[str, Any]:
    return {k: v for k, v in given._asdict().items() if shape.peephole or k != "peephole"}


@pytest.mark.parametrize("forget_gate_last", ORDERS)
@pytest.mark.parametrize("shape", LAYERS, ids=str)
def test_predictions(rng, shape, forget_gate_last):
    order = ORDERS[forget_gate_last]
    given, x = random_mpsgraph(rng, shape, order), rng.normal(size=(BATCH, TIME, INPUTS))
    weights = LSTMWeights.from_mpsgraph(**as_given(given, shape), forget_gate_last=forget_gate_last)
    (layer,) = layers = keras_layers(shape)
    set_weights(layers, weights.to_keras())
    want = run_mpsgraph(given, x, forget_gate_last)
    np.testing.assert_allclose(run_keras(layers, x), want, rtol=0, atol=ROUNDING)
    assert np.abs(want).max() > 0.05  # no comparison of zeros
    back = LSTMWeights.from_keras(layer).to_mpsgraph(forget_gate_last=forget_gate_last)
    for name, array in as_given(given, shape).items():
        np.testing.assert_array_equal(getattr(back, name), array, err_msg=name)
