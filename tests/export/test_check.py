"""The comparison of a written file with its model: what passes, and what is an error or a warning.

Files are stood for by functions that compute the model's outputs, right or wrong.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.export import check, saved_model
from tf_lstm_ops.export.signature import signature
from tf_lstm_ops.export.states import states_of
from tf_lstm_ops.keras import GRU, LSTM, StackedLSTM

INPUTS, UNITS = 3, 4


def make_model(**options) -> keras.Model:
    x = keras.Input(options.pop("shape", (None, INPUTS)), name="x")
    return keras.Model(x, LSTM(UNITS, **options)(x))


def compare(model: keras.Model, run, **options) -> None:
    check.compare(model, run, signature(model), "the file", **options)


def test_equal(capsys):
    model = make_model()

    def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        (x,) = inputs
        assert (x.shape, x.dtype) == ((check.BATCH, check.UNKNOWN, INPUTS), "float32")
        return [model(x).numpy()]

    compare(model, run)
    assert capsys.readouterr().out == ""
    compare(model, run, verbose=True)
    assert capsys.readouterr().out.startswith(
        "the file: largest difference to the model 0, where the largest element is 0."
    )


@pytest.mark.parametrize(
    ("factor", "options", "passes"),
    [
        (1 + 1e-4, {}, True),  # half of the digits of float32: 3.5e-4
        (1 + 1e-3, {}, False),
        (1 + 1e-3, {"tolerance": 2e-3}, True),
        (1 + 1e-4, {"tolerance": 1e-5}, False),
        (np.nan, {}, False),
        (np.inf, {}, False),
    ],
)
def test_largest_difference(factor, options, passes):
    model = make_model()

    def run(inputs: list[np.ndarray]) -> list[tf.Tensor]:
        return [model(*inputs) * factor]

    if passes:
        compare(model, run, **options)
    else:
        with pytest.raises(ValueError, match=r"^the file predicts something else than the"):
            compare(model, run, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda y: [y[:, 1:]],
            r"has the outputs .* \[2, 3\], but the model has float32 \[2, 4\]$",
        ),
        (
            lambda y: [y, y],
            r"has the outputs float32 \[2, 4\], float32 \[2, 4\], but the model has",
        ),
        (lambda y: [tf.cast(y, "float64")], r"has the outputs float64 \[2, 4\], but"),
        (lambda y: 1 // 0, "cannot run: integer division"),
    ],
)
def test_other_outputs(change, message):
    model = make_model()
    with pytest.raises(ValueError, match=f"^the file {message}"):
        compare(model, lambda inputs: change(model(*inputs)))


def test_states_and_seeds_do_not_change():
    x = keras.Input(batch_shape=(2, None, INPUTS))
    layer, dropout = LSTM(UNITS, stateful=True), keras.layers.Dropout(0.5, seed=1)
    model = keras.Model(x, dropout(layer(x)))
    layer.states[0].assign(np.full((2, UNITS), 0.5))
    variables = [*model.non_trainable_variables, *layer.states]
    before = [v.numpy() for v in variables]
    (wanted,) = [model(*check.random_inputs(model, signature(model, batch_size=2))).numpy()]
    for variable, value in zip(variables, before, strict=True):
        variable.assign(value)

    def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        for variable, value in zip(variables, before, strict=True):
            np.testing.assert_array_equal(variable.numpy(), value)
        return [wanted]  # from the states that the model has now

    check.compare(model, run, signature(model, batch_size=2), "the file", tolerance=0)
    for variable, value in zip(variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


@pytest.mark.parametrize(
    ("name", "portable"),
    [
        ("LSTM", False),
        ("GRU", True),
        ("both", False),
        pytest.param("stack", True, marks=pytest.mark.full),
        pytest.param("stock", False, marks=pytest.mark.full),
        pytest.param("LSTM", True, marks=pytest.mark.slow),
        pytest.param("GRU", False, marks=pytest.mark.slow),
        pytest.param("both", True, marks=pytest.mark.slow),
        pytest.param("stack", False, marks=pytest.mark.slow),
        pytest.param("stock", True, marks=pytest.mark.slow),
    ],
)
def test_stateful_saved_model(name, portable, tmp_path, recwarn):
    """The file begins with the states that the model has, and continues them as the model does."""
    options = {"stateful": True, "recurrent_initializer": "glorot_uniform"}
    layer = {
        "LSTM": lambda: LSTM(UNITS, **options),
        "GRU": lambda: GRU(UNITS, **options),
        "both": lambda: keras.layers.Bidirectional(LSTM(UNITS, **options)),
        "stack": lambda: StackedLSTM(UNITS, 2, **options),
        "stock": lambda: keras.layers.LSTM(UNITS, **options),
    }[name]()
    x = keras.Input((None, INPUTS), batch_size=3)
    model, value = keras.Model(x, layer(x)), np.ones((3, 4, INPUTS), "float32")
    model(value)
    before = [v.numpy() for v in states_of(model)]
    assert before and all(map(np.any, before))
    saved_model(model, tmp_path, portable=portable)
    assert not [w for w in recwarn if "was not compared" in str(w.message)]
    np.testing.assert_equal([v.numpy() for v in states_of(model)], before)
    loaded = tf.saved_model.load(tmp_path)
    for _ in range(2):
        np.testing.assert_allclose(loaded.serve(value), model(value), atol=1e-6)


def test_random_model_is_not_compared():
    x = keras.Input((INPUTS,))
    model = keras.Model(x, keras.layers.Lambda(lambda x: x + tf.random.normal(tf.shape(x)))(x))
    with pytest.warns(UserWarning, match=r"^the file was not compared .*: two calls of the model"):
        compare(model, lambda inputs: [np.zeros((check.BATCH, INPUTS), "float32")])


def test_model_that_rejects_random_inputs_is_not_compared():
    def negative(x: tf.Tensor) -> tf.Tensor:
        tf.debugging.assert_negative(x)
        return x

    x = keras.Input((INPUTS,))
    model = keras.Model(x, keras.layers.Lambda(negative, output_shape=(INPUTS,))(x))
    with pytest.warns(UserWarning, match=r"^the file was not compared .*: the model cannot run on"):
        compare(model, lambda inputs: 1 // 0)


def test_random_inputs():
    """Padded at the end; words of the smallest vocabulary, and not the masked one elsewhere."""
    words = keras.Input((8,), dtype="int32", name="b")
    sequence = keras.Input((None, 2), dtype="float64", name="a")
    label = keras.Input((), dtype="string", name="c")
    embedded = [keras.layers.Embedding(n, 2, mask_zero=n == 9)(words) for n in (5, 9)]
    y = keras.layers.Concatenate()([*embedded, sequence])
    model = keras.Model({"b": words, "a": sequence, "c": label}, [y, label])
    a, b, c = check.random_inputs(model, signature(model))
    assert (a.shape, a.dtype) == ((check.BATCH, check.UNKNOWN, 2), "float64")
    assert not a[0, -4:].any()
    assert a[0, :-4].all() and a[1].all()
    assert (b.shape, b.dtype) == ((check.BATCH, 8), "int32")
    assert not b[0, -2:].any()
    assert set(b[0, :-2]) | set(b[1]) <= {1, 2, 3, 4}
    assert len(set(b[1])) > 1
    assert c.tolist() == ["a", "a"]


@pytest.mark.parametrize("batch_size", [0, -1, 2.0])
def test_rejected_batch_size(batch_size):
    with pytest.raises(ValueError, match=rf"batch_size must be None or positive.*{batch_size}"):
        signature(make_model(), batch_size=batch_size)


@pytest.mark.parametrize("portable", [False, True])
def test_a_wrong_file_is_an_error(portable, tmp_path, monkeypatch):
    """Keras writes a model with other weights."""
    model, other = make_model(recurrent_initializer="ones"), make_model()
    monkeypatch.setattr(model, "export", other.export)
    with pytest.raises(ValueError, match=r"^the SavedModel in .* predicts something else than"):
        saved_model(model, tmp_path / "model", portable=portable)


def test_verbose(tmp_path, capsys):
    saved_model(make_model(), tmp_path, verbose=True)
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith(f"the SavedModel in {tmp_path}: largest difference to the model 0, ")


def _sensitive(steps: int = 300) -> keras.Model:
    """A GRU that amplifies a change of its input from step to step, up to its largest output."""
    keras.utils.set_random_seed(0)
    large = keras.initializers.Orthogonal(gain=6.0)
    gru = GRU(64, return_sequences=True, recurrent_initializer=large)
    return keras.Sequential([keras.Input((steps, INPUTS)), gru])


def _moved(model: keras.Model, inputs: list[np.ndarray]) -> np.ndarray:
    """Another program rounds otherwise."""
    return model(inputs[0] * np.float32(1 + 2.0**-23)).numpy()


def test_a_sensitive_model_is_compared_where_it_does_not_move():
    model = _sensitive()

    def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        return [_moved(model, inputs)]

    (x,) = check.random_inputs(model, signature(model))
    assert np.abs(run([x])[0] - model(x)).max() > 0.1  # beyond any tolerance
    with pytest.warns(UserWarning, match="amplifies rounding.* [1-9]\\d? % of the outputs"):
        compare(model, run)


@pytest.mark.parametrize("what", ["gates", "first steps", "scale"])
def test_a_wrong_file_of_a_sensitive_model(what):
    model = _sensitive()
    kernel, *others = model.get_weights()
    other = _sensitive()
    if what == "gates":
        other.set_weights([np.roll(kernel, 64, 1), *others])

    def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        y = _moved(other, inputs)
        y[:, :2] += 1e-2 * (what == "first steps")
        return [y * (0.99 if what == "scale" else 1.0)]

    with pytest.raises(ValueError, match="predicts something else"):
        compare(model, run)


def test_a_sensitive_model_whose_output_moves_as_a_whole():
    steps = _sensitive()
    model = keras.Model(steps.inputs, keras.layers.GlobalMaxPooling1D()(steps.outputs[0]))

    def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        return [_moved(model, inputs)]

    with pytest.warns(UserWarning, match="amplifies rounding.* 0 % of the outputs"):
        compare(model, run)


@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_wrong_integers(dtype):
    x = keras.Input((5, INPUTS))
    y = keras.ops.argmax(LSTM(UNITS, return_sequences=True)(x), axis=-1)
    model = keras.Model(x, keras.ops.cast(y, dtype))

    def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        return [np.asarray(1 - np.asarray(model(inputs[0])).astype("int32")).astype(dtype)]

    compare(model, lambda inputs: [np.asarray(model(inputs[0]))])
    with pytest.raises(ValueError, match="predicts something else"):
        compare(model, run)


def test_a_sensitive_model_of_words():
    """Its inputs cannot move, so its embeddings do."""
    steps, words = _sensitive(), keras.Input((300,), dtype="int32")
    embedding = keras.layers.Embedding(20, INPUTS, embeddings_initializer="normal")
    model = keras.Model(words, steps(embedding(words)))
    tables = embedding.get_weights()

    def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        embedding.set_weights([tables[0] * np.float32(1 + 2.0**-22)])
        y = model(inputs[0]).numpy()
        embedding.set_weights(tables)
        return [y]

    with pytest.warns(UserWarning, match="amplifies rounding"):
        compare(model, run)
    np.testing.assert_array_equal(embedding.get_weights()[0], tables[0])
