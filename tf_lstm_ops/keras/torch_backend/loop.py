"""Where the C library takes the place of the loop of a layer of ``keras.layers`` on PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import torch

from tf_lstm_ops import _cells, _keras_private, _torch_private
from tf_lstm_ops._activations import DEFAULTS
from tf_lstm_ops._keras_private import Tracer
from tf_lstm_ops.inference.layer_passes import TYPES, require_built
from tf_lstm_ops.keras import options, stock_layer
from tf_lstm_ops.keras.activations import name_of
from tf_lstm_ops.keras.torch_backend import passes

JOINS_DIRECTIONS = False


def is_own(layer: Any) -> bool:
    """Whether a layer is one of this package.

    Args:
      layer: a recurrent layer.

    Returns:
      False: the package has no layers on PyTorch.
    """
    del layer
    return False


def guarded(stock: Callable[..., Any], loop: Callable[..., Any]) -> Callable[..., Any]:
    """The method that takes the place of a loop of Keras.

    Args:
      stock: the loop of Keras.
      loop: a loop that chooses between Keras' and the library.

    Returns:
      The method. ``torch.compile`` does not trace `loop`, and breaks the graph there.
      ``torch.export`` traces Keras' loop.

    Raises:
      RuntimeError: the library of this installation was built for sessions only.
    """
    require_built()
    untraced = torch.compiler.disable(loop)

    def inner_loop(
        self: Any, sequences: Any, initial_state: Any, mask: Any, training: Any = False
    ) -> Any:
        if _torch_private.is_exporting():
            return stock(self, sequences, initial_state, mask, training)
        return untraced(self, sequences, initial_state, mask, training)

    return inner_loop


def trace_again() -> None:
    """Nothing: Keras traces no functions on PyTorch."""


def traced_by(sequences: Any) -> Tracer | None:
    """What traces a call.

    Args:
      sequences: of the call.

    Returns:
      SHAPES for a tensor without data, with which Keras infers shapes; else None.
    """
    is_meta = isinstance(sequences, torch.Tensor) and sequences.device.type == "meta"
    return Tracer.SHAPES if is_meta else None


def why_stock(
    layer: Any, sequences: Any, states: Any, mask: Any, training: Any, traced_by: Tracer | None
) -> str | None:
    """Why a call runs Keras' code.

    Args:
      layer: a layer of ``keras.layers`` whose cell an op knows.
      sequences: [B, T, I].
      states: the list of the initial states.
      mask: of the call, or a list with it; None: all steps are valid.
      training: of the call.
      traced_by: what `traced_by` returned.

    Returns:
      The reason; None if the library computes the same.
    """
    del traced_by
    if reason := stock_layer.why_no_op(layer) or _torch_private.why_not():
        return reason
    given = stock_layer.first_mask(mask)
    tensors = [sequences, *states, *_weights(layer.cell).values()]
    if given is not None:
        tensors.append(given)
    if reason := _torch_private.why_no_memory(tensors):
        return reason
    if layer.compute_dtype not in TYPES:
        return f"its computations are of {layer.compute_dtype}"
    if sequences.numel() == 0:
        return "no rows, or no steps"
    if not (training is None or isinstance(training, bool | int)):
        return "training is a tensor"
    if training and layer.cell.dropout == 1:
        return "dropout=1, which Keras applies in some calls only"
    return stock_layer.why_unrolled(layer, mask) or stock_layer.why_not_these_shapes(
        layer, sequences.shape, [s.shape for s in states], None if given is None else given.shape
    )


def run(
    layer: Any, sequences: Any, initial_state: Any, mask: Any, training: Any = False
) -> tuple[Any, Any, list[Any]]:
    """Computes the sequences of a layer by the library.

    Args:
      layer: a layer of ``keras.layers`` whose `why_stock` is None.
      sequences: [B, T, I].
      initial_state: the list of the initial states, [B, H] or [1, H].
      mask: [B, T] or [B, T, 1], or a list with it; None: all steps are valid.
      training: whether dropout applies.

    Returns:
      Without return_sequences: the last output twice, [B, H] and [B, 1, H]. With it: the final
      h [B, H], which Keras does not read, and all outputs [B, T, H]. Then the list of the final
      states, [B, H] each.
    """
    op, cell = options.op_of(layer), layer.cell
    dtype = getattr(torch, layer.compute_dtype)
    x, dropouts = _dropped(cell, sequences.to(dtype), initial_state[0], op, training)
    rows = x.shape[0]
    letters = _cells.BY_OP[op].states
    if layer.stateful:  # Keras assigns the final states to them before the backward pass
        initial_state = [state.clone() for state in initial_state]
    tensors = {
        "x": x,
        **{
            f"initial_{letter}": state.to(dtype).expand(rows, -1)
            for letter, state in zip(letters, initial_state, strict=True)
        },
        **{name: weight.to(dtype) for name, weight in _weights(cell).items()},
        **{name: each.to(dtype).expand(-1, rows, -1) for name, each in dropouts.items()},
    }
    returns_sequences = bool(layer.return_sequences)
    output, *states = passes.run(
        {
            "op": op,
            "dtype": layer.compute_dtype,
            "go_backwards": bool(layer.go_backwards),
            "zero_output_for_mask": bool(layer.zero_output_for_mask),
            "returns_last_step": not returns_sequences,
            **{
                name: str(name_of(getattr(cell, name))).encode()
                for name in DEFAULTS
                if hasattr(cell, name)
            },
        },
        _mask(mask, rows),
        tensors,
    )
    return states[0] if returns_sequences else output[:, 0], output, states


def _weights(cell: Any) -> dict[str, torch.Tensor]:
    found = {name: getattr(cell, name) for name in ("kernel", "recurrent_kernel", "bias")}
    return {
        name: keras.ops.convert_to_tensor(weight)
        for name, weight in found.items()
        if weight is not None
    }


def _mask(mask: Any, rows: int) -> torch.Tensor | None:
    mask = stock_layer.first_mask(mask)
    if mask is None:
        return None
    mask = mask.to(torch.bool)
    return (mask[..., 0] if mask.ndim == 3 else mask).expand(rows, -1)


def _dropped(
    cell: Any, x: torch.Tensor, h: torch.Tensor, op: str, training: Any
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """x after its dropout, and the multipliers that are apart for each gate."""
    found: dict[str, torch.Tensor] = {}
    if training and options.drops(op, cell.dropout):
        multipliers = _keras_private.input_multipliers(cell, x[:, 0, :])
        if isinstance(multipliers, list):  # implementation 1
            found["input_dropout"] = torch.stack(multipliers)
        else:
            x = x * multipliers[:, None]
    # Implementation 2 has no dropout of h, as in the stock cells.
    if (
        training
        and options.drops(op, cell.recurrent_dropout)
        and getattr(cell, "implementation", 1) == 1
    ):
        multipliers = _keras_private.recurrent_multipliers(cell, h)
        found["recurrent_dropout"] = torch.stack(
            multipliers if isinstance(multipliers, list) else [multipliers]
        )
    return x, found
