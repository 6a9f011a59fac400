"""Types of floats in ONNX models, and casts, which a session does not round."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="reads and makes the models")
pytest.importorskip("onnxruntime", reason="runs the models")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from session.onnx_sources import assert_close, model, node, refusal  # noqa: E402
from session.test_from_onnx_operators import random  # noqa: E402
from session.test_from_onnx_recurrent import FEATURES, GATES, layer, weights  # noqa: E402
from tf_lstm_ops.inference import Session  # noqa: E402

SEQUENCE = ("B", "T", 4)
KINDS = [TensorProto.FLOAT16, TensorProto.DOUBLE]


def in_type(proto: Any, kind: int) -> Any:
    """A model with another type in the place of float32."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = kind
    for tensor in proto.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor).astype(dtype)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return proto


def rounded(proto: Any) -> Any:
    """The model of float32 with the numbers of another type."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    return in_type_of_float32(made)


def in_type_of_float32(proto: Any) -> Any:
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    for tensor in proto.graph.initializer:
        if tensor.data_type in KINDS:
            array = numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return proto


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", GATES)
def test_recurrent_nodes(op: str, kind: int, recwarn: pytest.WarningsRecorder) -> None:
    """ONNX Runtime has no such nodes, and may end the process."""
    proto = in_type(model([layer(op)], ("T", "B", FEATURES), weights(op)), kind)
    session = Session.from_onnx(proto)
    assert not recwarn.list
    x = random(2, 5, FEATURES).astype(np.float32)
    np.testing.assert_array_equal(session(x), Session.from_onnx(rounded(proto))(x))


@pytest.mark.parametrize("kind", KINDS)
def test_casts_in_a_model_of_their_type(kind: int) -> None:
    nodes = [
        node("Cast", "x", "f", to=TensorProto.FLOAT),
        node("Tanh", "f", "t"),
        node("Cast", "t", "h", to=kind),
        node("Constant", "", "third", value=numpy_helper.from_array(np.float32(1 / 3))),
        node("Cast", "third", "k", to=kind),
        node("Mul", "h k"),
    ]
    proto = in_type(model(nodes, SEQUENCE), kind)
    x = random(2, 5, 4).astype(np.float32)
    third = np.float32(1 / 3).astype(helper.tensor_dtype_to_np_dtype(kind))
    assert_close(Session.from_onnx(proto)(x), np.tanh(x) * third)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_casts_that_round(kind: int) -> None:
    nodes = [node("Cast", "x", "h", to=kind), node("Cast", "h", to=TensorProto.FLOAT)]
    assert "it rounds to" in refusal(model(nodes, SEQUENCE))
    nodes = [node("Shape", "x", "s"), node("Cast", "s", "h", to=kind)]
    nodes += [node("Cast", "h", "i", to=TensorProto.INT64), node("Reshape", "x i")]
    assert "converts sizes" in refusal(model(nodes, SEQUENCE))


@pytest.mark.parametrize("value, want", [(2.7, 2), (-2.7, -2), (0.0, 0)])
def test_casts_of_equal_elements(value: float, want: float) -> None:
    tensor = numpy_helper.from_array(np.array([value], np.float32))
    nodes = [
        node("Shape", "x", "s"),
        node("ConstantOfShape", "s", "c", value=tensor),
        node("Cast", "c", "i", to=TensorProto.INT64),
        node("Cast", "i", "f", to=TensorProto.FLOAT),
        node("Add", "x f"),
    ]
    x = random(2, 5, 4).astype(np.float32)
    assert_close(Session.from_onnx(model(nodes, SEQUENCE))(x), x + want)


def test_types_that_do_not_fit() -> None:
    proto = in_type(model([node("MatMul", "x k")], SEQUENCE, {"k": random(4, 3)}), KINDS[0])
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT
    with pytest.raises(ValueError, match="cannot run on random inputs"):
        Session.from_onnx(proto)
