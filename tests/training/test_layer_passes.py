"""The layers of the C library: the bits and the errors of the ops of TensorFlow.

tests/fuzz draws the calls, and compares the ops with an independent oracle.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from fuzz.draw import is_huge
from fuzz.keras import LAYERS, Drawn, draw_layer, tensors_of
from tf_lstm_ops import op_definitions
from tf_lstm_ops.inference import native
from tf_lstm_ops.inference.layer_passes import ABSENT, TYPES, Arguments, Layer, View

OPS = sorted({kind.partition(",")[0] for kind in LAYERS})
THREADS = 2
DRAWS = 12
Values = dict[str, np.ndarray]


def layer_of(op: str, dtype: str, attributes: dict[str, Any], **more: Any) -> Layer:
    given = {k: v.encode() if isinstance(v, str) else v for k, v in attributes.items()}
    is_last = not given.pop("return_sequences")
    return Layer(op, dtype, returns_last_step=is_last, **given, **more)


def view(value: np.ndarray | None, mask: Any = None) -> View:
    if value is None:
        return ABSENT
    address = 0 if mask is None else mask.ctypes.data
    is_of_lengths = mask is not None and mask.dtype == np.int32
    return View(value.shape, value.ctypes.data, address, is_of_lengths)


def views(layer: Layer, arguments: Arguments, values: Values, mask: Any = None) -> list[View]:
    found = [view(values.get(name)) for name in layer.names[arguments]]
    x = values["x"]
    return [view(x, mask), *found[1:]]


def forward(layer: Layer, values: Values, mask: Any) -> Values:
    given = views(layer, Arguments.FORWARD_INPUTS, values, mask)
    names = layer.names[Arguments.FORWARD_OUTPUTS]
    shapes = layer.infer(given)
    found = {n: np.full(s, 9, values["x"].dtype) for n, s in zip(names, shapes, strict=True)}
    layer.forward(THREADS, given, [view(found[name]) for name in names])
    return found


def backward(layer: Layer, values: Values, mask: Any, wanted: Any = None) -> Values:
    """The gradients; of `wanted` only."""
    names = layer.names[Arguments.BACKWARD_OUTPUTS]
    found = {
        name: np.full_like(values[name.removesuffix("_grad")], 9)
        for name in names
        if name.removesuffix("_grad") in values and (wanted is None or name in wanted)
    }
    given = views(layer, Arguments.BACKWARD_INPUTS, values, mask)
    layer.backward(THREADS, given, [view(found.get(name)) for name in names])
    return found


def equal(got: Any, want: Any) -> None:
    got, want = np.ascontiguousarray(got), np.ascontiguousarray(want)
    assert got.shape == want.shape
    assert got.tobytes() == want.tobytes()


def draws(op: str, are_right: bool, count: int = DRAWS) -> Iterator[tuple[Drawn, Any]]:
    found = 0
    for seed in range(20_000):
        rng = np.random.default_rng(seed)
        drawn = draw_layer(rng)
        if (drawn.op, drawn.is_right) == (op, are_right) and drawn.dtype in TYPES:
            yield drawn, tensors_of(rng, drawn)
            found += 1
            if found == count:
                return
    raise AssertionError(op)


def arrays_of(drawn: Drawn, tensors: Any) -> tuple[Values, Any]:
    """The arrays that are there, and the mask."""
    given = {k: np.ascontiguousarray(v.numpy()) for k, v in tensors.items()}
    mask = given.pop("mask")
    given = {k: v for k, v in given.items() if not drawn.is_absent(k)}
    # Any byte that is not zero is a valid step.
    return given, None if drawn.is_absent("mask") else mask.astype(np.uint8) * 255


@pytest.mark.parametrize("op", OPS)
def test_bits_of_the_ops(op: str) -> None:
    for drawn, tensors in draws(op, are_right=True):
        values, mask = arrays_of(drawn, tensors)
        want = op_definitions.function(op)(**tensors, **drawn.attributes, training=True)
        layer = layer_of(op, drawn.dtype, drawn.attributes)
        got = forward(layer, values, mask)
        for name, value in want._asdict().items():
            equal(got[name], value)
        upstream = {f"{k}_grad": np.flip(v) for k, v in got.items() if k != "reserve"}
        upstream = {k: np.ascontiguousarray(v) for k, v in upstream.items()}
        slopes = op_definitions.function(f"{op}Grad")(
            **tensors,
            **{k: want._asdict()[k] for k in ("output", "reserve")},
            **upstream,
            **drawn.attributes,
        )
        found = backward(layer, {**values, **got, **upstream}, mask)
        for name, value in found.items():
            equal(value, slopes._asdict()[name])
        without = layer_of(op, drawn.dtype, drawn.attributes, saves_nothing=True)
        inferred = forward(without, values, mask)
        assert inferred["reserve"].size == 0
        equal(inferred["output"], got["output"])


@pytest.mark.parametrize("op", OPS)
def test_errors_of_the_ops(op: str) -> None:
    """The same text, of which the struct has room for 247 bytes."""
    for drawn, tensors in draws(op, are_right=False):
        if is_huge(drawn.shapes) or () in drawn.shapes.values():
            continue  # no arrays of the C interface
        if len(drawn.shapes["mask"]) != 2 and not drawn.is_absent("mask"):
            continue  # an op's mask has a shape
        values, mask = arrays_of(drawn, tensors)
        if mask is not None and mask.shape != values["x"].shape[:2]:
            continue
        with pytest.raises(tf.errors.InvalidArgumentError) as wanted:
            op_definitions.function(op)(**tensors, **drawn.attributes)
        with pytest.raises(ValueError, match=r"\w") as got:
            forward(layer_of(op, drawn.dtype, drawn.attributes), values, mask)
        assert str(got.value)[:200] in wanted.value.message


def lstm_values(rng: np.random.Generator, dtype: Any = "float32") -> Values:
    shapes = {
        "x": (3, 5, 2),
        "initial_h": (3, 4),
        "initial_c": (3, 4),
        "kernel": (2, 16),
        "recurrent_kernel": (4, 16),
        "bias": (16,),
    }
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}


def test_lengths_are_a_mask(rng: np.random.Generator) -> None:
    values, lengths = lstm_values(rng), np.array([5, 0, 2], np.int32)
    mask = (np.arange(5) < lengths[:, None]).astype(np.uint8)
    layer = Layer("KerasLSTM", "float32")
    for got, want in zip(
        forward(layer, values, lengths).values(), forward(layer, values, mask).values(), strict=True
    ):
        equal(got, want)
    with pytest.raises(ValueError, match="length 2 is 6, must be from 0 to 5"):
        forward(layer, values, np.array([5, 0, 6], np.int32))


def test_null_gradients_of_final_states_are_zeros(rng: np.random.Generator) -> None:
    values = lstm_values(rng)
    for options in ({}, {"returns_last_step": True}):
        layer = Layer("KerasLSTM", "float32", **options)
        got = forward(layer, values, None)
        given = {**values, **got, "output_grad": np.ones_like(got["output"])}
        states = {f"final_{s}_grad": np.zeros((3, 4), "float32") for s in "hc"}
        want = backward(layer, {**given, **states}, None)
        for name, value in backward(layer, given, None).items():
            equal(value, want[name])


def test_null_final_states_are_not_written(rng: np.random.Generator) -> None:
    values = lstm_values(rng)
    layer = Layer("KerasLSTM", "float32")
    want = forward(layer, values, None)
    got = {name: np.zeros_like(want[name]) for name in ("output", "reserve")}
    inputs = views(layer, Arguments.FORWARD_INPUTS, values)
    layer.forward(1, inputs, [view(got["output"]), ABSENT, ABSENT, view(got["reserve"])])
    for name, value in got.items():
        equal(value, want[name])


def test_null_gradients_are_not_computed(rng: np.random.Generator) -> None:
    values = lstm_values(rng)
    layer = Layer("KerasLSTM", "float32")
    got = forward(layer, values, None)
    given = {**values, **got, "output_grad": np.ones_like(got["output"])}
    want = backward(layer, given, None)
    for name in want:
        equal(backward(layer, given, None, wanted={name})[name], want[name])


def test_bidirectional(rng: np.random.Generator) -> None:
    values = lstm_values(rng)
    values |= {f"backward_{k}": v[::-1].copy() for k, v in values.items() if k != "x"}
    layer = Layer("KerasLSTM", "float32", bidirectional=True)
    function = op_definitions.function("KerasBidirectionalLSTM")
    names = op_definitions.inputs("KerasBidirectionalLSTM")
    absent = {name: tf.zeros([0], tf.bool if name == "mask" else tf.float32) for name in names}
    want = function(**{**absent, **values}, training=True)
    got = forward(layer, values, None)
    for name, value in want._asdict().items():
        equal(got[name], value)


def test_a_null_gradient_of_the_second_x(rng: np.random.Generator) -> None:
    """The gradient of the other x is its own."""
    values = lstm_values(rng)
    values |= {f"backward_{k}": v[::-1].copy() for k, v in values.items()}
    layer = Layer("KerasLSTM", "float32", bidirectional=True)
    got = forward(layer, values, None)
    given = {**values, **got, "output_grad": np.ones_like(got["output"])}
    want = backward(layer, given, None)
    for name in ("x_grad", "backward_x_grad"):
        equal(backward(layer, given, None, wanted={name})[name], want[name])


REFUSED = {
    "cell": ({"cell": 6}, "options.cell is 6, must be from 0 to 5"),
    "type": ({"type": 1}, "options.type is 1, must be that of float32, float64 or bfloat16"),
    "function": ({"activation": b"nonsense"}, "activation is 'nonsense', must be one of {'linear'"),
    "part of a list": (
        {"activation": b"linear', 'relu"},
        "activation is 'linear', 'relu', must be",
    ),
    "empty": ({"recurrent_activation": b""}, "recurrent_activation is '', must be one of"),
    "no such option": ({"cell": 1, "cell_clip": 1.0}, "the cell has no option cell_clip"),
    "direction": ({"bidirectional": 1, "go_backwards": 1}, "the cell has no option go_backwards"),
    "number": ({"cell_clip": float("nan")}, "cell_clip is nan, must be finite and not negative"),
    "size": ({"struct_size": 8}, "options.struct_size is 8, must be 64"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_options_that_are_refused(case: str) -> None:
    from tf_lstm_ops.inference.layer_passes import Options

    changes, message = REFUSED[case]
    options, handle = Options(), native.ctypes.c_void_p()
    for name, value in changes.items():
        setattr(options, name, value)
    address = native.ctypes.addressof
    with pytest.raises(ValueError, match=re.escape(message)):
        native.call("layer_open", address(options), address(handle))
    assert handle.value is None


def test_arrays_that_are_refused(rng: np.random.Generator) -> None:
    values = lstm_values(rng)
    layer = Layer("KerasLSTM", "float32")
    given = views(layer, Arguments.FORWARD_INPUTS, values)
    outputs = [view(v) for v in forward(layer, values, None).values()]

    def refused(message: str, threads: int = 1, inputs: Any = given, out: Any = outputs) -> None:
        with pytest.raises(ValueError, match=re.escape(message)):
            layer.forward(threads, inputs, out)

    refused("threads is 0, must be from 1 to 256", threads=0)
    refused("the number of inputs is 9, must be 10", inputs=given[1:])
    refused("the number of outputs is 3, must be 4", out=outputs[1:])
    refused("kernel is null", inputs=[*given[:3], ABSENT, *given[4:]])
    refused("output is null", out=[ABSENT, *outputs[1:]])
    refused("reserve is null", out=[*outputs[:3], ABSENT])
    wrong = outputs[0]._replace(shape=(3, 5, 3))
    refused("output has shape: [3,5,3], must have [3,5,4]", out=[wrong, *outputs[1:]])
    negative = given[0]._replace(shape=(3, -5, 2))
    refused("x.shape[1] is -5, must not be negative", inputs=[negative, *given[1:]])
    huge = given[0]._replace(shape=(1 << 62, 1 << 62, 2))
    refused("x is too large", inputs=[huge, *given[1:]])
    double = Layer("KerasLSTM", "float64")
    with pytest.raises(ValueError, match=re.escape("that of the layer")):
        double._type = TYPES["float32"]
        double.forward(1, given, outputs)


def test_names_of_the_arguments() -> None:
    """Those of the header."""
    names = Layer("KerasLSTM", "float32").names
    inputs = (
        *("x", "initial_h", "initial_c", "kernel", "recurrent_kernel", "bias", "peephole"),
        *("projection", "input_dropout", "recurrent_dropout"),
    )
    outputs = ("output", "final_h", "final_c", "reserve")
    assert names[Arguments.FORWARD_INPUTS] == inputs
    assert names[Arguments.FORWARD_OUTPUTS] == outputs
    grads = ("output_grad", "final_h_grad", "final_c_grad")
    assert names[Arguments.BACKWARD_INPUTS] == (*inputs, "output", "reserve", *grads)
    assert names[Arguments.BACKWARD_OUTPUTS] == tuple(f"{name}_grad" for name in inputs[:-2])
