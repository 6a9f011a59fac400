"""Convolutions and pooling of ONNX in a session, beside ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads and makes the models")
pytest.importorskip("onnxruntime", reason="runs the models")
from session.onnx_sources import Axes, check, model, node
from session.test_from_onnx_operators import one, random

SEQUENCES: list[Axes] = [("B", 4, "T"), ("B", 4, 9)]
CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strides": {"strides": [2]},
    "strides of three": {"strides": [3], "pads": [1, 1]},
    "dilation": {"dilations": [2]},
    "same": {"pads": [1, 1]},
    "causal": {"pads": [4, 0], "dilations": [2]},
    "uneven": {"pads": [1, 2], "strides": [2], "dilations": [2]},
    "upper": {"auto_pad": "SAME_UPPER"},
    "upper, strides": {"auto_pad": "SAME_UPPER", "strides": [2]},
    "valid": {"auto_pad": "VALID", "strides": [2]},
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("axes", SEQUENCES)
def test_conv(axes: Axes, case: str) -> None:
    attributes = CONVOLUTIONS[case]
    for size in (1, 3):
        check(one("Conv", random(6, 4, size), random(6), axes=axes, **attributes))
        check(one("Conv", random(6, 4, size), axes=axes, opset=9, **attributes))
    # Groups, and channels by themselves.
    check(one("Conv", random(6, 2, 3), random(6), axes=axes, group=2, **attributes))
    check(one("Conv", random(4, 1, 3), random(4), axes=axes, group=4, **attributes))
    check(one("Conv", random(8, 1, 3), random(8), axes=axes, group=4, **attributes))


def test_conv_of_lower_padding() -> None:
    """With a stride it depends on the number of steps, and is refused."""
    for size in (1, 2, 3, 4):
        check(one("Conv", random(6, 4, size), axes=("B", 4, "T"), auto_pad="SAME_LOWER"))


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_conv_of_two_axes(case: str) -> None:
    """One of the two has the size 1, as in Keras' Conv1D by tf2onnx."""
    attributes = CONVOLUTIONS[case]
    for first in (False, True):
        pair = {"strides": [1, 1], "dilations": [1, 1], "pads": [0, 0, 0, 0]}
        place = 0 if first else 1
        for name, values in attributes.items():
            if name in pair:
                for k, value in enumerate(values):
                    pair[name][place + 2 * k] = value
            else:
                pair = {name: values} | {k: v for k, v in pair.items() if k != "pads"}
        kernel, axes = ((3, 1), ("B", 4, "T", 1)) if first else ((1, 3), ("B", 4, 1, "T"))
        check(one("Conv", random(6, 4, *kernel), axes=axes, **pair))


def test_conv_of_the_batch_and_time_first() -> None:
    for axes, there, back in (
        (("B", "T", 4), [0, 2, 1], [0, 2, 1]),
        (("T", "B", 4), [1, 2, 0], [2, 0, 1]),
    ):
        nodes = [
            node("Transpose", "x", "t", perm=there),
            node("Conv", "t w b", "c", pads=[2, 0]),
            node("Relu", "c", "r"),
            node("Transpose", "r", perm=back),
        ]
        check(model(nodes, axes, {"w": random(5, 4, 3), "b": random(5)}))


@pytest.mark.parametrize("mode", ["constant", "reflect"])
def test_pad_before_conv(mode: str) -> None:
    """A Pad of zeros becomes part of the convolution."""
    for pads in ([0, 0, 2, 0, 0, 0], [0, 0, 1, 0, 0, 2]):
        for own in ([0, 0], [1, 1]):
            nodes = [node("Pad", "x p", "h", mode=mode), node("Conv", "h w", "y", pads=own)]
            for axes in SEQUENCES:
                check(model(nodes, axes, {"p": pads, "w": random(5, 4, 3)}))
                two = [*nodes, node("Neg", "h", "z")]  # what is padded is an output, too
                check(model(two, axes, {"p": pads, "w": random(5, 4, 3)}, "y z"))


def test_a_residual_of_convolutions() -> None:
    """As of a TCN: the end of the input is added."""
    nodes = [
        node("Conv", "x w", "c", dilations=[2]),
        node("Tanh", "c", "t"),
        node("Slice", "x four end two", "s"),
        node("Add", "t s"),
    ]
    arrays = {"w": random(4, 4, 3), "four": [4], "end": [2**63 - 1], "two": [2]}
    check(model(nodes, ("B", 4, "T"), arrays))


@pytest.mark.parametrize("axes", [*SEQUENCES, ("B", 4, 1, "T"), ("B", 4, "T", 1)])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_pooling(op: str, axes: Axes) -> None:
    for opset in (7, 11, 13, 22):
        for size, stride in ((2, 2), (3, 1), (2, 3)):
            for more in ({}, {"auto_pad": "SAME_UPPER"}, {"auto_pad": "VALID"}):
                if stride > size and more.get("auto_pad") == "SAME_UPPER":
                    continue  # ONNX Runtime fails
                place = 1 if axes[2] == 1 else 0
                count = len(axes) - 2
                sizes, strides = [1] * count, [1] * count
                sizes[place], strides[place] = size, stride
                check(one(op, axes=axes, opset=opset, kernel_shape=sizes, strides=strides, **more))


def test_pooling_with_pads_of_zero() -> None:
    for op in ("MaxPool", "AveragePool"):
        options = {"kernel_shape": [2], "strides": [2], "pads": [0, 0], "ceil_mode": 0}
        check(one(op, axes=("B", 4, "T"), **options))
    check(one("AveragePool", axes=("B", 4, "T"), kernel_shape=[2], count_include_pad=1))
    check(one("MaxPool", axes=("B", 4, "T"), kernel_shape=[3]))  # the stride is 1 by default


@pytest.mark.parametrize("more", [{"pads": [1, 1]}, {"auto_pad": "SAME_LOWER"}])
def test_pooling_with_padding(more: dict[str, Any]) -> None:
    """As PyTorch has it: of a size on both ends with stride 1, or with zeros that count."""
    options = {"axes": ("B", 4, "T"), "kernel_shape": [3], **more}
    check(one("MaxPool", **options))
    check(one("AveragePool", **options))
    if "pads" in more:
        check(one("AveragePool", **options | {"strides": [2]}, count_include_pad=1))


GLOBAL: list[Axes] = [("B", 4, "T"), ("B", 4, 5), ("B", 4, 1, "T"), ("B", 4, "T", 1)]


@pytest.mark.parametrize("op", ["GlobalMaxPool", "GlobalAveragePool"])
def test_global_pooling(op: str) -> None:
    for axes in GLOBAL:
        check(one(op, axes=axes))
        nodes = [node(op, "x", "g"), node("Flatten", "g", "f"), node("MatMul", "f w")]
        check(model(nodes, axes, {"w": random(4, 3)}))


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMean", "ReduceSum"])
@pytest.mark.parametrize("opset", [7, 11, 13, 18])
def test_reduction(op: str, opset: int) -> None:
    axes_are_operand = opset >= (13 if op == "ReduceSum" else 18)

    def reduced(axes: Axes, places: list[int], keepdims: int, **more: Any) -> None:
        if axes_are_operand:
            check(one(op, places, axes=axes, opset=opset, keepdims=keepdims, **more))
        else:
            check(one(op, axes=axes, opset=opset, keepdims=keepdims, axes_=places, **more))

    for keepdims in (0, 1):
        for given, places in [
            (("B", "T", 4), [1]),
            (("B", "T", 4), [-2]),
            (("B", "T", 4), [2]),
            (("B", 4, "T"), [2]),
            (("B", 4, "T"), [-1]),
            (("B", 4, "T"), [1]),
            (("T", "B", 4), [0]),
            (("B", 5, 4), [1]),
            (("B", 4), [1]),
            (("B", 1, "T", 4), [2]),
            (("B", 1, "T", 4), [1, 2]),
            (("B", "T", 5, 4), [2]),
            (("B", "T", 5, 4), [1, 2]),
            (("B", 5, 4, "T"), [1, -1]),
        ]:
            reduced(given, places, keepdims)
    check(one(op, axes=("B", 4), opset=18, noop_with_empty_axes=1))


def test_a_mean_over_time_behind_an_lstm() -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((1, 16, 4)) for name in "wr"}
    nodes = [
        node("LSTM", "x w r", "h", hidden_size=4),
        node("Squeeze", "h one", "s"),
        node("ReduceMean", "s", "m", axes=[0], keepdims=0),
        node("Gemm", "m k"),
    ]
    check(model(nodes, ("T", "B", 4), arrays | {"one": [1], "k": random(4, 2)}))
