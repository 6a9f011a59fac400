"""The table of cells, beside the headers of C++ and the classes that it names."""

from __future__ import annotations

import re
from pathlib import Path

import keras
import pytest

from tf_lstm_ops import _cells, op_definitions, weights
from tf_lstm_ops.inference import layers

HEADER = Path(__file__).parents[2] / "cc/core/gate_order.h"
# The gates in the order of C++'s pre-activations. Both terms of a GRU's candidate have one block.
PRE_ACTIVATIONS = {"LSTM": "icfo", "GRU": "hrzh", "RNN": "hhhh"}
# What Python has for the orders in the header.
ORDERS = {
    "ICFO": (_cells.LSTM, _cells.BLOCK),
    "IFCO": (_cells.LSTM, _cells.LSTM.gates),
    "RUN": (_cells.GRU, _cells.GRU.output_major),
    "URN": (_cells.GRU, _cells.GRU.gates),
    "Single": (_cells.SIMPLE_RNN, _cells.SIMPLE_RNN.gates),
}


def orders_of_the_header() -> dict[str, list[int]]:
    found = re.findall(r"GateOrder kOrder(\w+)\{\{([\d, ]+)\}\};", HEADER.read_text("utf-8"))
    return {name: [int(block) for block in blocks.split(",")] for name, blocks in found}


def test_the_orders_are_those_of_the_kernels() -> None:
    wanted = {
        name: [order.index(gate) for gate in PRE_ACTIVATIONS[cell.common]]
        for name, (cell, order) in ORDERS.items()
    }
    assert orders_of_the_header() == wanted


@pytest.mark.parametrize("cell", _cells.CELLS, ids=lambda cell: cell.op)
def test_a_cell_has_what_it_names(cell: _cells.Cell) -> None:
    states = [name for name in op_definitions.inputs(cell.op) if name.startswith("initial_")]
    assert states == [f"initial_{state}" for state in cell.states]
    assert hasattr(keras.layers, f"{cell.keras}Cell") and hasattr(layers, cell.keras)
    assert hasattr(weights, cell.weights)
    assert sorted(cell.gates) == sorted(cell.output_major) == sorted(cell.onnx)


def test_the_gates_of_recurrent_activation() -> None:
    assert _cells.LSTM.recurrent == (True, True, False, True)
    assert _cells.GRU.recurrent == (True, True, False)
    assert _cells.SIMPLE_RNN.recurrent == (False,)
