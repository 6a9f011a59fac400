"""A session computes what the Keras model computes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers as stock

from tf_lstm_ops import keras as ours
from tf_lstm_ops.inference import Session, file

Array = np.ndarray
# Keras says so of a Sequential model, whose layers get the mask all the same.
pytestmark = pytest.mark.filterwarnings("ignore:.*does not support masking:UserWarning")
BATCH, STEPS, INPUTS = 5, 7, 6


def masks(rng: np.random.Generator) -> dict[str, Array | None]:
    """Rows of each mask; the last row of "gaps" has no valid step."""
    lengths = rng.integers(0, STEPS + 1, size=(BATCH, 1))
    right = np.arange(STEPS) < lengths
    gaps = rng.random((BATCH, STEPS)) < 0.5
    gaps[-1] = False
    return {"none": None, "right": right, "left": right[:, ::-1], "gaps": gaps}


def random_weights(model: keras.Model, rng: np.random.Generator) -> keras.Model:
    """No weight keeps an initial zero or one, which would hide that it is not read."""
    model.set_weights([rng.normal(scale=0.5, size=w.shape) for w in model.get_weights()])
    return model


def sequential(*layers: keras.Layer) -> keras.Sequential:
    return keras.Sequential([keras.Input((None, INPUTS)), *layers])


# Each makes a layer of this package from whether it returns sequences.
OURS: dict[str, Callable[[bool], keras.Layer]] = {
    "lstm": lambda s: ours.LSTM(9, return_sequences=s),
    "no bias": lambda s: ours.LSTM(9, use_bias=False, return_sequences=s),
    "backwards": lambda s: ours.LSTM(9, go_backwards=True, return_sequences=s),
    "zero": lambda s: ours.LSTM(9, zero_output_for_mask=True, return_sequences=s),
    "peepholes": lambda s: ours.LSTM(9, use_peephole=True, return_sequences=s),
    "clip": lambda s: ours.LSTM(9, cell_clip=0.2, return_sequences=s),
    "projection": lambda s: ours.LSTM(9, projection_size=4, return_sequences=s),
    "proj_clip": lambda s: ours.LSTM(9, projection_size=4, proj_clip=0.05, return_sequences=s),
    "all": lambda s: ours.LSTM(
        9,
        use_peephole=True,
        cell_clip=0.3,
        projection_size=4,
        proj_clip=0.1,
        return_sequences=s,
    ),
    "haste": lambda s: ours.LSTM(9, layer_normalization="haste", return_sequences=s),
    "addons": lambda s: ours.LSTM(9, layer_normalization="addons", return_sequences=s),
    "addons, no bias": lambda s: ours.LSTM(
        9,
        layer_normalization="addons",
        layer_normalization_epsilon=0.1,
        use_bias=False,
        return_sequences=s,
    ),
    "gru": lambda s: ours.GRU(9, return_sequences=s),
    "gru, no bias": lambda s: ours.GRU(9, use_bias=False, return_sequences=s),
    "gru backwards": lambda s: ours.GRU(9, go_backwards=True, return_sequences=s),
    "reset before": lambda s: ours.GRU(9, reset_after=False, return_sequences=s),
    "reset before, no bias": lambda s: ours.GRU(
        9, reset_after=False, use_bias=False, return_sequences=s
    ),
    "gru norm": lambda s: ours.GRU(9, layer_normalization=True, return_sequences=s),
    **{
        f"bidirectional {mode}": lambda s, mode=mode: ours.Bidirectional(
            ours.LSTM(9, return_sequences=s), merge_mode=mode
        )
        for mode in ("concat", "sum", "mul", "ave")
    },
    "bidirectional gru": lambda s: ours.Bidirectional(ours.GRU(9, return_sequences=s)),
    "simple rnn": lambda s: ours.SimpleRNN(9, return_sequences=s),
    "simple rnn relu": lambda s: ours.SimpleRNN(9, "relu", use_bias=False, return_sequences=s),
    "bidirectional simple rnn": lambda s: ours.Bidirectional(ours.SimpleRNN(9, return_sequences=s)),
    "bidirectional projection": lambda s: ours.Bidirectional(
        ours.LSTM(9, projection_size=4, use_peephole=True, return_sequences=s)
    ),
    "stock bidirectional of ours": lambda s: stock.Bidirectional(ours.LSTM(9, return_sequences=s)),
    "dropout": lambda s: ours.LSTM(9, dropout=0.5, recurrent_dropout=0.5, return_sequences=s),
}
STACKS: dict[str, Callable[[bool], keras.Layer]] = {
    "lstm": lambda s: ours.StackedLSTM(9, 2, return_sequences=s),
    "lstm both": lambda s: ours.StackedLSTM(9, 2, bidirectional=True, return_sequences=s),
    "lstm backwards": lambda s: ours.StackedLSTM(9, 3, go_backwards=True, return_sequences=s),
    "lstm projection": lambda s: ours.StackedLSTM(9, 2, projection_size=4, return_sequences=s),
    "lstm clips": lambda s: ours.StackedLSTM(
        9, 2, projection_size=4, cell_clip=0.2, proj_clip=0.05, return_sequences=s
    ),
    "lstm zero": lambda s: ours.StackedLSTM(9, 2, zero_output_for_mask=True, return_sequences=s),
    "lstm both, last of time": lambda s: ours.StackedLSTM(
        9, 2, bidirectional=True, zero_output_for_mask=False, return_sequences=s
    ),
    "lstm, no bias": lambda s: ours.StackedLSTM(9, 2, use_bias=False, return_sequences=s),
    "gru": lambda s: ours.StackedGRU(9, 2, dropout=0.5, return_sequences=s),
    "gru both": lambda s: ours.StackedGRU(9, 2, bidirectional=True, return_sequences=s),
    "gru backwards": lambda s: ours.StackedGRU(9, 2, go_backwards=True, return_sequences=s),
    "gru, no bias": lambda s: ours.StackedGRU(9, 2, use_bias=False, return_sequences=s),
}
STOCK: dict[str, Callable[[bool], keras.Layer]] = {
    "lstm": lambda s: stock.LSTM(9, return_sequences=s),
    "lstm backwards": lambda s: stock.LSTM(9, go_backwards=True, return_sequences=s),
    "lstm relu": lambda s: stock.LSTM(9, activation="relu", return_sequences=s),
    "gru": lambda s: stock.GRU(9, return_sequences=s),
    "reset before": lambda s: stock.GRU(9, reset_after=False, return_sequences=s),
    "simple rnn": lambda s: stock.SimpleRNN(9, go_backwards=True, return_sequences=s),
    "bidirectional simple rnn": lambda s: stock.Bidirectional(
        stock.SimpleRNN(9, "relu", return_sequences=s), merge_mode="sum"
    ),
    "bidirectional": lambda s: stock.Bidirectional(
        stock.LSTM(9, return_sequences=s), merge_mode="ave"
    ),
    "bidirectional gru": lambda s: stock.Bidirectional(stock.GRU(9, return_sequences=s)),
}


@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize("sequences", [False, True])
def test_our_layers_bit_for_bit(kind: str, sequences: bool, rng: np.random.Generator) -> None:
    model = random_weights(sequential(OURS[kind](sequences)), rng)
    x = rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")
    session = Session(model)
    assert session.returns_sequence == sequences
    for name, mask in masks(rng).items():
        want = model(x, mask=mask).numpy()
        np.testing.assert_array_equal(session(x, mask), want, err_msg=name)
        assert mask is None or np.any(want != session(x))  # the model has not lost the mask


@pytest.mark.parametrize("kind", STACKS)
@pytest.mark.parametrize("sequences", [False, True])
def test_stacks(kind: str, sequences: bool, rng: np.random.Generator) -> None:
    model = random_weights(sequential(STACKS[kind](sequences)), rng)
    x = rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")
    session = Session(model)
    for name, mask in masks(rng).items():
        want = model(x, mask=mask).numpy()
        np.testing.assert_array_equal(session(x, mask), want, err_msg=name)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", STOCK)
@pytest.mark.parametrize("sequences", [False, True])
def test_stock_layers(kind: str, sequences: bool, rng: np.random.Generator) -> None:
    """The bits of our layer with the same weights, and stock's results within rounding."""
    model = random_weights(sequential(STOCK[kind](sequences)), rng)
    fused = ours.convert_model(model)
    x = rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")
    session = Session(model)
    for name, mask in masks(rng).items():
        got = session(x, mask)
        np.testing.assert_array_equal(got, fused(x, mask=mask).numpy(), err_msg=name)
        # float32; sums of some 20 terms of about 1, over seven steps
        np.testing.assert_allclose(got, model(x, mask=mask).numpy(), atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", file.FUNCTIONS)
@pytest.mark.parametrize(
    ("layer", "options"),
    [(ours.LSTM, {}), (ours.GRU, {}), (ours.GRU, {"reset_after": False})],
    ids=["lstm", "gru", "reset_before"],
)
def test_activations(
    layer: Any, options: dict[str, Any], name: str, rng: np.random.Generator
) -> None:
    x = rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")
    for given in ({"activation": name}, {"recurrent_activation": name}):
        model = random_weights(sequential(layer(5, **options, **given)), rng)
        np.testing.assert_array_equal(Session(model)(x), model(x).numpy())


@pytest.mark.parametrize("name", file.DENSE_FUNCTIONS)
@pytest.mark.parametrize("bias", [False, True])
def test_dense_and_activation(name: str, bias: bool, rng: np.random.Generator) -> None:
    model = random_weights(
        sequential(stock.Dense(11, name, use_bias=bias), stock.Activation(name)), rng
    )
    x = rng.normal(size=(BATCH, STEPS, INPUTS), scale=2).astype("float32")
    want = model(x).numpy()
    # 1e-6 of the values' size: the rounding of some steps in float32
    np.testing.assert_allclose(Session(model)(x), want, rtol=0, atol=1e-6 * abs(want).max())


def test_a_chain_of_all_kinds(rng: np.random.Generator) -> None:
    model = random_weights(
        sequential(
            stock.Masking(0.5),
            stock.SpatialDropout1D(0.5),
            ours.LSTM(8, return_sequences=True),
            stock.TimeDistributed(stock.Dense(7, "relu")),
            stock.Dropout(0.5),
            stock.Bidirectional(ours.GRU(5, return_sequences=True), merge_mode="sum"),
            ours.StackedLSTM(6, 2, return_sequences=True),
            stock.ReLU(),
            ours.LSTM(4),
            stock.Dense(3),
            stock.Activation("softmax"),
        ),
        rng,
    )
    x = rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")
    x[np.asarray(masks(rng)["gaps"])] = 0.5
    session = Session(model)
    np.testing.assert_allclose(session(x), model(x).numpy(), atol=1e-6)  # probabilities


@pytest.mark.parametrize("value", [0.0, 0.1, -3])
@pytest.mark.parametrize("kind", ["lstm", "bidirectional gru", "backwards"])
def test_masking(kind: str, value: float, rng: np.random.Generator) -> None:
    """The layer zeroes the features, replaces an earlier mask, and compares in float32."""
    model = random_weights(sequential(stock.Masking(value), OURS[kind](True)), rng)
    x = rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")
    given = masks(rng)
    x[~np.asarray(given["gaps"])] = value
    x[0, 0, 1] = value  # not all features
    session = Session(model)
    for mask in (None, given["right"]):
        np.testing.assert_array_equal(session(x, mask), model(x, mask=mask).numpy())


def test_masking_in_the_middle(rng: np.random.Generator) -> None:
    """Its mask replaces the one before."""
    model = random_weights(
        sequential(
            stock.Masking(),
            ours.LSTM(4, zero_output_for_mask=True, return_sequences=True),
            stock.Activation("relu"),
            stock.Masking(),
            ours.GRU(3, return_sequences=True),
        ),
        rng,
    )
    x = rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")
    x[np.asarray(masks(rng)["gaps"])] = 0
    np.testing.assert_array_equal(Session(model)(x), model(x).numpy())


def test_functional_nested_and_list(rng: np.random.Generator) -> None:
    x = keras.Input((None, INPUTS))
    inner = sequential(ours.LSTM(4, return_sequences=True), stock.Activation("tanh"))
    model = random_weights(keras.Model(x, ours.GRU(3)(inner(x))), rng)
    data = rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")
    want = Session(model)(data)
    np.testing.assert_allclose(want, model(data).numpy(), atol=1e-6)  # tanh in float32
    layers = [*inner.layers, model.layers[-1]]
    np.testing.assert_array_equal(Session(layers)(data), want)
    np.testing.assert_array_equal(Session([inner, model.layers[-1]])(data), want)


def test_a_model_that_does_nothing(rng: np.random.Generator) -> None:
    x = rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")
    np.testing.assert_array_equal(Session(sequential(stock.Dropout(0.5)))(x), x)


@pytest.mark.parametrize("batch, steps", [(0, 3), (2, 0), (0, 0)])
@pytest.mark.parametrize("sequences", [False, True])
def test_empty_batches(batch: int, steps: int, sequences: bool, rng: np.random.Generator) -> None:
    model = random_weights(sequential(ours.LSTM(4, return_sequences=sequences)), rng)
    x = np.zeros((batch, steps, INPUTS), "float32")
    np.testing.assert_array_equal(Session(model)(x), model(x).numpy())


def test_weights_are_frozen_and_states_begin_at_zero(rng: np.random.Generator) -> None:
    layer = ours.LSTM(4, stateful=True)
    model = keras.Sequential([keras.Input((STEPS, INPUTS), batch_size=BATCH), layer])
    random_weights(model, rng)
    session = Session(model)
    x = rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")
    want = model(x).numpy()
    model.set_weights([np.zeros_like(w) for w in model.get_weights()])
    for _ in range(2):
        np.testing.assert_array_equal(session(x), want)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_do_not_change_results(threads: int, rng: np.random.Generator) -> None:
    model = random_weights(sequential(ours.LSTM(150, return_sequences=True), stock.Dense(3)), rng)
    x = rng.normal(size=(40, STEPS, INPUTS)).astype("float32")
    session = Session(model, threads=threads)
    assert session.threads == threads
    np.testing.assert_array_equal(session(x), Session(model)(x))


def test_save_and_load(tmp_path: Path, rng: np.random.Generator) -> None:
    model = random_weights(sequential(OURS["all"](True), stock.Dense(3, "gelu")), rng)
    session, path = Session(model), tmp_path / "model.bin"
    path.write_bytes(b"old")
    session.save(path)
    x = rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")
    loaded = Session.load(path)
    np.testing.assert_array_equal(loaded(x), session(x))
    assert repr(loaded) == repr(session)
    loaded.save(path)  # replaces the file that is mapped
    np.testing.assert_array_equal(Session.load(path, threads=2)(x), session(x))
    np.testing.assert_array_equal(loaded(x), session(x))
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        session.save(tmp_path / "none" / "model.bin")


def test_attributes() -> None:
    session = Session(
        sequential(OURS["projection"](True), ours.GRU(3, return_sequences=True), stock.Dense(2))
    )
    assert (session.input_size, session.output_size) == (INPUTS, 2)
    assert session.returns_sequence and session.can_stream
    assert session.state_shapes == [(4,), (9,), (3,)]
    assert repr(session) == (
        f"Session(layers=3, input_size={INPUTS}, output_size=2, returns_sequence=True, threads=1, "
        "weights='float32')"
    )
    backwards = Session(sequential(OURS["backwards"](False)))
    assert not backwards.can_stream and backwards.state_shapes == []
