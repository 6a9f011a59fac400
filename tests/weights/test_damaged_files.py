"""Damaged .safetensors files are refused."""

import json

import pytest

from tf_lstm_ops.weights import LSTMWeights


def tensor_file(shape):
    """A .safetensors file of tensors without elements."""
    entry = {"dtype": "F64", "shape": shape, "data_offsets": [0, 0]}
    text = json.dumps({"weight_ih_l0": entry, "weight_hh_l0": entry}).encode()
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "model.safetensors: the file is empty"),
        (b"\xff" * 40, "model.safetensors is no valid .safetensors file: "),
        (tensor_file([0, 2**60]), "weight_ih_l0 cannot be read: "),
        (tensor_file([-1]), "no valid .safetensors file: .*invalid value"),
        (tensor_file(["x" * 10**5]), "^.{,500}$"),
    ],
    ids=["empty", "no length", "large without elements", "negative size", "long text"],
)
def test_a_damaged_file(data, message, tmp_path):
    pytest.importorskip("safetensors", reason="reads the file")
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        LSTMWeights.from_safetensors(path)


def test_no_file(tmp_path):
    pytest.importorskip("safetensors", reason="reads the file")
    with pytest.raises(FileNotFoundError):
        LSTMWeights.from_safetensors(tmp_path / "model.safetensors")
