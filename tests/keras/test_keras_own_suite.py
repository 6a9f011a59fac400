"""Keras' own tests of its LSTM and GRU, from the installed keras package, run on our classes.

The files are read from the package and executed with `layers.LSTM` and `layers.GRU` replaced;
nothing of them is stored here.
"""

import ast
import importlib.util
import types
from pathlib import Path

import keras
import pytest
from keras.src import layers as stock_layers
from pairs import FAMILIES, GRU, LSTM


def source_of(test_file: str) -> Path:
    package = importlib.util.find_spec("keras.src.layers.rnn")
    return Path(package.submodule_search_locations[0]) / test_file


def with_our_layers(test_file: str) -> types.ModuleType:
    """The test module, in which `layers` has our layers and is stock's in all other respects."""
    layers = types.ModuleType("layers")
    layers.__dict__.update(vars(stock_layers))
    for family in FAMILIES:
        setattr(layers, family.name, family.ours)
    path = source_of(test_file)
    module = types.ModuleType(f"keras_{path.stem}")
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    assert module.layers is stock_layers
    module.layers = layers
    return module


def declared_tests(test_file: str) -> set[str]:
    """The names of all test methods, read from the source without executing it."""
    tree = ast.parse(source_of(test_file).read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return {
        node.name
        for cls in classes
        for node in cls.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


# The wheels of Keras 3.15 hold them, those of 3.14 and before do not, later ones may or may not.
if not keras.__version__.startswith("3.15.") and not source_of("lstm_test.py").exists():
    pytest.skip("this version of Keras ships no tests", allow_module_level=True)

lstm_test = with_our_layers("lstm_test.py")
gru_test = with_our_layers("gru_test.py")
bidirectional_test = with_our_layers("bidirectional_test.py")


# pytest collects what these inherit.
class TestLSTM(lstm_test.LSTMTest):
    pass


class TestGRU(gru_test.GRUTest):
    test_basics = pytest.mark.full(gru_test.GRUTest.test_basics)


@pytest.mark.full
class TestBidirectional(bidirectional_test.SimpleRNNTest):  # its name in Keras' file
    pass


@pytest.mark.parametrize(
    ("test_file", "collected"),
    [
        ("lstm_test.py", TestLSTM),
        ("gru_test.py", TestGRU),
        ("bidirectional_test.py", TestBidirectional),
    ],
)
def test_every_test_is_collected(test_file, collected):
    """A parameterised method `test_x` has become `test_x0`, `test_x1`, …"""
    declared = declared_tests(test_file)
    methods = [name for name in dir(collected) if name.startswith("test_")]
    assert len(declared) >= 5
    assert len(methods) >= len(declared)
    for name in declared:
        assert any(method.startswith(name) for method in methods), name


@pytest.mark.parametrize(
    ("module", "collected", "family", "other"),
    [(lstm_test, TestLSTM, LSTM, GRU), (gru_test, TestGRU, GRU, LSTM)],
    ids=["LSTM", "GRU"],
)
def test_the_class_under_test_is_ours(module, collected, family, other, monkeypatch):
    """Were the replacement without effect, a broken layer of ours would not be noticed."""
    assert getattr(module.layers, family.name) is family.ours is not family.stock
    monkeypatch.setattr(module.layers, family.name, other.stock)
    with pytest.raises(AssertionError):
        collected("test_statefulness").test_statefulness()
