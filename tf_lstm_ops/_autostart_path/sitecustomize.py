"""Python imports this module at its start if PYTHONPATH has this folder: ``tf-lstm-ops run``.

It takes the folder from sys.path, and imports the sitecustomize that it hides.
"""

import contextlib
import importlib
import os
import sys


def _start() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    this = sys.modules.pop(__name__)
    try:
        importlib.import_module(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
        sys.modules[__name__] = this
    with contextlib.suppress(ImportError):  # the Python of a child process may be another one
        import tf_lstm_ops  # noqa: F401


_start()
