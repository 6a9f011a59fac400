"""Whether this process has a TensorFlow that the package works with."""

from __future__ import annotations

import importlib.util

from tf_lstm_ops._optional import pip_install

OLDEST = (2, 18)
INSTALL = (
    f"Type one of: {pip_install('tensorflow', 'keras')}, "
    f"{pip_install('tensorflow-cpu', 'keras')}, pip install tf-nightly"
)


def is_installed() -> bool:
    """Whether TensorFlow can be found. It is not imported.

    Returns:
      False if no distribution of it is installed.
    """
    return importlib.util.find_spec("tensorflow") is not None


def check() -> None:
    """Checks that TensorFlow can be imported, from any of its distributions, and is new enough.

    Raises:
      ImportError: it is not installed, or older than 2.18. The message says what to type.
    """
    needed = f"tf_lstm_ops needs TensorFlow {OLDEST[0]}.{OLDEST[1]} or newer"
    if not is_installed():
        raise ImportError(f"{needed}, and none is installed. {INSTALL}")
    import tensorflow as tf

    if tuple(map(int, tf.__version__.split(".")[:2])) < OLDEST:
        raise ImportError(f"{needed}, but {tf.__version__} is installed. {INSTALL}")
