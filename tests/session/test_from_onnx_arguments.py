"""The arguments of `Session.from_onnx`, and kinds of models."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="reads and makes the models")
pytest.importorskip("onnxruntime", reason="runs the models")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from session.onnx_sources import Axes, assert_close, check, draw, model, node, refusal, runtime  # noqa: E402
from session.test_from_onnx_operators import one, random  # noqa: E402
from session.test_from_onnx_recurrent import FEATURES, H, layer, weights  # noqa: E402
from tf_lstm_ops.inference import Session  # noqa: E402

SEQUENCE: Axes = ("B", "T", 4)


def stack() -> Any:
    """Two products with a function between them."""
    nodes = [node("MatMul", "x a", "h"), node("Tanh", "h", "t"), node("MatMul", "t b")]
    return model(nodes, SEQUENCE, {"a": random(4, 5), "b": random(5, 3)})


def error_of(proto: Any, **arguments: Any) -> str:
    with pytest.raises((TypeError, ValueError)) as error:
        Session.from_onnx(proto, check=False, **arguments)
    return f"{type(error.value).__name__}: {error.value}"


def test_outputs_within_the_graph() -> None:
    session = Session.from_onnx(stack(), outputs=["t"])
    assert session.outputs[0].shape == (None, None, 5)
    session = Session.from_onnx(stack(), outputs=["y", "h"])
    assert [spec.name for spec in session.outputs] == ["y", "h"]
    found = session(random(2, 3, 4).astype(np.float32))
    assert [each.shape[2] for each in found.values()] == [3, 5]


def test_outputs_before_an_unknown_node() -> None:
    nodes = [node("Relu", "x", "h"), node("Sin", "h")]
    assert Session.from_onnx(model(nodes, SEQUENCE), outputs=["h"]) is not None


def test_wrong_outputs() -> None:
    assert "ValueError: outputs has 'z'" in error_of(stack(), outputs=["z"])
    assert "ValueError: outputs has 'x'" in error_of(stack(), outputs=["x"])
    assert "ValueError: outputs must have one name or more" in error_of(stack(), outputs=[])
    assert "each once" in error_of(stack(), outputs=["t", "t"])
    assert "TypeError: outputs must be a list of names" in error_of(stack(), outputs="t")
    assert "TypeError: outputs must be a list of names" in error_of(stack(), outputs=[1])
    assert "TypeError: outputs must be a list of names" in error_of(stack(), outputs=1)


def test_inputs_within_the_graph() -> None:
    """The check compares the part with that of the model."""
    session = Session.from_onnx(stack(), inputs=["h"])
    assert session.inputs[0].shape == (None, None, 5)
    h = random(2, 3, 5).astype(np.float32)
    wanted = Session.from_onnx(stack(), inputs=["t"], outputs=["y"])(np.tanh(h))
    assert_close(session(h), wanted)


def test_inputs_behind_an_unknown_node() -> None:
    """Its shape is not known. One output of a Split is an input, and the other is computed."""
    nodes = [
        *(node("Sin", "x", "s"), helper.make_node("Unknown", ["s"], ["u"], domain="own")),
        *(node("Split", "v", "p q", axis=-1), node("Mul", "p u", "r"), node("Add", "r q")),
    ]
    proto = model(nodes, {"x": SEQUENCE, "v": ("B", "T", 8)})
    assert "does not tell the shape of u. Pass shapes={'u'" in error_of(proto, inputs=["u"])
    session = Session.from_onnx(
        proto, inputs=["u", "q"], shapes={"u": [None, None, 4], "q": [None, None, 4]}
    )
    assert [spec.name for spec in session.inputs] == ["v", "u", "q"]
    given = {"v": random(2, 3, 8), "u": random(2, 3, 4), "q": random(2, 3, 4)}
    assert_close(session(given), given["v"][..., :4] * given["u"] + given["q"])


def test_wrong_inputs() -> None:
    assert "ValueError: inputs has 'z'" in error_of(stack(), inputs=["z"])
    assert "ValueError: inputs must have one name or more" in error_of(stack(), inputs=[])
    assert "each once" in error_of(stack(), inputs=["t", "t"])
    assert "TypeError: inputs must be a list of names" in error_of(stack(), inputs="t")
    assert "TypeError: inputs must be a list of names" in error_of(stack(), inputs=[1])


def with_scale() -> Any:
    return model([node("Mul", "x s")], {"x": SEQUENCE, "s": (1, 4)})


def test_constants() -> None:
    values = random(1, 4)
    session = Session.from_onnx(with_scale(), constants={"s": values})
    x = random(2, 3, 4).astype(np.float32)
    assert_close(session(x), x * values.astype(np.float32))
    session = Session.from_onnx(with_scale(), constants={"s": 3})
    assert_close(session(x), 3 * x)
    session = Session.from_onnx(with_scale(), constants={"s": values.tolist()})
    assert_close(session(x), x * values.astype(np.float32))


def test_wrong_constants() -> None:
    proto = with_scale()
    assert "ValueError: constants has 'z'" in error_of(proto, constants={"z": 1})
    assert "TypeError: constants must be a dictionary" in error_of(proto, constants=[1])
    shape = "constants['s'] must have the shape [1, 4]. Received: (1, 3)"
    assert shape in error_of(proto, constants={"s": random(1, 3)})
    for wrong in ("text", None, object(), [[1, 2], [3]], {}, [[1j] * 4]):
        assert "ValueError: constants['s'] must be" in error_of(proto, constants={"s": wrong})
    every = error_of(proto, constants={"s": 1, "x": 1})
    assert every == "Refused: the output y does not depend on an input"


def test_shapes() -> None:
    """Steps that the model leaves open, for a Reshape that needs them."""
    nodes = [node("Flatten", "x", "f"), node("MatMul", "f w")]
    proto = model(nodes, SEQUENCE, {"w": random(20, 3)})
    assert "MatMul_y" in error_of(proto)
    session = Session.from_onnx(proto, shapes={"x": [None, 5, 4]})
    assert session.inputs[0].shape == (None, 5, 4)
    session = Session.from_onnx(proto, shapes={"x": (1, np.int64(5), None)})
    assert session.inputs[0].shape == (None, 5, 4)


def test_wrong_shapes() -> None:
    proto = stack()
    assert "ValueError: shapes has 'z'" in error_of(proto, shapes={"z": [1]})
    assert "TypeError: shapes must be a dictionary" in error_of(proto, shapes=[[1]])
    text = "ValueError: shapes['x'] must be [any, any, 4]"
    for wrong in ([None, 5], [None, 5, 3], [None, 0, 4], [None, -1, 4], [None, 2.5, 4], "abc"):
        assert text in error_of(proto, shapes={"x": wrong})
    for wrong in (5, None, [None, True, 4]):
        assert "shapes['x'] must be" in error_of(proto, shapes={"x": wrong})


def test_a_model_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="onnx"):
        Session.from_onnx("model.onnx")


def test_wrong_sources(tmp_path: Path) -> None:
    assert "TypeError" in error_of(3)
    (tmp_path / "text.onnx").write_text("text")
    with pytest.raises(ValueError, match=r"text\.onnx is no ONNX file"):
        Session.from_onnx(tmp_path / "text.onnx")
    with pytest.raises(FileNotFoundError):
        Session.from_onnx(tmp_path / "none.onnx")
    assert "TypeError" in error_of(stack(), threads="1")
    assert "ValueError" in error_of(stack(), threads=0)


def test_a_path(tmp_path: Path) -> None:
    onnx.save(stack(), tmp_path / "model.onnx")
    assert Session.from_onnx(str(tmp_path / "model.onnx")).outputs[0].shape[2] == 3


# --- kinds of models ----------------------------------------------------------------------------


def test_one_input_of_two_layers() -> None:
    nodes = [
        layer("LSTM", outputs="a"),
        layer("GRU", "x w2 r2 b2", "c"),
        node("Add", "a c"),
    ]
    arrays = weights("LSTM") | {f"{k}2": v for k, v in weights("GRU").items()}
    check(model(nodes, ("T", "B", FEATURES), arrays))


def test_an_input_that_nothing_reads() -> None:
    proto = model([node("Relu", "x")], {"u": ("B", 3), "x": SEQUENCE})
    session = Session.from_onnx(proto)
    assert len(session.inputs) == 1 and session.inputs[0].shape == (None, None, 4)


def test_an_output_that_is_an_input() -> None:
    proto = model([node("Relu", "x")], SEQUENCE, outputs="y x")
    session = Session.from_onnx(proto, check=False)
    found = session(random(2, 3, 4).astype(np.float32))
    assert list(found) == ["y", "x"]


def test_two_names_of_one_output() -> None:
    nodes = [node("Relu", "x", "h"), node("Identity", "h", "a"), node("Identity", "h", "b")]
    check(model(nodes, SEQUENCE, outputs="a b"))


def test_long_names() -> None:
    """A file of a session has names of at most 63 bytes."""
    long = "x" * 64
    proto = one("Relu")
    proto.graph.input[0].name = proto.graph.node[0].input[0] = long
    check(proto)


def test_an_input_without_a_name() -> None:
    proto = one("Relu")
    proto.graph.input[0].name = ""
    assert "reads x, which nothing makes" in refusal(proto)
    proto.graph.node[0].input[0] = ""
    assert "Relu_y" in refusal(proto)


def test_initializers_that_are_inputs() -> None:
    """As of IR version 3."""
    proto = stack()
    proto.ir_version = 3
    for tensor in proto.graph.initializer:
        proto.graph.input.append(
            helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        )
    session = Session.from_onnx(proto)
    assert len(session.inputs) == 1


def test_an_input_of_bfloat16() -> None:
    proto = model([node("Relu", "x")], SEQUENCE, dtypes={"x": TensorProto.BFLOAT16})
    assert "The file says the type BFLOAT16" in refusal(proto)


@pytest.mark.parametrize("kind", ["FLOAT16", "DOUBLE"])
def test_other_floats(kind: str) -> None:
    """The session computes them in float32. ONNX Runtime has few operators of float16."""
    elem_type = getattr(TensorProto, kind)
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    proto = stack()
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = elem_type
    for tensor in proto.graph.initializer:
        array = numpy_helper.to_array(tensor).astype(dtype)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    session = Session.from_onnx(proto, check=kind == "DOUBLE")
    x = random(2, 7, 4).astype(np.float32)
    same = {"x": x}
    assert_close(session(x), runtime(stack())(same)[0], 0.02)  # few digits of float16


def test_a_state_of_zeros_left_out() -> None:
    """An input that a model has for its state, as the number 0."""
    inputs = {"x": ("T", "B", FEATURES), "s": (1, "B", H)}
    proto = model([layer("GRU", "x w r b - s")], inputs, weights("GRU"))
    session = Session.from_onnx(proto, constants={"s": 0})
    assert len(session.inputs) == 1
    feeds = draw(proto, 2)
    feeds["s"][:] = 0
    [want] = runtime(proto)(feeds)
    assert_close(session(feeds["x"].swapaxes(0, 1)), want.transpose(2, 0, 1, 3))
