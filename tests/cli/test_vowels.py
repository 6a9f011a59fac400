"""The shipped data are whole, and standardised by the training set alone."""

import hashlib
from importlib import resources

import numpy as np
import pytest

from tf_lstm_ops.cli import vowels

# As the data's page at the UCI repository states them.
UTTERANCES = {
    "train": [30, 30, 30, 30, 30, 30, 30, 30, 30],
    "test": [31, 35, 88, 44, 29, 24, 40, 50, 29],
}
SHORTEST, LONGEST, COEFFICIENTS = 7, 29, 12


@pytest.fixture(scope="module")
def parts() -> dict[str, vowels.Utterances]:
    return dict(zip(("train", "test"), vowels.load(), strict=True))


@pytest.mark.parametrize("name", UTTERANCES)
def test_counts_shapes_and_lengths(parts: dict[str, vowels.Utterances], name: str) -> None:
    part = parts[name]
    assert np.bincount(part.speakers).tolist() == UTTERANCES[name]
    assert part.features.shape == (sum(UTTERANCES[name]), LONGEST, COEFFICIENTS)
    assert part.features.dtype == np.float32
    assert np.isfinite(part.features).all()
    assert part.lengths.min() == SHORTEST
    assert part.lengths.max() <= LONGEST


@pytest.mark.parametrize("name", UTTERANCES)
def test_zero_exactly_after_the_last_frame(parts: dict[str, vowels.Utterances], name: str) -> None:
    for part in (parts[name], vowels.standardise(**parts)[name == "test"]):
        np.testing.assert_array_equal((part.features != 0).any(axis=-1), part.is_frame())


def test_longest_utterance_needs_no_padding(parts: dict[str, vowels.Utterances]) -> None:
    assert max(part.lengths.max() for part in parts.values()) == LONGEST


def test_file_is_the_one_its_readme_describes() -> None:
    folder = resources.files("tf_lstm_ops") / "data"
    readme = (folder / "README.md").read_text(encoding="utf-8")
    content = (folder / "japanese_vowels.npz").read_bytes()
    assert hashlib.sha256(content).hexdigest() in readme
    for statement in ("10.24432/C5NS47", "CC BY 4.0", "Kudo", "Toyama", "Shimbo"):
        assert statement in readme


def test_standardised_training_frames(parts: dict[str, vowels.Utterances]) -> None:
    train, _ = vowels.standardise(**parts)
    frames = train.features[train.is_frame()].astype(np.float64)
    # 4274 float32 additions lose at most 4274 unit roundoffs (6e-8 each), pairwise far fewer.
    np.testing.assert_allclose(frames.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(frames.std(axis=0), 1, atol=1e-5)


def test_test_utterances_are_scaled_by_the_training_statistics(
    parts: dict[str, vowels.Utterances],
) -> None:
    train, test = parts["train"], parts["test"]
    frames = train.features[train.is_frame()].astype(np.float64)
    expected = (test.features[test.is_frame()] - frames.mean(axis=0)) / frames.std(axis=0)
    _, scaled = vowels.standardise(train, test)
    # The package's mean and deviation are float32: some unit roundoffs on values of about 1 to 10.
    np.testing.assert_allclose(scaled.features[scaled.is_frame()], expected, rtol=1e-5, atol=1e-5)
