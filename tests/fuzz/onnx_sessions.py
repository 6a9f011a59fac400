"""Sessions of right and wrong ONNX models.

A wrong model must be refused by a ValueError. What a session accepts must run, and must be what
ONNX Runtime computes where that accepts it, too.
"""

import functools
import mmap
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from session.onnx_comparison import compare
from session.onnx_sources import NotComparable
from session.random_onnx import RandomOnnx
from tf_lstm_ops._refusal import Refused
from tf_lstm_ops.inference import Session
from tf_lstm_ops.inference.from_onnx.operators import OPERATORS as _OPERATORS

from . import loop
from .draw import choose
from .loop import Counts
from .onnx_files import change_bytes, change_fields
from .onnx_runtime import NotRun, Runtime

LONGEST_TEXT = 1000
SECONDS = 10  # for a model, on a machine that may be busy
LARGEST = 1 << 16  # elements of an input of a call
OPERATORS = [*_OPERATORS, "If", "Loop", "Where", "Less", "Not", "ReduceProd", "Sin"]


# --- changes of the structure -------------------------------------------------------------------


def _other_operand(rng: np.random.Generator, graph: Any) -> None:
    node = choose(rng, graph.node)
    names = [x.name for x in (*graph.input, *graph.initializer)]
    names += [name for each in graph.node for name in each.output] + [""]
    if node.input:
        node.input[int(rng.integers(len(node.input)))] = choose(rng, names)


def _swapped_operands(rng: np.random.Generator, graph: Any) -> None:
    node = choose(rng, graph.node)
    if node.input:
        a, b = (int(k) for k in rng.integers(0, len(node.input), 2))
        node.input[a], node.input[b] = node.input[b], node.input[a]


def _other_operator(rng: np.random.Generator, graph: Any) -> None:
    choose(rng, graph.node).op_type = choose(rng, OPERATORS)


def _other_number(rng: np.random.Generator, graph: Any) -> None:
    """Of an attribute, by a little."""
    attributes = [each for node in graph.node for each in node.attribute]
    if not attributes:
        return
    attribute, change = choose(rng, attributes), choose(rng, [-2, -1, 1, 2])
    if attribute.type == attribute.INT:
        attribute.i = min(max(attribute.i + change, -(2**63)), 2**63 - 1)
    elif attribute.type == attribute.FLOAT:
        attribute.f += 0.1 * change
    elif attribute.ints:
        attribute.ints[int(rng.integers(len(attribute.ints)))] += change


def _other_element(rng: np.random.Generator, graph: Any) -> None:
    """Of a constant of integers, such as axes, shapes and bounds."""
    tensors = [each for each in graph.initializer if each.data_type == 7]
    if not tensors:
        return
    tensor = choose(rng, tensors)
    array = numpy_helper.to_array(tensor).copy()
    if array.size:
        place = int(rng.integers(array.size))
        value = int(array.flat[place])
        array.flat[place] = choose(rng, [value ^ 1, -value if value > -(2**63) else 0, 0, -1, 3])
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _other_shape(rng: np.random.Generator, graph: Any) -> None:
    """Of a constant of floats."""
    tensors = [each for each in graph.initializer if each.data_type == 1]
    if not tensors:
        return
    tensor = choose(rng, tensors)
    array = np.atleast_1d(numpy_helper.to_array(tensor))
    shapes = [array[None], array[..., None], array.T, array.reshape(-1), array[:1], array[..., :1]]
    tensor.CopyFrom(numpy_helper.from_array(np.array(choose(rng, shapes)), tensor.name))


def _other_size(rng: np.random.Generator, graph: Any) -> None:
    """Of an axis of an input, or another axis."""
    dims = choose(rng, graph.input).type.tensor_type.shape.dim
    way = choose(rng, ["size", "open", "drop", "add", "swap"])
    k = int(rng.integers(len(dims))) if dims else 0
    if way == "add" or not dims:
        dims.add().dim_value = int(rng.integers(1, 4))
    elif way == "size":
        dims[k].dim_value = int(rng.integers(0, 6))
    elif way == "open":
        dims[k].dim_param = choose(rng, ["B", "T", "U"])
    elif way == "drop":
        del dims[k]
    else:
        other, copy = dims[int(rng.integers(len(dims)))], type(dims[k])()
        copy.CopyFrom(dims[k])
        dims[k].CopyFrom(other)
        other.CopyFrom(copy)


def _other_output(rng: np.random.Generator, graph: Any) -> None:
    names = [name for each in graph.node for name in each.output if name]
    graph.output[0].name = choose(rng, names)


STRUCTURE: list[Callable[[np.random.Generator, Any], None]] = [
    *(_other_operand, _swapped_operands, _other_operator, _other_number, _other_element),
    *(_other_shape, _other_size, _other_output),
]


def draw(rng: np.random.Generator) -> tuple[str, bytes]:
    """How a model was changed, and its file."""
    proto = RandomOnnx(rng).model
    kind = choose(rng, ["bytes", "fields", "fields", *["structure"] * 5])
    data = proto.SerializeToString()
    if kind == "structure":
        changes = [choose(rng, STRUCTURE) for _ in range(choose(rng, [1, 1, 2, 3]))]
        for change in changes:
            change(rng, proto.graph)
        return f"{kind}: {[each.__name__ for each in changes]}", proto.SerializeToString()
    text, data = (change_bytes if kind == "bytes" else change_fields)(rng, data)
    return f"{kind}: {text}", data


# --- what must hold -----------------------------------------------------------------------------


@functools.cache
def _path() -> Path:
    return Path(_folder().name) / "model.onnx"


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _opened(data: bytes, text: str) -> Session | None:
    """The session of a file; None if it is refused."""
    _path().write_bytes(data)
    begin = time.monotonic()
    try:
        return Session.from_onnx(_path(), check=False)
    except ValueError as error:
        in_words = type(error) in (ValueError, Refused) and 0 < len(str(error)) <= LONGEST_TEXT
        assert in_words, f"{text}: {type(error).__name__}: {error}"
        return None
    except Exception as error:
        raise AssertionError(f"{text}: {type(error).__name__}: {error}") from error
    finally:
        seconds = time.monotonic() - begin
        assert seconds < SECONDS, f"{text}: {seconds} s"


def _runs(session: Session, rng: np.random.Generator) -> bool:
    """Calls a session. Sizes that it cannot have are a ValueError."""
    arrays = {}
    for spec in session.inputs:
        sizes = [2, *(7 if size is None else size for size in spec.shape[1:])]
        if np.prod([float(size) for size in sizes]) > LARGEST:
            return False
        x = rng.standard_normal(sizes) if spec.dtype == "float32" else rng.integers(0, 3, sizes)
        arrays[spec.name] = x.astype(spec.dtype)
    try:
        session(arrays if len(arrays) > 1 else next(iter(arrays.values())))
    except (ValueError, MemoryError):  # pads may be of any size
        return False
    return True


def _is_small(proto: onnx.ModelProto) -> bool:
    """Whether all inputs are, also those that a session does not read, and the weights."""
    for tensor in proto.graph.initializer:
        if tensor.data_type == 1 and len(tensor.raw_data) % 4 == 0:
            array = np.frombuffer(tensor.raw_data, np.float32)
            if not np.isfinite(array).all() or np.abs(array).max(initial=0) > 100:
                return False
    shapes = [value.type.tensor_type.shape.dim for value in proto.graph.input]
    sizes = [[float(dim.dim_value or 7) for dim in dims] for dims in shapes]
    return all(np.prod(each) <= LARGEST for each in sizes)


def check(seed: int, number: int, counts: Counts, runtime: Runtime | None = None) -> None:
    """Draws a model, and opens, runs and compares its session."""
    rng = np.random.default_rng([seed, number])
    text, data = draw(rng)
    counts[text.partition(":")[0]] += 1
    session = _opened(data, text)
    counts["refused" if session is None else "accepted"] += 1
    if session is None or not _runs(session, rng) or runtime is None:
        return
    proto = onnx.ModelProto()
    proto.ParseFromString(data)
    if not _is_small(proto):
        return
    try:
        with np.errstate(all="ignore"):
            compare(session, proto, functools.partial(runtime, data))
    except (NotRun, NotComparable, ValueError, MemoryError):  # pads may be of any size
        counts["not compared"] += 1
    except AssertionError as error:
        raise AssertionError(f"{text}: {error}") from error
    else:
        counts["compared"] += 1


def run(
    seed: int, numbers: range, record: mmap.mmap, failures: int = 1, each: int | None = None
) -> Counts:
    """Runs the calls of these numbers, as loop.run says."""
    runtime = Runtime()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 2**30  # no model needs memory for wrong sizes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    one = functools.partial(check, seed, runtime=runtime)
    command = f"python -m tests.fuzz.sessions --seed {seed}"
    try:
        return loop.run(one, numbers, record, command, failures)
    finally:
        runtime.close()
