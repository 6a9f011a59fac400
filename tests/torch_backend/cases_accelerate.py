"""accelerate() with Keras on PyTorch, against the same layers without it."""

import itertools
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import pytest
import torch
from keras import layers

from tf_lstm_ops.keras import accelerate

ROWS, STEPS, INPUTS, UNITS = 3, 5, 4, 6
# Some dozen roundings of 6e-8, which propagate through the steps.
TOLERANCE = 1e-5
KINDS: Mapping[str, tuple[Any, dict[str, Any], str]] = {
    "lstm": (layers.LSTM, {}, "KerasLSTM"),
    "gru": (layers.GRU, {}, "KerasGRU"),
    "reset before": (layers.GRU, {"reset_after": False}, "KerasResetBeforeGRU"),
    "rnn": (layers.SimpleRNN, {"activation": "relu"}, "KerasSimpleRNN"),
    "functions": (
        layers.LSTM,
        {"activation": "relu", "recurrent_activation": "hard_sigmoid"},
        "KerasLSTM",
    ),
    "no bias": (layers.GRU, {"use_bias": False}, "KerasGRU"),
}
FLAGS = ("return_sequences", "go_backwards", "return_state", "zero_output_for_mask")


def random_weights(layer: Any, rng: np.random.Generator) -> None:
    for weight in layer.weights:
        weight.assign(0.4 * rng.normal(size=weight.shape))


def results(layer: Any, x: Any, mask: Any, states: Any) -> list[np.ndarray]:
    """The outputs, and the gradients of a sum of them with random weights."""
    x = torch.tensor(x, requires_grad=True)
    states = None if states is None else [torch.tensor(s, requires_grad=True) for s in states]
    mask = None if mask is None else torch.tensor(mask)
    outputs = keras.tree.flatten(layer(x, mask=mask, initial_state=states))
    rng = np.random.default_rng(5)
    loss = sum((y * torch.tensor(rng.normal(size=y.shape), dtype=y.dtype)).sum() for y in outputs)
    leaves = [x, *(states or ()), *(w.value for w in layer.trainable_weights)]
    found = [*outputs, *torch.autograd.grad(loss, leaves)]
    return [each.detach().float().numpy() for each in found]


def close(got: Any, want: Any, tolerance: float = TOLERANCE) -> None:
    for a, b in zip(got, want, strict=True):
        largest = max(np.abs(b).max(initial=0), 1)
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * largest)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("mask", "states"),
    [  # Keras does not broadcast one row of a state beside a mask
        ("no mask", 1),
        *itertools.product(("no mask", "mask", "column"), (None, ROWS)),
    ],
)
def test_equals_stock(kind: str, mask: str, states: Any, rng: np.random.Generator) -> None:
    make, options, op = KINDS[kind]
    x = rng.normal(size=(ROWS, STEPS, INPUTS)).astype("float32")
    valid = rng.random((ROWS, STEPS)) < 0.6
    valid[1] = False
    given = {"no mask": None, "mask": valid, "column": valid[:, :, None]}[mask]
    count = 2 if make is layers.LSTM else 1
    start = [rng.normal(size=(states, UNITS)).astype("float32")] * count if states else None
    for flags in itertools.product((False, True), repeat=len(FLAGS)):
        layer = make(UNITS, **options, **dict(zip(FLAGS, flags, strict=True)))
        layer.build(x.shape)
        random_weights(layer, rng)
        want = results(layer, x, given, start)
        with accelerate() as found:
            got = results(layer, x, given, start)
        [row] = found.report()
        assert (row.op, row.stock_calls) == (op, 0), row
        close(got, want)


@pytest.mark.parametrize("wrapper", ["rnn", "bidirectional", "distributed", "subclass"])
def test_around_the_loop(wrapper: str, rng: np.random.Generator) -> None:
    class Doubled(layers.LSTM):
        def call(
            self, sequences: Any, initial_state: Any = None, mask: Any = None, training: Any = False
        ) -> Any:
            return 2 * super().call(sequences, initial_state, mask, training)

    layer = {
        "rnn": lambda: layers.RNN(layers.GRUCell(UNITS)),
        "bidirectional": lambda: layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True)),
        "distributed": lambda: layers.TimeDistributed(layers.LSTM(UNITS)),
        "subclass": lambda: Doubled(UNITS),
    }[wrapper]()
    shape = (ROWS, STEPS, INPUTS) if wrapper != "distributed" else (2, ROWS, STEPS, INPUTS)
    x = torch.tensor(rng.normal(size=shape).astype("float32"))
    want = layer(x).detach().numpy()
    with accelerate() as found:
        got = layer(x).detach().numpy()
    close([got], [want])
    assert all(row.op and not row.stock_calls for row in found.report())


def stacked(policy: str = "float32") -> keras.Model:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((STEPS, INPUTS)),
            layers.Masking(),
            layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True, dtype=policy)),
            layers.GRU(UNITS, dropout=0.2, recurrent_dropout=0.3, seed=3, dtype=policy),
            layers.Dense(2),
        ]
    )
    model.compile("adam", "mse")
    return model


def trained(model: keras.Model) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(16, STEPS, INPUTS)).astype("float32")
    x[::2, 3:] = 0
    y = rng.normal(size=(16, 2)).astype("float32")
    losses = model.fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0).history["loss"]
    return [np.asarray(losses), model.predict(x, verbose=0), *model.get_weights()]


def test_training_with_dropout() -> None:
    """The multipliers are those of Keras, so the weights stay close."""
    want = trained(stacked())
    with accelerate() as found:
        close(trained(stacked()), want, 1e-4)  # Adam divides by small numbers
    assert len(found.report()) == 3
    assert all(row.op and not row.stock_calls for row in found.report())


def test_mixed_bfloat16(rng: np.random.Generator) -> None:
    layer = layers.LSTM(UNITS, return_sequences=True, dtype="mixed_bfloat16")
    x = rng.normal(size=(ROWS, STEPS, INPUTS)).astype("float32")
    layer.build(x.shape)
    random_weights(layer, rng)
    want = results(layer, x, None, None)
    with accelerate() as found:
        got = results(layer, x, None, None)
    assert found.report()[0].fused_calls == 1
    close(got, want, 0.05)  # Keras rounds each operation to 8 bits


def test_stateful(rng: np.random.Generator) -> None:
    x = rng.normal(size=(ROWS, STEPS, INPUTS)).astype("float32")

    def run() -> list[np.ndarray]:
        keras.utils.set_random_seed(2)
        layer = layers.LSTM(UNITS, stateful=True)
        return [layer(x).detach().numpy() for _ in range(2)]

    want = run()
    with accelerate():
        close(run(), want)
    assert np.abs(want[0] - want[1]).max() > 1e-3


@pytest.mark.parametrize("kind", [layers.LSTM, layers.GRU, layers.SimpleRNN])
def test_training_of_a_stateful_layer(kind: Any, rng: np.random.Generator) -> None:
    """Keras assigns the states before the backward pass."""
    x, y = rng.normal(size=(4, STEPS, INPUTS)), rng.normal(size=(4, 1))
    with accelerate() as found:
        keras.utils.set_random_seed(2)
        model = keras.Sequential([keras.Input(batch_shape=(2, STEPS, INPUTS))])
        model.add(kind(UNITS, stateful=True))
        model.add(layers.Dense(1))
        model.compile("sgd", "mse")
        losses = model.fit(x, y, batch_size=2, epochs=4, shuffle=False, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert found.report()[0].stock_calls == 0


class OwnCell(layers.LSTMCell):
    """A cell of the user's."""


def test_other_code_of_keras(rng: np.random.Generator) -> None:
    x = torch.tensor(rng.normal(size=(ROWS, STEPS, INPUTS)).astype("float32"))
    cases = {
        "selu": (layers.GRU(UNITS, activation="selu"), "selu, which has no fused op"),
        "cell": (layers.RNN(OwnCell(UNITS)), "its cell is a OwnCell"),
        "float16": (
            layers.LSTM(UNITS, recurrent_initializer="glorot_uniform", dtype="float16"),
            "its computations are of float16",
        ),
    }
    for layer, reason in cases.values():
        want = layer(x).detach()
        with accelerate() as found:
            got = layer(x).detach()
        assert reason in found.report()[0].reasons[0]
        assert torch.equal(got, want)


@pytest.mark.parametrize("kind", [layers.LSTM, layers.GRU])
def test_dropout_of_everything(kind: Any, rng: np.random.Generator) -> None:
    x = torch.tensor(rng.normal(size=(ROWS, STEPS, INPUTS)).astype("float32"))
    layer = kind(UNITS, dropout=1.0, seed=1)
    want = layer(x, training=True)
    with accelerate() as found:
        assert torch.equal(layer(x, training=True), want)
    assert "dropout=1" in found.report()[0].reasons[0]


def test_no_rows_and_no_steps() -> None:
    layer = layers.LSTM(UNITS)
    layer.build((None, None, INPUTS))
    with accelerate() as found:
        assert layer(torch.zeros(0, STEPS, INPUTS)).shape == (0, UNITS)
    assert found.report()[0].reasons == ("no rows, or no steps",)


def test_restore_ends_it(rng: np.random.Generator) -> None:
    loop = layers.LSTM.inner_loop
    with accelerate():
        assert layers.LSTM.inner_loop is not loop
    assert layers.LSTM.inner_loop is loop
