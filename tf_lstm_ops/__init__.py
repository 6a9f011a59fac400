"""LSTM ops for TensorFlow: fast kernels, complete gradients, any mask.

Importing the package loads its native library and registers its ops, kernels and gradients; a
SavedModel that uses them can be loaded from then on.

* ``raw_ops``: the ops in the style of ``tf.raw_ops``.
* ``keras``: layers.
* ``saved_model``: export of models, for processes with this package or without.
* ``stock``: the kernels of the block cell in the place of TensorFlow's own.
* ``weights``: conversion of weights between the forms that Keras, cuDNN and others keep them in.
"""

from tf_lstm_ops import _library
from tf_lstm_ops.cli import startup

if _library.is_built():
    with startup.quiet_tensorflow():  # in the command line only
        _library.register()
    from tf_lstm_ops import gradients, keras, raw_ops, saved_model, stock, weights
    from tf_lstm_ops._version import __version__

    gradients.register()
    __all__ = ["__version__", "keras", "raw_ops", "saved_model", "stock", "weights"]
else:
    # A checkout's source folder, found first because it lies in the current directory: the
    # installed package takes this module's place.
    _library.import_installed(__name__)
