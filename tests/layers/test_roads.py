"""Every layer on every road out of Keras and back: equal results, or an error in words."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from layers.contract import B, Case, cases, divided, reset
from tf_lstm_ops import export
from tf_lstm_ops.keras import convert_model

Predict = Callable[[np.ndarray], Any]


def of_keras(model: Any) -> Predict:
    return lambda x: reset(model)(x)


def keras_file(case: Case, model: Any, folder: Path) -> Predict:
    model.save(folder / "model.keras")
    return of_keras(keras.models.load_model(folder / "model.keras"))


def weights_file(case: Case, model: Any, folder: Path) -> Predict:
    model.save_weights(folder / "model.weights.h5")
    other = case.make_model()
    other.set_weights([np.zeros_like(w) for w in other.get_weights()])
    other.load_weights(folder / "model.weights.h5")
    return of_keras(other)


def checkpoint(case: Case, model: Any, folder: Path) -> Predict:
    path = tf.train.Checkpoint(model=model).write(str(folder / "checkpoint"))
    other = case.make_model()
    other.set_weights([np.zeros_like(w) for w in other.get_weights()])
    tf.train.Checkpoint(model=other).read(path).assert_consumed()
    return of_keras(other)


def checkpoint_manager(case: Case, model: Any, folder: Path) -> Predict:
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), str(folder), 1)
    manager.save()
    other = case.make_model()
    other.set_weights([np.zeros_like(w) for w in other.get_weights()])
    tf.train.Checkpoint(model=other).restore(manager.latest_checkpoint).assert_consumed()
    return of_keras(other)


def backup_and_restore(case: Case, model: Any, folder: Path) -> Predict:
    """Training that was interrupted after its first epoch goes on."""
    x = case.inputs()
    y = np.zeros(model(x).shape, "float32")
    other = case.make_model()
    other.set_weights([np.zeros_like(w) for w in other.get_weights()])
    for part in model, other:
        part.compile("sgd", "mse")
        backup = keras.callbacks.BackupAndRestore(str(folder), delete_checkpoint=False)
        part.fit(x, y, batch_size=len(x), verbose=0, callbacks=[backup])
    return of_keras(other)


def model_checkpoint(case: Case, model: Any, folder: Path) -> Predict:
    """The file of Keras' callback, after a training that changes nothing."""
    x = case.inputs()
    y = np.zeros(model(x).shape, "float32")
    model.compile(keras.optimizers.SGD(0.0), "mse")
    saves = keras.callbacks.ModelCheckpoint(str(folder / "best.keras"))
    reset(model)
    model.fit(x, y, batch_size=len(x), verbose=0, callbacks=[saves])
    return of_keras(keras.models.load_model(folder / "best.keras"))


def tf_saved_model(case: Case, model: Any, folder: Path) -> Predict:
    tf.saved_model.save(model, str(folder / "saved"))
    loaded = tf.saved_model.load(str(folder / "saved"))
    signature = loaded.signatures["serving_default"]
    return lambda x: next(iter(signature(tf.constant(x)).values()))


def model_export(case: Case, model: Any, folder: Path) -> Predict:
    model.export(folder / "exported", verbose=False)
    return served(folder / "exported")


def our_saved_model(case: Case, model: Any, folder: Path) -> Predict:
    export.saved_model(model, folder / "fused")
    return served(folder / "fused")


def portable_saved_model(case: Case, model: Any, folder: Path) -> Predict:
    export.saved_model(model, folder / "portable", portable=True)
    return served(folder / "portable")


def served(folder: Path) -> Predict:
    loaded = tf.saved_model.load(str(folder))
    return lambda x: loaded.serve(x)  # which needs the object, too


def onnx(case: Case, model: Any, folder: Path) -> Predict:
    pytest.importorskip("tf2onnx", reason="writes the file")
    runtime = pytest.importorskip("onnxruntime", reason="runs the file")
    export.onnx(model, folder / "model.onnx")
    session = runtime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {session.get_inputs()[0].name: x})[0]


def tflite(case: Case, model: Any, folder: Path) -> Predict:
    export.tflite(model, folder / "model.tflite", batch_size=3)
    return lite_runner(folder / "model.tflite")


def lite_runner(path: Path) -> Predict:
    runner = tf.lite.Interpreter(str(path)).get_signature_runner()
    return lambda x: next(iter(runner(x=x).values()))


def deepcopy(case: Case, model: Any, folder: Path) -> Predict:
    return of_keras(copy.deepcopy(model))


def pickled(case: Case, model: Any, folder: Path) -> Predict:
    return of_keras(pickle.loads(pickle.dumps(model)))


def clone(case: Case, model: Any, folder: Path) -> Predict:
    other = keras.models.clone_model(model)
    other.set_weights(model.get_weights())
    return of_keras(other)


def configuration(case: Case, model: Any, folder: Path) -> Predict:
    """Of each layer alone."""
    layers = [type(layer).from_config(layer.get_config()) for layer in model.layers]
    other = keras.Sequential([keras.Input(batch_shape=model.input_shape), *layers])
    other.set_weights(model.get_weights())
    return of_keras(other)


def to_ours(case: Case, model: Any, folder: Path) -> Predict:
    return of_keras(convert_model(model))


def to_stock(case: Case, model: Any, folder: Path) -> Predict:
    other = convert_model(model, to="stock")
    modules = {type(layer).__module__.partition(".")[0] for layer in other._flatten_layers()}
    assert modules == {"keras"}
    return of_keras(other)


def to_stock_and_back_in_place(case: Case, model: Any, folder: Path) -> Predict:
    other = keras.models.clone_model(model)
    other.set_weights(model.get_weights())
    convert_model(other, to="stock", in_place=True)
    return of_keras(convert_model(other, in_place=True))


ROADS = {
    road.__name__: road
    for road in (
        *(keras_file, weights_file, checkpoint, checkpoint_manager, model_checkpoint),
        backup_and_restore,
        *(tf_saved_model, model_export, our_saved_model, portable_saved_model, onnx, tflite),
        *(deepcopy, pickled, clone, configuration, to_ours, to_stock, to_stock_and_back_in_place),
    )
}


# What TensorFlow's SavedModels do with all variables, and so with the states of stock layers.
SAVES_STATES = ("tf_saved_model", "model_export", "our_saved_model", "portable_saved_model")


_NOT_OF_STOCK = (
    *("projection", "proj_clip", "stacked_clip", "peephole", "normalised", "addons"),
    *("learned", "learned_both"),
)


def refusal(road: str, case: Case) -> str | None:
    """A pattern of the documented error; None where the road is open."""
    if road == "tf_saved_model" and case.variant == "dropout" and not case.stacked:
        # The seeds, also those of stock layers: Keras' call draws masks.
        return "references an 'untracked' resource"
    if road in ("onnx", "tflite") and case.variant == "bfloat16":
        return "computes in bfloat16.* dtype='float32'"
    if road == "tflite" and case.stateful:
        return "is stateful. Pass stateful=True"
    if road.startswith("to_stock"):
        if case.variant in _NOT_OF_STOCK:
            return "stock layers cannot express"
        if case.stacked and road.endswith("in_place"):
            return "one layer becomes several"
        if case.stacked and case.settings.masked and not keras.layers.LSTM(1).supports_masking:
            return "do not pass masks on"
    return None


# Each road, each refusal, and over all roads each layer and each variant.
BY_DEFAULT = {
    "keras_file": "LSTM-normalised",
    "weights_file": "GRU-stateful",
    "checkpoint": "StackedLSTM-masked_both",
    "checkpoint_manager": "GRUCell-plain",
    "model_checkpoint": "LSTM-plain",
    "backup_and_restore": "LSTMCell-masked",
    "tf_saved_model": "StackedGRU-backwards LSTM-dropout",
    "model_export": "LSTM-masked",
    "our_saved_model": "StackedLSTM-stateful",
    "portable_saved_model": "LSTM-projection",
    "onnx": "LSTM-activations LSTM-bfloat16",
    "tflite": "GRUCell-stateful",
    "deepcopy": "LSTMCell-peephole",
    "pickled": "StackedGRU-masked_last",
    "clone": "LSTMCell-addons",
    "configuration": "GRU-bfloat16",
    "to_ours": "GRUCell-sequences",
    "to_stock": "StackedGRU-masked_both LSTM-peephole",
    "to_stock_and_back_in_place": "GRUCell-bidirectional StackedGRU-plain",
}


@pytest.mark.parametrize(("road", "case"), divided(ROADS, cases(), BY_DEFAULT))
def test_road(road, case, tmp_path):
    model, x = case.make_model(), case.inputs()
    expected = of_keras(model)(x)  # leaves states behind, with which no road may begin
    if road in SAVES_STATES:
        reset(model)
    if reason := refusal(road, case):
        with pytest.raises(Exception, match=reason):
            ROADS[road](case, model, tmp_path)
        return
    predict = ROADS[road](case, model, tmp_path)
    if road == "backup_and_restore":
        expected = of_keras(model)(x)
    got = np.asarray(predict(x), "float32")
    np.testing.assert_allclose(got, np.asarray(expected, "float32"), rtol=0, atol=case.tolerance)


@pytest.mark.parametrize(
    ("_", "case"),
    divided(["tflite"], [c for c in cases() if c.stateful], {"tflite": "LSTM-stateful"}),
)
def test_pieces_of_a_sequence_in_tflite(_, case, tmp_path):
    """The states are inputs and outputs: the second piece begins where the first one has ended."""
    model, x = case.make_model(), case.inputs()
    model(x)  # leaves states behind
    export.tflite(model, tmp_path / "model.tflite", batch_size=B, stateful=True)
    runner = tf.lite.Interpreter(str(tmp_path / "model.tflite")).get_signature_runner()
    shapes = {n: d["shape"] for n, d in runner.get_input_details().items() if n != "x"}
    states = {name: np.zeros(shape, "float32") for name, shape in shapes.items()}
    reset(model)
    for _ in range(2):
        results = runner(x=x, **states)
        states = {name: results.pop(name) for name in states}
        (output,) = results.values()
        np.testing.assert_allclose(output, model(x), rtol=0, atol=1e-5)
