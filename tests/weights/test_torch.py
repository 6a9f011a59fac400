"""PyTorch's nn.LSTM, nn.GRU and nn.RNN with our weights, and ours with theirs."""

from typing import Any

import numpy as np
import pytest

from .formats import (
    INPUTS,
    KINDS,
    PLAIN,
    PROJECTED,
    ROUNDING,
    UNITS,
    Shape,
    assert_equal,
    random_weights,
)
from .runs import keras_layers, run_cudnn, run_keras, set_weights

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch, the peer compared with, is not installed")

BATCH, TIME = 3, 5
SHAPES = PLAIN + PROJECTED
MODULES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn_tanh": torch.nn.RNN}
CELLS = {
    "lstm": torch.nn.LSTMCell,
    "gru": torch.nn.GRUCell,
    "rnn_tanh": torch.nn.RNNCell,
}


def make_module(shape: Shape, dtype: Any = torch.float64, **options: Any) -> Any:
    if shape.num_proj:
        options["proj_size"] = shape.num_proj
    return MODULES[shape.kind](
        shape.inputs,
        shape.units,
        shape.layers,
        batch_first=True,
        bidirectional=shape.directions == 2,
        dtype=dtype,
        **options,
    )


def run_torch(module: Any, x: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return module(torch.from_numpy(x))[0].numpy()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_predictions(rng, shape):
    weights, x = random_weights(shape, rng), rng.normal(size=(BATCH, TIME, INPUTS))
    module = make_module(shape)
    module.load_state_dict({k: torch.from_numpy(v) for k, v in weights.to_torch().items()})
    want = run_torch(module, x)
    got = run_cudnn(shape, weights.to_cudnn(), x)
    np.testing.assert_allclose(got, want, rtol=0, atol=ROUNDING)
    if not shape.num_proj:
        layers = keras_layers(shape)
        set_weights(layers, weights.to_keras())
        np.testing.assert_allclose(run_keras(layers, x), want, rtol=0, atol=ROUNDING)


@pytest.mark.full
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_trained_in_torch(rng, shape):
    """A few steps there, then the same predictions here; and the conversion took a copy."""
    torch.manual_seed(0)
    module, x = make_module(shape), rng.normal(size=(BATCH, TIME, INPUTS))
    target = torch.from_numpy(rng.normal(size=(BATCH, TIME, shape.directions * shape.hidden)))
    before = KINDS[shape.kind].from_torch(module.state_dict())
    unchanged = before.to_cudnn()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        ((module(torch.from_numpy(x))[0] - target) ** 2).mean().backward()
        optimizer.step()
    np.testing.assert_array_equal(before.to_cudnn(), unchanged)
    weights = KINDS[shape.kind].from_torch(module.state_dict())
    assert np.abs(weights.to_cudnn() - unchanged).max() > 1e-3  # it has learnt
    got = run_cudnn(shape, weights.to_cudnn(), x)
    np.testing.assert_allclose(got, run_torch(module, x), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_state_dict_round_trip(shape):
    state = make_module(shape).state_dict()
    back = KINDS[shape.kind].from_torch(state).to_torch()
    assert back.keys() == state.keys()
    for name, tensor in state.items():
        np.testing.assert_array_equal(back[name], tensor.numpy(), err_msg=name)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_module(shape):
    """The module itself, and a part of a model by its prefix."""
    module = make_module(shape)
    model = torch.nn.ModuleDict({"encoder": module, "head": torch.nn.Linear(2, 2)})
    want = KINDS[shape.kind].from_torch(module.state_dict())
    assert_equal(KINDS[shape.kind].from_torch(module), want)
    assert_equal(KINDS[shape.kind].from_torch(model, prefix="encoder."), want)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_module_loads_safetensors(shape, rng, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch", reason="reads the file for PyTorch")
    weights = random_weights(shape, rng)
    weights.to_safetensors(tmp_path / "weights.safetensors")
    module = make_module(shape)
    module.load_state_dict(safetensors.load_file(tmp_path / "weights.safetensors"))
    assert_equal(KINDS[shape.kind].from_torch(module), weights)


def run_cell(cell: Any, x: np.ndarray) -> np.ndarray:
    """The outputs of all steps."""
    state, outputs = None, []
    with torch.no_grad():
        for step in torch.from_numpy(x).unbind(1):
            state = cell(step, state)
            outputs.append(state[0] if isinstance(state, tuple) else state)
    return torch.stack(outputs, 1).numpy()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_cell(rng, kind, bias, tmp_path):
    """The module, its state dict, a part of a model, and a file of it."""
    safetensors = pytest.importorskip("safetensors.torch", reason="writes the file")
    cell = CELLS[kind](INPUTS, UNITS, bias=bias, dtype=torch.float64)
    x = rng.normal(size=(BATCH, TIME, INPUTS))
    weights = KINDS[kind].from_torch(cell)
    got = run_cudnn(Shape(kind), weights.to_cudnn(), x)
    np.testing.assert_allclose(got, run_cell(cell, x), rtol=0, atol=ROUNDING)
    model = torch.nn.ModuleDict({"decoder": cell, "head": torch.nn.Linear(2, 2)})
    safetensors.save_file(model.state_dict(), tmp_path / "model.safetensors")
    assert_equal(KINDS[kind].from_torch(cell.state_dict()), weights)
    assert_equal(KINDS[kind].from_torch(model, prefix="decoder."), weights)
    path = tmp_path / "model.safetensors"
    assert_equal(KINDS[kind].from_safetensors(path, prefix="decoder."), weights)


def test_other_modules_and_values():
    """A plain RNN, and tensors without data or of a dtype that NumPy does not have."""
    with pytest.raises(ValueError, match="those of a plain RNN, not of a GRU; use RNNWeights"):
        KINDS["gru"].from_torch(torch.nn.RNNCell(INPUTS, UNITS))
    with pytest.raises(ValueError, match="weight_ih must be an array of 2 dimensions but is"):
        KINDS["gru"].from_torch(torch.nn.GRUCell(INPUTS, UNITS, device="meta"))
    state = torch.nn.GRUCell(INPUTS, UNITS).state_dict()
    state["bias_ih"] = state["bias_ih"].to(torch.float8_e4m3fn)
    with pytest.raises(ValueError, match="bias_ih must be an array of 1 dimension but is"):
        KINDS["gru"].from_torch(state)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes(kind, dtype):
    shape = Shape(kind, layers=2)
    module = make_module(shape, dtype=getattr(torch, dtype))
    weights = KINDS[kind].from_torch(module.state_dict(keep_vars=True))  # tensors with a gradient
    for name, array in weights.to_torch().items():
        assert array.dtype.name == dtype
        np.testing.assert_array_equal(
            array.astype("float64"), module.state_dict()[name].double().numpy(), err_msg=name
        )


@pytest.mark.parametrize("kind", KINDS)
def test_without_biases(rng, kind):
    shape = Shape(kind, layers=2, directions=2)
    module = make_module(shape, bias=False)
    weights = KINDS[kind].from_torch(module.state_dict())
    x = rng.normal(size=(BATCH, TIME, INPUTS))
    got = run_cudnn(shape, weights.to_cudnn(), x)
    np.testing.assert_allclose(got, run_torch(module, x), rtol=0, atol=ROUNDING)
    state = weights.to_torch(bias=False)
    module.load_state_dict({k: torch.from_numpy(v) for k, v in state.items()})  # all keys fit
    assert_equal(KINDS[kind].from_torch(state), weights)
    assert weights.cells[0].bias.shape == (weights.cells[0].kernel.shape[1],)
    assert weights.units == UNITS
