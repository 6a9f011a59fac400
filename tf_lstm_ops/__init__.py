"""LSTM ops for TensorFlow: fast kernels, complete gradients, any mask.

Importing the package loads its native library and registers its ops, kernels and gradients. From
then on a SavedModel that uses them can be loaded.

* ``export``: files with models, for processes with this package or without it.
* ``raw_ops``: the ops in the style of ``tf.raw_ops``.
* ``keras``: layers.
* ``stock``: replaces TensorFlow's own kernels of the block cell.
* ``weights``: conversion of weights between the formats of Keras, cuDNN, PyTorch and others.
"""

import importlib
from typing import Any

from tf_lstm_ops import _keras_backend, _library, _tensorflow
from tf_lstm_ops.cli import startup

if _library.is_built():
    startup.end_on_interrupt()  # this and the next two lines: in the command line only
    startup.use_tensorflow_backend()
    with startup.quiet_tensorflow():
        _tensorflow.check()
        _library.register()
    from tf_lstm_ops import dialects, raw_ops, stock, weights
    from tf_lstm_ops._version import __version__

    dialects.register_gradients()
    if _keras_backend.problem() is None:
        from tf_lstm_ops import export, keras
    __all__ = ["__version__", "export", "keras", "raw_ops", "stock", "weights"]
else:
    # This is the source folder of a checkout, found first because it is in the current directory.
    # The installed package replaces this module.
    _library.import_installed(__name__)


def __getattr__(name: str) -> Any:
    if name in ("export", "keras"):  # not imported above; the import says why
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
