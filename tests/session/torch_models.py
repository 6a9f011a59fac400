"""Models of PyTorch as their users write them, for the exporters to ONNX."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

FEATURES, UNITS, STEPS = 5, 6, 7

Tensor = torch.Tensor


class Tagger(nn.Module):
    """Word tags: an embedding, a recurrent layer, a softmax for each word."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.rnn = nn.GRU(8, UNITS, 2, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(2 * UNITS, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.tags(self.rnn(self.words(x))[0]), -1)


class Forecast(nn.Module):
    """The last step of a recurrent layer."""

    def __init__(self, kind: Any = nn.LSTM, **options: Any) -> None:
        super().__init__()
        self.rnn = kind(FEATURES, UNITS, **options)
        self.batch_first = options.get("batch_first", False)
        self.head = nn.Linear(UNITS * (1 + options.get("bidirectional", False)), 3)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.rnn(x)
        return self.head(y[:, -1] if self.batch_first else y[-1])


class Classifier(nn.Module):
    """The final states of both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(FEATURES, UNITS, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * UNITS, 3)

    def forward(self, x: Tensor) -> Tensor:
        _, (h, _) = self.rnn(x)
        return torch.log_softmax(self.head(torch.relu(torch.cat([h[-2], h[-1]], 1))), -1)


class Halves(nn.Module):
    """Each direction's last output, taken from the sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(FEATURES, UNITS, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * UNITS, 4)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.rnn(x)
        return self.head(torch.cat([y[:, -1, :UNITS], y[:, 0, UNITS:]], 1))


class Convolutions(nn.Module):
    """A CNN before an LSTM, and the average of its steps."""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(FEATURES, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2)
        )
        self.rnn = nn.LSTM(8, UNITS, batch_first=True)
        self.head = nn.Linear(UNITS, 4)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.rnn(self.front(x.transpose(1, 2)).transpose(1, 2))
        return self.head(y.mean(1))


class Residual(nn.Module):
    """A sum, a normalisation, a gate and a concatenation, then an axis that is divided."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(FEATURES, FEATURES, batch_first=True)
        self.norm = nn.LayerNorm(FEATURES)
        self.head = nn.Linear(2 * FEATURES, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x + self.rnn(x)[0])
        y = self.head(torch.cat([torch.sigmoid(y) * y, x], -1))
        return y.reshape(x.shape[0], -1, 2, 2)[:, :, 0]


class Gated(nn.Module):
    """Half of the features gates the other half."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(FEATURES, UNITS, batch_first=True)
        self.head = nn.Sequential(nn.Linear(UNITS // 2, 4), nn.PReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.head(nn.functional.glu(self.rnn(x)[0], -1))


class Flat(nn.Module):
    """All steps as features of a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(FEATURES, UNITS, batch_first=True)
        self.head = nn.Linear(STEPS * UNITS, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0].flatten(1))


class Step(nn.Module):
    """States as inputs and outputs."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.rnn = nn.LSTM(FEATURES, UNITS, num_layers, batch_first=True)
        self.head = nn.Linear(UNITS, 4)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.rnn(x, (h, c))
        return self.head(y), h, c


MODELS: dict[str, Callable[[], nn.Module]] = {
    "tagger": Tagger,
    "forecast": lambda: Forecast(batch_first=True),
    "forecast time first": Forecast,
    "forecast gru": lambda: Forecast(nn.GRU, num_layers=2, bidirectional=True, batch_first=True),
    "forecast rnn": lambda: Forecast(nn.RNN, nonlinearity="relu", batch_first=True),
    "classifier": Classifier,
    "halves": Halves,
    "convolutions": Convolutions,
    "residual": Residual,
    "gated": Gated,
    "flat": Flat,
    "step": lambda: Step(1),
    "step of two layers": lambda: Step(2),
}


def make(name: str) -> nn.Module:
    """A model with random weights and, in a normalisation, random statistics."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return model


def inputs(model: nn.Module, batch: int, steps: int) -> tuple[Tensor, ...]:
    """Random inputs of a model, as it takes them."""
    generator = torch.Generator().manual_seed(1)
    if isinstance(model, Tagger):
        return (torch.randint(0, 20, (batch, steps), generator=generator),)
    is_time_first = isinstance(model, Forecast) and not model.batch_first
    sizes = (steps, batch, FEATURES) if is_time_first else (batch, steps, FEATURES)
    found = [torch.randn(sizes, generator=generator)]
    if isinstance(model, Step):
        sizes = (model.num_layers, batch, UNITS)
        found += [torch.randn(sizes, generator=generator) for _ in range(2)]
    return tuple(found)


def batch_axes(model: nn.Module) -> list[int]:
    """The axis of the batch of each input."""
    if isinstance(model, Forecast) and not model.batch_first:
        return [1]
    return [0, 1, 1] if isinstance(model, Step) else [0]
