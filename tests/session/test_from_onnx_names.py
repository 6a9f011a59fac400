"""The arguments of Session.from_onnx, and names that a session cannot have."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="makes the models")
from onnx import helper

from session.onnx_sources import model, node
from tf_lstm_ops.inference import Session

LONG = "encoder/" * 8  # 64 bytes; a file of a session has 63 for a name


def test_long_names_make_lists() -> None:
    inputs, outputs = (f"{LONG}a", "b"), (f"{LONG}sum", f"{LONG}difference")
    nodes = [
        helper.make_node(op, inputs, [name])
        for op, name in zip(("Add", "Sub"), outputs, strict=True)
    ]
    axes = dict.fromkeys(inputs, ("B", "T", 2))
    session = Session.from_onnx(model(nodes, axes, outputs=" ".join(outputs)))
    a, b = np.full((1, 3, 2), 5.0), np.full((1, 3, 2), 2.0)
    total, difference = session([a, b])
    assert (total == 7).all() and (difference == 3).all()


def _with_states() -> Any:
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((1, 16, 4)) for name in "WR"}
    axes: Any = {"x": ("T", "B", 4), "h": (1, "B", 4), "c": (1, "B", 4)}
    return model([node("LSTM", "x W R - - h c", "- y", hidden_size=4)], axes, arrays)


def test_zero_states_are_arrays_of_one_row() -> None:
    zeros = np.zeros((1, 1, 4))
    session = Session.from_onnx(_with_states(), constants={"h": zeros, "c": zeros})
    assert session.can_stream and session(np.ones((5, 3, 4))).shape == (5, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shapes": {"x": 5}}, r"shapes\['x'\] must be .*Received: 5"),
        ({"shapes": {"x": "abc"}}, "must be .*Received: .*a, b, c"),
        ({"outputs": 5}, "outputs must be a list of names. Received: outputs=5"),
    ],
)
def test_arguments_of_another_type(arguments: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Session.from_onnx(_with_states(), **arguments)


def test_sizes_of_numpy() -> None:
    sizes = [None, None, np.int64(4)]
    assert len(Session.from_onnx(_with_states(), shapes={"x": sizes}).inputs) == 3
    with pytest.raises(ValueError, match=r"must be .*any, any, 4"):
        Session.from_onnx(_with_states(), shapes={"x": [True, None, 4]})


@pytest.mark.parametrize("batch_first", [False, True])
def test_states_of_many_layers(batch_first: bool) -> None:
    """There are more choices of the batch axes than are tried one after the other."""
    rng, nodes, arrays = np.random.default_rng(0), [], {}
    axes: Any = {"x": ("B", "T", 4) if batch_first else ("T", "B", 4)}
    value = "x"
    if batch_first:
        nodes.append(node("Transpose", value, "moved", perm=[1, 0, 2]))
        value = "moved"
    for k in range(4):
        axes |= {f"h{k}": (1, "B", 4), f"c{k}": (1, "B", 4)}
        arrays |= {f"{name}{k}": rng.standard_normal((1, 16, 4)) for name in "WR"}
        inputs = f"{value} W{k} R{k} - - h{k} c{k}"
        nodes += [
            node("LSTM", inputs, f"y{k} last{k}", hidden_size=4),
            node("Squeeze", f"y{k} axis", f"z{k}"),
        ]
        value = f"z{k}"
    session = Session.from_onnx(model(nodes, axes, arrays | {"axis": [1]}, outputs="last3"))
    assert [len(spec.shape) for spec in session.inputs] == [3] + [2] * 8


def test_the_reason_is_not_the_choice_of_the_batch() -> None:
    """Rows that begin with other states are the reason, whatever the axis of the batch."""
    with pytest.raises(ValueError) as caught:
        Session.from_onnx(_with_states(), constants={"h": np.arange(8).reshape(1, 2, 4), "c": 0})
    assert "as the batch" not in str(caught.value), caught.value
