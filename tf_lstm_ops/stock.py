"""Kernels of this package that replace TensorFlow's own under the stock names.

Nothing is replaced unless ``override`` is called; its effects: docs/reference/block_cell.md.
"""

from __future__ import annotations

import warnings

from tf_lstm_ops import _library

__all__ = ["override", "restore"]

_overridden = False


def override() -> None:
    """Replaces the kernels of LSTMBlockCell, BlockLSTM and their gradients on the CPU.

    From then on TensorFlow creates our kernels for these four stock names, in half and float: in
    eager code, in ``tf.function`` and in SavedModels, whether they ran before or not. TensorFlow's
    cache of kernels is cleared for this. As a result, random ops with an op-level seed repeat their
    first values. A second call does nothing.

    Raises:
      RuntimeError: TensorFlow does not accept the kernels.
    """
    from tf_lstm_ops import _tf_private

    global _overridden
    if _overridden:
        return
    _library.override_stock()
    _overridden = True
    _tf_private.clear_kernel_cache()


def restore() -> None:
    """Warns that TensorFlow's kernels cannot be restored. Does nothing before ``override``.

    TensorFlow can neither unregister a kernel nor change its priority.
    """
    if _overridden:
        warnings.warn(
            "TensorFlow cannot unregister a kernel: LSTMBlockCell, LSTMBlockCellGrad, BlockLSTM "
            "and BlockLSTMGrad keep the kernels of tf_lstm_ops until this process ends. For "
            "stock's, start a new process that does not call tf_lstm_ops.stock.override().",
            RuntimeWarning,
            stacklevel=2,
        )
