"""Functional models with branches, several inputs and outputs, and masks, against ``model(x)``."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from session import keras_models
from session.keras_models import ROWS, assert_close, check, data_of, with_random_weights
from tf_lstm_ops import keras as ours
from tf_lstm_ops.inference import Session

# Keras says so of each layer that takes a mask away.
pytestmark = pytest.mark.filterwarnings("ignore:.*does not support masking:UserWarning")
C, T = 6, 8
MERGES = ("Add", "Multiply", "Average", "Maximum", "Minimum", "Concatenate")


def floats(*shape: int | None) -> Any:
    return keras.Input(shape or (None, C))


def ids(*shape: int | None) -> Any:
    return keras.Input(shape or (None,), dtype="int32")


def embedded(x: Any, units: int = C, mask_zero: bool = True) -> Any:
    return layers.Embedding(ROWS, units, mask_zero=mask_zero)(x)


def _merges() -> keras.Model:
    x = floats()
    y, z = layers.Dense(4)(x), layers.Dense(4, "relu")(x)
    made = [getattr(layers, name)()([y, z, y]) for name in MERGES]
    made += [layers.Subtract()([y, z]), layers.Multiply()([y, layers.Dense(1)(x)])]
    made.append(layers.Concatenate(axis=2)([y, x]))
    made.append(layers.Concatenate(axis=1)([y, z]))
    return keras.Model(x, made)


def _heads() -> keras.Model:
    """As Clair3: one trunk, four heads."""
    x = floats(T, C)
    y = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x)
    y = layers.Dense(5, "selu")(layers.Flatten()(layers.Dropout(0.2)(y)))
    return keras.Model(x, [layers.Dense(n, "softmax")(y) for n in (2, 3, 4, 5)])


def _encoder_and_decoder() -> keras.Model:
    source, target = ids(), ids()
    _, h, c = ours.LSTM(5, return_state=True)(embedded(source, mask_zero=False))
    y = ours.LSTM(5, return_sequences=True)(embedded(target, mask_zero=False), initial_state=[h, c])
    return keras.Model([source, target], layers.Dense(ROWS, "softmax")(y))


def _decoder() -> keras.Model:
    """A step of a decoder, whose states are inputs and outputs."""
    x, h = ids(1), keras.Input((5,))
    y, state = layers.GRU(5, return_sequences=True, return_state=True)(
        embedded(x, mask_zero=False), initial_state=h
    )
    return keras.Model([x, h], [layers.Dense(ROWS)(y), state])


def _states() -> keras.Model:
    x, results = floats(), []
    for made in (
        *(layers.LSTM(3, return_state=True), layers.GRU(3, return_state=True)),
        ours.LSTM(4, projection_size=2, return_state=True, return_sequences=True),
        ours.SimpleRNN(3, return_state=True, go_backwards=True),
        ours.StackedLSTM(3, 2, return_state=True, bidirectional=True),
        ours.StackedGRU(3, 2, return_state=True, return_sequences=True),
        layers.Bidirectional(layers.LSTM(3, return_state=True)),
        ours.Bidirectional(ours.GRU(3, return_state=True, return_sequences=True), merge_mode="sum"),
    ):
        results += made(x)
    return keras.Model(x, results)


def _bidirectional_decoder() -> keras.Model:
    x, y = floats(), floats(None, 4)
    states = layers.Bidirectional(layers.LSTM(3, return_state=True))(x)[1:]
    return keras.Model([x, y], layers.Bidirectional(layers.LSTM(3))(y, initial_state=states))


def _stacked_decoder() -> keras.Model:
    x, y = floats(), floats(None, 4)
    states = ours.StackedLSTM(3, 2, return_state=True)(x)[1:]
    return keras.Model([x, y], ours.StackedLSTM(3, 2)(y, initial_state=states))


def _siamese() -> keras.Model:
    """A nested model that is called twice, with a layer that is called twice."""
    x = floats()
    dense = layers.Dense(C, "tanh")
    inner = keras.Model(x, layers.LSTM(4)(dense(dense(x))))
    first, second = floats(), floats()
    return keras.Model([first, second], layers.Subtract()([inner(first), inner(second)]))


def _nested() -> keras.Model:
    """Models with several inputs and outputs within a model."""
    a, b = floats(), floats(None, 4)
    both = keras.Model([a, b], [layers.Concatenate()([a, b]), layers.Dense(3)(b)])
    x = floats()
    joint, second = both([x, layers.Dense(4)(x)])
    chain = keras.Sequential([layers.Dense(3), layers.LeakyReLU()])
    return keras.Model(x, layers.Add()([chain(joint), second]))


def _tagger() -> keras.Model:
    """As DeLFT: embeddings of characters in each word, and vectors of words."""
    characters, words = ids(None, 5), floats()
    y = layers.TimeDistributed(embedded_layer(4))(characters)
    y = layers.TimeDistributed(layers.Bidirectional(layers.LSTM(3)))(y)
    y = layers.Concatenate()([words, y])
    y = layers.Bidirectional(layers.LSTM(5, return_sequences=True))(y)
    return keras.Model([words, characters], layers.Dense(4)(y))


def embedded_layer(units: int) -> Any:
    return layers.Embedding(ROWS, units, mask_zero=True)


def _residual() -> keras.Model:
    x = floats(None, C)
    y = x
    for dilation in (1, 2):
        z = layers.Conv1D(C, 3, padding="causal", dilation_rate=dilation)(y)
        y = layers.Add()([y, layers.Activation("relu")(layers.BatchNormalization()(z))])
    return keras.Model(x, layers.GlobalMaxPooling1D()(y))


def _distributed_model() -> keras.Model:
    """A nested model with branches and masks for each step."""
    window = ids(5)
    y = embedded(window)
    y = layers.Concatenate()([layers.LSTM(3)(y), layers.GlobalAveragePooling1D()(y)])
    windows = ids(4, 5)
    y = layers.TimeDistributed(keras.Model(window, y))(windows)
    return keras.Model(windows, layers.GRU(3)(y))


def _unused() -> keras.Model:
    x, y = floats(), floats()
    return keras.Model([x, y], [layers.Dense(2)(x), layers.Dense(2)(y), x])


MODELS: dict[str, Callable[[], keras.Model]] = {
    name.removeprefix("_"): function
    for name, function in dict(globals()).items()
    if name.startswith("_") and callable(function) and not name.startswith("__")
}


@pytest.mark.parametrize("kind", MODELS)
def test_models(kind: str, rng: np.random.Generator) -> None:
    check(MODELS[kind](), rng)


@pytest.mark.parametrize("kind", ["encoder_and_decoder", "tagger", "nested", "states"])
def test_a_saved_session(kind: str, rng: np.random.Generator, tmp_path: Any) -> None:
    model = MODELS[kind]()
    session, x = check(model, rng), data_of(model, rng)
    session.save(tmp_path / "model")
    loaded = Session.load(tmp_path / "model", threads=2)
    for a, b in zip(*map(keras.tree.flatten, (loaded(x), session(x))), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("inputs", [list, tuple, dict])
@pytest.mark.parametrize("outputs", [list, tuple, dict])
def test_structures(inputs: type, outputs: type, rng: np.random.Generator) -> None:
    tensors = [keras.Input((None, n), name=name) for n, name in ((3, "second"), (2, "first"))]
    results = [layers.Dense(3)(tensors[1]), layers.Concatenate()(tensors)]
    data = [rng.normal(size=(2, 5, n)).astype("float32") for n in (3, 2)]

    def structured(kind: type, values: list[Any]) -> Any:
        return kind(zip(["second", "first"], values, strict=True)) if kind is dict else kind(values)

    model = keras.Model(structured(inputs, tensors), structured(outputs, results))
    with_random_weights(model, rng)
    x = structured(inputs, data)
    got, want = Session(model)(x), model(x)
    if outputs is dict:
        assert isinstance(got, dict) and {*got} == {*want}
        for name in got:
            assert_close(got[name], np.asarray(want[name]))
    else:
        assert_close(got, [np.asarray(each) for each in want])


# Masks.


def _masked(*made: Any) -> Callable[[], keras.Model]:
    """Layers behind an embedding, and an LSTM at the end."""

    def model() -> keras.Model:
        x = ids(T)
        y = embedded(x)
        for layer in made:
            y = layer()(y)
        return keras.Model(x, ours.LSTM(3)(y))

    return model


def _pooled() -> keras.Model:
    x = ids()
    return keras.Model(
        x, layers.GlobalAveragePooling1D(keepdims=True)(layers.Dense(3)(embedded(x)))
    )


def _merged(name: str, second_has_mask: bool) -> Callable[[], keras.Model]:
    def model() -> keras.Model:
        a, b = ids(T), ids(T)
        y = getattr(layers, name)()([embedded(a), embedded(b, mask_zero=second_has_mask)])
        return keras.Model([a, b], layers.LSTM(3, return_sequences=True)(y))

    return model


def _merged_with_itself() -> keras.Model:
    x = ids(T)
    y = embedded(x)
    y = layers.Add()([y, layers.LSTM(C, return_sequences=True)(y)])
    return keras.Model(x, layers.GRU(3)(layers.Concatenate()([y, y])))


def _masked_decoder() -> keras.Model:
    """Keras gives no mask of its own to a call with an initial state."""
    source, target = ids(T), ids(T)
    _, h, c = ours.LSTM(5, return_state=True)(embedded(source))
    y = ours.LSTM(5, return_sequences=True)(embedded(target), initial_state=[h, c])
    return keras.Model([source, target], layers.LSTM(3)(y))


def _masked_nested() -> keras.Model:
    """The masks of several inputs go into a nested model, and out of it."""
    a, b = floats(T, C), floats(T, C)
    inner = keras.Model([a, b], [layers.LSTM(3, return_sequences=True)(a), layers.Add()([a, b])])
    x, y = ids(T), ids(T)
    first, second = inner([embedded(x), embedded(y)])
    return keras.Model([x, y], [layers.LSTM(3)(first), layers.LSTM(3)(second)])


def _masked_windows() -> keras.Model:
    """The mask of the steps goes past TimeDistributed."""
    x = floats(4, C)
    y = layers.TimeDistributed(layers.RepeatVector(3))(layers.Masking()(x))
    y = layers.TimeDistributed(layers.Flatten())(y)
    return keras.Model(x, layers.LSTM(3)(y))


def _words() -> keras.Model:
    """The mask of words in sentences is that of the layer for each sentence."""
    x = ids(4, 5)
    y = layers.TimeDistributed(layers.Bidirectional(layers.LSTM(3)))(embedded(x))
    return keras.Model(x, layers.GlobalMaxPooling1D()(layers.Dense(2)(y)))


def _masks_in_windows() -> keras.Model:
    """Masks within a nested model for each step, and of the steps."""
    window = floats(5, C)
    inner = keras.Model(window, ours.GRU(3)(layers.Dense(4)(layers.Masking()(window))))
    x = floats(4, 5, C)
    y = layers.TimeDistributed(inner)(x)
    return keras.Model(x, layers.LSTM(3)(layers.Masking(0.5)(y)))


MASKED: dict[str, Callable[[], keras.Model]] = {
    "pooled": _pooled,
    "dense": _masked(lambda: layers.Dense(4), layers.LeakyReLU, layers.PReLU),
    "normalised": _masked(layers.LayerNormalization, layers.BatchNormalization),
    "rms": _masked(layers.RMSNormalization),
    "conv": _masked(lambda: layers.Conv1D(4, 3)),
    "pooling": _masked(layers.MaxPooling1D),
    "padding": _masked(layers.ZeroPadding1D),
    "cropping": _masked(layers.Cropping1D),
    "upsampling": _masked(layers.UpSampling1D),
    "permute": _masked(lambda: layers.Permute((2, 1))),
    "distributed": _masked(lambda: layers.TimeDistributed(layers.Dense(3))),
    "lstm": _masked(lambda: layers.Bidirectional(layers.LSTM(3, return_sequences=True))),
    "zero": _masked(
        lambda: ours.LSTM(4, return_sequences=True, zero_output_for_mask=True),
        lambda: layers.Dense(3),
    ),
    **{
        f"{name} {both}": _merged(name, both)
        for name in ("Add", "Average", "Subtract", "Concatenate")
        for both in (True, False)
    },
    "merged with itself": _merged_with_itself,
    "decoder": _masked_decoder,
    "nested": _masked_nested,
    "windows": _masked_windows,
    "words": _words,
    "masks in windows": _masks_in_windows,
}


@pytest.mark.parametrize("kind", MASKED)
def test_masks(kind: str, rng: np.random.Generator) -> None:
    model = MASKED[kind]()
    x = []
    for tensor in model.inputs:
        shape = (5, *(size or T for size in tensor.shape[1:]))
        if tensor.dtype == "int32":
            values = rng.integers(0, ROWS, shape) * (rng.random(shape) < 0.5)
            values[:, 0] = 1  # a mean of nothing is NaN
            x.append(values.astype("int32"))
        else:
            x.append((rng.normal(size=shape) * (rng.random((*shape[:-1], 1)) < 0.6)).astype("f4"))
    check(model, rng, x if len(x) > 1 else x[0])


def _two_masks(layer: keras.Layer) -> keras.Model:
    a, b = ids(), ids()
    return keras.Model([a, b], layers.LSTM(3)(layer([embedded(a), embedded(b)])))


def _masked_steps(layer: keras.Layer) -> keras.Model:
    x = floats(4, 5, C)
    y = layers.TimeDistributed(layers.Flatten())(x)
    y = layers.TimeDistributed(layers.Reshape((5, C)))(layers.Masking()(y))
    return keras.Model(x, layers.TimeDistributed(layer)(y))


def _words_of_sentences() -> keras.Model:
    x = ids(4, 5)
    y = layers.TimeDistributed(layers.LSTM(3))(embedded(x))
    return keras.Model(x, layers.LSTM(3, name="me")(y))


REFUSED: dict[str, tuple[Callable[[], keras.Model], str]] = {
    **{
        kind.__name__: (lambda k=kind: _two_masks(k(name="me")), "its input has a mask, with which")
        for kind in (layers.Multiply, layers.Maximum, layers.Minimum)
    },
    "softmax": (_masked(lambda: layers.Softmax(name="me")), "its input has a mask, with which"),
    "time": (
        lambda: _two_masks(layers.Concatenate(axis=1, name="me")),
        "concatenates along time, and its inputs have masks",
    ),
    "steps": (
        lambda: _masked_steps(layers.LSTM(3, name="inner")),
        "does not pass the mask of the Masking layer on to layer inner",
    ),
    "words": (_words_of_sentences, "the mask of its input has 3 axes, not 2"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_masks_that_a_session_does_not_have(kind: str) -> None:
    make, why = REFUSED[kind]
    with pytest.raises(ValueError, match=rf"layer (me|time_distributed\w*): .*{why}"):
        Session(make())


def _call_masks(rng: np.random.Generator, count: int) -> list[Any]:
    masks = [rng.random((keras_models.BATCH, T)) < 0.6 for _ in range(count)]
    for mask in masks:
        mask[:, 0] = True
    return masks


def _mask_of_one() -> keras.Model:
    x = floats(T, C)
    y = layers.LSTM(C, return_sequences=True)(layers.Dense(C)(x))
    y = layers.Add()([x, y])
    return keras.Model(x, [layers.GlobalAveragePooling1D()(y), layers.LSTM(3)(y)])


def _masks_of_two() -> keras.Model:
    x, y = floats(T, C), floats(T, C)
    z = layers.Concatenate()([x, layers.Dense(2)(y)])
    return keras.Model([x, y], [layers.LSTM(3)(z), layers.GRU(3)(x), layers.GRU(3)(y)])


def _mask_that_stops() -> keras.Model:
    x = floats(T, C)
    return keras.Model(x, layers.LSTM(3)(layers.Conv1D(3, 1)(x)))


def _mask_of_a_decoder() -> keras.Model:
    x, h = floats(T, C), keras.Input((3,))
    return keras.Model([x, h], layers.GRU(3)(x, initial_state=h))


@pytest.mark.parametrize(
    "make", [_mask_of_one, _masks_of_two, _mask_that_stops, _mask_of_a_decoder]
)
def test_masks_of_a_call(make: Callable[[], keras.Model], rng: np.random.Generator) -> None:
    model = with_random_weights(make(), rng)
    session, x = Session(model), data_of(model, rng, T)
    if len(model.inputs) == 1:
        [mask] = _call_masks(rng, 1)
        assert_close(session(x, mask), keras.tree.map_structure(np.asarray, model(x, mask=mask)))
        return
    first, second = _call_masks(rng, 2)
    is_sequence = len(model.inputs[1].shape) == 3
    for mask in ([first, second], [first, None], [None, second]):
        if is_sequence or mask[1] is None:
            want = keras.tree.map_structure(np.asarray, model(x, mask=mask))
            assert_close(session(x, mask), want)
