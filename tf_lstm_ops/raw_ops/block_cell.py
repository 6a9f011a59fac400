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

    Gradients: of all inputs, from the gradients of all seven outputs. The gradient of the clip is
    the identity, as in the stock gradient op.

    Args:
      x: [B, I]. I may be 0.
      cs_prev, h_prev: [B, H], the cell state and the output of the previous step. H is positive.
      w: [I+H, 4H], rows of x then of h_prev, columns of the gates in the order i, c, f, o.
      wci, wcf, wco: [H], the peephole weights; not used unless `use_peephole`.
      b: [4H], the bias, gates as in w.
      forget_bias: added to the forget gate's pre-activation.
      cell_clip: bounds the cell state to [-cell_clip, cell_clip] where positive.
      use_peephole: whether the gates i and f read cs_prev, and the gate o reads the new cell state.
      name: of the op in a graph.

    Returns:
      namedtuple (i, cs, f, o, ci, co, h), each [B, H]: the gates i, f, o, the cell state cs, the
      candidate ci, co = tanh(cs) and the output h.

    Raises:
      InvalidArgumentError: an argument of wrong rank, size or type.
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
      x, cs_prev, h_prev, w, wci, wcf, wco, b: as LSTMBlockCell took them.
      i, cs, f, o, ci, co: [B, H], its outputs.
      cs_grad, h_grad: [B, H], the gradients of cs and h.
      use_peephole: as LSTMBlockCell took it.
      name: of the op in a graph.

    Returns:
      namedtuple (cs_prev_grad [B, H]; dicfo [B, 4H], gradients of the pre-activations in the order
      i, c, f, o; wci_grad, wcf_grad, wco_grad [H], zero unless `use_peephole`).

    Raises:
      InvalidArgumentError: an argument of wrong rank, size or type.
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
    """LSTMBlockCell over a sequence, in one call; ``tf.raw_ops.BlockLSTM``.

    Gradients: as in LSTMBlockCell.

    Args:
      seq_len_max: int64 scalar in [0, T], the number of steps to take.
      x: [T, B, I]. I may be 0.
      cs_prev, h_prev: [B, H], the initial cell state and output. H is positive.
      w, wci, wcf, wco, b, forget_bias, cell_clip, use_peephole: as in LSTMBlockCell; the gates are
        in the order i, c, f, o.
      name: of the op in a graph.

    Returns:
      namedtuple (i, cs, f, o, ci, co, h), each [T, B, H]; zero from step seq_len_max on.

    Raises:
      InvalidArgumentError: an argument of wrong rank, size or type, or seq_len_max out of range.
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

    Args:
      seq_len_max, x, cs_prev, h_prev: as in BlockLSTM.
      w: [I+H, 4H], rows of x then of h_prev, columns of the gates in the order i, f, c, o.
      wci, wcf, wco: [H], the peephole weights; not used unless `use_peephole`.
      b: [4H], the bias, gates as in w.
      cell_clip: bounds the cell state to [-cell_clip, cell_clip] where positive.
      use_peephole: as in LSTMBlockCell.
      name: of the op in a graph.

    Returns:
      namedtuple (i, cs, f, o, ci, co, h), each [T, B, H]; zero from step seq_len_max on.

    Raises:
      InvalidArgumentError: an argument of wrong rank, size or type, or seq_len_max out of range.
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
      seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b: as BlockLSTM took them.
      i, cs, f, o, ci, co, h: [T, B, H], its outputs.
      cs_grad, h_grad: [T, B, H], the gradients of cs and h.
      use_peephole: as BlockLSTM took it.
      name: of the op in a graph.

    Returns:
      namedtuple (x_grad, cs_prev_grad, h_prev_grad, w_grad, wci_grad, wcf_grad, wco_grad, b_grad),
      shaped as the inputs they are named after; x_grad is zero from step seq_len_max on.

    Raises:
      InvalidArgumentError: an argument of wrong rank, size or type, or seq_len_max out of range.
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
      seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b: as BlockLSTMV2 took them; the gates are
        in the order i, f, c, o.
      i, cs, f, o, ci, co, h: [T, B, H], its outputs.
      cs_grad, h_grad: [T, B, H], the gradients of cs and h.
      use_peephole: as BlockLSTMV2 took it.
      name: of the op in a graph.

    Returns:
      namedtuple (x_grad, cs_prev_grad, h_prev_grad, w_grad, wci_grad, wcf_grad, wco_grad, b_grad),
      shaped as the inputs they are named after; x_grad is zero from step seq_len_max on.

    Raises:
      InvalidArgumentError: an argument of wrong rank, size or type, or seq_len_max out of range.
    """
    return call("BlockLSTMGradV2", locals())
