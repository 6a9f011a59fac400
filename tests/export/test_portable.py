"""Portable SavedModels: TensorFlow's own ops only, loaded by processes without this package.

One new process, which cannot import the package, loads all that the fixture `results` saved (this
file, run as a script); the tests compare what it predicted.
"""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

INPUTS, UNITS, CLASSES = 3, 5, 2
Results = dict[str, np.ndarray]

# By the layers' dtype, relative to the largest number. The loop rounds in another order than the
# kernels: some dozen roundings of float64, the error promised for float32, and one unit in the last
# place for each layer whose results are rounded to 16 bits.
TOLERANCE = {"float64": 1e-14, "float32": 2e-6, "mixed_bfloat16": 2 * 2.0**-7}
DTYPES = ["float64", "mixed_bfloat16"]
# Batch and time, all for one file.
SHAPES = [(4, 6), (1, 1), (3, 11)]


def make_inputs(batch: int, time: int) -> np.ndarray:
    """[batch, time, inputs]; where there is room, sequences are padded on either side."""
    x = np.random.default_rng(time).normal(size=(batch, time, INPUTS))
    x[0, 4:] = 0
    x[1:2, :3] = 0
    return x


def recurrent(name: str, **options):
    import tf_lstm_ops

    return getattr(tf_lstm_ops.keras, name)(UNITS, **options)


def make_model(dtype: str) -> keras.Model:
    """Masked; in float64 a nested model that reads in both directions, then backwards."""
    options = {"dtype": dtype, "recurrent_initializer": "glorot_uniform"}
    first = recurrent("LSTM", use_peephole=True, cell_clip=0.25, return_sequences=True, **options)
    x = keras.Input((None, INPUTS), dtype=first.variable_dtype)
    masking, dense = keras.layers.Masking(dtype=dtype), keras.layers.Dense(CLASSES, dtype=dtype)
    if dtype != "float64":
        return keras.Model(x, dense(first(masking(x))))
    second = recurrent("GRU", dropout=0.3, recurrent_dropout=0.3, go_backwards=True, **options)
    nested = keras.Sequential([masking, keras.layers.Bidirectional(first, dtype=dtype), second])
    return keras.Model(x, dense(nested(x)))


def make_stateful() -> keras.Model:
    x = keras.Input(batch_shape=(2, None, INPUTS))
    return keras.Model(x, recurrent("LSTM", stateful=True)(x))


def save_models(folder: Path) -> Results:
    from tf_lstm_ops.export import saved_model

    results = {}
    for dtype in DTYPES:
        keras.utils.set_random_seed(1)
        model = make_model(dtype)
        saved_model(model, folder / dtype, portable=True)
        for shape in SHAPES:
            x = tf.constant(make_inputs(*shape), model.inputs[0].dtype)
            results[f"{dtype} {shape}"] = model(x).numpy()
    stateful = make_stateful()
    saved_model(stateful, folder / "stateful", portable=True)
    for k in range(2):
        results[f"stateful {k}"] = stateful.predict(make_inputs(2, 4), batch_size=2, verbose=0)
    saved_model(model, folder / "fused")
    return {k: v.astype("float64") for k, v in results.items()}


def load_models(folder: str) -> None:
    """In the new process."""
    sys.modules["tf_lstm_ops"] = None  # to import it is an error
    results = {}
    for dtype in DTYPES:
        model = tf.saved_model.load(f"{folder}/{dtype}")
        (argument,) = model.signatures["serving_default"].structured_input_signature[1].values()
        for shape in SHAPES:
            x = tf.constant(make_inputs(*shape), argument.dtype)
            results[f"{dtype} {shape}"] = model.serve(x)
    stateful = tf.saved_model.load(f"{folder}/stateful")
    for k in range(2):
        results[f"stateful {k}"] = stateful.serve(tf.constant(make_inputs(2, 4), tf.float32))
    assert not [name for name in sys.modules if name.startswith("tf_lstm_ops.")]
    np.savez(f"{folder}/loaded.npz", **{k: tf.cast(v, tf.float64) for k, v in results.items()})


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("portable")


@pytest.fixture(scope="module")
def results(folder) -> tuple[Results, Results]:
    """What this process predicted with the fused ops, and a new one from the files."""
    saved = save_models(folder)
    run = subprocess.run(
        [sys.executable, __file__, folder],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    with np.load(folder / "loaded.npz") as loaded:
        return saved, dict(loaded)


def assert_predicts(results: tuple[Results, Results], name: str, tolerance: float) -> None:
    saved, loaded = (r[name] for r in results)
    assert saved.shape == loaded.shape
    assert np.any(saved)
    bound = tolerance * np.abs(saved).max()
    np.testing.assert_allclose(loaded, saved, rtol=0, atol=bound, err_msg=name)


@pytest.mark.full
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_predictions(results, dtype, shape):
    assert_predicts(results, f"{dtype} {shape}", TOLERANCE[dtype])


@pytest.mark.full
def test_states_move_on(results):
    for name in "stateful 0", "stateful 1":
        assert_predicts(results, name, TOLERANCE["float32"])
    assert np.any(results[1]["stateful 0"] != results[1]["stateful 1"])


def custom_ops(folder: Path) -> set[str]:
    saved = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    (graph,) = (meta_graph.graph_def for meta_graph in saved.meta_graphs)
    functions = graph.library.function
    ops = {n.op for nodes in (graph.node, *(f.node_def for f in functions)) for n in nodes}
    assert len(ops) > 5
    return {op for op in ops if op.startswith("TfLstmOps>")}


@pytest.mark.full
def test_ops(results, folder):
    for name in *DTYPES, "stateful":
        assert custom_ops(folder / name) == set()
    assert custom_ops(folder / "fused") == {"TfLstmOps>KerasLSTM"}


@pytest.mark.full
def test_the_signature_is_that_of_fused_ops(results, folder):
    portable, fused = (tf.saved_model.load(folder / name) for name in (DTYPES[-1], "fused"))
    signatures = [m.signatures["serving_default"] for m in (portable, fused)]
    assert signatures[0].structured_outputs == signatures[1].structured_outputs
    inputs = [s.structured_input_signature for s in signatures]
    assert inputs[0] == inputs[1]
    (spec,) = inputs[0][1].values()
    assert spec.shape.as_list() == [None, None, INPUTS]


def test_after_an_export_the_model_runs_fused_ops(tmp_path):
    """Bit for bit what it predicted before."""
    from tf_lstm_ops.export import saved_model

    model = keras.Sequential([keras.Input((None, INPUTS)), recurrent("GRU")])
    x = make_inputs(2, 3)
    before = model.predict(x, verbose=0)
    saved_model(model, tmp_path, portable=True)
    np.testing.assert_array_equal(model.predict(x, verbose=0), before)


class CallsFunction(keras.Model):
    """A model with a tf.function around its layer, which has been traced when it is exported."""

    def __init__(self, concrete: bool):
        super().__init__()
        self.layer = recurrent("LSTM")
        self.layer.build((None, None, INPUTS))
        signature = [tf.TensorSpec([None, None, INPUTS])]
        self.function = tf.function(lambda x: self.layer(x), input_signature=signature)
        self.traced = self.function.get_concrete_function()
        self.concrete = concrete

    def call(self, x):
        return self.traced(x) if self.concrete else self.function(x)


def test_a_function_traced_before(tmp_path):
    """It is traced again; but what can only be called as it was traced is an error."""
    from tf_lstm_ops.export import saved_model

    again, fixed = (CallsFunction(concrete) for concrete in (False, True))
    for model in again, fixed:
        model(tf.zeros([2, 4, INPUTS]))
    saved_model(again, tmp_path / "again", portable=True)
    assert custom_ops(tmp_path / "again") == set()
    with pytest.raises(ValueError, match=r"has custom ops: TfLstmOps>KerasLSTM\. Does the model"):
        saved_model(fixed, tmp_path / "fixed", portable=True)
    assert custom_ops(tmp_path / "fixed") == {"TfLstmOps>KerasLSTM"}


@pytest.mark.parametrize("portable", [False, True])
def test_rejected(tmp_path, portable):
    from tf_lstm_ops.export import saved_model

    with pytest.raises(TypeError, match=r"model must be a keras\.Model"):
        saved_model(recurrent("LSTM"), tmp_path, portable=portable)
    with pytest.raises(ValueError, match="built"):
        saved_model(keras.Sequential([recurrent("LSTM")]), tmp_path, portable=portable)


if __name__ == "__main__":
    load_models(sys.argv[1])
