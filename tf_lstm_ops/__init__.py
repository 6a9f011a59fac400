"""Faster LSTM and GRU layers for Keras on CPUs.

Importing the package loads its native library and registers its ops, kernels and gradients. From
then on a SavedModel that uses them can be loaded. Where TensorFlow is not installed, only
``inference`` can be used.

* ``export``: files with models, for processes with this package or without it.
* ``inference``: sessions and streams of models, without TensorFlow.
* ``raw_ops``: the ops in the style of ``tf.raw_ops``.
* ``keras``: layers.
* ``stock``: replaces TensorFlow's own kernels of the block cell.
* ``weights``: conversion of weights between the formats of Keras, cuDNN, PyTorch and others.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tf_lstm_ops import _library, _tensorflow
from tf_lstm_ops._program import IS_PROGRAM
from tf_lstm_ops._version import __version__

if TYPE_CHECKING:
    from tf_lstm_ops import export, inference, keras, raw_ops, stock, weights

__all__ = ["__version__", "export", "inference", "keras", "raw_ops", "stock", "weights"]


def _load() -> None:
    """Registers the ops, kernels and gradients, and imports the public modules."""
    from tf_lstm_ops import _keras_backend

    _tensorflow.check()
    _library.register()
    from tf_lstm_ops import dialects, raw_ops, stock, weights  # noqa: F401

    dialects.register_gradients()
    if _keras_backend.problem() is None:
        from tf_lstm_ops import export, keras  # noqa: F401


if not _library.is_built():
    # This is the source folder of a checkout, found first because it is in the current directory.
    # The installed package replaces this module.
    _library.import_installed(__name__)
elif not IS_PROGRAM and _tensorflow.is_installed():
    _load()


def __getattr__(name: str) -> Any:
    if name == "inference":
        return importlib.import_module(f"{__name__}.{name}")
    if name in __all__:  # not imported above; the check or the import says why
        _tensorflow.check()
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
