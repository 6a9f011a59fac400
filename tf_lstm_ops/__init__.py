"""Faster LSTM and GRU layers for Keras on CPUs. Trained models in microseconds, in Python and C.

A program that imports this package, TensorFlow and Keras, in any order, can load SavedModels and
Keras files that use the ops and layers. The import of this package imports neither of the other
two: ``inference`` and ``weights`` need NumPy only. The other modules import them.

* ``export``: files with models, for processes with this package or without it.
* ``inference``: sessions and streams of models, without TensorFlow.
* ``raw_ops``: the ops in the style of ``tf.raw_ops``.
* ``keras``: layers.
* ``stock``: replaces TensorFlow's own kernels of the block cell.
* ``weights``: conversion of weights between the formats of Keras, cuDNN, PyTorch and others.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tf_lstm_ops import _library, _start
from tf_lstm_ops._program import IS_PROGRAM
from tf_lstm_ops._version import __version__

if TYPE_CHECKING:
    from tf_lstm_ops import export, inference, keras, raw_ops, stock, weights

__all__ = ["__version__", "export", "inference", "keras", "raw_ops", "stock", "weights"]

if not _library.is_built():
    # This is the source folder of a checkout, found first because it is in the current directory.
    # The installed package replaces this module.
    _library.import_installed(__name__)
elif _library.has_ops() and not IS_PROGRAM:
    _start.follow_imports()


def __getattr__(name: str) -> Any:
    if name in __all__:  # the first use of a module
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
