"""accelerate(): layers of keras.layers on the fused ops, against the same layers without it."""

import re
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import new_arguments
import tf_lstm_ops.keras as ours
from tf_lstm_ops.keras import accelerate, acceleration, options

BATCH, TIME, INPUTS, UNITS = 4, 7, 3, 5
# Of the largest element. Some dozen roundings of 6e-8, which propagate through the steps.
TOLERANCE = 5e-6


@pytest.fixture
def accelerated() -> Iterator[acceleration.Acceleration]:
    with accelerate() as found:
        yield found


class Doubled(layers.LSTM):
    """A subclass with a call of its own."""

    def call(self, sequences, initial_state=None, mask=None, training=False):
        return 2 * super().call(sequences, initial_state, mask, training)


# Layers that run the op, with the ops that they run.
FUSED = {
    "lstm": (lambda: layers.LSTM(UNITS), "KerasLSTM"),
    "gru": (lambda: layers.GRU(UNITS, return_sequences=True), "KerasGRU"),
    "reset before": (lambda: layers.GRU(UNITS, reset_after=False), "KerasResetBeforeGRU"),
    "simple": (lambda: layers.SimpleRNN(UNITS, "relu"), "KerasSimpleRNN"),
    "cell": (lambda: layers.RNN(layers.LSTMCell(UNITS)), "KerasLSTM"),
    "gru cell": (lambda: layers.RNN(layers.GRUCell(UNITS)), "KerasGRU"),
    "activations": (
        lambda: layers.LSTM(UNITS, activation="relu", recurrent_activation="hard_sigmoid"),
        "KerasLSTM",
    ),
    "backwards": (
        lambda: layers.LSTM(UNITS, go_backwards=True, return_sequences=True, use_bias=False),
        "KerasLSTM",
    ),
    "none": (lambda: layers.LSTM(UNITS, return_sequences=None, go_backwards=None), "KerasLSTM"),
    "unrolled": (lambda: layers.GRU(UNITS, unroll=True), "KerasGRU"),
    "float64": (lambda: layers.LSTM(UNITS, dtype="float64"), "KerasLSTM"),
    "subclass": (lambda: Doubled(UNITS), "KerasLSTM"),
    "both": (lambda: layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True)), "KerasLSTM"),
    "both, sum": (lambda: layers.Bidirectional(layers.GRU(UNITS), merge_mode="sum"), "KerasGRU"),
    "both of cells": (
        lambda: layers.Bidirectional(layers.RNN(layers.LSTMCell(UNITS))),
        "KerasLSTM",
    ),
    "distributed": (
        lambda: keras.Sequential(
            [
                layers.Reshape((1, TIME, INPUTS)),
                layers.TimeDistributed(layers.LSTM(UNITS)),
            ]
        ),
        "KerasLSTM",
    ),
}


class OwnCell(layers.LSTMCell):
    """A cell of the user's."""

    def call(self, inputs, states, training=False):
        h, states = super().call(inputs, states, training)
        return 2 * h, states


def with_replaced_step() -> Any:
    layer = layers.LSTM(UNITS)
    step = layer.cell.call
    layer.cell.call = lambda *args, **kwargs: step(*args, **kwargs)
    return layer


# Layers that run Keras' code, with the reasons; None where the layer is not in the report.
STOCK = {
    "selu": (lambda: layers.GRU(UNITS, activation="selu"), "selu, which has no fused op"),
    "replaced": (with_replaced_step, "call of its LSTMCell was replaced"),
    "unrolled": (
        lambda: layers.Bidirectional(layers.LSTM(UNITS, unroll=True, return_sequences=True)),
        "unroll=True, with which Keras computes something else",
    ),
    "own cell": (lambda: layers.RNN(OwnCell(UNITS)), "its cell is a OwnCell"),
    "stacked cells": (
        lambda: layers.RNN([layers.LSTMCell(4), layers.LSTMCell(UNITS)]),
        "its cell is a StackedRNNCells",
    ),
    "other dtype": (
        lambda: layers.RNN(layers.LSTMCell(UNITS, dtype="float64"), dtype="float32"),
        "its cell computes in float64",
    ),
}


def data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sequences, and a mask with a row of every kind: full, empty, padded, with a hole."""
    mask = np.ones((BATCH, TIME), bool)
    mask[1] = False
    mask[2, 4:] = False
    mask[3, 2] = False
    return rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32"), mask


def build(make: Any, rng: np.random.Generator) -> Any:
    layer = make()
    layer.build((BATCH, TIME, INPUTS))
    layer.set_weights([0.5 * rng.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def close(got: Any, want: Any) -> None:
    for a, b in zip(keras.tree.flatten(got), keras.tree.flatten(want), strict=True):
        largest = max(np.abs(np.asarray(b)).max(initial=0), 1e-30)
        np.testing.assert_allclose(a, b, atol=TOLERANCE * largest, rtol=0)


def results(layer: Any, x: np.ndarray, mask: Any) -> list[Any]:
    """The output and the gradients of the sum of its squares."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, mask=mask)
        loss = tf.reduce_sum(tf.cast(y, tf.float64) ** 2)
    return [y, *tape.gradient(loss, [x, *(w.value for w in layer.trainable_weights)])]


@pytest.mark.parametrize("kind", FUSED)
@pytest.mark.parametrize("masked", [False, True])
def test_equals_stock(kind: str, masked: bool, rng: np.random.Generator) -> None:
    make, op = FUSED[kind]
    if masked and kind == "distributed":
        pytest.skip("the mask would be that of the outer steps")
    layer = build(make, rng)
    x, mask = data(rng)
    mask = mask if masked else None
    want = results(layer, x, mask)
    with accelerate() as found:
        got = results(layer, x, mask)
    close(got, want)
    assert {row.op for row in found.report()} == {op}
    assert all(row.fused_calls and not row.stock_calls for row in found.report())


@pytest.mark.parametrize("kind", STOCK)
def test_stock_code(kind: str, rng: np.random.Generator) -> None:
    make, reason = STOCK[kind]
    layer = build(make, rng)
    x, mask = data(rng)
    want = results(layer, x, mask)
    with accelerate() as found:
        got = results(layer, x, mask)
    if any(row.op for row in found.report()):  # the forward layer
        close(got, want)
    else:
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)
    reasons = [reason for row in found.report() for reason in row.reasons]
    assert reason in reasons[0]


def test_use_cudnn_is_an_error_as_before(accelerated: Any) -> None:
    layer = layers.LSTM(UNITS, use_cudnn=True)
    with pytest.raises(ValueError, match="cuDNN is not supported"):
        layer(np.ones((1, 2, 3), "float32"))


@pytest.mark.parametrize("dropout", ["dropout", "recurrent_dropout"])
@pytest.mark.parametrize("layer", [layers.LSTM, layers.GRU])
def test_masks_of_dropout_are_the_same(layer: Any, dropout: str, rng: np.random.Generator) -> None:
    x, _ = data(rng)

    def call() -> Any:
        keras.utils.set_random_seed(3)
        return layer(UNITS, **{dropout: 0.5})(x, training=True)

    want = call()
    with accelerate() as found:
        close(call(), want)
    assert found.report()[0].fused_calls == 1


def make_model() -> keras.Model:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((TIME, INPUTS), name="x"),
            layers.Masking(name="masking"),
            layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True), name="both"),
            layers.GRU(UNITS, stateful=False, name="gru"),
            layers.Dense(2, name="dense"),
        ]
    )
    model.compile("adam", "mse")
    return model


def of_program(model: keras.Model, rng: np.random.Generator) -> list[Any]:
    x = rng.normal(size=(16, TIME, INPUTS)).astype("float32")
    x[::2, 4:] = 0
    y = rng.normal(size=(16, 2)).astype("float32")
    losses = model.fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0).history["loss"]
    return [losses, model.evaluate(x, y, verbose=0), model.predict(x, verbose=0)]


def test_a_program_of_keras() -> None:
    want = of_program(make_model(), np.random.default_rng(0))
    with accelerate() as found:
        got = of_program(make_model(), np.random.default_rng(0))
    close(got, want)
    assert [row.op for row in found.report()] == ["KerasLSTM", "KerasLSTM", "KerasGRU"]
    assert all(row.stock_calls == 0 for row in found.report())
    assert found.report().summary == "3 of 3 recurrent layers ran fused ops"


def ops_of(function: Any) -> set[str]:
    """The ops of this package in a concrete function."""
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    return {node.op for node in nodes if "TfLstmOps" in node.op}


SPEC = tf.TensorSpec([None, TIME, INPUTS])


def test_both_directions_are_one_op(accelerated: Any) -> None:
    model = make_model()

    @tf.function
    def train(x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(model(x))
        return tape.gradient(y, model.trainable_variables)

    train(tf.ones([2, TIME, INPUTS]))
    [function] = train._list_all_concrete_functions()
    found = ops_of(function)
    assert "TfLstmOps>KerasBidirectionalLSTM" in found
    assert "TfLstmOps>KerasLSTM" not in found


def test_a_function_of_the_user_has_ops_of_tensorflow(accelerated: Any) -> None:
    """It may become a file."""
    model = make_model()
    assert ops_of(tf.function(model).get_concrete_function(SPEC)) == set()
    reasons = {reason for row in accelerated.report() for reason in row.reasons}
    assert reasons == {"a tf.function that may become a file"}


def test_a_tape_around_a_function_of_the_user(accelerated: Any) -> None:
    """The function may be saved later."""
    function = tf.function(make_model())
    with tf.GradientTape():
        function(tf.ones([2, TIME, INPUTS]))
    assert [ops_of(each) for each in function._list_all_concrete_functions()] == [set()]


class Trains(tf.Module):
    """A step of training that becomes a signature of a file."""

    def __init__(self) -> None:
        super().__init__()
        self.model = make_model()

    @tf.function(input_signature=[SPEC])
    def train(self, x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(self.model(x))
        for weight, slope in zip(
            self.model.trainable_variables,
            tape.gradient(loss, self.model.trainable_variables),
            strict=True,
        ):
            weight.assign_sub(slope)
        return loss


def test_a_step_of_training_in_a_file(accelerated: Any, tmp_path: Path) -> None:
    module = Trains()
    tf.saved_model.save(module, tmp_path, signatures={"train": module.train})
    assert b"TfLstmOps" not in (tmp_path / "saved_model.pb").read_bytes()


class Exports(keras.callbacks.Callback):
    """Exports the model within fit."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.model.export(self.folder / str(epoch), verbose=False)


def test_saved_models_hold_ops_of_tensorflow(accelerated: Any, tmp_path: Path) -> None:
    model = make_model()
    x, y = np.ones((2, TIME, INPUTS), "float32"), np.ones((2, 2), "float32")
    model.fit(x, y, verbose=0, callbacks=[Exports(tmp_path)])
    model.predict(x, verbose=0)
    model.export(tmp_path / "exported", verbose=False)
    tf.saved_model.save(model, tmp_path / "saved")
    files = [*tmp_path.rglob("saved_model.pb")]
    assert len(files) == 3
    assert all(b"TfLstmOps" not in file.read_bytes() for file in files)
    loaded = tf.saved_model.load(tmp_path / "exported")
    close(loaded.serve(x), model(x))


@pytest.mark.full
def test_lite_files_hold_ops_of_tensorflow(accelerated: Any, tmp_path: Path) -> None:
    model = make_model()
    model.predict(np.ones((1, TIME, INPUTS), "float32"), verbose=0)
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.target_spec.supported_ops = [
        *(tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS),
    ]
    converter._experimental_lower_tensor_list_ops = False
    assert b"TfLstmOps" not in converter.convert()


class Accelerates(keras.callbacks.Callback):
    """Begins and ends within fit."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        with accelerate():
            pass


def test_a_beginning_and_an_end_within_fit() -> None:
    of = np.ones((4, TIME, INPUTS)), np.ones((4, 2))
    make_model().fit(*of, batch_size=2, verbose=0, callbacks=[Accelerates()])


class WithGradient(tf.Module):
    """A function with a tape within a function that is saved."""

    def __init__(self) -> None:
        super().__init__()
        self.model = make_model()

    @tf.function
    def slope(self, x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(self.model(x))
        return tape.gradient(y, x)

    @tf.function(input_signature=[SPEC])
    def serve(self, x: Any) -> Any:
        return self.slope(x)

    @tf.function(input_signature=[SPEC])
    def predict_step(self, x: Any) -> Any:
        return self.model.predict_step(x)


def test_functions_within_what_is_saved(accelerated: Any, tmp_path: Path) -> None:
    tf.saved_model.save(WithGradient(), tmp_path)
    assert b"TfLstmOps" not in (tmp_path / "saved_model.pb").read_bytes()


def test_files_of_keras_are_the_same(tmp_path: Path) -> None:
    def save(name: str) -> dict[str, bytes]:
        keras.backend.clear_session()
        model = make_model()
        model.name = "program"
        of_program(model, np.random.default_rng(0))
        model.save(tmp_path / name)
        with zipfile.ZipFile(tmp_path / name) as file:
            names = [
                name for name in file.namelist() if name != "metadata.json"
            ]  # which has the date
            return {name: file.read(name) for name in names}

    stock = save("stock.keras")
    with accelerate():
        found = save("accelerated.keras")
    # Numbers of objects differ from one model to the next, also without the package.
    configs = [
        re.sub(rb'"shared_object_id": \d+', b"", files["config.json"]) for files in (stock, found)
    ]
    assert configs[0] == configs[1]
    assert found.keys() == stock.keys()
    loaded = keras.models.load_model(tmp_path / "accelerated.keras")
    assert {type(layer).__module__.partition(".")[0] for layer in loaded.layers} == {"keras"}


def test_xla_runs_the_code_of_keras(accelerated: Any) -> None:
    model = make_model()
    model.compile("adam", "mse", jit_compile=True)
    model.train_on_batch(np.ones((2, TIME, INPUTS)), np.ones((2, 2)))
    assert all(row.op is None for row in accelerated.report())
    assert accelerated.report()[0].reasons == ("XLA or a converter traces the call",)


def test_layers_of_this_package_are_no_part_of_it(accelerated: Any) -> None:
    x = np.ones((2, TIME, INPUTS), "float32")
    for layer in (ours.LSTM(UNITS), ours.GRU(UNITS, activation="selu"), ours.StackedLSTM(UNITS, 2)):
        layer(x)
    assert accelerated.report() == []


def methods() -> list[Any]:
    loops = [vars(kind)["inner_loop"] for kind in (layers.LSTM, layers.GRU, layers.RNN)]
    return [*loops, vars(layers.Bidirectional)["call"]]


def test_it_ends_with_the_last_handle() -> None:
    before = methods()
    first = accelerate()
    second = accelerate()
    replaced = methods()
    assert not any(a is b for a, b in zip(before, replaced, strict=True))
    first.restore()
    first.restore()
    assert methods() == replaced
    second.restore()
    assert methods() == before


def test_replaced_methods_of_others_stay() -> None:
    """Another package has replaced a method later: it stays, and calls Keras' code."""
    stock, found = vars(layers.LSTM)["inner_loop"], accelerate()
    loop = vars(layers.LSTM)["inner_loop"]

    def of_others(self, sequences, initial_state, mask, training=False):
        return loop(self, sequences, initial_state, mask, training)

    layers.LSTM.inner_loop = of_others
    try:
        found.restore()
        assert vars(layers.LSTM)["inner_loop"] is of_others
        layers.LSTM(UNITS)(np.ones((2, TIME, INPUTS), "float32"))
        assert found.report() == []
        with pytest.warns(RuntimeWarning, match="or a program has replaced it"):
            again = accelerate()
        layers.LSTM(UNITS)(np.ones((2, TIME, INPUTS), "float32"))
        again.restore()
        assert again.report() == []
        assert vars(layers.LSTM)["inner_loop"] is of_others
    finally:
        layers.LSTM.inner_loop = stock


def test_a_method_that_is_replaced_later(accelerated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its layers have no op that could be joined with another one."""
    x = np.ones((2, TIME, INPUTS), "float32")
    layer = build(lambda: layers.Bidirectional(layers.LSTM(UNITS)), np.random.default_rng(0))
    want = layer(x)
    loop = layers.RNN.inner_loop
    monkeypatch.setattr(layers.LSTM, "inner_loop", lambda *args, **kwargs: loop(*args, **kwargs))
    close(layer(x), want)
    monkeypatch.setattr(layers.LSTMCell, "call", lambda self, x, states, **_: (states[0], states))
    np.testing.assert_array_equal(layers.LSTM(UNITS)(x), np.zeros((2, UNITS)))


ODD = {
    "many states for one row": lambda layer, x, h: layer(x[:1], initial_state=[h, h]),
    "one column of states": lambda layer, x, h: layer(x, initial_state=[h, h[:, :1]]),
    "a mask for each unit": lambda layer, x, h: layer(x, mask=np.ones((BATCH, TIME, UNITS), bool)),
    "a mask with a third axis": lambda layer, x, h: layer(x, mask=np.ones((BATCH, TIME, 1), bool)),
    "one mask": lambda layer, x, h: layer(x, mask=np.arange(TIME)[np.newaxis] < 3),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("both", [False, True])
def test_shapes_that_keras_broadcasts(case: str, both: bool, rng: np.random.Generator) -> None:
    make = FUSED["both" if both else "lstm"][0]
    if both and "state" in case:
        pytest.skip("of one layer")
    layer, (x, _) = build(make, rng), data(rng)
    h = rng.normal(size=(BATCH, UNITS)).astype("float32")
    want = ODD[case](layer, x, h)
    with accelerate():
        close(ODD[case](layer, x, h), want)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_a_direct_call_in_mixed_precision(dtype: str, rng: np.random.Generator) -> None:
    layer, (x, _) = layers.GRU(UNITS, dtype=dtype), data(rng)
    layer(x)
    want = np.asarray(layer.call(tf.constant(x)), "float32")
    with accelerate() as found:
        got = np.asarray(layer.call(tf.constant(x)), "float32")
    np.testing.assert_allclose(got, want, atol=0.02)  # three units of bfloat16 in the last place
    assert found.report()[0].fused_calls == 1


class Equal(layers.LSTM):
    """A layer without a hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)


def test_a_layer_without_a_hash(accelerated: Any) -> None:
    made = [Equal(UNITS) for _ in range(2)]
    for layer in made:
        layer(np.ones((2, TIME, INPUTS), "float32"))
    assert [row.fused_calls for row in accelerated.report()] == [1, 1]


def test_each_handle_has_its_own_report() -> None:
    layer, x = layers.LSTM(UNITS), np.ones((2, TIME, INPUTS), "float32")
    with accelerate() as first:
        layer(x)
        with accelerate() as second:
            layer(x)
    with accelerate() as third:
        layer(x)
    assert [h.report()[0].fused_calls for h in (first, second, third)] == [2, 1, 1]


def test_traced_functions_of_fit_are_made_again() -> None:
    model, x, y = make_model(), np.ones((2, TIME, INPUTS)), np.ones((2, 2))
    model.train_on_batch(x, y)
    with accelerate() as found:
        model.train_on_batch(x, y)
        assert len(found.report()) == 3
    model.train_on_batch(x, y)
    assert all(row.fused_calls == 1 for row in found.report())


def test_an_error_of_the_preparation_means_the_code_of_keras(
    accelerated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(options, "why_not", fail)
    make_model()(np.ones((2, TIME, INPUTS), "float32"))
    assert {r for row in accelerated.report() for r in row.reasons} == {"KeyError: 'a defect'"}


def test_another_keras_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = methods()[1:]
    monkeypatch.setattr(layers.LSTM, "inner_loop", lambda self, x, states: None)
    with pytest.warns(RuntimeWarning, match="accelerate.. has no effect: keras.layers.LSTM must"):
        found = accelerate()
    assert methods()[1:] == before
    found.restore()


def test_threads() -> None:
    before, errors = methods(), []

    def use() -> None:
        try:
            for _ in range(20):
                with accelerate():
                    layers.LSTM(2)(np.ones((1, 2, 3), "float32"))
        except Exception as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    assert methods() == before


def test_the_text_of_a_report(accelerated: Any) -> None:
    x = np.ones((2, TIME, INPUTS), "float32")
    for layer in (layers.LSTM(UNITS, name="a"), layers.GRU(UNITS, activation="selu", name="b")):
        layer(x)
    assert str(accelerated.report()).splitlines() == [
        "layer  class  fused op   calls  calls of Keras' code, and why",
        "a      LSTM   KerasLSTM  1      0",
        "b      GRU    none       0      1: activation is selu, which has no fused op",
        "1 of 2 recurrent layers ran fused ops",
    ]


def test_replicas_of_a_mirrored_strategy() -> None:
    """They are traced in threads of their own."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        model = keras.Sequential([keras.Input((5, 2)), layers.LSTM(3, name="fit")])
        model.compile("sgd", "mse")
        other = keras.Sequential([keras.Input((5, 2)), layers.LSTM(3, name="tape")])
    x = np.ones((8, 5, 2), "float32")

    def step(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(other(batch))
        return tape.gradient(loss, other.trainable_variables)

    with accelerate() as found:
        model.fit(x, np.ones((8, 3)), verbose=0)
        tf.function(lambda: strategy.run(step, (x,)))()
        tf.function(lambda: strategy.run(other, (x,)))()  # may become a file
    by_name = {row.layer: row for row in found.report()}
    assert by_name["fit"].fused_calls == 1 and not by_name["fit"].reasons
    assert by_name["tape"].fused_calls == by_name["tape"].stock_calls == 1


@pytest.mark.parametrize(
    ("default", "given", "is_other"),
    [
        (None, 0.5, True),
        (True, False, True),
        (1, 0, True),
        ("a", "a", False),
        (0, np.ones(2), True),
    ],
)
@pytest.mark.parametrize("kind", [layers.LSTM, layers.RNN])
def test_a_later_option_of_keras(
    kind: Any, default: Any, given: Any, is_other: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_arguments.add(monkeypatch, kind, "later", default)
    of_layer = UNITS if kind is layers.LSTM else layers.LSTMCell(UNITS)
    layer = kind(of_layer, later=given)
    with accelerate() as found:
        layer(np.ones((2, TIME, INPUTS), "float32"))
    (row,) = found.report()
    assert (row.op is None) == is_other
    assert not is_other or "later" in row.reasons[0]


@pytest.mark.parametrize("name", ["activation", "recurrent_activation"])
def test_an_activation_of_none(name: str, rng: np.random.Generator) -> None:
    layer = build(lambda: layers.LSTM(UNITS), rng)
    setattr(layer.cell, name, None)
    with accelerate() as found, pytest.raises(TypeError):
        layer(data(rng)[0])
    assert f"{name} is None" in found.report()[0].reasons[0]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (layers.LSTM, "reset_after"),
        (layers.SimpleRNN, "cell_clip"),
        (layers.GRU, "layer_normalization"),
        (ours.GRU, "projection_size"),
    ],
)
def test_an_attribute_of_the_users_is_no_option(kind: Any, name: str) -> None:
    layer = kind(UNITS)
    setattr(layer, name, 1) if name != "reset_after" else setattr(layer, name, False)
    assert name not in options.of(layer).given
