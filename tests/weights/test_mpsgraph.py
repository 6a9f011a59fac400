"""Weights in MPSGraph's form, run by the oracle, and the same in Keras' layers."""

from typing import Any

import numpy as np
import pytest

from oracle.mpsgraph import Arguments, Options, mpsgraph_lstm
from tf_lstm_ops.weights import LSTMWeights, MPSGraph

from .forms import (
    INPUTS,
    PEEPHOLE,
    PLAIN,
    ROUNDING,
    UNITS,
    Array,
    Shape,
    keras_stack,
    run_keras,
    set_weights,
)

BATCH, TIME = 2, 4
LAYERS = [s for s in PLAIN + PEEPHOLE if (s.kind, s.layers) == ("lstm", 1)]
ORDERS = {False: ["i", "f", "z", "o"], True: ["i", "z", "f", "o"]}


def run_mpsgraph(form: MPSGraph, x: Array, forget_gate_last: bool) -> Array:
    """x [N, T, I] to h [N, T, D*H]."""
    arguments = Arguments(source=x.swapaxes(0, 1), **form._asdict())
    options = Options(
        bidirectional=form.recurrent_weight.ndim == 3, forget_gate_last=forget_gate_last
    )
    return mpsgraph_lstm(arguments, options).output.swapaxes(0, 1)


def random_form(rng: np.random.Generator, shape: Shape, order: list[str]) -> MPSGraph:
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


def as_given(form: MPSGraph, shape: Shape) -> dict[str, Any]:
    return {k: v for k, v in form._asdict().items() if shape.peephole or k != "peephole"}


@pytest.mark.parametrize("forget_gate_last", ORDERS)
@pytest.mark.parametrize("shape", LAYERS, ids=str)
def test_predictions(rng, shape, forget_gate_last):
    order = ORDERS[forget_gate_last]
    form, x = random_form(rng, shape, order), rng.normal(size=(BATCH, TIME, INPUTS))
    weights = LSTMWeights.from_mpsgraph(**as_given(form, shape), forget_gate_last=forget_gate_last)
    (layer,) = stack = keras_stack(shape)
    set_weights(stack, weights.to_keras())
    want = run_mpsgraph(form, x, forget_gate_last)
    np.testing.assert_allclose(run_keras(stack, x), want, rtol=0, atol=ROUNDING)
    assert np.abs(want).max() > 0.05  # no comparison of zeros
    back = LSTMWeights.from_keras(layer).to_mpsgraph(forget_gate_last=forget_gate_last)
    for name, array in as_given(form, shape).items():
        np.testing.assert_array_equal(getattr(back, name), array, err_msg=name)
