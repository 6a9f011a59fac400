"""Constants of ONNX files that are repeated to sizes of a call, beside ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="reads and makes the models")
pytest.importorskip("onnxruntime", reason="runs the models")
from onnx import TensorProto, numpy_helper  # noqa: E402

from session.onnx_sources import check, model, node, refusal  # noqa: E402
from session.test_from_onnx_operators import random  # noqa: E402
from session.test_from_onnx_recurrent import FEATURES, H, layer, weights  # noqa: E402
from tf_lstm_ops.onnx_graph import budget  # noqa: E402

SEQUENCE = ("B", "T", 4)
SIZES = node("Shape", "x", "s")
TWOS = [SIZES, node("ConstantOfShape", "s", "e", value=numpy_helper.from_array(np.full(1, 2.0)))]
TWOS.append(node("Cast", "e", "f", to=TensorProto.FLOAT))


def of(*nodes: Any, axes: Any = SEQUENCE, **arrays: Any) -> Any:
    return model(nodes, axes, arrays)


# --- Where --------------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", [True, False])
def test_where(condition: bool) -> None:
    """Of the chosen operand, where it has all sizes; and of a constant, which is repeated."""
    arrays = {"c": np.array(condition), "k": random(4)}
    chosen = "x k" if condition else "k x"
    check(of(SIZES, node("Expand", "c s", "e"), node("Where", f"e {chosen}"), **arrays))
    other = "k x" if condition else "x k"
    nodes = [node("Expand", "c s", "e"), node("Where", f"e {other}", "w"), node("Mul", "x w")]
    check(of(SIZES, *nodes, **arrays))


def test_where_of_negative_indices() -> None:
    nodes = [
        node("Less", "x zero", "l"),
        node("Add", "x rows", "a"),
        node("Where", "l a x", "i"),
        node("Gather", "w i"),
    ]
    arrays = {"zero": np.int64(0), "rows": np.int64(5), "w": random(5, 3)}
    check(model(nodes, ("B", "T"), arrays, dtypes={"x": TensorProto.INT64}))


MEAN = node("ReduceMean", "x", "r", axes=[1], keepdims=1)
REPEATED: dict[str, tuple[Any, str]] = {
    "by the condition": (
        of(SIZES, node("Expand", "c s", "e"), MEAN, node("Where", "e r x"), c=np.array(True)),
        "it repeats an operand that is computed",
    ),
    "by the other operand": (
        of(
            *(SIZES, node("Slice", "s zero one", "b"), node("Concat", "b ones", "t", axis=0)),
            *(node("Expand", "c t", "e"), MEAN, node("Where", "e r x")),
            **{"c": np.array(True), "zero": [0], "one": [1], "ones": [1, 1]},
        ),
        "it repeats an operand that is computed",
    ),
    "to more steps": (
        of(
            *(node("Expand", "c s", "e"), node("Where", "e x k")),
            axes=("B", 1, 4),
            c=np.array(True),
            s=[1, 9, 4],
            k=random(1),
        ),
        "repeats an operand|different sizes",
    ),
}


@pytest.mark.parametrize("case", REPEATED)
def test_where_that_repeats(case: str) -> None:
    proto, words = REPEATED[case]
    assert any(each in refusal(proto) for each in words.split("|")), refusal(proto)


# --- other operators ----------------------------------------------------------------------------


def test_sizes() -> None:
    """Shape and Size of a repeated constant are those of all its elements."""
    tail = [node("Shape", "f", "t"), node("Reshape", "x t")]
    check(of(*TWOS, *tail))
    tail = [node("Size", "f", "n"), node("Reshape", "n one", "t"), node("Reshape", "x t", "z")]
    check(of(*TWOS, *tail, node("Reshape", "z s"), one=[1]))


@pytest.mark.parametrize("op", ["ReduceProd", "Size"])
def test_what_is_not_computed_of_one_element(op: str) -> None:
    nodes = [node("Size", "f", "n"), node("Cast", "n", "p", to=1)]
    nodes = nodes if op == "Size" else [node("ReduceProd", "f", "p", keepdims=0)]
    assert "a session" in refusal(of(*TWOS, *nodes, node("Mul", "x p")))


def test_equal_elements_as_a_state() -> None:
    """An array whose elements are one number, which an Expand repeats."""
    nodes = [SIZES, node("Slice", "s one two", "n"), node("Concat", "one n one", "t", axis=0)]
    nodes += [node("Expand", "z t", "h"), layer("GRU", "x w r b - h")]
    arrays = weights("GRU") | {"z": np.full((1, 1, H), 0.5), "one": [1], "two": [2]}
    check(model(nodes, ("T", "B", FEATURES), arrays))


def test_the_words() -> None:
    nodes = [node("Tile", "a s", "e"), node("Add", "x e")]
    text = refusal(of(*nodes, axes=("B", 5, 4), a=random(1, 1, 4), s=[7, 1, 1]))
    assert "an operand is a repeated constant of other sizes" in text


# --- limits -------------------------------------------------------------------------------------

JOINED = [node("Slice", "s zero one", "b"), node("Concat", "b ones", "t", axis=0)]
GROWING: dict[str, Any] = {
    "Concat": [SIZES, *JOINED, node("Tile", "a t", "e0")],
    "Mul": [node("Tile", "a u", "e0")],
}


@pytest.mark.parametrize("op", GROWING)
def test_the_budget(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What repeated constants make counts as all else does. The limit is lower here."""
    monkeypatch.setattr(budget, "MADE_MORE", 1 << 14)
    options = {"axis": 1} if op == "Concat" else {}
    other = "e{}" if op == "Concat" else "k"
    nodes = [node(op, f"e{k} {other.format(k)}", f"e{k + 1}", **options) for k in range(12)]
    arrays = {"a": random(1, 1, 4), "k": random(1, 1, 4), "u": [4, 64, 1]}
    arrays |= {"zero": [0], "one": [1], "ones": [1, 1]}
    proto = of(*GROWING[op], *nodes, node("Add", "x e12"), **arrays)
    assert "larger than the limit" in refusal(proto)
