"""Random wrong ONNX models for sessions, and that the fuzzer sees what it is for."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("onnx", reason="makes and reads the models")
pytest.importorskip("onnxruntime", reason="runs them")
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_onnx.operators import OPERATORS
from tf_lstm_ops.inference.from_onnx.values import Operator

from . import onnx_sessions
from .loop import Counts
from .onnx_runtime import Runtime

GROUP, COUNT = 200, 1000


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    made = Runtime()
    yield made
    made.close()


@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(GROUP, COUNT, GROUP))],
)
def test_a_thousand_models(first: int, runtime: Runtime) -> None:
    """Both refused and accepted ones, and most of these compared."""
    counts = Counts()
    for number in range(first, first + GROUP):
        onnx_sessions.check(1, number, counts, runtime)
    assert counts["refused"] > GROUP // 2
    assert counts["compared"] > GROUP // 8


def fails(call: Any) -> list[Any]:
    raise IndexError("list index out of range")


def sigmoid(call: Any) -> list[Any]:
    x = call.traced()
    return [x.with_value(layers.Activation("sigmoid")(x.value))]


BROKEN = {
    "another error": ("Add", fails, "IndexError"),
    "another function": ("Tanh", sigmoid, "Not equal"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_it_sees(name: str, monkeypatch: pytest.MonkeyPatch, runtime: Runtime) -> None:
    op, function, text = BROKEN[name]
    monkeypatch.setitem(OPERATORS, op, Operator(function))
    with pytest.raises(AssertionError, match=text):
        for number in range(500):
            onnx_sessions.check(1, number, Counts(), runtime)
