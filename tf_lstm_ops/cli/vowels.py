"""The Japanese Vowels recordings that the demo learns from; see ``data/README.md``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import resources

import numpy as np
import numpy.typing as npt

SPEAKERS = 9
FEATURES = 12


@dataclass(frozen=True)
class Utterances:
    """B utterances of up to T frames.

    features: float32 [B, T, 12], LPC cepstrum coefficients, zero after an utterance's last frame.
    lengths: int32 [B], number of frames.
    speakers: int32 [B], 0 to 8.
    """

    features: npt.NDArray[np.float32]
    lengths: npt.NDArray[np.int32]
    speakers: npt.NDArray[np.int32]

    def is_frame(self) -> npt.NDArray[np.bool_]:
        """Boolean [B, T]: true at frames, false at padding."""
        return np.arange(self.features.shape[1]) < self.lengths[:, np.newaxis]


def load() -> tuple[Utterances, Utterances]:
    """The 270 training and the 370 test utterances, as recorded."""
    path = resources.files("tf_lstm_ops") / "data" / "japanese_vowels.npz"
    with path.open("rb") as file, np.load(file) as arrays:
        train, test = (
            Utterances(arrays[f"{part}_x"], arrays[f"{part}_len"], arrays[f"{part}_y"])
            for part in ("train", "test")
        )
    return train, test


def standardise(train: Utterances, test: Utterances) -> tuple[Utterances, Utterances]:
    """Each coefficient minus its mean over the training frames, over its standard deviation there.

    Padding stays exactly zero: that is how ``keras.layers.Masking`` knows the lengths.
    """
    frames = train.features[train.is_frame()]
    mean, deviation = frames.mean(axis=0), frames.std(axis=0)

    def scale(part: Utterances) -> Utterances:
        scaled = (part.features - mean) / deviation
        return replace(part, features=np.where(part.is_frame()[..., np.newaxis], scaled, 0))

    return scale(train), scale(test)
