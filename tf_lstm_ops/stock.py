"""The kernels of this package in the place of stock TensorFlow's, under the stock names.

Off unless ``override`` is called. What it reaches, and what it leaves: docs/block_cell.md.
"""

from __future__ import annotations

import warnings

from tf_lstm_ops import _library

__all__ = ["override", "restore"]

_overridden = False


def override() -> None:
    """Serves LSTMBlockCell, BlockLSTM and their gradients, in half and float on the CPU.

    From then on TensorFlow makes our kernels for these four stock names: in eager code, in
    ``tf.function`` and in SavedModels, whether they ran before or not. To that end it drops all
    kernels that have run: random ops with a seed of their own draw their first numbers again.
    A second call does nothing.

    Raises:
      RuntimeError: TensorFlow does not take the kernels.
    """
    from tensorflow.python.eager import context

    global _overridden
    if _overridden:
        return
    _library.override_stock()
    _overridden = True
    context.context().clear_kernel_cache()


def restore() -> None:
    """Warns that stock's kernels cannot come back, after ``override``; else does nothing.

    TensorFlow has no way to take a kernel back or to change its priority.
    """
    if _overridden:
        warnings.warn(
            "TensorFlow cannot unregister a kernel: LSTMBlockCell, LSTMBlockCellGrad, BlockLSTM "
            "and BlockLSTMGrad keep the kernels of tf_lstm_ops until this process ends. For "
            "stock's, start a new process that does not call tf_lstm_ops.stock.override().",
            RuntimeWarning,
            stacklevel=2,
        )
