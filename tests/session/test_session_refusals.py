"""A session looks at all layers that decide what ``model(x)`` computes, and refuses the unknown."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers as stock

import new_arguments
from tf_lstm_ops import _targets
from tf_lstm_ops import keras as ours
from tf_lstm_ops.inference import Session

INPUTS, STEPS = 3, 5
IDENTITIES: dict[str, Callable[..., keras.Layer]] = {
    "Dropout": lambda **k: stock.Dropout(0.5, **k),
    "SpatialDropout1D": lambda **k: stock.SpatialDropout1D(0.5, **k),
    "GaussianDropout": lambda **k: stock.GaussianDropout(0.5, **k),
    "GaussianNoise": lambda **k: stock.GaussianNoise(0.5, **k),
    "AlphaDropout": lambda **k: stock.AlphaDropout(0.5, **k),
    "ActivityRegularization": lambda **k: stock.ActivityRegularization(0.5, **k),
    "Identity": lambda **k: stock.Identity(**k),
}
OTHERS: dict[str, Callable[..., keras.Layer]] = {
    "Dense": lambda **k: stock.Dense(2, **k),
    "TimeDistributed": lambda **k: stock.TimeDistributed(stock.Dense(2), **k),
    "TimeDistributed inside": lambda **k: stock.TimeDistributed(stock.Dense(2, **k)),
    "Activation": lambda **k: stock.Activation("tanh", **k),
    "ReLU": lambda **k: stock.ReLU(**k),
    "Masking": lambda **k: stock.Masking(**k),
    "LSTM": lambda **k: ours.LSTM(2, **k),
    "Bidirectional": lambda **k: ours.Bidirectional(ours.GRU(2, **k)),
    "StackedGRU": lambda **k: ours.StackedGRU(2, 2, **k),
}


def model_of(*layers: Any, **options: Any) -> keras.Sequential:
    return keras.Sequential([keras.Input((STEPS, INPUTS), **options), *layers])


@pytest.fixture
def x(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(2, STEPS, INPUTS)).astype("float32")


@pytest.mark.parametrize("name", [*IDENTITIES, *OTHERS])
@pytest.mark.parametrize("dtype", ["float16", "mixed_float16", "mixed_bfloat16", "float64"])
def test_types(name: str, dtype: str, x: np.ndarray) -> None:
    """model(x) rounds what goes through such a layer, or does not round it at all."""
    layer = {**IDENTITIES, **OTHERS}[name](dtype=dtype)
    with pytest.raises(ValueError, match=r"computes in or has weights of .*float"):
        Session(model_of(layer))


@pytest.mark.parametrize("name", IDENTITIES)
def test_float32_does_nothing(name: str, x: np.ndarray) -> None:
    model = model_of(IDENTITIES[name](), ours.LSTM(2))
    np.testing.assert_array_equal(Session(model)(x), model(x))


@pytest.mark.parametrize("name", [*IDENTITIES, *OTHERS])
def test_a_replaced_call(name: str, x: np.ndarray) -> None:
    """As for Monte-Carlo dropout: the layer drops in inference, too."""
    layer = {**IDENTITIES, **OTHERS}[name]()
    model = model_of(layer)
    call = layer.call
    layer.call = lambda inputs, *args, **kwargs: call(inputs * 2.0, *args, **kwargs)
    for source in (model, [layer]):
        with pytest.raises(ValueError, match=rf"layer {layer.name}: its call was replaced"):
            Session(source)


@pytest.mark.parametrize("dtype", ["int32", "float16", "bfloat16", "bool", "uint8"])
def test_the_type_of_the_input(dtype: str, x: np.ndarray) -> None:
    """model(x) rounds x to the type of its input."""
    model = model_of(ours.LSTM(2), dtype=dtype)
    assert np.abs(model(x * 1.37) - model_of(model.layers[0])(x * 1.37)).max() > 1e-6
    source = keras.Input((STEPS, INPUTS), dtype=dtype)
    functional = keras.Model(source, model.layers[0](source))
    nested = model_of(functional)
    for item in (model, functional, nested):
        with pytest.raises(ValueError, match=rf"input .*has dtype {dtype}, not float32"):
            Session(item)
    with pytest.raises(ValueError, match=rf"input .*has dtype {dtype}, not float32"):
        Session([stock.InputLayer((STEPS, INPUTS), dtype=dtype), model.layers[0]])


def test_an_input_of_float64(x: np.ndarray) -> None:
    """Layers of float32 round it as the session does."""
    model = model_of(stock.Dropout(0.5), ours.LSTM(2), dtype="float64")
    np.testing.assert_array_equal(Session(model)(x), model(x))
    model = model_of(stock.Dense(2, autocast=False))
    with pytest.raises(ValueError, match="autocast=False"):
        Session(model)


@pytest.mark.parametrize("name", ["call", "compute_mask"])
@pytest.mark.parametrize("functional", [True, False])
def test_a_replaced_method_of_a_model(name: str, functional: bool, x: np.ndarray) -> None:
    layer = ours.LSTM(2)
    source = keras.Input((STEPS, INPUTS))
    inner = keras.Model(source, layer(source)) if functional else model_of(layer)
    outer = model_of(inner)
    method = getattr(inner, name)
    setattr(inner, name, lambda *args, **kwargs: method(*args, **kwargs))
    for item in (inner, outer, [inner]):
        with pytest.raises(ValueError, match=rf"{inner.name}: its {name} was replaced"):
            Session(item)


def test_sparse_and_ragged_inputs() -> None:
    layer = ours.LSTM(2)
    with pytest.raises(ValueError, match="sparse or ragged"):
        Session(model_of(stock.Dense(3), layer, sparse=True))


@pytest.mark.parametrize("kind", [ours.LSTM, ours.GRU, ours.Bidirectional, ours.StackedLSTM])
def test_an_argument_that_a_session_does_not_know(kind: Any, monkeypatch, x: np.ndarray) -> None:
    """A cell that is added as CONTRIBUTING.md says: the session must not lack its argument."""
    for cls in (ours.LSTM, ours.LSTMCell, ours.GRU, ours.StackedLSTM):
        new_arguments.add(monkeypatch, cls, "zoneout_c")
    option = _targets.Option(_targets.Effect.STEP, is_own=True)
    monkeypatch.setitem(_targets.OPTIONS, "zoneout_c", option)
    inner = ours.LSTM(2)
    layer = {ours.Bidirectional: lambda: kind(inner), ours.StackedLSTM: lambda: kind(2, 2)}.get(
        kind, lambda: kind(2)
    )()
    model = model_of(layer)
    np.testing.assert_allclose(Session(model)(x), model(x), rtol=0, atol=1e-6)
    changed = layer.forward_layer if kind is ours.Bidirectional else layer
    changed.zoneout_c = 0.3
    with pytest.raises(ValueError, match="has zoneout_c, which a session does not know"):
        Session(model)


def test_an_argument_of_the_constructor(monkeypatch, x: np.ndarray) -> None:
    """Also one that is in no list, of this package or of a later Keras."""
    layer = stock.GRU(2)
    known = stock.GRU.__init__

    def constructor(self, units, *args, new_option=None, **kwargs):
        known(self, units, *args, **kwargs)

    model = model_of(layer)
    monkeypatch.setattr(stock.GRU, "__init__", constructor)
    Session(model)
    layer.new_option = 1
    with pytest.raises(ValueError, match="has new_option, which a session does not know"):
        Session(model)


@pytest.mark.parametrize("name", ["Dense", "Conv1D", "Masking", "Reshape", "TimeDistributed"])
def test_a_later_argument_of_any_layer(name: str, monkeypatch, x: np.ndarray) -> None:
    """A later Keras may give a class an argument that changes what it computes."""
    new_arguments.add(monkeypatch, getattr(stock, name), "twice")
    arguments = {"Dense": [2], "Conv1D": [2, 3], "Reshape": [(-1,)], "Masking": []}
    layer = getattr(stock, name)(*arguments.get(name, [stock.Dense(2)]))
    model = model_of(layer)
    np.testing.assert_allclose(Session(model)(x), model(x), rtol=0, atol=1e-6)
    layer.twice = True
    with pytest.raises(ValueError, match=f"layer {layer.name}: it has twice, which a session does"):
        Session(model)


def functional(*layers: Any) -> keras.Model:
    source = y = keras.Input((STEPS, INPUTS))
    for layer in layers:
        y = layer(y)
    return keras.Model(source, y)


@pytest.mark.parametrize("make", ["sequential", "functional", "nested", "list"])
def test_several_refusals_are_said_at_once(make: str) -> None:
    wrong = [stock.Softmax(1), stock.Rescaling(2.0), stock.LSTM(2, dtype="float64")]
    layers = [wrong[0], ours.LSTM(3, return_sequences=True), *wrong[1:], stock.Dense(2)]
    chain = functional(*layers)
    source = {
        "sequential": lambda: model_of(*layers),
        "functional": lambda: chain,
        "nested": lambda: model_of(stock.Dense(INPUTS), functional(*layers[:3]), *layers[3:]),
        "list": lambda: layers,
    }[make]()
    with pytest.raises(ValueError) as raised:
        Session(source)
    first, *lines = str(raised.value).splitlines()
    assert first == "3 layers are refused:"
    reasons = ["it has axis=1", "keras.layers.Rescaling is not", "it computes in or has"]
    for line, layer, reason in zip(lines, wrong, reasons, strict=True):
        assert line.startswith(f"a session does not compute layer {layer.name}: {reason}")


def test_every_option_is_an_argument_of_a_layer() -> None:
    import inspect

    kinds = (ours.LSTM, ours.GRU, ours.StackedLSTM, ours.StackedGRU, stock.LSTM, stock.RNN)
    names = {name for kind in kinds for name in inspect.signature(kind.__init__).parameters}
    names |= {*ours.StackedLSTM(1, 1).get_config(), "implementation"}
    assert names >= _targets.OPTIONS.keys()


@pytest.mark.parametrize("masked", ["functional", "nested", "dropout", "two", "bidirectional"])
def test_functional_chains_with_masks(masked: str, x: np.ndarray) -> None:
    """The mask that Keras passes from layer to layer is not a second input of the model."""
    source = keras.Input((None, INPUTS))
    y = stock.Masking()(source)
    if masked == "nested":
        inner = keras.Input((None, INPUTS))
        y = keras.Model(inner, ours.LSTM(INPUTS, return_sequences=True)(inner))(y)
    elif masked == "dropout":
        y = stock.TimeDistributed(stock.Dense(4))(stock.Dropout(0.1)(y))
    elif masked == "two":
        y = stock.Masking(1.0)(stock.GRU(4, return_sequences=True)(y))
    elif masked == "bidirectional":
        y = stock.Bidirectional(stock.LSTM(4, return_sequences=True))(y)
    model = keras.Model(source, ours.LSTM(2)(y))
    x[0, 2:] = 0
    x[1, 1] = 0
    # Stock layers in the chain sum in another order.
    np.testing.assert_allclose(Session(model)(x), model(x), rtol=0, atol=1e-6)


def test_an_explicit_mask_that_is_computed(x: np.ndarray) -> None:
    source = keras.Input((None, INPUTS))
    mask = source[:, :, 0] > 0
    model = keras.Model(source, ours.LSTM(2)(stock.Masking()(source), mask=mask))
    with pytest.raises(ValueError, match="the mask of its call"):
        Session(model)
