"""Layers that got a tensor in place of a weight, another use_bias, or other halves when built."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers as stock

from tf_lstm_ops import keras as ours
from tf_lstm_ops.cli import doctor_layers
from tf_lstm_ops.inference import Session
from tf_lstm_ops.weights import GRUWeights, LSTMWeights

UNITS = 5
NEAR = 2e-6  # the session and the fused op sum in another order than Keras' loop
KINDS = pytest.mark.parametrize("kind", ["LSTM", "GRU"])
LIBRARIES = pytest.mark.parametrize("library", [stock, ours], ids=["stock", "ours"])


@pytest.fixture
def x(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(3, 6, 4)).astype("float32")


def model_of(layer: Any) -> keras.Model:
    """The layer with weights that are not zero."""
    model = keras.Sequential([keras.Input((6, 4)), layer])
    generator = np.random.default_rng(0)
    model.set_weights([generator.normal(size=w.shape) / 2 for w in model.get_weights()])
    return model


def double(part: Any, name: str) -> None:
    setattr(part, name, tf.convert_to_tensor(getattr(part, name)) * 2.0)


def first_cell(layer: Any) -> Any:
    return layer.cell.cells[0]


LAYERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], str]] = {
    "LSTM": (lambda: stock.LSTM(UNITS), lambda layer: layer.cell, "kernel"),
    "bias of a GRU": (lambda: stock.GRU(UNITS), lambda layer: layer.cell, "bias"),
    "ours": (lambda: ours.LSTM(UNITS), lambda layer: layer.cell, "recurrent_kernel"),
    "stack": (lambda: ours.StackedGRU(UNITS, 2), lambda layer: layer.cell, "kernel_l0"),
    "cells": (lambda: stock.RNN([stock.LSTMCell(UNITS)] * 1), first_cell, "kernel"),
    "other layer": (lambda: stock.Dense(UNITS), lambda layer: layer, "_kernel"),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("to", ["fused", "stock"])
def test_a_copy_lacks_it(name: str, to: Any, x: np.ndarray) -> None:
    make, part, weight = LAYERS[name]
    model = model_of(make())
    double(part(model.layers[0]), weight)
    before = np.asarray(model(x))
    with pytest.raises(ValueError, match=rf"does not describe it: .*{weight.strip('_')[:6]}"):
        ours.convert_model(model, to=to)
    np.testing.assert_array_equal(model(x), before)


@KINDS
@LIBRARIES
def test_what_computes_with_the_tensor(library: Any, kind: str, x: np.ndarray) -> None:
    model = model_of(getattr(stock, kind)(UNITS))
    layer = getattr(library, kind)(UNITS)
    mine = model_of(layer)
    double(model.layers[0].cell, "kernel")
    double(layer.cell, "kernel")
    want = np.asarray(model(x))
    np.testing.assert_allclose(mine(x), want, rtol=0, atol=NEAR)
    np.testing.assert_allclose(Session(mine)(x), want, rtol=0, atol=NEAR)
    np.testing.assert_allclose(ours.convert_model(mine, in_place=True)(x), want, rtol=0, atol=NEAR)
    reader = LSTMWeights if kind == "LSTM" else GRUWeights
    with pytest.raises(ValueError, match=f"the kernel of its {kind}Cell was replaced"):
        reader.from_keras(layer)


@KINDS
@LIBRARIES
def test_use_bias_of_a_built_cell(library: Any, kind: str, x: np.ndarray) -> None:
    """Keras then leaves out the bias that the cell has."""
    model = model_of(getattr(library, kind)(UNITS))
    without = getattr(stock, kind)(UNITS, use_bias=False)
    without.build(x.shape)
    without.set_weights(model.get_weights()[:2])
    want = np.asarray(without(x))
    model.layers[0].cell.use_bias = False
    np.testing.assert_allclose(model(x), want, rtol=0, atol=NEAR)
    with pytest.raises(ValueError, match=f"use_bias of its {kind}Cell was set"):
        Session(model)
    with pytest.warns(UserWarning, match="use_bias"):
        ours.convert_model(model, in_place=True)
    np.testing.assert_allclose(model(x), want, rtol=0, atol=NEAR)


@LIBRARIES
def test_halves_of_a_bidirectional_that_changed_places(library: Any, x: np.ndarray) -> None:
    both = library.Bidirectional(library.LSTM(UNITS, return_sequences=True))
    model = model_of(both)
    both.forward_layer, both.backward_layer = both.backward_layer, both.forward_layer
    with pytest.raises(ValueError, match="does not describe it: backward_layer and forward_layer"):
        ours.convert_model(model)


def test_doctor_has_no_option_that_brings_a_method_back() -> None:
    layer = ours.LSTM(UNITS)
    model = model_of(layer)
    layer.cell.call = lambda *args, **kwargs: type(layer.cell).call(layer.cell, *args, **kwargs)
    (finding,) = doctor_layers.findings(model)
    assert finding.reason == "the call of its LSTMCell was replaced" and finding.change is None
