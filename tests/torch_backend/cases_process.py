"""accelerate() on PyTorch in processes: forks, interrupts, memory."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import keras
import numpy as np
import pytest
import torch
from keras import layers
from torch.utils.data import DataLoader, Dataset

from tf_lstm_ops.keras import accelerate

ROWS, STEPS, INPUTS, UNITS = 32, 30, 16, 64


def step(layer: Any, x: torch.Tensor) -> torch.Tensor:
    y = layer(x)
    return torch.autograd.grad(y.sum(), [layer.cell.kernel.value])[0]


class Outputs(Dataset):
    """Elements that a worker process computes with an accelerated layer."""

    def __init__(self, layer: Any, x: torch.Tensor) -> None:
        self.layer, self.x = layer, x

    def __len__(self) -> int:
        return 4

    def __getitem__(self, k: int) -> Any:
        return step(self.layer, self.x)


@pytest.mark.parametrize("context", ["fork"])
def test_workers_of_a_data_loader(context: str) -> None:
    layer = layers.LSTM(UNITS, seed=1)
    x = torch.randn(ROWS, STEPS, INPUTS)
    torch.set_num_threads(2)
    with accelerate() as found:
        want = step(layer, x) if layer(x) is not None else None
        loader = DataLoader(Outputs(layer, x), None, num_workers=2, multiprocessing_context=context)
        for got in loader:
            torch.testing.assert_close(got, want, rtol=0, atol=0)
    assert found.report()[0].stock_calls == 0


def test_an_interrupt_ends_a_loop_of_training() -> None:
    program = f"""
import os, signal, threading, numpy as np, keras
from tf_lstm_ops.keras import accelerate
acceleration = accelerate()
model = keras.Sequential([keras.Input(({STEPS}, {INPUTS})), keras.layers.LSTM({UNITS})])
model.compile("sgd", "mse")
x, y = np.ones(({ROWS}, {STEPS}, {INPUTS}), "f"), np.ones(({ROWS}, {UNITS}), "f")
model.train_on_batch(x, y)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        model.train_on_batch(x, y)
except KeyboardInterrupt:
    model.train_on_batch(x, y)
    print("ended", acceleration.report()[0].stock_calls)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.endswith("ended 0\n"), done.stderr


def test_memory_does_not_grow() -> None:
    layer = layers.GRU(UNITS, return_sequences=True)
    x = torch.randn(ROWS, STEPS, INPUTS)

    def used() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    with accelerate():
        layer(x)
        for _ in range(20):
            step(layer, x)
        before = used()
        for _ in range(300):
            step(layer, x)
    # A step saves about 4 MiB; 300 that stayed would be 1 GiB.
    assert used() - before < 16 << 20


def test_threads_and_forks_at_the_same_time() -> None:
    layer = layers.LSTM(UNITS, seed=1)
    x = torch.randn(ROWS, STEPS, INPUTS)
    ends = threading.Event()

    def run() -> None:
        while not ends.is_set():
            step(layer, x)

    with accelerate():
        want = step(layer, x) if layer(x) is not None else None
        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        # A child of a process with threads may call the library, but not PyTorch's own threads.
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)
            with torch.no_grad():
                got = layer(x)
            os._exit(0 if bool(torch.isfinite(got).all()) else 1)
        deadline = time.monotonic() + 60
        while (found := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        ends.set()
        for thread in threads:
            thread.join()
        if found[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert found == (child, 0)
        assert torch.equal(step(layer, x), want)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (7, 1, 3, 5), (1, 40, 2, 33), (65, 3, 1, 17)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sizes(kind: str, sizes: tuple[int, ...], dtype: str) -> None:
    rows, steps, inputs, units = sizes
    layer = getattr(layers, kind)(units, return_sequences=True, dtype=dtype)
    x = torch.tensor(np.random.default_rng(0).normal(size=(rows, steps, inputs)).astype(dtype))
    layer.build(x.shape)

    def run() -> list[Any]:
        y = layer(x)
        weights = [w.value for w in layer.trainable_weights]
        return [y.detach(), *torch.autograd.grad((y**2).sum(), weights)]

    want = run()
    with accelerate():
        got = run()
    limit = 1e-5 if dtype == "float32" else 1e-13
    for a, b in zip(got, want, strict=True):
        largest = max(float(b.abs().max()), 1.0)
        torch.testing.assert_close(a, b, rtol=0, atol=limit * largest)


def test_forks_while_the_lock_is_held() -> None:
    """Another thread may hold it at a fork."""
    from tf_lstm_ops.keras import acceleration

    layer = layers.LSTM(UNITS)
    x = torch.randn(2, 3, INPUTS)
    torch.set_num_threads(1)
    with accelerate():
        layer(x)
        holds, ends = threading.Event(), threading.Event()

        def hold() -> None:
            with acceleration._lock:
                holds.set()
                ends.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        holds.wait(60)
        child = os.fork()
        if child == 0:
            with torch.no_grad():
                layer(x)
            os._exit(0)
        deadline = time.monotonic() + 30
        while (found := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        ends.set()
        thread.join()
        if found[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert found == (child, 0)


def test_keras_is_on_torch() -> None:
    assert keras.backend.backend() == "torch"
