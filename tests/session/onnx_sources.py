"""Small ONNX models for `Session.from_onnx`, and their results by ONNX Runtime.

This compares independently of the package: an input says which of its axes is the batch, and that
axis of an output is the one that grows with it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from tf_lstm_ops._refusal import Refused
from tf_lstm_ops.inference import Session

Array = np.ndarray[Any, Any]
# The axes of an input: "B" is the batch, another name any size, a number this size.
Axes = Sequence[str | int]
BATCHES, STEPS = (2, 3), 7  # no other axis in the tests has these sizes
# Both compute in float32, in another order, and ONNX Runtime's exp and tanh are approximations.
TOLERANCE = 2e-5


class NotComparable(Exception):
    """No axis of an output is the batch, or it has elements that say nothing."""


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> onnx.NodeProto:
    """A node. Spaces are between names, - is an input or output that is left out, and axes_ is the
    attribute axes."""
    attributes = {name.rstrip("_"): value for name, value in attributes.items()}
    names = [[name if name != "-" else "" for name in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op, *names, name=f"{op}_{outputs.split()[-1]}", **attributes)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Axes] | Axes,
    arrays: Mapping[str, Any] | None = None,
    outputs: str = "y",
    opset: int = 17,
    dtypes: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model; inputs without a name are "x", of floats."""
    given = inputs if isinstance(inputs, Mapping) else {"x": inputs}
    kinds = {name: (dtypes or {}).get(name, onnx.TensorProto.FLOAT) for name in given}
    graph = helper.make_graph(
        [*nodes],
        "g",
        [helper.make_tensor_value_info(name, kinds[name], [*axes]) for name, axes in given.items()],
        [helper.make_tensor_value_info(name, 1, None) for name in outputs.split()],
        [numpy_helper.from_array(as_array(value), name) for name, value in (arrays or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def as_array(value: Any) -> Array:
    """Lists of integers as int64, other numbers as float32."""
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def draw(proto: onnx.ModelProto, batch: int, seed: int = 0, words: int = 4) -> dict[str, Array]:
    """Random inputs in the order of the axes of the file."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for value in proto.graph.input:
        kind = value.type.tensor_type
        sizes = [
            each.dim_value or {"B": batch}.get(each.dim_param, STEPS) for each in kind.shape.dim
        ]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        is_float = np.issubdtype(dtype, np.floating)
        array = rng.standard_normal(sizes) if is_float else rng.integers(0, words, sizes)
        found[value.name] = array.astype(dtype)
    return found


def batch_axes(proto: onnx.ModelProto) -> dict[str, int]:
    return {
        value.name: names.index("B")
        for value in proto.graph.input
        for names in [[each.dim_param for each in value.type.tensor_type.shape.dim]]
        if "B" in names
    }


def runtime(proto: onnx.ModelProto) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    data = proto.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])

    def run(feeds: dict[str, Array]) -> list[Array]:
        try:
            return list(session.run(None, feeds))
        except Exception as error:  # it has classes of its own
            raise NotComparable(f"ONNX Runtime: {error}") from error

    return run


def results(proto: onnx.ModelProto, run: Any = None) -> list[tuple[dict[str, Array], list[Array]]]:
    """Inputs and outputs of ONNX Runtime for two sizes of the batch, which is the first axis."""
    run = run or runtime(proto)
    axes = batch_axes(proto)
    feeds = [draw(proto, batch) for batch in BATCHES]
    found = [run(each) for each in feeds]
    places = []
    for one, two in zip(*found, strict=True):
        grown = [k for k, (m, n) in enumerate(zip(one.shape, two.shape, strict=False)) if m != n]
        if len(grown) != 1:
            raise NotComparable(f"outputs {one.shape} and {two.shape}")
        places.append(grown[0])
    return [
        (
            {name: np.moveaxis(x, axes.get(name, 0), 0) for name, x in given.items()},
            [np.moveaxis(y, place, 0) for place, y in zip(places, outputs, strict=True)],
        )
        for given, outputs in zip(feeds, found, strict=True)
    ]


def call(session: Session, given: Mapping[str, Array]) -> list[Array]:
    """The outputs of a session for inputs of the axes of the file behind the batch."""
    inputs = {}
    for spec in session.inputs:  # without those that nothing reads
        x = given[spec.name] if len(given) > 1 else next(iter(given.values()))
        if x.ndim != len(spec.shape):  # the session leaves out an axis of size 1, or adds one
            rest = [n for n in x.shape[1:] if n != 1] or [1]
            x = x.reshape(len(x), *rest)
        inputs[spec.name] = x.astype(spec.dtype)
    found = session(inputs if len(inputs) > 1 else next(iter(inputs.values())))
    return [*found.values()] if isinstance(found, Mapping) else [found]


def assert_close(got: Array, want: Array, tolerance: float = TOLERANCE) -> None:
    """The same elements in the same order; axes of size 1 may be missing behind the batch."""
    shapes = [[a.shape[0], *(n for n in a.shape[1:] if n != 1)] for a in (got, want)]
    assert shapes[0] == shapes[1], f"shape {got.shape}, not {want.shape}"
    largest = np.abs(want).max(initial=1.0, where=np.isfinite(want))
    np.testing.assert_allclose(got.reshape(want.shape), want, 0, tolerance * largest)


def check(proto: onnx.ModelProto, run: Any = None, **options: Any) -> Session:
    """Compares a session with ONNX Runtime."""
    session = Session.from_onnx(proto, check=False, **options)
    for given, wanted in results(proto, run):
        for got, want in zip(call(session, given), wanted, strict=True):
            assert_close(got, want)
    return session


def refusal(proto: onnx.ModelProto, **options: Any) -> str:
    """The text with which a model is refused."""
    try:
        Session.from_onnx(proto, check=False, **options)
    except ValueError as error:
        assert type(error) in (ValueError, Refused), type(error)
        return str(error)
    raise AssertionError("a model was accepted")
