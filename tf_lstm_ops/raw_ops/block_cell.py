"""LSTMBlockCell, BlockLSTM, BlockLSTMV2 and their gradients.

B batch, T time, I input size, H cell size. All tensors but seq_len_max have one type: half,
bfloat16, float or double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tf_lstm_ops.raw_ops.common import as_written, call

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


@as_written
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

    Args:
      x: [B, I], the input. B and I may be 0.
      cs_prev, h_prev: [B, H], the cell state and the output of the previous step. H is positive.
      w: [I+H, 4H], I rows that multiply x, then H rows that multiply h. The four blocks of columns
        are the gates i, c, f, o.
      wci, wcf, wco: [H], the peephole weights of the gates i, f and o. Required, but read only with
        `use_peephole`.
      b: [4H], the bias, with the gates in the order of w.
      forget_bias: added to the pre-activation of the forget gate. Default 1.0.
      cell_clip: limits the cell state to [-cell_clip, cell_clip]. 0 or less: no limit. Default 3.0.
      use_peephole: whether to add the peephole terms. The gates i and f then read cs_prev, the gate
        o reads the new cell state. Default False.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      The outputs as a named tuple with the fields i, cs, f, o, ci, co, h, each [B, H]. i, f and o
      are the gates, ci is the candidate, cs the cell state, co = tanh(cs) and h the output.

    Raises:
      InvalidArgumentError: an argument has the wrong rank, size or type.
    """
    return call("LSTMBlockCell", locals())


@as_written
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
    """Gradient of LSTMBlockCell from the gradients of cs and h; ``tf.raw_ops.LSTMBlockCellGrad``.

    Args:
      x: [B, I], the input. B and I may be 0.
      cs_prev, h_prev: [B, H], the cell state and the output of the previous step. H is positive.
      w: [I+H, 4H], I rows that multiply x, then H rows that multiply h. The four blocks of columns
        are the gates i, c, f, o.
      wci, wcf, wco: [H], the peephole weights of the gates i, f and o. Required, but read only with
        `use_peephole`.
      b: [4H], the bias, with the gates in the order of w.
      i, cs, f, o, ci, co: [B, H], the outputs of the forward op: the gates, the cell state, the
        candidate and tanh(cs).
      cs_grad, h_grad: [B, H], the gradients of the loss with respect to cs and h.
      use_peephole: as in the forward call. No default.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      The gradients as a named tuple with the fields cs_prev_grad [B, H], dicfo [B, 4H], wci_grad,
      wcf_grad and wco_grad [H]. dicfo holds the gradients of the pre-activations in the gate order
      i, c, f, o. The gradients of the peepholes are zero without `use_peephole`.

    Raises:
      InvalidArgumentError: an argument has the wrong rank, size or type.
    """
    return call("LSTMBlockCellGrad", locals())


@as_written
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

    Args:
      seq_len_max: int64 scalar in [0, T], the number of steps to compute, for all rows.
      x: [T, B, I], the input. T, B and I may be 0.
      cs_prev, h_prev: [B, H], the cell state and the output before the first step. H is positive.
      w: [I+H, 4H], I rows that multiply x, then H rows that multiply h. The four blocks of columns
        are the gates i, c, f, o.
      wci, wcf, wco: [H], the peephole weights of the gates i, f and o. Required, but read only with
        `use_peephole`.
      b: [4H], the bias, with the gates in the order of w.
      forget_bias: added to the pre-activation of the forget gate. Default 1.0.
      cell_clip: limits the cell state to [-cell_clip, cell_clip]. 0 or less: no limit. Default 3.0.
      use_peephole: whether to add the peephole terms. The gates i and f then read cs_prev, the gate
        o reads the new cell state. Default False.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      The outputs as a named tuple with the fields i, cs, f, o, ci, co, h, each [T, B, H]. i, f and
      o are the gates, ci is the candidate, cs the cell state, co = tanh(cs) and h the output. All
      are zero at steps t >= seq_len_max.

    Raises:
      InvalidArgumentError: an argument has the wrong rank, size or type, or seq_len_max is not in
        [0, T].
    """
    return call("BlockLSTM", locals())


@as_written
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

    Args:
      seq_len_max: int64 scalar in [0, T], the number of steps to compute, for all rows.
      x: [T, B, I], the input. T, B and I may be 0.
      cs_prev, h_prev: [B, H], the cell state and the output before the first step. H is positive.
      w: [I+H, 4H], I rows that multiply x, then H rows that multiply h. The four blocks of columns
        are the gates i, f, c, o.
      wci, wcf, wco: [H], the peephole weights of the gates i, f and o. Required, but read only with
        `use_peephole`.
      b: [4H], the bias, with the gates in the order of w.
      cell_clip: limits the cell state to [-cell_clip, cell_clip]. 0 or less: no limit. Default 0.0.
      use_peephole: whether to add the peephole terms. The gates i and f then read cs_prev, the gate
        o reads the new cell state. Default False.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      The outputs as a named tuple with the fields i, cs, f, o, ci, co, h, each [T, B, H]. i, f and
      o are the gates, ci is the candidate, cs the cell state, co = tanh(cs) and h the output. All
      are zero at steps t >= seq_len_max.

    Raises:
      InvalidArgumentError: an argument has the wrong rank, size or type, or seq_len_max is not in
        [0, T].
    """
    return call("BlockLSTMV2", locals())


@as_written
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
    """Gradient of BlockLSTM from the gradients of cs and h; ``tf.raw_ops.BlockLSTMGrad``.

    Args:
      seq_len_max: int64 scalar in [0, T], the number of steps to compute, for all rows.
      x: [T, B, I], the input. T, B and I may be 0.
      cs_prev, h_prev: [B, H], the cell state and the output before the first step. H is positive.
      w: [I+H, 4H], I rows that multiply x, then H rows that multiply h. The four blocks of columns
        are the gates i, c, f, o.
      wci, wcf, wco: [H], the peephole weights of the gates i, f and o. Required, but read only with
        `use_peephole`.
      b: [4H], the bias, with the gates in the order of w.
      i, cs, f, o, ci, co, h: [T, B, H], the outputs of the forward op: the gates, the cell state,
        the candidate, tanh(cs) and the output.
      cs_grad, h_grad: [T, B, H], the gradients of the loss with respect to cs and h.
      use_peephole: as in the forward call. No default.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      The gradients as a named tuple with the fields x_grad, cs_prev_grad, h_prev_grad, w_grad,
      wci_grad, wcf_grad, wco_grad, b_grad. Each has the shape of its argument. x_grad is zero at
      steps t >= seq_len_max. The gradients of the peepholes are zero without `use_peephole`.

    Raises:
      InvalidArgumentError: an argument has the wrong rank, size or type, or seq_len_max is not in
        [0, T].
    """
    return call("BlockLSTMGrad", locals())


@as_written
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

    Args:
      seq_len_max: int64 scalar in [0, T], the number of steps to compute, for all rows.
      x: [T, B, I], the input. T, B and I may be 0.
      cs_prev, h_prev: [B, H], the cell state and the output before the first step. H is positive.
      w: [I+H, 4H], I rows that multiply x, then H rows that multiply h. The four blocks of columns
        are the gates i, f, c, o.
      wci, wcf, wco: [H], the peephole weights of the gates i, f and o. Required, but read only with
        `use_peephole`.
      b: [4H], the bias, with the gates in the order of w.
      i, cs, f, o, ci, co, h: [T, B, H], the outputs of the forward op: the gates, the cell state,
        the candidate, tanh(cs) and the output.
      cs_grad, h_grad: [T, B, H], the gradients of the loss with respect to cs and h.
      use_peephole: as in the forward call. No default.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      The gradients as a named tuple with the fields x_grad, cs_prev_grad, h_prev_grad, w_grad,
      wci_grad, wcf_grad, wco_grad, b_grad. Each has the shape of its argument. x_grad is zero at
      steps t >= seq_len_max. The gradients of the peepholes are zero without `use_peephole`.

    Raises:
      InvalidArgumentError: an argument has the wrong rank, size or type, or seq_len_max is not in
        [0, T].
    """
    return call("BlockLSTMGradV2", locals())
