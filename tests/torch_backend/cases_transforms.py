"""accelerate() on PyTorch under autograd, transforms, traces and compilers."""

import re
import threading
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import torch
from keras import layers
from torch.utils.checkpoint import checkpoint

from tf_lstm_ops.keras import accelerate
from tf_lstm_ops.keras.acceleration import Acceleration

ROWS, STEPS, INPUTS, UNITS = 3, 5, 4, 6


@pytest.fixture
def accelerated() -> Iterator[Acceleration]:
    with accelerate() as found:
        yield found


@pytest.fixture
def x(rng: np.random.Generator) -> torch.Tensor:
    return torch.tensor(rng.normal(size=(ROWS, STEPS, INPUTS)).astype("float32"))


def built(**options: Any) -> Any:
    layer = layers.LSTM(UNITS, seed=1, **options)
    layer.build((None, None, INPUTS))
    return layer


def stock(layer: Any, x: torch.Tensor) -> torch.Tensor:
    """What the code of Keras computes."""
    from tf_lstm_ops.keras.acceleration import without_acceleration

    with without_acceleration():
        return layer(x)


def reasons(found: Acceleration) -> tuple[str, ...]:
    [row] = found.report()
    assert row.op is None
    return row.reasons


@pytest.mark.parametrize("kind", [layers.LSTM, layers.GRU, layers.SimpleRNN])
@pytest.mark.parametrize("masked", [False, True])
def test_gradcheck(kind: Any, masked: bool, accelerated: Any, rng: np.random.Generator) -> None:
    """Finite differences, in float64."""
    layer = kind(3, return_sequences=True, return_state=True, dtype="float64")
    layer.build((2, 4, 2))
    given = [torch.tensor(rng.normal(size=(2, 4, 2)), requires_grad=True)]
    count = 2 if kind is layers.LSTM else 1
    given += [torch.tensor(rng.normal(size=(2, 3)), requires_grad=True) for _ in range(count)]
    weights = [w.value for w in layer.trainable_weights]
    mask = torch.tensor([[1, 1, 0, 1], [1, 1, 1, 0]], dtype=torch.bool) if masked else None

    def function(x: Any, *rest: Any) -> Any:
        return tuple(layer(x, initial_state=list(rest[:count]), mask=mask))

    assert torch.autograd.gradcheck(function, (*given, *weights))
    assert accelerated.report()[0].stock_calls == 0


def test_no_grad(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    with torch.no_grad():
        y = layer(x)
    assert y.grad_fn is None
    torch.testing.assert_close(y, stock(layer, x).detach(), rtol=0, atol=1e-6)
    with torch.inference_mode():
        assert torch.equal(layer(x), y)
    assert accelerated.report()[0].stock_calls == 0


def test_frozen_weights(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    layer.trainable = False
    assert layer(x).grad_fn is None
    x.requires_grad = True
    [slope] = torch.autograd.grad(layer(x).sum(), [x])
    [want] = torch.autograd.grad(stock(layer, x).sum(), [x])
    torch.testing.assert_close(slope, want, rtol=0, atol=1e-6)


def test_strided_tensors(accelerated: Any, x: torch.Tensor) -> None:
    layer = built(return_sequences=True)
    other = x.transpose(0, 1).contiguous().transpose(0, 1)
    assert not other.is_contiguous()
    assert torch.equal(layer(other), layer(x))
    assert torch.equal(layer(x[::2, 1::2]), layer(x[::2, 1::2].contiguous()))


def test_change_before_the_backward_pass(accelerated: Any, x: torch.Tensor) -> None:
    layer = built(return_sequences=True)
    y = layer(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_change_of_the_output_in_place(accelerated: Any, x: torch.Tensor) -> None:
    layer = built(return_sequences=True)
    x.requires_grad = True

    def slope(y: torch.Tensor) -> torch.Tensor:
        y *= 2
        return torch.autograd.grad((y**2).sum(), [x])[0]

    torch.testing.assert_close(slope(layer(x)), slope(stock(layer, x)), rtol=0, atol=1e-6)


def test_saved_tensors_that_a_hook_changes(accelerated: Any, x: torch.Tensor) -> None:
    layer = built(return_sequences=True)
    x.requires_grad = True

    def slope(unpack: Any) -> torch.Tensor:
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
            y = layer(x)
        return torch.autograd.grad(y.sum(), [x])[0]

    want = slope(lambda tensor: tensor)
    strided = slope(lambda t: torch.stack([t, t], -1)[..., 0] if t.is_floating_point() else t)
    assert torch.equal(strided, want)
    with pytest.raises(RuntimeError, match=r"must be of torch\.float32 on the CPU"):
        slope(lambda t: t.bfloat16() if t.is_floating_point() else t)


def test_a_saved_mask_that_a_hook_shortens(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    x.requires_grad = True
    mask = torch.ones(ROWS, STEPS, dtype=torch.bool)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: tensor, lambda t: t[:1] if t.dtype == torch.bool else t
    ):
        y = layer(x, mask=mask)
    with pytest.raises(RuntimeError, match=r"the mask must have the shape \[3, 5\]"):
        y.sum().backward()


def test_negated_views(accelerated: Any) -> None:
    layer = built(return_sequences=True)
    x = torch.randn(ROWS, STEPS, INPUTS, dtype=torch.complex64).conj().imag
    assert x.is_neg()
    torch.testing.assert_close(layer(x), stock(layer, x), rtol=0, atol=1e-6)


def test_gradients_without_memory(accelerated: Any, x: torch.Tensor) -> None:
    x.requires_grad = True
    y = built()(x)
    [slope] = torch.autograd.grad(y, [x], torch._efficientzerotensor(y.shape))
    assert torch.equal(slope, torch.zeros_like(x))


def test_forward_mode_runs_keras_code(accelerated: Any, x: torch.Tensor) -> None:
    from torch.autograd import forward_ad

    layer = built()
    layer.trainable = False
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        got = forward_ad.unpack_dual(layer(dual)).tangent
        want = forward_ad.unpack_dual(stock(layer, dual)).tangent
    assert torch.equal(got, want)
    assert reasons(accelerated) == ("a derivative in forward mode",)


def test_a_mask_that_is_filled_again(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    x.requires_grad = True
    mask = torch.tensor([[1, 1, 1, 0, 0]] * ROWS, dtype=torch.bool)
    [want] = torch.autograd.grad(layer(x, mask=mask).sum(), [x])
    y = layer(x, mask=mask)
    mask.fill_(True)
    assert torch.equal(torch.autograd.grad(y.sum(), [x])[0], want)


def test_a_direct_call_with_an_array(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    assert torch.equal(layer.call(x.numpy()), stock(layer, x))


def test_second_derivative_is_an_error(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    x.requires_grad = True
    [slope] = torch.autograd.grad(layer(x).sum(), [x], create_graph=True)
    with pytest.raises(RuntimeError, match="have no second derivatives on PyTorch"):
        (slope.sum() + x.sum()).backward()  # else the first term would count as a constant


def test_checkpoint(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    x.requires_grad = True
    [slope] = torch.autograd.grad(checkpoint(layer, x, use_reentrant=False).sum(), [x])
    [want] = torch.autograd.grad(layer(x).sum(), [x])
    assert torch.equal(slope, want)


def test_compile(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    compiled = torch.compile(lambda x: 2 * layer(x) + 1, backend="eager")
    torch.testing.assert_close(compiled(x), 2 * layer(x) + 1, rtol=0, atol=0)
    x.requires_grad = True
    [slope] = torch.autograd.grad(compiled(x).sum(), [x])
    [want] = torch.autograd.grad(2 * layer(x).sum(), [x])
    torch.testing.assert_close(slope, want, rtol=0, atol=1e-6)
    assert accelerated.report()[0].fused_calls >= 3


def test_torch_func_runs_keras_code(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    got = torch.func.grad(lambda x: layer(x).sum())(x)
    x.requires_grad = True
    [want] = torch.autograd.grad(stock(layer, x).sum(), [x])
    torch.testing.assert_close(got, want, rtol=0, atol=1e-6)
    assert reasons(accelerated) == ("a transform of torch.func",)


def test_vmap_runs_keras_code(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    got = torch.func.vmap(lambda row: layer(row[None])[0])(x)
    torch.testing.assert_close(got, stock(layer, x), rtol=0, atol=1e-6)
    assert reasons(accelerated) == ("a transform of torch.func",)


def test_autocast_runs_keras_code(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(x), stock(layer, x))
    assert "torch.autocast" in reasons(accelerated)[0]


def test_fake_tensors_run_keras_code(accelerated: Any, x: torch.Tensor) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    layer = built()
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert layer(torch.ones(ROWS, STEPS, INPUTS)).shape == (ROWS, UNITS)
    assert reasons(accelerated) == ("a mode of PyTorch that sees each operation",)


def test_symbolic_calls_are_not_in_the_report(accelerated: Any) -> None:
    layers.LSTM(UNITS)(keras.Input((STEPS, INPUTS)))
    assert not accelerated.report()


def test_a_trace_holds_keras_code(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    traced = torch.jit.trace(layer, x)
    torch.testing.assert_close(traced(2 * x), stock(layer, 2 * x), rtol=0, atol=1e-6)


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_program_holds_keras_code(
    accelerated: Any, x: torch.Tensor, strict: bool
) -> None:
    layer = built()
    program = torch.export.export(layer, (x,), strict=strict)
    with torch.no_grad():
        torch.testing.assert_close(program.module()(2 * x), stock(layer, 2 * x), rtol=0, atol=1e-6)


def test_threads(accelerated: Any, x: torch.Tensor) -> None:
    layer = built()
    want = layer(x).detach()
    found: list[Any] = [None] * 100

    def run(k: int) -> None:
        y = layer(x)
        slope = torch.autograd.grad(y.sum(), [layer.cell.kernel.value])[0]
        found[k] = y.detach(), slope

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(y, want) and torch.equal(s, found[0][1]) for y, s in found)


def test_results_do_not_depend_on_the_number_of_threads(accelerated: Any, rng: Any) -> None:
    x = torch.tensor(rng.normal(size=(32, 20, 16)).astype("float32"))
    layer = layers.LSTM(64, seed=1)
    layer.build(x.shape)

    def run(threads: int) -> list[torch.Tensor]:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            y = layer(x)
            return [y.detach(), *torch.autograd.grad(y.sum(), [layer.cell.kernel.value])]
        finally:
            torch.set_num_threads(before)

    assert all(map(torch.equal, run(1), run(3)))


def test_the_c_library_checks(accelerated: Any) -> None:
    """Arguments that Keras' code would not find."""
    from tf_lstm_ops.keras.torch_backend import passes

    ones = torch.ones
    tensors = {
        "x": ones(2, 3, 4),
        "initial_h": ones(2, 5),
        "initial_c": ones(2, 5),
        "kernel": ones(4, 20),
        "recurrent_kernel": ones(5, 20),
        "bias": ones(19),
    }
    message = re.escape("bias.dim_size(0) != cell_size * 4: 19 vs. 20")
    with pytest.raises(ValueError, match=message):
        passes.run({"op": "KerasLSTM", "dtype": "float32"}, None, tensors)
