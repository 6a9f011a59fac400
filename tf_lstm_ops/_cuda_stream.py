"""Builds the library that reads TensorFlow's CUDA stream, one for each minor version.

TensorFlow's C API does not give a GPU kernel its stream, and the C++ API differs between versions.
Therefore one function, `_lib/stream.cc`, is compiled against the installed TensorFlow when the
package is first imported on a machine with an NVIDIA GPU. This takes about ten seconds; the library
is stored in the user's cache. The wheels of a release contain it, in `_lib`, for the releases of
TensorFlow that it was compiled for.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import warnings

from tf_lstm_ops import _user_cache

_VARIABLE = "TF_LSTM_OPS_CUDA_STREAM_LIBRARY"
_FOLDER = pathlib.Path(__file__).absolute().parent / "_lib"


def is_ready() -> bool:
    """Whether the kernels for CUDA may be registered.

    TensorFlow places ops on the GPU if they have GPU kernels. Without the stream library these
    kernels would fail. This function compiles the library if necessary and names it in
    $TF_LSTM_OPS_CUDA_STREAM_LIBRARY.

    Returns:
      True if the library is named there, or if the machine has no GPU. False, with a warning, if
      the library cannot be compiled, or if another user can have written the one in the cache.
    """
    import tensorflow as tf

    from tf_lstm_ops import _gpu

    has_gpu = any(map(os.path.exists, _gpu.DRIVERS)) and tf.test.is_built_with_cuda()
    if os.environ.get(_VARIABLE) or not has_gpu:
        return True
    try:
        os.environ[_VARIABLE] = str(_find())
    except (OSError, subprocess.SubprocessError) as error:
        log = getattr(error, "stdout", None) or ""
        warnings.warn(
            f"tf_lstm_ops runs on the CPU only: its library for TensorFlow's CUDA stream cannot be "
            f"compiled or loaded ({error}). Compiling needs a C++17 compiler, c++ or $CXX.\n{log}",
            stacklevel=2,
        )
        return False
    return True


def _find() -> pathlib.Path:
    """The library of the release or of the cache, which is compiled if it does not exist."""
    import tensorflow as tf

    minor = ".".join(tf.__version__.split(".")[:2])
    name = f"tf_lstm_ops_cuda_stream_{minor}.so"
    # A nightly build or a release candidate can have other classes than the release.
    is_release = re.fullmatch(r"\d+\.\d+\.\d+", tf.__version__)
    if is_release and (released := _FOLDER / name).exists():
        return released
    source = _FOLDER / "stream.cc"
    # Two builds of one TensorFlow version may have different headers.
    kind = f"{tf.__version__} {tf.__git_version__} {tf.__compiler_version__}"
    digest = hashlib.sha256(kind.encode() + source.read_bytes()).hexdigest()[:16]
    library = _user_cache.folder(digest) / name
    if not os.path.lexists(library):
        compile_library(source, library)
    _user_cache.require_own(library)
    return library


def compile_library(source: pathlib.Path, library: pathlib.Path) -> None:
    """Compiles the library against the TensorFlow of this process.

    Args:
      source: the C++ file; its folder has the header.
      library: the file to write, of mode 0700. Its folder is created.

    Raises:
      OSError: there is no compiler, or the folder cannot be written to.
      subprocess.CalledProcessError: the compiler failed; ``stdout`` has its messages.
    """
    import tensorflow as tf

    library.parent.mkdir(parents=True, exist_ok=True)
    # TensorFlow's own flags, but with its headers as system headers, which cause no warnings.
    flags = [f for f in tf.sysconfig.get_compile_flags() if not f.startswith("-I")]
    headers = ["-isystem", tf.sysconfig.get_include(), f"-I{source.parent}"]
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        built = pathlib.Path(folder) / library.name  # moved only when complete
        command = [
            *shlex.split(os.environ.get("CXX", "c++")),
            *("-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden"),
            *(*flags, *headers, str(source), "-o", str(built)),
        ]
        subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        built.chmod(0o700)  # also if the umask lets the user's group write
        built.replace(library)
