"""What `Session.from_onnx` refuses: a ValueError that names the node and the reason."""

import itertools
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="reads and makes the models")
pytest.importorskip("onnxruntime", reason="runs other models of the same helpers")
from onnx import TensorProto, helper  # noqa: E402

from session.onnx_sources import Axes, model, node, refusal  # noqa: E402
from session.test_from_onnx_operators import one, random  # noqa: E402
from session.test_from_onnx_recurrent import FEATURES, H, layer, weights  # noqa: E402
from tf_lstm_ops.inference import Session, layers  # noqa: E402

SEQUENCE: Axes = ("B", "T", 4)


def recurrent(op: str, directions: int = 1, **attributes: Any) -> Any:
    return model([layer(op, **attributes)], ("T", "B", FEATURES), weights(op, directions))


def with_operand(op: str, inputs: str, given: Any = None, **arrays: Any) -> Any:
    inputs_of = {"x": ("T", "B", FEATURES)} | (given or {})
    return model([layer(op, inputs)], inputs_of, weights(op) | arrays)


ZEROS = [node("Shape", "x", "sizes"), node("ConstantOfShape", "sizes", "zeros")]


def loop(op: str) -> Any:
    body = helper.make_graph([helper.make_node("Identity", ["x"], ["o"])], "body", [], [])
    return model([node(op, "x", body=body)], SEQUENCE)


def batch_first(*nodes: Any, axes: Axes = SEQUENCE, **arrays: Any) -> Any:
    """A model whose first axis is the batch, since a Conv needs it."""
    begin = node("Conv", "x w", "c")
    return model([begin, *nodes], axes, {"w": random(4, axes[1], 1), **arrays})


FIRST: Axes = ("B", 4, 5)
CASES: dict[str, tuple[Any, list[str]]] = {
    # What no layer of a session computes.
    "a product of two arrays": (
        model([node("MatMul", "x u")], {"x": ("B", 4, 4), "u": ("B", 4, 4)}),
        ["MatMul_y (MatMul)", "computed from the model's inputs, not a constant"],
    ),
    "a constant times features": (
        model([node("MatMul", "w x")], ("B", 4, 4), {"w": random(4, 4)}),
        ["MatMul_y", "first operand is a constant"],
    ),
    "matrices of each row": (one("MatMul", random(2, 4, 3)), ["MatMul_y", "3 axes, not 2"]),
    "a transposed input": (one("Gemm", random(4, 3), axes=("B", 4), transA=1), ["Gemm_y"]),
    "windows over two axes": (
        one("Conv", random(4, 4, 3, 3), axes=("B", 4, 5, 5)),
        ["Conv_y", "over two axes"],
    ),
    "pooling over two axes": (
        one("MaxPool", axes=("B", 4, 5, 5), kernel_shape=[2, 2]),
        ["MaxPool_y", "over two axes"],
    ),
    "padded pooling": (
        one("AveragePool", axes=("B", 4, "T"), kernel_shape=[2], pads=[1, 0]),
        ["AveragePool_y", "pads its input"],
    ),
    "ceil_mode": (
        one("MaxPool", axes=("B", 4, "T"), kernel_shape=[2], ceil_mode=1),
        ["MaxPool_y", "ceil_mode"],
    ),
    "an unknown operator": (one("Sin"), ["Sin_y (Sin)", "no operator Sin", "ONNX Runtime"]),
    "a comparison": (one("Greater", np.float32(0)), ["Greater_y"]),
    "a loop": (loop("Loop"), ["Loop_y (Loop)", "a loop over steps"]),
    "a scan": (loop("Scan"), ["Scan_y (Scan)", "a loop over steps"]),
    "a quotient of arrays": (model([node("Div", "x x")], SEQUENCE), ["Div_y", "does not divide"]),
    "a constant divided": (model([node("Div", "k x")], SEQUENCE, {"k": 1.0}), ["Div_y"]),
    "a division by zero": (one("Div", np.float32(0)), ["Div_y"]),
    "a cube": (one("Pow", np.float32(3)), ["Pow_y", "powers 1 and 2"]),
    "a root": (one("Sqrt"), ["Sqrt_y", "sum of two squares"]),
    "the maximum of a constant": (one("Max", np.float32(0.5)), ["Max_y"]),
    "selu of other numbers": (one("Selu", alpha=1.0), ["Selu_y", "alpha"]),
    "shrink below 0": (one("Shrink", lambd=-1.0, bias=-1.0), ["Shrink_y", "not negative"]),
    "another number in an attribute": (
        one("Pad", axes=SEQUENCE, opset=10, pads=[0, 1, 0, 0, 0, 0], value=2.0),
        ["Pad_y", "another number than 0"],
    ),
    "another form of Gelu": (one("Gelu", opset=20, approximate="fast"), ["Gelu_y", "fast"]),
    "another kernel_shape": (
        one("Conv", random(2, 4, 3), axes=("B", 4, "T"), kernel_shape=[2]),
        ["Conv_y", "kernel_shape"],
    ),
    "other channels than a kernel": (
        one("Conv", random(2, 3, 3), axes=("B", 4, "T")),
        ["Conv_y", "3 channels, not 4"],
    ),
    "another number of parts": (
        model([node("Split", "x", "a y", axis=2, num_outputs=4)], SEQUENCE, opset=18),
        ["Split_y", "num_outputs"],
    ),
    "shrink of another bias": (one("Shrink", lambd=0.5, bias=0.1), ["Shrink_y", "bias"]),
    # The batch.
    "softmax over the batch": (
        batch_first(node("Softmax", "c", axis=0), axes=FIRST),
        ["Softmax_y", "another axis as the batch"],
    ),
    "a part of the batch": (
        batch_first(node("Slice", "c s e a"), axes=FIRST, s=[0], e=[1], a=[0]),
        ["Slice_y", "rows of the batch"],
    ),
    "a row": (
        batch_first(node("Gather", "c k", axis=0), axes=FIRST, k=np.int64(0)),
        ["Gather_y", "rows of the batch"],
    ),
    "the batch joined": (
        batch_first(node("Concat", "c c", axis=0), axes=FIRST),
        ["Concat_y", "joins arrays along the batch"],
    ),
    "the batch backwards": (
        batch_first(node("Slice", "c s e a d"), axes=FIRST, s=[-1], e=[-(2**62)], a=[0], d=[-1]),
        ["Slice_y", "reverses the batch"],
    ),
    "the batch pooled": (
        batch_first(node("ReduceMean", "c", axes_=[0]), axes=FIRST),
        ["ReduceMean_y", "pools the batch"],
    ),
    "all pooled": (batch_first(node("ReduceMean", "c"), axes=FIRST), ["ReduceMean_y", "batch"]),
    "the batch padded": (
        batch_first(node("Pad", "c p"), axes=FIRST, p=[1, 0, 0, 0, 0, 0]),
        ["Pad_y", "batch"],
    ),
    "rows and steps as one axis": (
        model([node("Reshape", "x s")], SEQUENCE, {"s": [-1, 4]}),
        ["output y", "the batch and other axes are one axis"],
    ),
    # Recurrent layers.
    "lengths": (
        with_operand("LSTM", "x w r b n", {"n": ("B",)}),
        ["LSTM_y (LSTM)", "lengths of sequences"],
    ),
    "an unknown activation": (
        recurrent("LSTM", activations=["Sigmoid", "ScaledTanh", "ScaledTanh"]),
        ["LSTM_y", "activation scaledtanh"],
    ),
    "a function without a default": (
        recurrent("GRU", activations=["Sigmoid", "Affine"]),
        ["GRU_y", "activation affine"],
    ),
    "a clip of 0": (recurrent("LSTM", clip=0.0), ["LSTM_y", "clip is 0.0, must be positive"]),
    "numbers of no function": (
        recurrent("GRU", activations=["HardSigmoid", "Tanh"], activation_alpha=[1 / 6, 0.3]),
        ["GRU_y", "more alpha or beta"],
    ),
    "rows that begin with other states": (
        with_operand("GRU", "x w r b - s", s=random(1, 2, H)),
        ["GRU_y", "differs between the rows"],
    ),
    "states of another shape": (
        with_operand("GRU", "x w r b - s", s=random(1, H)),
        ["GRU_y", "2 axes, not 3"],
    ),
    "a state that is no number": (
        with_operand("GRU", "x w r b - s", s=np.full((1, 1, H), np.nan)),
        ["GRU_y", "initial states is NaN"],
    ),
    "lengths of rows": (
        one("ReduceL2", axes_=[2]),
        ["output y is the lengths of rows, by which a session only divides"],
    ),
    "a scale": (
        model([node("DynamicQuantizeLinear", "x", "q y z")], SEQUENCE),
        ["output y is the scale of a quantised array"],
    ),
    "lengths that are constants": (
        with_operand("GRU", "x w r b n", n=np.array([1, 2], np.int32)),
        ["GRU_y", "sequence_lens) are constants"],
    ),
    "weights that are inputs": (
        with_operand("LSTM", "x v r b", {"v": ("B", 4 * H, FEATURES)}),
        ["LSTM_y", "W (v) is computed"],
    ),
    "other features than weights": (
        model([layer("GRU")], ("T", "B", FEATURES + 1), weights("GRU")),
        ["GRU_y", str(FEATURES + 1)],
    ),
    # Integers, and outputs.
    "integers computed": (
        model([node("Add", "x k")], ("B", "T"), {"k": [1]}, dtypes={"x": TensorProto.INT64}),
        ["y"],
    ),
    "integers of an output": (
        model([node("Identity", "x")], ("B", "T"), dtypes={"x": TensorProto.INT64}),
        ["output y has integers"],
    ),
    "an output of a constant": (
        model([node("Relu", "x", "h"), node("Identity", "k")], SEQUENCE, {"k": random(4)}),
        ["output y does not depend on an input"],
    ),
    "an output of sizes": (model([node("Shape", "x")], SEQUENCE), ["output y"]),
    "numbers as indices": (one("Cast", to=TensorProto.INT64), ["output y has integers"]),
    # Axes.
    "an axis that is not there": (one("Softmax", axis=3), ["Softmax_y", "names axis 3"]),
    "a squeezed axis": (one("Squeeze", [2], opset=13), ["Squeeze_y", "not the size 1"]),
    "a repeated axis": (
        model([node("Expand", "x s")], ("B", 1, 4), {"s": [1, 5, 4]}),
        ["Expand_y", "repeats elements"],
    ),
    "other sizes": (
        model([node("Add", "x u")], {"x": ("B", 5, 4), "u": ("B", 5, 3)}),
        ["Add_y", "different sizes"],
    ),
    "steps of 2": (one("Slice", [0], [4], [1], [2]), ["Slice_y", "and this one has 2"]),
    "several elements": (one("Gather", [0, 1], axis=2), ["Gather_y", "2 elements of an axis"]),
    "other padding": (
        one("Pad", [0, 1, 0, 0, 0, 0], np.float32(1), opset=13),
        ["Pad_y", "another number than 0"],
    ),
    "edges": (one("Pad", [0, 1, 0, 0, 0, 0], opset=13, mode="edge"), ["Pad_y", "edge"]),
    "less than nothing": (one("Pad", [0, -1, 0, 0, 0, 0], opset=13), ["Pad_y"]),
    "zeros joined": (
        model([*ZEROS, node("Concat", "zeros x", axis=1)], SEQUENCE),
        ["Concat_y", "an array of equal elements"],
    ),
    "zeros that repeat": (
        model([node("ConstantOfShape", "k", "z"), node("Add", "x z")], ("B", 1), {"k": [1, 4]}),
        ["Add_y", "repeats the other operand"],
    ),
    "a bias of rows": (
        one("Gemm", random(4, 3), random(3, 1), axes=("B", 4)),
        ["Gemm_y", "shape [3, 1], not [3]"],
    ),
    "dropout": (
        one("Dropout", np.float32(0.5), np.bool_(True)),
        ["Dropout_y", "that of training"],
    ),
    "a mean of each step": (
        one("BatchNormalization", *[random(4)] * 4, axes=("B", 4), opset=7, spatial=0),
        ["BatchNormalization_y", "a mean for each step"],
    ),
    "an unknown attribute": (one("Relu", alpha=1.0), ["Relu_y", "has the attribute alpha"]),
    "an attribute of another type": (one("Elu", alpha=1), ["Elu_y", "attribute alpha is of anot"]),
    "a missing attribute": (one("Concat"), ["Concat_y", "attribute axis is missing"]),
    "too many inputs": (one("Relu", random(1)), ["Relu_y", "it has 2 inputs"]),
    "a missing input": (model([node("Add", "x -")], SEQUENCE), ["Add_y", "input B is missing"]),
    "a flag of 2": (one("ReduceMean", axes_=[1], keepdims=2), ["ReduceMean_y", "not 0 or 1"]),
    "an axis twice": (one("Unsqueeze", [0, 0], opset=13), ["Unsqueeze_y", "two are the same"]),
    "too few pads": (one("Pad", [0, 1], opset=13), ["Pad_y", "2 pads for the axes [0, 1, 2]"]),
    "a number as an axis": (one("Squeeze", random(1), opset=13), ["Squeeze_y", "no integers"]),
    "longer windows": (
        one("MaxPool", axes=("B", 4, 2), kernel_shape=[3]),
        ["MaxPool_y", "longer than the 2 steps"],
    ),
    "statistics": (
        model(
            [node("BatchNormalization", "x a b c d", "y m v", training_mode=1)],
            ("B", 4),
            dict.fromkeys("abcd", random(4)),
            "y m",
        ),
        ["BatchNormalization", "training"],
    ),
}


def test_lengths_that_are_computed() -> None:
    nodes = [node("Add", "n one", "m"), layer("GRU", "x w r b m")]
    inputs = {"x": ("T", "B", FEATURES), "n": ("B",)}
    arrays = weights("GRU") | {"one": np.array([1], np.int32)}
    text = refusal(model(nodes, inputs, arrays, dtypes={"n": TensorProto.INT32}))
    assert "(sequence_lens) are computed; a session takes an input as it is" in text


def test_characters_that_are_not_printed() -> None:
    """They would change how a terminal shows the message."""
    proto = one("Sin")
    proto.graph.node[0].name = "a\n\x1b[31mb\u202e"
    assert r"node a\n\x1b[31mb\u202e (Sin)" in refusal(proto)
    text = refusal(recurrent("GRU", activations=["Tanh\n", "Tanh"]))
    assert r"its activation tanh\n" in text
    listed = [layers.Dense(random(4, 3)), layers.Dense(random(4, 3), name="a\x1bb")]
    with pytest.raises(ValueError, match=r"layer 1, a\\x1bb \(dense\): the last axis"):
        Session.from_layers(listed)(random(2, 4))


@pytest.mark.parametrize("case", CASES)
def test_refusal(case: str) -> None:
    proto, words = CASES[case]
    text = refusal(proto)
    assert [word for word in words if word not in text] == [], text
    assert len(text) < 400


def test_all_reasons_are_said_at_once() -> None:
    """Equal ones once, and none for the nodes that need what is missing."""
    nodes = [
        *(node("Erf", "x", "a"), node("Erf", "x", "b"), node("Relu", "b", "c")),
        *(node("Sin", "x", "d"), node("Pow", "x three", "e"), node("Tanh", "x", "f")),
        node("Concat", "a c d e f", axis=-1),
    ]
    text = refusal(model(nodes, SEQUENCE, {"three": np.float32(3)}))
    assert text.startswith("a session does not compute these nodes: node Erf_a (Erf) and 1 more: ")
    assert text.count("a session has no operator") == 2
    assert "node Sin_d (Sin): a session has no operator Sin" in text
    assert text.endswith("; node Pow_e (Pow): a session has the powers 1 and 2")
    assert not any(name in text for name in ("Relu", "Tanh", "Concat"))


def test_many_reasons() -> None:
    modes = [f"m{k}" for k in range(13)]
    nodes = [node("Pad", "x pads", mode, mode=mode) for mode in modes]
    pads = np.zeros(6, np.int64)
    text = refusal(model([*nodes, node("Sum", " ".join(modes))], SEQUENCE, {"pads": pads}))
    assert text.count("its mode is") == 10
    assert text.endswith("; and 3 more reasons")


def test_an_unknown_domain() -> None:
    proto = model([helper.make_node("Fast", ["x"], ["y"], domain="org.example")], SEQUENCE)
    proto.opset_import.append(helper.make_opsetid("org.example", 1))
    assert "output y (Fast)" in refusal(proto)
    assert "of the domain org.example" in refusal(proto)


def test_an_operator_of_another_domain_with_a_known_name() -> None:
    proto = model([helper.make_node("Relu", ["x"], ["y"], domain="org.example")], SEQUENCE)
    assert "of the domain org.example" in refusal(proto)


def test_strings() -> None:
    proto = model([node("Relu", "x")], SEQUENCE, dtypes={"x": TensorProto.STRING})
    assert "input x must be an array of floats or integers" in refusal(proto)


def test_an_input_without_a_shape() -> None:
    proto = one("Relu")
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    assert "input x must be an array" in refusal(proto)
    proto.graph.input[0].ClearField("type")
    assert "input x must be an array" in refusal(proto)


def test_too_many_or_no_axes() -> None:
    assert "0 axes" in refusal(one("Relu", axes=()))
    assert "7 axes" in refusal(one("Relu", axes=("B", 2, 2, 2, 2, 2, 2)))


def test_a_condition_that_is_an_input() -> None:
    branch = helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "b", [], [])
    branch.output.append(helper.make_tensor_value_info("r", 1, None))
    nodes = [node("If", "c", then_branch=branch, else_branch=branch)]
    inputs = {"x": SEQUENCE, "c": ("B",)}
    proto = model(nodes, inputs, dtypes={"c": TensorProto.BOOL})
    assert "constants={name: value}" in refusal(proto)
    assert Session.from_onnx(proto, check=False, constants={"c": [True]}) is not None


def function(name: str, *nodes: Any) -> Any:
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, ["a"], ["b"], nodes, domains)


def with_functions(*functions: Any) -> Any:
    proto = model([helper.make_node("First", ["x"], ["y"], domain="local")], SEQUENCE)
    proto.functions.extend(functions)
    proto.opset_import.append(helper.make_opsetid("local", 1))
    return proto


def call(name: str, source: str = "a", target: str = "b") -> Any:
    return helper.make_node(name, [source], [target], domain="local")


def test_functions_of_the_model() -> None:
    """They are inlined."""
    twice = function("Twice", helper.make_node("Add", ["a", "a"], ["b"]))
    proto = with_functions(
        function("First", call("Twice", "a", "h"), helper.make_node("Tanh", ["h"], ["b"])), twice
    )
    session = Session.from_onnx(proto)
    x = random(2, 3, 4).astype(np.float32)
    np.testing.assert_allclose(session(x), np.tanh(2 * x), 0, 1e-6)  # float32


def test_functions_that_cannot_be_inlined() -> None:
    assert "calls itself" in refusal(with_functions(function("First", call("First"))))
    names = ["First", *(f"F{k}" for k in range(40))]
    doubled = [
        function(name, call(other, "a", "h"), call(other, "h", "b"))
        for name, other in itertools.pairwise(names)
    ]
    last = function(names[-1], helper.make_node("Relu", ["a"], ["b"]))
    assert "more than 65536 nodes" in refusal(with_functions(*doubled, last))
    assert "no operator F2 of the domain local" in refusal(with_functions(*doubled[:3]))
