"""Reads what ``tf-lstm-ops doctor`` examines: files with Keras models, and SavedModels."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras

from tf_lstm_ops import _tf_private
from tf_lstm_ops.cli import CommandError, UsageError, messages
from tf_lstm_ops.export.saved_model import nodes_of
from tf_lstm_ops.files import hdf5, keras_zip
from tf_lstm_ops.files.contents import major
from tf_lstm_ops.keras import load_h5
from tf_lstm_ops.op_definitions import NAMESPACE

_LIMIT = 300  # seconds
# What TensorFlow says of an op that has no kernel for the CPU.
_NO_KERNEL = re.compile(r"OpKernel|Cannot assign a device|not registered")

# How the names of TensorFlow's recurrent ops begin.
_BLOCK_CELLS = ("BlockLSTM", "LSTMBlockCell")
_RECURRENT = ("CudnnRNN", *_BLOCK_CELLS, "GRUBlockCell")
_LOOPS = ("While", "StatelessWhile")
# How the scopes begin in which plain ops replace an op of this package.
_OWN_SCOPE = "tf_lstm_ops_"
# What Keras says of a class or function that it does not know, for .keras files and .h5 files.
_UNKNOWN = re.compile(r"(?:Could not locate (?:class|function)|Unknown [a-z ]+:) '([^']+)'")


def import_modules(names: Sequence[str]) -> None:
    """Imports modules that register classes, also from the current folder.

    Args:
      names: the arguments of --import.

    Raises:
      CommandError: one of them cannot be imported.
    """
    if names and (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # a module of the user's may raise anything
            raise CommandError(f"--import {name}: {type(error).__name__}: {error}") from error


def old_version(path: Path) -> str | None:
    """The version of Keras that wrote a file, if `load` reads it by ``load_h5``.

    Args:
      path: a .keras or .h5 file.

    Returns:
      Such as "2.2.4-tf"; None for other files than those of Keras 1 and 2.
    """
    version = keras_zip.keras_version(path) or hdf5.keras_version(path)
    return None if version is None or major(version) >= 3 else version


def load(path: Path, compiled: bool = False) -> Any:
    """Loads a Keras model from a file.

    Args:
      path: a .keras or .h5 file.
      compiled: whether to compile it as the file says. Files of Keras 1 and 2 do not say it.

    Returns:
      The model.

    Raises:
      CommandError: it cannot be loaded.
    """
    if (version := old_version(path)) is not None:
        try:
            return load_h5(path)
        except Exception as error:  # a class of the user's may raise anything
            raise CommandError(
                f"Keras {version} wrote {path}, and tf_lstm_ops.keras.load_h5 cannot load it: "
                f"{messages.one_line(error, 600)}"
            ) from error
    try:
        return keras.models.load_model(path, compile=compiled)
    except Exception as error:  # a class of the user's may raise anything
        raise CommandError(f"Keras cannot load {path}: {_why(error, path)}") from error


def _why(error: Exception, path: Path) -> str:
    """Why Keras cannot load a file, and what to do."""
    text = messages.cause(error)
    if "Python lambda" in text or messages.BYTE_CODE.search(text):
        return (
            "it contains a Python lambda, which Keras does not load because it can run any code. "
            "Use a function with a name, decorate it with "
            "keras.saving.register_keras_serializable, save the model again, and name the "
            "function's module with --import MODULE"
        )
    if not (unknown := _UNKNOWN.search(text)):
        return messages.one_line(error, 600)
    if path.suffix != ".keras" and unknown[1] in _keras_ops():
        return (
            f"it has Keras' op {unknown[1]}, which Keras does not load from an .h5 file. Make the "
            "model in Python, call its load_weights with this file, and save it as a .keras file"
        )
    return (
        f"it does not know {unknown[1]}. Decorate it with "
        "keras.saving.register_keras_serializable, and name its Python module with --import MODULE"
    )


def _keras_ops() -> set[str]:
    """The classes of Keras' ops, which are no layers; also those of Keras 2."""
    ops = keras.Operation.__subclasses__()
    names = {op.__name__ for op in ops if op.__module__.startswith("keras.")}
    return names | {"TFOpLambda", "SlicingOpLambda"}


def saved_model(path: Path) -> dict[str, Any]:
    """Lists the recurrent ops of a SavedModel, and whether other processes can load and run it.

    Args:
      path: the folder.

    Returns:
      The part "saved_model" of the document of ``tf-lstm-ops doctor --json``.

    Raises:
      UsageError: the file in the folder is no SavedModel.
    """
    try:
        nodes = list(nodes_of(path))
    except Exception as error:  # of protobuf, which has no public class for it
        raise UsageError(f"{path} is no SavedModel: {error}") from error
    ops = sorted({node.op for node in nodes})
    own = [op for op in ops if op.startswith(NAMESPACE)]
    trial = _attempt(path)
    return {
        "own_ops": own,
        "recurrent_ops": [op for op in ops if op.startswith(_RECURRENT)],
        "loops": [op for op in ops if op in _LOOPS],
        "loads_without_package": trial.loads,
        "runs_on_cpu_without_package": trial.runs,
        "error_without_package": trial.reason,
        "changes": list(_changes(path, ops, nodes)),
    }


def _changes(path: Path, ops: Sequence[str], nodes: Sequence[Any]) -> Iterator[str]:
    if (path / "keras_metadata.pb").is_file():
        yield f"Keras 2 wrote it: tf_lstm_ops.keras.load_h5({str(path)!r}) makes a model of it"
    if unknown := [op for op in ops if _tf_private.op_definition(op) is None]:
        yield f"load the library of {', '.join(unknown)} before the model"
    if block_cells := [op for op in ops if op.startswith(_BLOCK_CELLS)]:
        names = ", ".join(block_cells)
        yield f"call tf_lstm_ops.stock.override() first: it has faster kernels of {names}"
    if any(map(_may_be_recurrent, nodes)):
        yield (
            "its loops may be stock recurrent layers, which are slow. If so, convert the model "
            "with tf_lstm_ops.keras.convert_model, then export it again"
        )


def _may_be_recurrent(node: Any) -> bool:
    """Whether a node is a loop, and neither a composite of this package nor `tf.map_fn`."""
    if node.op not in _LOOPS or _OWN_SCOPE in node.name:
        return False
    return re.search(r"(^|/)map(_\d+)?/while(_\d+)?$", node.name) is None


class Trial(NamedTuple):
    """What became of a SavedModel.

    Attributes:
      loads: whether ``tf.saved_model.load`` takes it.
      runs: whether its signatures run on the CPU; None: that is not known, as one of them raises
        another error than that an op has no kernel.
      reason: the error, in one line; None without one.
    """

    loads: bool
    runs: bool | None
    reason: str | None


def _attempt(path: Path) -> Trial:
    """Loads a SavedModel and runs its signatures on zeros, in a process without this package."""
    program = f"from __future__ import annotations\n{inspect.getsource(_child)}\n_child()"
    command = [sys.executable, "-c", program, str(path.resolve())]
    hidden = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **hidden},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT,
        )
    except subprocess.TimeoutExpired:
        return Trial(True, None, f"it took more than {_LIMIT} seconds")
    return _read(done)


def _read(done: subprocess.CompletedProcess[str]) -> Trial:
    """What the process has found."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {"loads": False}
    error = found.get("error", f"the process ended with {done.returncode}")
    if error is None:
        return Trial(True, True, None)
    reason = messages.one_line(RuntimeError(error))
    if not found["loads"]:
        return Trial(False, False, reason)
    return Trial(True, False if _NO_KERNEL.search(error) else None, reason)


def _child() -> None:
    """The process: prints a document after it has loaded the file, and one at the end.

    It is run from its source alone, so that it imports nothing of this package.
    """
    import json
    import sys

    sys.path[:] = [path for path in sys.path if path]  # no module of the current folder
    import tensorflow as tf

    def zeros(spec: tf.TensorSpec) -> tf.Tensor:
        sizes = spec.shape.as_list()
        shape = [(16 if k else 1) if size is None else size for k, size in enumerate(sizes)]
        return tf.fill(shape, "") if spec.dtype == tf.string else tf.zeros(shape, spec.dtype)

    loads = False
    error: str | None = "it has no signatures"
    try:
        model = tf.saved_model.load(sys.argv[1])
        loads = True
        print("\n" + json.dumps({"loads": True}), flush=True)
        for function in model.signatures.values():
            function(**{k: zeros(v) for k, v in function.structured_input_signature[1].items()})
            error = None
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"
    print("\n" + json.dumps({"loads": loads, "error": error}), flush=True)
