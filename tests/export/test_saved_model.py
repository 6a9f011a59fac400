"""SavedModels of Keras models and of tf.Modules, loaded in a new process.

One new process loads all that the fixture `results` saved (this file, run as a script), before and
after it imports the package; the tests compare what it calculated with what was calculated before
saving, bit for bit.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

INPUTS, UNITS, CLASSES = 3, 5, 2
Results = dict[str, np.ndarray]


def make_inputs() -> np.ndarray:
    """[batch, time, inputs]; two sequences are padded, one on either side."""
    x = np.random.default_rng(0).normal(size=(4, 6, INPUTS)).astype("float32")
    x[0, 4:] = 0
    x[1, :3] = 0
    return x


def derivatives(name: str, function: Callable, variables: Iterable[tf.Variable]) -> Results:
    """The function's value, and the gradients of its squares' sum by input and variables."""
    x = tf.constant(make_inputs())
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
        loss = tf.reduce_sum(value**2)
    by_x, *by_variables = tape.gradient(loss, [x, *variables])
    results = {f"{name} gradient {k}": g.numpy() for k, g in enumerate(by_variables)}
    return results | {f"{name} value": value.numpy(), f"{name} gradient of x": by_x.numpy()}


def second_order(name: str, function: Callable) -> Results:
    """The gradient of a gradient penalty, by the input."""
    x = tf.constant(make_inputs())
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            loss = tf.reduce_sum(function(x) ** 2)
        penalty = tf.nn.l2_loss(inner.gradient(loss, x))
    return {f"{name} second order": outer.gradient(penalty, x).numpy()}


# Keras models: model.export, tf.saved_model.save, and an endpoint of one's own for training.


EXTRAS = {"LSTM": {"use_peephole": True, "cell_clip": 0.5}, "GRU": {}}


def make_model(
    name: str, *, activation: str = "tanh", rate: float = 0.0, trained: bool = True
) -> keras.Model:
    """Two layers: one with what stock lacks, one with dropout. Of other activations than tanh the
    first falls back to Keras' loop."""
    import tf_lstm_ops

    rnn = getattr(tf_lstm_ops.keras, name)
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((None, INPUTS)),
            keras.layers.Masking(),
            rnn(UNITS, activation, return_sequences=True, **EXTRAS[name]),
            rnn(UNITS, go_backwards=True, dropout=rate, recurrent_dropout=rate, seed=2),
            keras.layers.Dense(CLASSES),
        ]
    )
    model.compile("sgd", "mse")
    if trained:
        model.fit(x := make_inputs(), np.ones((len(x), CLASSES), "float32"), verbose=0)
    return model


def save_training(folder: Path, name: str) -> Results:
    """A file with two endpoints of its own: the model in training, and its second layer."""
    model = make_model(name, rate=0.3)
    signature = [tf.TensorSpec([None, None, INPUTS])]
    train = tf.function(lambda x: model(x, training=True), input_signature=signature)
    layer = tf.function(lambda x: model.layers[1](x), input_signature=signature)
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("train", train)
    archive.add_endpoint("layer", layer)
    archive.write_out(folder / f"{name} training", verbose=False)
    variables = [v.value for v in model.trainable_variables]
    return derivatives(f"{name} training", train, variables) | second_order(f"{name} layer", layer)


def save_models(folder: Path, name: str) -> Results:
    """tf.saved_model.save takes no Keras model with dropout, for stock's layers neither: it does
    not find the variable of the seed, which Keras reads even in inference. model.export does."""
    x = make_inputs()
    fused, plain = make_model(name, rate=0.3), make_model(name, trained=False)
    fallback = make_model(name, rate=0.3, activation="selu", trained=False)
    fused.export(folder / f"{name} fused", verbose=False)
    fallback.export(folder / f"{name} fallback", verbose=False)
    tf.saved_model.save(plain, folder / f"{name} plain")
    return {
        f"{name} fused": fused.predict(x, verbose=0),
        f"{name} fallback": fallback.predict(x, verbose=0),
        f"{name} plain": plain.predict(x, verbose=0),
    }


def load_models(folder: Path, name: str) -> Results:
    x = tf.constant(make_inputs())
    fused, fallback, plain = (
        tf.saved_model.load(folder / f"{name} {kind}") for kind in ("fused", "fallback", "plain")
    )
    (prediction,) = plain.signatures["serving_default"](x).values()
    return {
        f"{name} fused": fused.serve(x).numpy(),
        f"{name} fallback": fallback.serve(x).numpy(),
        f"{name} plain": prediction.numpy(),
    }


def load_training(folder: Path, name: str) -> Results:
    loaded = tf.saved_model.load(folder / f"{name} training")
    training = derivatives(f"{name} training", loaded.train, loaded.trainable_variables)
    return training | second_order(f"{name} layer", loaded.layer)


# A tf.Module that calls raw ops, in tf.functions and in plain Python.


def make_module() -> tf.Module:
    from tf_lstm_ops import raw_ops

    class Recurrent(tf.Module):
        """Batch-major in and out, [B, T, I] to [B, T, H]."""

        def __init__(self):
            super().__init__()
            initial = tf.random.stateless_normal([INPUTS + UNITS, 4 * UNITS], [1, 2]) / 2
            self.w = tf.Variable(initial, name="w")
            self.b = tf.Variable(initial[0], name="b")
            self.peepholes = tf.Variable(initial[1:4, :UNITS], name="peepholes")

        def arguments(self, batch):
            wci, wcf, wco = tf.unstack(self.peepholes)
            zeros = tf.zeros([batch, UNITS])
            return {
                "cs_prev": zeros,
                "h_prev": zeros,
                "w": self.w,
                "b": self.b,
                "wci": wci,
                "wcf": wcf,
                "wco": wco,
                "use_peephole": True,
                "cell_clip": 0.5,
            }

        def sequence(self, op, x):
            x = tf.transpose(x, [1, 0, 2])
            time, batch = tf.unstack(tf.shape(x)[:2])
            out = op(seq_len_max=tf.cast(time, tf.int64), x=x, **self.arguments(batch))
            return tf.transpose(out.h, [1, 0, 2])

        @tf.function(input_signature=[tf.TensorSpec([None, None, INPUTS])])
        def block_lstm(self, x):
            return self.sequence(raw_ops.BlockLSTM, x)

        @tf.function(input_signature=[tf.TensorSpec([None, None, INPUTS])])
        def block_lstm_v2(self, x):
            return self.sequence(raw_ops.BlockLSTMV2, x)

        @tf.function(input_signature=[tf.TensorSpec([None, None, INPUTS])])
        def mpsgraph_lstm(self, x):
            by_input, recurrent = tf.split(tf.transpose(self.w), [INPUTS, UNITS], axis=1)
            weights = {"input_weight": by_input, "recurrent_weight": recurrent, "bias": self.b}
            peephole = tf.pad(tf.reshape(self.peepholes, [-1]), [[0, UNITS]])
            return raw_ops.MPSGraphLSTM(source=x, peephole=peephole, **weights).output

        @tf.function(input_signature=[tf.TensorSpec([None, None, INPUTS])])
        def lstm_block_cell(self, x):
            return self.first_step(x)

        def first_step(self, x):
            return raw_ops.LSTMBlockCell(x=x[:, 0], **self.arguments(tf.shape(x)[0])).h

        @tf.function(input_signature=[tf.TensorSpec([None, None, INPUTS])])
        def train(self, x):
            """One step of gradient descent; the gradient op is part of the saved graph."""
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.sequence(raw_ops.BlockLSTM, x) - 1) ** 2)
            variables = [self.w, self.b, self.peepholes]
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                variable.assign_sub(gradient)
            return loss

    return Recurrent()


def run_module(module, eager: Callable) -> Results:
    variables = [module.w, module.b, module.peepholes]
    x = tf.constant(make_inputs())
    results = {"eager": eager(x).numpy()}
    for name in "block_lstm", "block_lstm_v2", "mpsgraph_lstm", "lstm_block_cell":
        results |= derivatives(name, getattr(module, name), variables)
    results |= second_order("lstm_block_cell", module.lstm_block_cell)
    losses = [module.train(x).numpy() for _ in range(3)]
    assert losses[2] < losses[0]
    return results | {"losses": np.array(losses), "trained w": module.w.numpy()}


def save_module(folder: Path) -> Results:
    module = make_module()
    signature = tf.function(module.first_step).get_concrete_function(
        tf.TensorSpec([None, None, INPUTS], name="x")
    )
    tf.saved_model.save(module, folder / "module", signatures=signature)
    return run_module(module, module.first_step)


def load_module(folder: Path) -> Results:
    module = tf.saved_model.load(folder / "module")
    signature = module.signatures["serving_default"]
    return run_module(module, lambda x: signature(x=x)["output_0"])


# What is saved and loaded of a layer; the module has none.
PARTS = {
    "models": (save_models, load_models),
    "training": (save_training, load_training),
    "module": (
        lambda folder, layer: save_module(folder),
        lambda folder, layer: load_module(folder),
    ),
}


# The new process.


def load(folder: Path, *parts: str) -> None:
    """Loads "PART LAYER" and so on; prints the errors that come before the import."""
    for file in (folder / name for name in ("LSTM fused", "GRU fused", "module")):
        if not file.exists():
            continue
        try:
            tf.saved_model.load(file)
        except Exception as error:
            print(f"{file.name}: {type(error).__name__}", str(error).replace("\n", " "))
        else:
            print(f"{file.name}: loaded before import")
    import tf_lstm_ops  # noqa: F401  (registers the ops and their gradients: not too late)

    results = {}
    for part in parts:
        kind, layer = part.split()
        results |= PARTS[kind][1](folder, layer)
    np.savez(folder / "loaded.npz", **results)


class Run(NamedTuple):
    """What was calculated in this process, and by a new one from the files; what that printed."""

    saved: Results
    loaded: Results
    printed: str


@pytest.fixture(scope="module", params=["LSTM", pytest.param("GRU", marks=pytest.mark.slow)])
def layer(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def results(request, tmp_path_factory) -> Run:
    """Of those parts that some test of this run is about."""
    parts = set()
    for item in request.session.items:
        if item.path == request.path:
            of_layer = item.callspec.params.get("layer", "-") if hasattr(item, "callspec") else "-"
            kinds = PARTS.keys() & set(item.fixturenames)
            parts |= {(kind, "-" if kind == "module" else of_layer) for kind in kinds}
    folder, saved = tmp_path_factory.mktemp("saved_models"), {}
    for kind, name in sorted(parts):
        saved |= PARTS[kind][0](folder, name)
    process = subprocess.run(
        [sys.executable, __file__, folder, *(" ".join(part) for part in sorted(parts))],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    with np.load(folder / "loaded.npz") as loaded:
        return Run(saved, dict(loaded), process.stdout)


# By their names a test says which parts it is about.


@pytest.fixture(scope="module")
def models(results) -> Run:
    return results


@pytest.fixture(scope="module")
def training(results) -> Run:
    return results


@pytest.fixture(scope="module")
def module(results) -> Run:
    return results


def assert_same_bits(results: Run, prefix: str, count: int) -> None:
    saved, loaded, _ = results
    assert saved.keys() == loaded.keys()
    names = [name for name in saved if name.startswith(prefix)]
    assert len(names) == count
    for name in names:
        assert np.all(np.isfinite(saved[name])) and np.any(saved[name]), name
        np.testing.assert_array_equal(loaded[name], saved[name], name)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["fused", "fallback", "plain"])
def test_predictions_of_a_keras_model(models, layer, kind):
    assert_same_bits(models, f"{layer} {kind}", count=1)


@pytest.mark.full
def test_a_loaded_training_endpoint_can_be_differentiated(training, layer):
    """Dropout included: the state of the seed is saved. Value, gradients by input and by all
    variables (four of the layer with peepholes)."""
    variables = {"LSTM": 9, "GRU": 8}[layer]
    assert_same_bits(training, f"{layer} training", count=2 + variables)


@pytest.mark.full
def test_a_loaded_layer_can_be_differentiated_twice(training, layer):
    assert_same_bits(training, f"{layer} layer", count=1)


@pytest.mark.full
@pytest.mark.parametrize(
    ("function", "orders"),
    [("block_lstm ", 1), ("block_lstm_v2 ", 1), ("mpsgraph_lstm ", 1), ("lstm_block_cell ", 2)],
)
def test_raw_ops_in_a_module(module, function, orders):
    """Value, gradients by input and by three variables; of the cell also of second order."""
    assert_same_bits(module, function, count=1 + 1 + 3 + (orders == 2))


@pytest.mark.full
def test_raw_ops_of_eager_code(module):
    """A plain Python function, traced when it was saved as the signature."""
    assert_same_bits(module, "eager", count=1)


@pytest.mark.full
def test_a_saved_training_step_trains(module):
    assert_same_bits(module, "losses", count=1)
    assert_same_bits(module, "trained w", count=1)


@pytest.mark.full
def test_without_import_the_error_names_the_op(models, module, layer):
    """Once the package is imported, the same process loads the same files."""
    lines = dict(line.split(": ", 1) for line in models.printed.splitlines())
    for name in f"{layer} fused", "module":
        assert "Op type not registered 'TfLstmOps>" in lines[name]
        assert "loaded before" not in lines[name]
    assert f"{layer} fused" in models.loaded and "eager" in module.loaded


if __name__ == "__main__":
    load(Path(sys.argv[1]), *sys.argv[2:])
