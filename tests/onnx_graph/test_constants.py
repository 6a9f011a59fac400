"""Which values of a graph are constants, and tensors that are damaged."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx, whose files these are, is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from tf_lstm_ops.onnx_graph import constants  # noqa: E402
from tf_lstm_ops.onnx_graph.attributes import attributes, label  # noqa: E402
from tf_lstm_ops.onnx_graph.constants import Constants  # noqa: E402

from . import models  # noqa: E402

node = helper.make_node
A = np.arange(6, dtype="f4").reshape(2, 3)


def test_weights_as_exporters_write_them() -> None:
    """Parts that are put together: Constant, Unsqueeze, Concat, Identity."""
    nodes = [
        node("Constant", [], ["b"], value=numpy_helper.from_array(2 * A)),
        node("Unsqueeze", ["a", "axes"], ["a1"]),
        node("Unsqueeze", ["b", "axes"], ["b1"]),
        node("Concat", ["a1", "b1"], ["w"], axis=0),
        node("Identity", ["w"], ["v"]),
        node("Add", ["v", "x"], ["y"]),
        node("Add", ["y", "v"], ["z"]),
    ]
    constants = Constants(models.graph(nodes, {"a": A, "axes": np.array([0])}))
    found = constants.get("v")
    np.testing.assert_array_equal(found, np.stack([A, 2 * A]))
    assert not found.flags.writeable
    assert [constants.get(name) for name in ("x", "y", "z", "not there", "")] == [None] * 5


def test_absent_inputs() -> None:
    nodes = [node("Slice", ["a", "zero", "one", "", "one"], ["y"])]
    constants = Constants(models.graph(nodes, {"a": A, "zero": np.array([0]), "one": [1]}))
    np.testing.assert_array_equal(constants.get("y"), A[:1])


def test_scopes() -> None:
    """A sub-graph reads values around it, but for names of its own."""
    outer = Constants(models.graph([node("Add", ["a", "a"], ["b"])], {"a": A}))
    nodes = [node("Add", ["b", "c"], ["d"]), node("Neg", ["d"], ["a"])]
    inner = Constants(models.graph(nodes, {"c": A}, inputs=("i",)), outer)
    np.testing.assert_array_equal(inner.get("d"), 3 * A)
    np.testing.assert_array_equal(inner.get("b"), 2 * A)
    assert inner.get("a") is None
    loop = Constants(models.graph([node("Neg", ["a"], ["n"])], inputs=("b",)), outer)
    assert loop.get("b") is None


def test_a_long_chain() -> None:
    nodes = [node("Identity", [f"v{k}"], [f"v{k + 1}"]) for k in range(30_000)]
    found = Constants(models.graph(nodes, {"v0": A})).get("v30000")
    np.testing.assert_array_equal(found, A)


@pytest.mark.parametrize("op", ["Concat", "Add"])
def test_a_chain_that_makes_too_much(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By doubling, or in small steps. The limit is lower here."""
    monkeypatch.setattr(constants, "MADE_BYTES", 2**20)
    given = {"axis": 0} if op == "Concat" else {}
    nodes = [node(op, [f"v{k}"] * 2, [f"v{k + 1}"], **given) for k in range(600)]
    graph = models.graph(nodes, {"v0": np.ones(2**10)})
    with pytest.raises(ValueError, match=r"node with the output v\d+ \((Concat|Add)\)"):
        Constants(graph).get("v600")


def test_a_cycle() -> None:
    """`load` refuses it, but a graph may come from elsewhere."""
    nodes = [node("Add", ["a", "d"], ["b"]), node("Neg", ["b"], ["n"])]
    nodes += [node("Add", ["b", "a"], ["c"]), node("Identity", ["c"], ["d"], name="last")]
    constants = Constants(models.graph(nodes, {"a": A}))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"needs its own output [bcd]"):
            constants.get("d")
    np.testing.assert_array_equal(constants.get("a"), A)


# --- tensors -------------------------------------------------------------------------------------

DTYPES = ["f4", "u1", "i1", "u2", "i2", "i4", "i8", "?", "f2", "f8", "u4", "u8"]


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.bfloat16])
@pytest.mark.parametrize("raw", [True, False])
def test_dtypes(dtype: Any, raw: bool) -> None:
    array = np.array([[0, 1, 3], [2, 127, 5]]).astype(dtype)
    if not raw and array.dtype.itemsize == 2 and array.dtype.kind not in "iu":  # the bits
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = TensorProto(data_type=kind, dims=[2, 3], int32_data=array.view("u2").ravel())
    elif raw:
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = TensorProto(data_type=kind, dims=[2, 3], raw_data=array.tobytes())
    else:
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = helper.make_tensor("a", kind, [2, 3], array.ravel().tolist())
    tensor.name = "a"
    graph = onnx.GraphProto(initializer=[tensor])
    found = Constants(graph).get("a")
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_negative_numbers_and_sizes_of_zero() -> None:
    tensors = [
        helper.make_tensor("a", TensorProto.INT8, [2], [-1, -128]),
        TensorProto(name="b", data_type=1, dims=[0, 5]),
        TensorProto(name="c", data_type=1, float_data=[2.5]),
    ]
    constants = Constants(onnx.GraphProto(initializer=tensors))
    np.testing.assert_array_equal(constants.get("a"), [-1, -128])
    assert constants.get("b").shape == (0, 5)
    np.testing.assert_array_equal(constants.get("c"), 2.5)


DAMAGE: dict[str, tuple[dict[str, Any], str]] = {
    "too few bytes": ({"raw_data": bytes(23)}, "must have 24 bytes by its sizes but has 23"),
    "too many elements": ({"float_data": [1.0] * 7}, "must have 6 elements by its sizes but has 7"),
    "no data": ({}, "must have 6 elements by its sizes but has 0"),
    "data of another type": ({"int64_data": [1] * 6}, "must have 6 elements by its sizes but has"),
    "negative": ({"dims": [-2, -3], "raw_data": bytes(24)}, r"\[-2, -3\], of which one is neg"),
    "huge": ({"dims": [2**62, 2**62], "raw_data": bytes(24)}, "by its sizes but has 24"),
    "huge without elements": ({"dims": [0, 2**62, 2**62], "raw_data": b""}, "that no array has"),
    "many axes": ({"dims": [1] * 99}, "has 99 axes, more than 32"),
    "text": ({"data_type": 8, "string_data": [b"a"] * 6}, "elements of the type STRING"),
    "no type": ({"data_type": 0}, "elements of the type UNDEFINED, which are not read"),
    "an unknown type": ({"data_type": 1000}, "elements of the type number 1000"),
    "complex": ({"data_type": 14}, "elements of the type COMPLEX64"),
    "in another file": ({"data_location": 1}, "is in another file; pass the path of the ONNX"),
    "a segment": ({"segment": TensorProto.Segment(begin=0, end=6)}, "is a segment of a tensor"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_tensors(name: str) -> None:
    fields, message = DAMAGE[name]
    tensor = TensorProto(**{"name": "w" * 500, "data_type": 1, "dims": [2, 3], **fields})
    constants = Constants(onnx.GraphProto(initializer=[tensor]))
    with pytest.raises(ValueError, match=f"^tensor w{{57}}\\.\\.\\. .*{message}"):
        constants.get("w" * 500)


def test_a_sparse_tensor() -> None:
    sparse = onnx.SparseTensorProto(values=TensorProto(name="a", data_type=1), dims=[3])
    with pytest.raises(ValueError, match="tensor a is sparse, which is not read"):
        Constants(onnx.GraphProto(sparse_initializer=[sparse])).get("a")


# --- attributes ----------------------------------------------------------------------------------


def test_each_type_of_an_attribute() -> None:
    inner = models.graph([node("Neg", ["x"], ["y"])])
    given = {
        "i": 3,
        "f": 0.5,
        "s": "text",
        "ints": [1, 2],
        "floats": [0.5],
        "strings": ["a", "b"],
        "g": inner,
        "graphs": [inner],
    }
    made = node("Any", ["x"], ["y"], t=numpy_helper.from_array(A), **given)
    found = attributes(made)
    np.testing.assert_array_equal(found.pop("t"), A)
    assert found == given


def change(**fields: Any) -> Callable[[Any], None]:
    return lambda attribute: attribute.MergeFrom(onnx.AttributeProto(**fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "i", "type": 2}, "attribute i is there twice"),
        ({"name": "j"}, "attribute j has no type"),
        ({"name": "j", "type": 3, "s": b"\xff"}, "attribute j is no text"),
        ({"name": "j", "type": 2, "ref_attr_name": "k"}, "attribute j is that of a function"),
        ({"name": "j", "type": 11}, "attribute j is a sparse tensor"),
        ({"name": "j", "type": 4}, "attribute j has elements of the type UNDEFINED"),
    ],
)
def test_wrong_attributes(fields: dict[str, Any], message: str) -> None:
    made = node("Any", ["x"], ["y"], name="N", i=3)
    made.attribute.add(**fields)
    with pytest.raises(ValueError, match=rf"^node N \(Any\): {message}"):
        attributes(made)


def test_labels() -> None:
    assert label(node("LSTM", ["x"], ["y"], name="L")) == "node L (LSTM)"
    assert label(node("LSTM", ["x"], ["", "h"])) == "node with the output h (LSTM)"
    assert label(onnx.NodeProto()) == "node without name (no operator)"
