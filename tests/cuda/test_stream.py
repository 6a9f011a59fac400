"""The library that returns TensorFlow's CUDA stream, compiled against the installed TensorFlow."""

import ctypes
import subprocess
from pathlib import Path

import pytest

from cuda import build
from cuda.test_device import check
from tf_lstm_ops import _cuda_stream

pytestmark = pytest.mark.cuda

SOURCE = build.ROOT / "cc" / "tf" / "cuda" / "stream_library" / "stream.cc"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stream") / "stream.so"
    _cuda_stream._compile_library(SOURCE, path)
    return path


def test_needs_nothing_of_tensorflow(library):
    """Only the layout of its classes: it may be loaded before or after, and links nothing."""
    assert ctypes.CDLL(str(library)).tf_lstm_ops_cuda_stream
    dynamic = subprocess.run(["readelf", "-W", "-d", str(library)], capture_output=True, text=True)
    assert "tensorflow" not in dynamic.stdout


def test_a_device_without_a_stream_of_cudas(library, built):
    """The tests' device is no CUDA device, and TensorFlow's class for such says so."""
    [kind, message] = check("error", built, TF_LSTM_OPS_CUDA_STREAM_LIBRARY=str(library))
    assert kind == "FailedPreconditionError"
    assert "the device GPU has no CUDA stream" in message


def test_no_library_for_the_stream(built):
    [kind, message] = check("error", built, TF_LSTM_OPS_CUDA_STREAM_LIBRARY="/none.so")
    assert kind == "FailedPreconditionError"
    assert "TF_LSTM_OPS_CUDA_STREAM_LIBRARY" in message and "/none.so" in message
