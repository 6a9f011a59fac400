"""Layers whose cell or method is not that of their class: computed as Keras does, or refused."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers as stock

from tf_lstm_ops import _deviation, export
from tf_lstm_ops import keras as ours
from tf_lstm_ops.export import tflite
from tf_lstm_ops.inference import Session
from tf_lstm_ops.weights import GRUWeights, LSTMWeights

BATCH, TIME, INPUTS, UNITS = 3, 6, 4, 5
Layer = keras.Layer
# The layers run the same loop of Keras; the exports and XLA may order float sums otherwise.
SAME, NEAR = 0.0, 2e-6


def twice(base: type) -> Any:
    """A cell of the user's that doubles its input."""

    class Twice(base):
        def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
            return super().call(inputs * 2.0, states, training=training)

    return Twice(UNITS)


def with_cell(layer: Layer, cell: Layer) -> Layer:
    layer.cell = cell
    return layer


def with_method(layer: Layer, name: str, part: Callable[[Any], Any] = lambda x: x) -> Layer:
    """Replaces a method of a layer, or of a part of it, by one that computes something else."""
    method = getattr(part(layer), name)
    if name == "get_initial_state":

        def new(*args: Any, **kwargs: Any) -> Any:
            return keras.tree.map_structure(lambda x: x + 0.5, method(*args, **kwargs))
    else:

        def new(*args: Any, **kwargs: Any) -> Any:
            if args:
                return method(args[0] * 2.0, *args[1:], **kwargs)
            return method(**{**kwargs, "sequences": kwargs["sequences"] * 2.0})

    setattr(part(layer), name, new)
    return layer


def cell_of(layer: Layer) -> Any:
    return layer.cell


# Each makes a layer from a namespace of layers, ``keras.layers`` or ours.
CHANGED: dict[str, Callable[[Any], Layer]] = {
    f"{kind}, {name}": change
    for kind in ("LSTM", "GRU")
    for name, change in {
        "cell": lambda m, k=kind: with_cell(getattr(m, k)(UNITS), twice(getattr(m, f"{k}Cell"))),
        "call": lambda m, k=kind: with_method(getattr(m, k)(UNITS), "call"),
        "inner_loop": lambda m, k=kind: with_method(getattr(m, k)(UNITS), "inner_loop"),
        "states": lambda m, k=kind: with_method(getattr(m, k)(UNITS), "get_initial_state"),
        "cell's call": lambda m, k=kind: with_method(getattr(m, k)(UNITS), "call", cell_of),
        "cell's states": lambda m, k=kind: with_method(
            getattr(m, k)(UNITS), "get_initial_state", cell_of
        ),
    }.items()
}
CHANGED["RNN"] = lambda m: with_method(stock.RNN(m.LSTMCell(UNITS)), "call", cell_of)
CHANGED["RNN of several"] = lambda m: with_method(
    stock.RNN([stock.GRUCell(UNITS), stock.GRUCell(UNITS)]), "call", lambda x: x.cell.cells[1]
)
BOTH = pytest.mark.parametrize("library", [stock, ours], ids=["stock", "ours"])
EACH = pytest.mark.parametrize("name", CHANGED)


def model_of(layer: Layer) -> keras.Model:
    return keras.Sequential([keras.Input((TIME, INPUTS)), layer])


def expected(name: str, weights: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """By a stock layer with the same change, in Keras' own loop."""
    layer = CHANGED[name](stock)
    layer.use_cudnn = False
    layer.build(x.shape)
    layer.set_weights(weights)
    return np.asarray(layer(x))


@pytest.fixture
def x(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")


@BOTH
@EACH
def test_the_layer(library: Any, name: str, x: np.ndarray) -> None:
    layer = CHANGED[name](library)
    model = model_of(layer)
    np.testing.assert_allclose(
        model(x), expected(name, layer.get_weights(), x), rtol=0, atol=NEAR, err_msg=name
    )
    assert np.abs(model(x) - expected(name, layer.get_weights(), x / 2)).max() > 1e-3
    if isinstance(layer, ours.LSTM | ours.GRU):
        assert not layer.uses_fused_op
        assert "replaced" in layer.fallback_reason or "cell is a" in layer.fallback_reason


@BOTH
@EACH
def test_a_session_refuses_it(library: Any, name: str) -> None:
    model = model_of(CHANGED[name](library))
    with pytest.raises(ValueError, match=rf"layer {model.layers[0].name}: (its |the )"):
        Session(model)
    with pytest.raises(ValueError, match=r"a session does not compute layer"):
        Session(model.layers)


@BOTH
@EACH
@pytest.mark.parametrize("to", ["fused", "stock"])
def test_a_copy_is_refused(library: Any, name: str, to: Any) -> None:
    """The model's configuration lacks the change."""
    with pytest.raises(ValueError, match=r"(does not describe|cannot express|cannot make)"):
        ours.convert_model(model_of(CHANGED[name](library)), to=to)


@EACH
def test_in_place_it_stays(name: str, x: np.ndarray) -> None:
    model = model_of(CHANGED[name](stock))
    before, kind = np.asarray(model(x)), type(model.layers[0])
    with pytest.warns(UserWarning, match=r"replaced|its cell is a"):
        ours.convert_model(model, in_place=True)
    np.testing.assert_array_equal(model(x), before)
    assert type(model.layers[0]) is kind
    fallback = ours.fallback_reasons(model)
    assert all("replaced" in why or "cell is a" in why for why in fallback.values())


@BOTH
@EACH
def test_weights_are_refused(library: Any, name: str) -> None:
    layer = model_of(CHANGED[name](library)).layers[0]
    if name == "RNN of several":
        return  # from_keras takes layers of one cell
    weights = GRUWeights if "GRU" in name else LSTMWeights
    with pytest.raises(ValueError, match=rf"the weights of {layer.name} may have another meaning"):
        weights.from_keras(layer)
    weights.from_keras(layer.get_weights())


@BOTH
@pytest.mark.parametrize("changed", ["cell", "call", "inner_loop", "cell's call"])
@pytest.mark.parametrize("part", ["forward_layer", "backward_layer"])
def test_bidirectional(library: Any, changed: str, part: str, x: np.ndarray) -> None:
    """One of its layers is changed."""

    def make(m: Any) -> Layer:
        layers = {"forward_layer": m.LSTM(UNITS), "backward_layer": None}
        layers["backward_layer"] = m.LSTM(UNITS, go_backwards=True)
        layer = m.Bidirectional(layers["forward_layer"], backward_layer=layers["backward_layer"])
        inner = getattr(layer, part)
        if changed == "cell":
            with_cell(inner, twice(m.LSTMCell))
        else:
            with_method(inner, changed.split()[-1], cell_of if "cell" in changed else lambda x: x)
        return layer

    layer, reference = make(library), make(stock)
    for item in (layer, reference):
        item.build(x.shape)
    reference.set_weights(layer.get_weights())
    np.testing.assert_allclose(layer(x), reference(x), rtol=0, atol=NEAR)
    if library is ours:
        assert not layer.uses_fused_op
    with pytest.raises(ValueError, match=r"a session does not compute layer"):
        Session(model_of(layer))
    with pytest.raises(ValueError, match=r"may have another meaning"):
        LSTMWeights.from_keras(layer)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_stock_cell_in_our_layer(kind: str, x: np.ndarray) -> None:
    cell = getattr(stock, f"{kind}Cell")(UNITS)
    layer = with_cell(getattr(ours, kind)(UNITS), cell)
    reference = stock.RNN(cell)
    np.testing.assert_array_equal(layer(x), reference(x))
    reason = f"its cell is a keras.layers.{kind}Cell, not a tf_lstm_ops.keras.{kind}Cell"
    assert layer.fallback_reason == reason
    assert layer.get_config()["units"] == UNITS


def test_a_cell_without_the_attributes_of_ours(x: np.ndarray) -> None:
    class Sum(keras.Layer):
        state_size = (INPUTS, INPUTS)
        output_size = INPUTS

        def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
            return inputs + states[0], [inputs + states[0], states[1]]

    layer = with_cell(ours.LSTM(INPUTS, return_sequences=True), Sum())
    # Six additions, in the same order.
    np.testing.assert_array_equal(layer(x), np.cumsum(x, axis=1))


def test_another_cell_of_its_class_is_computed(x: np.ndarray) -> None:
    """A layer reads all options from its cell."""
    layer = with_cell(ours.LSTM(UNITS), ours.LSTMCell(3, use_peephole=True, cell_clip=0.1))
    layer.build(x.shape)
    assert layer.uses_fused_op
    want = stock.RNN(layer.cell)(x)
    # The fused op sums in another order.
    np.testing.assert_allclose(layer(x), want, rtol=0, atol=NEAR)
    np.testing.assert_array_equal(Session(model_of(layer))(x), layer(x))


def test_a_stack_refuses_another_cell(x: np.ndarray) -> None:
    layer = with_cell(ours.StackedLSTM(UNITS, 2), ours.LSTMCell(UNITS))
    with pytest.raises(ValueError, match=r"computes with the cell that it made only"):
        layer(x)
    layer = with_method(ours.StackedGRU(UNITS, 2), "call")
    assert not layer.uses_fused_op
    with pytest.raises(ValueError, match=r"its call was replaced"):
        Session(model_of(layer))


@BOTH
def test_stacks_are_not_made_of_changed_cells(library: Any) -> None:
    layer = stock.RNN([library.GRUCell(UNITS), library.GRUCell(UNITS)])
    model = model_of(with_method(layer, "call", lambda x: x.cell.cells[0]))
    (reason,) = ours.fallback_reasons(model).values()
    assert reason == "the call of its GRUCell was replaced"


class TwiceCell(ours.LSTMCell):
    def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
        return super().call(inputs * 2.0, states, training=training)


def test_a_class_of_the_users_that_changes_itself_can_be_copied(x: np.ndarray) -> None:
    """Its constructor makes the change in the copy, too."""

    @keras.saving.register_keras_serializable("test_deviation")
    class Own(ours.LSTM):
        def __init__(self, units: int, **kwargs: Any) -> None:
            super().__init__(units, **kwargs)
            with_cell(self, TwiceCell(units))

    model = model_of(Own(UNITS))
    with pytest.warns(UserWarning, match=r"its cell is a .*TwiceCell"):
        copy = ours.convert_model(model)
    np.testing.assert_array_equal(copy(x), model(x))


@pytest.mark.parametrize("name", ["train_step", "predict"])
def test_methods_outside_of_a_call(name: str, x: np.ndarray) -> None:
    """They have no effect on a session, and a copy would lack them."""
    model = model_of(ours.LSTM(UNITS))
    setattr(model, name, lambda *args: None)
    assert _deviation.of(model) is None
    np.testing.assert_array_equal(Session(model)(x), model(x))
    with pytest.raises(ValueError, match=rf"does not describe it: {name} replaced"):
        ours.convert_model(model)


def test_another_layer_whose_call_was_replaced() -> None:
    """A copy of the model would lack it."""
    model = keras.Sequential([keras.Input((TIME, INPUTS)), stock.LSTM(UNITS), stock.Dense(2)])
    with_method(model.layers[1], "call")
    with pytest.raises(ValueError, match=rf"of {model.layers[1].name} does not .* call replaced"):
        ours.convert_model(model)


@pytest.mark.sampled(1, strength=0)
@EACH
def test_the_loop_of_a_session_of_keras_is_not_a_change(name: str) -> None:
    """Keras sets attributes of layers that are named as methods; they do not count."""
    library = stock if "RNN" in name else ours
    layer = getattr(library, name.split(",")[0].split()[0])
    model = model_of(layer(stock.LSTMCell(UNITS)) if layer is stock.RNN else layer(UNITS))
    model.compile("sgd", "mse")
    model.fit(np.ones([4, TIME, INPUTS]), np.ones([4, UNITS]), verbose=0)
    for item in (model, model.layers[0], model.layers[0].cell):
        assert _deviation.of(item) is None
        assert _deviation.replaced_methods(item) == []


@pytest.mark.full
@BOTH
@pytest.mark.parametrize(
    "name",
    [
        "LSTM, cell",
        pytest.param("LSTM, cell's call", marks=pytest.mark.slow),
        pytest.param("GRU, inner_loop", marks=pytest.mark.slow),
    ],
)
def test_exports(library: Any, name: str, x: np.ndarray, tmp_path: Any) -> None:
    """Each computes what the model does."""
    model = model_of(CHANGED[name](library))
    want = np.asarray(model(x))
    for portable in (False, True):
        export.saved_model(model, tmp_path / f"saved_{portable}", portable=portable)
        loaded = keras.layers.TFSMLayer(tmp_path / f"saved_{portable}", call_endpoint="serve")
        np.testing.assert_allclose(loaded(x), want, rtol=0, atol=NEAR)
    tflite(model, tmp_path / "model.tflite", batch_size=BATCH)
    import ai_edge_litert.interpreter as litert

    interpreter = litert.Interpreter(str(tmp_path / "model.tflite"))
    runner = interpreter.get_signature_runner()
    (argument,) = runner.get_input_details()
    (output,) = runner(**{argument: x}).values()
    np.testing.assert_allclose(output, want, rtol=0, atol=1e-5)  # LiteRT's own activations
    import onnxruntime

    export.onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (output,) = session.run(None, {session.get_inputs()[0].name: x})
    np.testing.assert_allclose(output, want, rtol=0, atol=1e-5)  # ONNX Runtime's own activations
