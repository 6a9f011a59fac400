"""Random calls of the importers, and that the fuzzer sees what it is for."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from tf_lstm_ops._arrays import as_array
from tf_lstm_ops.files import safetensors as safetensors_files
from tf_lstm_ops.files.contents import Lazy
from tf_lstm_ops.onnx_graph import load
from tf_lstm_ops.weights import LSTMWeights, block_cell, cudnn, keras, onnx

from . import importers
from .loop import Counts

SEED, CALLS = 9, range(400)
from_output_major, from_torch = onnx.from_output_major, LSTMWeights.from_torch


def test_four_hundred_calls():
    """Of each importer right and wrong ones."""
    for package in "safetensors", "onnx":
        pytest.importorskip(package, reason="reads the files")
    counts = Counts()
    for number in CALLS:
        importers.run_one(SEED, number, counts)
    assert counts["accepted"] + counts["refused"] == len(CALLS)
    assert min(counts[name] for name in (*importers.DRAWS, "right", "accepted", "refused")) > 20


def test_a_call_depends_on_its_number_only():
    def drawn(number):
        right, changed = importers.draw(np.random.default_rng([3, number]))
        return right.name, changed and re.sub("0x[0-9a-f]+", "", changed.text)

    first = [drawn(number) for number in range(40)]
    assert [drawn(number) for number in reversed(range(40))] == first[::-1]


# --- what it must see --------------------------------------------------------------------------


def gates_as_they_are(arrays, source, target, peephole=None):
    return from_output_major(arrays, source, source, peephole)


def first_layer_only(cls, *arguments, **options):
    weights = from_torch(*arguments, **options)
    return type(weights)(weights.cells[: weights.directions], weights.directions)


def without_wrapping(cls, path, *, prefix=""):
    safetensors_files.package().numpy.safe_open(path, framework="np")
    return cls.from_torch(Lazy(safetensors_files.read(path).arrays), prefix=prefix)


NO_ERROR_OF_PROTOBUF = SimpleNamespace(
    import_module=lambda name: SimpleNamespace(DecodeError=KeyError)
)
BROKEN = {
    "gates in another order": (onnx, "from_output_major", gates_as_they_are, "kernel of layers[0]"),
    "lost layers": (LSTMWeights, "from_torch", classmethod(first_layer_only), "cells, not"),
    "no copy": (keras, "as_numbers", lambda name, value: np.asarray(value), "shares memory"),
    "no check of a shape": (cudnn, "require_shape", lambda *_: None, "no refusal in words"),
    "no check of elements": (block_cell, "as_numbers", lambda _, a, rank=0: as_array(a), "is not"),
    "an error of protobuf": (load, "importlib", NO_ERROR_OF_PROTOBUF, "words: DecodeError"),
    "an error of safetensors": (
        LSTMWeights,
        "from_safetensors",
        classmethod(without_wrapping),
        "no refusal in words: SafetensorError",
    ),
}


@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_importer_is_seen(name, monkeypatch):
    for package in "safetensors", "onnx":
        pytest.importorskip(package, reason="reads the files")
    owner, attribute, replacement, message = BROKEN[name]
    monkeypatch.setattr(owner, attribute, replacement)
    seen = []
    for number in CALLS:
        try:
            importers.run_one(SEED, number, Counts())
        except AssertionError as error:
            seen.append(str(error))
        if seen and message in seen[-1]:  # later calls may take all memory without the check
            return
    raise AssertionError(seen[:5])
