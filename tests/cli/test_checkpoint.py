"""``tf-lstm-ops checkpoint``."""

import json
import os
import resource
import subprocess
import sys

import keras
import numpy as np
import pytest

from checkpoints import cells, written
from tf_lstm_ops import __main__
from tf_lstm_ops.weights import LSTMWeights

SCOPE = "rnn/basic_lstm_cell"


@pytest.fixture
def file(rng, tmp_path):
    arrays = {
        **written.under(SCOPE, cells.joined(rng)),
        **written.under("rnn/gru_cell", cells.random_gru(rng)),
    }
    return written.checkpoint(tmp_path / "m.ckpt", arrays)


def test_it_lists_candidates(file, capsys):
    assert __main__.main(["checkpoint", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["name", "kind", "layers"]
    assert lines[1].split()[:9] == [SCOPE, "lstm", "1", "1", "3", "4", "-", "float32", "+1"]
    assert lines[2].split()[:2] == ["rnn/gru_cell", "gru"]
    assert lines[3] == "rnn/gru_cell: reset_after=False."


def test_json(file, capsys):
    assert __main__.main(["checkpoint", str(file), "--json", "--layer", SCOPE]) == 0
    document = json.loads(capsys.readouterr().out)
    (found,) = document["candidates"]
    assert document["written"] is None
    assert (found["name"], found["kind"], found["forget_bias"]) == (SCOPE, "lstm", 1.0)
    assert (found["input_size"], found["units"], found["projection_size"]) == (3, 4, None)


def test_it_writes_safetensors(file, tmp_path, capsys):
    target = tmp_path / "out.safetensors"
    arguments = ["checkpoint", str(file), "--layer", SCOPE, "--to", str(target)]
    assert __main__.main(arguments) == 0
    want = LSTMWeights.from_checkpoint(file)
    assert f"{target} was written, with 1 added to the bias of the forget gate." in (
        capsys.readouterr().out
    )
    got = LSTMWeights.from_safetensors(target)
    np.testing.assert_array_equal(got.cells[0].kernel, want.cells[0].kernel)
    np.testing.assert_array_equal(got.cells[0].bias, want.cells[0].bias)


def test_it_writes_arrays(file, tmp_path, capsys):
    target = tmp_path / "out.npz"
    arguments = ["checkpoint", str(file), "--layer", "rnn/gru_cell", "--to", str(target)]
    assert __main__.main(arguments) == 0
    with np.load(target, allow_pickle=False) as arrays:
        assert int(arrays["directions"]) == 1 and not arrays["reset_after"]
        assert arrays["cells_0_kernel"].shape == (3, 12)
    assert f"{target} was written." in capsys.readouterr().out
    arguments[-1] = str(tmp_path / "out.safetensors")
    assert __main__.main(arguments) == 1  # PyTorch has no such GRU
    assert "reset_after=False" in capsys.readouterr().err


def test_several_and_none(file, tmp_path, capsys):
    assert __main__.main(["checkpoint", str(file), "--to", str(tmp_path / "o.npz")]) == 1
    assert f"several; pass layer=, one of '{SCOPE}', 'rnn/gru_cell'" in capsys.readouterr().err
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]).save(tmp_path / "m.keras")
    assert __main__.main(["checkpoint", str(tmp_path / "m.keras")]) == 1
    assert capsys.readouterr().out == "There is no LSTM or GRU of a known family.\n"
    assert __main__.main(["checkpoint", str(tmp_path / "no")]) == 1
    assert "there is neither a file" in capsys.readouterr().err


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_it_does_not_write_what_it_reads(link, rng, tmp_path, capsys):
    pytest.importorskip("safetensors")
    source = target = tmp_path / "m.safetensors"
    weights = LSTMWeights.from_block_cell(
        *cells.joined(rng).values(), gate_order="ICFO", forget_bias=0.0
    )
    weights.to_safetensors(source)
    before = source.read_bytes()
    if link is not None:
        target = tmp_path / "other.safetensors"
        link(source, target)
    with pytest.raises(SystemExit):
        __main__.main(["checkpoint", str(source), "--to", str(target)])
    assert "the file to write is the one to read" in " ".join(capsys.readouterr().err.split())
    assert source.read_bytes() == before


@pytest.mark.full
@pytest.mark.parametrize("end", ["npz", pytest.param("safetensors", marks=pytest.mark.full)])
def test_a_full_disk_keeps_the_old_file(end, tmp_path):
    """A limit of the size of files stands for it."""
    pytest.importorskip("safetensors")
    arrays = {"W_0": np.zeros((7, 16), "f"), "B": np.zeros(16, "f")}
    source, target = tmp_path / "m.h5", tmp_path / f"out.{end}"
    written.hdf5(source, written.under("RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell", arrays))
    target.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-m", "tf_lstm_ops", "checkpoint", str(source), "--to", str(target)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "File too large" in done.stderr
    assert target.read_bytes() == b"old" and len(os.listdir(tmp_path)) == 2
