"""Folders of the package for programs in C and C++ that use the library of sessions.

This module imports neither NumPy nor TensorFlow. `tf_lstm_ops.inference` has its functions.
"""

from __future__ import annotations

import pathlib

# Not resolved: under Bazel the files are links.
_PACKAGE = pathlib.Path(__file__).absolute().parent


def get_include() -> str:
    """The folder with ``tf_lstm_ops.h``.

    Returns:
      A path. Targets of Bazel have no such folder; they use the header in ``include``.
    """
    return str(_PACKAGE / "include")


def get_library_dir() -> str:
    """The folder with the shared and the static library.

    Returns:
      A path. The folder ``pkgconfig`` in it has the files for pkg-config, and the folder
      ``cmake/tf_lstm_ops_inference`` those for CMake.
    """
    return str(_PACKAGE / "_lib")
