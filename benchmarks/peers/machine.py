"""The machine and the software on which measurements depend, and its family of processors."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peers.capacity import Capacity

# Families of processors: the names of their files in benchmarks/results, and their headings.
FAMILIES = {
    "amd_avx512": "AMD with AVX-512",
    "intel_avx512": "Intel with AVX-512",
    "avx2": "AVX2",
}
_VENDORS = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}
_PACKAGES = ("tf_lstm_ops", "tensorflow", "keras", "numpy")
_PEER_PACKAGES = ("torch", "onnx", "onnxruntime", "openvino", "tract", "jax")
# Environment variables by which libraries use fewer instructions than the processor has.
_LIMITS = (
    *("TF_LSTM_OPS_SIMD", "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY"),
    *("MKL_ENABLE_INSTRUCTIONS", "XLA_FLAGS"),
)

_MEASURED = (  # from the root
    *(":/cc", ":/tf_lstm_ops", ":/build_defs"),
    *(":/benchmarks/peers", ":/benchmarks/one_row", ":/benchmarks/latency_stream.c"),
)


def describe(capacity: Capacity) -> dict[str, Any]:
    """The properties of the machine and of the software on which the measurements depend.

    Args:
      capacity: of the processors, measured before.

    Returns:
      Family, processor, capacity, instruction set, platform, versions of the packages, commit, date
      and load, as text. The family is that of the instruction set in use; "processor family" is
      there if the processor itself belongs to another one.
    """
    from tf_lstm_ops import _library

    versions = []
    for package in (*_PACKAGES, *_PEER_PACKAGES):
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    engine = _library.cpu_info()
    limits = {name: os.environ[name] for name in _LIMITS if name in os.environ}
    return {
        **_families(engine["instruction_set"], engine["instruction_sets"][-1]),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "capacity": str(capacity),
        "instruction set": engine["instruction_set"],
        **({"limits": " ".join(f"{k}={v}" for k, v in limits.items())} if limits else {}),
        "platform": platform.platform(),
        "versions": f"Python {platform.python_version()}, " + ", ".join(versions),
        "commit": _commit(),
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "load at the start": f"{os.getloadavg()[0]:.1f}",
    }


def heading(machine: Mapping[str, str]) -> str:
    """The heading of the tables of a machine.

    Args:
      machine: its properties; see `describe`.

    Returns:
      Such as "AMD with AVX-512", "AVX2 instructions on AMD with AVX-512", or "AVX2, sessions" if
      the machine has the key "part".
    """
    names = [machine[key] for key in ("family", "processor family") if key in machine]
    processor = " instructions on ".join(FAMILIES.get(name, name) for name in names)
    return ", ".join(filter(None, (processor, machine.get("part"))))


def family(instruction_set: str, vendor: str) -> str:
    """The family of processors whose fastest instruction set is the given one.

    Args:
      instruction_set: its name in `tf-lstm-ops info`.
      vendor: the vendor in /proc/cpuinfo.

    Returns:
      A key of FAMILIES, or another name that can be that of a file.
    """
    if instruction_set == "x86-64-v3":
        return "avx2"
    if instruction_set.startswith("x86-64-v4"):
        return f"{_VENDORS.get(vendor, 'other')}_avx512"
    return instruction_set


def _families(used: str, newest: str) -> dict[str, str]:
    vendor = _cpuinfo("vendor_id")
    found = {"family": family(used, vendor), "processor family": family(newest, vendor)}
    return {key: name for key, name in found.items() if key == "family" or name != found["family"]}


def _processor() -> str:
    name = _cpuinfo("model name") or platform.processor() or platform.machine()
    numbers = [f"{key} {value}" for key in ("cpu family", "model") if (value := _cpuinfo(key))]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def _cpuinfo(key: str) -> str:
    """The first value of a key in Linux' /proc/cpuinfo; empty if there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    values = [line.partition(":")[2].strip() for line in lines if line.split("\t")[0] == key]
    return values[0] if values else ""


def _commit() -> str:
    """The commit of this clone, with "+changes" if files that are measured differ from it."""

    def git(*arguments: str) -> str:
        line = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip()

    try:
        commit = git("rev-parse", "--short=7", "HEAD")
        changes = git("status", "--porcelain", "--untracked-files=no", "--", *_MEASURED)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("+changes" if changes else "")
