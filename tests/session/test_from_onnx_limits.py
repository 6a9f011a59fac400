"""Small ONNX files that would take much memory or time are errors."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="reads and makes the models")
from onnx import helper, numpy_helper  # noqa: E402

from session.onnx_sources import model, node, refusal  # noqa: E402
from session.test_from_onnx_operators import random  # noqa: E402
from tf_lstm_ops.inference import Session  # noqa: E402
from tf_lstm_ops.onnx_graph.functions import inlined  # noqa: E402

SEQUENCE = ("B", "T", 4)
ONES = numpy_helper.from_array(np.ones(1, np.float32))


def test_many_inputs() -> None:
    names = [f"x{k}" for k in range(65)]
    proto = model([node("Sum", " ".join(names))], dict.fromkeys(names, SEQUENCE))
    assert "the model has 65 inputs; a session has at most 64" in refusal(proto)
    proto = model([node("Sum", " ".join(names[:64]))], dict.fromkeys(names[:64], SEQUENCE))
    assert len(Session.from_onnx(proto, check=False).inputs) == 64


@pytest.mark.parametrize("inside", [False, True])
def test_constants_of_all_graphs_together(inside: bool) -> None:
    """Each has less than the limit; in branches, each in a graph of its own."""
    nodes = []
    for k in range(6):
        parts = [
            node("ConstantOfShape", "size", f"c{k}", value=ONES),
            node("Slice", f"c{k} zero one", f"d{k}"),
            node("Add", f"y{k} d{k}", f"y{k + 1}" if not inside else f"z{k}"),
        ]
        if inside:
            found = [helper.make_tensor_value_info(f"z{k}", 1, None)]
            branches = {"then_branch": helper.make_graph(parts, "t", [], found)}
            other = [node("Identity", f"y{k}", f"e{k}")]
            outputs = [helper.make_tensor_value_info(f"e{k}", 1, None)]
            branches["else_branch"] = helper.make_graph(other, "e", [], outputs)
            parts = [node("If", "true", f"y{k + 1}", **branches)]
        nodes += parts
    arrays = {"size": [1 << 23], "zero": [0], "one": [1], "true": np.array(True)}  # 32 MiB
    proto = model(nodes, {"y0": SEQUENCE}, arrays, "y6")
    assert "larger than the limit" in refusal(proto)


def test_a_deep_chain_whose_size_is_needed() -> None:
    nodes = [node("Slice", f"y{k} one end one", f"y{k + 1}") for k in range(1500)]
    nodes.append(node("Reshape", "y1500 shape"))
    arrays = {"one": [1], "end": [2**62], "shape": [0, -1, 5, 3]}
    assert Session.from_onnx(model(nodes, {"y0": ("B", 2000, 3)}, arrays), check=False)


def test_sizes_that_depend_on_one_another_in_many_ways() -> None:
    nodes = [node("Concat", f"y{k} y{k}", f"y{k + 1}", axis=1) for k in range(40)]
    nodes.append(node("Flatten", "y40"))
    proto = model(nodes, {"y0": ("B", 2, 3)})
    assert Session.from_onnx(proto, check=False).inputs[0].shape == (None, 2, 3)


def overloads(depth: int, **attributes: Any) -> Any:
    """Functions of one name, each of which calls the next one twice."""
    made = []
    for k in range(depth):
        call = {"op_type": "f", "domain": "own", "overload": str(k + 1)}
        if k == depth - 1:
            call = {"op_type": "Identity"}
        nodes = [
            onnx.NodeProto(input=["x"], output=["h"], **call),
            onnx.NodeProto(input=["h"], output=["y"], **call),
        ]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        each = helper.make_function("own", "f", ["x"], ["y"], nodes, opsets)
        each.overload = str(k)
        made.append(each)
    call = onnx.NodeProto(input=["x"], output=["y"], op_type="f", domain="own", overload="0")
    proto = model([call], SEQUENCE)
    proto.ir_version = 10
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.functions.extend(made)
    return proto


def test_functions_of_one_name() -> None:
    assert "the functions make more than 65536 nodes" in refusal(overloads(40))
    assert len(inlined(overloads(3)).graph.node) == 8


def test_a_large_attribute_of_a_call() -> None:
    """Each node of the function would have it."""
    body = [
        onnx.NodeProto(
            op_type="Constant",
            output=[f"c{k}"],
            attribute=[onnx.AttributeProto(name="value", ref_attr_name="t", type=4)],
        )
        for k in range(600)
    ]
    body.append(node("Identity", "x"))
    function = helper.make_function(
        "own", "f", ["x"], ["y"], body, [helper.make_opsetid("", 17)], ["t"]
    )
    tensor = numpy_helper.from_array(random(300, 300))
    proto = model([helper.make_node("f", ["x"], ["y"], domain="own", t=tensor)], SEQUENCE)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.functions.append(function)
    assert "the functions make more than" in refusal(proto)


@pytest.mark.parametrize("op", ["Concat", "Mul"])
def test_sizes_that_grow(op: str) -> None:
    given = {"axis": 0} if op == "Concat" else {}
    nodes = [node("Shape", "x", "s"), node("Gather", "s one", "s0")]
    nodes += [node(op, f"s{k} s{k}", f"s{k + 1}", **given) for k in range(40)]
    nodes.append(node("Reshape", "x s40"))
    assert "more than an array has axes" in refusal(model(nodes, SEQUENCE, {"one": [1]}))


@pytest.mark.full
def test_many_layers() -> None:
    nodes = [node("Tanh", f"y{k}", f"y{k + 1}") for k in range(9000)]
    proto = model(nodes, {"y0": SEQUENCE}, outputs="y9000")
    assert "9000 layers, more than a session has" in refusal(proto)
