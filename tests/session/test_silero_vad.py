"""examples/silero_vad.py and silero_vad.c with random weights; tests/zoo has the real ones."""

import subprocess
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tf_lstm_ops.inference import Session
from zoo import silero


@pytest.fixture(scope="module")
def example() -> Any:
    return silero.load_example()


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    return silero.random_weights(np.random.default_rng(4))


def test_equations(example: Any, weights: dict[str, np.ndarray]) -> None:
    session = example.make_session(weights)
    audio = example.synthetic_speech(2)[:-100]  # the last chunk is shorter
    found = example.probabilities(session, audio)
    wanted = silero.probabilities(weights, audio)
    assert found.shape == wanted.shape and np.ptp(wanted) > 0.01
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)  # float32
    [whole] = session(example.chunks(audio)[np.newaxis])[..., 0]
    np.testing.assert_array_equal(found, whole)


@pytest.mark.parametrize("language", ["c11", "c++17"])
def test_c(example: Any, weights: dict[str, np.ndarray], tmp_path: Path, language: str) -> None:
    session = example.make_session(weights)
    audio = example.synthetic_speech(1)[:-100]
    program = silero.build_program(language, tmp_path)
    found, times = silero.run_program(program, session, audio, tmp_path)
    wanted = example.probabilities(Session.load(tmp_path / "silero_vad.session"), audio)
    np.testing.assert_array_equal(found.astype(np.float32), wanted)
    assert times.startswith(f"{len(wanted)} chunks, ")


def test_errors_in_c(example: Any, tmp_path: Path) -> None:
    program = silero.build_program("c11", tmp_path)
    (tmp_path / "audio.f32").write_bytes(b"")
    from tf_lstm_ops.inference import layers

    path = tmp_path / "other.session"
    Session.from_layers([layers.Dense(np.ones((3, 1)))]).save(path)
    for arguments, text in [
        ([], "usage: silero_vad FILE AUDIO"),
        (["missing", "audio.f32"], "cannot open the session"),
        ([str(path), "audio.f32"], "is not a file of silero_vad.py"),
    ]:
        done = subprocess.run([str(program), *arguments], capture_output=True, text=True)
        assert done.returncode > 0 and text in done.stderr


def test_weights_of_the_branches_of_an_onnx_graph(example: Any, tmp_path: Path) -> None:
    """The package's file has a branch for each rate, with constants in it."""
    onnx = pytest.importorskip("onnx")
    from onnx import helper, numpy_helper

    def branch(size: int) -> Any:
        basis = np.full((2 * size + 2, 1, size), size, np.float32)
        nodes = [
            helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
            for name, array in [
                ("If_0__stft.forward_basis_buffer", basis),
                ("If_0__encoder.0.reparam_conv.bias", basis[:, 0, 0]),
            ]
        ]
        return helper.make_graph(nodes, "branch", [], [])

    node = helper.make_node("If", ["rate"], ["y"], else_branch=branch(128), then_branch=branch(256))
    path = tmp_path / "model.onnx"
    path.write_bytes(helper.make_model(helper.make_graph([node], "g", [], [])).SerializeToString())
    found = example.read_weights(path)
    assert {*found} == {"stft.forward_basis_buffer", "encoder.0.bias"}
    assert found["encoder.0.bias"].max() == 256
    path.write_bytes(helper.make_model(branch(128)).SerializeToString())
    with pytest.raises(SystemExit, match="no model for 16 kHz"):
        example.read_weights(path)
    assert onnx.load(path).graph.node


def test_segments(example: Any) -> None:
    """Chunks of 0.032 s; a pause of 0.3 s ends a segment."""
    speech = np.zeros(100)
    speech[[3, 4, 8, 40, 41]] = 0.9
    found = example.segments(speech)
    np.testing.assert_allclose(found, [(3 * 0.032, 9 * 0.032), (40 * 0.032, 42 * 0.032)])
    assert example.segments(np.zeros(3)) == []


def test_wave_files(example: Any, tmp_path: Path) -> None:
    samples = np.array([[1, -5], [2, -6], [-32768, 7]], "<i2")
    for rate in (16000, 8000):
        with wave.open(str(tmp_path / "audio.wav"), "wb") as file:
            file.setnchannels(2)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes(samples.tobytes())
        if rate == 16000:
            found = example.read_wave(str(tmp_path / "audio.wav"))
            np.testing.assert_array_equal(found, np.array([1, 2, -32768]) / 32768)
            continue
        with pytest.raises(SystemExit, match="must have 16000 samples"):
            example.read_wave(str(tmp_path / "audio.wav"))


def test_without_the_package() -> None:
    command = [sys.executable, str(silero.EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        pytest.skip("silero-vad is installed")
    assert "pip install --no-deps silero-vad" in done.stderr
