"""The ONNX files of Silero VAD in one call, beside ONNX Runtime."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tf_lstm_ops.inference import Session
from zoo import silero
from zoo.packages import download, only

pytestmark = [pytest.mark.zoo, pytest.mark.downloads("packages with models")]

# By file: the sampling rate that it takes as an input, or None.
FILES = {
    "silero_vad.onnx": 16000,
    "silero_vad_16k_op15.onnx": 16000,
    "silero_vad_op18_ifless.onnx": 16000,
    "silero_vad_half.onnx": None,
    "silero_vad_openvino_16k.onnx": None,
}
CONTEXT, CHUNK = 64, 512  # samples at 16 kHz; half of them at 8 kHz

Array = np.ndarray


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime")
    package = download("silero-vad", tmp_path_factory.mktemp("silero"))
    return only(package, "silero_vad.onnx").parent


def chunks(audio: Array, rate: int) -> Array:
    """[chunks, 64 + 512], or half of it, with the last samples of the chunk before."""
    context, chunk = (size * rate // 16000 for size in (CONTEXT, CHUNK))
    padded = np.concatenate([np.zeros(context), audio, np.zeros(-len(audio) % chunk)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, context + chunk)[::chunk]
    return np.ascontiguousarray(windows, np.float32)


def probabilities(windows: Array, run: Any) -> Array:
    """Of each chunk, one after the other, with the state of the one before."""
    state, found = np.zeros((2, 1, 128), np.float32), []
    for window in windows:
        output, state = run(window[None], state)
        found.append(float(np.ravel(output)[0]))
    return np.array(found)


def theirs(path: Path, rate: int | None) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    fixed = {} if rate is None else {"sr": np.array(rate)}
    return lambda x, state: session.run(None, {"input": x, "state": state, **fixed})


def ours(path: Path, rate: int | None, samples: int) -> Any:
    shapes = {} if "openvino" in path.name else {"input": [None, samples]}
    constants = {} if rate is None else {"sr": rate}
    session = Session.from_onnx(path, shapes=shapes, constants=constants)

    def run(x: Array, state: Array) -> tuple[Array, Array]:
        found = session({"input": x, "state": state.swapaxes(0, 1)})
        return found["output"], found["stateN"].swapaxes(0, 1)

    return run


@pytest.mark.parametrize("name", FILES)
def test_speech(folder: Path, name: str) -> None:
    audio = silero.load_example().synthetic_speech(20)
    windows, path = chunks(audio, 16000), folder / name
    expected = probabilities(windows, theirs(path, FILES[name]))
    found = probabilities(windows, ours(path, FILES[name], CONTEXT + CHUNK))
    error = np.abs(found - expected).max()
    print(f"\n{name}: {error:.1e}", end="")
    assert error <= 1e-5  # float32 gives about 2e-6


def test_speech_at_8_khz(folder: Path) -> None:
    """The other branch of the file's If."""
    audio = silero.load_example().synthetic_speech(10)[::2]
    windows, path = chunks(audio, 8000), folder / "silero_vad.onnx"
    expected = probabilities(windows, theirs(path, 8000))
    found = probabilities(windows, ours(path, 8000, (CONTEXT + CHUNK) // 2))
    assert np.abs(found - expected).max() <= 1e-5
