"""A layer of a stack whose cell state or projected h is clipped, which CudnnRNNV3 does not do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf_lstm_ops._activations import DEFAULTS
from tf_lstm_ops.keras import cudnn_path
from tf_lstm_ops.keras.op_inputs import optional
from tf_lstm_ops.keras.stacked_masks import Steps
from tf_lstm_ops.keras.stacked_weights import Cell

CLIPS = ("cell_clip", "proj_clip")


def run_layer(
    x: tf.Tensor,
    states: Sequence[tf.Tensor],
    cells: Sequence[Cell],
    steps: Steps,
    *,
    training: bool,
    clips: dict[str, float],
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Runs the directions of an LSTM layer, each by one op.

    Args:
      x: [B, T, I], the valid steps of each row first.
      states: h [B, P] and c [B, H] of each direction.
      cells: the weights of each direction.
      steps: which steps are valid.
      training: whether the op saves activations without a tape, too.
      clips: the attributes cell_clip and proj_clip of the op; 0 for no bound.

    Returns:
      The output [B, T, D*P], zero behind the valid steps, and the final states.
    """
    mask = None if steps.mask is None else tf.sequence_mask(steps.lengths, tf.shape(x)[1])
    outputs, finals = list[tf.Tensor](), list[tf.Tensor]()
    for direction, cell in enumerate(cells):
        output, *final = cudnn_path.run(
            "KerasLSTM",
            {
                "x": x,
                "mask": optional(mask, tf.bool),
                "initial_h": states[2 * direction],
                "initial_c": states[2 * direction + 1],
                "kernel": tf.cast(cell.kernel, x.dtype),
                "recurrent_kernel": tf.cast(cell.recurrent_kernel, x.dtype),
                "bias": optional(cell.bias, x.dtype),
                "peephole": optional(None, x.dtype),
                "projection": optional(cell.projection_kernel, x.dtype),
                "input_dropout": optional(None, x.dtype),
                "recurrent_dropout": optional(None, x.dtype),
                **DEFAULTS,
                "go_backwards": direction == 1,
                "zero_output_for_mask": True,
                "return_sequences": True,
                "training": training,
                **clips,
            },
        )
        outputs.append(tf.reverse(output, [1]) if direction == 1 else output)
        finals += final
    return tf.concat(outputs, axis=2), finals


def attributes(layer: Any) -> dict[str, float]:
    """The clips of a stack as attributes of the op.

    Args:
      layer: a stack.

    Returns:
      The bounds by name, 0 for none; empty if there are none at all.
    """
    bounds = {name: float(getattr(layer, name, None) or 0) for name in CLIPS}
    return bounds if any(bounds.values()) else {}
