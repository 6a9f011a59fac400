"""Session.from_torch with modules that share weights, and what it leaves as it was."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tf_lstm_ops.inference import Session, layers

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch, the peer compared with, is not installed")
nn = torch.nn
save_file = pytest.importorskip("safetensors.torch").save_file
# The session computes in float32, PyTorch too, in another order.
TOLERANCE = 1e-5


def _assert_computes(session: Session, source: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(1).standard_normal((2, 5, 4)).astype(np.float32)
    with torch.no_grad():
        expected = source(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(session(x), expected, atol=TOLERANCE)


def test_module_twice_in_a_sequential() -> None:
    shared, inner = nn.Linear(4, 4), nn.Sequential(nn.Tanh(), nn.Linear(4, 4))
    model = nn.Sequential(shared, inner, shared, nn.ReLU(), inner)
    _assert_computes(Session.from_torch(model), model)


def _tied(names: dict[str, str], count: int = 1) -> Any:
    """An LSTM whose parameters of the first names are those of the second ones."""
    module = nn.LSTM(4, 4, count, batch_first=True)
    for name, other in names.items():
        setattr(module, name, getattr(module, other))
    return module


@pytest.mark.parametrize(
    "module",
    [
        _tied({"weight_hh_l0": "weight_ih_l0"}),
        _tied({"bias_hh_l0": "bias_ih_l0"}),
        _tied(
            {f"{n}_l1": f"{n}_l0" for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")},
            count=2,
        ),
    ],
    ids=["matrices", "biases", "layers"],
)
def test_tied_parameters(module: Any) -> None:
    _assert_computes(Session.from_torch(module), lambda x: module(x)[0])


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop, self.head = nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(self.drop(self.norm(x.transpose(1, 2)).transpose(1, 2)))


@pytest.mark.parametrize("method", [False, True])
def test_check_changes_nothing(method: bool) -> None:
    net = _Net().train()
    net.drop.eval()
    state = {name: value.clone() for name, value in net.state_dict().items()}
    random = torch.get_rng_state()
    check = net.forward if method else net
    Session.from_torch([net.norm, net.drop, net.head], check=check)
    assert net.training and net.norm.training and not net.drop.training
    assert torch.equal(random, torch.get_rng_state())
    for name, value in net.state_dict().items():
        assert torch.equal(value, state[name]), name


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda x: x.bfloat16(), r"computes in torch.bfloat16.*\.float\(\)"),
        (lambda x: x.numpy(), "returned numpy.ndarray, must return a tensor"),
    ],
    ids=["bfloat16", "array"],
)
def test_check_that_cannot_be_compared(check: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Session.from_torch(nn.Linear(4, 4), check=check)


def test_extra_state_is_not_read() -> None:
    module = nn.Linear(4, 2)
    state = {f"head.{name}": value for name, value in module.state_dict().items()}
    state |= {"_extra_state": {"version": 1}, "head._extra_state": {"version": 1}}
    session = Session.from_torch(state, [("head", "Linear"), layers.Identity()])
    _assert_computes(session, module)


def test_bfloat16_without_ml_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch does not need that package, and TensorFlow, which does, may be missing."""
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    module = nn.Linear(4, 3).bfloat16()
    _assert_computes(Session.from_torch(module), module.float())


def test_bfloat16_of_a_file_without_ml_dtypes(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.ones(2, 3, dtype=torch.bfloat16)}, path)
    code = f"""
import sys
sys.modules["ml_dtypes"] = None
from tf_lstm_ops.inference import Session
Session.from_torch({str(path)!r}, [("", "Linear")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ValueError: weight has the dtype BF16" in done.stderr
    assert "pip install ml_dtypes" in done.stderr


def test_warning_is_at_the_line_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.warns(UserWarning, match="was not compared") as caught:
        Session.from_torch({"weight": np.ones((2, 3))}, [("", "Linear")])
    assert caught[0].filename == __file__
