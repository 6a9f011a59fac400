"""The Japanese Vowels recordings, the data of the demo; see ``data/README.md``."""

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

    Attributes:
      features: float32 [B, T, 12], LPC cepstrum coefficients, zero after an utterance's last frame.
      lengths: int32 [B], number of frames.
      speakers: int32 [B], 0 to 8.
    """

    features: npt.NDArray[np.float32]
    lengths: npt.NDArray[np.int32]
    speakers: npt.NDArray[np.int32]

    def is_frame(self) -> npt.NDArray[np.bool_]:
        """Marks the frames that are not padding.

        Returns:
          Boolean [B, T], true at frames.
        """
        return np.arange(self.features.shape[1]) < self.lengths[:, np.newaxis]


def load() -> tuple[Utterances, Utterances]:
    """Reads the recordings from the package.

    Returns:
      The 270 training and the 370 test utterances, as recorded.
    """
    path = resources.files("tf_lstm_ops") / "data" / "japanese_vowels.npz"
    with path.open("rb") as file, np.load(file) as arrays:
        train, test = (
            Utterances(arrays[f"{name}_x"], arrays[f"{name}_len"], arrays[f"{name}_y"])
            for name in ("train", "test")
        )
    return train, test


def standardise(train: Utterances, test: Utterances) -> tuple[Utterances, Utterances]:
    """Standardises each coefficient by its mean and standard deviation over the training frames.

    Padding stays exactly zero: ``keras.layers.Masking`` derives the lengths from it.

    Args:
      train, test: the utterances; not changed.

    Returns:
      The standardised training and test utterances.
    """
    frames = train.features[train.is_frame()]
    mean, deviation = frames.mean(axis=0), frames.std(axis=0)

    def scale(data: Utterances) -> Utterances:
        scaled = (data.features - mean) / deviation
        return replace(data, features=np.where(data.is_frame()[..., np.newaxis], scaled, 0))

    return scale(train), scale(test)
