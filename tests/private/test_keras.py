"""What each private name of Keras must do; tf_lstm_ops/_keras_private.py has them all."""

import gc
import importlib
import inspect
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tf_lstm_ops import _keras_private, _tf_private
from tf_lstm_ops.keras import GRU, LSTM, LSTMCell, StackedLSTM

X = np.ones([2, 3, 4], "float32")


def test_every_name_is_tested() -> None:
    items = vars(_keras_private).items()
    own = {n for n, item in items if getattr(item, "__module__", "") == _keras_private.__name__}
    source = inspect.getsource(sys.modules[__name__])
    assert len(own) > 10
    assert [name for name in sorted(own) if f"_keras_private.{name}(" not in source] == []


# The methods that Keras calls. Each case has a layer whose call needs the method.
CALLERS = {
    ("lstm_cell.LSTMCell", "_compute_carry_and_output"): lambda: layers.RNN(
        LSTMCell(2, use_peephole=True, implementation=1)
    ),
    ("lstm_cell.LSTMCell", "_compute_carry_and_output_fused"): lambda: layers.RNN(
        LSTMCell(2, use_peephole=True, implementation=2)
    ),
    ("single_layer.SingleLayerRNN", "inner_loop"): lambda: GRU(2),
    ("stacked_rnn.StackedRNN", "inner_loop"): lambda: StackedLSTM(2, 2),
}


def test_every_overridden_method_has_a_case() -> None:
    listed = {(k, hook) for k, (_, hooks) in _keras_private.OVERRIDDEN.items() for hook in hooks}
    assert listed == CALLERS.keys()


@pytest.mark.parametrize(("where", "method"), CALLERS, ids=":".join)
def test_keras_calls_the_method(where: str, method: str, monkeypatch) -> None:
    """And has one of this name with the same arguments."""
    module, name = where.split(".")
    ours = getattr(importlib.import_module(f"tf_lstm_ops.keras.{module}"), name)
    original, calls = getattr(ours, method), []

    def noted(self, *args, **kwargs):
        calls.append(method)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(ours, method, noted)
    CALLERS[where, method]()(X)
    assert calls
    stock = getattr(layers, _keras_private.OVERRIDDEN[where][0])
    # The number of arguments: names of our own differ.
    counts = [len(inspect.signature(f).parameters) for f in (original, getattr(stock, method))]
    assert counts[0] == counts[1]


@pytest.mark.parametrize(("where", "name"), _keras_private.COMPUTED.items())
def test_keras_reads_the_attribute(where: str, name: str, monkeypatch) -> None:
    module, cls = where.split(".")
    ours = getattr(importlib.import_module(f"tf_lstm_ops.keras.{module}"), cls)
    monkeypatch.setattr(ours, name, property(lambda layer: False, lambda layer, value: None))
    model = keras.Sequential([keras.Input([3, 4]), LSTM(2)])
    with pytest.warns(UserWarning, match="jit_compile=True"):
        model.compile("sgd", "mse", jit_compile=True)


# Models.


@pytest.fixture
def nested() -> keras.Model:
    """LSTM in Bidirectional in Sequential in a functional model."""
    inner = keras.Sequential(
        [keras.Input([3, 4]), layers.Bidirectional(layers.LSTM(2, name="one_way"))], name="inner"
    )
    inputs = keras.Input([3, 4], name="given")
    return keras.Model(inputs, layers.Dense(1, name="last")(inner(inputs)), name="outer")


def test_layers_of(nested: keras.Model) -> None:
    found = _keras_private.layers_of(nested)
    names = [layer.name for layer in found]
    assert names[0] == "outer"
    assert {"inner", "last", "one_way", "lstm_cell"} <= {n.replace("forward_", "") for n in names}
    assert len({*map(id, found)}) == len(found)


def test_children(nested: keras.Model) -> None:
    names = [layer.name for layer in _keras_private.children(nested)]
    assert names == ["given", "inner", "last"]
    found = _keras_private.children(nested.get_layer("inner").layers[0])
    assert [layer.name for layer in found] == ["forward_one_way", "backward_one_way"]


def test_functional(nested: keras.Model) -> None:
    inner = nested.get_layer("inner")
    assert _keras_private.is_functional(nested)
    assert not _keras_private.is_functional(inner)
    assert _keras_private.functional(nested) is nested
    found = _keras_private.functional(inner)
    assert _keras_private.is_functional(found)
    assert len(found.output_names) == 1
    assert found.input.shape == (None, 3, 4)


def test_input_signature(nested: keras.Model) -> None:
    [found] = keras.tree.flatten(_keras_private.input_signature(nested))
    assert found.shape == (None, 3, 4)
    assert found.dtype == "float32"
    assert found.name == "given"
    with pytest.raises(ValueError, match="built"):
        _keras_private.input_signature(keras.Sequential([layers.LSTM(2)]))


def test_replace_exports(nested: keras.Model, tmp_path, monkeypatch) -> None:
    """``model.export`` calls the function; a second replacement has no effect."""
    for name in "export_onnx", "export_litert":
        for module in "keras.src.export", f"keras.src.export.{name[7:]}":
            module = importlib.import_module(module)
            monkeypatch.setattr(module, name, getattr(module, name).__wrapped__)
    calls = []

    def noted(model, filepath, verbose=None, input_signature=None, **kwargs):
        calls.append((model, filepath, verbose, input_signature, kwargs))

    for function in noted, None:
        forms = {"onnx": function, "litert": function}
        _keras_private.replace_exports(forms, lambda model: model is nested)
    for form in "onnx", "litert":
        nested.export("a.tflite", form, False, input_signature=[1], option=2)
    assert calls == [(nested, "a.tflite", False, [1], {"option": 2})] * 2
    with pytest.raises(ValueError, match="tflite"):  # of Keras
        keras.Sequential([keras.Input([2]), layers.Dense(1)]).export("a.txt", "litert")


def test_specs_of_export() -> None:
    specs = [keras.InputSpec(shape=(2, 3), dtype="int32", name="a"), np.ones([2, 3], "float32")]
    a, b = _keras_private.specs_of_export([specs[0], keras.ops.convert_to_tensor(specs[1])])
    assert (a.shape, a.dtype.name, a.name) == ((2, 3), "int32", "a")
    assert (b.shape.as_list(), b.dtype.name) == ([None, 3], "float32")
    with pytest.raises(TypeError):
        _keras_private.specs_of_export([1])


def test_configure_lite() -> None:
    converter = type("Converter", (), {"target_spec": type("Spec", (), {"types": 0})(), "a": 0})()
    _keras_private.configure_lite(converter, {"a": 1, "target_spec": {"types": 2}})
    assert (converter.a, converter.target_spec.types) == (1, 2)
    with pytest.raises(ValueError, match="'b'"):
        _keras_private.configure_lite(converter, {"b": 1})


def test_compile_arguments(nested: keras.Model) -> None:
    assert _keras_private.compile_arguments(nested) is None
    assert _keras_private.compile_arguments(nested.get_layer("last")) is None

    def loss(y, predicted):
        return y - predicted

    nested.compile("sgd", loss)
    assert _keras_private.compile_arguments(nested)["loss"] is loss


def test_variable_key() -> None:
    """The keys that an optimizer itself uses."""
    variables = [keras.Variable(np.ones(2)), keras.Variable(np.ones(2))]
    optimizer = keras.optimizers.AdamW(weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_list=variables[:1])
    keys = [_keras_private.variable_key(optimizer, each) for each in variables]
    assert keys[:1] == list(optimizer._exclude_from_weight_decay) and keys[0] != keys[1]


def test_symbolic_calls() -> None:
    layer = layers.LSTM(2)
    sequence, h, c = keras.Input([3, 4]), keras.Input([2]), keras.Input([2])
    layer(sequence)
    layer(sequence, initial_state=[h, c])
    plain, given = _keras_private.symbolic_calls(layer)
    assert plain[0] == (sequence,)
    assert plain[1].get("initial_state") is None
    assert list(given[1]["initial_state"]) == [h, c]


def test_producer() -> None:
    layer = layers.LSTM(2)
    sequence, h, c = keras.Input([3, 4]), keras.Input([2]), keras.Input([2])
    layer(sequence)
    called, inputs, args, kwargs = _keras_private.producer(
        layer(sequence, initial_state=[h, c], training=True)
    )
    assert called is layer
    assert [id(tensor) for tensor in inputs] == [id(tensor) for tensor in (sequence, h, c)]
    assert args[0] is sequence
    assert kwargs["training"] is True and list(kwargs["initial_state"]) == [h, c]


def test_mask_of_and_tensors() -> None:
    x = keras.Input([3, 4])
    masked = layers.Masking()(x)
    y = layers.LSTM(2)(masked)
    _, inputs, _, kwargs = _keras_private.producer(y)
    assert inputs[0] is masked and kwargs["mask"] is _keras_private.mask_of(masked)
    assert _keras_private.mask_of(x) is None
    found = [id(each) for each in _keras_private.tensors(keras.Model(x, y))]
    numbers = [found.index(id(each)) for each in (x, kwargs["mask"], y)]
    assert numbers == sorted(numbers) and id(masked) in found


def test_gets_mask() -> None:
    sequence, mask = keras.Input([3, 4]), keras.Input([3], dtype="bool")
    plain, attached, given = (layers.LSTM(2) for _ in range(3))
    plain(sequence)
    attached(layers.Masking()(sequence))
    given(sequence, mask=mask)
    found = [_keras_private.gets_mask(layer) for layer in (plain, attached, given)]
    assert found == [False, True, True]


def test_forget_traces(nested: keras.Model) -> None:
    nested.compile("sgd", "mse", jit_compile=False)
    nested.predict(X, verbose=0)
    before = nested.predict_function
    assert before is not None
    _keras_private.forget_traces(nested)
    assert nested.predict_function is None
    nested.predict(X, verbose=0)
    assert nested.predict_function not in (None, before)


# Layers.


def test_set_class_and_become() -> None:
    layer = layers.LSTM(2)
    expected, variables = layer(X), layer.variables
    _keras_private.become(layer, layers.LSTM(2), LSTM(2))
    _keras_private.become(layer.cell, layers.LSTMCell(2), LSTMCell(2))
    assert (type(layer), type(layer.cell)) == (LSTM, LSTMCell)
    assert all(a is b for a, b in zip(layer.variables, variables, strict=True))
    # Another order of sums: float32 has 24 bits, and the products have 4 terms.
    np.testing.assert_allclose(layer(X), expected, rtol=1e-5, atol=1e-6)
    _keras_private.set_class(layer, layers.LSTM)
    assert type(layer) is layers.LSTM


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, _keras_private.LOOP) for kind in (layers.LSTM, layers.GRU, layers.RNN)),
        (layers.Bidirectional, "call"),
    ],
)
def test_replace_method(kind: type, name: str) -> None:
    calls, original = [], vars(kind)[name]

    def make(stock):
        def new(self, sequences, initial_state=None, mask=None, training=False):
            calls.append(name)
            return stock(self, sequences, initial_state, mask, training=training)

        return new

    layer = kind(
        layers.LSTM(2) if name == "call" else layers.LSTMCell(2) if kind is layers.RNN else 2
    )
    restore = _keras_private.replace_method(kind, name, make)
    try:
        layer(X)
    finally:
        restore()
    assert calls == [name]
    assert vars(kind)[name] is original
    with pytest.raises(RuntimeError, match="must have a method call of self, sequences"):
        _keras_private.replace_method(layers.Dense, "call", make)


def test_tracer() -> None:
    """What traces a call: fit and the like, a symbolic call, or another function."""
    found = []

    class Asks(layers.Layer):
        def call(self, x):
            if not tf.executing_eagerly():
                found.append(_keras_private.tracer(_tf_private.callers_in_trace()))
            return x

    layer = Asks()
    model = keras.Sequential([keras.Input([3, 4]), layer, layers.Dense(1)])
    shapes = _keras_private.Tracer("the shapes of a symbolic call")
    trainer = _keras_private.Tracer("fit, evaluate or predict")
    assert {*found} <= {shapes}
    model.compile("sgd", "mse")
    for call in (
        lambda: model.train_on_batch(X, X[..., :1]),
        lambda: model.test_on_batch(X, X[..., :1]),
        lambda: model.predict_on_batch(X),
        lambda: model.fit(X, X[..., :1], verbose=0),
    ):
        found.clear()
        call()
        assert {*found} <= {trainer}
    model.make_predict_function(force=True)
    model.predict_on_batch(X)
    assert found[-1] is trainer
    tf.function(model)(X)
    assert found[-1] is _keras_private.Tracer("a tf.function")


def test_trace_again() -> None:
    class Own(keras.Model):
        def call(self, x):
            return x

    for model in (keras.Sequential([keras.Input([3, 4]), layers.Dense(1)]), Own()):
        model.compile("sgd", "mse")
        model.predict_on_batch(X)
        before = model.predict_function
        _keras_private.trace_again()
        assert model.predict_function not in (None, before)
        assert model.train_function is None
        model.predict_function = own = lambda data: data
        _keras_private.trace_again()
        assert model.predict_function is own


def test_is_of_keras(monkeypatch) -> None:
    for kind in (layers.LSTMCell, layers.GRUCell, layers.SimpleRNNCell):
        assert _keras_private.is_of_keras(kind)
    assert _keras_private.is_of_keras(layers.LSTMCell)
    monkeypatch.setattr(layers.LSTMCell, "call", lambda self, *args, **kwargs: None)
    assert not _keras_private.is_of_keras(layers.LSTMCell)


def test_computes_otherwise() -> None:
    layer = layers.LSTM(2)
    assert not _keras_private.computes_otherwise(layer)
    with _keras_private.replaced_loops([(layer, lambda *args, **kwargs: None)]):
        assert _keras_private.computes_otherwise(layer)
        assert isinstance(layer.inner_loop, _keras_private.TemporaryLoop)
    assert not _keras_private.computes_otherwise(layer)
    layer.call = layer.call
    assert _keras_private.computes_otherwise(layer)
    if hasattr(keras, "RematScope"):  # from Keras 3.9 on
        with keras.RematScope(mode="full"):
            assert _keras_private.computes_otherwise(layers.LSTM(2))


def test_a_temporary_loop() -> None:
    assert _keras_private.TemporaryLoop(lambda a, b: (a, b))(1, b=2) == (1, 2)
    layer = layers.LSTM(2)
    layer.inner_loop = own = layer.inner_loop  # by the user, so that it stays
    with _keras_private.replaced_loops([(layer, lambda *args, **kwargs: None)]):
        assert layer.inner_loop is own
    assert layer.inner_loop is own


def test_supports_masking_of_a_new_class() -> None:
    layer, new = layers.LSTM(2), layers.LSTM(2)
    layer.supports_masking, new.supports_masking = True, False
    _keras_private.become(layer, layers.LSTM(2), new)
    assert layer.supports_masking is False


@pytest.mark.parametrize(("kind", "gates"), [(layers.LSTMCell, 4), (layers.GRUCell, 3)])
def test_multipliers(kind: type, gates: int) -> None:
    """One for each gate with implementation 1; the same until the call of the layer ends."""
    step, h = np.ones([2, 4], "float32"), np.ones([2, 5], "float32")
    cell = kind(5, dropout=0.5, recurrent_dropout=0.5, implementation=1)
    for multipliers, value in (
        (_keras_private.input_multipliers, step),
        (_keras_private.recurrent_multipliers, h),
    ):
        found = multipliers(cell, value)
        assert [tuple(each.shape) for each in found] == [value.shape] * gates
        assert multipliers(cell, value) is found
        assert {*np.unique(found)} <= {0.0, 2.0}  # dropped, or divided by 1 - rate
    before = _keras_private.input_multipliers(cell, step)
    layers.RNN(cell)(X, training=True)
    assert _keras_private.input_multipliers(cell, step) is not before
    _keras_private.recurrent_multipliers(cell, h)


def test_multipliers_of_implementation_2() -> None:
    cell = layers.LSTMCell(5, dropout=0.5, implementation=2)
    assert _keras_private.input_multipliers(cell, X[:, 0]).shape == (2, 4)


def test_replaced_loops() -> None:
    layer = layers.GRU(2, return_sequences=True)
    expected, calls = np.asarray(layer(X)), []

    def loop(*args, **kwargs):
        calls.append(kwargs)
        return _keras_private.run_loop(layers.GRU, layer, *args, **kwargs)

    with _keras_private.replaced_loops([(layer, loop)]):
        np.testing.assert_array_equal(layer(X), expected)
    np.testing.assert_array_equal(layer(X), expected)
    assert [call["sequences"].shape for call in calls] == [(2, 3, 4)]
    last, output, states = _keras_private.run_loop(
        layers.GRU, layer, keras.ops.convert_to_tensor(X), [keras.ops.zeros([2, 2])], None
    )
    np.testing.assert_array_equal(output, expected)
    np.testing.assert_array_equal(last, expected[:, -1])
    assert len(states) == 1


@pytest.mark.parametrize(
    ("name", "suffix"), [("litert", "tflite"), ("onnx", "onnx"), ("openvino", "xml")]
)
def test_export_modules(name: str, suffix: str, tmp_path) -> None:
    """A fused op finds its caller by these names: without them it would be in the file."""
    module = _keras_private.EXPORT_MODULES[name]
    if tuple(map(int, keras.__version__.split(".")[:2])) < (3, 15):  # not all have all formats
        pytest.importorskip(module)
    importlib.import_module(module)
    layer = LSTM(2)  # which the model does not know, so Keras traces the model
    layer(X)
    hidden = keras.layers.Lambda(lambda x: layer(x), output_shape=(2,))
    model = keras.Sequential([keras.Input([3, 4]), hidden])
    model(X)
    with pytest.raises((ValueError, ImportError), match=r"Call tf_lstm_ops\.export|openvino"):
        model.export(str(tmp_path / f"model.{suffix}"), format=name)


def test_structures_of_a_model() -> None:
    x = keras.Input([3, 4], name="x")
    y = layers.Dense(2)(x)
    model = keras.Model({"x": x}, [y, x])
    inputs, outputs = _keras_private.structures(model)
    assert inputs["x"] is x and outputs[0] is y and outputs[1] is x
    sequential = keras.Sequential([keras.Input([3, 4]), layers.Dense(2)])
    assert _keras_private.structures(sequential)[0] in (sequential.inputs, sequential.inputs[0])


def test_call_of_a_tensor() -> None:
    x = keras.Input([3, 4])
    layer = layers.LSTM(2, return_state=True)
    first, second = layer(x), layer(x)
    calls = [_keras_private.call_of(tensor) for tensor in (*first, *second)]
    assert [index for _, index in calls] == [0, 1, 2, 0, 1, 2]
    keys = [key for key, _ in calls]
    assert len({*keys[:3]}) == len({*keys[3:]}) == 1 and keys[0] != keys[3]


def test_masks_of_a_graph() -> None:
    """A mask that is set is passed on; the layers of a graph run on other tensors."""
    x, other = keras.Input((3,)), keras.Input((3,))
    embedding = layers.Embedding(5, 2, mask_zero=True)
    model = keras.Model(x, layers.Dropout(0.1)(embedding(x)))
    called: list[keras.layers.Layer] = []

    def caller(layer):
        called.append(layer)
        return layer

    result = _keras_private.run_graph(model, other, caller)
    assert called == model.layers[1:]
    assert _keras_private.mask_of(result) is not None
    _keras_private.set_mask(result, None)
    assert _keras_private.mask_of(layers.Dropout(0.1)(result)) is None


def test_finalize_states() -> None:
    """Normalization keeps copies of its weights in another shape."""
    layer = layers.Normalization()
    model = keras.Sequential([keras.Input((4,)), layer])
    for weight, value in zip(layer.weights, (2.0, 9.0, 1), strict=True):
        weight.assign(np.full(weight.shape, value))
    _keras_private.finalize_states(model)
    np.testing.assert_allclose(model(X[:, 0]), (X[:, 0] - 2) / 3, rtol=1e-6)


def test_safe_mode() -> None:
    function = {"class_name": "__lambda__", "config": {"code": "4wAA", "defaults": None}}
    config = layers.Lambda(abs).get_config() | {"function": function}
    with _keras_private.safe_mode(), pytest.raises(ValueError, match="safe"):
        layers.Lambda.from_config(config)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_no_collection_and_then_as_before(is_enabled: bool) -> None:
    before = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        with _keras_private._no_collection():
            assert not gc.isenabled()
        assert gc.isenabled() == is_enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_operations() -> None:
    x = keras.Input((3, 4))
    result = keras.ops.max(x, axis=1)
    operation = _keras_private.producer(result)[0]
    assert _keras_private.operation_name(operation) == "numpy.Max"
    values, defaults = _keras_private.options_of_operation(operation)
    assert (values["axis"], values["keepdims"]) in [([1], False), (1, False)]
    assert defaults == {"axis": None, "keepdims": False, "initial": None}
    assert _keras_private.operation_name(layers.ReLU()) == ""
