"""The registration of the ops with TensorFlow."""

from __future__ import annotations

from tf_lstm_ops import _library, _tensorflow

_is_done = False


def ops() -> None:
    """Imports TensorFlow, and registers the ops, kernels and gradients. A second call does nothing.

    Raises:
      ImportError: TensorFlow is not installed, or is too old; or the package has no ops.
      ValueError: an environment variable has a wrong value; see `_library.register`.
    """
    global _is_done
    _library.check_ops()
    _tensorflow.check()  # if it imports TensorFlow, `_start` calls this function at the end of that
    if _is_done:
        return
    _library.register()
    from tf_lstm_ops import dialects  # which imports TensorFlow

    dialects.register_gradients()
    _is_done = True


def has_ops() -> bool:
    """Whether `ops` has been called.

    Returns:
      False also during the call.
    """
    return _is_done
