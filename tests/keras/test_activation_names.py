"""The names of activation functions: the native op definitions, Python and the documentation."""

from __future__ import annotations

import pathlib
import re

import keras
import pytest

from oracle import keras_lstm_v2
from session import session_file
from tf_lstm_ops import op_definitions
from tf_lstm_ops.composite import activations
from tf_lstm_ops.export import onnx_nodes
from tf_lstm_ops.inference import file
from tf_lstm_ops.keras import GRU, LSTM
from tf_lstm_ops.keras.activations import name_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = op_definitions.choices("KerasLSTM", "activation")


# Every other list of the functions, beside that of the native library.
LISTS = {
    "tf_lstm_ops/composite/activations.py": activations.KERAS,
    "tf_lstm_ops/inference/file.py": file.FUNCTIONS,
    "tests/oracle/keras_lstm_v2.py": keras_lstm_v2.ACTIVATIONS,
    "tests/session/session_file.py": session_file.RECURRENT_FUNCTIONS,
}


@pytest.mark.parametrize("place", LISTS)
def test_every_list_has_the_names(place):
    """In C++'s order, since the number of a function in a session file is its position there."""
    assert tuple(LISTS[place]) == NAMES


def test_the_ops_have_the_same_names():
    for op in ("KerasLSTM", "KerasGRU", "KerasResetBeforeGRU"):
        for attribute in ("activation", "recurrent_activation"):
            assert op_definitions.choices(op, attribute) == NAMES
    for attribute in ("input_gate_activation", "activation"):
        assert tuple(activations.MPSGRAPH) == op_definitions.choices("MPSGraphLSTM", attribute)


def test_onnx_knows_no_other_names():
    assert set(NAMES) > onnx_nodes.ACTIVATIONS


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_can_have_the_function(name):
    """Also one that Keras lacks, which tf_lstm_ops/keras/activations.py must then bring."""
    assert LSTM(2, activation=name, recurrent_activation=name).uses_fused_op
    function = getattr(keras.activations, name, None)
    assert function is None or name_of(function) == name


def test_the_pages_list_the_names():
    page = (ROOT / "docs" / "reference" / "session_file.md").read_text()
    listed = re.search(r"^0 to (\d+) are ([^.]*?), with ", page, re.MULTILINE)
    assert listed and int(listed[1]) == len(NAMES) - 1
    assert tuple(re.split(r",? and |,\s", listed[2].replace("\n", " "))) == NAMES
    page = (ROOT / "docs" / "reference" / "keras.md").read_text()
    (row,) = [
        line for line in page.splitlines() if line.startswith("| an LSTM or a GRU with `linear`")
    ]
    assert set(re.findall(r"`(\w+)`", row)) == set(NAMES)
    for layer in LSTM, GRU:
        assert all(re.search(rf"\b{name}\b", layer.__doc__ or "") for name in NAMES)
