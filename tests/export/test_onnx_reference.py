"""The check of ONNX files by the reference implementation of the package onnx."""

import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tf_lstm_ops.export import onnx as export_onnx
from tf_lstm_ops.export import onnx_nodes
from tf_lstm_ops.keras import GRU, LSTM, SimpleRNN, StackedLSTM

pytest.importorskip("tf2onnx", reason="the converter of all other layers")
onnx = pytest.importorskip("onnx", reason="reads and runs the files")

INPUTS, UNITS = 3, 5
OLD = [int(part) for part in onnx.__version__.split(".")[:2]] < [1, 23]


@pytest.fixture(autouse=True)
def without_onnx_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)


def make_model(layer: Any, masked: bool = False) -> keras.Model:
    x = keras.Input((None, INPUTS))
    return keras.Model(x, layer(keras.layers.Masking()(x) if masked else x))


@pytest.mark.parametrize("go_backwards", [False, pytest.param(True, marks=pytest.mark.full)])
@pytest.mark.parametrize("layer", [LSTM, GRU, SimpleRNN])
def test_masked(
    layer: Any, go_backwards: bool, tmp_path: Path, rng: np.random.Generator, recwarn: Any
) -> None:
    """Also a mask with holes, and a row without a valid step."""
    if OLD and (layer is GRU or go_backwards):
        pytest.skip(
            "onnx before 1.23 cannot run these; test_limits_of_older_versions has the warning"
        )
    recurrent = layer(UNITS, return_sequences=True, go_backwards=go_backwards)
    model, path = make_model(recurrent, masked=True), tmp_path / "model.onnx"
    export_onnx(model, path)
    assert not [w for w in recwarn if "was not compared" in str(w.message)]
    x = rng.normal(size=(3, 4, INPUTS)).astype("float32")
    x *= np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]], "float32")[..., None]
    session = onnx.reference.ReferenceEvaluator(str(path))
    [got] = session.run(None, {session.input_names[0]: x})
    np.testing.assert_allclose(got, model(x), atol=2e-6)  # float32, few sums of terms below 1
    [axis] = [node.input[1] for node in onnx.load(path).graph.node if node.op_type == "CumSum"]
    shapes = {array.name: list(array.dims) for array in onnx.load(path).graph.initializer}
    assert shapes[axis] == []  # the specification: "must be a 0-D tensor"


LIMITS = {
    "activations": (
        lambda: LSTM(UNITS, activation="elu"),
        False,
        "ignores the activations",
    ),
    "stack": (lambda: StackedLSTM(UNITS, 2), False, "joins the outputs of a Loop"),
    "relu": (lambda: SimpleRNN(UNITS, "relu"), False, "lacks the activations of RNN"),
    "simple_rnn": (
        lambda: keras.layers.SimpleRNN(UNITS, "elu"),
        False,
        "joins the outputs of a Loop",
    ),
    "lengths": (lambda: LSTM(UNITS, return_state=True), True, "ignores the lengths"),
}


@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("case", LIMITS)
def test_a_file_beyond_the_reference_is_not_checked(case: str, tmp_path: Path) -> None:
    make, masked, limit = LIMITS[case]
    model, path = make_model(make(), masked=masked), tmp_path / "model.onnx"
    match = rf"was not compared with the model: .* onnx {limit}.* pip install onnxruntime"
    with pytest.warns(UserWarning, match=match):
        export_onnx(model, path)
    assert path.exists()


@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize(
    ("layer", "masked", "limit"),
    [
        (GRU, True, "cannot use the lengths of GRU"),
        (LSTM, False, "ignores the direction of LSTM"),
    ],
)
def test_limits_of_older_versions(
    layer: Any, masked: bool, limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx, "__version__", "1.22.0")
    with pytest.warns(UserWarning, match=rf"onnx {limit} before version 1\.23"):
        export_onnx(make_model(layer(UNITS, go_backwards=not masked), masked), tmp_path / "a.onnx")


def test_a_wrong_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = onnx_nodes._replace

    def wrong(graph: Any, node: Any, kind: str, weights: Any, attributes: Any) -> None:
        replace(graph, node, kind, weights._replace(R=-weights.R), attributes)

    monkeypatch.setattr(onnx_nodes, "_replace", wrong)
    with pytest.raises(ValueError, match="predicts something else than the model"):
        export_onnx(make_model(LSTM(UNITS), masked=True), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
