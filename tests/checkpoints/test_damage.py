"""Mutated files are read or refused in words. A child process reads them: readers are C++, too."""

import subprocess
import sys
from pathlib import Path

import keras
import pytest

import tf_lstm_ops

from . import cells, written

PROGRAM = Path(__file__).parent / "damage.py"
LAYERS = (keras.layers.LSTM, keras.layers.GRU)


def write_files(folder, rng):
    """Files of each kind, and for each in `roots` the path by which it is read."""
    arrays = {
        **written.under("rnn/multi_rnn_cell/cell_0/lstm_cell", cells.joined(rng)),
        **written.under("rnn/gru_cell", cells.random_gru(rng)),
    }
    model = keras.Sequential(
        [keras.Input((None, 3)), *(layer(4, return_sequences=True) for layer in LAYERS)]
    )
    written.checkpoint(folder / "m.ckpt", arrays)
    written.checkpoint(folder / "old.ckpt", arrays, version=1)
    written.frozen_graph(folder / "m.pb", arrays)
    for name in ("m.h5", "m.keras"):
        model.save(folder / name)
    model.save_weights(folder / "m.weights.h5")
    roots = {path.name: path for path in folder.iterdir() if path.name != "checkpoint"}
    (folder / "roots").mkdir()
    for name, path in roots.items():
        root = folder / "m.ckpt" if name.startswith("m.ckpt") else path
        (folder / "roots" / name).write_text(str(root))


def damage(folder, seed, count):
    process = subprocess.run(
        [sys.executable, PROGRAM, folder, str(seed), str(count)],
        capture_output=True,
        text=True,
        timeout=300,
        env={"PYTHONPATH": str(Path(tf_lstm_ops.__file__).parents[1]), "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert process.returncode == 0, process.stderr[-3000:]


@pytest.mark.full
def test_a_few_mutated_files(rng, tmp_path):
    write_files(tmp_path, rng)
    damage(tmp_path, 1, 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_mutated_files(seed, rng, tmp_path):
    write_files(tmp_path, rng)
    damage(tmp_path, seed, 2000)
