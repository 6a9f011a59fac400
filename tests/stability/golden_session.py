"""A session with all kinds of layers, and the files of it that later versions must read.

* ``chain.session``: the file of the session.
* ``session.npz``: an input ``x`` and the output ``y``.
* ``tf_lstm_ops.h``: the header of the C library.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import keras
import numpy as np

from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import GRU, LSTM, Bidirectional

from .golden_ops import fixed

FILE, RESULTS, HEADER = "chain.session", "session.npz", "tf_lstm_ops.h"
INCLUDE = Path(__file__).resolve().parents[2] / "include"
SHAPE = (3, 7, 4)  # of x: B, T, I


def session() -> Session:
    """The session."""
    sequence = {"return_sequences": True}
    model = keras.Sequential(
        [
            keras.Input((None, SHAPE[-1])),
            keras.layers.Masking(0.5),
            LSTM(5, use_peephole=True, cell_clip=0.5, projection_size=3, **sequence),
            LSTM(5, activation="relu", recurrent_activation="hard_sigmoid", **sequence),
            LSTM(5, layer_normalization="addons", zero_output_for_mask=True, **sequence),
            GRU(5, go_backwards=True, **sequence),
            GRU(5, reset_after=False, **sequence),
            Bidirectional(GRU(5, layer_normalization=True, **sequence), merge_mode="sum"),
            keras.layers.Dense(4, "gelu"),
            keras.layers.Dense(3, "softmax"),
        ]
    )
    for k, weight in enumerate(model.weights):
        weight.assign(fixed(k, *weight.shape))
    return Session(model)


def write(folder: Path) -> None:
    """Writes the files.

    Args:
      folder: an existing one.
    """
    made = session()
    made.save(folder / FILE)
    x = fixed(0, *SHAPE).numpy()
    x[1, 2:4] = 0.5  # masked
    np.savez_compressed(folder / RESULTS, x=x, y=made(x))
    shutil.copyfile(INCLUDE / HEADER, folder / HEADER)
