"""Kernels of this package that replace TensorFlow's own under the stock names.

Nothing is replaced unless ``override`` is called.
"""

from __future__ import annotations

from tf_lstm_ops import _registration

_registration.ops()  # before what it imports is imported here
# ruff: noqa: E402

from tf_lstm_ops import _library, _tf_private

__all__ = ["override"]

_overridden = False


def override() -> None:
    """Replaces the kernels of LSTMBlockCell, BlockLSTM and their gradients on the CPU.

    TensorFlow then creates the kernels of this package for these four stock names, in half and
    float: in eager code, in ``tf.function`` and in SavedModels, also for ops that ran before. The
    function clears TensorFlow's cache of kernels. As a result, random ops with an op-level seed
    repeat their first values. A second call does nothing. TensorFlow cannot unregister a kernel: to
    get its own kernels back, start a new process.

    Raises:
      RuntimeError: TensorFlow does not accept the kernels.
    """
    global _overridden
    if _overridden:
        return
    _library.override_stock()
    _overridden = True
    _tf_private.clear_kernel_cache()
