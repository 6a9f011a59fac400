"""What the package registers with TensorFlow and Keras when a program imports them.

`import tf_lstm_ops` imports neither of the two, because `inference` and `weights` need only NumPy.
The ops are registered at the end of the import of TensorFlow, and the layers when Keras is imported
too. A program may thus import the three packages in any order.
"""

from __future__ import annotations

import sys

from tf_lstm_ops import _autostart, _keras_backend, _registration
from tf_lstm_ops._when_imported import when_imported

_has_keras = False  # it is imported completely


def follow_imports() -> None:
    """Registers what can be registered now, and the rest when a program imports the other packages.

    Raises:
      ImportError, ValueError: as of `_registration.ops`, if TensorFlow is imported already.
    """
    when_imported("tensorflow", _after_tensorflow)
    when_imported("keras", _after_keras)
    when_imported("tf_lstm_ops.keras", _after_layers)
    _autostart.follow_imports()


def load() -> None:
    """Imports TensorFlow and Keras, and registers everything.

    Raises:
      ImportError, ValueError: as of `_registration.ops`.
    """
    follow_imports()
    _registration.ops()
    if _keras_backend.problem() is None:  # imports Keras
        _layers()


def _after_tensorflow() -> None:
    _registration.ops()
    _layers()


def _after_keras() -> None:
    global _has_keras
    _has_keras = True
    _layers()


def _layers() -> None:
    """Imports the layers, which registers their classes for ``keras.models.load_model``.

    TensorFlow imports Keras, and Keras TensorFlow: the layers wait until both are imported. A
    module in sys.modules is imported already, or this or another thread is just importing it.
    """
    if not _has_keras or "tf_lstm_ops.keras" in sys.modules:
        return
    is_torch = _autostart.is_wanted() and _keras_backend.is_torch()
    if is_torch or (_registration.has_ops() and _keras_backend.problem() is None):
        from tf_lstm_ops import keras  # noqa: F401


def _after_layers() -> None:
    """Imports the exports, which replaces functions of ``model.export``."""
    if "tf_lstm_ops.export" not in sys.modules and not _keras_backend.is_torch():
        from tf_lstm_ops import export  # noqa: F401
