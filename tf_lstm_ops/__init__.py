"""LSTM ops for TensorFlow: fast kernels, complete gradients, any mask.

Importing the package loads its native library and registers its ops, kernels and gradients. From
then on a SavedModel that uses them can be loaded.

* ``export``: files with models, for processes with this package or without it.
* ``raw_ops``: the ops in the style of ``tf.raw_ops``.
* ``keras``: layers.
* ``saved_model``: another name of ``export.saved_model``.
* ``stock``: replaces TensorFlow's own kernels of the block cell.
* ``weights``: conversion of weights between the formats of Keras, cuDNN, PyTorch and others.
"""

from tf_lstm_ops import _library
from tf_lstm_ops.cli import startup

if _library.is_built():
    with startup.quiet_tensorflow():  # in the command line only
        _library.register()
    from tf_lstm_ops import dialects, export, keras, raw_ops, saved_model, stock, weights
    from tf_lstm_ops._version import __version__

    dialects.register_gradients()
    __all__ = ["__version__", "export", "keras", "raw_ops", "saved_model", "stock", "weights"]
else:
    # This is the source folder of a checkout, found first because it is in the current directory.
    # The installed package replaces this module.
    _library.import_installed(__name__)
