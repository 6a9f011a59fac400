"""The masks of a session are those that Keras passes from layer to layer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from session.keras_models import (
    BATCH,
    ROWS,
    C,
    assert_close,
    check,
    data_of,
    embedded,
    floats,
    ids,
    with_random_weights,
)
from tf_lstm_ops import keras as ours
from tf_lstm_ops.inference import Session
from tf_lstm_ops.inference.from_keras import call_masks

# Keras says so of each layer that takes a mask away.
pytestmark = pytest.mark.filterwarnings("ignore:.*does not support masking:UserWarning")
T = 8


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


def _given_mask(source_of_mask: int) -> Callable[[], keras.Model]:
    """A call with an initial state and a mask: that of its own input, or of another layer."""

    def model() -> keras.Model:
        tensors = ids(T), ids(T)
        sequences = [embedded(each) for each in tensors]
        mask = sequences[source_of_mask]._keras_mask
        y, h, c = ours.LSTM(5, return_sequences=True, return_state=True)(sequences[0])
        y = ours.LSTM(5, return_sequences=True)(sequences[1], initial_state=[h, c], mask=mask)
        return keras.Model([*tensors], [layers.LSTM(3)(y), layers.GlobalAveragePooling1D()(y)])

    return model


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


def _mask_of_operations(value: int) -> Callable[[], keras.Model]:
    """A mask that differs from that of the embedding if the value is not 0."""

    def model() -> keras.Model:
        x = ids(T)
        mask = keras.ops.not_equal(x, value)
        return keras.Model(x, layers.LSTM(3, name="me")(embedded(x), mask=mask))

    return model


MASKED: dict[str, Callable[[], keras.Model]] = {
    "pooled": _pooled,
    "dense": _masked(lambda: layers.Dense(4), layers.LeakyReLU, layers.PReLU),
    "normalised": _masked(layers.LayerNormalization, layers.BatchNormalization),
    "rms": _masked(layers.RMSNormalization),
    "normalised groups": _masked(lambda: layers.GroupNormalization(groups=1)),
    "normalised rows": _masked(layers.UnitNormalization),
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
    "given mask": _given_mask(1),
    "mask of operations": _mask_of_operations(0),
    "given mask of another": _given_mask(0),
    "nested": _masked_nested,
    "windows": _masked_windows,
    "words": _words,
    "masks in windows": _masks_in_windows,
}


@pytest.mark.parametrize("kind", MASKED)
def test_masks(kind: str, rng: np.random.Generator) -> None:
    model = MASKED[kind]()
    check(model, rng, _inputs(model, rng))


def _loaded(model: keras.Model, folder: Path) -> keras.Model:
    model.save(folder / "model.keras")
    return keras.models.load_model(folder / "model.keras")


WAYS: dict[str, Callable[[keras.Model, Path], keras.Model]] = {
    "cloned": lambda model, folder: keras.models.clone_model(model),
    "loaded": _loaded,
    "loaded twice": lambda model, folder: _loaded(_loaded(model, folder), folder),
    "converted": lambda model, folder: ours.convert_model(_loaded(model, folder)),
    "in place": lambda model, folder: ours.convert_model(_loaded(model, folder), in_place=True),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "kind",
    ["lstm", "Concatenate True", "given mask of another"]
    + [
        pytest.param(kind, marks=pytest.mark.full)
        for kind in MASKED
        if kind not in ("lstm", "Concatenate True", "given mask of another")
    ],
)
def test_masks_of_copies(kind: str, way: str, rng: np.random.Generator, tmp_path: Path) -> None:
    """The configuration of a model computes the masks of calls by operations of its own."""
    model = WAYS[way](MASKED[kind](), tmp_path)
    check(model, rng, _inputs(model, rng))


def _inputs(model: keras.Model, rng: np.random.Generator) -> Any:
    """Sequences of which some steps are masked, but the first step of no row."""
    x = []
    for tensor in model.inputs:
        shape = (5, *(size or T for size in tensor.shape[1:]))
        if tensor.dtype == "int32":
            values = rng.integers(0, ROWS, shape) * (rng.random(shape) < 0.5)
            values[:, 0] = 1  # a mean of nothing is NaN
            x.append(values.astype("int32"))
        else:
            x.append((rng.normal(size=shape) * (rng.random((*shape[:-1], 1)) < 0.6)).astype("f4"))
    return x if len(x) > 1 else x[0]


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


def _mask_of_no_layer(kind: str) -> Callable[[], keras.Model]:
    """A mask that the call passes on, and that no layer of the graph makes."""

    def model() -> keras.Model:
        x, words = floats(T, C), ids(T)
        mask = layers.Embedding(ROWS, C, mask_zero=True).compute_mask(words)
        recurrent = layers.LSTM(3, return_sequences=True, name="me")
        if kind == "input":
            words = mask = keras.Input((T,), dtype="bool")
        y = recurrent(x, mask=mask)
        if kind == "two layers":
            y = layers.GRU(3)(y)
        return keras.Model([x, words], y)

    return model


REFUSED: dict[str, tuple[Callable[[], keras.Model], str]] = {
    **{
        f"no layer, {kind}": (_mask_of_no_layer(kind), "the mask of its call|has dtype bool")
        for kind in ("computed", "two layers")
    },
    "operations": (_mask_of_operations(1), "the mask of its call is not that of an Embedding"),
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
    masks = [rng.random((BATCH, T)) < 0.6 for _ in range(count)]
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


def test_masks_are_compared_by_their_operations() -> None:
    """Those of one input or of several, which a configuration has twice."""
    x, other = keras.Input([3, 4]), keras.Input([3, 4])
    masked = layers.Masking(0.5)(x)
    model = keras.Model([x, other], [layers.LSTM(2)(masked), layers.LSTM(2)(other)])
    not_equal = keras.ops.not_equal
    for mask, is_equal in (
        (keras.ops.any(not_equal(x, 0.5), axis=-1), True),
        (keras.ops.any(not_equal(x, 0.25), axis=-1), False),
        (keras.ops.any(not_equal(x, 0.5), axis=1), False),
        (keras.ops.any(not_equal(other, 0.5), axis=-1), False),
        (keras.ops.all(not_equal(x, 0.5), axis=-1), False),
    ):
        assert call_masks.are_carried(masked, mask) == is_equal
        assert call_masks.are_carried([other, masked], [None, mask]) == is_equal
        assert not call_masks.are_carried([masked, other], [None, mask])
        found = call_masks.carrier(model, mask)
        assert found is masked if is_equal else found is None


def _marks() -> Any:
    return keras.Input((None,), dtype="bool", name="mask")


def _of_all_layers() -> keras.Model:
    """A mask of an input through layers of this package and of Keras, and a nested model."""
    x, mask = floats(), _marks()
    inner_x, inner_mask = floats(), _marks()
    y = layers.GRU(3, return_sequences=True, go_backwards=True)(inner_x, mask=inner_mask)
    inner = keras.Model([inner_x, inner_mask], y)
    z = layers.Bidirectional(ours.LSTM(3, return_sequences=True))(x, mask=mask)
    return keras.Model(
        [x, mask],
        [
            ours.LSTM(3, zero_output_for_mask=True, return_sequences=True)(x, mask=mask),
            layers.GlobalAveragePooling1D()(z, mask=mask),
            inner([x, mask]),
        ],
    )


def _of_a_mask_and_states() -> keras.Model:
    x, mask, h = floats(), _marks(), keras.Input((3,))
    return keras.Model([x, mask, h], ours.GRU(3, return_state=True)(x, mask=mask, initial_state=h))


@pytest.mark.parametrize("is_loaded", [False, pytest.param(True, marks=pytest.mark.full)])
@pytest.mark.parametrize("make", [_of_all_layers, _of_a_mask_and_states])
def test_masks_as_inputs(make, is_loaded, rng, tmp_path):
    """Holes, padding on both sides, and (not for a mean) a row without steps."""
    model = with_random_weights(make(), rng)
    x, mask, *states = data_of(model, rng, 5)
    mask = np.array([[1, 0, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]], bool)
    if not states:
        mask[2, 0] = True
    given = [x, mask, *states]
    want = keras.tree.map_structure(np.asarray, model(given))
    if is_loaded:
        model.save(tmp_path / "model.keras")
        model = keras.models.load_model(tmp_path / "model.keras")
    session = Session(model)
    assert session.inputs[1].dtype == "int32"
    assert_close(session(given), want)
    assert_close(session([x, mask.astype("int32"), *states]), want)
    session.save(tmp_path / "session")
    assert_close(Session.load(tmp_path / "session")(given), want)
    with pytest.raises(ValueError, match="its mask's time is 4, must be 5"):
        session([x, mask[:, :4], *states])
    with pytest.raises(ValueError, match="is 2, must be 0 to 1"):
        session([x, mask + 1, *states])


def test_a_stream_of_masks(rng):
    x, mask = floats(), _marks()
    model = with_random_weights(keras.Model([x, mask], ours.LSTM(3)(x, mask=mask)), rng)
    steps, marks = data_of(model, rng, 5)[0], rng.integers(0, 2, (BATCH, 5)).astype(bool)
    stream = Session(model).stream(BATCH)
    for t in range(5):
        y = stream([steps[:, t], marks[:, t]])
    np.testing.assert_array_equal(y, Session(model)([steps, marks]))


@pytest.mark.parametrize(
    "make",
    [
        lambda x, mask: mask,
        lambda x, mask: layers.Reshape((-1, 1))(mask),
        lambda x, mask: ours.LSTM(3)(x, mask=keras.ops.logical_not(mask)),
        lambda x, mask: x * keras.ops.expand_dims(keras.ops.cast(mask, "float32"), -1),
    ],
)
def test_booleans_are_masks_only(make):
    x, mask = floats(), _marks()
    model = keras.Model([x, mask], [ours.LSTM(3)(x, mask=mask), make(x, mask)])
    with pytest.raises(ValueError, match="a session does not compute"):
        Session(model)
