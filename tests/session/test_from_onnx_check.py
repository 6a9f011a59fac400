"""The comparison of a session with its ONNX model."""

import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads and makes the models")
pytest.importorskip("onnxruntime", reason="runs the models")
from onnx import numpy_helper

from session.onnx_sources import model, node
from session.test_from_onnx_operators import one, random
from session.test_from_onnx_recurrent import FEATURES, layer, weights
from tf_lstm_ops.inference import Session
from tf_lstm_ops.inference.from_onnx import products

SEQUENCE = ("B", "T", 4)


@pytest.fixture
def other_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions whose products with matrices are not those of the model."""
    dense = products.layers.Dense
    monkeypatch.setattr(
        products.layers, "Dense", lambda kernel, bias: dense(np.add(kernel, 0.01), bias)
    )


def product(units: int = 3) -> Any:
    return one("MatMul", random(4, units))


def recurrent(op: str = "LSTM", **attributes: Any) -> Any:
    arrays = weights(op, 1 + (attributes.get("direction") == "bidirectional"))
    return model([layer(op, **attributes)], ("T", "B", FEATURES), arrays)


@pytest.mark.usefixtures("other_weights")
def test_a_session_that_computes_something_else() -> None:
    words = r"output of the session differs from that of the ONNX model by 0\.0\d+, where the"
    with pytest.raises(ValueError, match=words):
        Session.from_onnx(product())
    proto = model(
        [node("Tanh", "x", "z"), node("MatMul", "z k")],
        SEQUENCE,
        {"k": random(4, 3)},
        "z y",
    )
    with pytest.raises(ValueError, match="the output y of the session differs"):
        Session.from_onnx(proto)


@pytest.mark.usefixtures("other_weights")
def test_no_check() -> None:
    assert Session.from_onnx(product(), check=False).outputs[0].shape == (None, None, 3)


@pytest.mark.usefixtures("other_weights")
def test_only_outputs_are_compared() -> None:
    nodes = [node("Tanh", "x", "t"), node("MatMul", "t k", "p"), node("Fancy", "p")]
    proto = model(nodes, SEQUENCE, {"k": random(4, 3)})
    assert Session.from_onnx(proto, outputs=["t"]) is not None
    with pytest.raises(ValueError, match="differs"):
        Session.from_onnx(proto, outputs=["p"])


def test_a_model_that_cannot_run() -> None:
    """ONNX has no product of float32 and float64."""
    proto = product()
    wide = random(4, 3).astype(np.float64)
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(wide, "k0"))
    words = r"cannot run on random inputs of the shapes \[\(3, 7, 4\)\], .* check=False leaves"
    with pytest.raises(ValueError, match=words):
        Session.from_onnx(proto)


def test_inputs_of_different_steps() -> None:
    """Names of axes that the model leaves open say nothing to a session."""
    proto = model([node("Add", "x u")], {"x": ("B", "T", 4), "u": ("C", "U", 4)})
    assert Session.from_onnx(proto) is not None


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_what_onnx_runtime_lacks(op: str, recwarn: pytest.WarningsRecorder) -> None:
    """It has no layout=1, which the reference implementation has."""
    proto = model([layer(op, layout=1)], ("B", "T", FEATURES), weights(op))
    session = Session.from_onnx(proto)
    assert not recwarn.list
    x = random(2, 5, FEATURES).astype(np.float32)
    np.testing.assert_array_equal(session(x), Session.from_onnx(recurrent(op))(x))


def test_what_nothing_runs() -> None:
    activations = ["Sigmoid", "Relu", "Relu"]
    nodes = [layer("LSTM", layout=1, activations=activations)]
    proto = model(nodes, ("B", "T", FEATURES), weights("LSTM"))
    with pytest.warns(UserWarning, match=r"not compared with the model: .*layout") as found:
        assert Session.from_onnx(proto) is not None
    assert found[0].filename == __file__


class TestWithoutONNXRuntime:
    """The package onnx runs a model, where it computes what ONNX specifies."""

    @pytest.fixture(autouse=True)
    def absent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "onnxruntime", None)

    @pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
    def test_right(self, op: str, recwarn: pytest.WarningsRecorder) -> None:
        assert Session.from_onnx(recurrent(op)) is not None
        assert not recwarn.list

    @pytest.mark.usefixtures("other_weights")
    def test_wrong(self) -> None:
        with pytest.raises(ValueError, match="differs"):
            Session.from_onnx(product())

    def test_not_compared(self) -> None:
        proto = recurrent("LSTM", activations=["Sigmoid", "Relu", "Relu"])
        match = r"session was not compared with the model: .* pip install onnxruntime"
        with pytest.warns(UserWarning, match=match) as found:
            assert Session.from_onnx(proto) is not None
        assert found[0].filename == __file__

    def test_only_what_outputs_need_is_run(self, recwarn: pytest.WarningsRecorder) -> None:
        nodes = [
            node("Tanh", "x", "t"),
            layer("LSTM", "t w r b", activations=["Sigmoid", "Relu", "Relu"]),
        ]
        proto = model(nodes, ("T", "B", FEATURES), weights("LSTM"))
        assert Session.from_onnx(proto, outputs=["t"]) is not None
        assert not recwarn.list
