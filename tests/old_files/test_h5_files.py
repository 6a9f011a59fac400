"""load_h5 and load_h5_weights of files as Keras 1 and 2.0 to 2.3 wrote them."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from old_files import writer
from old_files.writer import arrays, layer
from tf_lstm_ops.keras import GRU, LSTM, SimpleRNN, keras_2_hard_sigmoid, load_h5, load_h5_weights

UNITS, FEATURES = 8, 3
# Outputs are below 1; 8 steps of float32 beside float64.
TOLERANCE = 1e-6


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.normal(size=(2, 6, FEATURES)).astype("float32")


def predicted(model: Any, x: Any) -> Any:
    return np.asarray(model.predict(x, verbose=0))


def values(named: writer.Arrays) -> list[np.ndarray]:
    return [array for _, array in named]


@pytest.mark.parametrize("version", ["2.0.6", "2.3.1", "2.8.0", "2.2.4-tf"])
def test_lstm(version: str, x: Any, tmp_path: Path) -> None:
    own = arrays("lstm_1", UNITS, FEATURES, 4, [4 * UNITS])
    options = {"time_major": False} if version == "2.8.0" else {}
    config = [layer("LSTM", "lstm_1", (None, None, FEATURES), return_sequences=True, **options)]
    model = load_h5(writer.write(tmp_path / "a.h5", version, config, {"lstm_1": own}))
    assert type(model.layers[0]) is LSTM
    assert model.layers[0].uses_fused_op
    wanted = writer.lstm(x, *values(own))
    np.testing.assert_allclose(predicted(model, x), wanted, atol=TOLERANCE)


def test_gru_of_keras_2_0_has_no_reset_after(x: Any, tmp_path: Path) -> None:
    own = arrays("gru_1", UNITS, FEATURES, 3, [3 * UNITS])
    config = {"name": "s", "layers": [layer("GRU", "gru_1", (None, None, FEATURES))]}
    model = load_h5(writer.write(tmp_path / "a.h5", "2.0.6", config, {"gru_1": own}))
    assert not model.layers[0].reset_after
    wanted = writer.gru(x, *values(own))[:, -1]
    np.testing.assert_allclose(predicted(model, x), wanted, atol=TOLERANCE)


def test_reset_after_is_known_by_the_size_of_the_bias(x: Any, tmp_path: Path) -> None:
    own = arrays("gru_1", UNITS, FEATURES, 3, [2, 3 * UNITS])
    config = [layer("GRU", "gru_1", (None, None, FEATURES), recurrent_activation="sigmoid")]
    model = load_h5(writer.write(tmp_path / "a.h5", "2.2.0", config, {"gru_1": own}))
    wanted = writer.gru(x, *values(own), gate=writer.sigmoid)[:, -1]
    np.testing.assert_allclose(predicted(model, x), wanted, atol=TOLERANCE)


@pytest.mark.parametrize("kind", ["CuDNNLSTM", "CuDNNGRU"])
@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "Bidirectional"])
def test_layers_of_cudnn(kind: str, wrapped: bool, x: Any, tmp_path: Path) -> None:
    gates = 4 if kind == "CuDNNLSTM" else 3
    own = arrays("a", UNITS, FEATURES, gates, [2 * gates * UNITS])
    config = layer(kind, "a", None if wrapped else (None, None, FEATURES), return_sequences=True)
    config["config"]["units"] = UNITS
    if wrapped:
        config = layer("Bidirectional", "a", (None, None, FEATURES), layer=config, merge_mode="sum")
    written = own + [(f"b{name}", array) for name, array in own] if wrapped else own
    model = load_h5(writer.write(tmp_path / "a.h5", "2.2.4", [config], {"a": written}))
    # The parameters of cuDNN: for each gate W [H, I], then for each R [H, H], then the biases.
    kernel, recurrent, bias = values(own)
    w = [block.reshape(UNITS, FEATURES) for block in np.hsplit(kernel, gates)]
    r = np.hsplit(recurrent, gates)
    kernels = np.hstack([a.T for a in w]), np.hstack([a.T for a in r])
    biases = bias.reshape(2, -1)
    run = writer.lstm if gates == 4 else writer.gru
    given = (*kernels, biases.sum(0) if gates == 4 else biases)
    wanted = run(x, *given, gate=writer.sigmoid)
    if wrapped:
        wanted = wanted + run(x[:, ::-1], *given, gate=writer.sigmoid)[:, ::-1]
    np.testing.assert_allclose(predicted(model, x), wanted, atol=2 * TOLERANCE)


def keras_1_arrays(scope: str, gates: str, rng: np.random.Generator) -> writer.Arrays:
    shapes = {"W": (FEATURES, UNITS), "U": (UNITS, UNITS), "b": (UNITS,)}
    return [(f"{scope}_{k}_{g}", rng.normal(size=shapes[k])) for g in gates for k in shapes]


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_keras_1(kind: str, x: Any, tmp_path: Path, rng: np.random.Generator) -> None:
    """Configurations and arrays as Keras 1.2 wrote them. It wrote no version."""
    names = "icfo" if kind == "LSTM" else "zrh"
    own = keras_1_arrays("l", names, rng)
    recurrent = {
        "class_name": kind,
        "config": {
            **{"name": "l", "trainable": True, "output_dim": UNITS, "init": "glorot_uniform"},
            **{
                "inner_init": "orthogonal",
                "activation": "tanh",
                "inner_activation": "hard_sigmoid",
            },
            **{"W_regularizer": None, "U_regularizer": None, "b_regularizer": None},
            **{"dropout_W": 0.0, "dropout_U": 0.0, "consume_less": "cpu", "stateful": False},
            **{"return_sequences": True, "go_backwards": False, "unroll": False},
            **{"input_dim": FEATURES, "input_length": None, "forget_bias_init": "one"},
        },
    }
    convolution = {
        "class_name": "Convolution1D",
        "config": {
            **{"name": "c", "trainable": True, "nb_filter": 4, "filter_length": 2, "bias": True},
            **{"init": "glorot_uniform", "border_mode": "valid", "subsample_length": 1},
            **{"activation": "linear", "W_regularizer": None, "b_regularizer": None},
            **{"W_constraint": None, "b_constraint": None, "activity_regularizer": None},
            **{"input_dim": None, "input_length": None},
        },
    }
    kernel, bias = rng.normal(size=(2, 1, UNITS, 4)), rng.normal(size=4)
    given = {"l": own, "c": [("c_W", kernel), ("c_b", bias)]}
    model = load_h5(writer.write(tmp_path / "a.h5", None, [recurrent, convolution], given))
    by_name = {name[2:]: array for name, array in own}
    order = "ifco" if kind == "LSTM" else "zrh"
    joined = [np.concatenate([by_name[f"{k}_{g}"] for g in order], -1) for k in "WUb"]
    h = (writer.lstm if kind == "LSTM" else writer.gru)(x, *joined)
    wanted = h[:, :-1] @ kernel[0, 0] + h[:, 1:] @ kernel[1, 0] + bias
    # Products of 16 terms of the size 1 in float32.
    np.testing.assert_allclose(predicted(model, x), wanted, atol=1e-5)


def test_convolutions_of_theano_run_backwards(x: Any, tmp_path: Path) -> None:
    kernel = np.arange(12.0).reshape(2, FEATURES, 2) / 10
    options = {"filters": 2, "kernel_size": [2], "use_bias": False, "activation": "linear"}
    config = [layer("Conv1D", "c", (None, None, FEATURES), **options)]
    path = tmp_path / "a.h5"
    writer.write(path, "2.0.6", config, {"c": [("c/kernel:0", kernel)]}, backend="theano")
    wanted = x[:, :-1] @ kernel[1] + x[:, 1:] @ kernel[0]
    np.testing.assert_allclose(predicted(load_h5(path), x), wanted, atol=TOLERANCE)


def test_weights_of_a_file_go_into_a_model(x: Any, tmp_path: Path) -> None:
    """By order, since the names differ; the hard_sigmoid of the model is that of Keras 2."""
    own = arrays("gru_7", UNITS, FEATURES, 3, [3 * UNITS])
    dense = [("dense_1/kernel:0", np.ones((UNITS, 2))), ("dense_1/bias:0", np.zeros(2))]
    path = tmp_path / "a.h5"
    writer.write(path, "2.1.5", None, {"input_1": [], "gru_7": own, "dense_1": dense})
    hard = {"recurrent_activation": "hard_sigmoid", "reset_after": False}
    exact = {**hard, "recurrent_activation": keras_2_hard_sigmoid}
    wanted = writer.gru(x, *values(own))[:, -1] @ np.ones((UNITS, 2))
    for kind, options in ((GRU, hard), (keras.layers.GRU, hard), (GRU, exact)):
        recurrent = kind(UNITS, **options)
        model = keras.Sequential([keras.Input((None, FEATURES)), recurrent, keras.layers.Dense(2)])
        load_h5_weights(model, path)
        np.testing.assert_allclose(predicted(model, x), wanted, atol=5e-6)  # a sum of 8 outputs


def test_a_file_of_keras_3_is_loaded_too(x: Any, tmp_path: Path) -> None:
    layers = [keras.layers.LSTM(4, recurrent_activation="hard_sigmoid"), keras.layers.Dense(2)]
    model = keras.Sequential([keras.Input((None, FEATURES)), *layers])
    model.save(tmp_path / "new.h5")
    loaded = load_h5(tmp_path / "new.h5")
    assert type(loaded.layers[0]) is LSTM
    np.testing.assert_allclose(predicted(loaded, x), predicted(model, x), atol=TOLERANCE)


def test_layers_of_custom_objects_as_in_a_file_of_keras_2(x: Any, tmp_path: Path) -> None:
    """``keras.models.load_model(path, custom_objects={"GRU": tf_lstm_ops.keras.GRU})``."""
    own = arrays("gru", UNITS, FEATURES, 3, [3 * UNITS])
    inputs = layer("InputLayer", "in", (None, None, FEATURES))
    config = {"name": "s", "layers": [inputs, layer("GRU", "gru", units=UNITS)]}
    path = writer.write(tmp_path / "a.h5", "2.0.6", config, {"in": [], "gru": own})
    model = keras.models.load_model(path, compile=False, custom_objects={"GRU": GRU})
    wanted = writer.gru(x, *values(own))[:, -1]
    np.testing.assert_allclose(predicted(model, x), wanted, atol=TOLERANCE)


def test_a_plain_rnn_of_custom_objects_has_the_hard_sigmoid_of_keras_2(
    x: Any, tmp_path: Path
) -> None:
    """Nothing scales the weights here, as `load_h5` does."""
    own = arrays("r", UNITS, FEATURES, 1, [UNITS])
    options = {"units": UNITS, "activation": "hard_sigmoid", "implementation": 0}
    inputs = layer("InputLayer", "in", (None, None, FEATURES))
    config = {"name": "s", "layers": [inputs, layer("SimpleRNN", "r", **options)]}
    path = writer.write(tmp_path / "a.h5", "2.0.6", config, {"in": [], "r": own})
    objects = {"SimpleRNN": SimpleRNN}
    loaded = keras.models.load_model(path, compile=False, custom_objects=objects)
    kernel, recurrent, bias = values(own)
    wanted = np.zeros((len(x), UNITS))
    for step in x.swapaxes(0, 1):
        wanted = writer.hard_sigmoid(step @ kernel + wanted @ recurrent + bias)
    for model in (loaded, load_h5(path)):
        np.testing.assert_allclose(predicted(model, x), wanted, atol=TOLERANCE)
