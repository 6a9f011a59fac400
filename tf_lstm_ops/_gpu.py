"""Whether the GPU kernels may run: only after their self-test has passed on this machine.

`decide` is called when the ops are registered. Where it refuses, and on a machine without a GPU,
the library of the GPU kernels is not loaded. TensorFlow then has no GPU kernel of the fused ops and
cannot run one, whoever made the graph. It runs a fused op on the CPU, for example of a loaded
SavedModel.

The self-test writes a record for each card to the user's cache. A record holds for the machine that
it describes: another driver, TensorFlow, plugin or version of this package makes it outdated.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops import _user_cache
from tf_lstm_ops._version import __version__

VARIABLE = "TF_LSTM_OPS_GPU"
COMMAND = "tf-lstm-ops selftest --device GPU"
# The driver's devices on Linux, and in the Windows subsystem for Linux.
DRIVERS = ("/dev/nvidiactl", "/dev/dxg")

_CPU_INFO = pathlib.Path("/proc/cpuinfo")
_FOLDER = "selftest"
_METAL_PLUGINS = ("tensorflow-metal", "tensorflow-metal-plugin")

Machine = dict[str, str]


class Status(NamedTuple):
    """Whether the GPU kernels run.

    Attributes:
      on: whether they do.
      state: "no library", "no GPU", "forced", "off", "passed", "never run", "failed", "outdated" or
        "broken".
      reason: the state in words.
      cuda: whether the GPU is one of NVIDIA's. There TensorFlow's own ops replace, in graphs,
        kernels that are off or do not exist. On other GPUs the CPU's kernels replace them.
    """

    on: bool
    state: str
    reason: str
    cuda: bool = False


_NO_GPU = Status(False, "no GPU", "not loaded, because TensorFlow has no GPU")

_status = Status(False, "no library", "none: this package was built without them")


def status() -> Status:
    """What `decide` decided.

    Returns:
      The status for this process.
    """
    return _status


def decide(library: pathlib.Path) -> Status:
    """Decides for this process whether the GPU kernels run. Logs one line if it refuses a GPU.

    Args:
      library: the library of the kernels.

    Returns:
      The status.

    Raises:
      ValueError: the environment variable TF_LSTM_OPS_GPU is not 0, 1 or auto.
    """
    global _status
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in ("0", "1", "auto"):
        raise ValueError(
            f"the environment variable {VARIABLE} must be 0, 1 or auto, but is {wanted}"
        )
    if wanted == "1":
        _status = Status(True, "forced", f"on, because {VARIABLE} is 1")
    elif not _has_gpu():
        _status = _NO_GPU
    elif wanted == "0":
        _status = Status(False, "off", f"off, because {VARIABLE} is 0")
    else:
        _status = _by_records(library)
    _status = _status._replace(cuda=library.stem.endswith("cuda"))
    if not _status.on and _status.state != "no GPU" and wanted == "auto":
        instead = "Layers and ops run on the CPU"
        if _status.cuda:
            instead = "Plain TensorFlow ops or the CPU, which are slower, compute what cuDNN lacks"
        tf.get_logger().warning(
            f"tf_lstm_ops: GPU kernels are {_status.reason}. {instead}. Run `{COMMAND}` once to "
            f"turn the kernels on, or set {VARIABLE}=0 to hide this line."
        )
    return _status


def set_broken(error: Exception) -> None:
    """Says that the library of the GPU kernels cannot be loaded. Logs one line.

    Args:
      error: TensorFlow's error, or that of the stream library.
    """
    global _status
    reason = f"off, because their library cannot be loaded: {error}"
    _status = _status._replace(on=False, state="broken", reason=reason)
    tf.get_logger().warning(f"tf_lstm_ops: GPU kernels are {reason}")


def set_missing() -> None:
    """Says that the package was built without GPU kernels."""
    global _status
    _status = _status._replace(cuda=tf.test.is_built_with_cuda() and _has_gpu())


def _has_gpu() -> bool:
    """Whether TensorFlow has a GPU. CUDA is not initialised: the process may fork later."""
    if tf.test.is_built_with_cuda():
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
        return any(map(os.path.exists, DRIVERS)) and not hidden
    return bool(tf.config.list_physical_devices("GPU"))


def _by_records(library: pathlib.Path) -> Status:
    """The status by the records of all cards of the machine."""
    if not any(_user_cache.path(_FOLDER).glob("*.json")):  # before CUDA is initialised
        return _never_run("this machine")
    devices = tf.config.list_physical_devices("GPU")
    found = [_by_record(machine(device, library)) for device in devices]
    off = [status for status in found if not status.on]
    return (off or found)[0] if found else _NO_GPU


def _by_record(machine: Machine) -> Status:
    card = machine["card"]
    try:
        file = _record(card)
        for part in (_user_cache.path(), file.parent, file):
            _user_cache.require_own(part)
        record = json.loads(file.read_text())
        recorded, failures, date = dict(record["machine"]), record["failures"], record["date"]
    except (OSError, ValueError, KeyError, TypeError):
        return _never_run(card)
    changed = [name for name, value in machine.items() if recorded.get(name) != value]
    if changed:
        reason = f"off, because since their self-test on {date} changed: {', '.join(changed)}"
        return Status(False, "outdated", reason)
    if failures:
        reason = f"off, because their self-test failed on {card} ({date}): {failures[0]}"
        return Status(False, "failed", reason)
    return Status(True, "passed", f"on, their self-test passed on {card} ({date})")


def records() -> list[str]:
    """The self-tests that are recorded on this machine, also outdated ones.

    Returns:
      The outcome, the card and the date of each, in words.
    """
    found = []
    for file in sorted(_user_cache.path(_FOLDER).glob("*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            record = json.loads(file.read_text())
            failures = record["failures"]
            outcome, first = ("failed", f": {failures[0]}") if failures else ("passed", "")
            found.append(f"{outcome} on {record['machine']['card']} ({record['date']}){first}")
    return found


def _never_run(where: str) -> Status:
    return Status(False, "never run", f"off, because their self-test has not run on {where}")


def write_record(machine: Machine, failures: Sequence[str]) -> pathlib.Path:
    """Records the outcome of a self-test.

    Args:
      machine: what `machine` returned in the process that ran the cases.
      failures: a line for each failed case; none if the self-test passed.

    Returns:
      The file.

    Raises:
      OSError: the file cannot be written, or others can write to its folder.
    """
    date = datetime.datetime.now().strftime("%Y-%m-%d %H:%M")
    file = _record(machine["card"])
    _user_cache.folder(_FOLDER)
    record = {"machine": machine, "failures": list(failures), "date": date}
    _user_cache.write(file, json.dumps(record, indent=1))
    return file


def _record(card: str) -> pathlib.Path:
    """The file of a card of this machine: home folders may be shared."""
    name = f"{platform.node()} {card}"
    return _user_cache.path(_FOLDER, hashlib.sha256(name.encode()).hexdigest()[:16] + ".json")


def machine(device: Any, library: pathlib.Path) -> Machine:
    """What a record depends on.

    Args:
      device: a physical device, of ``tf.config.list_physical_devices``.
      library: the library of the GPU kernels.

    Returns:
      Names and values. "card" is the card, the chip or, of a CPU, the processor.
    """
    details = tf.config.experimental.get_device_details(device)
    capability = ".".join(map(str, details.get("compute_capability", ())))
    name = details.get("device_name", "unknown card")
    on_processor = platform.system() == "Darwin" or device.device_type == "CPU"
    return {
        "card": _processor() if on_processor else f"{name} {capability}".strip(),
        "driver": _driver(),
        "TensorFlow": f"{tf.__version__} {tf.__git_version__}",
        "plugin": ", ".join(_plugins()) or "none",
        "CUDA libraries": _cuda_libraries() if library.stem.endswith("cuda") else "none",
        "tf_lstm_ops": __version__,
        # A library that was built from changed sources has the same version.
        "library": hashlib.sha256(library.read_bytes()).hexdigest()[:16],
    }


def _processor() -> str:
    """Finds out the name of the processor."""
    name = ""
    if platform.system() == "Darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        name = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    with contextlib.suppress(OSError):  # only Linux has this file
        found = re.search(r"^model name\s*: (.+)$", _CPU_INFO.read_text(), re.MULTILINE)
        name = found[1].strip() if found else ""
    return name or platform.processor() or platform.machine()


def _driver() -> str:
    """The version of macOS or of NVIDIA's driver."""
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0]}"
    with contextlib.suppress(OSError):
        return pathlib.Path("/proc/driver/nvidia/version").read_text().splitlines()[0]
    with contextlib.suppress(OSError, AttributeError):  # in the Windows subsystem for Linux
        version = ctypes.c_int()
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
        return f"CUDA {version.value}"
    return "unknown"


def _plugins() -> Iterator[str]:
    """The plugins for Metal."""
    for name in _METAL_PLUGINS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            yield f"{name} {importlib.metadata.version(name)}"


def _cuda_libraries() -> str:
    """The versions that the libraries of CUDA say themselves, whoever installed them."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    found = []
    if cudnn := _open("cudnn", "libcudnn.so.9"):
        cudnn.cudnnGetVersion.restype = ctypes.c_size_t
        found.append(f"cuDNN {cudnn.cudnnGetVersion()}")
    if nvrtc := _open("cuda_nvrtc", "libnvrtc.so.12", "libnvrtc.so.13"):
        nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        found.append(f"NVRTC {major.value}.{minor.value}")
    if cublas := _open("cublas", "libcublas.so.12", "libcublas.so.13"):
        cublas.cublasGetProperty(0, ctypes.byref(major))
        cublas.cublasGetProperty(1, ctypes.byref(minor))
        found.append(f"cuBLAS {major.value}.{minor.value}")
    return ", ".join(found) or "none"


def _open(folder: str, *files: str) -> ctypes.CDLL | None:
    """The library that the kernels find."""
    # As cc/backends/cuda/runtime/libraries.cc does.
    packages = pathlib.Path(tf.__file__).parents[1] / "nvidia"
    for file in files:
        for path in (file, *(str(packages / f / "lib" / file) for f in (folder, "cu13"))):
            with contextlib.suppress(OSError):
                return ctypes.CDLL(path)
    return None
