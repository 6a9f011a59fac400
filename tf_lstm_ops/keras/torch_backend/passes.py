"""The passes of a recurrent layer as a function of PyTorch's autograd."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tf_lstm_ops.inference.layer_passes import ABSENT, Arguments, Layer, View

_MOST_THREADS = 256  # of a call of the library


def run(
    options: Mapping[str, Any], mask: torch.Tensor | None, tensors: Mapping[str, torch.Tensor]
) -> list[torch.Tensor]:
    """Computes the sequences of a layer.

    Args:
      options: of `Layer`, hashable.
      mask: [B, T], boolean; None: all steps are valid.
      tensors: the inputs by name, of one dtype, on the CPU.

    Returns:
      The output [B, T or 1, P] and the final states. They have a first derivative.

    Raises:
      ValueError, MemoryError: as of `Layer`.
    """
    is_trained = torch.is_grad_enabled() and any(t.requires_grad for t in tensors.values())
    layer = _layer(tuple(sorted({**options, "saves_nothing": not is_trained}.items())))
    names = layer.names[Arguments.FORWARD_INPUTS]
    dtype = tensors["x"].dtype
    inputs = [_array(tensors.get(name), dtype) for name in names]
    if mask is not None:  # a copy, because a program may fill it again before the backward pass
        mask = mask.clone(memory_format=torch.contiguous_format)
    if not is_trained:
        *outputs, _ = _forward(layer, mask, inputs)
        return outputs
    output, *states = _Passes.apply(layer, mask, *inputs)
    # The backward pass reads the output, which a program may change in place.
    return [output.clone(), *states]


@functools.lru_cache(maxsize=256)
def _layer(options: tuple[tuple[str, Any], ...]) -> Layer:
    return Layer(**dict(options))


def _threads() -> int:
    return min(torch.get_num_threads(), _MOST_THREADS)


def _array(tensor: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    """A tensor whose numbers lie in memory as its strides say, without gaps.

    A gradient, and what a hook of saved tensors returns, may be another tensor than was expected.
    """
    if tensor is None:
        return None
    if tensor.dtype != dtype or tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise RuntimeError(
            f"a tensor of a recurrent layer must be of {dtype} on the CPU. Received: "
            f"{tensor.dtype} on {tensor.device}, {tensor.layout}"
        )
    if tensor.numel() and tensor.data_ptr() == 0:  # zeros without memory
        return torch.zeros(tensor.shape, dtype=dtype)
    return tensor.resolve_neg().contiguous()


def _view(tensor: torch.Tensor | None, mask: torch.Tensor | None = None) -> View:
    if tensor is None:
        return ABSENT
    if mask is not None and mask.shape != tensor.shape[:2]:  # of a hook, too
        raise RuntimeError(
            f"the mask must have the shape {[*tensor.shape[:2]]}. Received: {[*mask.shape]}"
        )
    return View(tensor.shape, tensor.data_ptr(), 0 if mask is None else mask.data_ptr())


def _views(tensors: Sequence[torch.Tensor | None], mask: torch.Tensor | None) -> list[View]:
    return [_view(tensors[0], mask), *map(_view, tensors[1:])]


def _forward(
    layer: Layer, mask: torch.Tensor | None, inputs: Sequence[torch.Tensor | None]
) -> list[torch.Tensor]:
    """The outputs and the reserve."""
    views, like = _views(inputs, mask), inputs[0]
    assert like is not None
    outputs = [like.new_empty(shape) for shape in layer.infer(views)]
    layer.forward(_threads(), views, [*map(_view, outputs)])
    return outputs


class _Passes(torch.autograd.Function):
    """The forward pass and the backward pass."""

    @staticmethod
    def forward(ctx: Any, layer: Layer, mask: Any, *inputs: Any) -> Any:
        *outputs, reserve = _forward(layer, mask, inputs)
        ctx.layer, ctx.dtype = layer, inputs[0].dtype
        # It has no derivative, but a change of it before the backward pass is found.
        ctx.save_for_backward(mask, *inputs, outputs[0], reserve)
        ctx.set_materialize_grads(False)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        mask, *tensors = ctx.saved_tensors
        output_grad, *state_grads = grads
        if output_grad is None:
            output_grad = torch.zeros_like(tensors[-2])
        given = (ctx.needs_input_grad[2:], *tensors, output_grad, *state_grads)
        found = _Gradients.apply(ctx.layer, ctx.dtype, mask, *given)
        return None, None, *found, *[None] * (len(ctx.needs_input_grad) - 2 - len(found))


class _Gradients(torch.autograd.Function):
    """The backward pass. It is a function of autograd so that nobody takes it for a constant."""

    @staticmethod
    def forward(_: Any, layer: Layer, dtype: Any, mask: Any, wanted: Any, *given: Any) -> Any:
        tensors = [_array(tensor, dtype) for tensor in given]
        mask = _array(mask, torch.bool)
        # The order of the outputs is that of the inputs; the multipliers of dropout are constant.
        names = layer.names[Arguments.BACKWARD_OUTPUTS]
        found = [
            torch.empty_like(tensor) if is_wanted and tensor is not None else None
            for tensor, is_wanted, _ in zip(tensors, wanted, names, strict=False)
        ]
        layer.backward(_threads(), _views(tensors, mask), [*map(_view, found)])
        return tuple(found)

    @staticmethod
    def backward(_: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "the layers that accelerate() makes faster have no second derivatives on PyTorch. "
            "Call restore() of what it returned; then Keras' own code has them"
        )
