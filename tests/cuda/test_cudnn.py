"""How the CudnnRNN family calls cuDNN. test_suites.py checks the results."""

import json
from pathlib import Path

import pytest

from cuda.test_device import check, without

pytestmark = pytest.mark.cuda

UNPACKED, BATCH_MAJOR = 0, 2
TF32, FMA = 0, 3  # math types: the default may use TF32


def passes(name: str, built: Path, folder: Path) -> list[dict]:
    """The passes of cuDNN."""
    log = folder / "cudnn.log"
    log.touch()
    check(name, built, FAKE_CUDNN_LOG=str(log))
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_without_cudnn(tmp_path, built):
    """The error names its package."""
    folder = without("libcudnn.so.9", built, tmp_path / "incomplete")
    with pytest.raises(AssertionError, match=r"libcudnn.*nvidia-cudnn-cu12"):
        check("layouts", folder)


def test_a_reserve_space_serves_twice(built):
    """cuDNN's backward pass overwrites its own reserve."""
    assert check("gradients_again", built) == [True, True]


def test_layouts(tmp_path, built):
    """There is no pass for sequences without rows."""
    found = [(p["layout"], p["training"]) for p in passes("layouts", built, tmp_path)]
    assert found == [(UNPACKED, 1), (BATCH_MAJOR, 1), (UNPACKED, 0)]


def test_float_is_multiplied_as_tensorflow_allows(tmp_path, built):
    assert [p["math"] for p in passes("precision", built, tmp_path)] == [TF32, FMA]


def test_what_the_kernels_refuse(built):
    size, forward, backward = check("refused", built)
    assert "reserve_space must have" in size and "it must come unchanged" in size
    for error in (forward, backward):
        assert "dropout between layers on CUDA needs tf_lstm_ops.raw_ops" in error
