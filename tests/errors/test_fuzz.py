"""Random shapes, lengths, types and attributes at all six ops.

Either every argument is right, and the result has the documented shapes, holds no number that was
not written, and agrees with the oracle; or it is an InvalidArgumentError with the text that the
contract gives for these shapes.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import block_cell
from oracle.block_cell import Inputs, Outputs, zero_upstream

from .contract import (
    SIGNATURES,
    Shape,
    arguments,
    call,
    extents,
    length_error,
    right_shapes,
    shape_error,
    specification,
    trace,
)

# Enough to tell a right result from a wrong one; how exact results are is shown elsewhere. Sums of
# up to 30 terms and four steps, in the roundoff of each type.
TOLERANCE = {"half": 2e-2, "bfloat16": 2e-1, "float32": 2e-5, "float64": 1e-12}


class Call(NamedTuple):
    op: str
    shapes: dict[str, Shape]
    length: int
    dtype: str
    options: dict[str, Any]
    seed: int


@st.composite
def wrong_shape(draw: st.DrawFn, right: Shape) -> Shape:
    """Any small shape, or the right one with a dimension changed, dropped or added."""
    kind = draw(st.sampled_from(["any", "change", "drop", "add"]))
    if kind == "any" or not right:
        return tuple(draw(st.lists(st.integers(0, 6), max_size=5)))
    k = draw(st.integers(0, len(right) - 1))
    if kind == "drop":
        return right[:k] + right[k + 1 :]
    size = draw(st.integers(0, 2 * right[k] + 2))
    return right[:k] + (size,) + (right[k + 1 :] if kind == "change" else right[k:])


@st.composite
def calls(draw: st.DrawFn) -> Call:
    op = draw(st.sampled_from(sorted(SIGNATURES)))
    sizes = {
        "time": draw(st.integers(0, 4)),
        "batch": draw(st.integers(0, 6)),
        "inputs": draw(st.sampled_from([0, 1, 2, 3, 7, 16])),
        "units": draw(st.sampled_from([0, 1, 1, 2, 3, 4, 5, 8, 9, 16, 17])),
    }
    shapes = right_shapes(op, **sizes)
    for argument in draw(st.lists(st.sampled_from(sorted(shapes)), max_size=2)):
        shapes[argument] = draw(wrong_shape(shapes[argument]))
    length = draw(st.one_of(st.integers(0, sizes["time"]), st.integers(-2, 7)))
    options: dict[str, Any] = {"use_peephole": draw(st.booleans())}
    if "Grad" not in op:
        options["cell_clip"] = draw(st.sampled_from([-1.0, 0.0, 0.25, 3.0]))
        if "V2" not in op:
            options["forget_bias"] = draw(st.sampled_from([-2.0, 0.0, 1.0]))
    dtype = draw(st.sampled_from(sorted(TOLERANCE)))
    return Call(op, shapes, length, dtype, options, draw(st.integers(0, 2**16)))


def oracle(case: Call, values: dict[str, tf.Tensor]) -> list[np.ndarray]:
    arrays = {k: tf.cast(v, tf.float64).numpy() for k, v in values.items() if k != "seq_len_max"}
    inputs = Inputs(*(arrays[name] for name in Inputs._fields))
    options = {"gate_order": "ifco" if "V2" in case.op else "icfo", **case.options}
    is_sequence = "seq_len_max" in values
    if "Grad" not in case.op:
        options.setdefault("forget_bias", 0.0)
        if is_sequence:
            return list(block_cell.sequence(case.length, inputs, **options))
        return list(block_cell.cell(inputs, **options))
    saved = Outputs(*(arrays.get(name, arrays["i"]) for name in Outputs._fields))
    upstream = zero_upstream(saved, cs=arrays["cs_grad"], h=arrays["h_grad"])
    if is_sequence:
        return list(block_cell.sequence_backward(case.length, inputs, saved, upstream, **options))
    d, gates = block_cell.cell_backward(inputs, saved, upstream, **options)
    return [d.cs_prev, gates, d.wci, d.wcf, d.wco]


def leave_nan_in_memory(shapes: list[Shape], dtype: tf.DType) -> None:
    """Freed blocks of the sizes that the op will ask for: what it does not write shows."""
    blocks = [tf.fill(shape, tf.constant(np.nan, dtype)) for shape in shapes for _ in range(2)]
    del blocks


def check(case: Call, traced: bool, shape_known: bool = False) -> bool:
    """Whether the call was right, having checked that the op thinks so too."""
    values = arguments(case.op, case.shapes, case.length, case.dtype, case.seed)
    expected = [
        text
        for text in (
            shape_error(case.op, case.shapes),
            length_error(case.op, case.shapes, case.length),
        )
        if text
    ]
    dtype = tf.as_dtype(case.dtype)
    try:
        if traced:
            specs = specification(values, shape_known)
            got = trace(case.op, specs, **case.options)(*values.values())
        else:
            if not expected:
                sizes = extents(0, 0, 0, case.shapes["cs_prev"][1])
                state = (*case.shapes["x"][:-1], sizes["H"])
                leave_nan_in_memory([state, case.shapes["x"], case.shapes["w"]], dtype)
            got = call(case.op, values, **case.options)
    except (tf.errors.InvalidArgumentError, ValueError) as error:
        assert traced or isinstance(error, tf.errors.InvalidArgumentError)
        assert any(text in str(error) for text in expected), (expected, str(error))
        return False
    assert not expected
    for field, a, b in zip(got._fields, got, oracle(case, values), strict=True):
        assert a.shape == b.shape and a.dtype == dtype, field
        a = tf.cast(a, tf.float64).numpy()
        assert np.isfinite(a).all(), field
        tolerance = TOLERANCE[case.dtype] * max(1.0, np.abs(b).max(initial=0.0))
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance, err_msg=field)
    return True


@settings(max_examples=250)
@given(calls())
def test_eager(case):
    check(case, traced=False)


@pytest.mark.full
@settings(max_examples=500)
@given(calls())
def test_more_eager_calls(case):
    check(case, traced=False)


@pytest.mark.full
@settings(max_examples=60)
@given(calls(), st.booleans())
def test_traced(case, shape_known):
    check(case, traced=True, shape_known=shape_known)


@pytest.mark.slow
@settings(max_examples=100_000)
@given(calls())
def test_eager_for_long(case):
    check(case, traced=False)


def test_the_draws_hit_both_sides():
    """Neither the right nor the wrong calls are rare among those drawn."""
    right = []

    @settings(max_examples=100)
    @given(calls())
    def draw(case):
        wrong = shape_error(case.op, case.shapes) or length_error(case.op, case.shapes, case.length)
        right.append(wrong is None)

    draw()
    assert 0.1 < np.mean(right) < 0.9
