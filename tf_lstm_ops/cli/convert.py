"""``tf-lstm-ops convert``: a model with layers of this package, a session or an ONNX file."""

from __future__ import annotations

import argparse
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tf_lstm_ops import _files
from tf_lstm_ops.cli import CommandError, messages, output

_AFTER = {
    ".keras": 'keras.models.load_model("{}")',
    ".session": 'tf_lstm_ops.inference.Session.load("{}") in Python, tf_lstm_ops_session_open in C',
    ".onnx": 'onnxruntime.InferenceSession("{}")',
}


def run(arguments: argparse.Namespace) -> int:
    """Converts a file, and prints what was written.

    Args:
      arguments: those of the command line.

    Returns:
      0.

    Raises:
      CommandError: the file cannot be read, converted or written.
    """
    source, target = arguments.source, arguments.target
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            words = _converter(arguments)(arguments)
    except CommandError:
        raise
    except Exception as error:  # a layer of the user's may raise anything
        reason = messages.one_line(error, 2000)
        raise CommandError(f"{source} cannot become {target}: {reason}") from error
    finally:
        output.progress("")
    for text in dict.fromkeys(str(each.message) for each in said if _is_of_ours(each)):
        print("\n".join(output.wrapped("note  ", " ".join(text.split()))))
    size = target.stat().st_size
    print("\n".join(output.wrapped("", f"{target} was written ({_bytes(size)}): {words}")))
    words = _AFTER[target.suffix].format(target)
    if target.suffix == ".keras" and _needs_package(target):
        words += ", after import tf_lstm_ops"
    print("\n".join(output.wrapped("next  ", words)))
    return 0


def _needs_package(file: Path) -> bool:
    """Whether a .keras file has a layer or a function of this package."""
    with zipfile.ZipFile(file) as archive:
        return b'"tf_lstm_ops>' in archive.read("config.json")


def _converter(arguments: argparse.Namespace) -> Callable[[argparse.Namespace], str]:
    if arguments.is_onnx:
        return _session_of_onnx
    return {".keras": _keras, ".session": _session, ".onnx": _onnx}[arguments.target.suffix]


def _is_of_ours(warning: warnings.WarningMessage) -> bool:
    """Whether this package warns, and not Keras or TensorFlow."""
    return issubclass(warning.category, UserWarning) and "tf_lstm_ops" in warning.filename


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size:,} bytes"


def _loaded(arguments: argparse.Namespace, is_trained_on: bool = False) -> Any:
    """The Keras model of the file; compiled if it is trained on and Keras can compile it."""
    from tf_lstm_ops.cli import doctor_model

    doctor_model.import_modules(arguments.modules)
    output.progress(f"loads {arguments.source}")
    if is_trained_on:
        try:
            with output.silence():
                return doctor_model.load(arguments.source, compiled=True)
        except CommandError as error:  # perhaps of a loss; the load below raises the others
            warnings.warn(f"compile the new model; that of the file is not: {error}", stacklevel=2)
    with output.silence():
        return doctor_model.load(arguments.source)


def _keras(arguments: argparse.Namespace) -> str:
    from tf_lstm_ops.cli import doctor_layers, doctor_model
    from tf_lstm_ops.keras import convert_model

    model = _loaded(arguments, is_trained_on=True)
    output.progress("converts the layers")
    converted = convert_model(model, to=arguments.to)
    before, after = map(doctor_layers.count_of_ours, (model, converted))
    with tempfile.TemporaryDirectory() as folder, output.silence():
        file = Path(folder, "model.keras")
        converted.save(file)
        _files.write(arguments.target, file.read_bytes())
    if arguments.to == "stock":
        words = f"recurrent layers of this package that became stock layers: {before}"
    elif (version := doctor_model.old_version(arguments.source)) is not None:
        words = f"the model of a file of Keras {version}; layers of this package: {after}"
    elif after == before:
        words = "no layer to replace, so the model is as it was"
    else:
        words = f"stock layers that became layers of this package: {after - before}"
    optimizer = converted.optimizer if converted.compiled else None
    if optimizer is not None and optimizer.built:
        words += ". The file has the variables of the optimizer, so that training can go on"
    return words


def _session(arguments: argparse.Namespace) -> str:
    from tf_lstm_ops.inference import Session

    model = _loaded(arguments)
    output.progress("makes the session")
    return _saved(lambda: Session(model, weights=arguments.weights), arguments)


def _session_of_onnx(arguments: argparse.Namespace) -> str:
    from tf_lstm_ops.inference import Session

    output.progress(f"reads {arguments.source} and compares the session with it")
    return _saved(lambda: Session.from_onnx(arguments.source, weights=arguments.weights), arguments)


def _saved(make: Callable[[], Any], arguments: argparse.Namespace) -> str:
    with warnings.catch_warnings():  # the words below say it
        warnings.filterwarnings("ignore", "weights='int8' changes no layer")
        session = make()
    session.save(arguments.target)
    kinds = [each.type for each in session.weights]
    words, count = f"a session with {arguments.weights} weights", kinds.count(arguments.weights)
    if arguments.weights != "float32":
        words += f" in {count} of {len(kinds)} layers"
        words += "; the others stay float32 by their size" if count < len(kinds) else ""
    note = messages.no_stream(session)
    return f"{words}. Note: {note}" if note else words


def _onnx(arguments: argparse.Namespace) -> str:
    from tf_lstm_ops import export

    model = _loaded(arguments)
    output.progress("writes the ONNX file and compares it with the model")
    with output.silence():
        export.onnx(model, arguments.target)
    return "an ONNX file, compared with the model"
