"""The rejected inputs of the ops on the parameter buffer: sizes and canonical conversions."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from block_cell.contract import wrong_shapes

from .cases import (
    LAYOUT_OPS,
    SEQUENCE_OPS,
    SOURCES,
    TO_CANONICAL,
    TO_PARAMS,
    Case,
    call,
    sizes_of,
)

MODES = ["eager", "kernel"]
INFERENCE = "shape inference"
V3 = [op for op in SEQUENCE_OPS if op.endswith("V3")]

BOTH_WAYS = Case(layers=2, directions=2, time=4)
FULL = np.iinfo(np.int32)


def layout_arguments(op: str, case: Case = BOTH_WAYS) -> dict[str, Any]:
    """The right ones."""
    if op == "CudnnRNNParamsSize":
        return sizes_of(case, T=tf.float32, S=tf.int64)
    if op in TO_PARAMS:
        parts = {"weights": case.matrices(), "biases": case.biases()}
        return sizes_of(case, **{k: [tf.ones(s) for s in v] for k, v in parts.items()})
    values = sizes_of(case, params=tf.ones(case.params_size()))
    weights, biases = len(case.matrices()), len(case.biases())
    if op.endswith("V2"):
        return {**values, "num_params_weights": weights, "num_params_biases": biases}
    return {**values, "num_params": weights}


def layout_error(op: str, values: dict[str, Any], mode: str, source: str, **options: Any) -> str:
    case = options.pop("case", BOTH_WAYS)
    if mode == "eager":
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            call(op, case, values, source, **options)
        return str(caught.value)
    tensors = {k: v for k, v in values.items() if not k.startswith("num_params") and k not in "TS"}
    rest = {k: v for k, v in values.items() if k not in tensors}
    flat = [tf.convert_to_tensor(a) for a in tf.nest.flatten(tensors)]
    specs = [tf.TensorSpec(a.shape if mode == INFERENCE else None, a.dtype) for a in flat]

    def function(*given):
        given = tf.nest.pack_sequence_as(tensors, given)
        return call(op, case, {**given, **rest}, source, **options)

    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)) as caught:
        tf.function(function).get_concrete_function(*specs)(*flat)
    return str(caught.value)


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("value", [0, -1, FULL.min])
@pytest.mark.parametrize("argument", ["num_layers", "num_units", "input_size"])
@pytest.mark.parametrize("op", LAYOUT_OPS)
def test_sizes_that_are_not_positive(op, argument, value, source, mode):
    values = {**layout_arguments(op), argument: np.int32(value)}
    assert argument in layout_error(op, values, mode, source)


@pytest.mark.sampled(5, strength=2)
@pytest.mark.parametrize("mode", [*MODES, INFERENCE])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("shape", [[0], [1], [2], [1, 1]])
@pytest.mark.parametrize("argument", ["num_layers", "num_units", "input_size"])
@pytest.mark.parametrize("op", LAYOUT_OPS)
def test_sizes_that_are_no_scalars(op, argument, shape, source, mode):
    values = {**layout_arguments(op), argument: np.full(shape, 2, np.int32)}
    text = layout_error(op, values, mode, source)
    # Of ParamsSize TensorFlow's shape function knows the rank, but not the name.
    assert argument in text or (source == "stock" and "must be rank 0" in text)


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "huge",
    [
        {"num_layers": FULL.max},
        {"num_units": FULL.max},
        {"num_units": FULL.max, "input_size": FULL.max},
        {"num_layers": FULL.max, "num_units": FULL.max, "input_size": FULL.max},
    ],
    ids=lambda huge: "-".join(huge),
)
@pytest.mark.parametrize("op", LAYOUT_OPS)
def test_huge_sizes(op, huge, source, mode):
    """Their products are beyond int64 or, in the first case, far beyond what was passed."""
    values = {**layout_arguments(op), **huge}
    if op == "CudnnRNNParamsSize":
        values["S"] = tf.int32
    assert layout_error(op, values, mode, source)


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("mode", [*MODES, INFERENCE])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("shape", wrong_shapes((BOTH_WAYS.params_size(),)), ids=str)
@pytest.mark.parametrize("op", TO_CANONICAL)
def test_size_of_params(op, shape, source, mode):
    values = {**layout_arguments(op), "params": tf.ones(shape)}
    text = layout_error(op, values, mode, source)
    assert "params" in text or (source == "stock" and "must be rank 1" in text)


@pytest.mark.sampled
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("count", [1, 8, 31, 33, 36, 64])
@pytest.mark.parametrize("op", TO_CANONICAL)
def test_number_of_parts(op, count, source, mode):
    right = layout_arguments(op)
    for name in (name for name in right if name.startswith("num_params")):
        text = layout_error(op, {**right, name: count}, mode, source)
        assert name in text or "weights" in text or "biases" in text


@pytest.mark.sampled
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("part", ["weights", "biases"])
@pytest.mark.parametrize("op", TO_PARAMS)
def test_number_of_given_parts(op, part, source, mode):
    """Fewer and more; the first version takes as many of both."""
    right = layout_arguments(op)
    for parts in (right[part][:-1], right[part] * 2, right[part] + right[part][:1]):
        values = {**right, part: parts}
        if op == TO_PARAMS[0]:
            other = "biases" if part == "weights" else "weights"
            values[other] = (right[other] * 2)[: len(parts)]
        text = layout_error(op, values, mode, source)
        assert "weights" in text or "biases" in text


@pytest.mark.sampled
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "part, index", [("weights", 0), ("weights", 31), ("biases", 0), ("biases", 31)]
)
@pytest.mark.parametrize("op", TO_PARAMS)
def test_shape_of_a_given_part(op, part, index, source, mode):
    """Too few or too many elements, in any rank; stock ends the process."""
    right = layout_arguments(op)
    shape = tuple(right[part][index].shape)
    for wrong in dict.fromkeys([*wrong_shapes(shape), shape[::-1], (0,), (2, 2, 2, 2)]):
        if int(np.prod(wrong)) == int(np.prod(shape)):
            continue
        parts = list(right[part])
        parts[index] = tf.ones(wrong)
        text = layout_error(op, {**right, part: parts}, mode, source)
        assert f"{part}[{index}]" in text, wrong


WRONG_ATTRIBUTES: list[tuple[dict[str, Any], str]] = [
    ({"num_proj": -1}, "num_proj"),
    ({"num_proj": 5}, "num_proj"),
    ({"num_proj": 2, "rnn_mode": "gru"}, "num_proj"),
    ({"input_mode": "skip_input"}, "skip_input"),
    ({"dropout": -0.5}, "dropout"),
    ({"dropout": 1.5}, "dropout"),
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "op, options, named",
    [
        (op, options, named)
        for op in LAYOUT_OPS
        for options, named in WRONG_ATTRIBUTES
        if options.keys() <= BOTH_WAYS.attributes(op).keys() | {"dropout"}
    ],
    ids=str,
)
def test_attributes_of_layouts(op, options, named, source):
    assert named in layout_error(op, layout_arguments(op), "eager", source, **options)
