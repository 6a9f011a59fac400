"""load_h5 and load_h5_weights of files as Keras 1 and 2.0 to 2.3 wrote them."""

import warnings
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


def graph_of_two(last: Any) -> Any:
    """The configuration of a graph of two inputs and a layer."""
    inputs = [layer("InputLayer", name, (None, 4)) for name in "ab"]
    for part in (*inputs, last):
        part["name"], part["inbound_nodes"] = part["config"]["name"], []
    last["inbound_nodes"] = [[["a", 0, 0, {}], ["b", 0, 0, {}]]]
    ends = {"input_layers": [["a", 0, 0], ["b", 0, 0]], "output_layers": [[last["name"], 0, 0]]}
    return {"name": "m", "layers": [*inputs, last], **ends}


MERGES = {
    "sum": np.add,
    "mul": np.multiply,
    "ave": lambda a, b: (a + b) / 2,
    "max": np.maximum,
    "concat": lambda a, b: np.concatenate([a, b], -1),
    "dot": lambda a, b: (a * b).sum(-1, keepdims=True),
}


@pytest.mark.parametrize("mode", MERGES)
def test_merge(mode: str, rng: np.random.Generator, tmp_path: Path) -> None:
    options = {"mode_type": "raw", "concat_axis": -1, "dot_axes": -1, "arguments": {}}
    config = graph_of_two(layer("Merge", "m", mode=mode, **options))
    own: dict[str, Any] = {name: [] for name in "abm"}
    path = writer.write(tmp_path / "a.h5", "2.0.6", config, own, class_name="Model")
    a, b = rng.normal(size=(2, 3, 4)).astype("float32")
    np.testing.assert_allclose(load_h5(path)([a, b]), MERGES[mode](a, b), atol=TOLERANCE)


def test_layers_of_keras_1_with_two_axes(rng: np.random.Generator, tmp_path: Path) -> None:
    convolution = {
        **{"nb_filter": 2, "nb_row": 2, "nb_col": 1, "init": "glorot_uniform", "bias": True},
        **{"border_mode": "valid", "subsample": [1, 1], "dim_ordering": "tf"},
        **{"activation": "linear", "W_regularizer": None},
    }
    pooling = {"pool_size": [2, 2], "strides": [2, 2], "border_mode": "valid", "dim_ordering": "tf"}
    config = [
        layer("Convolution2D", "c", (None, 5, 4, 3), **convolution),
        layer("MaxPooling2D", "p", **pooling),
        layer("ZeroPadding2D", "z", padding=[1, 0], dim_ordering="tf"),
    ]
    kernel, bias = rng.normal(size=(2, 1, 3, 2)), rng.normal(size=2)
    own: dict[str, Any] = {"c": [("c_W", kernel), ("c_b", bias)], "p": [], "z": []}
    x = rng.normal(size=(2, 5, 4, 3)).astype("float32")
    h = x[:, :-1] @ kernel[0, 0] + x[:, 1:] @ kernel[1, 0] + bias
    wanted = np.pad(h.reshape(2, 2, 2, 2, 2, 2).max((2, 4)), ((0, 0), (1, 1), (0, 0), (0, 0)))
    model = load_h5(writer.write(tmp_path / "a.h5", None, config, own))
    np.testing.assert_allclose(predicted(model, x), wanted, atol=TOLERANCE)


@pytest.mark.parametrize("kind", ["Attention", "AdditiveAttention"])
def test_an_argument_without_effect(kind: str, tmp_path: Path) -> None:
    """Keras 3 has causal as an argument of the call."""
    for causal in (False, True):
        last = layer(kind, "m", causal=causal, use_scale=False)
        config = graph_of_two(last)
        config["layers"][0]["config"]["batch_input_shape"] = [None, 2, 4]
        config["layers"][1]["config"]["batch_input_shape"] = [None, 2, 4]
        own: dict[str, Any] = {name: [] for name in "abm"}
        path = writer.write(tmp_path / "a.h5", "2.4.0", config, own, class_name="Model")
        if causal:
            with pytest.raises(ValueError, match="causal=True"):
                load_h5(path)
        else:
            assert load_h5(path).output_shape == (None, 2, 4)


class Scaled(keras.layers.LSTM):
    """Takes further arguments by kwargs, as classes of users do."""

    def __init__(self, units: int, factor: float = 1.0, **options: Any) -> None:
        super().__init__(units, **options)
        self.factor = factor

    def call(
        self, sequences: Any, initial_state: Any = None, mask: Any = None, training: bool = False
    ) -> Any:
        return self.factor * super().call(sequences, initial_state, mask, training)


def test_a_subclass_gets_the_arguments_of_keras_3(x: Any, tmp_path: Path) -> None:
    own = arrays("l", UNITS, FEATURES, 4, [4 * UNITS])
    config = layer("LSTM", "l", (None, None, FEATURES), time_major=False, factor=2.0)
    path = tmp_path / "a.h5"
    writer.write(path, "2.8.0", [{**config, "class_name": "Mine"}], {"l": own})
    with pytest.warns(UserWarning, match="convert_model did not replace"):
        model = load_h5(path, custom_objects={"Mine": Scaled})
    wanted = 2 * writer.lstm(x, *values(own))[:, -1]
    np.testing.assert_allclose(predicted(model, x), wanted, atol=2 * TOLERANCE)


def test_a_gru_of_two_units_has_no_reset_after(x: Any, tmp_path: Path) -> None:
    """Its recurrent kernel has the shape that two biases would have."""
    own = arrays("g", 2, FEATURES, 3, [6])
    config = [layer("GRU", "g", (None, None, FEATURES), units=2)]
    model = load_h5(writer.write(tmp_path / "a.h5", "2.0.6", config, {"g": own}))
    wanted = writer.gru(x, *values(own))[:, -1]
    np.testing.assert_allclose(predicted(model, x), wanted, atol=TOLERANCE)


@pytest.mark.parametrize("version", ["2.2.2", "2.2.4-tf", None, "2.3.1", "2.8.0"])
def test_a_default_of_another_version(version: str | None, tmp_path: Path) -> None:
    own = arrays("l", UNITS, FEATURES, 4, [4 * UNITS])
    path = writer.write(tmp_path / "a.h5", version, None, {"l": own})
    model = keras.Sequential([keras.Input((None, FEATURES)), keras.layers.LSTM(UNITS, name="l")])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        load_h5_weights(model, path)
    said = [str(each.message) for each in found]
    if version in ("2.3.1", "2.8.0"):
        assert said == []
    else:
        assert "hard_sigmoid" in said[0]
        assert "layer l has" in said[0]


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
