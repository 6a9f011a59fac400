"""What the package registers with TensorFlow and Keras.

`import tf_lstm_ops` imports neither of the two, because `inference` and `weights` need only NumPy.
The ops are registered at the end of the import of TensorFlow, and the layers when Keras is imported
too. A program may thus import the three packages in any order.
"""

from __future__ import annotations

from tf_lstm_ops import _keras_backend, _library, _tensorflow
from tf_lstm_ops._when_imported import when_imported

_has_ops = False
_has_keras = False  # it is imported completely


def follow_imports() -> None:
    """Registers what can be registered now, and the rest when a program imports the other packages.

    Raises:
      ImportError, ValueError: as of `ops`, if TensorFlow is imported already.
    """
    when_imported("tensorflow", _after_tensorflow)
    when_imported("keras", _after_keras)
    when_imported("tf_lstm_ops.keras", _after_layers)


def load() -> None:
    """Imports TensorFlow and Keras, and registers everything.

    Raises:
      ImportError, ValueError: as of `ops`.
    """
    follow_imports()
    ops()
    if _keras_backend.problem() is None:  # imports Keras
        _layers()


def ops() -> None:
    """Imports TensorFlow, and registers the ops, kernels and gradients.

    Raises:
      ImportError: TensorFlow is not installed, or is too old.
      ValueError: an environment variable has a wrong value; see `_library.register`.
    """
    global _has_ops
    _tensorflow.check()  # if it imports TensorFlow, this function is called at the end of that
    if _has_ops:
        return
    _library.register()
    from tf_lstm_ops import dialects  # which imports TensorFlow

    dialects.register_gradients()
    _has_ops = True


def _after_tensorflow() -> None:
    ops()
    _layers()


def _after_keras() -> None:
    global _has_keras
    _has_keras = True
    _layers()


def _layers() -> None:
    """Imports the layers, which registers their classes for ``keras.models.load_model``.

    TensorFlow imports Keras, and Keras TensorFlow: the layers wait until both are imported.
    """
    if _has_ops and _has_keras and _keras_backend.problem() is None:
        from tf_lstm_ops import keras  # noqa: F401


def _after_layers() -> None:
    """Imports the exports, which replaces functions of ``model.export``."""
    from tf_lstm_ops import export  # noqa: F401
