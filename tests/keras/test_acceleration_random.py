"""accelerate() on random models of Keras: outputs, training and files with it and without it."""

import re
import zipfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from tf_lstm_ops.keras import accelerate

BATCH, INPUTS = 6, 3
ACTIVATIONS = ("tanh", "tanh", "tanh", "relu", "sigmoid", "softsign", "selu")
GATES = ("sigmoid", "sigmoid", "hard_sigmoid")
# Relative to the largest element. Roundings of 6e-8 propagate through layers, steps and updates.
TOLERANCE = 2e-4


def random_layer(rng: np.random.Generator, steps: int | None, returns_sequences: bool) -> Any:
    """A layer of keras.layers with random options."""

    def drawn(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    kind = drawn("LSTM", "LSTM", "GRU", "GRU", "SimpleRNN")
    options: dict[str, Any] = {
        "activation": drawn(*ACTIVATIONS),
        "use_bias": drawn(True, True, False),
        "dropout": drawn(0.0, 0.0, 0.3),
        "recurrent_dropout": drawn(0.0, 0.0, 0.3),
        "seed": int(rng.integers(1000)),
    }
    if kind != "SimpleRNN":
        options["recurrent_activation"] = drawn(*GATES)
    if kind == "GRU":
        options["reset_after"] = drawn(True, False)
    of_layer = {
        "return_sequences": returns_sequences,
        "go_backwards": drawn(False, False, True),
        "unroll": steps is not None and drawn(False, False, True),
        "zero_output_for_mask": drawn(False, True),
    }
    wrapper = drawn("", "", "RNN", "Bidirectional")
    units = int(rng.integers(1, 7))
    if wrapper == "RNN":
        return layers.RNN(getattr(layers, f"{kind}Cell")(units, **options), **of_layer)
    if wrapper == "Bidirectional":
        of_layer["go_backwards"] = False
        layer = getattr(layers, kind)(units, **options, **of_layer)
        return layers.Bidirectional(layer, merge_mode=drawn("concat", "sum", "ave", "mul"))
    return getattr(layers, kind)(units, **options, **of_layer)


def random_model(seed: int) -> keras.Model:
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    steps = 5 if rng.random() < 0.5 else None
    model = keras.Sequential([keras.Input((steps, INPUTS), name="x")])
    if rng.random() < 0.5:
        model.add(layers.Masking())
    count = int(rng.integers(1, 4))
    for k in range(count):
        model.add(random_layer(rng, steps, returns_sequences=k < count - 1))
    model.add(layers.Dense(2))
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def results(seed: int, path: Path) -> tuple[list[Any], dict[str, bytes]]:
    """The outputs before and after two steps of training, and the losses; the parts of a file."""
    model, rng = random_model(seed), np.random.default_rng(seed)
    x = rng.normal(size=(BATCH, 5, INPUTS)).astype("float32")
    x[1] = 0
    x[2, 3:] = 0
    x[3, :2] = 0
    y = rng.normal(size=(BATCH, 2)).astype("float32")
    found = [keras.ops.convert_to_numpy(model(x)), model.predict_on_batch(x)]
    model.save(path)
    found += [model.train_on_batch(x, y) for _ in range(2)]
    found += [model.predict_on_batch(x), *model.get_weights()]
    with zipfile.ZipFile(path) as file:
        return found, {name: file.read(name) for name in ("config.json", "model.weights.h5")}


def count(total: int, default: int, full: int) -> list[Any]:
    marks = [()] * default + [pytest.mark.full] * full
    marks += [pytest.mark.slow] * (total - len(marks))
    return [pytest.param(seed, marks=mark) for seed, mark in enumerate(marks)]


@pytest.mark.parametrize("seed", count(200, default=2, full=38))
def test_equals_stock(seed: int, tmp_path: Path) -> None:
    keras.backend.clear_session()
    try:
        want, file = results(seed, tmp_path / "stock.keras")
    except AttributeError:  # on PyTorch a mask with unroll=True is an error of Keras
        assert keras.backend.backend() == "torch"
        return
    keras.backend.clear_session()
    with accelerate():
        got, of_accelerated = results(seed, tmp_path / "accelerated.keras")
    for a, b in zip(got, want, strict=True):
        largest = max(np.abs(np.asarray(b)).max(initial=0), 1e-3)
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE * largest)
    for name, content in file.items():
        assert without_object_numbers(of_accelerated[name]) == without_object_numbers(content)


def without_object_numbers(content: bytes) -> bytes:
    """Keras writes numbers of shared objects, which differ from one model to the next."""
    return re.sub(rb'"shared_object_id": \d+', b"", content)
