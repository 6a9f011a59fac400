"""The kinds of files, and what their errors say."""

import io
import json
import os
import subprocess
import sys
import zipfile

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops.checkpoints import candidates
from tf_lstm_ops.weights import GRUWeights, LSTMWeights

from . import cells, written

X = cells.sequence()
SCOPE = "rnn/basic_lstm_cell"


@pytest.fixture
def arrays(rng):
    return cells.joined(rng)


def model(*layers):
    return keras.Sequential([keras.Input((None, cells.INPUTS)), *layers])


def assert_reads(path, arrays):
    want = cells.lstm(arrays, X, "ijfo", 1.0)
    got = written.computed(LSTMWeights.from_checkpoint(path), X)
    np.testing.assert_allclose(got, want, atol=written.ROUNDING)


@pytest.mark.parametrize("path", ["{}", "{}.index", "{}.data-00000-of-00001", "."])
def test_paths_of_a_checkpoint(path, arrays, tmp_path):
    file = written.checkpoint(tmp_path / "m.ckpt-7", written.under(SCOPE, arrays))
    assert_reads(tmp_path / path.format(file.name), arrays)


def test_a_folder_that_was_moved(arrays, tmp_path):
    (tmp_path / "old").mkdir()
    written.checkpoint(tmp_path / "old" / "m", written.under(SCOPE, arrays))
    state = tmp_path / "old" / "checkpoint"
    state.write_text('model_checkpoint_path: "/no/such/folder/m"\n')
    assert_reads((tmp_path / "old").rename(tmp_path / "new"), arrays)


def test_a_folder_with_several_checkpoints(arrays, tmp_path):
    for name in ("a", "b"):
        written.checkpoint(tmp_path / name, written.under(SCOPE, arrays))
    (tmp_path / "checkpoint").unlink()
    with pytest.raises(ValueError, match=r"several checkpoints: a\.index, b\.index; pass one"):
        candidates(tmp_path)


def test_the_first_format_of_checkpoints(arrays, tmp_path):
    assert_reads(
        written.checkpoint(tmp_path / "m", written.under(SCOPE, arrays), version=1), arrays
    )


def test_a_frozen_graph(arrays, tmp_path):
    assert_reads(written.frozen_graph(tmp_path / "m.pb", written.under(SCOPE, arrays)), arrays)


def test_a_saved_model_of_tensorflow_1(arrays, tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, array in written.under(SCOPE, arrays).items():
            tf.compat.v1.get_variable(name, initializer=array)
        session.run(tf.compat.v1.global_variables_initializer())
        builder = tf.compat.v1.saved_model.Builder(str(tmp_path / "saved"))
        builder.add_meta_graph_and_variables(session, ["serve"])
        builder.save()
    assert_reads(tmp_path / "saved", arrays)
    assert_reads(tmp_path / "saved" / "saved_model.pb", arrays)


def save_objects(model, path):
    tf.train.Checkpoint(model=model).write(str(path))


SAVE = {
    "m.keras": lambda model, path: model.save(path),
    "m.h5": lambda model, path: model.save(path),
    "m.weights.h5": lambda model, path: model.save_weights(path),
    "objects": save_objects,
    "saved": lambda model, path: model.export(path, verbose=False),
}


@pytest.mark.parametrize("name", SAVE)
def test_files_of_keras_3(name, tmp_path):
    lstm = keras.layers.LSTM(4, return_sequences=True)
    ours = tf_lstm_ops.keras.LSTM(5, use_peephole=True, projection_size=3, return_sequences=True)
    gru = keras.layers.GRU(4, reset_after=False, name="decoder")
    made = model(keras.layers.Bidirectional(lstm), ours, keras.layers.Dense(12), gru)
    made.compile("adam", "mse")
    made.optimizer.build(made.trainable_variables)  # makes slots
    SAVE[name](made, tmp_path / name)
    found = sorted(candidates(tmp_path / name), key=lambda each: (each.kind, each.directions))
    assert [each.kind for each in found] == ["gru", "lstm", "lstm"]
    assert not any(each.note or each.problem for each in found)
    for each, layer in zip(found, [gru, ours, made.layers[0]], strict=True):
        kind = {"lstm": LSTMWeights, "gru": GRUWeights}[each.kind]
        got = kind.from_checkpoint(tmp_path / name, layer=each.name)
        want = kind.from_keras(layer)
        assert (got.directions, got.projection_size) == (want.directions, want.projection_size)
        for a, b in zip(got.cells, want.cells, strict=True):
            assert a.arrays().keys() == b.arrays().keys()
            for key, array in b.arrays().items():
                np.testing.assert_array_equal(a.arrays()[key], array)


def old_h5(path, version, name, arrays, config=None):
    """A file of one layer of Keras 1 or 2."""
    with h5py.File(path, "w") as file:
        file.attrs["layer_names"] = [name.encode()]
        file.attrs["keras_version"] = version.encode()
        if config is not None:
            layers = [{"class_name": "LSTM", "config": {"name": name, **config}}]
            file.attrs["model_config"] = json.dumps(
                {"class_name": "Sequential", "config": {"layers": layers}}
            )
        group = file.create_group(name)
        group.attrs["weight_names"] = [key.encode() for key in arrays]
        for key, array in arrays.items():
            group[key] = array
    return path


def test_keras_2_names_its_hard_sigmoid(rng, tmp_path):
    arrays = cells.normal(
        rng, **{"l/kernel:0": (3, 16), "l/recurrent_kernel:0": (4, 16), "l/bias:0": (16,)}
    )
    config = {"recurrent_activation": "hard_sigmoid", "activation": "tanh", "go_backwards": True}
    path = old_h5(tmp_path / "m.h5", "2.2.4", "l", arrays, config)
    (found,) = candidates(path)
    assert found.note == (
        "recurrent_activation is hard_sigmoid of Keras 2, clip(0.2 x + 0.5, 0, 1); "
        "it runs backwards in time"
    )
    cell = LSTMWeights.from_checkpoint(path, layer="l").cells[0]
    np.testing.assert_array_equal(cell.kernel, arrays["l/kernel:0"])  # not scaled
    (found,) = candidates(old_h5(tmp_path / "w.h5", "2.2.4", "l", arrays))
    assert "does not say the activations" in found.note
    for version in ("2.10.0", "2.2.4-tf"):
        assert candidates(old_h5(tmp_path / "x.h5", version, "l", arrays))[0].note == ""


def test_an_archive_of_keras_2_names_its_hard_sigmoid(rng, tmp_path):
    """Its groups are named by classes, which are counted; a model inside has groups of its own."""
    hard = {"recurrent_activation": "hard_sigmoid", "go_backwards": True}
    inner = {"layers": [lstm_of("decoder", hard)], "name": "inner"}
    layers = [
        lstm_of("plain", {}),
        lstm_of("encoder", hard),
        {"class_name": "Functional", "config": inner},
    ]
    groups = ("layers/lstm", "layers/lstm_1", "layers/functional/layers/lstm")
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        for group in groups:
            for k, shape in enumerate([(3, 16), (4, 16), (16,)]):
                file[f"{group}/cell/vars/{k}"] = rng.normal(size=shape).astype("f")
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as archive:
        config = {"class_name": "Sequential", "config": {"name": "m", "layers": layers}}
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("metadata.json", json.dumps({"keras_version": "2.15.0"}))
        archive.writestr("model.weights.h5", weights.getvalue())
    notes = {each.name: each.note for each in candidates(tmp_path / "m.keras")}
    says = "recurrent_activation is hard_sigmoid of Keras 2, clip(0.2 x + 0.5, 0, 1); it runs back"
    assert notes["layers/plain/cell"] == ""
    assert notes["layers/encoder/cell"].startswith(says)
    assert notes["layers/inner/layers/decoder/cell"].startswith(says)


def lstm_of(name, more):
    return {
        "class_name": "LSTM",
        "config": {"name": name, "recurrent_activation": "sigmoid", **more},
    }


@pytest.mark.full
def test_a_saved_model_of_keras_2_names_its_hard_sigmoid(tmp_path):
    tf_keras = pytest.importorskip("tf_keras")
    layers = tf_keras.layers
    made = tf_keras.Sequential(
        [
            layers.LSTM(4, recurrent_activation="hard_sigmoid"),
            layers.Dense(8, name="lstm_head"),
        ]
    )
    made.build((None, None, 3))
    made.save(tmp_path / "saved", save_format="tf")
    (found,) = candidates(tmp_path / "saved")
    assert "hard_sigmoid of Keras 2" in found.note


@pytest.mark.parametrize("name", SAVE)
def test_a_dense_layer_named_lstm(name, tmp_path):
    """Files of Keras, and of objects, tell it from an LSTM of TensorFlow 1."""
    made = model(keras.layers.GRU(4), keras.layers.Dense(8, name="lstm_head"))
    SAVE[name](made, tmp_path / name)
    assert [each.kind for each in candidates(tmp_path / name)] == ["gru"]


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_keras_1(kind, rng, tmp_path):
    order = {"lstm": "icfo", "gru": "zrh"}[kind]
    shapes = {"W": (3, 4), "U": (4, 4), "b": (4,)}
    arrays = cells.normal(rng, **{f"l_{a}_{g}": shapes[a] for g in order for a in "WUb"})
    path = old_h5(tmp_path / "m.h5", "1.2.2", "l", arrays)
    target = {"lstm": "ifco", "gru": "zrh"}[kind]
    weights = {"lstm": LSTMWeights, "gru": GRUWeights}[kind].from_checkpoint(path)
    (cell,) = weights.cells
    got = [cell.kernel, cell.recurrent_kernel, cell.bias + cell.recurrent_bias]
    for array, letter in zip(got, "WUb", strict=True):
        want = np.concatenate([arrays[f"l_{letter}_{gate}"] for gate in target], -1)
        np.testing.assert_array_equal(array, want)
    assert getattr(weights, "reset_after", False) is False


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_cudnn_layers_of_keras_2(kind, rng, tmp_path):
    g = {"LSTM": 4, "GRU": 3}[kind]
    arrays = cells.normal(
        rng,
        **{"l/kernel:0": (3, g * 4), "l/recurrent_kernel:0": (4, g * 4), "l/bias:0": (g * 8,)},
    )
    path = old_h5(tmp_path / "m.h5", "2.2.4", "l", arrays)
    assert candidates(path)[0].family == f"Keras 2 CuDNN{kind}"
    cls = {"LSTM": LSTMWeights, "GRU": GRUWeights}[kind]
    got, want = cls.from_checkpoint(path).cells[0], cls.from_keras(list(arrays.values())).cells[0]
    np.testing.assert_array_equal(got.kernel, want.kernel)
    np.testing.assert_array_equal(got.recurrent_kernel, want.recurrent_kernel)


def test_safetensors(rng, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    arrays = cells.normal(
        rng,
        **{
            "encoder.weight_ih_l0": (16, 3),
            "encoder.weight_hh_l0": (16, 4),
            "encoder.out.weight": (4, 4),
            "cell.weight_ih": (12, 3),
            "cell.weight_hh": (12, 4),
            "cell.bias_ih": (12,),
            "cell.bias_hh": (12,),
            "rnn.weight_ih_l0": (4, 3),
            "rnn.weight_hh_l0": (4, 4),
        },
    )
    safetensors.save_file(arrays, tmp_path / "m.safetensors")
    found = {each.name: (each.kind, each.units) for each in candidates(tmp_path / "m.safetensors")}
    assert found == {"encoder": ("lstm", 4), "cell": ("gru", 4)}
    weights = GRUWeights.from_checkpoint(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(weights.to_torch()["weight_ih_l0"], arrays["cell.weight_ih"])
    lstm = LSTMWeights.from_checkpoint(tmp_path / "m.safetensors", forget_bias=1.0)
    np.testing.assert_array_equal(lstm.cells[0].bias, np.repeat([0, 1, 0, 0], 4))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("m.pb", b"\xff" * 9, "m.pb is no frozen graph"),
        ("m.pb", b"", "m.pb: the file is empty"),
        ("m.h5", b"no", "m.h5 cannot be read as an HDF5 file"),
        ("m.keras", b"no", "m.keras is no .keras file"),
        ("m.safetensors", b"no", "m.safetensors is no valid .safetensors file"),
        ("m.pkl", b"\x80\x04N.", "it is a pickle, which is code"),
        ("m.pt", b"PK\x03\x04", "Session.from_torch"),
        ("m.npz", b"PK\x03\x04", "numpy.load reads it"),
        ("m.onnx", b"no", "Session.from_onnx reads it"),
        ("m.tflite", b"no", "a .tflite file of TensorFlow Lite"),
        ("m.abc", b"no", "m.abc is of no known kind: pass a TensorFlow checkpoint"),
        ("m.index", b"no", "is damaged"),
    ],
)
def test_other_files(name, data, message, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises((ValueError, OSError), match=message):
        candidates(tmp_path / name)


@pytest.mark.parametrize("folder", ["corpus.index.v2", "x.data-00000-of-00001"])
@pytest.mark.parametrize("name", ["m.h5", "m.data-2.h5"])
def test_parts_of_paths(folder, name, arrays, tmp_path):
    """Only the end of a name says that a file is part of a checkpoint."""
    (tmp_path / folder).mkdir()
    scope = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"
    old = {"W_0": arrays["kernel"], "B": arrays["bias"]}
    assert_reads(written.hdf5(tmp_path / folder / name, written.under(scope, old)), arrays)


@pytest.mark.parametrize(
    "name", ["m.h5", "m.keras", "m.safetensors", "m.pb", "m.ckpt", "m.index", "checkpoint"]
)
def test_what_is_no_file(name, tmp_path):
    """To open a FIFO would wait for the other end."""
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match="Not a regular file"):
        candidates(tmp_path if name == "checkpoint" else tmp_path / name)
    if name == "m.safetensors":
        with pytest.raises(OSError, match="Not a regular file"):
            LSTMWeights.from_safetensors(tmp_path / name)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"neither a file .*ckpt nor a checkpoint .*index"):
        LSTMWeights.from_checkpoint(tmp_path / "m.ckpt")
    with pytest.raises(ValueError, match="neither a checkpoint nor a SavedModel"):
        LSTMWeights.from_checkpoint(tmp_path)


def test_links_and_bombs_are_refused(arrays, tmp_path):
    name = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"
    path = written.hdf5(tmp_path / "other.h5", {f"{name}/W_0": arrays["kernel"]})
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file[f"{name}/W_0"] = h5py.ExternalLink(str(path), f"{name}/W_0")
    assert candidates(tmp_path / "link.h5") == []
    with h5py.File(tmp_path / "large.h5", "w") as file:
        file.create_dataset(f"{name}/W_0", (2**20, 2**14), "f4", chunks=(64, 64))
    with pytest.raises(ValueError, match=r"W_0 of .*large\.h5 has 68719476736 bytes"):
        LSTMWeights.from_checkpoint(tmp_path / "large.h5")
    graph = tf.compat.v1.GraphDef()
    node = graph.node.add(name=f"{SCOPE}/kernel", op="Const")
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(1.0, shape=[2**20, 2**14]))
    (tmp_path / "m.pb").write_bytes(graph.SerializeToString())
    with pytest.raises(ValueError, match="larger than the file"):
        LSTMWeights.from_checkpoint(tmp_path / "m.pb")
    with zipfile.ZipFile(tmp_path / "m.keras", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", "[" * 10**6)
    with pytest.raises(ValueError, match=r"config.json is no JSON"):
        candidates(tmp_path / "m.keras")


def test_tensorflow_is_imported_for_its_files_only(tmp_path):
    model(keras.layers.LSTM(4)).save_weights(tmp_path / "m.weights.h5")
    program = (
        "import sys; from tf_lstm_ops.weights import LSTMWeights;"
        "assert LSTMWeights.from_checkpoint(sys.argv[1]).units == 4;"
        "assert not {'tensorflow', 'keras', 'torch'} & sys.modules.keys()"
    )
    folder = os.path.dirname(os.path.dirname(tf_lstm_ops.__file__))
    subprocess.run(
        [sys.executable, "-c", program, tmp_path / "m.weights.h5"],
        env={**os.environ, "PYTHONPATH": folder},
        check=True,
        timeout=60,
    )
