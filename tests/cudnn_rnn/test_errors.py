"""Every op × every input × every kind of error: the error names the argument.

Eager, and traced with no shape known: the kernel refuses. What shape inference can tell, which is a
wrong rank, is traced with known shapes too: an own op refuses it, TensorFlow reports a ValueError;
for a stock name TensorFlow's own shape function runs.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from block_cell.contract import wrong_shapes

from .cases import (
    DTYPES,
    FORWARD,
    GATES,
    SEQUENCE_OPS,
    SOURCES,
    Case,
    Shape,
    Values,
    arguments,
    broken_rules,
    call,
    sizes_of,
    specification,
    trace,
    traced_without_shapes,
)

MODES = ["eager", "kernel"]
INFERENCE = "shape inference"
V3 = [op for op in SEQUENCE_OPS if op.endswith("V3")]

BOTH_WAYS = Case(layers=2, directions=2, time=4)
BASES = {
    **{op: [BOTH_WAYS] for op in SEQUENCE_OPS},
    **{
        op: [
            replace(BOTH_WAYS, proj=2, time_major=False),
            Case("gru", layers=2, inputs=4, input_mode="skip_input", time=3, batch=2),
        ]
        for op in V3
    },
}


class Fault(NamedTuple):
    op: str
    case: Case
    argument: str
    shape: Shape

    def __str__(self) -> str:
        return f"{self.op}-{self.case.mode}-{self.argument}{list(self.shape)}"


@cache
def faults() -> list[Fault]:
    """One wrong shape at a time, where it breaks a rule: a longer input of V1 is just longer."""
    found = []
    for op, cases in BASES.items():
        for case in cases:
            right = case.shapes(op)
            for argument in right:
                for shape in dict.fromkeys(wrong_shapes(right[argument])):
                    if broken_rules(op, case, {**right, argument: shape}):
                        found.append(Fault(op, case, argument, shape))
    return found


def wrong_arguments(fault: Fault) -> Values:
    right = fault.case.shapes(fault.op)
    return arguments(fault.op, fault.case, shapes={**right, fault.argument: fault.shape})


def error_of(op: str, case: Case, values: Values, mode: str, source: str, **options: Any) -> str:
    """The text of the error that this call must give."""
    known = mode == INFERENCE
    errors = (tf.errors.InvalidArgumentError, *([ValueError] if known else []))
    with pytest.raises(errors) as caught:
        if mode == "eager":
            call(op, case, values, source, **options)
        elif known:
            traced = trace(op, case, specification(values, known), source=source, **options)
            traced(*values.values())
        else:
            traced_without_shapes(op, case, source, **options)(*values.values())
    return str(caught.value)


# --- shapes ----------------------------------------------------------------------------------


def rules_of(fault: Fault) -> list[str]:
    right = fault.case.shapes(fault.op)
    return broken_rules(fault.op, fault.case, {**right, fault.argument: fault.shape})


def has_wrong_rank(fault: Fault) -> bool:
    return len(fault.shape) != len(fault.case.shapes(fault.op)[fault.argument])


@pytest.mark.parametrize("mode", ["eager", pytest.param("kernel", marks=pytest.mark.full)])
@pytest.mark.parametrize("fault", faults(), ids=str)
def test_shape(fault, mode):
    text = error_of(fault.op, fault.case, wrong_arguments(fault), mode, "own")
    assert any(rule in text for rule in rules_of(fault)), (text, rules_of(fault))


@pytest.mark.sampled(3, strength=2)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("fault", filter(has_wrong_rank, faults()), ids=str)
def test_rank_in_shape_inference(fault, source):
    """TensorFlow's own function, of a stock name, does not say which argument it is."""
    text = error_of(fault.op, fault.case, wrong_arguments(fault), INFERENCE, source)
    assert "must be rank" in text or any(rule in text for rule in rules_of(fault))
    if source == "own":
        assert any(rule in text for rule in rules_of(fault))


@pytest.mark.parametrize("fault", faults()[::3], ids=str)
def test_shape_under_the_stock_name(fault):
    """The same kernel."""
    text = error_of(fault.op, fault.case, wrong_arguments(fault), "eager", "stock")
    assert any(rule in text for rule in rules_of(fault))


@pytest.mark.sampled
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("op", BASES)
def test_right_shapes_are_accepted(op, source):
    """The table proves something only if its starting point is right."""
    assert len(faults()) > 600
    for case in BASES[op]:
        values = arguments(op, case)
        assert not broken_rules(op, case, case.shapes(op))
        eager = call(op, case, values, source)
        for known in (False, True):
            traced = trace(op, case, specification(values, known), source=source)
            for a, b in zip(traced(*values.values()), eager, strict=True):
                tf.debugging.assert_equal(a, b)


@pytest.mark.parametrize("mode", [mode for mode in GATES if mode != "lstm"])
@pytest.mark.parametrize("op", FORWARD)
def test_input_c_of_any_shape_where_there_is_no_cell_state(op, mode):
    case = Case(mode)
    values = arguments(op, case)
    want = call(op, case, values).output
    for shape in ([], [0], [7], [2, 0, 3], [1, 1, 1, 1]):
        got = call(op, case, {**values, "input_c": tf.fill(shape, np.float32(np.nan))})
        np.testing.assert_array_equal(got.output, want)
        assert got.output_c.shape == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("sizes", [{"inputs": 0}, {"units": 0}, {"layers": 0}], ids=str)
@pytest.mark.parametrize("op", FORWARD)
def test_empty(op, sizes, source, mode):
    """All inputs agree, but there is no column of the input, no unit or no layer."""
    case = replace(BOTH_WAYS, **sizes)
    values = arguments(op, BOTH_WAYS, shapes=case.shapes(op))
    assert "is empty, has shape" in error_of(op, BOTH_WAYS, values, mode, source)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("rows", [1, 3, 5])
@pytest.mark.parametrize("op", FORWARD)
def test_states_that_are_no_multiple_of_the_directions(op, rows, source, mode):
    shapes = BOTH_WAYS.shapes(op)
    state = (rows, BOTH_WAYS.batch, BOTH_WAYS.units)
    values = arguments(op, BOTH_WAYS, shapes={**shapes, "input_h": state, "input_c": state})
    assert "input_h.dim_size(0)" in error_of(op, BOTH_WAYS, values, mode, source)


# --- lengths ---------------------------------------------------------------------------------

FULL = np.iinfo(np.int32)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("length", [-1, 5, FULL.min, FULL.max])
@pytest.mark.parametrize("row", [0, 2])
@pytest.mark.parametrize("op", V3)
def test_length(op, row, length, source, mode):
    values = arguments(op, BOTH_WAYS)
    lengths = [4, 0, 4]
    lengths[row] = length
    values["sequence_lengths"] = tf.constant(lengths, tf.int32)
    text = error_of(op, BOTH_WAYS, values, mode, source)
    assert f"sequence_lengths[{row}] must be between 0 and 4 but is {length}" in text


# --- types -----------------------------------------------------------------------------------


def odd_ones() -> Iterator[tuple[str, str]]:
    for op in SEQUENCE_OPS:
        yield from ((op, name) for name in BOTH_WAYS.shapes(op))
        if "Backprop" in op:
            yield op, "reserve_space"


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("dtype", ["half", "float64", "int64"])
@pytest.mark.parametrize("op, argument", odd_ones())
def test_type(op, argument, dtype, traced):
    """All but one argument have the right type. input decides; if it is the odd one, input_h is
    named."""
    values = arguments(op, BOTH_WAYS)
    values[argument] = tf.cast(values[argument], dtype)
    dtype = values[argument].dtype.name
    if argument == "sequence_lengths":
        text = f"sequence_lengths must be int32 but is {dtype}"
    elif argument == "input":
        text = f"input_h must be {dtype} but is float32"
    else:
        text = f"{argument} must be float32 but is {dtype}"
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        if traced:
            trace(op, BOTH_WAYS, specification(values, known=True))
        else:
            call(op, BOTH_WAYS, values)
    assert text in str(caught.value)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("dtype", ["int32", "complex64", "string", "bool"])
@pytest.mark.parametrize("op", SEQUENCE_OPS)
def test_type_that_no_kernel_has(op, dtype, source):
    values = arguments(op, BOTH_WAYS)
    one = "text" if dtype == "string" else tf.cast(1, dtype)
    values = {
        k: v if v.dtype in (tf.int32, tf.int8) else tf.fill(v.shape, one) for k, v in values.items()
    }
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError), match=f"{dtype}|T"):
        call(op, BOTH_WAYS, values, source)


# --- attributes ------------------------------------------------------------------------------


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("dropout", [-0.1, 1.001, -np.inf, np.inf, np.nan])
@pytest.mark.parametrize("op", SEQUENCE_OPS)
def test_dropout(op, dropout, source, mode):
    values = arguments(op, BOTH_WAYS)
    assert "dropout" in error_of(op, BOTH_WAYS, values, mode, source, dropout=dropout)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("num_proj", [-1, 5, -(2**31), 2**31, 2**62, -(2**63)])
@pytest.mark.parametrize("op", V3)
def test_num_proj(op, num_proj, source, mode):
    """Negative, or more than num_units: then in stock's words."""
    values = arguments(op, BOTH_WAYS)
    text = error_of(op, BOTH_WAYS, values, mode, source, num_proj=num_proj)
    named = "num_proj" if num_proj < 0 else "w/ projection size:"
    assert named in text and str(num_proj) in text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("rnn_mode", [mode for mode in GATES if mode != "lstm"])
@pytest.mark.parametrize("op", V3)
def test_projection_of_another_mode(op, rnn_mode, source, mode):
    case = replace(BOTH_WAYS, mode=rnn_mode)
    values = arguments(op, case)
    assert "num_proj" in error_of(op, case, values, mode, source, num_proj=2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("op", SEQUENCE_OPS)
def test_skip_input_of_another_size(op, source, mode):
    values = arguments(op, BOTH_WAYS)
    text = error_of(op, BOTH_WAYS, values, mode, source, input_mode="skip_input")
    assert "skip_input" in text


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("value", ["", "LSTM", "lstm ", "\0"])
@pytest.mark.parametrize("attribute", ["rnn_mode", "input_mode", "direction"])
@pytest.mark.parametrize("op", [*SEQUENCE_OPS, "CudnnRNNParamsSize"])
def test_strings(op, attribute, value, source):
    """TensorFlow's own error: the op's definition lists what is allowed."""
    if op == "CudnnRNNParamsSize":
        values: Any = sizes_of(BOTH_WAYS, T=tf.float32, S=tf.int32)
    else:
        values = arguments(op, BOTH_WAYS)
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=attribute):
        call(op, BOTH_WAYS, values, source, **{attribute: value})


# --- products that overflow ------------------------------------------------------------------


HUGE = {
    "input": [(0, 3, 2**62), (4, 0, 2**62), (0, 2**40, 2**40)],
    "input_h": [(0, 3, 2**61), (4, 0, 2**62), (0, 2**40, 2**40)],
    "input_c": [(0, 3, 2**61), (4, 0, 2**62), (0, 2**40, 2**40)],
}


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("argument, shape", [(k, shape) for k, v in HUGE.items() for shape in v])
@pytest.mark.parametrize("op", SEQUENCE_OPS)
def test_huge_dimensions(op, argument, shape, source, mode):
    """A tensor without elements may have sides whose products are beyond int64."""
    values = arguments(op, BOTH_WAYS)
    values[argument] = tf.zeros(shape)
    assert "input" in error_of(op, BOTH_WAYS, values, mode, source)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("units", [2**30, 2**58, 2**62])
@pytest.mark.parametrize("op", FORWARD)
def test_all_states_huge(op, units, source, mode):
    """They agree with each other; there is no row."""
    values = arguments(op, BOTH_WAYS, shapes=replace(BOTH_WAYS, batch=0).shapes(op))
    values |= {name: tf.zeros([4, 0, units]) for name in ("input_h", "input_c")}
    text = error_of(op, BOTH_WAYS, values, mode, source)
    assert "overflow" in text or "params" in text


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_type_is_checked_as_any_other(dtype):
    """A sample of all the above for the types that the others do not use."""
    case = BOTH_WAYS
    for op in SEQUENCE_OPS:
        values = arguments(op, case, dtype)
        values["params"] = values["params"][:-1]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"params\.dim_size"):
            call(op, case, values)
