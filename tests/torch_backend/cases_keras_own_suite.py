"""Keras' own tests of its recurrent layers, without and with accelerate().

The files are read from the package. Nothing of them is stored here.
"""

import importlib.util
import unittest
from pathlib import Path

import keras
import pytest

from tf_lstm_ops.keras import accelerate

FILES = ("lstm_test", "gru_test", "simple_rnn_test", "rnn_test", "bidirectional_test")
FOLDER = importlib.util.find_spec("keras.src.layers.rnn").submodule_search_locations[0]

# The wheels of Keras 3.15 hold them, those of 3.14 and before do not, later ones may or may not.
if not keras.__version__.startswith("3.15.") and not Path(FOLDER, "lstm_test.py").exists():
    pytest.skip("this version of Keras ships no tests", allow_module_level=True)


def failures(suite: unittest.TestSuite) -> set[str]:
    result = unittest.TestResult()
    suite.run(result)
    return {test.id() for test, _ in (*result.failures, *result.errors)}


def suite_of(name: str) -> unittest.TestSuite:
    return unittest.defaultTestLoader.loadTestsFromName(f"keras.src.layers.rnn.{name}")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("part", [0, 1])
def test_as_without(name: str, part: int) -> None:
    """The same tests fail with it and without it; most pass."""
    tests = [test for group in suite_of(name) for test in group][part::2]
    assert tests
    want = failures(unittest.TestSuite(tests))
    again = [test for group in suite_of(name) for test in group][part::2]
    with accelerate() as found:
        assert failures(unittest.TestSuite(again)) == want
    assert 2 * len(want) < len(tests)
    assert any(row.op for row in found.report()) or name == "rnn_test"
