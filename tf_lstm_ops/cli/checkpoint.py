"""``tf-lstm-ops checkpoint``: the recurrent layers in a file of trained weights."""

from __future__ import annotations

import argparse
import dataclasses
import io
from pathlib import Path
from typing import Any

import numpy as np

from tf_lstm_ops import _cells, _files, checkpoints
from tf_lstm_ops.checkpoints import Candidate
from tf_lstm_ops.cli import CommandError, messages, output
from tf_lstm_ops.weights import class_of
from tf_lstm_ops.weights.checkpoint import of_candidate

_HEAD = ("name", "kind", "layers", "directions", "I", "H", "P", "dtype", "forget bias", "family")


def run(arguments: argparse.Namespace) -> int:
    """Lists the candidates of a file, or writes one to another file.

    Args:
      arguments: those of the command line.

    Returns:
      0, or 1 if the file has no candidates.

    Raises:
      CommandError: the file cannot be read or written, or several candidates fit.
    """
    try:
        with output.json_only(arguments.json):
            document = _written(arguments) if arguments.to else _listed(arguments)
    except (ImportError, OSError, ValueError) as error:
        raise CommandError(messages.one_line(error, 2000)) from error
    if arguments.json:
        output.print_json(document)
    else:
        print("\n".join(_lines(document)))
    return 0 if document["candidates"] else 1


def _listed(arguments: argparse.Namespace) -> dict[str, Any]:
    """The document of ``tf-lstm-ops checkpoint --json``."""
    found = [
        _document(candidate)
        for candidate in checkpoints.candidates(arguments.path)
        if arguments.layer is None or checkpoints.is_named(candidate.name, arguments.layer)
    ]
    return {"path": str(arguments.path), "candidates": found, "written": None}


def _written(arguments: argparse.Namespace) -> dict[str, Any]:
    """The same, after a candidate was written."""
    candidate = checkpoints.chosen(arguments.path, ("lstm", "gru"), arguments.layer)
    kind = class_of(_cells.BY_MODE[candidate.kind])
    weights = of_candidate(kind, candidate, arguments.forget_bias)
    if arguments.to.suffix == ".safetensors":
        weights.to_safetensors(arguments.to)
    else:
        _save_arrays(weights, arguments.to)
    added = candidate.forget_bias if arguments.forget_bias is None else arguments.forget_bias
    return {
        "path": str(arguments.path),
        "candidates": [_document(candidate)],
        "written": {"path": str(arguments.to), "forget_bias": added},
    }


def _save_arrays(weights: Any, path: Path) -> None:
    """A .npz file of the canonical arrays."""
    arrays: dict[str, Any] = {
        f"cells_{k}_{name}": array
        for k, cell in enumerate(weights.cells)
        for name, array in cell.arrays().items()
    }
    reset_after = getattr(weights, "reset_after", None)
    if reset_after is not None:
        arrays["reset_after"] = np.array(reset_after)
    content = io.BytesIO()
    np.savez(content, directions=np.array(weights.directions), **arrays)
    _files.write(str(path), content.getvalue())


def _document(candidate: Candidate) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(candidate) if field.name != "cells"]
    return {name: getattr(candidate, name) for name in names}


def _lines(document: dict[str, Any]) -> list[str]:
    if not document["candidates"]:
        return ["There is no LSTM or GRU of a known family."]
    keys = ("layers", "directions", "input_size", "units", "projection_size", "dtype")
    rows = [
        (
            each["name"],
            each["kind"],
            *("-" if each[key] is None else str(each[key]) for key in keys),
            f"+{each['forget_bias']:g}" if each["kind"] == "lstm" else "-",
            each["family"],
        )
        for each in document["candidates"]
    ]
    lines = output.columns([_HEAD, *rows])
    for each in document["candidates"]:
        lines += [f"{each['name']}: {each[key]}." for key in ("note", "problem") if each[key]]
    if written := document["written"]:
        added = f", with {written['forget_bias']:g} added to the bias of the forget gate"
        is_lstm = document["candidates"][0]["kind"] == "lstm"
        lines.append(f"{written['path']} was written{added if is_lstm else ''}.")
    return lines
