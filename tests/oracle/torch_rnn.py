"""PyTorch's nn.LSTM, nn.GRU and nn.RNN on the arguments of `cudnn_rnn`. Imports torch."""

import numpy as np
import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .cudnn_rnn import Arguments, Array, Model, Results


def network(model: Model, dtype: torch.dtype) -> torch.nn.RNNBase:
    options = {
        "num_layers": model.layers,
        "bidirectional": model.directions == 2,
        "dtype": dtype,
    }
    if model.mode == "lstm":
        projection = model.num_proj if model.is_projected else 0
        return torch.nn.LSTM(model.inputs, model.units, proj_size=projection, **options)
    if model.mode == "gru":
        return torch.nn.GRU(model.inputs, model.units, **options)
    return torch.nn.RNN(
        model.inputs, model.units, nonlinearity=model.mode.removeprefix("rnn_"), **options
    )


def parameters(rnn: torch.nn.RNNBase) -> list[torch.nn.Parameter]:
    """In the order of cuDNN's buffer. PyTorch has the gates of each matrix in cuDNN's order."""
    layers = [
        f"l{layer}{suffix}"
        for layer in range(rnn.num_layers)
        for suffix in ("", "_reverse")[: 1 + rnn.bidirectional]
    ]
    matrices = ["weight_ih", "weight_hh", *(["weight_hr"] if rnn.proj_size else [])]
    names = [f"{name}_{layer}" for layer in layers for name in matrices]
    names += [f"{name}_{layer}" for layer in layers for name in ("bias_ih", "bias_hh")]
    return [getattr(rnn, name) for name in names]


def run(
    model: Model, arguments: Arguments, upstream: Results, lengths: Array | None = None
) -> tuple[Results, Arguments]:
    """Results and gradients, in the arguments' type; `lengths` as a packed sequence."""
    assert model.time_major and not model.skip_input
    is_lstm = model.mode == "lstm"
    x, h, c, params = (torch.tensor(a, requires_grad=True) for a in arguments)
    rnn = network(model, params.dtype)
    vector_to_parameters(params.detach(), parameters(rnn))
    packed = x
    if lengths is not None:
        packed = pack_padded_sequence(x, torch.as_tensor(lengths), enforce_sorted=False)
    output, states = rnn(packed, (h, c) if is_lstm else h)
    if lengths is not None:
        output, _ = pad_packed_sequence(output, total_length=x.shape[0])
    results = [output, *states] if is_lstm else [output, states]
    given = [torch.tensor(a) for a in upstream[: len(results)]]
    torch.autograd.backward(results, given)
    gradients = [x.grad, h.grad, c.grad if is_lstm else torch.zeros_like(c)]
    gradients.append(parameters_to_vector([p.grad for p in parameters(rnn)]))
    if not is_lstm:
        results.append(torch.zeros((), dtype=x.dtype))
    return (
        Results(*(np.asarray(a.detach()) for a in results)),
        Arguments(*map(np.asarray, gradients)),
    )
