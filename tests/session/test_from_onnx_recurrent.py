"""LSTM, GRU and RNN of ONNX in a session, beside ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads and makes the models")
pytest.importorskip("onnxruntime", reason="runs the models")
import onnx.reference

from session.onnx_sources import assert_close, check, draw, model, node, runtime
from tf_lstm_ops.inference import Session

FEATURES, H = 3, 4
INT32 = 6  # the number of ONNX's type
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DIRECTIONS = ["forward", "reverse", "bidirectional"]


def weights(op: str, directions: int = 1, inputs: int = FEATURES, peepholes: bool = False) -> Any:
    rng, rows = np.random.default_rng(5), GATES[op] * H
    shapes = {"w": (rows, inputs), "r": (rows, H), "b": (2 * rows,)}
    shapes |= {"p": (3 * H,)} if peepholes else {}
    return {k: 0.5 * rng.standard_normal((directions, *shape)) for k, shape in shapes.items()}


def layer(op: str, inputs: str = "x w r b", outputs: str = "y", **attributes: Any) -> Any:
    return node(op, inputs, outputs, hidden_size=H, **attributes)


def directions_of(direction: str) -> int:
    return 1 + (direction == "bidirectional")


def outputs_of(op: str) -> list[str]:
    pairs = ["y", "y h", "- h"]
    return [*pairs, "y h c", "y - c", "- h c", "- - c"] if op == "LSTM" else pairs


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("op", GATES)
def test_outputs(op: str, direction: str) -> None:
    """Each combination of outputs that something reads."""
    arrays = weights(op, directions_of(direction))
    for outputs in outputs_of(op):
        names = outputs.replace("-", "")
        nodes = [layer(op, outputs=outputs, direction=direction)]
        check(model(nodes, ("T", "B", FEATURES), arrays, names))


@pytest.mark.parametrize("opset", [7, 11, 14, 22])
@pytest.mark.parametrize("op", GATES)
def test_opsets(op: str, opset: int) -> None:
    check(model([layer(op)], ("T", "B", FEATURES), weights(op), opset=opset))


@pytest.mark.parametrize("linear_before_reset", [0, 1])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_gru(direction: str, linear_before_reset: int) -> None:
    options = {"direction": direction, "linear_before_reset": linear_before_reset}
    arrays = weights("GRU", directions_of(direction))
    check(model([layer("GRU", outputs="y h", **options)], ("T", "B", FEATURES), arrays, "y h"))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_peepholes(direction: str) -> None:
    arrays = weights("LSTM", directions_of(direction), peepholes=True)
    nodes = [layer("LSTM", "x w r b - - - p", "y h c", direction=direction)]
    check(model(nodes, ("T", "B", FEATURES), arrays, "y h c"))


@pytest.mark.parametrize("op", GATES)
def test_no_bias(op: str) -> None:
    arrays = weights(op)
    del arrays["b"]
    check(model([layer(op, "x w r")], ("T", "B", FEATURES), arrays))


ACTIVATIONS: dict[str, list[list[str]]] = {
    "LSTM": [["Sigmoid", "Relu", "Relu"], ["Sigmoid", "Softsign", "Softsign"]],
    "GRU": [["Sigmoid", "Relu"], ["Sigmoid", "Softsign"], ["Relu", "Tanh"]],
    "RNN": [["Relu"], ["Tanh"]],
}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("op", GATES)
def test_activations(op: str, direction: str) -> None:
    count = directions_of(direction)
    for names in ACTIVATIONS[op]:
        nodes = [layer(op, direction=direction, activations=names * count)]
        check(model(nodes, ("T", "B", FEATURES), weights(op, count)))


# Functions with the alpha and beta of those of a session.
NUMBERS: dict[str, dict[str, list[float]]] = {
    "HardSigmoid": {"activation_alpha": [1 / 6], "activation_beta": [0.5]},
    "Elu": {"activation_alpha": [1.0]},
    "LeakyRelu": {"activation_alpha": [0.2]},
    "Affine": {"activation_alpha": [1.0], "activation_beta": [0.0]},
}


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("function", NUMBERS)
def test_activations_with_numbers(function: str, direction: str) -> None:
    count = directions_of(direction)
    options = {name: values * count for name, values in NUMBERS[function].items()}
    options |= {"activations": [function, "Tanh", "Tanh"] * count, "direction": direction}
    check(model([layer("LSTM", **options)], ("T", "B", FEATURES), weights("LSTM", count)))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("op", GATES)
def test_initial_states_that_are_inputs(op: str, direction: str) -> None:
    count, is_lstm = directions_of(direction), op == "LSTM"
    inputs = {"x": ("T", "B", FEATURES), "h0": (count, "B", H)}
    inputs |= {"c0": (count, "B", H)} if is_lstm else {}
    states, outputs = ("h0 c0", "y h c") if is_lstm else ("h0", "y h")
    nodes = [layer(op, f"x w r b - {states}", outputs, direction=direction)]
    check(model(nodes, inputs, weights(op, count), outputs))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("given", ["h", "c"])
@pytest.mark.parametrize("other", ["absent", "zeros"])
def test_one_of_two_initial_states(given: str, other: str, direction: str) -> None:
    count = directions_of(direction)
    zeros = "-" if other == "absent" else "zeros"
    states = f"s {zeros}" if given == "h" else f"{zeros} s"
    nodes = [node("Shape", "s", "sizes"), node("ConstantOfShape", "sizes", "zeros")]
    nodes.append(layer("LSTM", f"x w r b - {states}", "y h c", direction=direction))
    inputs = {"x": ("T", "B", FEATURES), "s": (count, "B", H)}
    check(model(nodes[2 * (other == "absent") :], inputs, weights("LSTM", count), "y h c"))


@pytest.mark.parametrize("op", GATES)
def test_initial_states_of_the_batch_first(op: str) -> None:
    """They are transposed before the node, and their outputs behind it."""
    inputs = {"x": ("B", "T", FEATURES), "s": ("B", 1, H)}
    nodes = [
        node("Transpose", "x", "xt", perm=[1, 0, 2]),
        node("Transpose", "s", "h0", perm=[1, 0, 2]),
        layer(op, "xt w r b - h0" + (" h0" if op == "LSTM" else ""), "ys h"),
        node("Transpose", "ys", "y", perm=[2, 0, 1, 3]),
        node("Transpose", "h", "z", perm=[1, 0, 2]),
    ]
    check(model(nodes, inputs, weights(op), "y z"))


@pytest.mark.parametrize("how", ["constant", "shape", "number"])
@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_initial_states_of_zeros(op: str, how: str) -> None:
    """A constant, zeros of the shape of the input, and an input that is the constant 0."""
    nodes, arrays, options = [], weights(op), {}
    inputs: dict[str, Any] = {"x": ("T", "B", FEATURES)}
    if how == "shape":
        nodes = [
            node("Shape", "x", "sizes"),
            node("Gather", "sizes one", "rows"),
            node("Concat", "first rows last", "target", axis=0),
            node("ConstantOfShape", "target", "zeros"),
        ]
        arrays |= {"one": [1], "first": [1], "last": [H]}
    elif how == "number":
        inputs["zeros"], options = (1, "B", H), {"constants": {"zeros": 0}}
    states = "zeros zeros" if op == "LSTM" else "zeros"
    nodes += [layer(op, f"x w r b - {states}")]
    proto = model(nodes, inputs, arrays)
    if how == "shape":
        check(proto)
    else:
        want = model([layer(op)], ("T", "B", FEATURES), arrays)
        if how == "constant":
            inputs["x"] = ("T", "B", FEATURES)
            arrays["zeros"] = np.zeros((1, 1, H))
            proto = model(nodes, inputs, arrays)
        x = draw(want, 2)
        session = Session.from_onnx(proto, check=False, **options)
        assert_close(session(x["x"].swapaxes(0, 1)), runtime(want)(x)[0].transpose(2, 0, 1, 3))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("op", GATES)
def test_layout(op: str, direction: str) -> None:
    """The batch first, which ONNX Runtime refuses: beside the other layout with transpositions."""
    count, outputs = directions_of(direction), "y h c" if op == "LSTM" else "y h"
    arrays = weights(op, count)
    states = "s s" if op == "LSTM" else "s"
    inputs = {"x": ("B", "T", FEATURES), "s": ("B", count, H)}
    first = layer(op, f"x w r b - {states}", outputs, direction=direction, layout=1)
    session = Session.from_onnx(model([first], inputs, arrays, outputs, 14), check=False)
    inputs = {"x": ("T", "B", FEATURES), "s": (count, "B", H)}
    second = layer(op, f"x w r b - {states}", outputs, direction=direction)
    want = model([second], inputs, arrays, outputs)
    feeds = draw(want, 2)
    found = session({name: array.swapaxes(0, 1) for name, array in feeds.items()})
    y, *finals = runtime(want)(feeds)
    for got, other in zip(found.values(), [y.transpose(2, 0, 1, 3), *finals], strict=True):
        other = other if other.ndim == 4 else other.swapaxes(0, 1)
        assert_close(got, other)


def test_layout_in_the_reference() -> None:
    """The order of the axes of outputs, by the package onnx."""
    proto = model([layer("LSTM", layout=1)], ("B", "T", FEATURES), weights("LSTM"), opset=14)
    feeds = draw(proto, 2)
    [want] = onnx.reference.ReferenceEvaluator(proto).run(None, feeds)
    assert_close(Session.from_onnx(proto, check=False)(feeds["x"]), want)


def joined(op: str, shape: list[int]) -> list[Any]:
    """A layer of two directions whose features are joined, as PyTorch exports it."""
    return [
        layer(op, outputs="ys", direction="bidirectional"),
        node("Transpose", "ys", "yt", perm=[0, 2, 1, 3]),
        node("Reshape", "yt shape", "z"),
    ]


@pytest.mark.parametrize("shape", [[0, 0, -1], [0, -1, 2 * H]])
@pytest.mark.parametrize("op", GATES)
def test_layers_on_each_other(op: str, shape: list[int]) -> None:
    arrays = weights(op, 2) | {"shape": shape}
    arrays |= {f"{name}2": array for name, array in weights(op, 1, 2 * H).items()}
    nodes = [
        *joined(op, shape),
        layer(op, "z w2 r2 b2", "y2"),
        node("Squeeze", "y2 one", "y"),
    ]
    check(model(nodes, ("T", "B", FEATURES), arrays | {"one": [1]}))


def test_directions_apart() -> None:
    """Each direction by a Gather and a Split, and both in one sum."""
    nodes = [
        layer("LSTM", outputs="ys", direction="bidirectional"),
        node("Gather", "ys zero", "one_way", axis=1),
        node("Split", "ys", "first second", axis=1),
        node("Squeeze", "second one", "second2"),
        node("Add", "one_way second2"),
    ]
    arrays = weights("LSTM", 2) | {"zero": np.int64(0), "one": [1]}
    check(model(nodes, ("T", "B", FEATURES), arrays, opset=13))


@pytest.mark.parametrize("op", GATES)
def test_the_last_step(op: str) -> None:
    nodes = [
        layer(op, outputs="ys"),
        node("Squeeze", "ys one", "s"),
        node("Gather", "s last", "y", axis=0),
    ]
    check(model(nodes, ("T", "B", FEATURES), weights(op) | {"one": [1], "last": np.int64(-1)}))


def test_states_of_one_layer_for_another() -> None:
    """An encoder and a decoder."""
    nodes = [
        layer("LSTM", "x w r b", "- h c"),
        layer("LSTM", "u w r b - h c", "y"),
    ]
    check(model(nodes, {"x": ("T", "B", FEATURES), "u": ("U", "B", FEATURES)}, weights("LSTM")))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("op", GATES)
def test_lengths(op: str, direction: str) -> None:
    """In any order. Outputs behind a length are zeros, final states those of the last step."""
    names = "y h c" if op == "LSTM" else "y h"
    proto = model(
        [layer(op, "x w r b n", names, direction=direction)],
        {"x": ("T", "B", FEATURES), "n": ("B",)},
        weights(op, directions_of(direction)),
        names,
        dtypes={"n": INT32},
    )
    session = Session.from_onnx(proto)  # compares it with ONNX Runtime
    x = np.random.default_rng(1).standard_normal((3, 5, FEATURES), np.float32)
    outputs = session({"x": x, "n": [2, 5, 1]})
    y = next(iter(outputs.values()))
    assert not y[0, 2:].any() and y[1].all() and not y[2, 1:].any()
    alone = session({"x": x[:1, :2], "n": [2]})
    for name, row in alone.items():
        part = outputs[name][:1, :2] if name == "y" else outputs[name][:1]
        np.testing.assert_allclose(part, row, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="is -1, must not be negative"):
        session({"x": x, "n": [2, -1, 1]})
    assert not session.can_stream


def test_lengths_of_a_call_go_on_behind_a_node_with_lengths() -> None:
    """Of a node, as of the model without the lengths of the first node."""
    sessions = [
        Session.from_onnx(
            model(
                [
                    layer("GRU", f"x w r b {lengths}", "y"),
                    node("Squeeze", "y one", "z"),
                    layer("GRU", "z w2 r b", "- h"),
                ],
                {"x": ("T", "B", FEATURES)} | ({"n": ("B",)} if lengths == "n" else {}),
                weights("GRU") | {"one": [1], "w2": weights("GRU")["r"]},
                "h",
                dtypes={"n": INT32},
            )
        )
        for lengths in ("-", "n")
    ]
    x = np.random.default_rng(1).standard_normal((2, 5, FEATURES), np.float32)
    want = sessions[0](x, lengths=[2, 5])
    got = sessions[1]({"x": x, "n": [5, 5]}, lengths={"x": [2, 5], "n": None})
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


def test_lengths_of_one_column() -> None:
    """An input [B, 1], reshaped to [B]."""
    nodes = [node("Reshape", "n flat", "m"), layer("GRU", "x w r b m")]
    inputs = {"x": ("T", "B", FEATURES), "n": ("B", 1)}
    arrays = weights("GRU") | {"flat": [-1]}
    session = Session.from_onnx(model(nodes, inputs, arrays, dtypes={"n": INT32}))
    x = random_sequence(2)
    y = session({"x": x, "n": [2, 5]})
    np.testing.assert_allclose(y[:1, :2], session({"x": x[:1, :2], "n": [2]}), rtol=0, atol=1e-6)
    assert not y[0, 2:].any()


@pytest.mark.parametrize("lengths", [True, False])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("op", ["LSTM", "GRU"])
@pytest.mark.parametrize("how", ["constant", "input"])
def test_a_row_without_steps(op: str, direction: str, lengths: bool, how: str) -> None:
    """Its final states are its initial ones, whichever outputs are read."""
    count, states = directions_of(direction), "s s" if op == "LSTM" else "s"
    arrays, inputs = weights(op, count), {"x": ("T", "B", FEATURES)}
    inputs |= {"n": ("B",)} if lengths else {}
    if how == "constant":
        arrays["s"] = np.full((count, 1, H), 0.5)
    else:
        inputs["s"] = (count, "B", H)
    for outputs in outputs_of(op):
        names = outputs.replace("-", "")
        inside = f"x w r b {'n' if lengths else '-'} {states}"
        nodes = [layer(op, inside, outputs, direction=direction)]
        proto = model(nodes, inputs, arrays, names, dtypes={"n": INT32})
        session = Session.from_onnx(proto, check=False)
        feeds: dict[str, Any] = {"x": random_sequence(1)[:, : 5 * lengths], "n": [0]}
        state = (1, count, H)[-len(session.inputs[-1].shape) :]  # one direction has no axis
        feeds["s"] = np.full((1, *state[1:]), 0.5, np.float32)
        given = {each: feeds[each] for each in inputs}
        found = session(given if len(given) > 1 else feeds["x"])
        found = found if isinstance(found, dict) else {names.strip(): found}
        for name in {"h", "c"} & {*found}:
            np.testing.assert_array_equal(np.ravel(found[name]), np.full(count * H, 0.5))


def test_a_number_as_one_of_two_states() -> None:
    inputs = {"x": ("T", "B", FEATURES), "h0": (1, "B", H), "c0": (1, "B", H)}
    proto = model([layer("LSTM", "x w r b - h0 c0")], inputs, weights("LSTM"))
    session = Session.from_onnx(proto, constants={"c0": 0.5})
    feeds = draw(proto, 2)
    feeds["c0"][:] = 0.5
    [want] = runtime(proto)(feeds)
    got = session({"x": feeds["x"].swapaxes(0, 1), "h0": feeds["h0"][0]})
    assert_close(got, want.transpose(2, 0, 1, 3))


def random_sequence(batch: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((batch, 5, FEATURES), np.float32)


def test_a_clip_of_infinity() -> None:
    """It bounds nothing."""
    x = random_sequence(2)
    sessions = [
        Session.from_onnx(
            model([layer("LSTM", **given)], ("T", "B", FEATURES), weights("LSTM")), check=False
        )
        for given in ({}, {"clip": float("inf")})
    ]
    np.testing.assert_array_equal(*(session(x) for session in sessions))


def test_a_clip_is_not_compared() -> None:
    """ONNX Runtime 1.24 clips no argument of the last function, `onnx.reference` none at all."""
    proto = model([layer("LSTM", clip=0.5)], ("T", "B", FEATURES), weights("LSTM"))
    with pytest.warns(UserWarning, match="was not compared with the model: ONNX Runtime does not"):
        Session.from_onnx(proto)
