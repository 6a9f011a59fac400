"""LSTMBlockCell, BlockLSTM, BlockLSTMV2 and their gradients.

B batch, T time, I input size, H cell size. All tensors but seq_len_max have one type: half,
bfloat16, float or double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tf_lstm_ops.raw_ops.common import call, public

if TYPE_CHECKING:
    from tf_lstm_ops.raw_ops.types import (
        BlockLSTMGradResults,
        BlockLSTMGradV2Results,
        BlockLSTMResults,
        BlockLSTMV2Results,
        LSTMBlockCellGradResults,
        LSTMBlockCellResults,
        TensorLike,
    )


@public
def LSTMBlockCell(
    *,
    x: TensorLike,
    cs_prev: TensorLike,
    h_prev: TensorLike,
    w: TensorLike,
    wci: TensorLike,
    wcf: TensorLike,
    wco: TensorLike,
    b: TensorLike,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
    name: str | None = None,
) -> LSTMBlockCellResults:
    """One step of an LSTM cell; ``tf.raw_ops.LSTMBlockCell``, differentiable.

    All inputs have gradients, computed from the gradients of all seven outputs. The gradient of the
    clip is the identity, as in the stock gradient op.

    >>> import tensorflow as tf
    >>> from tf_lstm_ops import raw_ops
    >>> B, I, H = 2, 3, 4
    >>> state, peephole = tf.zeros([B, H]), tf.zeros([H])
    >>> weights = {"w": tf.zeros([I + H, 4 * H]), "b": tf.zeros([4 * H])}
    >>> weights |= {"wci": peephole, "wcf": peephole, "wco": peephole}
    >>> step = raw_ops.LSTMBlockCell(x=tf.ones([B, I]), cs_prev=state, h_prev=state, **weights)
    >>> step.h.shape, step.cs.shape
    (TensorShape([2, 4]), TensorShape([2, 4]))
    """
    return call("LSTMBlockCell", locals())


@public
def LSTMBlockCellGrad(
    *,
    x: TensorLike,
    cs_prev: TensorLike,
    h_prev: TensorLike,
    w: TensorLike,
    wci: TensorLike,
    wcf: TensorLike,
    wco: TensorLike,
    b: TensorLike,
    i: TensorLike,
    cs: TensorLike,
    f: TensorLike,
    o: TensorLike,
    ci: TensorLike,
    co: TensorLike,
    cs_grad: TensorLike,
    h_grad: TensorLike,
    use_peephole: bool,
    name: str | None = None,
) -> LSTMBlockCellGradResults:
    """Gradient of LSTMBlockCell from those of cs and h; ``tf.raw_ops.LSTMBlockCellGrad``."""
    return call("LSTMBlockCellGrad", locals())


@public
def BlockLSTM(
    *,
    seq_len_max: TensorLike,
    x: TensorLike,
    cs_prev: TensorLike,
    h_prev: TensorLike,
    w: TensorLike,
    wci: TensorLike,
    wcf: TensorLike,
    wco: TensorLike,
    b: TensorLike,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
    name: str | None = None,
) -> BlockLSTMResults:
    """LSTMBlockCell over a sequence, in one call; ``tf.raw_ops.BlockLSTM``, differentiable.

    All inputs but seq_len_max have gradients, computed from the gradients of all seven outputs. The
    gradient of the clip is the identity, as in the stock gradient op.

    >>> import tensorflow as tf
    >>> from tf_lstm_ops import raw_ops
    >>> B, I, H = 2, 3, 4
    >>> state, peephole = tf.zeros([B, H]), tf.zeros([H])
    >>> weights = {"w": tf.zeros([I + H, 4 * H]), "b": tf.zeros([4 * H])}
    >>> weights |= {"wci": peephole, "wcf": peephole, "wco": peephole}
    >>> steps = raw_ops.BlockLSTM(
    ...     seq_len_max=5, x=tf.ones([6, B, I]), cs_prev=state, h_prev=state, **weights
    ... )
    >>> steps.h.shape
    TensorShape([6, 2, 4])
    """
    return call("BlockLSTM", locals())


@public
def BlockLSTMV2(
    *,
    seq_len_max: TensorLike,
    x: TensorLike,
    cs_prev: TensorLike,
    h_prev: TensorLike,
    w: TensorLike,
    wci: TensorLike,
    wcf: TensorLike,
    wco: TensorLike,
    b: TensorLike,
    cell_clip: float = 0.0,
    use_peephole: bool = False,
    name: str | None = None,
) -> BlockLSTMV2Results:
    """BlockLSTM with the gates in the order i, f, c, o and no forget_bias.

    The results are those of ``tf.raw_ops.BlockLSTMV2``. The gradient is correct; TensorFlow's
    gradient of that op is not.

    >>> import tensorflow as tf
    >>> from tf_lstm_ops import raw_ops
    >>> B, I, H = 2, 3, 4
    >>> state, peephole = tf.zeros([B, H]), tf.zeros([H])
    >>> weights = {"w": tf.zeros([I + H, 4 * H]), "b": tf.zeros([4 * H])}
    >>> weights |= {"wci": peephole, "wcf": peephole, "wco": peephole}
    >>> steps = raw_ops.BlockLSTMV2(
    ...     seq_len_max=5, x=tf.ones([6, B, I]), cs_prev=state, h_prev=state, **weights
    ... )
    >>> steps.h.shape
    TensorShape([6, 2, 4])
    """
    return call("BlockLSTMV2", locals())


@public
def BlockLSTMGrad(
    *,
    seq_len_max: TensorLike,
    x: TensorLike,
    cs_prev: TensorLike,
    h_prev: TensorLike,
    w: TensorLike,
    wci: TensorLike,
    wcf: TensorLike,
    wco: TensorLike,
    b: TensorLike,
    i: TensorLike,
    cs: TensorLike,
    f: TensorLike,
    o: TensorLike,
    ci: TensorLike,
    co: TensorLike,
    h: TensorLike,
    cs_grad: TensorLike,
    h_grad: TensorLike,
    use_peephole: bool,
    name: str | None = None,
) -> BlockLSTMGradResults:
    """Gradient of BlockLSTM from the gradients of cs and h; ``tf.raw_ops.BlockLSTMGrad``."""
    return call("BlockLSTMGrad", locals())


@public
def BlockLSTMGradV2(
    *,
    seq_len_max: TensorLike,
    x: TensorLike,
    cs_prev: TensorLike,
    h_prev: TensorLike,
    w: TensorLike,
    wci: TensorLike,
    wcf: TensorLike,
    wco: TensorLike,
    b: TensorLike,
    i: TensorLike,
    cs: TensorLike,
    f: TensorLike,
    o: TensorLike,
    ci: TensorLike,
    co: TensorLike,
    h: TensorLike,
    cs_grad: TensorLike,
    h_grad: TensorLike,
    use_peephole: bool,
    name: str | None = None,
) -> BlockLSTMGradV2Results:
    """Gradient of BlockLSTMV2 from the gradients of cs and h.

    The function is ``tf.raw_ops.BlockLSTMGradV2`` with correct results.
    """
    return call("BlockLSTMGradV2", locals())
