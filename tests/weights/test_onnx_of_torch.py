"""ONNX files of both exporters of PyTorch: their layers are those of the module."""

from pathlib import Path
from typing import Any

import pytest

from tf_lstm_ops.weights import RNNWeights

from .formats import KINDS, assert_equal

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch, which writes the files, is not installed")
pytest.importorskip("onnx", reason="reads the files")

MODULES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn_tanh": torch.nn.RNN}


def make(kind: str, directions: int, **options: Any) -> Any:
    torch.manual_seed(3)
    return MODULES[kind](3, 4, num_layers=2, bidirectional=directions == 2, **options).eval()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("opset", [7, 12, 17, 20])
@pytest.mark.filterwarnings("ignore")  # of the exporter, which is deprecated
def test_the_older_exporter(
    opset: int, kind: str, directions: int, batch_first: bool, tmp_path: Path
) -> None:
    module, path = make(kind, directions, batch_first=batch_first), tmp_path / "m.onnx"
    axes = {"x": {0: "a", 1: "b"}} if opset % 2 else None
    torch.onnx.export(
        module,
        (torch.zeros(5, 2, 3),),
        path,
        dynamo=False,
        opset_version=opset,
        input_names=["x"],
        dynamic_axes=axes,
    )
    assert_equal(KINDS[kind].from_onnx(path), KINDS[kind].from_torch(module))


@pytest.mark.filterwarnings("ignore")
def test_relu(tmp_path: Path) -> None:
    module, path = make("rnn_tanh", 2, nonlinearity="relu"), tmp_path / "m.onnx"
    torch.onnx.export(module, (torch.zeros(5, 2, 3),), path, dynamo=False)
    found = RNNWeights.from_onnx(path)
    assert found.activation == "relu"
    assert_equal(found, RNNWeights.from_torch(module))


@pytest.mark.full  # the exporter takes seconds
@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("directions, batch_first", [(1, False), (2, True)])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.filterwarnings("ignore")
def test_the_newer_exporter(
    kind: str, directions: int, batch_first: bool, external: bool, tmp_path: Path
) -> None:
    """With fixed sizes, and with those of any batch; with the tensors in a file beside it."""
    pytest.importorskip("onnxscript", reason="the exporter needs it")
    module, path = make(kind, directions, batch_first=batch_first), tmp_path / "m.onnx"
    shapes = ({1 - batch_first: torch.export.Dim("n")},) if external else None
    torch.onnx.export(
        module,
        (torch.zeros(5, 2, 3),),
        path,
        dynamo=True,
        external_data=external,
        dynamic_shapes=shapes,
        verbose=False,
    )
    assert (tmp_path / "m.onnx.data").exists() == external
    assert_equal(KINDS[kind].from_onnx(path), KINDS[kind].from_torch(module))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_a_loop_that_the_newer_exporter_unrolled(tmp_path: Path) -> None:
    """PyTorch 2.13 writes no node RNN."""
    pytest.importorskip("onnxscript", reason="the exporter needs it")
    path = tmp_path / "m.onnx"
    module = make("rnn_tanh", 1)
    torch.onnx.export(module, (torch.zeros(5, 2, 3),), path, dynamo=True, verbose=False)
    with pytest.raises(ValueError, match="there is no node LSTM, GRU or RNN; an exporter may"):
        RNNWeights.from_onnx(path)
