"""LSTMBlockCell, BlockLSTM and their gradients. Equations and rules: docs/block_cell.md.

B batch, T time, I input size, H cell size.
"""

from __future__ import annotations

from typing import Any

from tf_lstm_ops.raw_ops.common import as_written, call


@as_written
def LSTMBlockCell(
    *,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
    name: str | None = None,
) -> Any:
    """One step of an LSTM cell; ``tf.raw_ops.LSTMBlockCell``, differentiable.

    Args:
      x: [B, I]. I may be 0.
      cs_prev, h_prev: [B, H], the cell state and the output of the step before. Not empty.
      w: [I+H, 4H], rows of x then of h_prev, columns of the gates in the order i, c, f, o.
      wci, wcf, wco: [H], the peephole weights; not used unless `use_peephole`.
      b: [4H].
      forget_bias: added to the forget gate's pre-activation.
      cell_clip: bounds the cell state to [-cell_clip, cell_clip] where positive.

    Returns:
      namedtuple (i, cs, f, o, ci, co, h), each [B, H].

    Gradients: of all inputs, from those of all seven outputs; cell_clip is passed straight through,
    as in the stock gradient op.
    """
    return call("tf_lstm_ops_lstm_block_cell", locals())


@as_written
def LSTMBlockCellGrad(
    *,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    i: Any,
    cs: Any,
    f: Any,
    o: Any,
    ci: Any,
    co: Any,
    cs_grad: Any,
    h_grad: Any,
    use_peephole: bool,
    name: str | None = None,
) -> Any:
    """Gradient of LSTMBlockCell from those of cs and h; ``tf.raw_ops.LSTMBlockCellGrad``.

    Args:
      x, cs_prev, h_prev, w, wci, wcf, wco, b: as LSTMBlockCell took them.
      i, cs, f, o, ci, co: [B, H], its outputs.
      cs_grad, h_grad: [B, H].

    Returns:
      namedtuple (cs_prev_grad [B, H]; dicfo [B, 4H], gradients of the pre-activations in the order
      i, c, f, o; wci_grad, wcf_grad, wco_grad [H], zero unless `use_peephole`).
    """
    return call("tf_lstm_ops_lstm_block_cell_grad", locals())


@as_written
def BlockLSTM(
    *,
    seq_len_max: Any,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
    name: str | None = None,
) -> Any:
    """LSTMBlockCell over a sequence, in one call; ``tf.raw_ops.BlockLSTM``.

    Args:
      seq_len_max: int64 scalar in [0, T], the number of steps to take.
      x: [T, B, I].
      The others: as in LSTMBlockCell.

    Returns:
      namedtuple (i, cs, f, o, ci, co, h), each [T, B, H]; zero from step seq_len_max on.
    """
    return call("tf_lstm_ops_block_lstm", locals())


@as_written
def BlockLSTMV2(
    *,
    seq_len_max: Any,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    cell_clip: float = 0.0,
    use_peephole: bool = False,
    name: str | None = None,
) -> Any:
    """As BlockLSTM with the gates in the order i, f, c, o and no forget_bias.

    Its gradient is right, which that of ``tf.raw_ops.BlockLSTMV2`` is not.
    """
    return call("tf_lstm_ops_block_lstmv2", locals())


@as_written
def BlockLSTMGrad(
    *,
    seq_len_max: Any,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    i: Any,
    cs: Any,
    f: Any,
    o: Any,
    ci: Any,
    co: Any,
    h: Any,
    cs_grad: Any,
    h_grad: Any,
    use_peephole: bool,
    name: str | None = None,
) -> Any:
    """Gradient of BlockLSTM from those of cs and h; ``tf.raw_ops.BlockLSTMGrad``.

    Args:
      seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b: as BlockLSTM took them.
      i, cs, f, o, ci, co, h: [T, B, H], its outputs.
      cs_grad, h_grad: [T, B, H].

    Returns:
      namedtuple (x_grad, cs_prev_grad, h_prev_grad, w_grad, wci_grad, wcf_grad, wco_grad, b_grad),
      shaped as the inputs they are named after; x_grad is zero from step seq_len_max on.
    """
    return call("tf_lstm_ops_block_lstm_grad", locals())


@as_written
def BlockLSTMGradV2(
    *,
    seq_len_max: Any,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    i: Any,
    cs: Any,
    f: Any,
    o: Any,
    ci: Any,
    co: Any,
    h: Any,
    cs_grad: Any,
    h_grad: Any,
    use_peephole: bool,
    name: str | None = None,
) -> Any:
    """Gradient of BlockLSTMV2; as BlockLSTMGrad with the gates in the order i, f, c, o."""
    return call("tf_lstm_ops_block_lstm_grad_v2", locals())
