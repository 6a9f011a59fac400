"""`input_signature` fixes sizes that a model leaves open, in each kind of file."""

from pathlib import Path

import keras
import numpy as np
import onnx
import pytest
import tensorflow as tf

from tf_lstm_ops import export
from tf_lstm_ops.keras import LSTM

STEPS, FEATURES = 6, 3
X = np.random.default_rng(0).normal(size=(1, STEPS, FEATURES)).astype("float32")
FIXED = [keras.InputSpec(shape=(1, STEPS, FEATURES))]


def make_model() -> keras.Model:
    """With any number of steps."""
    inputs = keras.Input((None, FEATURES), name="series")
    return keras.Model(inputs, keras.layers.Dense(2)(LSTM(4)(inputs)))


def shapes_of_saved_model(folder: Path) -> dict[str, list[int | None]]:
    loaded = tf.saved_model.load(folder)  # a name: its variables must live while it is read
    signature = loaded.signatures["serving_default"]
    return {n: s.shape.as_list() for n, s in signature.structured_input_signature[1].items()}


@pytest.mark.parametrize("portable", [False, True])
def test_saved_model(tmp_path, portable: bool) -> None:
    model = make_model()
    export.saved_model(model, tmp_path / "model", portable, input_signature=FIXED)
    assert shapes_of_saved_model(tmp_path / "model") == {"series": [1, STEPS, FEATURES]}
    loaded = tf.saved_model.load(tmp_path / "model")
    got = loaded.serve(X)
    np.testing.assert_allclose(got, model(X), atol=1e-6)  # float32 roundings of 6 steps


def test_a_saved_model_keeps_what_is_open_in_the_signature(tmp_path) -> None:
    specs = [tf.TensorSpec([None, STEPS, FEATURES], tf.float32, "x")]
    export.saved_model(make_model(), tmp_path / "model", input_signature=specs)
    assert shapes_of_saved_model(tmp_path / "model") == {"x": [None, STEPS, FEATURES]}


def test_a_subclassed_model_that_was_called_with_other_steps(tmp_path) -> None:
    class Own(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.layer = LSTM(4)

        def call(self, x: tf.Tensor) -> tf.Tensor:
            return self.layer(x)

    model = Own()
    model(X[:, :2])
    specs = [keras.InputSpec(shape=(None, None, FEATURES))]
    export.saved_model(model, tmp_path / "model", input_signature=specs)
    loaded = tf.saved_model.load(tmp_path / "model")
    got = loaded.serve(X)
    np.testing.assert_allclose(got, model(X), atol=1e-6)  # as above


def test_onnx(tmp_path) -> None:
    path = tmp_path / "model.onnx"
    export.onnx(make_model(), path, input_signature=FIXED)
    [given] = onnx.load(path).graph.input
    sizes = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
    assert (given.name, sizes) == ("series", [1, STEPS, FEATURES])


@pytest.mark.full
def test_tflite(tmp_path) -> None:
    """ "int8" needs a known number of steps, which this model does not have."""
    path = tmp_path / "model.tflite"
    with pytest.raises(ValueError, match="number of steps"):
        export.tflite(make_model(), path, "int8", X)
    export.tflite(make_model(), path, "int8", X, input_signature=FIXED)
    [given] = tf.lite.Interpreter(str(path)).get_input_details()
    assert given["shape"].tolist() == [1, STEPS, FEATURES]


@pytest.mark.parametrize(
    ("input_signature", "error", "message"),
    [
        (keras.InputSpec(shape=(1, 2)), TypeError, "must be a list with a structure of specs"),
        ([(1, STEPS, FEATURES)], TypeError, "must consist of keras.InputSpec, .* Received: 1"),
        ([keras.InputSpec(ndim=3)], TypeError, "of at least one dimension"),
        ([tf.TensorSpec(None)], TypeError, "of at least one dimension"),
        ([tf.TensorSpec([])], TypeError, "of at least one dimension"),
        ([tf.RaggedTensorSpec([1, None, FEATURES])], TypeError, "Received: RaggedTensorSpec"),
        ([tf.SparseTensorSpec([1, None, FEATURES])], TypeError, "Received: SparseTensorSpec"),
        (FIXED * 2, ValueError, "must have 1 specs, one for each input of the model. Received: 2"),
        ([keras.InputSpec(shape=(2, STEPS, FEATURES))], ValueError, "batch_size must be 2"),
        ([keras.InputSpec(shape=(1, STEPS, 9))], ValueError, "incompatible|expected shape"),
    ],
    ids=[
        "no list",
        "sizes",
        "rank",
        "no rank",
        "scalar",
        "ragged",
        "sparse",
        "two",
        "batch size",
        "features",
    ],
)
def test_errors(tmp_path, input_signature, error: type[Exception], message: str) -> None:
    path = tmp_path / "model.tflite"
    with pytest.raises(error, match=message):
        export.tflite(make_model(), path, input_signature=input_signature)
    assert not path.exists()


def test_onnx_takes_no_empty_batch(tmp_path) -> None:
    """ONNX Runtime would end the process."""
    specs = [keras.InputSpec(shape=(0, STEPS, FEATURES))]
    with pytest.raises(ValueError, match="batch size of an ONNX file must not be 0"):
        export.onnx(make_model(), tmp_path / "model.onnx", input_signature=specs)


def test_time_distributed_of_an_open_number_of_steps(tmp_path) -> None:
    """Keras traces such a layer for as many steps as the batch has rows; a signature fixes them."""
    inputs = keras.Input((None, FEATURES))
    each = keras.layers.TimeDistributed(keras.layers.Dense(2))
    model = keras.Model(inputs, each(LSTM(4, return_sequences=True)(inputs)))
    specs = [keras.InputSpec(shape=(None, STEPS, FEATURES))]
    export.saved_model(model, tmp_path / "model", input_signature=specs)
    loaded = tf.saved_model.load(tmp_path / "model")
    x = np.concatenate([X, 2 * X])
    np.testing.assert_allclose(loaded.serve(x), model(x), atol=1e-6)  # as above


def test_inputs_by_name_and_arrays_as_specs(tmp_path) -> None:
    """A spec without a type has that of the input: here integers."""
    inputs = {"a": keras.Input((None,), dtype="int32"), "b": keras.Input((None, FEATURES))}
    both = keras.layers.Concatenate()([keras.layers.Embedding(5, 2)(inputs["a"]), inputs["b"]])
    model = keras.Model(inputs, LSTM(4)(both))
    specs = [{"a": keras.InputSpec(shape=(1, STEPS)), "b": X}]
    export.saved_model(model, tmp_path / "model", input_signature=specs)
    loaded = tf.saved_model.load(tmp_path / "model")
    x = {"a": np.ones((1, STEPS), "int32"), "b": X}
    np.testing.assert_allclose(loaded.serve(x), model(x), atol=1e-6)  # as above


def make_model_of_a_list() -> keras.Model:
    """Its inputs are not in the order of their names, and have other types."""
    words = keras.Input((None,), dtype="int32", name="words")
    sounds = keras.Input((None, FEATURES), name="sounds")
    return keras.Model(
        [words, sounds], LSTM(4)(keras.layers.Embedding(5, 2)(words)) + LSTM(4)(sounds)
    )


BY_NAME = [
    {
        "words": keras.InputSpec(shape=(1, STEPS)),
        "sounds": keras.InputSpec(shape=(1, STEPS + 1, FEATURES)),
    }
]
SIZES = {"words": [1, STEPS], "sounds": [1, STEPS + 1, FEATURES]}


def test_a_dict_of_inputs_by_name_saved_model(tmp_path) -> None:
    """keras.tree sorts the keys of a dict; the model's inputs have another order."""
    model = make_model_of_a_list()
    export.saved_model(model, tmp_path / "model", input_signature=BY_NAME)
    assert shapes_of_saved_model(tmp_path / "model") == SIZES
    loaded = tf.saved_model.load(tmp_path / "model")
    x = {"words": np.ones((1, STEPS), "int32"), "sounds": np.concatenate([X, X[:, :1]], 1)}
    got = loaded.signatures["serving_default"](**x)["output_0"]
    np.testing.assert_allclose(got, model(list(x.values())), atol=1e-6)  # as above


def test_a_dict_of_inputs_by_name_onnx(tmp_path) -> None:
    export.onnx(make_model_of_a_list(), tmp_path / "model.onnx", input_signature=BY_NAME)
    given = onnx.load(tmp_path / "model.onnx").graph.input
    sizes = {x.name: [d.dim_value for d in x.type.tensor_type.shape.dim] for x in given}
    assert sizes == SIZES


@pytest.mark.full
def test_a_dict_of_inputs_by_name_tflite(tmp_path) -> None:
    path = tmp_path / "model.tflite"
    export.tflite(make_model_of_a_list(), path, input_signature=BY_NAME)
    found = tf.lite.Interpreter(str(path)).get_signature_runner().get_input_details()
    assert {name: each["shape"].tolist() for name, each in found.items()} == SIZES
