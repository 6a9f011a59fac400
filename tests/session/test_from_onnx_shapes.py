"""Operators of ONNX that move elements, take parts or join, beside ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads and makes the models")
pytest.importorskip("onnxruntime", reason="runs the models")
from onnx import TensorProto, helper

from session.onnx_sources import Axes, check, model, node, refusal
from session.test_from_onnx_operators import one, random
from tf_lstm_ops.inference import Session

INT_MAX, INT32_MAX = 2**63 - 1, 2**31 - 1


def chain(*nodes: Any, axes: Any = ("B", "T", 4), opset: int = 13, **arrays: Any) -> None:
    check(model(nodes, axes, arrays, opset=opset))


# --- axes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [("B", "T", 4), ("B", 4, "T"), ("B", 5, 4)])
def test_transpose(axes: Axes) -> None:
    for perm in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
        check(one("Transpose", axes=axes, perm=perm))
    check(one("Transpose", axes=axes))


def test_transpose_of_four_axes() -> None:
    for perm in ([0, 2, 1, 3], [0, 3, 1, 2], [2, 0, 3, 1], [0, 1, 3, 2], [3, 2, 1, 0]):
        chain(
            node("Transpose", "x", "t", perm=perm),
            node("Tanh", "t", "h"),
            node("Add", "h h"),
            axes=("B", 5, 6, 4),
        )


def test_squeeze_and_unsqueeze() -> None:
    for opset in (11, 13):
        old = opset < 13
        for place in (0, 1, 2, 3, -1, -2):
            axes = {"axes": [place]} if old else {}
            names = "x" if old else "x place"
            back = "h" if old else "h place"
            nodes = [node("Unsqueeze", names, "u", **axes), node("Relu", "u", "h")]
            arrays = {} if old else {"place": [place]}
            chain(*nodes, node("Squeeze", back, **axes), opset=opset, **arrays)
            chain(*nodes, node("Squeeze", "h"), opset=opset, **arrays)
            chain(*nodes, node("Identity", "h"), opset=opset, **arrays)
    chain(node("Unsqueeze", "x places", "u"), node("Squeeze", "u"), places=[0, 3, -1])
    chain(node("Squeeze", "x places"), axes=("B", 1, "T", 1), places=[1, -1])


def test_squeeze_of_all_axes_of_one_element() -> None:
    """What follows counts the others."""
    for axes in (("B", 1, 4), ("B", 1, "T", 4), ("B", "T", 1, 4)):
        chain(node("Squeeze", "x", "s"), node("Softmax", "s", axis=1), axes=axes)


def test_squares_behind_another_batch() -> None:
    """The first axis is tried as the batch, which the sum of squares refuses at the output."""
    nodes = [node("Gather", "x zero", "g", axis=0), node("Mul", "g g")]
    check(model(nodes, (1, "B", 4), {"zero": np.int64(0)}))


def test_further_axes_of_constants() -> None:
    """They are axes of the result."""
    for one_node in (
        node("Pow", "x two", "h"),
        node("Mul", "x k", "h"),
        node("Expand", "x e", "h"),
    ):
        nodes = [one_node, node("Softmax", "h", axis=2)]
        arrays = {"two": np.full((1, 1, 1), 2.0), "k": random(1, 1, 4), "e": [1, 1, 1]}
        chain(*nodes, axes=("B", 4), **arrays)


RESHAPES: dict[str, tuple[Axes, list[int]]] = {
    "copies": (("B", "T", 4), [0, 0, 4]),
    "copies and one open": (("B", "T", 4), [0, 0, -1]),
    "open steps": (("B", "T", 4), [0, -1, 4]),
    "rows of all steps": (("B", "T", 4), [-1, 4]),
    "flat": (("B", 5, 4), [0, -1]),
    "flat by numbers": (("B", 5, 4), [-1, 20]),
    "divided": (("B", "T", 6), [0, 0, 2, 3]),
    "divided, open": (("B", "T", 6), [0, 0, -1, 3]),
    "a new axis": (("B", "T", 4), [0, 0, 1, 4]),
    "joined in another way": (("B", 6, 4), [0, 3, 8]),
    "time first": (("T", "B", 6), [0, 0, 3, 2]),
    "channels": (("B", 6, "T"), [0, 2, 3, -1]),
    "ones": (("B", 1, "T", 4), [0, -1, 4]),
}


@pytest.mark.parametrize("case", RESHAPES)
def test_reshape(case: str) -> None:
    axes, shape = RESHAPES[case]
    grown = shape[0] == -1
    nodes = [node("Reshape", "x shape", "h" if grown else "y")]
    nodes += [node("Reshape", "h back")] if grown else []
    back = [-1, *(5 if each == "T" else each for each in axes[1:])]
    if grown and "T" in axes:  # the batch alone is an axis of the output
        axes = tuple(5 if each == "T" else each for each in axes)
    arrays = {"shape": shape} | ({"back": back} if grown else {})
    chain(*nodes, axes=axes, **arrays)
    chain(node("Sigmoid", "x", "s"), node("Reshape", "s shape"), axes=("B", 5, 4), shape=[0, -1])


def test_reshape_with_allowzero() -> None:
    check(one("Reshape", [-1, 5, 4], axes=("B", 5, 4), opset=14, allowzero=1))
    check(one("Reshape", [-1, 2, 10], axes=("B", 5, 4), opset=14, allowzero=1))


def test_divided_features_moved() -> None:
    """Heads to the front, a layer of each, and back."""
    chain(
        node("Reshape", "x heads", "h"),
        node("Transpose", "h", "t", perm=[0, 2, 1, 3]),
        node("MatMul", "t w", "m"),
        node("Transpose", "m", "b", perm=[0, 2, 1, 3]),
        node("Reshape", "b whole"),
        axes=("B", "T", 6),
        heads=[0, 0, 2, 3],
        w=random(3, 5),
        whole=[0, 0, 10],
    )


def test_shape_chains() -> None:
    """Sizes of axes as targets of Reshape, in the ways of exporters."""
    sizes = [
        node("Shape", "x", "sizes"),
        node("Gather", "sizes zero", "rows", axis=0),
        node("Gather", "sizes one", "steps", axis=0),
        node("Mul", "rows steps", "all"),
        node("Unsqueeze", "all first", "all1"),
        node("Concat", "all1 features", "flat", axis=0),
        node("Reshape", "x flat", "f"),
        node("Gemm", "f w", "g"),
        node("Slice", "sizes first two", "front"),
        node("Concat", "front more", "back", axis=0),
        node("Reshape", "g back"),
    ]
    arrays = {"zero": np.int64(0), "one": np.int64(1), "first": [0], "two": [2]}
    arrays |= {"features": [4], "w": random(4, 3), "more": [3]}
    for axes in (("B", "T", 4), ("T", "B", 4), ("B", 5, 4)):
        chain(*sizes, axes=axes, **arrays)


def test_flatten() -> None:
    for axes, axis in ((("B", 5, 4), 1), (("B", 5, 4), -2), (("B", 4), 1), (("B", 1, 4), 2)):
        check(one("Flatten", axes=axes, axis=axis))
    chain(node("Flatten", "x", "f", axis=2), node("Reshape", "f s"), axes=("B", 5, 4), s=[-1, 5, 4])
    check(one("Flatten", axes=("B", 5, 4)))


def test_expand() -> None:
    check(one("Expand", [1, 1, 4]))
    check(one("Expand", [4], axes=("B", 4)))
    check(one("Expand", [1, 1, 1, 4]))
    chain(node("Shape", "x", "s"), node("Expand", "x s"))


@pytest.mark.parametrize("to", [TensorProto.FLOAT])
def test_cast_and_identity(to: int) -> None:
    check(one("Cast", to=to))
    chain(node("Identity", "x", "i"), node("Cast", "i", "c", to=to), node("Relu", "c"))


# --- parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("op_axis", [("B", 8, 4), ("B", 4, 8), ("B", 8), ("B", 8, 2, 3)])
def test_slice(op_axis: Axes) -> None:
    axis = op_axis.index(8)
    for start, end in [
        *((0, 3), (2, INT_MAX), (-3, INT_MAX), (0, -2), (-6, -1), (2, 100), (0, 8), (-100, 5)),
        *((5, 6), (7, 8), (0, 1), (-1, INT32_MAX), (3, INT32_MAX)),
    ]:
        check(one("Slice", [start], [end], [axis], axes=op_axis))
    check(one("Slice", [1], [5], [axis], [1], axes=op_axis))
    check(one("Slice", [-1], [-INT_MAX], [axis], [-1], axes=op_axis))
    check(one("Slice", [INT_MAX], [-INT_MAX], [axis], [-1], axes=op_axis))


@pytest.mark.parametrize("axes", [("B", "T", 4), ("T", "B", 4), ("B", 4, "T")])
def test_slice_of_steps(axes: Axes) -> None:
    """Their number is not known."""
    time = axes.index("T")
    for start, end in ((0, 3), (2, INT_MAX), (-3, INT_MAX), (0, -2), (1, -1), (0, INT_MAX)):
        check(one("Slice", [start], [end], [time], axes=axes))
    check(one("Slice", [-1], [INT_MAX], [time], axes=axes))
    check(one("Slice", [0], [1], [time], axes=axes))
    check(one("Slice", [-1], [-INT_MAX], [time], [-1], axes=axes))


def test_slice_of_several_axes() -> None:
    check(one("Slice", [1, 0], [INT_MAX, 3], [1, 2]))
    check(one("Slice", [0, 1, 2], [INT_MAX, INT_MAX, INT_MAX]))
    check(model([node("Slice", "x", axes=[2], starts=[1], ends=[3])], ("B", "T", 4), opset=9))
    check(model([node("Slice", "x", starts=[0, 1], ends=[INT_MAX, 3])], ("B", "T", 4), opset=9))


def test_backwards_twice() -> None:
    arrays = {"s": [-1], "e": [-INT_MAX], "a": [1], "d": [-1]}
    chain(node("Slice", "x s e a d", "r"), node("Slice", "r s e a d"), **arrays)
    chain(node("Slice", "x s e a d", "r"), node("Concat", "x r", axis=2), **arrays)


def test_split() -> None:
    for axis in (2, -1):
        nodes = [node("Split", "x", "a y", axis=axis)]
        check(model(nodes, ("B", "T", 6), opset=13))
        nodes = [node("Split", "x parts", "a b c", axis=axis), node("Mul", "a c")]
        check(model(nodes, ("B", "T", 7), {"parts": [2, 3, 2]}, opset=13))
    check(model([node("Split", "x", "a y", axis=2, split=[4, 2])], ("B", "T", 6), opset=11))
    check(model([node("Split", "x", "a b y", axis=1, num_outputs=3)], ("B", 8, 2), opset=18))
    check(model([node("Split", "x", "y z", axis=1)], ("B", 6, "T"), outputs="y z"))
    check(model([node("Split", "x", "y z", axis=1)], ("B", 6), outputs="y z"))


@pytest.mark.parametrize("axes", [("B", "T", 4), ("T", "B", 4), ("B", 4, "T"), ("B", 5, 4)])
def test_gather(axes: Axes) -> None:
    axis = 2 - axes.index(4) if axes[1] != "B" else 0
    last = [4, -2, -5] if 5 in axes else []
    for at in [0, -1, 2, *last]:
        for index in (np.int64(at), [at]):
            check(one("Gather", index, axes=axes, axis=axis or 1 if axes[1] != "B" else 0))
    for at in (0, 3, -1, -4):
        check(one("Gather", np.int64(at), axes=axes, axis=axes.index(4)))


@pytest.mark.parametrize("dtype", [TensorProto.INT64, TensorProto.INT32])
@pytest.mark.parametrize("axes", [("B", "T"), ("T", "B"), ("B", 5), ("B",)])
def test_embedding(axes: Axes, dtype: int) -> None:
    nodes = [node("Gather", "table x", "e"), node("MatMul", "e w")]
    if len(axes) == 1:
        nodes[1:] = [node("Identity", "e")]
    arrays = {"table": random(4, 6), "w": random(6, 3)}
    check(model(nodes, axes, arrays, dtypes={"x": dtype}))


def test_embedding_of_casted_indices() -> None:
    nodes = [
        node("Cast", "x", "i", to=TensorProto.INT32),
        node("Transpose", "i", "t", perm=[1, 0]),
        node("Gather", "table t"),
    ]
    check(model(nodes, ("B", "T"), {"table": random(4, 6)}, dtypes={"x": TensorProto.INT64}))


def test_reverse_sequence() -> None:
    for axes, time in ((("T", "B", 4), 0), (("B", "T", 4), 1), (("B", 5, 4), 1)):
        nodes = [
            node("Shape", "x", "sizes"),
            node("Gather", "sizes time", "steps"),
            node("Gather", "sizes batch", "rows"),
            node("Unsqueeze", "rows zero", "r"),
            node("Expand", "steps r", "lengths"),
            node("ReverseSequence", "x lengths", batch_axis=1 - time, time_axis=time),
        ]
        arrays = {"time": np.int64(time), "batch": np.int64(1 - time), "zero": [0]}
        check(model(nodes, axes, arrays, opset=13))


# --- several arrays -----------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [("B", "T", 4), ("T", "B", 4), ("B", 4, "T"), ("B", 5, 4)])
def test_concat_of_features_and_steps(axes: Axes) -> None:
    places = [k for k, each in enumerate(axes) if each != "B"]
    for axis in [*places, places[-1] - 3]:
        nodes = [node("Tanh", "x", "h"), node("Concat", "x h x", axis=axis)]
        check(model(nodes, axes))
        nodes = [node("Concat", "x u", "j", axis=axis), node("Neg", "j")]
        check(model(nodes, {"x": axes, "u": axes}))


def test_concat_of_other_sizes() -> None:
    for order in ("x u", "u x", "u x u"):
        check(model([node("Concat", order, axis=2)], {"x": ("B", "T", 4), "u": ("B", "T", 3)}))
        check(model([node("Concat", order, axis=1)], {"x": ("B", "T", 4), "u": ("B", 1, 4)}))
        check(model([node("Concat", order, axis=1)], {"x": ("B", 4, "T"), "u": ("B", 3, "T")}))
        check(model([node("Concat", order, axis=1)], {"x": ("B", 4, "T"), "u": ("B", 1, "T")}))
        check(model([node("Concat", order, axis=1)], {"x": ("B", 1, 4), "u": ("B", 1, 4)}))
    nodes = [node("Transpose", "x", "t", perm=[0, 2, 1]), node("Concat", "x t", axis=1)]
    check(model(nodes, ("B", 4, 4)))


def test_an_axis_of_one_element_repeated() -> None:
    """It is no number of steps, for which another could stand."""
    nodes = [
        node("Concat", "x x", "c", axis=1),
        node("Add", "x c", "a"),
        node("ReduceMean", "a", "m", axes_=[3], keepdims=0),
        node("Gather", "m k", axis=1),
    ]
    check(model(nodes, ("B", 1, 6, "T"), {"k": np.int64(-1)}, opset=13))
    nodes = [node("Transpose", "x", "t", perm=[0, 2, 1]), node("Add", "x t")]
    check(model(nodes, ("B", 1, 6)))


def test_stack() -> None:
    """Along a new axis, in each place."""
    for place in (1, 2, 3):
        nodes = [
            node("Tanh", "x", "h"),
            node("Unsqueeze", "x place", "a"),
            node("Unsqueeze", "h place", "b"),
            node("Concat", "a b a", "c", axis=place),
            node("Relu", "c"),
        ]
        chain(*nodes, place=[place])
        chain(*nodes[:-1], node("ReduceMean", "c", axes=[place], keepdims=0), place=[place])


def test_concat_of_parts() -> None:
    """In their order they are what they are parts of, else not."""
    nodes = [node("Split", "x", "a b", axis=2), node("Concat", "a b", axis=2)]
    check(model(nodes, ("B", "T", 4), opset=13))
    nodes[1] = node("Concat", "b a", axis=2)
    check(model(nodes, ("B", "T", 4), opset=13))
    nodes[1] = node("Concat", "a b a", axis=2)
    check(model(nodes, ("B", "T", 4), opset=13))


@pytest.mark.parametrize("mode", ["constant", "reflect"])
def test_pad(mode: str) -> None:
    for axes, pads in [
        (("B", "T", 4), [0, 2, 0, 0, 3, 0]),
        (("T", "B", 4), [1, 0, 0, 2, 0, 0]),
        (("B", 4, "T"), [0, 0, 2, 0, 0, 0]),
        (("B", 5, 4), [0, 0, 1, 0, 0, 2]),
        (("B", 4), [0, 1, 0, 2]),
    ]:
        check(one("Pad", pads, axes=axes, opset=13, mode=mode))
        check(model([node("Pad", "x", pads=pads, mode=mode)], axes, opset=7))
    check(one("Pad", [2, 1], None, [1], opset=18, mode=mode))
    check(one("Pad", [2, 1], None, [-1], axes=("B", 4, "T"), opset=18, mode=mode))
    check(one("Pad", [0, 2, 0, 0, 3, 0], np.float32(0), opset=13, mode=mode))


def test_if_of_a_constant() -> None:
    for condition in (True, False):
        branches = {
            name: helper.make_graph(
                [helper.make_node(op, ["h"], [f"{name}_out"])],
                name,
                [],
                [helper.make_tensor_value_info(f"{name}_out", 1, None)],
            )
            for name, op in (("then_branch", "Relu"), ("else_branch", "Tanh"))
        }
        nodes = [node("Neg", "x", "h"), node("If", "c", "i", **branches), node("Add", "i h")]
        chain(*nodes, c=np.bool_(condition))


def branches(then: list[Any], other: list[Any], name: str) -> dict[str, Any]:
    """Two branches whose last nodes make a value of this name."""
    return {
        key: helper.make_graph(
            nodes, key, [], [helper.make_tensor_value_info(nodes[-1].output[0], 1, None)]
        )
        for key, nodes in (("then_branch", then), ("else_branch", other))
    }


def test_if_within_if() -> None:
    """The inner one reads a value that nothing else reads."""
    inner = branches([node("Relu", "h", "a")], [node("Tanh", "h", "b")], "i")
    outer = branches([node("If", "c", "i", **inner)], [node("Neg", "x", "n")], "o")
    nodes = [node("Neg", "x", "h"), node("If", "c", "o", **outer), node("Add", "o x")]
    chain(*nodes, c=np.bool_(True))
    Session.from_onnx(model(nodes, ("B", "T", 4), {"c": np.bool_(True)}))


def test_far_positions() -> None:
    """They stand for the ends of an axis."""
    for axes in (("B", "T", 4), ("B", 8, 4)):
        for start, end in ((-(2**63), INT_MAX), (-(2**62), 3), (2, 2**62)):
            check(one("Slice", [start], [end], [1], axes=axes))
    for start, end in ((2**62, INT_MAX), (0, -(2**63))):
        assert "it takes no elements" in refusal(one("Slice", [start], [end], [1]))
