"""The stream library, which reads TensorFlow's CUDA stream: one for each minor version.

TensorFlow's C API does not give a GPU kernel its stream, and the C++ API differs between versions.
Therefore one function, `_lib/stream.cc`, is compiled against the installed TensorFlow. The wheels
of a release contain the library, in `_lib`, for the versions of TensorFlow that it was compiled
for. For others the self-test of a GPU compiles it into the user's cache, in about ten seconds. An
import only looks for it.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import tempfile

from tf_lstm_ops import _user_cache

_VARIABLE = "TF_LSTM_OPS_CUDA_STREAM_LIBRARY"
_FOLDER = pathlib.Path(__file__).absolute().parent / "_lib"


def use() -> None:
    """Names the library in $TF_LSTM_OPS_CUDA_STREAM_LIBRARY, from which the kernels load it.

    TensorFlow places ops on the GPU if they have GPU kernels. Without the library these kernels
    would fail, so they must not be registered then. Nothing is done if the variable is set, or if
    the machine has no NVIDIA GPU.

    Raises:
      OSError: the library does not exist, or another user can have written the one in the cache.
    """
    if not _is_needed():
        return
    library = _path()
    if not library.exists():
        from tf_lstm_ops import _gpu

        raise FileNotFoundError(
            f"the stream library for this TensorFlow does not exist; `{_gpu.COMMAND}` builds it"
        )
    if library.parent != _FOLDER:
        for part in (_user_cache.path(), library.parent, library):
            _user_cache.require_own(part)
    os.environ[_VARIABLE] = str(library)


def build() -> None:
    """Compiles the library into the user's cache, unless `use` would find it.

    Raises:
      OSError: there is no compiler, or another user can write to the cache or have written the
        library there.
      subprocess.CalledProcessError: the compiler failed; ``stdout`` has its messages.
    """
    if not _is_needed() or (library := _path()).parent == _FOLDER:
        return
    _user_cache.folder(library.parent.name)
    if not os.path.lexists(library):
        _compile_library(_FOLDER / "stream.cc", library)
    _user_cache.require_own(library)


def _is_needed() -> bool:
    import tensorflow as tf

    from tf_lstm_ops import _gpu

    has_gpu = any(map(os.path.exists, _gpu.DRIVERS)) and tf.test.is_built_with_cuda()
    return has_gpu and not os.environ.get(_VARIABLE)


def _path() -> pathlib.Path:
    """The library of the release, or the place in the cache."""
    import tensorflow as tf

    minor = ".".join(tf.__version__.split(".")[:2])
    name = f"tf_lstm_ops_cuda_stream_{minor}.so"
    # A nightly build or a release candidate can have other classes than the release.
    is_release = re.fullmatch(r"\d+\.\d+\.\d+", tf.__version__)
    if is_release and (released := _FOLDER / name).exists():
        return released
    # Two builds of one TensorFlow version may have different headers.
    kind = f"{tf.__version__} {tf.__git_version__} {tf.__compiler_version__}"
    source = (_FOLDER / "stream.cc").read_bytes()
    return _user_cache.path(hashlib.sha256(kind.encode() + source).hexdigest()[:16], name)


def _compile_library(source: pathlib.Path, library: pathlib.Path) -> None:
    """Compiles the library against the TensorFlow of this process."""
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
