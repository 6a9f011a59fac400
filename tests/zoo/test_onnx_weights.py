"""Weights of Silero VAD's ONNX files, beside those of its TorchScript file.

Its .safetensors file has other numbers: those of another training.
"""

from pathlib import Path
from typing import Any

import pytest

from tf_lstm_ops.weights import GRUWeights, LSTMWeights
from weights.formats import assert_equal
from zoo.packages import download, only

pytestmark = [pytest.mark.zoo, pytest.mark.downloads("packages with models")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx")
    found = download("silero-vad", tmp_path_factory.mktemp("silero"))
    return only(found, "silero_vad.onnx").parent


def of_torch_script(folder: Path, model: str) -> Any:
    torch = pytest.importorskip("torch")
    prefix = f"{model}.decoder.rnn."
    state = torch.jit.load(folder / "silero_vad.jit").state_dict()
    layer = {
        f"{name.removeprefix(prefix)}_l0": tensor
        for name, tensor in state.items()
        if name.startswith(prefix)
    }
    return LSTMWeights.from_torch(layer)


def test_nodes_in_branches(folder: Path) -> None:
    """Their weights are outputs of Constant, Unsqueeze and Concat.

    There are two nodes for 16 kHz and two for 8 kHz: for a first chunk, and for others.
    """
    path = folder / "silero_vad.onnx"
    with pytest.raises(ValueError, match="there are 4 nodes for LSTMWeights; pass node=") as error:
        LSTMWeights.from_onnx(path)
    names = [part for part in str(error.value).split("'") if part.endswith("/LSTM")]
    assert len(names) == 4
    for name in names:
        model = "_model" if "then_branch" in name else "_model_8k"
        assert_equal(LSTMWeights.from_onnx(path, node=name), of_torch_script(folder, model))
    with pytest.raises(ValueError, match=r"LSTMWeights\.from_onnx read"):
        GRUWeights.from_onnx(path)


def test_a_file_of_one_node(folder: Path) -> None:
    found = LSTMWeights.from_onnx(folder / "silero_vad_16k_sequence.onnx")
    assert_equal(found, of_torch_script(folder, "_model"))


def test_a_file_without_a_node(folder: Path) -> None:
    with pytest.raises(ValueError, match="there is no node LSTM, GRU or RNN"):
        LSTMWeights.from_onnx(folder / "silero_vad_op18_ifless.onnx")
