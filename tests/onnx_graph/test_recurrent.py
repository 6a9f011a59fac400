"""Recurrent nodes of ONNX models: their attributes, weights and names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weights.formats import KINDS, Shape, random_weights

onnx = pytest.importorskip("onnx", reason="onnx, whose nodes these are, is not installed")
from onnx import helper, numpy_helper  # noqa: E402

from tf_lstm_ops.onnx_graph.recurrent import RecurrentNode, recurrent_nodes  # noqa: E402

from . import models  # noqa: E402


def weights(rng: np.random.Generator, kind: str = "lstm", **shape: Any) -> Any:
    return random_weights(Shape(kind, **shape), rng, "float32")


def only(model: onnx.ModelProto) -> RecurrentNode:
    (found,) = recurrent_nodes(model)
    return found.read()


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_attributes_by_default(kind: str, directions: int, rng: np.random.Generator) -> None:
    made = weights(rng, kind, directions=directions)
    found = only(models.one_layer(made))
    arrays = made.to_onnx()
    for name in "WRB":
        np.testing.assert_array_equal(getattr(found, name), getattr(arrays, name))
    assert found.P is None
    assert (found.hidden_size, found.layout, found.clip) == (made.units, 0, None)
    assert found.direction == ("forward", "bidirectional")[directions - 1]
    default = {"lstm": ("sigmoid", "tanh", "tanh"), "gru": ("sigmoid", "tanh")}
    assert found.activations == (default.get(kind, ("tanh",)),) * directions
    assert found.has_default_activations
    assert not found.input_forget
    assert found.linear_before_reset == (kind == "gru")
    assert (found.name, found.op_type) == ("layer", models.OPS[KINDS[kind]])
    assert found.label == f"node layer ({found.op_type})"


def test_given_attributes(rng: np.random.Generator) -> None:
    made = weights(rng, directions=2, peephole=True)
    names = ["HardSigmoid", "Relu", "Tanh"]
    found = only(
        models.one_layer(
            made,
            activations=[*names, *names],
            activation_alpha=[0.25],
            activation_beta=[0.5],
            clip=3.0,
            layout=1,
            input_forget=1,
        )
    )
    assert found.activations == (("hardsigmoid", "relu", "tanh"),) * 2
    assert not found.has_default_activations
    assert (found.activation_alpha, found.activation_beta) == ((0.25,), (0.5,))
    assert (found.clip, found.layout, found.input_forget) == (3.0, 1, True)
    np.testing.assert_array_equal(found.P, made.to_onnx().P)


def test_hidden_size_is_that_of_r_if_it_is_absent(rng: np.random.Generator) -> None:
    model = models.one_layer(weights(rng))
    del model.graph.node[0].attribute[:]
    assert only(model).hidden_size == 4


def array(model: onnx.ModelProto, name: str, change: Callable[[Any], Any]) -> None:
    (tensor,) = [t for t in model.graph.initializer if t.name == f"y_{name}"]
    changed = change(numpy_helper.to_array(tensor))
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(changed), tensor.name))


def attribute(model: onnx.ModelProto, name: str, value: Any) -> None:
    node = model.graph.node[0]
    kept = [each for each in node.attribute if each.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])


def an_input(model: onnx.ModelProto, k: int, name: str) -> None:
    model.graph.node[0].input[k] = name


WRONG: dict[str, tuple[Callable[[onnx.ModelProto], None], str]] = {
    "W of run time": (
        lambda m: an_input(m, 1, "x"),
        r"its W \(x\) is computed at run time, so the file does not have it",
    ),
    "no R": (lambda m: an_input(m, 2, ""), "its input R is absent"),
    "no inputs": (lambda m: m.graph.node[0].ClearField("input"), "its input W is absent"),
    "a damaged tensor": (
        lambda m: m.graph.initializer[0].ClearField("raw_data"),
        "tensor y_W must have 48 elements by its sizes but has 0",
    ),
    "R of other rank": (lambda m: array(m, "R", lambda r: r[0]), r"R must be \[1, 4H, H\] but is"),
    "R of other rows": (lambda m: array(m, "R", lambda r: r[:, 1:]), r"R must be \[1, 4H, H\]"),
    "R of no units": (lambda m: array(m, "R", lambda r: r[:, :0, :0]), r"but is \[1, 0, 0\]"),
    "W of other rows": (lambda m: array(m, "W", lambda w: w[:, 4:]), r"W must be \[1, 16, I\]"),
    "B of other size": (lambda m: array(m, "B", lambda b: b[:, 1:]), r"B must be \[1, 32\]"),
    "two directions": (lambda m: attribute(m, "direction", "bidirectional"), r"R must be \[2, 4H"),
    "an unknown direction": (
        lambda m: attribute(m, "direction", "up"),
        "direction must be forward, reverse or bidirectional but is 'up'",
    ),
    "a direction that is a number": (
        lambda m: attribute(m, "direction", 1),
        "the attribute direction must be str but is int",
    ),
    "another hidden_size": (
        lambda m: attribute(m, "hidden_size", 5),
        "hidden_size must be 4, by the shape of R, but is 5",
    ),
    "another layout": (lambda m: attribute(m, "layout", 2), "layout must be 0 or 1 but is 2"),
    "few activations": (
        lambda m: attribute(m, "activations", ["Tanh"]),
        "activations must be 3 names but is 1 values",
    ),
    "activations that are numbers": (
        lambda m: attribute(m, "activations", [1, 2, 3]),
        "activations must be 3 names",
    ),
    "integers": (
        lambda m: array(m, "R", lambda r: r.astype("i4")),
        "R must be of floats but is int32",
    ),
    "two types": (
        lambda m: array(m, "B", lambda b: b.astype("f8")),
        "B must be float32 as R but is float64",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_nodes(name: str, rng: np.random.Generator) -> None:
    change, message = WRONG[name]
    model = models.one_layer(weights(rng))
    change(model)
    with pytest.raises(ValueError, match=message) as error:
        only(model)
    assert str(error.value).startswith(("node layer (LSTM): ", "tensor "))


# --- names ---------------------------------------------------------------------------------------


def test_names_in_sub_graphs(rng: np.random.Generator) -> None:
    """Nodes with one name in both branches, one without name in a loop, and two in one graph."""
    made = weights(rng)

    def branch(name: str, inputs: tuple[str, ...] = ()) -> onnx.GraphProto:
        node, arrays = models.layer(made, name, output="inner")
        return models.graph([node], arrays, inputs)

    (first, arrays), (again, more) = (models.layer(made, "twice", output=k) for k in "pq")
    choice = {"then_branch": branch("L"), "else_branch": branch("L")}
    nodes = [
        helper.make_node("If", ["c"], ["chosen"], name="choice", **choice),
        helper.make_node("Loop", ["", "c", "x"], ["looped"], body=branch("", ("i", "k", "s"))),
        first,
        again,
    ]
    graph = models.graph(nodes, {**arrays, **more}, ("x", "c"))
    found = recurrent_nodes(models.model(graph))
    assert [each.name for each in found] == [
        "choice/else_branch/L",
        "choice/then_branch/L",
        "inner",
        "twice#1",
        "twice#2",
    ]
    for each in found:
        np.testing.assert_array_equal(each.read().R, made.to_onnx().R)


def test_operators_of_other_domains(rng: np.random.Generator) -> None:
    model = models.one_layer(weights(rng))
    model.graph.node[0].domain = "ai.onnx"
    assert len(recurrent_nodes(model)) == 1
    model.graph.node[0].domain = "com.example"
    assert not recurrent_nodes(model)


# --- weights of 8 bits ---------------------------------------------------------------------------


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_model_that_onnx_runtime_quantized(
    per_channel: bool, rng: np.random.Generator, tmp_path: Path
) -> None:
    ort = pytest.importorskip("onnxruntime", reason="writes and runs the model")
    from onnxruntime.quantization import quantize_dynamic

    made = weights(rng, directions=2, inputs=5, units=8)
    arrays = made.to_onnx()
    for array in arrays[:2]:  # the columns and directions have different scales
        array *= np.geomspace(0.3, 3, array.size // array.shape[2]).reshape(2, -1, 1)
    node, arrays_of_node = models.layer(made)
    arrays_of_node |= {f"y_{name}": getattr(arrays, name) for name in "WRB"}
    onnx.save(models.model(models.graph([node], arrays_of_node)), tmp_path / "float.onnx")
    path = tmp_path / "int8.onnx"
    quantize_dynamic(
        tmp_path / "float.onnx", path, per_channel=per_channel, op_types_to_quantize=["LSTM"]
    )
    found = only(onnx.load(path))
    assert found.op_type == "DynamicQuantizeLSTM"
    for name in "WR":
        want, got = getattr(arrays, name), getattr(found, name)
        largest = np.abs(want).max(2 if per_channel else (1, 2), keepdims=True)
        assert (np.abs(got - want) <= largest / 127 * 0.501).all()  # half a step
        assert not np.array_equal(got, want)
    np.testing.assert_array_equal(found.B, arrays.B)

    changed = {f"y_{name}": np.ascontiguousarray(getattr(found, name)) for name in "WRB"}
    onnx.save(models.model(models.graph([node], changed)), tmp_path / "back.onnx")
    x = rng.normal(size=(6, 3, 5)).astype("f4")
    [want], [got] = (
        ort.InferenceSession(p).run(None, {"x": x}) for p in (path, path.with_name("back.onnx"))
    )
    # The quantized node rounds x and h to 8 bits, too. Wrong gates or scales differ by 0.3 or more.
    assert np.abs(want).max() > 0.6
    np.testing.assert_allclose(got, want, atol=0.1)


def quantized(rng: np.random.Generator, scale_shape: tuple[int, ...]) -> onnx.ModelProto:
    arrays: dict[str, Any] = {}
    for name, rows in (("W", 3), ("R", 4)):
        arrays[name] = rng.integers(0, 256, (2, rows, 16)).astype("u1")
        arrays[f"{name}_scale"] = rng.uniform(0.01, 0.1, scale_shape).astype("f4")
        arrays[f"{name}_zero"] = rng.integers(100, 150, scale_shape).astype("u1")
    inputs = ["x", "W", "R", "", "", "", "", ""]
    inputs += ["W_scale", "W_zero", "R_scale", "R_zero"]
    given = {"hidden_size": 4, "direction": "bidirectional", "domain": "com.microsoft"}
    node = helper.make_node("DynamicQuantizeLSTM", inputs, ["y"], name="layer", **given)
    return models.model(models.graph([node], arrays))


@pytest.mark.parametrize("scale_shape", [(2,), (2, 16)])
def test_zero_points(scale_shape: tuple[int, ...], rng: np.random.Generator) -> None:
    model = quantized(rng, scale_shape)
    given = {t.name: numpy_helper.to_array(t).astype("f8") for t in model.graph.initializer}
    found = only(model)
    assert found.B is None and found.W.dtype == "f4"
    for name in "WR":
        scale, zero = (given[f"{name}_{k}"].reshape(2, 1, -1) for k in ("scale", "zero"))
        want = ((given[name] - zero) * scale).swapaxes(1, 2)
        np.testing.assert_allclose(getattr(found, name), want, rtol=1e-6)  # float32


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("W", lambda w: w.astype("f4"), r"W must be \[D, I, 4H\] of int8 or uint8 but is"),
        ("R", lambda r: r[0], "R must be .* of int8 or uint8 but is"),
        ("R", lambda r: r.swapaxes(1, 2), "R_scale|R must be"),
        ("W_scale", lambda s: s[:1], r"W_scale must be \(2,\) or \(2, 16\) but is \(1,\)"),
        ("R_scale", lambda s: s.astype("f8"), "R_scale must be float32 but is float64"),
        ("R_zero", lambda z: z.astype("i1"), "R_zero_point must be uint8"),
    ],
)
def test_wrong_weights_of_8_bits(
    name: str, change: Callable[[Any], Any], message: str, rng: np.random.Generator
) -> None:
    model = quantized(rng, (2,))
    (tensor,) = [t for t in model.graph.initializer if t.name == name]
    changed = np.ascontiguousarray(change(numpy_helper.to_array(tensor)))
    tensor.CopyFrom(numpy_helper.from_array(changed, name))
    with pytest.raises(ValueError, match=message):
        only(model)


def test_a_scale_is_absent(rng: np.random.Generator) -> None:
    model = quantized(rng, (2,))
    model.graph.node[0].input[8] = ""
    with pytest.raises(ValueError, match=r"^node layer \(Dyn.*\): its input W_scale is absent"):
        only(model)
