"""The CUDA library in any TensorFlow, with a GPU or without one."""

import functools
import sys

import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

from tf_lstm_ops import _kernels, _library

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the library is for Linux")

TYPES = {tf.half, tf.bfloat16, tf.float32, tf.float64}


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    """Without a GPU the import does not load it."""
    tf.load_library(str(_library.gpu_path()))


@functools.cache
def gpu_kernels() -> dict[str, set[tf.DType]]:
    """Of each op of ours the types of its kernels on the GPU."""
    found: dict[str, set[tf.DType]] = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type == "GPU" and kernel.op.startswith("TfLstmOps>"):
            types = {t for c in kernel.constraint for t in c.allowed_values.list.type}
            found.setdefault(kernel.op, set()).update(map(tf.as_dtype, types))
    return found


def test_library_lies_beside_the_other(monkeypatch):
    monkeypatch.delenv("TF_LSTM_OPS_LIBRARY", raising=False)
    assert _library.gpu_path() == _library.path().with_name("tf_lstm_ops_cuda.so")


def test_an_empty_name_means_none(monkeypatch):
    monkeypatch.setenv("TF_LSTM_OPS_CUDA_LIBRARY", "")
    assert _library.gpu_path() is None


@pytest.mark.parametrize(
    "op",
    [
        *("LSTMBlockCell", "LSTMBlockCellGrad", "LSTMBlockCellFullGrad"),
        *("BlockLSTM", "BlockLSTMGrad", "BlockLSTMFullGrad", "BlockLSTMV2", "BlockLSTMGradV2"),
        *("KerasLSTM", "KerasLSTMGrad"),
        *("MPSGraphLSTM", "MPSGraphLSTMGradients"),
    ],
)
def test_op_has_kernels_of_every_type(op):
    assert gpu_kernels()[f"TfLstmOps>{op}"] >= TYPES


CUDNN = [f"CudnnRNN{kind}{version}" for kind in ("", "Backprop") for version in ("", "V2", "V3")]


@pytest.mark.parametrize("op", CUDNN)
def test_types_of_cudnn(op):
    assert gpu_kernels()[f"TfLstmOps>{op}"] == TYPES - {tf.bfloat16}


def test_ops_without_kernels():
    """docs/reference/gpu.md names the layers that they compute."""
    cpu = {k.op for k in kernels.get_all_registered_kernels().kernel if k.device_type == "CPU"}
    on_cpu = {op for op in cpu - gpu_kernels().keys() if op.startswith("TfLstmOps>")}
    assert on_cpu == {f"TfLstmOps>{op}" for op in _kernels.NOT_ON_CUDA}


BLOCK_OPS = ["BlockLSTM", "BlockLSTMV2", "BlockLSTMGrad", "BlockLSTMFullGrad"]
CUDNN_OPS = ["CudnnRNNV3", "CudnnRNNBackpropV3"]


@pytest.mark.parametrize(
    ("op", "names"),
    [
        *((op, ["seq_len_max"]) for op in BLOCK_OPS),
        *((op, ["sequence_lengths", "host_reserved"]) for op in CUDNN_OPS),
    ],
)
def test_what_stays_on_the_host(op, names):
    found = [
        list(kernel.host_memory_arg)
        for kernel in kernels.get_registered_kernels_for_op(f"TfLstmOps>{op}").kernel
        if kernel.device_type == "GPU"
    ]
    assert len(found) == len(gpu_kernels()[f"TfLstmOps>{op}"])
    assert all(arguments == names for arguments in found)
