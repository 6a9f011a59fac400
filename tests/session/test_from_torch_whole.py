"""Sessions of whole modules, whose forward method PyTorch's exporter follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tf_lstm_ops.inference import Session

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch, the peer compared with, is not installed")
pytest.importorskip("onnxscript", reason="the exporter of PyTorch needs it")
nn = torch.nn

INPUTS, UNITS, OUTPUTS = 5, 6, 3
# Of the largest element: float32 has 1.2e-7, and a product of some terms several roundings.
TOLERANCE = 4e-6


class Tagger(nn.Module):
    """A convolution, two bidirectional layers, and the features of the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(INPUTS, 8, 3, padding=1)
        self.lstm = nn.LSTM(8, UNITS, 2, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(2 * UNITS, OUTPUTS)

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        y, _ = self.lstm(self.dropout(y))
        return self.head(y[:, -1])


class Step(nn.Module):
    """States in and out."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(INPUTS, UNITS, batch_first=True)
        self.head = nn.Linear(UNITS, OUTPUTS)

    def forward(self, x: Any, h: Any) -> Any:
        y, h = self.gru(x, h)
        return self.head(y), h


class Words(nn.Module):
    """Indices, in a dictionary of results."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, INPUTS)
        self.rnn = nn.GRU(INPUTS, UNITS, batch_first=True)

    def forward(self, words: Any) -> Any:
        y, _ = self.rnn(self.table(words))
        return {"y": y}


class Sums(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.cumsum(x, 1)


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({"sums": Sums()})

    def forward(self, x: Any) -> Any:
        return self.parts["sums"](x)


class Branch(nn.Module):
    def forward(self, x: Any) -> Any:
        return x if x.sum() > 0 else -x


def normal(rng: np.random.Generator, *shape: int) -> Any:
    return rng.standard_normal(shape, np.float32)


def close(found: Any, expected: Any) -> None:
    expected = expected.detach().numpy()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * abs(expected).max())


def test_a_forward_of_the_users(rng: np.random.Generator) -> None:
    net = Tagger().train()
    session = Session.from_torch(net, example=torch.zeros(2, 9, INPUTS))
    assert net.training and net.dropout.training
    x = normal(rng, 3, 14, INPUTS)  # other sizes than the example
    close(session(x), net.eval()(torch.from_numpy(x)))


@pytest.mark.parametrize("form", ["tuple", "dictionary"])
def test_states_are_arguments_and_results(form: str, rng: np.random.Generator) -> None:
    net, x, h = Step(), torch.zeros(2, 9, INPUTS), torch.zeros(1, 2, UNITS)
    example = (x, h) if form == "tuple" else {"x": x, "h": h}
    session = Session.from_torch(net, example=example)
    assert [each.name for each in session.inputs] == ["x", "h"]
    assert [each.name for each in session.outputs] == ["output", "output_1"]
    given = {"x": normal(rng, 4, 7, INPUTS), "h": normal(rng, 4, UNITS)}
    found = session(given)
    y, final = net(torch.from_numpy(given["x"]), torch.from_numpy(given["h"][None]))
    close(found["output"], y)
    close(found["output_1"], final[0])


def test_indices(rng: np.random.Generator) -> None:
    net = Words()
    session = Session.from_torch(net, example=torch.zeros(2, 7, dtype=torch.int64))
    words = rng.integers(0, 20, (3, 9)).astype("int32")
    close(session(words), net(torch.from_numpy(words.astype("int64")))["y"])


def test_a_difference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from tf_lstm_ops.inference.from_torch import whole

    called = whole._Program.__call__
    monkeypatch.setattr(whole._Program, "__call__", lambda *a: [1.01 * y for y in called(*a)])
    with pytest.raises(ValueError, match="differs from that of the module in PyTorch"):
        Session.from_torch(Tagger(), example=torch.zeros(2, 9, INPUTS))
    Session.from_torch(Tagger(), example=torch.zeros(2, 9, INPUTS), check=False)


def test_refusals_have_the_names_of_modules(capfd: pytest.CaptureFixture[str]) -> None:
    x = torch.zeros(2, 9, INPUTS)
    with pytest.raises(ValueError, match=r"node parts\.sums/\w+ \(CumSum\)"):
        Session.from_torch(Around(), example=x)
    with pytest.raises(ValueError, match=r"^PyTorch cannot export Branch with this example: "):
        Session.from_torch(Branch(), example=x)
    assert "def forward" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"example": np.zeros((2, 9, INPUTS))}, TypeError, "example must be a tensor"),
        ({"example": ()}, ValueError, "example must have a tensor"),
        ({"example": torch.zeros(2, 9, 4)}, ValueError, "PyTorch cannot export Tagger"),
        ({"example": torch.zeros(2, 9, INPUTS), "layers": []}, ValueError, "layers must be None"),
        ({"example": torch.zeros(2, 9, INPUTS), "check": abs}, ValueError, "check True or False"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        Session.from_torch(Tagger(), **arguments)


def test_a_source_that_is_no_module() -> None:
    with pytest.raises(TypeError, match="example is for a module of PyTorch"):
        Session.from_torch([Tagger()], example=torch.zeros(2, 9, INPUTS))
