"""The PyTorch modules of the rows of models. Signals are [B, C, T], as torch.nn.Conv1d wants."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn.utils import rnn

from peers.frameworks import Prepared
from peers.models import Conv, Dense, Embed, Layer, ModelProblem, Pool, Recurrent


def build(problem: ModelProblem, threads: int) -> Prepared:
    """Makes a call of a PyTorch model.

    Args:
      problem: the data of the row.
      threads: the number of threads.

    Returns:
      The call to time.
    """
    torch.set_num_threads(threads)
    steps = [_step(layer, weights, problem) for layer, weights in problem.layers]
    x = problem.x if problem.x.ndim == 2 else np.ascontiguousarray(np.swapaxes(problem.x, 1, 2))
    given = torch.from_numpy(x)

    def call() -> Any:
        y = given
        with torch.inference_mode():
            for step in steps:
                y = step(y)
        return y

    return Prepared(call, lambda y: {"output": y.numpy()})


def _tensors(weights: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in weights.items()}


def _step(layer: Layer, weights: Any, problem: ModelProblem) -> Any:
    """A function that computes a layer."""
    match layer:
        case Conv():
            return _convolution(layer, weights)
        case Pool(size):
            return torch.nn.MaxPool1d(size)
        case Embed():
            table = torch.from_numpy(weights["table"])
            return lambda ids: torch.nn.functional.embedding(ids, table)
        case Recurrent():
            return _lstm(layer, weights, problem)
        case Dense():
            kernel, bias = torch.from_numpy(weights["kernel"].T.copy()), _tensors(weights)["bias"]
            linear = torch.nn.functional.linear
            return lambda x: torch.softmax(linear(x, kernel, bias), -1)


def _convolution(layer: Conv, weights: dict[str, Any]) -> Any:
    _, channels, units = weights["kernel"].shape
    conv = torch.nn.Conv1d(channels, units, layer.size, padding=layer.padding)
    kernel = np.transpose(weights["kernel"], (2, 1, 0))
    conv.load_state_dict(_tensors({"weight": kernel, "bias": weights["bias"]}))
    modules: list[torch.nn.Module] = [conv]
    if layer.normalized:
        norm = torch.nn.BatchNorm1d(units, eps=1e-3)  # Keras' epsilon
        names = {"weight": "gamma", "bias": "beta", "running_mean": "mean"}
        names["running_var"] = "variance"
        norm.load_state_dict(_tensors({n: weights[w] for n, w in names.items()}), strict=False)
        modules.append(norm)
    return torch.nn.Sequential(*modules, torch.nn.ReLU()).eval()


def _lstm(layer: Recurrent, weights: Any, problem: ModelProblem) -> Any:
    inputs = weights.cells[0].kernel.shape[0]
    both = layer.directions == 2
    lstm = torch.nn.LSTM(inputs, layer.units, bidirectional=both, batch_first=True)
    lstm.load_state_dict({n: torch.from_numpy(a) for n, a in weights.to_torch().items()})
    is_signal = problem.x.ndim == 3
    lengths = None if problem.lengths is None else torch.from_numpy(problem.lengths).long()

    def step(x: Any) -> Any:
        x = x.transpose(1, 2) if is_signal else x
        if lengths is not None:
            x = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        output, (h, _) = lstm(x)
        return output if layer.sequences else torch.cat(list(h), -1)

    return step
