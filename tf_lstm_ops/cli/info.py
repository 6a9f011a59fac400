"""``tf-lstm-ops info``: versions, the native library and the kernels it registered."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterable

import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import kernels

from tf_lstm_ops import _gpu, _library, raw_ops
from tf_lstm_ops._version import __version__
from tf_lstm_ops.op_definitions import NAMESPACE

# Ops of TensorFlow for which this package registers kernels under TensorFlow's own names.
STOCK_NAMES = tuple(name for name in raw_ops.__all__ if name.startswith("CudnnRNN"))
NO_RECORD = "no record on this machine; tf-lstm-ops selftest makes one for a GPU"
DTYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line.

    Args:
      commands: the commands of ``tf-lstm-ops``.
    """
    summary = "print versions, native library, instruction set, threads and the state of the GPU"
    parser = commands.add_parser("info", help=summary, description=summary)
    parser.add_argument(
        "--all", action="store_true", help="also list the kernels by op, device and dtype"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints versions, the native library and the state of the CPU engine and of the GPU.

    Args:
      arguments: those of the command line.

    Returns:
      0.
    """
    cpu = _library.cpu_info()
    print_columns(
        [
            ("tf_lstm_ops", __version__),
            ("TensorFlow", tf.__version__),
            ("Keras", f"{keras.__version__} ({keras.backend.backend()} backend)"),
            ("NumPy", np.__version__),
            ("Python", platform.python_version()),
            ("platform", platform.platform()),
            ("native library", str(_library.path())),
            ("instruction set", cpu["instruction_set"]),
            ("available", ", ".join(cpu["instruction_sets"])),
            ("threads", str(cpu["threads"])),
            ("GPU", _gpus()),
            ("GPU kernels", _gpu.status().reason),
            ("self-test", "; ".join(_gpu.records()) or NO_RECORD),
            ("stock names served", "the CudnnRNN family, on the CPU"),
            ("kernels", "tf-lstm-ops info --all lists them by op, device and dtype"),
        ]
    )
    if arguments.all:
        print()
        print_columns(kernel_table([*own_ops(), *STOCK_NAMES]))
    return 0


def _gpus() -> str:
    """The GPUs of TensorFlow in words."""
    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    names = [each.get("device_name", "unknown card") for each in details]
    return ", ".join(names) or "none that TensorFlow can use"


def own_ops() -> list[str]:
    """The ops of this package in TensorFlow's op registry.

    Returns:
      Their names with namespace, sorted.
    """
    buffer = pywrap_tf_session.TF_GetAllOpList()
    try:
        ops = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(buffer))
    finally:
        pywrap_tf_session.TF_DeleteBuffer(buffer)
    return sorted(op.name for op in ops.op if op.name.startswith(NAMESPACE))


def kernel_table(ops: Iterable[str]) -> list[tuple[str, ...]]:
    """A table of the registered kernels.

    Args:
      ops: names of ops, with their namespaces.

    Returns:
      The heading, then one row for each op and device. Under the dtypes with a kernel is ``yes``,
      or, for example, ``no GPU here`` if TensorFlow has no device of this kind.
    """
    present = {device.device_type for device in tf.config.list_physical_devices()}
    rows = [("op", "device", *(dtype.name for dtype in DTYPES))]
    for op in ops:
        dtypes: dict[str, set[int]] = {}
        for kernel in kernels.get_registered_kernels_for_op(op).kernel:
            allowed = (c.allowed_values.list.type for c in kernel.constraint if c.name == "T")
            dtypes.setdefault(kernel.device_type, set()).update(*allowed)
        for device, enums in sorted(dtypes.items()) or [("none", set())]:
            yes = "yes" if device in present else f"no {device} here"
            cells = (yes if dtype.as_datatype_enum in enums else "-" for dtype in DTYPES)
            rows.append((op, device, *cells))
    return rows


def print_columns(rows: list[tuple[str, ...]]) -> None:
    """Prints a table with columns of equal width.

    Args:
      rows: the cells of each row; all rows have the same number of cells.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
