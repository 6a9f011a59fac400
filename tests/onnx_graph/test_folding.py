"""What is computed of constants, beside onnx's reference implementation; and what is refused."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx, whose operators these are, is not installed")
from onnx import helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from tf_lstm_ops.onnx_graph.budget import Budget  # noqa: E402
from tf_lstm_ops.onnx_graph.constants import evaluate  # noqa: E402

from . import models  # noqa: E402

X = np.arange(24, dtype="f4").reshape(2, 3, 4) - 7
INTS = np.array([-7, 7, -8, 3])
LAST = np.iinfo("i8").max


def ints(*values: int) -> np.ndarray:
    return np.array(values, "i8")


def tensor(array: Any) -> Any:
    return numpy_helper.from_array(np.asarray(array))


# Operator, operands, attributes, opset.
CASES: list[tuple[str, list[Any], dict[str, Any], int]] = [
    ("Constant", [], {"value": tensor(X)}, 17),
    ("Constant", [], {"value_float": 2.5}, 17),
    ("Constant", [], {"value_floats": [2.5, 1.0]}, 17),
    ("Constant", [], {"value_int": 3}, 17),
    ("Constant", [], {"value_ints": [3, 4]}, 17),
    ("Identity", [X], {}, 17),
    ("Unsqueeze", [X], {"axes": [0, 2]}, 11),
    ("Unsqueeze", [X, ints(-1, 0)], {}, 13),
    ("Squeeze", [X[:, :1]], {"axes": [1]}, 11),
    ("Squeeze", [X[:, :1], ints(-2)], {}, 17),
    ("Squeeze", [X[:1, :1]], {}, 17),
    ("Concat", [X, X[:, :1], X], {"axis": -2}, 17),
    ("Cast", [X], {"to": 7}, 17),
    ("Cast", [X], {"to": 9}, 17),
    ("Cast", [X], {"to": 10}, 17),
    ("Cast", [INTS], {"to": 11}, 17),
    ("Reshape", [X, ints(0, -1)], {}, 17),
    ("Reshape", [X, ints(4, 3, 2)], {}, 17),
    ("Reshape", [X, ints(24)], {}, 7),
    ("Reshape", [X[:0], ints(0, 5)], {"allowzero": 1}, 17),
    ("Transpose", [X], {}, 17),
    ("Transpose", [X], {"perm": [1, 2, 0]}, 17),
    ("Slice", [X], {"starts": [1], "ends": [LAST], "axes": [2]}, 9),
    ("Slice", [X, ints(1, -3), ints(2, -1)], {}, 17),
    ("Slice", [X, ints(-1), ints(-LAST), ints(2), ints(-2)], {}, 17),
    ("Slice", [X, ints(1), ints(0), ints(1), ints(-1)], {}, 17),
    ("Slice", [X, ints(5), ints(9), ints(-1)], {}, 17),
    ("Gather", [X, ints(2, -1)], {"axis": 1}, 17),
    ("Gather", [X, np.array(1)], {}, 17),
    ("Shape", [X], {}, 17),
    ("Shape", [X], {"start": -2, "end": 9}, 17),
    ("ConstantOfShape", [ints(2, 3)], {}, 17),
    ("ConstantOfShape", [ints(2, 0)], {"value": tensor(ints(7))}, 17),
    ("Add", [X, X[:1, :1]], {}, 17),
    ("Sub", [X, X[0]], {}, 17),
    ("Mul", [INTS, INTS[:1]], {}, 17),
    ("Div", [X, X + 0.5], {}, 17),
    ("DequantizeLinear", [INTS.astype("i1"), np.float32(0.5), np.int8(3)], {}, 21),
    ("DequantizeLinear", [INTS.astype("i1"), np.float32(0.5)], {}, 21),
    (
        "DequantizeLinear",
        [X.astype("u1"), np.array([0.5, 2, 3], "f4"), np.array([1, 200, 0], "u1")],
        {"axis": -2},
        21,
    ),
]


def computed(op: str, operands: list[Any], given: dict[str, Any], opset: int = 17) -> Any:
    names = [f"x{k}" for k in range(len(operands))]
    node = helper.make_node(op, names, ["y"], **given)
    return evaluate(node, operands, opset, Budget())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_beside_the_reference(case: tuple[str, list[Any], dict[str, Any], int]) -> None:
    op, operands, given, opset = case
    names = [f"x{k}" for k in range(len(operands))]
    node = helper.make_node(op, names, ["y"], **given)
    graph = models.graph([node], inputs=tuple(names))
    reference = ReferenceEvaluator(models.model(graph, opset))
    [want] = reference.run(None, dict(zip(names, operands, strict=True)))
    [found] = computed(op, operands, given, opset)
    assert (found.shape, found.dtype) == (np.shape(want), np.asarray(want).dtype)
    np.testing.assert_array_equal(found, want)


def test_integers_are_divided_towards_zero() -> None:
    """As C++ does. The reference implementation rounds down."""
    [found] = computed("Div", [INTS, ints(2, -2, 4, 4)], {})
    np.testing.assert_array_equal(found, [-3, -3, -2, 0])
    assert found.dtype == "i8"


def test_bfloat16() -> None:
    [found] = computed("Cast", [X], {"to": onnx.TensorProto.BFLOAT16})
    assert found.dtype == ml_dtypes.bfloat16
    [back] = computed("Cast", [found], {"to": onnx.TensorProto.FLOAT})
    np.testing.assert_array_equal(back, X)


@pytest.mark.parametrize("op", ["Neg", "DynamicQuantizeLinear", "LSTM", "If"])
def test_other_operators(op: str) -> None:
    assert computed(op, [X], {}) is None


def test_another_domain_and_operands_that_are_no_constants() -> None:
    node = helper.make_node("Add", ["a", "b"], ["y"], domain="com.microsoft")
    assert evaluate(node, [X, X], 17, Budget()) is None
    assert computed("Add", [X, None], {}) is None


TEXT = onnx.TensorProto(data_type=onnx.TensorProto.STRING, dims=[1], string_data=[b"a"])
WRONG: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("Constant", [], {}, "must have one value but has 0"),
    ("Constant", [], {"value_int": 1, "value_float": 1.0}, "must have one value but has 2"),
    ("Constant", [], {"value_string": "a"}, "has value_string, which is not read"),
    ("Constant", [], {"value": TEXT}, "attribute value has elements of the type STRING"),
    ("Constant", [], {"value": 3}, "has value, which is not read"),
    ("Unsqueeze", [X], {}, "axes are absent"),
    ("Unsqueeze", [X], {"axes": [0]}, "axes as an attribute, which ended with opset 13"),
    ("Unsqueeze", [X, ints(0, 0)], {}, "axes [0, 0] has an axis twice"),
    ("Unsqueeze", [X, ints(9)], {}, "there is no axis 9 in an array of 4 axes"),
    ("Unsqueeze", [X, np.arange(60)], {}, "there are 60 axes"),
    ("Unsqueeze", [X, np.zeros(1, "f4")], {}, "axes must be a list of integers"),
    ("Squeeze", [X, ints(0)], {}, "size not equal to one"),
    ("Concat", [], {"axis": 0}, "must have 1 inputs but has 0"),
    ("Concat", [X, X], {}, "the attribute axis is absent"),
    ("Concat", [X, X[0]], {"axis": 0}, "number of dimensions"),
    ("Concat", [X, X.astype("f8")], {"axis": 0}, "different types"),
    ("Cast", [X], {}, "elements of the type UNDEFINED, which are not read"),
    ("Cast", [X], {"to": 8}, "elements of the type STRING, which are not read"),
    ("Cast", [X], {"to": 999}, "elements of the type number 999, which are not read"),
    ("Reshape", [X], {}, "must have 2 inputs but has 1"),
    ("Reshape", [X, ints(5, 5)], {}, "cannot reshape"),
    ("Reshape", [X, ints(1, 1, 24, 0)], {}, "copies an axis that is not there"),
    ("Reshape", [X, ints(-2, 12)], {}, "shape [-2, 12] is none"),
    ("Reshape", [X, np.ones(10**5, "i8")], {}, "100000 numbers, more than an array has axes"),
    ("Transpose", [X], {"perm": [0, 0, 1]}, "repeated axis"),
    ("Transpose", [X], {"perm": [0]}, "axes don't match"),
    ("Transpose", [X], {"perm": 2.0}, "the attribute perm is no list"),
    ("Transpose", [X], {"perm": [0.0, 1.0, 2.0]}, "the attribute perm is no list"),
    ("Concat", [X, X], {"axis": "a"}, "the attribute axis is no integer"),
    ("Slice", [X], {}, "starts or ends are absent"),
    ("Slice", [X, ints(0), ints(1), ints(0), ints(0)], {}, "a step is 0"),
    ("Slice", [X, ints(0), ints(1, 2)], {}, "argument 3 is longer"),
    ("Gather", [X, ints(3)], {"axis": 1}, "out of bounds"),
    ("Gather", [X, X], {}, "the indices are no integers"),
    ("Gather", [X, ints(0)], {"axis": 3}, "there is no axis 3"),
    ("ConstantOfShape", [ints(10**6, 10**6)], {}, "bytes is larger than the limit of 2147483648"),
    ("ConstantOfShape", [ints(-1)], {}, "the shape [-1] is none"),
    ("ConstantOfShape", [ints(1)], {"value": tensor([1, 2])}, "value must have 1 element but"),
    ("Add", [X, X.astype("f8")], {}, "the inputs have the types float32 and float64"),
    ("Add", [X, X[:, :2]], {}, "shape mismatch"),
    ("Add", [np.ones((10**5, 1)), np.ones((1, 10**5))], {}, "is larger than the limit"),
    ("Mul", [X > 0, X > 0], {}, "the inputs are no numbers"),
    ("Div", [INTS, ints(0)], {}, "an integer is divided by 0"),
    ("DequantizeLinear", [X, np.float32(1)], {}, "the types are none of this node"),
    ("DequantizeLinear", [INTS, np.float32(1), np.int8(1)], {}, "the zero point is int8"),
    ("DequantizeLinear", [INTS, X[0, 0, :3]], {"axis": 0}, "does not fit axis 0 of (4,)"),
    ("DequantizeLinear", [INTS, X[0, 0]], {"axis": 0, "block_size": 2}, "block_size is not 0"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: f"{case[0]}: {case[3][:30]}")
def test_wrong_operands(case: tuple[str, list[Any], dict[str, Any], str]) -> None:
    op, operands, given, message = case
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        computed(op, operands, given)
    assert str(error.value).startswith(f"node with the output y ({op})")
