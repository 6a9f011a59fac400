"""The comparison of a session with PyTorch, and what it leaves as it was."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from session.test_from_torch import C
from tf_lstm_ops.inference import Session, layers, source_check
from tf_lstm_ops.inference.from_torch import products

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch, the peer compared with, is not installed")
nn = torch.nn


class Net(nn.Module):
    """A buffer counts the calls, and another one is replaced by each call."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(C, 4, batch_first=True)
        self.drop = nn.Dropout()
        self.head = nn.Linear(4, 2)
        self.register_buffer("calls", torch.zeros(1))
        self.register_buffer("last", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.last = torch.ones(1)
        return self.head(self.drop(self.lstm(x)[0][:, -1]))


def chain(net: Any) -> list[Any]:
    return [net.lstm, layers.LastStep(), net.drop, net.head]


def test_a_wrong_weight_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the size of the difference. check=False does not compare."""
    made, linear = layers.Dense, nn.Linear(C, 2)

    def wrong(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        return made(kernel + 0.01, *args, **kwargs)

    monkeypatch.setattr(products.layers, "Dense", wrong)
    text = r"differs from that of the modules in PyTorch by 0\.\d+, where the largest element is"
    with pytest.raises(ValueError, match=text):
        Session.from_torch(linear)
    Session.from_torch(linear, check=False)


def test_the_whole_model() -> None:
    net = Net()
    session = Session.from_torch(chain(net), check=net)
    x = np.ones((2, 3, C), "float32")
    np.testing.assert_array_equal(session(x), Session.from_torch(chain(net))(x))
    assert net.training
    net.eval()
    Session.from_torch(chain(net), check=lambda x: net(x))
    Session.from_torch(chain(net.double()), check=net)


def test_a_list_that_is_not_the_model() -> None:
    net = Net()
    wrong = [net.lstm, layers.FirstStep(), net.head]
    Session.from_torch(wrong)
    text = r"differs from that of check=.*Net by .*The elements of the list.*are not what it comp"
    with pytest.raises(ValueError, match=text):
        Session.from_torch(wrong, check=net)
    with pytest.raises(ValueError, match=r"has the shape \(3, 2\), and that of the session \(3, 2"):
        Session.from_torch([net.lstm, net.head], check=net)


class TimeFirst(nn.Module):
    """Takes and returns [T, B, features]."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(C, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.gru(x)[0])


def test_a_model_with_the_time_first() -> None:
    """Both orders of its axes are tried."""
    net = TimeFirst()
    Session.from_torch([net.gru, net.head], check=net)
    Session.from_torch([net.gru, net.head], check=lambda x: net(x.transpose(0, 1)).transpose(0, 1))
    last = [net.gru, layers.LastStep(), net.head]
    Session.from_torch(last, check=lambda x: net(x)[-1])
    text = r"differs from .*It gets \[B, T, features\], then \[T, B, features\]"
    with pytest.raises(ValueError, match=text):
        Session.from_torch([net.gru, nn.Linear(4, 2)], check=net)


def test_nothing_is_changed() -> None:
    """Modes, parameters, requires_grad, buffers and the state of the random numbers."""
    net = Net()
    net.head.eval()
    net.lstm.weight_ih_l0.requires_grad_(False)
    before = {name: (t, t.clone()) for name, t in net.state_dict(keep_vars=True).items()}
    modes = {name: module.training for name, module in net.named_modules()}
    grads = {name: p.requires_grad for name, p in net.named_parameters()}
    seed = torch.random.get_rng_state()
    state = {name: tensor.detach().numpy() for name, (_, tensor) in before.items() if "." in name}
    listed = [("lstm", "LSTM"), layers.LastStep(), "Dropout", ("head", "Linear")]
    Session.from_torch(chain(net), check=net)
    Session.from_torch(chain(net))
    Session.from_torch(state, listed)
    assert torch.equal(torch.random.get_rng_state(), seed)
    assert modes == {name: module.training for name, module in net.named_modules()}
    assert grads == {name: p.requires_grad for name, p in net.named_parameters()}
    for name, tensor in net.state_dict(keep_vars=True).items():
        assert tensor is before[name][0]
        assert torch.equal(tensor, before[name][1]), name


def test_the_session_keeps_its_weights() -> None:
    linear = nn.Linear(C, 2)
    session, x = Session.from_torch(linear), np.ones((1, 1, C), "float32")
    before = session(x)
    with torch.no_grad():
        linear.weight.zero_()
    np.testing.assert_array_equal(session(x), before)


def raising(x: Any) -> Any:
    raise IndexError("no such axis")


FAILING: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an error": (raising, "cannot run on random inputs of the shapes .*IndexError: no such axis"),
    "no tensor": (lambda x: "y", "cannot run on random inputs .*TypeError: it returned 'y', must"),
}


@pytest.mark.parametrize("kind", FAILING)
def test_a_function_that_fails(kind: str) -> None:
    function, text = FAILING[kind]
    with pytest.raises(ValueError, match=text):
        Session.from_torch(nn.Linear(C, 2), check=function)


def test_random_inputs(rng: np.random.Generator) -> None:
    """Of two lengths, long enough for convolutions; indices are within the table."""
    shapes = []

    def run(x: Any) -> Any:
        shapes.append((tuple(x.shape), x.dtype))
        return nn.functional.conv1d(x.mT, conv.weight, conv.bias, 3, dilation=4).mT

    conv = nn.Conv1d(C, 2, 5, stride=3, dilation=4)
    Session.from_torch(conv, check=run)
    rows = source_check.ROWS
    assert shapes == [((rows, 20, C), torch.float32), ((rows, 35, C), torch.float32)]

    table, words = nn.Embedding(2, 3), []
    Session.from_torch(table, check=lambda x: words.append(x) or table(x))
    assert {x.dtype for x in words} == {torch.int64}
    assert set(torch.cat([x.flatten() for x in words]).tolist()) == {0, 1}


def test_the_number_of_axes() -> None:
    """A model that drops the last axis computes something else."""
    net = nn.Linear(C, 1)
    with pytest.raises(ValueError, match=r"has the shape \(3,\), and that of the session \(3, 1\)"):
        Session.from_torch([layers.Input((C,)), net], check=lambda x: net(x).squeeze(-1))


def test_epsilon_of_the_type() -> None:
    """The module's eps=None is that of float32, also where the comparison is in float64."""
    net = nn.Sequential(nn.Embedding(50, 16), nn.RMSNorm(16))
    nn.init.normal_(net[0].weight, std=1e-4)
    got = Session.from_torch(net)(np.arange(50)[None])
    want = net(torch.arange(50)[None]).detach()
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.full
def test_a_compiled_call() -> None:
    """compile() changes how a module runs, not what it computes."""
    net = nn.LSTM(C, 4, batch_first=True)
    net.compile(backend="eager")
    Session.from_torch([net, nn.Linear(4, 2)])


NOT_COMPARED: dict[str, tuple[Callable[[], Any], Any, str]] = {
    "a mask": (
        lambda: [layers.Masking(), nn.LSTM(C, 2)],
        None,
        "the layer Masking makes a mask, which modules do not have",
    ),
    "peepholes": (
        lambda: {
            "weight_ih_l0": np.ones((8, C)),
            "weight_hh_l0": np.ones((8, 2)),
            "weight_peephole_l0": np.ones((3, 2)),
        },
        [("", "LSTM")],
        "LSTM has peepholes, which PyTorch does not have",
    ),
}


@pytest.mark.parametrize("kind", NOT_COMPARED)
def test_not_compared(kind: str) -> None:
    """The warning names the line of the caller."""
    source, listed, text = NOT_COMPARED[kind]
    with pytest.warns(UserWarning, match=f"was not compared with PyTorch: {text}") as caught:
        Session.from_torch(source(), listed)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Session.from_torch(source(), listed, check=False)


def test_wrong_check() -> None:
    with pytest.raises(TypeError, match="check must be True, False or a module"):
        Session.from_torch(nn.Linear(C, 2), check=1)
