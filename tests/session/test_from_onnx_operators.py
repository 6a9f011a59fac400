"""Operators of ONNX that a session computes, beside ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads and makes the models")
pytest.importorskip("onnxruntime", reason="runs the models")
from session.onnx_sources import Axes, check, model, node, runtime
from tf_lstm_ops.inference import Session

# The axes of a sequence in the orders of programs.
ORDERS: dict[str, Axes] = {
    "batch first": ("B", "T", 4),
    "time first": ("T", "B", 4),
    "channels first": ("B", 4, "T"),
    "rows": ("B", 4),
    "sizes": ("B", 5, 4),
}


def random(*shape: int) -> Any:
    return np.random.default_rng(3).uniform(0.5, 1.5, shape) * np.resize([1, -1, 1], shape)


def one(op: str, *constants: Any, axes: Axes = ("B", "T", 4), opset: int = 17, **more: Any) -> Any:
    """A model of one node of x and constants."""
    names = [f"k{k}" if each is not None else "-" for k, each in enumerate(constants)]
    arrays = {name: each for name, each in zip(names, constants, strict=True) if name != "-"}
    return model([node(op, " ".join(["x", *names]), **more)], axes, arrays, opset=opset)


# --- activations -------------------------------------------------------------------------------

ACTIVATIONS: dict[str, tuple[str, int, dict[str, Any]]] = {
    **{op: (op, 17, {}) for op in ("Relu", "Tanh", "Sigmoid", "Softplus", "Softsign", "Exp")},
    **{op: (op, 17, {}) for op in ("Elu", "Selu", "LeakyRelu", "HardSigmoid", "Celu", "Neg")},
    **{op: (op, 17, {}) for op in ("HardSwish", "ThresholdedRelu", "Identity", "Dropout")},
    "Mish": ("Mish", 18, {}),
    "Gelu": ("Gelu", 20, {}),
    "Gelu tanh": ("Gelu", 20, {"approximate": "tanh"}),
    "Elu 0.3": ("Elu", 7, {"alpha": 0.3}),
    "Celu 0.3": ("Celu", 17, {"alpha": 0.3}),
    "LeakyRelu 0.3": ("LeakyRelu", 7, {"alpha": 0.3}),
    "LeakyRelu -0.3": ("LeakyRelu", 7, {"alpha": -0.3}),
    "HardSigmoid of Keras": ("HardSigmoid", 17, {"alpha": 1 / 6, "beta": 0.5}),
    "HardSigmoid negative": ("HardSigmoid", 17, {"alpha": -0.4, "beta": 0.1}),
    "ThresholdedRelu 0.3": ("ThresholdedRelu", 17, {"alpha": 0.3}),
    "ThresholdedRelu -0.3": ("ThresholdedRelu", 17, {"alpha": -0.3}),
    "Shrink": ("Shrink", 17, {}),
    "Shrink hard": ("Shrink", 17, {"lambd": 0.3}),
    "Shrink soft": ("Shrink", 17, {"lambd": 0.3, "bias": 0.3}),
    "Selu explicit": ("Selu", 17, {"alpha": 1.6732632, "gamma": 1.050701}),
    "Clip old": ("Clip", 7, {"min": 0.0, "max": 0.5}),
    "Dropout old": ("Dropout", 7, {"ratio": 0.5}),
}


@pytest.mark.parametrize("order", ORDERS)
def test_activations(order: str) -> None:
    for op, opset, attributes in ACTIVATIONS.values():
        check(one(op, axes=ORDERS[order], opset=opset, **attributes))


CLIPS = {
    "from 0": (0.0,),
    "from 0 to 6": (0.0, 0.6),
    "from -1 to 1": (-1.0, 1.0),
    "no bounds": (),
    "no minimum": (None, 0.3),
    "no maximum": (0.2,),
    "other bounds": (-0.5, 0.75),
    "from above 0": (0.1, 0.7),
    "below 0": (-0.7, -0.1),
    "no end": (0.0, np.inf),
    "no ends": (-np.inf, np.inf),
    "no beginning": (-np.inf, 0.3),
}


@pytest.mark.parametrize("case", CLIPS)
def test_clip(case: str) -> None:
    bounds = [None if each is None else np.float32(each) for each in CLIPS[case]]
    for opset in (11, 13):
        check(one("Clip", *bounds, opset=opset))


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("opset", [11, 13])
def test_softmax(op: str, opset: int) -> None:
    for axes, axis in [
        (("B", "T", 4), 2),
        (("B", "T", 4), -1),
        (("B", 4), 1),
        (("T", "B", 4), -1),
        (("B", 5, 4), 2),
    ]:
        check(one(op, axes=axes, opset=opset, axis=axis))
    check(one(op, axes=("B", 4), opset=opset))
    if opset == 13:
        check(one(op, opset=13))
        check(one(op, axes=("B", "T", 4), opset=13, axis=1))
        check(one(op, axes=("B", 4, "T"), opset=13, axis=1))
        check(one(op, axes=("B", 4, 5), opset=13, axis=1))
        check(one(op, axes=("B", 4, 5, 6), opset=13, axis=2))


@pytest.mark.parametrize("order", ORDERS)
def test_prelu(order: str) -> None:
    axes = ORDERS[order]
    check(one("PRelu", random(1), axes=axes))
    if order == "channels first":
        check(one("PRelu", random(4, 1), axes=axes))
        check(one("PRelu", random(1, 4, 1), axes=axes))
    else:
        check(one("PRelu", random(4), axes=axes))
        check(one("PRelu", random(1, 4), axes=axes))


# --- a constant ---------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_constant_on_either_side(op: str, order: str) -> None:
    rank = len(ORDERS[order])
    shapes: list[tuple[int, ...]] = [(), (1,), (1,) * rank]
    is_last = ORDERS[order][-1] == 4
    shapes += [(4,), (1, 4)] if is_last else [(4, 1), (1, 4, 1)]
    for shape in shapes:
        nodes = [node(op, "x k")]
        check(model(nodes, ORDERS[order], {"k": random(*shape)}, opset=7))
        if op != "Div":
            check(model([node(op, "k x")], ORDERS[order], {"k": random(*shape)}, opset=14))


def test_a_constant_of_several_axes() -> None:
    """Joined into the features."""
    for shape in [(5, 4), (1, 5, 4), (5, 1), (1, 4)]:
        check(one("Mul", random(*shape), axes=("B", 5, 4)))
    nodes = [
        node("Flatten", "x", "f"),
        node("MatMul", "f eye", "m"),  # both are one axis of the value now
        node("Reshape", "m sizes", "r"),
        node("Transpose", "r", "u", perm=[0, 2, 1]),
        node("Add", "u k"),
    ]
    arrays = {"eye": random(20, 20), "sizes": [0, 5, 4], "k": random(4, 5)}
    check(model(nodes, ("B", 5, 4), arrays))


def test_a_constant_of_the_sizes_of_axes() -> None:
    nodes = [node("Constant", "", "k", value_floats=[1.0, 2.0, 3.0, 4.0]), node("Mul", "x k")]
    check(model(nodes, ("B", "T", 4)))
    nodes = [
        node("Shape", "x", "sizes"),
        node("ConstantOfShape", "sizes", "zeros"),
        node("Sub", "zeros x"),
    ]
    check(model(nodes, ("B", "T", 4)))


# --- arrays of the model ------------------------------------------------------------------------

PAIRS: dict[str, tuple[Axes, Axes]] = {
    "same": (("B", "T", 4), ("B", "T", 4)),
    "features repeated": (("B", "T", 1), ("B", "T", 4)),
    "steps repeated": (("B", "T", 4), ("B", 1, 4)),
    "rows repeated": (("T", "B", 4), ("B", 4)),
    "channels": (("B", 4, "T"), ("B", 1, "T")),
    "channels as a mask": (("B", 4, "T"), ("B", 4, 1)),
    "rows": (("B", 4), ("B", 1)),
    "four axes": (("B", 5, 6, 4), ("B", 5, 1, 1)),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Max", "Min", "Mean", "Sum"])
def test_two_arrays(op: str, pair: str) -> None:
    first, second = PAIRS[pair]
    for names in ("x u", "u x"):
        check(model([node(op, names)], {"x": first, "u": second}))


@pytest.mark.parametrize("op", ["Max", "Min", "Mean", "Sum"])
def test_three_arrays(op: str) -> None:
    inputs = {"x": ("B", "T", 4), "u": ("B", 1, 4), "v": ("B", "T", 1)}
    check(model([node(op, "u v x")], inputs))
    check(model([node(op, "x x x")], ("B", "T", 4)))
    check(model([node(op, "x")], ("B", "T", 4)))


def test_an_array_and_its_transposition() -> None:
    """Axes of the same size are not the same axis."""
    nodes = [node("Transpose", "x", "t", perm=[0, 2, 1]), node("Add", "x t")]
    check(model(nodes, ("B", 4, 4)))
    nodes = [node("Reshape", "x shape", "t"), node("Mul", "t x")]
    check(model(nodes, ("B", 4, 1), {"shape": [0, 1, 4]}))


def test_an_array_in_another_order() -> None:
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        node("Tanh", "t", "u"),
        node("Transpose", "u", "v", perm=[0, 2, 1]),
        node("Add", "x v"),
    ]
    check(model(nodes, ("B", "T", 4)))


def test_a_sum_with_a_step_for_all() -> None:
    """Before a recurrent layer, which has a mask for each step."""
    nodes = [node("Sum", "x u u", "s"), node("GRU", "s w r", hidden_size=2)]
    arrays = {"w": random(1, 6, 4), "r": random(1, 6, 2)}
    proto = model(nodes, {"x": ("T", "B", 4), "u": (1, "B", 4)}, arrays)
    check(proto)


def test_a_gate() -> None:
    """Of two products with different features of the same size."""
    nodes = [
        node("MatMul", "x w", "a"),
        node("MatMul", "x w", "b"),
        node("ReduceMean", "b", "m", axes=[1]),
        node("Sigmoid", "m", "s"),
        node("Mul", "s a"),
        node("Add", "y a", "z"),
        node("MatMul", "z w2", "o"),
    ]
    check(model(nodes, ("B", "T", 4), {"w": random(4, 6), "w2": random(6, 3)}, "y o"))


@pytest.mark.parametrize("square", ["Pow", "Mul"])
def test_magnitude(square: str) -> None:
    nodes = [
        node("Slice", "x zero half axis", "a"),
        node("Slice", "x half end axis", "b"),
        node(square, "a two" if square == "Pow" else "a a", "aa"),
        node(square, "b two" if square == "Pow" else "b b", "bb"),
        node("Add", "aa bb", "s"),
        node("Sqrt", "s"),
    ]
    constants = {"zero": [0], "half": [3], "end": [6], "two": np.float32(2)}
    for axes, axis in ((("B", "T", 6), [2]), (("B", 6, "T"), [1]), (("B", 6), [-1])):
        check(model(nodes, axes, constants | {"axis": axis}))
    nodes[4:] = [node("Add", "aa bb")]  # without the root
    check(model(nodes, ("B", "T", 6), constants | {"axis": [2]}))
    check(one("Pow", np.float32(2)))
    check(one("Pow", np.float32(1)))


def test_pow_of_both_exponents() -> None:
    chained = [node("Mul", "x x", "a"), node("Add", "a x", "b"), node("Mul", "b k")]
    check(model(chained, ("B", "T", 4), {"k": random(4)}))
    nodes = [node("Pow", "x two", "a"), node("Mul", "a x")]
    check(model(nodes, ("B", "T", 4), {"two": np.float32(2)}))


# --- matrices -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["batch first", "time first", "rows", "sizes"])
def test_matmul_and_add(order: str) -> None:
    arrays = {"w": random(4, 3), "b": random(3)}
    for names in ("h b", "b h"):
        nodes = [node("MatMul", "x w", "h"), node("Add", names)]
        check(model(nodes, ORDERS[order], arrays, opset=13))


def test_matmul_of_channels_first() -> None:
    nodes = [node("Transpose", "x", "t", perm=[0, 2, 1]), node("MatMul", "t w")]
    check(model(nodes, ("B", 4, "T"), {"w": random(4, 3)}))


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("opset", [7, 11, 13])
def test_gemm(transposed: int, opset: int) -> None:
    kernel = random(3, 4) if transposed else random(4, 3)
    options = {"axes": ("B", 4), "opset": opset, "transB": transposed}
    for bias in ((3,), (1, 3), (1,), ()):
        check(one("Gemm", kernel, random(*bias), **options))
        check(one("Gemm", kernel, random(*bias), alpha=0.5, beta=-2.0, **options))
    if opset > 7:
        check(one("Gemm", kernel, alpha=0.5, **options))


def test_gemm_of_all_steps() -> None:
    """Rows and steps in one axis, and back, as exporters write a Linear behind a Reshape."""
    nodes = [
        node("Reshape", "x flat", "f"),
        node("Gemm", "f w b", "g"),
        node("Shape", "x", "sizes"),
        node("Gather", "sizes zero", "rows"),
        node("Gather", "sizes one", "steps"),
        node("Unsqueeze", "rows first", "r"),
        node("Unsqueeze", "steps first", "s"),
        node("Concat", "r s features", "target", axis=0),
        node("Reshape", "g target"),
    ]
    arrays = {"flat": [-1, 4], "w": random(4, 3), "b": random(3), "features": [3], "first": [0]}
    arrays |= {"zero": np.int64(0), "one": np.int64(1)}
    for axes in (("B", "T", 4), ("T", "B", 4), ("B", 5, 4)):
        check(model(nodes, axes, arrays))


# --- normalisation ------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [("B", 4), ("B", 4, "T"), ("B", 4, 5), ("B", 4, 1, "T")])
@pytest.mark.parametrize("opset", [7, 9, 14, 15])
def test_batch_normalization(axes: Axes, opset: int) -> None:
    arrays = [random(4), random(4), random(4), np.abs(random(4))]
    check(one("BatchNormalization", *arrays, axes=axes, opset=opset))
    check(one("BatchNormalization", *arrays, axes=axes, opset=opset, epsilon=0.1))


@pytest.mark.parametrize("opset", [18, 20, 21])
def test_group_normalization(opset: int) -> None:
    """Before opset 21 scale and B are those of groups, since then of channels."""
    count = 6 if opset > 20 else 3
    arrays = [random(count), random(count)]
    check(one("GroupNormalization", *arrays, axes=("B", 6, "T"), opset=opset, num_groups=3))


@pytest.mark.parametrize("opset", [17, 22])
def test_lp_normalization(opset: int) -> None:
    """A row of zeros stays, and rows of any other length have the length 1."""
    proto = one("LpNormalization", axes=("B", "T", 4), opset=opset)
    check(proto)
    x = np.zeros((1, 2, 4), np.float32)
    x[0, 1] = 3e-30
    got = Session.from_onnx(proto, check=False)(x)
    np.testing.assert_allclose(got, [[[0] * 4, [0.5] * 4]], rtol=1e-6)
    np.testing.assert_array_equal(runtime(proto)({"x": x})[0][0, 0], got[0, 0])


@pytest.mark.parametrize("order", ["batch first", "time first", "rows", "sizes"])
def test_layer_normalization(order: str) -> None:
    axes = ORDERS[order]
    check(one("LayerNormalization", random(4), random(4), axes=axes))
    check(one("LayerNormalization", random(4), axes=axes, epsilon=0.1))
    check(one("LayerNormalization", random(4), axes=axes, axis=len(axes) - 1))
