"""Trains a small LSTM in PyTorch and writes it for C: model.session, and samples for a check.

The network learns an overdrive: a smoothed input, amplified and bent by tanh. The sound of an
amplifier would be trained in the same way. input.txt gets samples that were not trained, and
expected.txt what PyTorch computes of them.

    python convert.py [--steps 200] [--onnx]

With --onnx it exports the network to net.onnx, and reads this file.
"""

import argparse

import numpy as np
import torch

from tf_lstm_ops.inference import Session


class Overdrive(torch.nn.Module):
    """An LSTM and a linear layer: [batch, time, 1] to [batch, time, 1]."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(1, units, batch_first=True)
        self.head = torch.nn.Linear(units, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0])


def overdrive(x: torch.Tensor) -> torch.Tensor:
    """What the network learns: the average of three samples, bent by tanh."""
    padded = torch.nn.functional.pad(x, (0, 0, 2, 0))
    return torch.tanh(3 * (padded[:, 2:] + padded[:, 1:-1] + padded[:, :-2]) / 3)


def train(net: Overdrive, steps: int) -> float:
    """Trains on random samples. Returns the last loss."""
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(steps):
        x = 0.5 * torch.randn(16, 64, 1)
        loss = torch.nn.functional.mse_loss(net(x), overdrive(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def export(net: Overdrive) -> None:
    """Writes net.onnx, for any number of sequences and steps."""
    names = {"input_names": ["x"], "output_names": ["y"]}
    axes = {name: {0: "batch", 1: "time"} for name in "xy"}
    x = torch.zeros(2, 3, 1)
    torch.onnx.export(net, (x,), "net.onnx", dynamo=False, dynamic_axes=axes, **names)


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains an LSTM in PyTorch and writes it for C.")
    parser.add_argument("--steps", type=int, default=200, help="of training")
    parser.add_argument("--onnx", action="store_true", help="go by an ONNX file")
    arguments = parser.parse_args()
    steps = arguments.steps
    torch.manual_seed(0)
    net = Overdrive(16)
    print(f"loss after {steps} steps: {train(net, steps):.4f}")

    if arguments.onnx:
        export(net)
        session = Session.from_onnx("net.onnx")
    else:
        session = Session.from_torch([net.lstm, net.head])
    session.save("model.session")

    samples = 0.5 * torch.sin(torch.arange(480) * (2 * torch.pi * 440 / 48000))[None, :, None]
    with torch.no_grad():
        expected = net(samples)
    np.savetxt("input.txt", samples[0].numpy(), "%.9g")
    np.savetxt("expected.txt", expected[0].numpy(), "%.9g")
    difference = np.abs(session(samples.numpy()) - expected.numpy()).max()
    print(f"largest difference between the session and PyTorch: {difference:.1e}")


if __name__ == "__main__":
    main()
