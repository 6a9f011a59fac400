"""Which kernel computes a call on a machine with a GPU, and where the call is placed.

On an NVIDIA GPU (`may_use_cuda`) the functions of `raw_ops` and the layers take TensorFlow's own
CudnnRNNV3 for what cuDNN has, whether the kernels are on or off. Other calls take plain ops if they
have no kernel (`needs_plain_ops`). On Metal they do not: a loop of plain ops makes slices of lists
of tensors, and the memory of tensorflow-metal has no addresses for a slice. There the kernels are
few; all other calls run on the CPU.
"""

from __future__ import annotations

import functools
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import tensorflow as tf

from tf_lstm_ops import _cells, _gpu, _kernels, _targets, _tf_private
from tf_lstm_ops._targets import CUDA, CUDNN, METAL

# What computes a call on a GPU: "cuDNN" is TensorFlow's own CudnnRNNV3; "GPU kernels" and "CPU
# kernels" are those of this package; "plain ops" is a loop of TensorFlow's ops.
Path = Literal["no GPU", "cuDNN", "GPU kernels", "plain ops", "CPU kernels"]

_ROWS_BEFORE_MACOS_14_4 = 32768
_PROJECTION = 8  # its position among the inputs of KerasLSTM


def may_use_cuda() -> bool:
    """Whether a call that is made or traced here may run on an NVIDIA GPU.

    Returns:
      True if there is one and no tf.device names another device. A trace without a device may later
      run on any device.
    """
    if not _gpu.status().cuda or _gpu.status().state == "no GPU":
        return False
    return _tf_private.device_type() in (None, "GPU") and bool(tf.config.get_visible_devices("GPU"))


def _has_kernel(op: str, arguments: Mapping[str, Any] | None = None) -> bool:
    """Whether a kernel of this package for the GPU computes a call.

    No arguments: a call in float32 without options. False while the kernels are off.
    """
    if not _gpu.status().on:
        return False
    if not _gpu.status().cuda:
        return op in _kernels.ON_METAL
    if op in _kernels.NOT_ON_CUDA:
        return False
    given = arguments or {}
    if op.startswith("CudnnRNN") and "input" in given:
        return given["input"].dtype != tf.bfloat16
    if not op.startswith("Keras"):
        return True
    return _targets.computes(CUDA, op.removesuffix("Grad"), _targets.of_call(given))


def needs_plain_ops(op: str, arguments: Mapping[str, Any]) -> bool:
    """Whether plain ops compute a call that may run on an NVIDIA GPU and that cuDNN lacks.

    Args:
      op: the op's name without its namespace.
      arguments: its inputs and attributes by name.

    Returns:
      False if a kernel for the GPU computes it; and for an eager call while the kernels are off:
      the kernel for the CPU is faster than a loop of tens of ops a step.
    """
    if tf.executing_eagerly() and not _gpu.status().on:
        return False
    # A gradient op needs the dropout mask, which is in the fused op's reserve_space.
    return not _has_kernel(op, arguments) and not arguments.get("dropout")


def on_metal() -> bool:
    """Whether the Metal kernels run.

    Returns:
      True on a Mac's GPU where they are on.
    """
    return _gpu.status().on and not _gpu.status().cuda


def may_use_metal(dtype: tf.DType) -> bool:
    """Whether a call that is made or traced here may run Metal kernels.

    Args:
      dtype: the type of the call.

    Returns:
      True if they are on, have the type, and no tf.device names another device than the GPU.
    """
    return on_metal() and dtype != tf.float64 and _tf_private.device_type() in (None, "GPU")


def metal_lacks(op: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the Metal kernel of an op refuses a call.

    Args:
      op: the op's name without its namespace.
      arguments: its attributes by name.

    Returns:
      True for a call of CudnnRNNV3 or its gradient with another cell than an LSTM, or with a
      projection.
    """
    if not op.startswith("CudnnRNN"):
        return False
    cell = _cells.BY_MODE.get(arguments.get("rnn_mode", _cells.LSTM.modes[0]))
    given = {"projection_size": True} if arguments.get("num_proj") else {}
    # A mode that is none gets the error of the op on the CPU.
    return cell is None or not _targets.computes(METAL, f"Stacked{cell.keras}", given)


def placed(op: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """An op's function that runs on the CPU the calls that its GPU kernel refuses.

    In a graph, calls of KerasLSTM are placed on every machine: another one may load the graph.

    Args:
      op: the op's name without its namespace.
      function: of the op; its attributes are given by name.

    Returns:
      The function itself where no kernel refuses a call.
    """
    refuses: Callable[..., bool]
    if op in ("KerasLSTM", "KerasLSTMGrad"):
        refuses = _cuda_lacks
    elif on_metal() and op in _kernels.ON_METAL:

        def refuses(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
            return metal_lacks(op, kwargs) or _has_too_many_rows(args, kwargs)

    else:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not refuses(args, kwargs) or _tf_private.device_type() == "CPU":
            return function(*args, **kwargs)
        with tf.device("CPU:0"):
            return function(*args, **kwargs)

    return call


def _has_too_many_rows(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether MPSGraph of this macOS refuses the products of a call, as far as sizes are known."""
    version = platform.mac_ver()[0]
    if not version or tuple(map(int, version.split("."))) >= (14, 4):
        return False
    # The first input is a sequence [T, B, ...] in either order, or a step [B, ...].
    first = args[0] if args else next(kwargs[n] for n in ("x", "input", "source") if n in kwargs)
    shape = tf.TensorShape(getattr(first, "shape", None))
    return bool(shape.rank) and math.prod(n or 0 for n in shape[:-1]) > _ROWS_BEFORE_MACOS_14_4


def _cuda_lacks(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether the CUDA kernel of KerasLSTM or of its gradient refuses a call."""
    if tf.executing_eagerly() and not _gpu.status().on:
        return False
    attributes = {name: v for name, v in kwargs.items() if isinstance(v, bool | int | float | str)}
    projection = args[_PROJECTION] if args else kwargs["projection"]
    given = _targets.of_call({**attributes, "projection": projection})
    return not _targets.computes(CUDA, "KerasLSTM", given)


def path(op: str, options: tuple[str, _targets.Given]) -> Path:
    """What computes a layer on a GPU.

    Args:
      op: the op that it runs, without its namespace.
      options: its op and options in `_targets`.

    Returns:
      One of Path.
    """
    if _gpu.status().state == "no GPU" or not tf.config.get_visible_devices("GPU"):
        return "no GPU"
    if _gpu.status().cuda and _targets.computes(CUDNN, *options):
        return "cuDNN"
    if on_metal():
        return "GPU kernels" if _targets.computes(METAL, *options) else "CPU kernels"
    if _targets.computes(CUDA, *options) and _has_kernel(op):
        return "GPU kernels"
    return "plain ops" if _gpu.status().cuda else "CPU kernels"
