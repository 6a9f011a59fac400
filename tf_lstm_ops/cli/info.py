"""``tf-lstm-ops info``: versions, the native library and the kernels it registered."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _gpu, _keras_backend, _library, _tf_private, raw_ops
from tf_lstm_ops.cli import info_of_sessions, output
from tf_lstm_ops.op_definitions import NAMESPACE

# Ops of TensorFlow for which this package registers kernels under TensorFlow's own names.
STOCK_NAMES = tuple(name for name in raw_ops.__all__ if name.startswith("CudnnRNN"))
NO_RECORD = "no record on this machine; tf-lstm-ops selftest makes one for a GPU"
NEXT = "tf-lstm-ops doctor MODEL"
DTYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


def run(arguments: argparse.Namespace) -> int:
    """Prints versions, the native library and the state of the CPU engine and of the GPU.

    Args:
      arguments: those of the command line.

    Returns:
      0.
    """
    found = facts()
    if arguments.json:
        if arguments.all:
            head, *rows = _kernel_table([*_own_ops(), *STOCK_NAMES])
            found["kernels"] = [dict(zip(head, row, strict=True)) for row in rows]
        output.print_json(found)
        return 0
    words = "; ".join(f"{layer}: {path}" for layer, path in found["gpu_paths"].items())
    of_processor = [
        ("caches", _words_of_caches(found["caches"])),
        ("rates", _words_of_rates(found["rates"])),
    ]
    output.print_facts(
        [
            *info_of_sessions.versions(
                found,
                ("TensorFlow", found["tensorflow"]),
                ("Keras", f"{found['keras']} ({found['keras_backend']} backend)"),
            ),
            ("native library", found["native_library"]),
            ("instruction set", found["instruction_set"]),
            ("available", ", ".join(found["instruction_sets"])),
            ("threads", str(found["threads"])),
            *(of_processor if arguments.all else ()),
            ("GPU", ", ".join(found["gpus"]) or "none that TensorFlow can use"),
            ("GPU kernels", found["gpu_kernels"]["reason"]),
            *([("layers on the GPU", words)] if found["gpus"] else []),
            ("self-test", "; ".join(found["selftests"]) or NO_RECORD),
            ("stock names served", "the CudnnRNN family, on the CPU"),
            *info_of_sessions.rows(found["session_library"]),
            *(() if arguments.all else [("next", NEXT)]),
        ]
    )
    if arguments.all:
        print()
        print("\n".join(output.columns(_kernel_table([*_own_ops(), *STOCK_NAMES]))))
    return 0


def facts() -> dict[str, Any]:
    """Versions, the native library and the state of the CPU engine and of the GPU.

    Returns:
      The document of ``tf-lstm-ops info --json``.
    """
    gpus = tf.config.list_physical_devices("GPU")
    details = map(tf.config.experimental.get_device_details, gpus)
    status = _gpu.status()
    return {
        **info_of_sessions.facts(tf.__version__),
        "keras": keras.__version__,
        "keras_backend": keras.backend.backend(),
        "native_library": str(_library.path()),
        **_library.cpu_info(),
        "gpus": [each.get("device_name", "unknown card") for each in details],
        "gpu_kernels": {"on": status.on, "state": status.state, "reason": status.reason},
        "gpu_paths": _gpu_paths(),
        "selftests": _gpu.records(),
        "stock_names": list(STOCK_NAMES),
    }


def _words_of_caches(caches: dict[str, int]) -> str:
    """The sizes of the caches in words."""
    l1, l2, shared = (
        f"{size / 2**20:.4g} MiB" if size >= 2**20 else f"{size / 2**10:.4g} KiB"
        for size in (caches["l1"], caches["l2"], caches["shared"])
    )
    return f"L1 {l1}, L2 {l2} a processor; shared {shared}"


def _words_of_rates(rates: dict[str, float]) -> str:
    """The rates of the processor in words."""
    return (
        f"{rates['multiply_add']:.3f} ns a vector multiply-add, {rates['l2_byte']:.4f} ns a byte "
        f"of L2, {rates['shared_byte']:.4f} ns more of the shared cache; measured, used for "
        "weights that exceed L2"
    )


def _gpu_paths() -> dict[str, str]:
    """What computes a call of some layers on a GPU."""
    if _keras_backend.problem() is not None:
        return {}
    from tf_lstm_ops.keras import GRU, LSTM, StackedLSTM

    layers = {
        "LSTM": LSTM(1),
        "GRU": GRU(1),
        "StackedLSTM": StackedLSTM(1, 2),
        "LSTM with peepholes": LSTM(1, use_peephole=True),
        "LSTM with layer normalisation": LSTM(1, layer_normalization=True),
    }
    return {name: layer.gpu_path for name, layer in layers.items()}


def _own_ops() -> list[str]:
    """The ops of this package in TensorFlow's op registry."""
    return sorted(name for name in _tf_private.op_names() if name.startswith(NAMESPACE))


def _kernel_table(ops: Iterable[str]) -> list[tuple[str, ...]]:
    """A table of the registered kernels."""
    present = {device.device_type for device in tf.config.list_physical_devices()}
    rows = [("op", "device", *(dtype.name for dtype in DTYPES))]
    for op in ops:
        dtypes: dict[str, set[int]] = {}
        for kernel in _tf_private.registered_kernels(op):
            allowed = (c.allowed_values.list.type for c in kernel.constraint if c.name == "T")
            dtypes.setdefault(kernel.device_type, set()).update(*allowed)
        for device, enums in sorted(dtypes.items()) or [("none", set())]:
            yes = "yes" if device in present else f"no {device} here"
            cells = (yes if dtype.as_datatype_enum in enums else "-" for dtype in DTYPES)
            rows.append((op, device, *cells))
    return rows
