"""Sizes that an ONNX file fixes: a session has them until the caller opens them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads and makes the models")
pytest.importorskip("onnxruntime", reason="runs the models")

from session.onnx_sources import Axes, assert_close, model, node
from session.test_from_onnx_operators import random
from session.test_from_onnx_recurrent import FEATURES, layer, weights
from tf_lstm_ops.inference import Session


def mean_by_size(axes: Axes) -> Any:
    """The sum of all steps divided by their number, which an exporter computed from its example."""
    nodes = [node("ReduceSum", "x time", "s", keepdims=0), node("Div", "s steps")]
    return model(nodes, axes, {"time": [1], "steps": np.float32(6)})


def recurrent(axes: Axes) -> Any:
    return model([layer("LSTM")], axes, weights("LSTM"))


def refused(call: Any, *arguments: Any) -> str:
    with pytest.raises(ValueError) as error:
        call(*arguments)
    return str(error.value)


@pytest.mark.parametrize("axes", [(2, 6, 4), ("B", 6, 4), (2, "T", 4)])
def test_sizes_of_the_file(axes: Axes) -> None:
    proto = mean_by_size(axes)
    session = Session.from_onnx(proto)
    shape = tuple(None if isinstance(size, str) else size for size in axes)
    assert session.inputs[0].shape == shape
    x = random(2, 6, 4).astype(np.float32)
    assert_close(session(x), x.mean(1))
    for k in (0, 1):
        other = np.concatenate([x, x], k)
        if shape[k] is None:
            session(other)
        else:
            assert "pass shapes={'x': [None, None, 4]}" in refused(session, other)
    opened = Session.from_onnx(proto, shapes={"x": [None, None, 4]})
    assert opened.inputs[0].shape == (None, None, 4)


def test_a_part_is_opened() -> None:
    session = Session.from_onnx(mean_by_size((2, 6, 4)), shapes={"x": [None, 6, 4]})
    assert session.inputs[0].shape == (None, 6, 4)
    x = random(5, 6, 4).astype(np.float32)
    assert_close(session(x), x.mean(1))


def test_a_file_of_a_session(tmp_path: Path) -> None:
    session = Session.from_onnx(recurrent((7, 1, FEATURES)))
    session.save(tmp_path / "fixed.session")
    loaded = Session.load(tmp_path / "fixed.session")
    assert loaded.inputs[0].shape == (1, 7, FEATURES)
    x = random(1, 7, FEATURES)
    np.testing.assert_array_equal(loaded(x), session(x))
    assert "x must have the shape [1, 7, 3]" in refused(loaded, random(2, 7, FEATURES))
    content = bytearray((tmp_path / "fixed.session").read_bytes())
    header, batch = 64, 48  # the bytes of the header, and where the record of an input has it
    for wrong in (-1, 2**24 + 1):
        content[header + batch : header + batch + 8] = wrong.to_bytes(8, "little", signed=True)
        (tmp_path / "wrong.session").write_bytes(content)
        words = refused(Session.load, tmp_path / "wrong.session")
        assert "input 0: batch must be from 0 to 2^24" in words


def test_streams() -> None:
    """Steps, or rows, that a file fixes are not those of a stream."""
    proto = recurrent((7, 1, FEATURES))
    session = Session.from_onnx(proto)
    assert not session.can_stream
    words = refused(session.stream)
    assert "a fixed number of steps" in words and "shapes={'x': [None, None, 3]}" in words
    stream = Session.from_onnx(proto, shapes={"x": [None, None, FEATURES]}).stream(2)
    x = random(2, 7, FEATURES).astype(np.float32)
    rows = [session(x[k : k + 1]) for k in (0, 1)]
    np.testing.assert_array_equal(stream(x), np.concatenate(rows))
    rows_only = Session.from_onnx(recurrent(("T", 2, FEATURES)))
    assert rows_only.can_stream
    rows_only.stream(2)
    assert "batch is 3, must be 2" in refused(rows_only.stream, 3)


def test_an_axis_behind_the_second_one() -> None:
    proto = model(
        [
            node("Conv", "x w"),
        ],
        (1, 4, 9),
        {"w": random(2, 4, 3)},
    )
    assert Session.from_onnx(proto).inputs[0].shape == (1, 4, 9)
    session = Session.from_onnx(proto, shapes={"x": [None, None, None]})
    assert session.inputs[0].shape == (None, 4, None)


def test_other_inputs() -> None:
    """A batch is open if it is open in all inputs."""
    proto = model([node("Add", "x u")], {"x": (2, 6, 4), "u": (2, 6, 4)})
    session = Session.from_onnx(proto)
    assert [each.shape for each in session.inputs] == [(2, 6, 4)] * 2
    session = Session.from_onnx(proto, shapes={"x": [None, None, 4]})
    assert [each.shape[0] for each in session.inputs] == [2, 2]
    shapes = {name: [None, None, 4] for name in "xu"}
    session = Session.from_onnx(proto, shapes=shapes)
    assert [each.shape for each in session.inputs] == [(None, None, 4)] * 2
