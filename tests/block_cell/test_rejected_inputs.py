"""Every op × every input × every kind of error: the error, with its exact text.

Eager, traced with known shapes (shape inference refuses, TensorFlow reports a ValueError) and
traced with no shape known (the kernel refuses).
"""

from functools import cache
from typing import NamedTuple

import pytest
import tensorflow as tf

from .contract import (
    SEQUENCE_OPS,
    SIGNATURES,
    Shape,
    arguments,
    call,
    length_error,
    right_shapes,
    shape_error,
    specification,
    trace,
    wrong_shapes,
)

SIZES = {"time": 4, "batch": 3, "inputs": 2, "units": 5}
LENGTH = 2
MODES = ["eager", "shape inference", "kernel"]


class Fault(NamedTuple):
    op: str
    argument: str
    shape: Shape

    def __str__(self) -> str:
        return f"{self.op}-{self.argument}{list(self.shape)}"


@cache
def faults() -> list[Fault]:
    """One wrong shape at a time. A forward op takes any time_length and, x being empty, I = 0
    with the right w; neither is listed."""
    found = []
    for op, inputs in SIGNATURES.items():
        right = right_shapes(op, **SIZES)
        for argument in inputs:
            for shape in dict.fromkeys(wrong_shapes(right[argument])):
                shapes = {**right, argument: shape}
                if shape_error(op, shapes) or length_error(op, shapes, LENGTH):
                    found.append(Fault(op, argument, shape))
    return found


@cache
def traced_without_shapes(op: str):
    values = arguments(op, right_shapes(op, **SIZES))
    return trace(op, specification(values, shape_known=False))


def assert_rejected(op: str, values: dict[str, tf.Tensor], mode: str, text: str) -> None:
    if mode == "eager":
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            call(op, values)
    elif mode == "shape inference":
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError)) as caught:
            trace(op, specification(values, shape_known=True))(*values.values())
    else:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            traced_without_shapes(op)(*values.values())
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "mode",
    [
        "eager",
        pytest.param("shape inference", marks=pytest.mark.slow),
        pytest.param("kernel", marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("fault", faults(), ids=str)
def test_shape(fault, mode):
    op, argument, shape = fault
    shapes = {**right_shapes(op, **SIZES), argument: shape}
    text = shape_error(op, shapes) or length_error(op, shapes, LENGTH)
    assert_rejected(op, arguments(op, shapes, LENGTH), mode, text)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", [{"units": 0}, {"batch": 0, "units": 0}])
@pytest.mark.parametrize("op", SIGNATURES)
def test_no_unit(op, sizes, mode):
    """All inputs agree, but there is no unit."""
    shapes = right_shapes(op, **{**SIZES, **sizes})
    assert_rejected(op, arguments(op, shapes, LENGTH), mode, shape_error(op, shapes))


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("length", [-1, SIZES["time"] + 1, -(2**63), 2**63 - 1, 2**32])
@pytest.mark.parametrize("op", SEQUENCE_OPS)
def test_seq_len_max(op, length, mode):
    """2**32 is zero in 32 bits."""
    shapes = right_shapes(op, **SIZES)
    text = f"seq_len_max must be between 0 and {SIZES['time']} but is {length}"
    assert text == length_error(op, shapes, length)
    assert_rejected(op, arguments(op, shapes, length), mode, text)


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("dtype", ["half", "bfloat16", "float64", "int32"])
@pytest.mark.parametrize(
    "op, argument", [(op, a) for op, inputs in SIGNATURES.items() for a in inputs]
)
def test_type(op, argument, dtype, traced):
    """All but one argument are float32. x decides; if x is the odd one, cs_prev is named."""
    values = arguments(op, right_shapes(op, **SIZES), LENGTH)
    values[argument] = tf.cast(values[argument], dtype)
    dtype = values[argument].dtype.name
    if argument == "seq_len_max":
        text = f"seq_len_max must be int64 but is {dtype}"
    elif argument == "x":
        text = f"cs_prev must be {dtype} but is float32"
    else:
        text = f"{argument} must be float32 but is {dtype}"
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        if traced:
            trace(op, specification(values, shape_known=True))
        else:
            call(op, values)
    assert text in str(caught.value)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool", "complex64", "string"])
@pytest.mark.parametrize("op", SIGNATURES)
def test_type_that_no_kernel_has(op, dtype, traced):
    """All arguments of one type, the wrong one: TensorFlow or the package says so."""
    shapes = right_shapes(op, **SIZES)
    values = {
        name: tf.constant(LENGTH, tf.int64)
        if name == "seq_len_max"
        else tf.fill(shape, "text" if dtype == "string" else tf.cast(1, dtype))
        for name, shape in shapes.items()
    }
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError), match=f"{dtype}|T"):
        if traced:
            trace(op, specification(values, shape_known=True))
        else:
            call(op, values)


@pytest.mark.parametrize("op", SIGNATURES)
def test_right_shapes_are_accepted(op):
    """The table above proves something only if its starting point is right."""
    values = arguments(op, right_shapes(op, **SIZES), LENGTH)
    eager = call(op, values)
    assert len(faults()) > 500
    for known in (False, True):
        traced = trace(op, specification(values, shape_known=known))(*values.values())
        for a, b in zip(traced, eager, strict=True):
            tf.debugging.assert_equal(a, b)


# --- sizes whose product overflows -----------------------------------------------------------

HUGE = 2**62  # times 4 gates it is beyond int64; tensors without elements may have such a side


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("time, units", [(HUGE, 1), (HUGE, 4), (2**60, 2), (2**58, 16)])
@pytest.mark.parametrize("op", ["BlockLSTM", "BlockLSTMV2"])
def test_time_times_cells_overflows(op, time, units, known):
    """x has no elements, as I = 0; the outputs [T, B, H] would have more than memory can count."""
    shapes = right_shapes(op, time=0, batch=1, inputs=0, units=units)
    values = arguments(op, shapes)
    values["x"] = tf.zeros([time, 1, 0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"x.*overflow"):
        call(op, values)
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=r"x.*overflow"):
        trace(op, specification(values, known))(*values.values())


@pytest.mark.parametrize("op", ["BlockLSTM", "BlockLSTMV2"])
def test_inputs_plus_cells_overflow(op):
    """T = 0, so that x has no elements; I + H, the rows of w, is beyond int64."""
    values = arguments(op, right_shapes(op, time=0, batch=1, inputs=0, units=2))
    values["x"] = tf.zeros([0, 1, 2**63 - 1])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"x.*overflow"):
        call(op, values)
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=r"x.*overflow"):
        trace(op, specification(values, shape_known=True))


def trace_with(op: str, **shapes: list[int | None]) -> None:
    """Traces with these shapes known and no other. TensorFlow itself refuses a shape whose known
    dimensions have too large a product, hence one known dimension at a time."""
    specs = specification(arguments(op, right_shapes(op, **SIZES)), shape_known=False)
    specs.update({name: tf.TensorSpec(shape, tf.float32) for name, shape in shapes.items()})
    trace(op, specs)


@pytest.mark.parametrize("dim", [2**58, HUGE, 2**63 - 1])
@pytest.mark.parametrize("op", SIGNATURES)
def test_a_huge_cell_in_shape_inference(op, dim):
    """A signature may say anything; 4 * cell_size must not wrap round."""
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=r"cs_prev.*overflow"):
        trace_with(op, cs_prev=[None, dim])


@pytest.mark.parametrize("dim", [2**61, 2**63 - 1])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("op", SIGNATURES)
def test_a_huge_x_in_shape_inference(op, axis, dim):
    shape: list[int | None] = [None] * len(right_shapes(op, **SIZES)["x"])
    shape[axis % len(shape)] = dim
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=r"x.*overflow"):
        trace_with(op, x=shape)


@pytest.mark.parametrize("op", [op for op in SEQUENCE_OPS if "Grad" in op])
def test_gradient_ops_refuse_a_huge_x(op):
    """The other inputs cannot be as long: whichever is named, it is an InvalidArgumentError."""
    values = arguments(op, right_shapes(op, time=0, batch=1, inputs=0, units=2))
    values["x"] = tf.zeros([HUGE, 1, 0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"overflow|time_length"):
        call(op, values)


@pytest.mark.full  # TensorFlow waits ten seconds
@pytest.mark.parametrize("length", [2**44, pytest.param(0, marks=pytest.mark.slow)])
def test_more_than_memory_holds(length):
    """Scratch memory, and for length 0 the outputs of 2**53 bytes, which no address space has."""
    values = arguments("BlockLSTM", right_shapes("BlockLSTM", time=0, batch=1, inputs=0, units=128))
    values["x"] = tf.zeros([2**44, 1, 0])
    values["seq_len_max"] = tf.constant(length, tf.int64)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        call("BlockLSTM", values)
