"""The library that asks TensorFlow for its CUDA stream: one for each minor version.

TensorFlow's C API does not tell a GPU kernel its stream, and the C++ API differs from version to
version. So one function, `_lib/stream.cc`, is compiled against the TensorFlow that is installed
when the package is first imported beside an NVIDIA GPU, which takes some ten seconds, and kept in
the user's cache. A release may bring it along, in `_lib`.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import shlex
import subprocess
import tempfile
import warnings

_VARIABLE = "TF_LSTM_OPS_CUDA_STREAM_LIBRARY"
_FOLDER = pathlib.Path(__file__).absolute().parent / "_lib"
# The driver's devices on Linux, and in Windows' subsystem for Linux.
_DRIVERS = ("/dev/nvidiactl", "/dev/dxg")


def is_ready() -> bool:
    """Whether the kernels for CUDA may be registered: where they are, TensorFlow places ops on the
    GPU, so there must be a way to its stream, unless there is no GPU at all.

    Names the library in $TF_LSTM_OPS_CUDA_STREAM_LIBRARY, and compiles it first where it has to.
    """
    import tensorflow as tf

    has_gpu = any(map(os.path.exists, _DRIVERS)) and tf.test.is_built_with_cuda()
    if os.environ.get(_VARIABLE) or not has_gpu:
        return True
    try:
        os.environ[_VARIABLE] = str(_find())
    except (OSError, subprocess.SubprocessError) as error:
        log = getattr(error, "stdout", None) or ""
        warnings.warn(
            f"tf_lstm_ops runs on the CPU only: its library for TensorFlow's CUDA stream cannot be "
            f"compiled ({error}). Install a C++17 compiler, or name one in $CXX.\n{log}",
            stacklevel=2,
        )
        return False
    return True


def _find() -> pathlib.Path:
    """The library that came with the package, or the compiled one of the cache."""
    import tensorflow as tf

    minor = ".".join(tf.__version__.split(".")[:2])
    name = f"tf_lstm_ops_cuda_stream_{minor}.so"
    if (brought := _FOLDER / name).exists():
        return brought
    source = _FOLDER / "stream.cc"
    # Of two builds of TensorFlow one may have other headers.
    kind = f"{tf.__version__} {tf.__git_version__} {tf.__compiler_version__}"
    digest = hashlib.sha256(kind.encode() + source.read_bytes()).hexdigest()[:16]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    library = cache / "tf_lstm_ops" / digest / name
    if not library.exists():
        compile_library(source, library)
    return library


def compile_library(source: pathlib.Path, library: pathlib.Path) -> None:
    """Compiles it against the TensorFlow of this process.

    Raises:
      OSError: there is no compiler, or no folder to write to.
      subprocess.CalledProcessError: it failed; ``stdout`` has its words.
    """
    import tensorflow as tf

    library.parent.mkdir(parents=True, exist_ok=True)
    # TensorFlow's own flags, among which is where its headers are.
    flags = [f for f in tf.sysconfig.get_compile_flags() if not f.startswith("-I")]
    headers = ["-isystem", tf.sysconfig.get_include(), f"-I{source.parent}"]
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        built = pathlib.Path(folder) / library.name  # appears whole or not at all
        command = [
            *shlex.split(os.environ.get("CXX", "c++")),
            *("-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden"),
            *(*flags, *headers, str(source), "-o", str(built)),
        ]
        subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        built.replace(library)
