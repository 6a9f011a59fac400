"""torch.nn.LSTM and GRU, with packed sequences for sequence lengths."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils import rnn

from peers.cases import WEIGHTS, Problem, Row, compared_grads, compared_output
from peers.frameworks import Prepared, torch_model
from peers.models import ModelProblem
from tf_lstm_ops._arrays import Array


def build(row: Row, problem: Problem | ModelProblem, threads: int) -> Prepared:
    """Makes a call of a PyTorch module.

    Args:
      row: the row.
      problem: its data.
      threads: the number of threads.

    Returns:
      The call to time.
    """
    if isinstance(problem, ModelProblem):
        return torch_model.build(problem, threads)
    torch.set_num_threads(threads)
    options = {"proj_size": row.projection} if row.projection else {}  # a GRU does not take it
    module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[row.cell](
        row.inputs,
        row.units,
        num_layers=row.layers,
        bidirectional=row.directions == 2,
        batch_first=True,
        **options,
    )
    arrays = problem.weights.to_torch()
    module.load_state_dict({name: torch.from_numpy(a) for name, a in arrays.items()})
    x, output_grad = torch.from_numpy(problem.x), torch.from_numpy(problem.output_grad)
    lengths = torch.from_numpy(problem.lengths).long()

    def forward(x: Any) -> Any:
        if problem.valid is None:
            return module(x)[0]
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return rnn.pad_packed_sequence(module(packed)[0], True, total_length=row.time)[0]

    def inference() -> Any:
        with torch.inference_mode():
            return forward(x)

    def training() -> Any:
        leaf = x.detach().requires_grad_()
        output = forward(leaf)
        return output, torch.autograd.grad(output, [leaf, *module.parameters()], output_grad)

    def results_of_training(found: Any) -> dict[str, Array]:
        output, (x_grad, *weight_grads) = found
        names = [name for name, _ in module.named_parameters()]
        weights = WEIGHTS[row.cell].from_torch(dict(zip(names, weight_grads, strict=True)))
        return {
            **compared_output(output.detach().numpy(), problem),
            **compared_grads(x_grad.numpy(), weights),
        }

    if row.task == "training":
        return Prepared(training, results_of_training)
    return Prepared(inference, lambda output: compared_output(output.numpy(), problem))
