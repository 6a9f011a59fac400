"""keras.op_arguments: the part of an op's arguments that a layer has, for all who need it."""

from typing import Any

import keras
import numpy as np
import pytest

from tf_lstm_ops import _targets, op_definitions
from tf_lstm_ops.keras import GRU, LSTM, op_arguments, options

INPUTS, UNITS = 3, 4
OF_A_CALL = {"x", "mask", "initial_h", "initial_c", "input_dropout", "recurrent_dropout"}
ATTRIBUTES = {"go_backwards", "zero_output_for_mask", "return_sequences", "training"}
LAYERS: dict[str, Any] = {
    "LSTM": lambda: LSTM(UNITS),
    "peephole": lambda: LSTM(UNITS, use_peephole=True, projection_size=2, cell_clip=0.5),
    "proj_clip": lambda: LSTM(UNITS, projection_size=2, proj_clip=0.5),
    "addons": lambda: LSTM(UNITS, layer_normalization="addons"),
    "haste": lambda: LSTM(UNITS, layer_normalization="haste", use_bias=False),
    "GRU": lambda: GRU(UNITS),
    "reset before": lambda: GRU(UNITS, reset_after=False),
    "norm GRU": lambda: GRU(UNITS, layer_normalization=True),
    "stock LSTM": lambda: keras.layers.LSTM(UNITS),
    "stock GRU": lambda: keras.layers.GRU(UNITS, use_bias=False),
}


def built(name: str) -> Any:
    layer = LAYERS[name]()
    layer.build((None, 5, INPUTS))
    return layer


@pytest.mark.parametrize("name", LAYERS)
def test_all_arguments_of_the_op(name: str) -> None:
    """Those of the layer and those of a call are the op's arguments."""
    layer = built(name)
    op = options.op_of(layer)
    assert set(op_arguments.weights(layer.cell, op)) == set(op_definitions.inputs(op)) - OF_A_CALL
    wanted = set(op_definitions.attributes(op)) - ATTRIBUTES
    assert set(op_arguments.attributes(layer)) == wanted
    assert options.why_not(layer, _targets.CPU) is None


@pytest.mark.parametrize("name", LAYERS)
def test_arrays_are_the_weights_that_exist(name: str) -> None:
    layer = built(name)
    op = options.op_of(layer)
    arrays = op_arguments.arrays(layer.cell, op)
    for key, weight in op_arguments.weights(layer.cell, op).items():
        assert (key in arrays) == (weight is not None)
        if weight is not None:
            np.testing.assert_array_equal(arrays[key], weight)


def test_one_bias_of_the_three_of_addons(rng: np.random.Generator) -> None:
    layer = built("addons")
    values = [rng.integers(9, size=4 * UNITS) for _ in range(3)]  # exact sums
    for weight, value in zip(
        (layer.cell.bias, layer.cell.input_beta, layer.cell.recurrent_beta), values, strict=True
    ):
        weight.assign(value)
    bias = op_arguments.arrays(layer.cell, "KerasLayerNormLSTM")["bias"]
    np.testing.assert_array_equal(bias, sum(values))


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (keras.layers.LSTM(2, activation="selu"), "activation is selu, which has no fused op"),
        (keras.layers.GRU(2, activation="selu"), "activation is selu, which has no fused op"),
        (GRU(2, layer_normalization=True, activation="relu"), "activation is relu, not tanh"),
        (
            LSTM(2, layer_normalization=True, recurrent_activation="relu"),
            "recurrent_activation is relu, not sigmoid",
        ),
        (
            LSTM(2, layer_normalization=True, use_peephole=True, cell_clip=1.0),
            "layer_normalization with use_peephole and cell_clip has no fused op",
        ),
    ],
)
def test_reasons(layer: Any, reason: str) -> None:
    assert options.why_not(layer, _targets.CPU) == reason
    assert getattr(layer, "fallback_reason", reason) == reason
