"""Silero VAD: the weights of the package in a session, beside ONNX Runtime, in Python and C."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zoo import silero
from zoo.packages import download, only

pytestmark = [pytest.mark.zoo, pytest.mark.downloads("packages with models")]

Array = np.ndarray


@pytest.fixture(scope="module")
def example() -> Any:
    return silero.load_example()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime")
    folder = download("silero-vad", tmp_path_factory.mktemp("silero"))
    return only(folder, "silero_vad.onnx")


def test_a_minute_of_speech(example: Any, model: Path, tmp_path: Path) -> None:
    weights = example.read_weights(model)
    session = example.make_session(weights)
    audio = example.synthetic_speech(60)
    theirs = example.onnx_runtime(model)(audio)
    # Otherwise the comparison would show little: all kinds of chunks occur.
    assert (theirs > 0.5).mean() > 0.3 and (theirs < 0.05).mean() > 0.1
    [blocks] = session.stream()(example.chunks(audio)[np.newaxis])[..., 0]
    [whole] = session(example.chunks(audio)[np.newaxis])[..., 0]
    ours = {
        "reference": silero.probabilities(weights, audio),
        "chunks": example.probabilities(session, audio),
        "blocks": blocks,
        "whole": whole,
    }
    ours["C"], seconds = silero.run_program(
        silero.build_program("c11", tmp_path), session, audio, tmp_path
    )
    for name, found in ours.items():
        error = np.abs(found - theirs).max()
        print(f"\n{name}: {error:.1e}", end="")
        assert error <= 1e-5, name  # the goal; float32 gives about 2e-6
    print(f"\nC: {seconds}", end="")
    np.testing.assert_array_equal(ours["chunks"], blocks)
    np.testing.assert_array_equal(ours["C"].astype(np.float32), blocks)


def test_speech_of_the_torch_script_model(example: Any, model: Path) -> None:
    pytest.importorskip("torch")
    audio = example.synthetic_speech(5)
    session = example.make_session(example.read_weights(model))
    theirs = example.torch_script(model.with_name("silero_vad.jit"))(audio)
    assert np.abs(example.probabilities(session, audio) - theirs).max() <= 1e-5


def test_the_model_of_sequences(example: Any, model: Path) -> None:
    audio = example.synthetic_speech(20)
    path = model.with_name("silero_vad_16k_sequence.onnx")
    session = example.make_session(example.read_weights(model))
    theirs = example.onnx_runtime_of_sequences(path)(audio)
    assert np.abs(example.probabilities(session, audio) - theirs).max() <= 1e-5
