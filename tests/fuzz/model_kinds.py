"""Kinds of files: how they are written, changed, read and computed."""

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from checkpoints import cells, written
from old_files import keras_2_names, writer
from session import graphs, native_program, rtneural_models
from session import layers as session_layers
from session import session_file as f
from session.test_from_rtneural import guitarml
from tf_lstm_ops._cells import BY_MODE
from tf_lstm_ops.checkpoints import candidates
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import load_h5, load_h5_weights
from tf_lstm_ops.weights import class_of
from tf_lstm_ops.weights.checkpoint import of_candidate

from .draw import choose
from .file_changes import change_arrays, change_file, change_hdf5, change_json, change_zip
from .onnx_files import change_bytes, change_fields
from .own_programs import STEPS, outputs_of

Rng = np.random.Generator
Outputs = list[np.ndarray]
CALL_ERRORS = (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError)
CALL_ERRORS += (ZeroDivisionError, RuntimeError, tf.errors.OpError)
KERAS_2 = ("lstm", "stacked_hard_lstm", "bidirectional", "text", "hard_gru_after", "nested")
KERAS_2 += ("shared_and_several", "models_of_a_step")


class Kind(NamedTuple):
    """A kind of files.

    Attributes:
      write: writes files into a folder, and returns their paths.
      change: changes a file, and says how.
      read: the importer.
      compute: of what was read, arrays.
      peer: the key of the program in own_programs that reads such files.
      beside: from an unchanged file to another one that the program needs.
      asked: how often the program is asked, of the files that do not compute what they did.
      verify: in place of the program, checks what was read of a path.
    """

    write: Callable[[Path], list[Path]]
    change: Callable[[Rng, Path], str]
    read: Callable[[Path], Any]
    compute: Callable[[Any], Outputs]
    peer: str = ""
    beside: Callable[[Path], Path] = lambda path: path
    verify: Callable[[Any, Path], None] | None = None
    asked: float = 1.0


def forget() -> None:
    """The names and graphs of Keras."""
    keras.backend.clear_session()


# --- Keras --------------------------------------------------------------------------------------

PROGRAM = Path(keras_2_names.__file__).with_name("keras_2_files.py")


def _keras_2_files(folder: Path, pattern: str, names: tuple[str, ...] = KERAS_2) -> list[Path]:
    subprocess.run([sys.executable, PROGRAM, folder, *names], check=True, capture_output=True)
    return [folder / pattern.format(name) for name in names]


def _keras_1_files(folder: Path) -> list[Path]:
    from old_files.test_h5_files import keras_1_arrays

    found, rng = [], np.random.default_rng(0)
    for kind, gates in (("LSTM", "icfo"), ("GRU", "zrh")):
        config = {"name": "l", "trainable": True, "output_dim": writer.UNITS}
        config |= {"init": "glorot_uniform", "inner_init": "orthogonal", "activation": "tanh"}
        config |= {"inner_activation": "hard_sigmoid", "W_regularizer": None, "dropout_W": 0.0}
        config |= {"dropout_U": 0.0, "consume_less": "cpu", "stateful": False, "unroll": False}
        config |= {"return_sequences": True, "go_backwards": False, "input_dim": 3}
        config |= {"batch_input_shape": [None, STEPS, 3], "input_length": STEPS}
        dense = {"name": "d", "output_dim": 2, "init": "uniform", "activation": "linear"}
        dense |= {"bias": True, "input_dim": None, "W_constraint": None}
        layers = [{"class_name": kind, "config": config}]
        layers += [{"class_name": "TimeDistributedDense", "config": dense}]
        if kind == "GRU":
            layers[1]["class_name"] = "Dense"
        own = {"l": keras_1_arrays("l", gates, rng)}
        own["d"] = [("d_W", rng.normal(size=(writer.UNITS, 2))), ("d_b", rng.normal(size=2))]
        found.append(writer.write(folder / f"{kind}.h5", "1.2.2", layers, own))
    return found


def _keras_3_files(folder: Path) -> list[Path]:
    layers = keras.layers
    x = keras.Input((STEPS, 3))
    h = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x)
    models = {
        "chain": keras.Sequential(
            [keras.Input((STEPS, 3)), layers.LSTM(4, return_sequences=True), layers.GRU(3)]
        ),
        "graph": keras.Model(x, layers.Dense(2)(layers.Concatenate()([h, x]))),
    }
    paths = [folder / f"{name}.{end}" for name in models for end in ("h5", "keras")]
    for path in paths:
        models[path.stem].save(path)
    return paths


def _change_saved_model(rng: Rng, path: Path) -> str:
    files = [file for file in path.rglob("*") if file.is_file()]
    file = choose(rng, files)
    if file.name == "keras_metadata.pb":
        return change_file(rng, file, _metadata, _metadata_fields)
    if file.name == "saved_model.pb":
        return change_file(rng, file, _fields(saved_model_pb2.SavedModel))
    return change_file(rng, file, change_bytes)


def _message() -> Any:
    from tf_keras.protobuf.saved_metadata_pb2 import SavedMetadata

    return SavedMetadata


def _metadata(rng: Rng, data: bytes) -> tuple[str, bytes]:
    message = _message().FromString(data)
    node = message.nodes[0] if rng.random() < 0.7 else choose(rng, message.nodes)
    said, node.metadata = change_json(rng, node.metadata)
    return said, message.SerializeToString()


def _metadata_fields(rng: Rng, data: bytes) -> tuple[str, bytes]:
    return change_fields(rng, data, _message())


def _fields(kind: Any) -> Callable[[Rng, bytes], tuple[str, bytes]]:
    return lambda rng, data: change_fields(rng, data, kind)


def _change_h5(rng: Rng, path: Path) -> str:
    return change_file(rng, path, change_hdf5)


def _change_keras(rng: Rng, path: Path) -> str:
    return change_file(rng, path, change_hdf5 if path.suffix == ".h5" else change_zip)


def _read_weights(path: Path) -> Any:
    model = _model_of(path.name.replace("_weights", ""))
    load_h5_weights(model, path)
    return model


_MODELS: dict[str, Any] = {}


def _model_of(name: str) -> Any:
    return _MODELS[name]


def _weights_files(folder: Path) -> list[Path]:
    paths = _keras_2_files(folder, "{}_weights.h5", KERAS_2[:4])
    for path in paths:
        name = path.name.replace("_weights", "")
        _MODELS[name] = load_h5(path.with_name(name))
    return paths


# --- checkpoints --------------------------------------------------------------------------------


def _arrays(rng: Rng) -> dict[str, np.ndarray]:
    return {
        **written.under("rnn/multi_rnn_cell/cell_0/lstm_cell", cells.joined(rng)),
        **written.under("rnn/gru_cell", cells.random_gru(rng)),
    }


def _checkpoint_files(folder: Path) -> list[Path]:
    found = [
        written.checkpoint(folder / "m.ckpt", _arrays(np.random.default_rng(0))),
        written.checkpoint(folder / "old.ckpt", _arrays(np.random.default_rng(1)), version=1),
    ]
    return [*found, _with_graph(folder / "graph.ckpt", "resource")]


def _with_graph(path: Path, variables: str) -> Path:
    from checkpoints.test_forget_biases import graph_file

    tf.compat.v1.disable_control_flow_v2()
    arrays = {k: a.astype("f") for k, a in cells.joined(np.random.default_rng(2)).items()}
    return graph_file(path, arrays, 0.25, variables)


def _change_checkpoint(rng: Rng, path: Path) -> str:
    files = sorted(path.parent.glob(path.name + "*"))
    graph = [file for file in files if file.suffix == ".meta"]
    if graph and rng.random() < 0.5:
        return change_file(rng, graph[0], _fields(tf.compat.v1.MetaGraphDef))
    if rng.random() < 0.4:
        reader = tf.train.load_checkpoint(str(path))
        arrays = {k: reader.get_tensor(k) for k in reader.get_variable_to_shape_map()}
        said, arrays = change_arrays(rng, arrays)
        written.checkpoint(path, arrays, version=1 if path.name == "old.ckpt" else 2)
        return said
    return change_file(rng, choose(rng, files), change_bytes)


def _graph_files(folder: Path) -> list[Path]:
    plain = written.frozen_graph(folder / "m.pb", _arrays(np.random.default_rng(3)))
    return [plain, _with_graph(folder / "graph.pb", "")]


def _change_graph(rng: Rng, path: Path) -> str:
    return change_file(rng, path, _fields(tf.compat.v1.GraphDef))


def _weights_of(path: Path) -> dict[str, Any]:
    found = {}
    for candidate in candidates(path):
        try:
            kind = class_of(BY_MODE[candidate.kind])
            found[candidate.name] = of_candidate(kind, candidate)
        except (OSError, ValueError) as error:
            assert str(error).strip(), repr(error)
    return found


def _cells(found: dict[str, Any]) -> Outputs:
    return [
        np.asarray(array, "float64")
        for name in sorted(found)
        for cell in found[name].cells
        for array in cell.arrays().values()
    ]


def _verify_cells(found: dict[str, Any], path: Path) -> None:
    """The elements of all kernels are in the file."""
    values = np.concatenate([np.ravel(a).astype("float64") for a in _all_arrays(path)])
    for name, weights in found.items():
        for cell in weights.cells:
            for kind, array in cell.arrays().items():
                wide = np.asarray(array, "float64")
                inside = np.isin(wide, values) | np.isnan(wide) | ("bias" in kind)
                assert inside.all(), f"{kind} of {name} is not in the file"


def _all_arrays(path: Path) -> Outputs:
    """By the libraries of the formats."""
    if path.suffix == ".pb":
        graph = tf.compat.v1.GraphDef.FromString(path.read_bytes())
        nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
        return [
            tf.make_ndarray(n.attr["value"].tensor)
            for n in nodes
            if n.op == "Const" and n.attr["value"].tensor.dtype in (1, 2, 19, 14)
        ]
    if "ckpt" in path.name:
        reader = tf.train.load_checkpoint(str(path))
        return [reader.get_tensor(key) for key in reader.get_variable_to_shape_map()]
    found: Outputs = []
    source: Any = path
    if path.suffix == ".keras":
        with zipfile.ZipFile(path) as archive:
            source = io.BytesIO(archive.read("model.weights.h5"))

    def add(name: str, part: Any) -> None:
        if isinstance(part, h5py.Dataset) and part.dtype.kind in "fiu" and part.size < 1 << 20:
            found.append(part[()])

    with h5py.File(source, "r") as file:
        file.visititems(add)
    return found


# --- PyTorch ------------------------------------------------------------------------------------


def _state() -> dict[str, np.ndarray]:
    import torch

    torch.manual_seed(0)
    modules = {"lstm": torch.nn.LSTM(3, 4, 2, bidirectional=True), "head": torch.nn.Linear(8, 2)}
    return {
        f"{name}.{key}": value.numpy().copy()
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }


def _save(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    import torch
    from safetensors.torch import save_file

    tensors = {k: torch.from_numpy(np.array(a, order="C")) for k, a in arrays.items()}
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path, _use_new_zipfile_serialization=path.stem != "old")
    return path


def _torch_files(folder: Path) -> list[Path]:
    return [_save(folder / name, _state()) for name in ("a.pt", "old.pt", "a.safetensors")]


def _change_torch(rng: Rng, path: Path) -> str:
    if rng.random() < 0.5:
        said, arrays = change_arrays(rng, _state())
        _save(path, arrays)
        return said
    if path.suffix == ".safetensors":
        return change_file(rng, path, _header)
    return change_file(rng, path, *([change_zip] if path.stem == "a" else []))


def _header(rng: Rng, data: bytes) -> tuple[str, bytes]:
    end = 8 + int.from_bytes(data[:8], "little")
    said, text = change_json(rng, data[8:end].decode())
    return said, len(text).to_bytes(8, "little") + text.encode() + data[end:]


def _read_torch(path: Path) -> Session:
    return Session.from_torch(path, [("lstm", "LSTM"), ("head", "Linear")])


def _run_torch(session: Session) -> Outputs:
    n = session.inputs[0].shape[-1]
    if n * STEPS > 1 << 16:
        raise ValueError("the input is large")
    return [session((np.arange(2 * STEPS * n).reshape(2, STEPS, n) % 3).astype("f"))]


# --- JSON and sessions --------------------------------------------------------------------------


def _rtneural_files(folder: Path) -> list[Path]:
    rng = np.random.default_rng(0)
    paths = []
    for name in rtneural_models.NAMES:
        paths.append(folder / f"{name}.json")
        paths[-1].write_text((rtneural_models.FOLDER / f"{name}.json").read_text())
    for unit in ("LSTM", "GRU", "RNN"):
        paths.append(folder / f"guitarml_{unit}.json")
        paths[-1].write_text(json.dumps(guitarml(rng, unit, 1)))
    return paths


def _change_text(rng: Rng, data: bytes) -> tuple[str, bytes]:
    said, text = change_json(rng, data.decode())
    return said, text.encode()


def _change_rtneural(rng: Rng, path: Path) -> str:
    return change_file(rng, path, _change_text)


def _session_files(folder: Path) -> list[Path]:
    graphs_ = [native_program.write_graph(folder, n, w) for n in graphs.GRAPHS for w in f.WEIGHTS]
    return [native_program.write(folder, name) for name in session_layers.CHAINS] + graphs_


def _change_session(rng: Rng, path: Path) -> str:
    return change_file(rng, path, _words)


def _words(rng: Rng, data: bytes) -> tuple[str, bytes]:
    """Changes numbers of the header and of records."""
    changed = bytearray(data)
    for _ in range(choose(rng, [1, 1, 2, 4])):
        width = choose(rng, [4, 8])
        at = int(rng.integers(min(len(data), 4096) // width)) * width
        value = choose(rng, [0, 1, 2, 3, 7, 64, 2**20, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1])
        changed[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
    return "words", bytes(changed)


def _run_session(session: Session) -> Outputs:
    rng = np.random.default_rng(0)
    given = []
    for spec in session.inputs:
        sizes = [2, *(STEPS if n is None else n for n in spec.shape[1:])]
        if np.prod([float(n) for n in sizes]) > 1 << 16:
            raise ValueError("the input is large")
        given.append(rng.integers(0, 3, sizes).astype(spec.dtype))
    names = [spec.name for spec in session.inputs]
    both = dict(zip(names, given, strict=True)) if all(names) else given
    found = session(both if len(given) > 1 else given[0])
    found = [*found.values()] if isinstance(found, dict) else found
    return found if isinstance(found, list | tuple) else [found]


# ------------------------------------------------------------------------------------------------

KINDS = {
    "keras 1 h5": Kind(_keras_1_files, _change_h5, load_h5, outputs_of, "keras 2"),
    "keras 2 h5": Kind(
        lambda path: _keras_2_files(path, "{}.h5"), _change_h5, load_h5, outputs_of, "keras 2"
    ),
    "keras 2 weights": Kind(
        *(_weights_files, _change_h5, _read_weights, outputs_of, "keras 2 weights"),
        lambda path: path.with_name(path.name.replace("_weights", "")),
    ),
    "keras 2 keras": Kind(
        lambda path: _keras_2_files(path, "{}.keras", KERAS_2[:5]),
        *(_change_keras, load_h5, outputs_of, "keras 2"),
    ),
    "keras 2 folder": Kind(
        lambda path: _keras_2_files(path, "{}", ("stacked_hard_lstm", "text")),
        *(_change_saved_model, load_h5, outputs_of, "keras 2"),
    ),
    "keras 3": Kind(_keras_3_files, _change_keras, load_h5, outputs_of, "keras 3"),
    "arrays of keras": Kind(
        lambda path: [
            *_keras_2_files(path, "{}.h5", KERAS_2[:5]),
            *[path / f"{name}.keras" for name in KERAS_2[:5]],
            *_keras_3_files(path),
        ],
        *(_change_keras, _weights_of, _cells),
        verify=_verify_cells,
    ),
    "checkpoint": Kind(
        _checkpoint_files, _change_checkpoint, _weights_of, _cells, verify=_verify_cells
    ),
    "frozen graph": Kind(_graph_files, _change_graph, _weights_of, _cells, verify=_verify_cells),
    "torch": Kind(_torch_files, _change_torch, _read_torch, _run_torch, "torch", asked=0.3),
    "rtneural": Kind(
        *(_rtneural_files, _change_rtneural, Session.from_rtneural, _run_session, "rtneural"),
        asked=0.1,
    ),
    "session": Kind(_session_files, _change_session, Session.load, _run_session),
}
