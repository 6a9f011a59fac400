"""Whether the Keras of this process can run the layers."""

from __future__ import annotations


def is_torch() -> bool:
    """Whether Keras runs on PyTorch, where `keras.accelerate` is what the package offers.

    Returns:
      False also if Keras cannot be imported.
    """
    try:
        import keras
    except ImportError:
        return False
    return bool(keras.backend.backend() == "torch")


def problem() -> str | None:
    """Why the layers cannot be used in this process. The ops need no Keras.

    Returns:
      The problem and how to solve it; None if Keras runs on TensorFlow.
    """
    try:
        import keras
    except ImportError as error:  # of the backend's package, for example
        found = f"`import keras` fails: {error}"
    else:
        backend = keras.backend.backend()
        if backend == "tensorflow":
            return None
        found = f"the backend is {backend}"
    return (
        f"the layers of tf_lstm_ops need Keras with its TensorFlow backend, but {found}. The "
        'backend is set by the environment variable KERAS_BACKEND, or else by "backend" in '
        "~/.keras/keras.json. Set KERAS_BACKEND=tensorflow before keras is imported. "
        "tf_lstm_ops.raw_ops and tf_lstm_ops.weights work with any backend, and "
        "tf_lstm_ops.keras.accelerate with torch, too"
    )
