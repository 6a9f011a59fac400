"""Random problems, and their results and gradients by torch.nn in float64 on the CPU."""

from __future__ import annotations

import torch
from check_cases import OUTPUTS, Case, Tensors


def params_of(case: Case, module: torch.nn.Module) -> torch.Tensor:
    """In cuDNN's layout, whose gates have PyTorch's order: all matrices, then all biases."""
    named = dict(module.named_parameters())
    pseudo_layers = [
        f"l{layer}{suffix}"
        for layer in range(case.layers)
        for suffix in ("", "_reverse")[: case.directions]
    ]
    kinds = [["weight_ih", "weight_hh", *(["weight_hr"] if case.proj else [])]]
    kinds.append(["bias_ih", "bias_hh"])
    names = [f"{kind}_{p}" for group in kinds for p in pseudo_layers for kind in group]
    return torch.cat([named[name].flatten() for name in names])


def swapped(case: Case, tensors: Tensors) -> Tensors:
    """Time-major from the case's layout, or the other way round."""
    if case.time_major:
        return tensors
    return {k: v.transpose(0, 1) if v.dim() == 3 else v for k, v in tensors.items()}


def random_problem(case: Case) -> tuple[torch.nn.Module, Tensors, Tensors]:
    """A module in float64, and time-major arguments and upstream gradients, float16's numbers."""
    torch.manual_seed(0)
    module = case.module(torch.float64)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(parameter.bfloat16())
    states = case.layers * case.directions
    shapes = {
        "input": (case.time, case.batch, case.inputs),
        "input_h": (states, case.batch, case.hidden),
        "input_c": (states, case.batch, case.units),
    }
    given = {k: torch.randn(s).bfloat16().double() for k, s in shapes.items()}
    upstream = {
        "output": torch.randn(case.time, case.batch, case.directions * case.hidden),
        "output_h": torch.randn(shapes["input_h"]),
        "output_c": torch.randn(shapes["input_c"]),
    }
    if case.mode != "lstm":
        del given["input_c"], upstream["output_c"]
    return module, given, {k: v.bfloat16().double() for k, v in upstream.items()}


def reference(case: Case, module: torch.nn.Module, given: Tensors, upstream: Tensors) -> Tensors:
    """Results and gradients, time-major. PyTorch refuses rows of length zero: they stay as they are
    and hand their gradients back."""
    lengths = torch.tensor(case.row_lengths())
    rows = torch.nonzero(lengths).flatten()
    leaves = {k: v[:, rows].clone().requires_grad_() for k, v in given.items()}
    state = (leaves["input_h"], leaves["input_c"]) if "input_c" in leaves else leaves["input_h"]
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        leaves["input"], lengths[rows], enforce_sorted=False
    )
    output, final = module(packed, state)
    output, _ = torch.nn.utils.rnn.pad_packed_sequence(output, total_length=case.time)
    finals = final if isinstance(final, tuple) else (final,)
    results = dict(zip(OUTPUTS, (output, *finals), strict=False))
    module.zero_grad()
    loss = sum((upstream[k][:, rows] * v).sum() for k, v in results.items())
    loss.backward()
    found: Tensors = {}
    for name, value in results.items():
        source = name.replace("output", "input")
        found[name] = (
            torch.zeros_like(upstream[name]) if name == "output" else given[source].clone()
        )
        found[name][:, rows] = value.detach()
    for name, leaf in leaves.items():
        source = name.replace("input", "output")
        start = torch.zeros_like(given[name]) if name == "input" else upstream[source].clone()
        start[:, rows] = leaf.grad
        found[f"{name}_backprop"] = start
    gradients = case.module(torch.float64)
    with torch.no_grad():
        for into, parameter in zip(gradients.parameters(), module.parameters(), strict=True):
            into.copy_(parameter.grad)
    found["params_backprop"] = params_of(case, gradients).detach()
    return found
