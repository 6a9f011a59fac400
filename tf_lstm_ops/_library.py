"""The native library: its path, its loading, and its functions for ctypes."""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
from types import ModuleType
from typing import Any

from . import _cuda_stream

# Not resolved: under Bazel the files are links, and the library is beside the links.
_PACKAGE = pathlib.Path(__file__).absolute().parent
_FILE = pathlib.Path("_lib") / "tf_lstm_ops.so"  # in the package
_SESSIONS_FILE = _FILE.with_name("libtf_lstm_ops_inference.so")
SESSIONS_ONLY = (
    "sessions only, without the layers and ops, as after a build with TF_LSTM_OPS_SESSIONS_ONLY=1"
)
REBUILD = "To have them, run 'pip install .' without that variable in the folder that has setup.py."


def path() -> pathlib.Path:
    """The path of the native library.

    The variable $TF_LSTM_OPS_LIBRARY replaces the library of the package, for instance by one that
    is built with sanitizers.

    Returns:
      The path that the variable names, or that in the installed package.
    """
    return pathlib.Path(os.environ.get("TF_LSTM_OPS_LIBRARY") or _PACKAGE / _FILE)


def is_built() -> bool:
    """Whether the package has its native libraries, or that of sessions only.

    Returns:
      False in the source folder of a checkout.
    """
    return _has_library(_PACKAGE) or path().exists()


def has_ops() -> bool:
    """Whether the package has the library of the ops.

    Returns:
      False in an installation for sessions only.
    """
    return path().exists()


def check_ops() -> None:
    """Checks that the package has the library of the ops.

    Raises:
      ImportError: it has not. The message says how to build it.
    """
    if not has_ops():
        raise ImportError(f"this installation of tf_lstm_ops has {SESSIONS_ONLY}. {REBUILD}")


def _has_library(package: pathlib.Path) -> bool:
    return (package / _FILE).exists() or (package / _SESSIONS_FILE).exists()


def import_installed(name: str) -> None:
    """Imports the package from elsewhere on ``sys.path`` instead of this one.

    Args:
      name: the package's name.

    Raises:
      ImportError: no other folder of ``sys.path`` has the package with its native library.
    """
    for folder in sys.path:
        spec = importlib.machinery.PathFinder.find_spec(name, [folder])
        # Another source folder, or a link to this one, would search again without end.
        if not (spec and spec.loader and spec.origin):
            continue
        if _has_library(pathlib.Path(spec.origin).parent):
            break
    else:
        raise ImportError(
            f"{name} is imported from its source folder {_PACKAGE}, which has no native library, "
            "and no installed package was found. Run 'pip install .' in the folder that has "
            "setup.py. It builds the library and installs the package."
        )
    for module in [m for m in sys.modules if m == name or m.startswith(name + ".")]:
        del sys.modules[module]
    installed = importlib.util.module_from_spec(spec)
    sys.modules[name] = installed
    spec.loader.exec_module(installed)


def gpu_path() -> pathlib.Path | None:
    """The path of the library with the kernels for the device GPU: Metal's or CUDA's.

    The variables $TF_LSTM_OPS_METAL_LIBRARY and $TF_LSTM_OPS_CUDA_LIBRARY replace the library
    beside the native one; an empty variable means that there is no library.

    Returns:
      The path; None if there is no such library.
    """
    for kind in ("metal", "cuda"):
        named = os.environ.get(f"TF_LSTM_OPS_{kind.upper()}_LIBRARY")
        beside = (_PACKAGE / _FILE).with_name(f"tf_lstm_ops_{kind}.so")
        if named or (named is None and beside.exists()):
            return pathlib.Path(named or beside)
    return None


@functools.cache
def register() -> None:
    """Loads the libraries into TensorFlow, which registers their ops and kernels.

    The library of the GPU kernels is loaded if `_gpu` allows it. An error of theirs is logged: the
    CPU kernels run all the same.

    Raises:
      ValueError: the environment variable TF_LSTM_OPS_SIMD names an unavailable instruction set, or
        TF_LSTM_OPS_GPU has a wrong value.
    """
    import tensorflow as tf

    tf.load_library(str(path()))
    native = _declare(ctypes.CDLL(str(path())))
    native.tf_lstm_ops_set_cuda_build(tf.sysconfig.get_build_info()["is_cuda_build"])
    wanted, names = os.environ.get("TF_LSTM_OPS_SIMD"), _instruction_sets(native)
    if wanted and wanted not in names:
        raise ValueError(
            f"the environment variable TF_LSTM_OPS_SIMD must be one of {', '.join(names)} on this "
            f"processor, but is {wanted}"
        )
    from tf_lstm_ops import _gpu

    gpu = gpu_path()
    if gpu is None:
        _gpu.set_missing()
    allowed = gpu is not None and _gpu.decide(gpu).on
    if gpu and allowed:
        try:
            if gpu.stem.endswith("cuda"):
                _cuda_stream.use()
            tf.load_library(str(gpu))  # kernels of the same ops
        except (tf.errors.OpError, OSError, RuntimeError) as error:
            _gpu.set_broken(error)


@functools.cache
def load() -> ModuleType:
    """The module of the library's op functions.

    TensorFlow generates and compiles the source of this module at the first call. The import of the
    package does not call this function; the first call of an op in Python does.

    Returns:
      The generated module.

    Raises:
      ValueError: see register.
    """
    import tensorflow as tf

    register()
    return tf.load_op_library(str(path()))


@functools.cache
def _native() -> ctypes.CDLL:
    register()  # TensorFlow's own library, which ours needs, is in the process from here on
    return _declare(ctypes.CDLL(str(path())))


def _declare(native: ctypes.CDLL) -> ctypes.CDLL:
    """Declares the types of the library's functions."""
    native.tf_lstm_ops_instruction_set.restype = ctypes.c_char_p
    native.tf_lstm_ops_selected_instruction_set.restype = ctypes.c_char_p
    native.tf_lstm_ops_set_cuda_build.argtypes = [ctypes.c_bool]
    native.tf_lstm_ops_set_cuda_build.restype = None
    native.tf_lstm_ops_cache_size.restype = ctypes.c_int64
    native.tf_lstm_ops_measured_rate.restype = ctypes.c_double
    return native


def _instruction_sets(native: ctypes.CDLL) -> list[str]:
    names: list[str] = []
    while name := native.tf_lstm_ops_instruction_set(len(names)):
        names.append(name.decode())
    return names


def cpu_info() -> dict[str, Any]:
    """The settings of the CPU engine.

    Returns:
      ``instruction_set``, the name of the one in use; ``instruction_sets``, the names of those that
      the library is compiled for and this processor has, the best one last; ``threads``, the
      number of threads of a large call; ``caches``, the bytes of ``l1`` and ``l2``, of each a
      processor's part, and of the ``shared`` cache, by which calls are divided; ``rates``, the
      nanoseconds that were measured in this process for a ``multiply_add`` of vectors, an
      ``l2_byte``, and what a ``shared_byte`` takes longer. They are used for weights that exceed
      ``l2``. The first call measures them for about two milliseconds.
    """
    import tensorflow as tf

    native = _native()

    configured = tf.config.threading.get_intra_op_parallelism_threads()
    return {
        "instruction_set": native.tf_lstm_ops_selected_instruction_set().decode(),
        "instruction_sets": _instruction_sets(native),
        "threads": native.tf_lstm_ops_thread_count(configured),
        "caches": {
            name: native.tf_lstm_ops_cache_size(level)
            for level, name in enumerate(("l1", "l2", "shared"), 1)
        },
        "rates": {
            name: native.tf_lstm_ops_measured_rate(index)
            for index, name in enumerate(("multiply_add", "l2_byte", "shared_byte"))
        },
    }


def override_stock() -> None:
    """Registers the CPU kernels of the block cell under stock names, with a priority above stock's.

    Raises:
      RuntimeError: TensorFlow does not accept them.
    """
    register = _native().tf_lstm_ops_override_stock
    register.restype = ctypes.c_char_p
    if error := register():
        raise RuntimeError(error.decode())
