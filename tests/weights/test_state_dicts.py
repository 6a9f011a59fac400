"""State dicts of PyTorch, and files of them: their keys and values. PyTorch is not needed."""

import json
import re

import numpy as np
import pytest

from tf_lstm_ops.weights import GRUWeights, LSTMWeights

from .formats import KINDS, Shape, assert_equal, random_weights

RNG = np.random.default_rng(0)
PLAIN = random_weights(Shape(), RNG)
GRU = random_weights(Shape("gru"), RNG)
STACK = random_weights(Shape(layers=2), RNG)
BIDIRECTIONAL = random_weights(Shape(directions=2), RNG)
PROJECTED = random_weights(Shape(num_proj=2), RNG)
PROJECTED_STACK = random_weights(Shape(layers=2, num_proj=2), RNG)


def prefixed(state):
    return {f"encoder.{name}": array for name, array in state.items()}


def without(state, *names):
    return {k: v for k, v in state.items() if k not in names}


def of_cell(weights):
    """Like the state dict of torch.nn.LSTMCell or GRUCell."""
    return {name.removesuffix("_l0"): array for name, array in weights.to_torch().items()}


TORCH_BIASES = ("bias_ih_l0", "bias_hh_l0")
STACK_BIASES = (*TORCH_BIASES, "bias_ih_l1", "bias_hh_l1")


MALFORMED = {
    "whole model": (
        lambda: LSTMWeights.from_torch(prefixed(PLAIN.to_torch())),
        "neither weight_ih_l0 nor weight_ih, .*; pass prefix=, here one of 'encoder.'",
    ),
    "another prefix": (
        lambda: LSTMWeights.from_torch(prefixed(PLAIN.to_torch()), prefix="decoder."),
        r"neither decoder\.weight_ih_l0 nor .*; pass prefix=, here one of 'encoder.'",
    ),
    "a cell in a model": (
        lambda: LSTMWeights.from_torch(prefixed(of_cell(PLAIN))),
        "neither weight_ih_l0 nor weight_ih, .*; pass prefix=, here one of 'encoder.'",
    ),
    "no such module": (
        lambda: LSTMWeights.from_torch({"weight": np.zeros(2)}),
        "the state dict has neither weight_ih_l0 nor weight_ih, the key of a cell$",
    ),
    "no dict": (
        lambda: LSTMWeights.from_torch([np.zeros(2)]),
        "is neither a module nor a state dict",
    ),
    "part of it": (
        lambda: LSTMWeights.from_torch(without(STACK.to_torch(), "weight_hh_l1")),
        "the state dict has no weight_hh_l1",
    ),
    "one bias": (
        lambda: LSTMWeights.from_torch(without(PLAIN.to_torch(), "bias_hh_l0")),
        "the state dict has no bias_hh_l0, .* a module has all biases or none",
    ),
    "the other bias": (
        lambda: GRUWeights.from_torch(
            prefixed(without(GRU.to_torch(), "bias_ih_l0")), prefix="encoder."
        ),
        r"the state dict has no encoder\.bias_ih_l0",
    ),
    "biases of layer 0": (
        lambda: LSTMWeights.from_torch(without(STACK.to_torch(), "bias_ih_l1", "bias_hh_l1")),
        "the state dict has no bias_ih_l1",
    ),
    "bias of one direction": (
        lambda: LSTMWeights.from_torch(without(BIDIRECTIONAL.to_torch(), *TORCH_BIASES)),
        "the state dict has no bias_ih_l0",
    ),
    "biases of a cell": (
        lambda: LSTMWeights.from_torch(without(of_cell(PLAIN), "bias_hh")),
        "the state dict has no bias_hh,",
    ),
    "projection of layer 0": (
        lambda: LSTMWeights.from_torch(without(PROJECTED_STACK.to_torch(), "weight_hr_l1")),
        "the state dict has no weight_hr_l1",
    ),
    "key that is no text": (
        lambda: LSTMWeights.from_torch({**PLAIN.to_torch(), 1: np.zeros(1)}),
        "keys of a state dict must be texts but one is 1$",
    ),
    "matrix as bias": (
        lambda: LSTMWeights.from_torch({**PLAIN.to_torch(), "bias_ih_l0": np.zeros((16, 1))}),
        r"bias_ih_l0 must be an array of 1 dimension but has the shape \(16, 1\)",
    ),
    "complex": (
        lambda: LSTMWeights.from_torch(
            {**PLAIN.to_torch(), "weight_ih_l0": np.zeros((16, 3), complex)}
        ),
        "weight_ih_l0 must be an array of numbers but has the dtype complex128",
    ),
    "ragged": (
        lambda: LSTMWeights.from_torch({**PLAIN.to_torch(), "weight_ih_l0": [[1.0], [2.0, 3.0]]}),
        r"weight_ih_l0 must be an array of 2 dimensions but is .*: .*inhomogeneous",
    ),
    "one direction": (
        lambda: LSTMWeights.from_torch(without(BIDIRECTIONAL.to_torch(), "weight_ih_l0_reverse")),
        "the state dict has weight_hh_l0_reverse, .* which belongs to no layer",
    ),
    "the other kind": (
        lambda: GRUWeights.from_torch(PLAIN.to_torch()),
        "the weights are those of an LSTM, not of a GRU; use LSTMWeights",
    ),
    "a GRU": (
        lambda: LSTMWeights.from_torch(GRU.to_torch()),
        "the weights are those of a GRU, not of an LSTM; use GRUWeights",
    ),
    "a projected LSTM": (
        lambda: GRUWeights.from_torch(PROJECTED.to_torch()),
        "the weights are those of an LSTM, not of a GRU; use LSTMWeights",
    ),
    "a plain RNN": (
        lambda: LSTMWeights.from_torch(
            {"weight_ih_l0": np.zeros((4, 3)), "weight_hh_l0": np.zeros((4, 4))}
        ),
        "the weights are those of a plain RNN, not of an LSTM; use RNNWeights$",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name):
    call, message = MALFORMED[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("prefix", ["", "encoder."])
@pytest.mark.parametrize("name", PLAIN.to_torch())
@pytest.mark.parametrize("value", [None, "a text", 1.5], ids=str)
def test_values_of_a_state_dict(value, name, prefix):
    """Each value that is no array is refused by its key."""
    dimensions = "2 dimensions" if name.startswith("weight") else "1 dimension"
    state = {prefix + k: v for k, v in {**PLAIN.to_torch(), name: value}.items()}
    expected = f"{prefix}{name} must be an array of {dimensions} but is {value!r}"
    with pytest.raises(ValueError, match=re.escape(expected)):
        LSTMWeights.from_torch(state, prefix=prefix)


def test_a_state_dict_without_any_bias():
    """As of a module with bias=False."""
    weights = LSTMWeights.from_torch(without(STACK.to_torch(), *STACK_BIASES))
    assert not any(cell.bias.any() or cell.recurrent_bias.any() for cell in weights.cells)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_torch_cell(kind, bias, rng):
    """The keys of LSTMCell and GRUCell have no number of a layer."""
    weights = random_weights(Shape(kind), rng)
    state = {k: v for k, v in weights.to_torch().items() if bias or "bias" not in k}
    cell = {name.removesuffix("_l0"): array for name, array in state.items()}
    prefixed = {f"decoder.{name}": array for name, array in cell.items()}
    want = KINDS[kind].from_torch(state)
    assert_equal(KINDS[kind].from_torch(cell), want)
    assert_equal(KINDS[kind].from_torch({**prefixed, "head": 0}, prefix="decoder."), want)


@pytest.mark.parametrize("kind", KINDS)
def test_safetensors_of_a_cell(kind, rng, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy", reason="writes the file")
    weights = random_weights(Shape(kind), rng)
    safetensors.save_file(prefixed(of_cell(weights)), tmp_path / "cell.safetensors")
    assert_equal(
        KINDS[kind].from_safetensors(tmp_path / "cell.safetensors", prefix="encoder."), weights
    )


def write_with_fp8(path, arrays, name):
    """A .safetensors file of arrays in float64 and of a tensor in FP8, written byte by byte."""
    header, data = {name: {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}, b"\0\0"
    for key, array in arrays.items():
        offsets = [len(data), len(data) + array.nbytes]
        header[key] = {"dtype": "F64", "shape": array.shape, "data_offsets": offsets}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_safetensors_with_another_tensor_in_fp8(tmp_path):
    """NumPy has no such dtype. Only the tensors of the prefix are read."""
    pytest.importorskip("safetensors", reason="reads the file")
    path = tmp_path / "model.safetensors"
    write_with_fp8(path, prefixed(PLAIN.to_torch()), "head.weight")
    assert_equal(LSTMWeights.from_safetensors(path, prefix="encoder."), PLAIN)
    with pytest.raises(ValueError, match=r"neither weight_ih_l0 nor .* here one of 'encoder.'"):
        LSTMWeights.from_safetensors(path)


def test_safetensors_in_fp8(tmp_path):
    pytest.importorskip("safetensors", reason="reads the file")
    path = tmp_path / "model.safetensors"
    write_with_fp8(path, without(PLAIN.to_torch(), "bias_ih_l0"), "bias_ih_l0")
    with pytest.raises(ValueError, match=r"bias_ih_l0 has the dtype F8_E4M3, .*; store it as"):
        LSTMWeights.from_safetensors(path)
