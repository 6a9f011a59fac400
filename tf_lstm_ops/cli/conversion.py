"""Which files ``tf-lstm-ops convert`` reads and writes. It imports nothing that takes long."""

from __future__ import annotations

import argparse
from pathlib import Path

from tf_lstm_ops.cli import CommandError, UsageError, kinds
from tf_lstm_ops.files.kinds import kind_of

TARGETS = (".keras", ".session", ".onnx")


def check(given: argparse.Namespace) -> None:
    """Checks the arguments.

    Args:
      given: those of the command line. ``is_onnx`` becomes whether the source is an ONNX file,
        ``loads`` whether TensorFlow is needed.

    Raises:
      UsageError: this is no conversion of this command.
      CommandError: the folder of the new file is missing.
    """
    source, target = given.source, given.target
    if target.suffix not in TARGETS:
        raise UsageError(f"OUT must end in .keras, .session or .onnx but is {target}")
    for option, value, default, kind in (
        ("--to", given.to, "fused", ".keras"),
        ("--weights", given.weights, "float32", ".session"),
    ):
        if value != default and target.suffix != kind:
            raise UsageError(f"{option} {value} is for a {kind} file, but OUT is {target}")
    given.is_onnx = kind_of(source) == "onnx"
    _check_source(source, target, given.is_onnx)
    if given.modules and given.is_onnx:
        raise UsageError("--import has no effect on an .onnx file")
    given.loads = not given.is_onnx
    if not target.absolute().parent.is_dir():
        raise CommandError(f"the folder of {target} does not exist")
    if target.is_dir():
        raise CommandError(f"{target} is a folder")


def _check_source(source: Path, target: Path, is_onnx: bool) -> None:
    if kind_of(source) == "session":
        raise UsageError(f"{source} is a session already, and nothing else can be made of it")
    if not source.exists():
        raise UsageError(f"{source} does not exist")
    require_other(source, target)
    if is_onnx:
        if target.suffix != ".session":
            raise UsageError(f"an .onnx file becomes a .session file, but OUT is {target}")
    elif kinds.kind_of(source) == "saved_model":
        raise UsageError(
            f"{source} is a SavedModel, which has no Keras layers: give the .keras or .h5 file. If "
            f"Keras 2 wrote it, tf_lstm_ops.keras.load_h5({str(source)!r}) makes a model of it"
        )


def require_other(source: Path, target: Path) -> None:
    """Refuses to write the file that is read.

    Args:
      source: the path that is read.
      target: the file to write.

    Raises:
      UsageError: they are the same file, also by links.
    """
    if source.exists() and target.exists() and target.samefile(source):
        raise UsageError(f"the file to write is the one to read, {source}")
