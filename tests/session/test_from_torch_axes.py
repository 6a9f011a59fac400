"""The order of axes between modules of PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from session.test_from_torch import B, C, T, floats, of_channels, same, with_random_values
from tf_lstm_ops.inference import Session, layers

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch, the peer compared with, is not installed")
nn = torch.nn


def test_a_list_moves_axes(rng: np.random.Generator) -> None:
    modules = [
        *(nn.Conv1d(C, 5, 3), nn.ReLU()),
        *(nn.LayerNorm(5), nn.LSTM(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)),
    ]
    with_random_values(*modules)

    def forward(x: Any, conv: Any, relu: Any, norm: Any, lstm: Any, bn: Any, head: Any):
        y = norm(relu(conv(x.mT)).mT)
        y = lstm(y.transpose(0, 1))[0].permute(1, 2, 0)
        return head(bn(y).mT)

    same(Session.from_torch(modules), forward, floats(rng), *modules)


def test_a_sequential_in_a_list(rng: np.random.Generator) -> None:
    """It gets the order that its first module with one takes."""
    conv, part = nn.Conv1d(C, 5, 3), nn.Sequential(nn.ReLU(), nn.Linear(5, 4), nn.Softmax(-1))
    chain = [conv, part, nn.Conv1d(4, 2, 3)]
    same(
        Session.from_torch(chain),
        lambda x, a, b, c: c(b(a(x.mT).mT).mT).mT,
        floats(rng),
        *chain,
    )


def test_time_first_in_a_sequential(rng: np.random.Generator) -> None:
    part = nn.Sequential(nn.Embedding(9, 4), nn.Dropout(), nn.Linear(4, 3))
    session = Session.from_torch([part, nn.GRU(3, 2)])
    assert session(rng.integers(0, 9, (B, T))).shape == (B, T, 2)


@pytest.mark.parametrize("kind", ["features", "channels", "time first"])
def test_flatten(kind: str, rng: np.random.Generator) -> None:
    """Behind channels the elements are in the order [C, T]."""
    first = {
        "features": nn.Linear(C, 2),
        "channels": nn.Conv1d(C, 2, 1),
        "time first": nn.LSTM(C, 2),
    }[kind]
    head = nn.Linear(2 * T, 3)

    def forward(x: Any, first: Any, head: Any) -> Any:
        if kind == "features":
            return head(first(x).flatten(1))
        if kind == "channels":
            return head(first(x.mT).flatten(1))
        return head(first(x.transpose(0, 1))[0].transpose(0, 1).flatten(1))

    session = Session.from_torch([layers.Input((T, C)), first, nn.Flatten(), head])
    same(session, forward, floats(rng), first, head)
    with pytest.raises(ValueError, match=r"Begin the list with layers.Input\(\(T, F\)\)"):
        Session.from_torch([first, nn.Flatten(), head])


def test_two_axes(rng: np.random.Generator) -> None:
    """Without time nothing moves."""
    net = nn.Sequential(nn.Linear(C, 4), nn.BatchNorm1d(4), nn.Flatten(), nn.Softmax(1))
    with_random_values(net)
    session = Session.from_torch([layers.Input((C,)), net])
    same(session, lambda x, m: m(x), floats(rng, B, C), net)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "linear behind a convolution": (
        lambda: nn.Sequential(nn.Conv1d(C, 5, 3), nn.ReLU(), nn.Linear(5, 2)),
        r"module 2 \(Linear\): it takes \[B, T, C\], and the module before it in the Sequential "
        r"gives \[B, C, T\]",
    ),
    "batch norm behind linear": (
        lambda: nn.Sequential(nn.Linear(C, 4), nn.BatchNorm1d(4)),
        r"module 1 \(BatchNorm1d\): it takes \[B, C, T\]",
    ),
    "a convolution of words": (
        lambda: [nn.Sequential(nn.Embedding(9, 4), nn.Conv1d(4, 4, 3))],
        r"module 0.1 \(Conv1d\): it takes \[B, C, T\]",
    ),
    "softmax over time": (
        lambda: [nn.Conv1d(C, 5, 3), nn.Softmax(dim=-1)],
        r"module 1 \(Softmax\): its dim=-1 is not the axis of the features",
    ),
    "softmax over the batch": (
        lambda: [nn.Linear(C, 5), nn.Softmax(dim=0)],
        "dim must be the axis of the features. Received: dim=0",
    ),
    "softmax over any axis": (
        lambda: [nn.Linear(C, 5), nn.Softmax()],
        "dim must be the axis of the features. Received: dim=None",
    ),
    "softmax over time behind an lstm": (
        lambda: [nn.LSTM(C, 5), nn.Softmax(dim=1)],
        "use the layer of tf_lstm_ops.inference.layers in its place",
    ),
    "softmax of unknown channels": (
        lambda: [nn.Softmax(dim=1), nn.Linear(C, 2)],
        r"module 0 \(Softmax\): its dim=1 is not the axis of the features of \[B, T, C\]",
    ),
    "log softmax of unknown channels": (
        lambda: [nn.ReLU(), nn.LogSoftmax(dim=-2), nn.Linear(C, 2)],
        r"module 1 \(LogSoftmax\): its dim=-2 is not the axis",
    ),
    "glu of unknown channels": (
        lambda: [layers.Input((None, C)), nn.GLU(1)],
        r"module 1 \(GLU\): its dim=1 is not the axis",
    ),
    "flatten of the batch": (
        lambda: [layers.Input((C,)), nn.Sequential(nn.Linear(C, 1), nn.Flatten(0))],
        "Received: start_dim=0, end_dim=-1 for 2 axes",
    ),
    "flatten of the batch, counted from behind": (
        lambda: [layers.Input((C,)), nn.Flatten(-2)],
        "Received: start_dim=-2, end_dim=-1 for 2 axes",
    ),
    "flatten of some axes": (
        lambda: [layers.Input((T, C)), nn.Flatten(0, 1)],
        "Received: start_dim=0, end_dim=1 for 3 axes",
    ),
    "an lstm of the last step": (
        lambda: [nn.LSTM(C, 5), layers.LastStep(), nn.LSTM(5, 2)],
        r"module 2 \(LSTM\): its input has 2 axes, must have 3",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_orders(kind: str) -> None:
    made, text = REFUSED[kind]
    with pytest.raises(ValueError, match=text):
        Session.from_torch(made())


def test_channels_in_a_sequential(rng: np.random.Generator) -> None:
    net = nn.Sequential(nn.Conv1d(C, 8, 3), nn.GLU(1), nn.PReLU(4), nn.Softmax(1))
    with_random_values(net)
    same(Session.from_torch(net), of_channels, floats(rng), *net)
