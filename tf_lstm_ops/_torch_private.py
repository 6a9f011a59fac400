"""Every private name of PyTorch that the package uses: what traces, transforms or sees a call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _private(name: str) -> Any:
    """What a private function of PyTorch returns; True if this version has none."""
    function = getattr(torch._C, name, None)
    return True if function is None else function()


def is_exporting() -> bool:
    """Whether torch.export traces this code.

    Returns:
      True if it does.
    """
    return bool(getattr(torch.compiler, "is_exporting", lambda: False)())


def why_not() -> str | None:
    """Why a function that is not PyTorch's cannot take part in a computation.

    Returns:
      The reason, such as a trace or a transform; None in eager code.
    """
    if torch.autograd.forward_ad._current_level >= 0:
        return "a derivative in forward mode"
    if torch.jit.is_tracing():
        return "torch.jit traces the call"
    if _private("_are_functorch_transforms_active"):
        return "a transform of torch.func"
    if _private("_len_torch_dispatch_stack"):
        return "a mode of PyTorch that sees each operation"
    if torch.is_autocast_enabled("cpu"):
        return "torch.autocast, in which an operation has another dtype"
    return None


def why_no_memory(tensors: Iterable[Any]) -> str | None:
    """Why tensors are not arrays in the memory of the CPU.

    Args:
      tensors: those of a call.

    Returns:
      The reason; None if they are.
    """
    for tensor in tensors:
        if type(tensor) not in _PLAIN:
            return f"a tensor of the class {type(tensor).__name__}"
        if tensor.device.type != "cpu":
            return f"a tensor on {tensor.device.type}"
        if tensor.layout is not torch.strided:
            return f"a tensor of the layout {tensor.layout}"
    return None
