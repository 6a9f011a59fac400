"""Random models, batches, types and attributes at all eleven ops.

Either everything is right, and the results have the documented shapes and are finite;
or it is an InvalidArgumentError that tells one of the rules which the call breaks. How right the
values are is shown elsewhere.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from errors.test_fuzz import wrong_shape

from .cases import (
    BACKPROP,
    DTYPES,
    FORWARD,
    GATES,
    SOURCES,
    TO_CANONICAL,
    TO_PARAMS,
    Case,
    Shape,
    Values,
    arguments,
    broken_rules,
    call,
    random_tensor,
    specification,
    trace,
)

SMALL = st.integers(1, 4)


@st.composite
def cases(draw: st.DrawFn, op: str) -> Case:
    """A model that the op can run."""
    units = draw(st.sampled_from([1, 2, 3, 4, 8, 9, 17]))
    input_mode = draw(st.sampled_from(["linear_input", "skip_input", "auto_select"]))
    inputs = units if input_mode == "skip_input" else draw(st.sampled_from([1, 2, 3, 8, units]))
    mode = draw(st.sampled_from(sorted(GATES)))
    has_projection = op.endswith(("V3", "ParamsV2", "CanonicalV2")) and mode == "lstm"
    return Case(
        mode=mode,
        layers=draw(st.integers(1, 3)),
        directions=draw(st.integers(1, 2)),
        inputs=inputs,
        units=units,
        proj=draw(st.integers(0, units)) if has_projection else 0,
        input_mode=input_mode,
        time=draw(SMALL),
        batch=draw(SMALL),
        time_major=draw(st.booleans()) if op.endswith("V3") else True,
    )


@st.composite
def lengths(draw: st.DrawFn, case: Case) -> list[int]:
    right = st.lists(st.integers(0, case.time), min_size=case.batch, max_size=case.batch)
    wrong = st.lists(st.integers(-2, case.time + 2), max_size=case.batch + 1)
    return draw(st.one_of(right, right, right, wrong))


def broken_lengths(case: Case, shapes: dict[str, Any], given: list[int]) -> list[str]:
    """The texts about lengths out of range, if the time is as it should be."""
    time = shapes["input"][0 if case.time_major else 1]
    return [
        f"sequence_lengths[{k}] must be between 0 and {time} but is {length}"
        for k, length in enumerate(given)
        if not 0 <= length <= time
    ]


def is_small(shape: Shape) -> bool:
    """Not so params of one more dimension."""
    return math.prod(shape) < 2**16


def assert_told(error: Exception, rules: list[str]) -> None:
    assert any(rule in str(error) for rule in rules), (str(error), rules)


def run(op: str, case: Case, values: Values, how: str, source: str, **options: Any) -> Any:
    """Eager, or traced with shapes known or not."""
    if how == "eager":
        return call(op, case, values, source, **options)
    specs = specification(values, known=how == "known")
    return trace(op, case, specs, source=source, **options)(*values.values())


HOW = st.sampled_from(["eager"] * 8 + ["known", "unknown"])  # tracing is slow


def assert_results(results: Any, shapes: list[Any]) -> None:
    for k, (a, shape) in enumerate(zip(results, shapes, strict=True)):
        if shape is not None:
            assert tuple(a.shape) == shape, k
            assert np.isfinite(tf.cast(a, tf.float64)).all(), k


def forward(data: Any) -> None:
    draw = data.draw
    op, source = draw(st.sampled_from(FORWARD)), draw(st.sampled_from(sorted(SOURCES)))
    case = draw(cases(op))
    shapes = case.shapes(op)
    for argument in draw(st.lists(st.sampled_from(sorted(shapes)), max_size=2, unique=True)):
        shapes[argument] = draw(wrong_shape(shapes[argument]).filter(is_small))
    rules = broken_rules(op, case, shapes)
    values = arguments(op, case, draw(st.sampled_from(DTYPES)), shapes=shapes)
    if op.endswith("V3") and not rules:
        given = draw(lengths(replace(case, time=shapes["input"][0 if case.time_major else 1])))
        values["sequence_lengths"] = tf.constant(given, tf.int32)
        shapes["sequence_lengths"] = (len(given),)
        rules = broken_rules(op, case, shapes) + broken_lengths(case, shapes, given)
    is_training = draw(st.booleans())
    dropout = draw(st.sampled_from([0.0, 0.0, 0.3, 1.0, -0.5, 1.5]))
    if not 0 <= dropout <= 1:
        rules.append("dropout")
    options = {"is_training": is_training, "dropout": dropout, "seed": draw(st.integers(0, 9))}
    how = draw(HOW)
    try:
        results = run(op, case, values, how, source, **options)
    except (tf.errors.InvalidArgumentError, ValueError) as error:
        assert rules, str(error)
        if source == "own" or how != "known":
            assert_told(error, rules)
        return
    assert not rules
    axes = (0, 1) if case.time_major else (1, 0)
    found = replace(
        case,
        time=shapes["input"][axes[0]],
        batch=shapes["input"][axes[1]],
        layers=shapes["input_h"][axes[0]] // case.directions,
    )
    assert_results(results, found.result_shapes(op))
    assert (results.reserve_space.shape.rank == 1) == is_training


def backward(data: Any) -> None:
    draw = data.draw
    op, source = draw(st.sampled_from(BACKPROP)), draw(st.sampled_from(sorted(SOURCES)))
    case, dtype = draw(cases(op)), draw(st.sampled_from(DTYPES))
    given = [draw(st.integers(0, case.time)) for _ in range(case.batch)]
    shapes = case.shapes(op)
    for argument in draw(st.lists(st.sampled_from(sorted(shapes)), max_size=2, unique=True)):
        shapes[argument] = draw(wrong_shape(shapes[argument]).filter(is_small))
    rules = broken_rules(op, case, shapes)
    ignored = [] if case.mode == "lstm" else [name for name in shapes if "_c" in name]
    is_right = all(shapes[k] == v for k, v in case.shapes(op).items() if k not in ignored)
    given = given if op.endswith("V3") and is_right else None
    values = arguments(op, case, dtype, given, shapes)
    if not is_right:
        rules.append("reserve_space")  # that of other sizes
    kind = draw(st.sampled_from(["right", "right", "size", "scalar", "random", "other"]))
    right = values["reserve_space"]
    if kind == "size":
        size = draw(st.integers(0, 2 * right.shape[0]).filter(lambda n: n != right.shape[0]))
        values["reserve_space"] = tf.concat([right, right], axis=0)[:size]
    elif kind == "scalar":
        values["reserve_space"] = right[0]
    elif kind == "random":
        values["reserve_space"] = random_tensor(np.random.default_rng(0), right.shape, dtype)
    elif kind == "other":
        other = replace(case, time=case.time + 1)
        values["reserve_space"] = arguments(op, other, dtype)["reserve_space"]
    if kind != "right":
        rules.append("reserve_space")
    how = draw(HOW)
    try:
        results = run(op, case, values, how, source)
    except (tf.errors.InvalidArgumentError, ValueError) as error:
        assert rules, str(error)
        if source == "own" or how != "known":
            assert_told(error, rules)
        return
    assert not rules
    assert_results(results, [shapes[name] for name in ("input", "input_h", "input_c", "params")])


def canonical(data: Any) -> None:
    """The conversions, with counts, sizes and parts that may be wrong."""
    draw = data.draw
    op = draw(st.sampled_from([*TO_CANONICAL, *TO_PARAMS]))
    case, source = draw(cases(op)), draw(st.sampled_from(sorted(SOURCES)))
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {
        "num_layers": case.layers,
        "num_units": case.units,
        "input_size": case.inputs,
    }
    spoilt = draw(st.sampled_from([None, None, "params", "size", "count"]))
    weights, biases = case.matrices(), case.biases()
    if spoilt == "size":
        name = draw(st.sampled_from(sorted(given)))
        given[name] += draw(st.sampled_from([-given[name] - 1, -given[name], 1, 2**31 - 9]))
        given[name] = min(given[name], 2**31 - 1)
    if op in TO_CANONICAL:
        size = case.params_size() + (draw(st.sampled_from([-1, 1, 7])) if spoilt == "params" else 0)
        given["params"] = random_tensor(rng, (size,), "float32")
        extra = draw(st.integers(1, 3)) if spoilt == "count" else 0
        if op.endswith("V2"):
            counts = {"num_params_weights": len(weights) + extra, "num_params_biases": len(biases)}
        else:
            counts = {"num_params": len(weights) + extra}
        given |= counts
    else:
        if spoilt == "params":
            k = draw(st.integers(0, len(biases) - 1))
            biases[k] = (case.units + 1,)
        if spoilt == "count":
            weights, biases = weights[1:], biases[1:]
            if not weights:
                return
        given["weights"] = [random_tensor(rng, s, "float32") for s in weights]
        given["biases"] = [random_tensor(rng, s, "float32") for s in biases]
    try:
        results = call(op, case, given, source)
    except tf.errors.InvalidArgumentError:
        assert spoilt is not None
        return
    # auto_select takes other matrices where input_size becomes num_units; so may sizes that fit.
    assert spoilt in (None, "size")
    if spoilt is None and op in TO_CANONICAL:
        assert [tuple(a.shape) for a in results.weights] == weights
        assert [tuple(a.shape) for a in results.biases] == biases
    elif spoilt is None:
        assert results.shape == [case.params_size()]


@pytest.mark.full
@settings(max_examples=200)
@given(st.data())
def test_forward(data):
    forward(data)


@pytest.mark.full
@settings(max_examples=200)
@given(st.data())
def test_backward(data):
    backward(data)


@settings(max_examples=75)
@given(st.data())
def test_canonical(data):
    canonical(data)


@pytest.mark.slow
@settings(max_examples=20_000)
@given(st.data())
def test_more_of_all(data):
    data.draw(st.sampled_from([forward, backward, canonical]))(data)
