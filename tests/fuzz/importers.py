"""Calls of the importers of `tf_lstm_ops.weights`, with right and wrong arguments and files.

A right call must give the weights that its arguments were written from. A wrong one must be refused
by a statement `raise` of the package, with a ValueError. Where both are right, the imported weights
must be those of the arguments.
"""

import dataclasses
import functools
import mmap
import resource
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tf_lstm_ops
from tf_lstm_ops.weights import CellWeights, GRUWeights, LSTMWeights, RNNWeights
from tf_lstm_ops.weights.torch import by_torch_names
from weights.formats import KINDS, Array, Shape, Weights, assert_equal, random_weights

from . import loop, onnx_files, tensor_files
from .draw import choose, happens
from .loop import Counts
from .mutations import Import, Mutation, is_array, mutate, mutate_option

PACKAGE = Path(tf_lstm_ops.__file__).resolve().parent
LONGEST_TEXT = 600
DTYPES = ["float64", "float64", "float32", "float16", "bfloat16"]


def draw_weights(rng: np.random.Generator, kind: str, **fixed: Any) -> Weights:
    shape = Shape(
        kind,
        layers=fixed.get("layers", choose(rng, [1, 1, 2, 3])),
        directions=fixed.get("directions", choose(rng, [1, 2])),
        num_proj=choose(rng, [0, 0, 1, 2]) if fixed.get("projection") and kind == "lstm" else 0,
        peephole=bool(fixed.get("peephole") and kind == "lstm" and happens(rng, 0.4)),
        inputs=int(rng.integers(1, 5)),
        units=int(rng.integers(3, 6)),
    )
    return random_weights(shape, rng, np.dtype(choose(rng, DTYPES)))


def with_arrays(weights: Weights, change: Callable[[CellWeights], dict[str, Any]]) -> Weights:
    cells = tuple(dataclasses.replace(cell, **change(cell)) for cell in weights.cells)
    return dataclasses.replace(weights, cells=cells)


def one_bias(weights: Weights) -> Weights:
    """As a format with one bias holds them."""
    return with_arrays(weights, lambda cell: {"bias": np.zeros_like(cell.bias)})


def draw_torch(rng: np.random.Generator, kind: str) -> Import:
    weights, prefix = draw_weights(rng, kind, projection=True), choose(rng, ["", "encoder."])

    def write(weights: Weights) -> dict[str, Any]:
        return {prefix + name: array for name, array in weights.to_torch().items()}

    arrays = write(weights)
    if prefix:
        arrays["head.weight"] = choose(rng, [None, "text", np.zeros(2)])
    return Import("torch", KINDS[kind].from_torch, write, arrays, {"prefix": prefix}, weights)


def draw_keras(rng: np.random.Generator, kind: str) -> Import:
    weights = draw_weights(rng, kind, projection=True, peephole=True)
    if kind == "gru" and happens(rng, 0.3):
        zero = with_arrays(weights, lambda c: {"recurrent_bias": np.zeros_like(c.bias)})
        weights = dataclasses.replace(zero, reset_after=False)
    elif kind != "gru":
        weights = one_bias(weights)

    def write(weights: Weights) -> dict[str, Any]:
        layers = [weights.to_keras()] if weights.num_layers == 1 else weights.to_keras()
        names = [f"source[{k}]" for k in range(len(layers))] if len(layers) > 1 else ["source"]
        return {
            f"{name}[{k}]": array
            for name, layer in zip(names, layers, strict=True)
            for k, array in enumerate(layer)
        }

    def read(arrays: dict[str, Any]) -> Weights:
        found: dict[str, list[Any]] = {}
        for name, array in arrays.items():
            found.setdefault(name.rpartition("[")[0], []).append(array)
        layers = list(found.values())
        return KINDS[kind].from_keras(layers if "source" not in found else layers[0])

    return Import("keras", read, write, write(weights), {}, weights)


def draw_cudnn(rng: np.random.Generator, kind: str) -> Import:
    weights = draw_weights(rng, kind, projection=True)
    options = {
        "input_size": weights.input_size,
        "units": weights.units,
        "num_layers": weights.num_layers,
        "directions": weights.directions,
        "projection_size": weights.projection_size,
        "input_mode": "linear_input",
    }

    def read(arrays: dict[str, Any], **options: Any) -> Weights:
        return KINDS[kind].from_cudnn(**arrays, **options)

    def write(weights: Weights) -> dict[str, Any]:
        return {"params": weights.to_cudnn()}

    return Import("cudnn", read, write, write(weights), options, weights)


def draw_onnx(rng: np.random.Generator, kind: str) -> Import:
    weights = draw_weights(rng, kind, layers=1, peephole=True)
    options = {}
    if isinstance(weights, GRUWeights):
        options["linear_before_reset"] = choose(rng, [0, 1])
        weights = dataclasses.replace(weights, reset_after=bool(options["linear_before_reset"]))

    def read(arrays: dict[str, Any], **options: Any) -> Weights:
        return KINDS[kind].from_onnx(**arrays, **options)

    def write(weights: Weights) -> dict[str, Any]:
        return {k: v for k, v in weights.to_onnx()._asdict().items() if v is not None}

    return Import("onnx", read, write, write(weights), options, weights, ("B", "P"))


def draw_mpsgraph(rng: np.random.Generator, kind: str) -> Import:
    weights = one_bias(draw_weights(rng, "lstm", layers=1, peephole=True))
    if weights.cells[0].peephole is not None:
        rows = np.array([[1], [1], [0]], weights.cells[0].bias.dtype)
        weights = with_arrays(weights, lambda cell: {"peephole": cell.peephole * rows})
    options = {"forget_gate_last": choose(rng, [False, True])}

    def read(arrays: dict[str, Any], **options: Any) -> Weights:
        return LSTMWeights.from_mpsgraph(**arrays, **options)

    def write(weights: Weights) -> dict[str, Any]:
        found = weights.to_mpsgraph(**options)._asdict()
        return {k: v for k, v in found.items() if v is not None}

    optional = ("input_weight", "bias", "peephole")
    return Import("mpsgraph", read, write, write(weights), options, weights, optional)


def draw_block_cell(rng: np.random.Generator, kind: str) -> Import:
    options = {
        "gate_order": choose(rng, ["ICFO", "IFCO"]),
        "forget_bias": choose(rng, [0.0, 1.0, 0.5]),
    }
    weights = one_bias(draw_weights(rng, "lstm", layers=1, directions=1, peephole=True))
    np.split(weights.cells[0].bias, 4)[1][:] = options["forget_bias"]

    def read(arrays: dict[str, Any], **options: Any) -> Weights:
        return LSTMWeights.from_block_cell(**arrays, **options)

    def write(weights: Weights) -> dict[str, Any]:
        found = weights.to_block_cell(**options)._asdict()
        no_peepholes = weights.cells[0].peephole is None
        return {k: v for k, v in found.items() if k in "wb" or not no_peepholes}

    return Import("block_cell", read, write, write(weights), options, weights)


@functools.cache
def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def draw_safetensors(rng: np.random.Generator, kind: str) -> Import:
    weights = draw_weights(rng, kind, projection=True, peephole=True)
    path, prefix = Path(folder().name) / "weights.safetensors", choose(rng, ["", "encoder."])

    def write(weights: Weights) -> dict[str, Any]:
        return {prefix + name: array for name, array in by_torch_names(weights)}

    def read(arrays: dict[str, Any], data: bytes = b"", **options: Any) -> Weights:
        path.unlink(missing_ok=True)  # another file: the last one may be mapped still
        path.write_bytes(data)
        return KINDS[kind].from_safetensors(path, **options)

    arrays = write(weights)
    options = {"prefix": prefix, "data": tensor_files.to_bytes(arrays)}
    return Import("safetensors", read, write, arrays, options, weights)


def draw_onnx_file(rng: np.random.Generator, kind: str) -> Import:
    weights = draw_weights(rng, kind, peephole=True)
    path = Path(folder().name) / "m.onnx"

    def write(weights: Weights) -> dict[str, Any]:
        return {}

    def read(arrays: dict[str, Any], data: bytes) -> Weights:
        path.write_bytes(data)
        return onnx_files.read(KINDS[kind], path)

    options = {"data": onnx_files.to_bytes(rng, weights)}
    return Import("onnx_file", read, write, {}, options, weights)


DRAWS = {
    "torch": draw_torch,
    "keras": draw_keras,
    "cudnn": draw_cudnn,
    "onnx": draw_onnx,
    "mpsgraph": draw_mpsgraph,
    "block_cell": draw_block_cell,
    "safetensors": draw_safetensors,
    "onnx_file": draw_onnx_file,
}
FILES = {"safetensors": tensor_files.mutate, "onnx_file": onnx_files.mutate}
OPTIONS = {"torch": 0.1, "cudnn": 0.5, "block_cell": 0.2}  # how often one of them is changed


def draw(rng: np.random.Generator) -> tuple[Import, Mutation | None]:
    """A right call, and how it is changed, None for not at all."""
    right = DRAWS[choose(rng, list(DRAWS))](rng, choose(rng, list(KINDS)))
    if happens(rng, 0.2):
        return right, None
    if right.name in FILES:
        return right, FILES[right.name](rng, right)
    if happens(rng, OPTIONS.get(right.name, 0)):
        return right, mutate_option(rng, right)
    return right, mutate(rng, right)


def check(right: Import, changed: Mutation | None) -> bool:
    """Runs a call and checks what comes of it. Returns whether it was accepted.

    Raises:
      AssertionError: the call was accepted or refused wrongly, or the weights are wrong.
    """
    arrays, options = (changed or right).arrays, (changed or right).options
    try:
        got = right.read(arrays, **options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        _check_refusal(error, changed)
        return False
    refused = changed is not None and changed.verdict == "refused"
    assert not refused, f"a wrong call was accepted: {changed.text}"
    assert type(got) in (LSTMWeights, GRUWeights, RNNWeights)
    if changed is None:
        _assert_equal(got, right.want)
    elif changed.is_comparable:
        _assert_holds(right.write(got), arrays)
    _assert_copies(got, arrays)
    return True


def _check_refusal(error: BaseException, changed: Mutation | None) -> None:
    said = f"{type(error).__name__}: {error}"
    assert changed is not None, f"a right call was refused: {said}"
    assert changed.verdict != "accepted", f"{changed.text}: refused: {said}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    own = PACKAGE in Path(frame.filename).resolve().parents
    in_words = isinstance(error, ValueError) and own and (frame.line or "").startswith("raise ")
    assert in_words, f"{changed.text}: no refusal in words: {said}"
    assert changed.named in str(error), f"{changed.text}: {changed.named!r} is not in: {said}"
    assert len(str(error)) <= LONGEST_TEXT, f"{changed.text}: a text of {len(str(error))}: {said}"


def _assert_equal(got: Weights, want: Weights) -> None:
    assert len(got.cells) == len(want.cells), f"{len(got.cells)} cells, not {len(want.cells)}"
    assert getattr(got, "reset_after", None) == getattr(want, "reset_after", None)
    assert_equal(got, want)


def _assert_holds(written: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Writing the imported weights gives the arrays that were read."""
    for name, array in written.items():
        if is_array(arrays.get(name)):
            _assert_same(array, np.asarray(arrays[name]), name)


def _assert_same(got: Array, want: Array, name: str) -> None:
    assert got.shape == want.shape, f"{name} is {got.shape}, not {want.shape}"
    wide = [np.asarray(a).astype("float64") for a in (got, want)]
    assert np.array_equal(*wide, equal_nan=True), f"{name} differs"


def _assert_copies(got: Weights, arrays: dict[str, Any]) -> None:
    given = [a for a in arrays.values() if isinstance(a, np.ndarray)]
    for cell in got.cells:
        for name, array in cell.arrays().items():
            shared = any(np.may_share_memory(array, a) for a in given)
            assert not shared, f"{name} shares memory with an argument"


def run_one(seed: int, number: int, counts: Counts, each: int | None = None) -> None:
    """Draws and runs a call, unless its importer had `each` calls already."""
    right, changed = draw(np.random.default_rng([seed, number]))
    if each is not None and counts[right.name] >= each:
        return
    counts[right.name] += 1
    counts["right" if changed is None else f"{right.name}: {changed.kind}"] += 1
    counts["accepted" if check(right, changed) else "refused"] += 1


def run(
    seed: int, numbers: range, record: mmap.mmap, failures: int = 1, each: int | None = None
) -> Counts:
    """Runs the calls of these numbers, as loop.run says."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 2**31  # no call needs memory for wrong sizes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    command = f"python -m tests.fuzz.files --seed {seed}"
    one = functools.partial(run_one, seed, each=each)
    return loop.run(one, numbers, record, command, failures, each, DRAWS)
