"""The names of activation functions: the native op definitions, Python and the documentation."""

from __future__ import annotations

import pathlib
import re

import keras
import pytest

from tf_lstm_ops import op_definitions
from tf_lstm_ops.composite import activations
from tf_lstm_ops.export import onnx_nodes
from tf_lstm_ops.keras import GRU, LSTM
from tf_lstm_ops.keras.activations import name_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = op_definitions.choices("KerasLSTM", "activation")


def test_every_name_has_a_composite():
    assert tuple(activations.KERAS) == NAMES
    for op in ("KerasLSTM", "KerasGRU", "KerasResetBeforeGRU"):
        for attribute in ("activation", "recurrent_activation"):
            assert op_definitions.choices(op, attribute) == NAMES
    for attribute in ("input_gate_activation", "activation"):
        assert tuple(activations.MPSGRAPH) == op_definitions.choices("MPSGraphLSTM", attribute)


def test_onnx_knows_no_other_names():
    assert set(NAMES) > onnx_nodes.ACTIVATIONS


@pytest.mark.parametrize("name", NAMES)
def test_a_function_of_keras_has_its_name(name):
    function = getattr(keras.activations, name, None)
    assert function is None or name_of(function) == name


def test_the_pages_list_the_names():
    page = (ROOT / "docs" / "reference" / "keras.md").read_text()
    (row,) = [
        line for line in page.splitlines() if line.startswith("| an LSTM or a GRU with `linear`")
    ]
    assert set(re.findall(r"`(\w+)`", row)) == set(NAMES)
    for layer in LSTM, GRU:
        assert all(re.search(rf"\b{name}\b", layer.__doc__ or "") for name in NAMES)
