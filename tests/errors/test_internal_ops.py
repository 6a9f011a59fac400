"""Ops that no public function names, but that any graph or SavedModel may hold: the gradients of
all seven outputs, and what stands behind the Keras layer.

Random inputs, as in test_fuzz: right ones give what the oracle says, wrong ones an error.
"""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import block_cell
from oracle.block_cell import Inputs, Outputs
from oracle.keras_lstm import Arguments, Options, Results, keras_lstm, keras_lstm_backward
from tf_lstm_ops import _library

from .contract import SEQUENCE, STEP, extents
from .test_fuzz import leave_nan_in_memory, wrong_shape

# --- gradients of all seven outputs ----------------------------------------------------------

ROWS = [*Outputs._fields, *(f"{field}_grad" for field in Outputs._fields)]
FULL_GRADIENTS = {
    "lstm_block_cell_full_grad": {**STEP, **dict.fromkeys(ROWS, ("B", "H"))},
    "block_lstm_full_grad": {**SEQUENCE, **dict.fromkeys(ROWS, ("T", "B", "H"))},
}


def call(name: str, **arguments: Any) -> Any:
    return getattr(_library.load(), f"tf_lstm_ops_{name}")(**arguments)


def assert_results(got: Any, want: Any) -> None:
    """In float64 through a few steps and sums of some ten terms."""
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        assert a.shape == np.shape(b), k
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11, err_msg=str(k))


@settings(max_examples=400)
@given(st.data())
def test_full_gradients(data):
    draw = data.draw
    name = draw(st.sampled_from(sorted(FULL_GRADIENTS)))
    sizes = extents(*(draw(st.integers(low, 4)) for low in (0, 1, 0, 1)))
    right = {k: tuple(sizes[d] for d in dims) for k, dims in FULL_GRADIENTS[name].items()}
    shapes = dict(right)
    for argument in draw(st.lists(st.sampled_from(sorted(shapes)), max_size=1)):
        shapes[argument] = draw(wrong_shape(right[argument]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = {k: rng.uniform(-0.9, 0.9, size=shape) for k, shape in shapes.items()}
    length = draw(st.integers(0, sizes["T"]))
    if "seq_len_max" in arrays:
        arrays["seq_len_max"] = np.full(shapes["seq_len_max"], length, np.int64)
    order = draw(st.sampled_from(["ICFO", "IFCO"]))
    peephole = draw(st.booleans())
    try:
        got = call(name, **arrays, use_peephole=peephole, gate_order=order)
    except tf.errors.InvalidArgumentError:
        assert shapes != right
        return
    # A time_length of the other inputs' own would be an error, so x decides nothing else.
    assert shapes == right
    inputs = Inputs(*(arrays[k] for k in Inputs._fields))
    saved = Outputs(*(arrays[k] for k in Outputs._fields))
    upstream = Outputs(*(arrays[f"{k}_grad"] for k in Outputs._fields))
    options = {"use_peephole": peephole, "gate_order": order.lower()}
    if name.startswith("block"):
        want = block_cell.sequence_backward(length, inputs, saved, upstream, **options)
    else:
        want = block_cell.cell_backward(inputs, saved, upstream, **options).inputs
    assert_results(got, want)


@pytest.mark.parametrize("order", ["", "I", "IIII", "icfo", "ICFOX", "OIFC", "\0\0\0\0"])
@pytest.mark.parametrize("name", FULL_GRADIENTS)
def test_gate_order(name, order):
    """A string of anything but the two orders."""
    sizes = extents(2, 2, 2, 2)
    zeros = {
        k: np.zeros([sizes[d] for d in dims], np.int64 if k == "seq_len_max" else np.float32)
        for k, dims in FULL_GRADIENTS[name].items()
    }
    with pytest.raises(tf.errors.InvalidArgumentError, match="gate_order"):
        call(name, **zeros, use_peephole=False, gate_order=order)


# --- the layer -------------------------------------------------------------------------------

LAYER = {
    "x": ("B", "T", "I"),
    "mask": ("B", "T"),
    "initial_h": ("B", "H"),
    "initial_c": ("B", "H"),
    "kernel": ("I", "4H"),
    "recurrent_kernel": ("H", "4H"),
    "bias": ("4H",),
    "peephole": ("3", "H"),
    "input_dropout": ("4", "B", "I"),
    "recurrent_dropout": ("4", "B", "H"),
}
OPTIONAL = ["mask", "bias", "peephole", "input_dropout", "recurrent_dropout"]  # absent: [0]


def draw_layer(draw: Any, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Right inputs of the op, some of the optional ones absent."""
    sizes = {**sizes, "3": 3, "4": 4}
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    arrays = {k: rng.uniform(-0.9, 0.9, size=[sizes[d] for d in dims]) for k, dims in LAYER.items()}
    arrays["mask"] = rng.uniform(size=arrays["mask"].shape) < draw(st.sampled_from([0, 0.5, 0.9]))
    for absent in draw(st.sets(st.sampled_from(OPTIONAL))):
        arrays[absent] = np.zeros(0, arrays[absent].dtype)
    return arrays


def oracle_arguments(arrays: dict[str, np.ndarray], cell_clip: float, **options: bool) -> Any:
    units = arrays["initial_h"].shape[1]

    def given(name: str, otherwise: Any) -> Any:
        return arrays[name] if arrays[name].ndim > 1 else otherwise

    arguments = Arguments(
        arrays["x"],
        arrays["initial_h"],
        arrays["initial_c"],
        arrays["kernel"],
        arrays["recurrent_kernel"],
        arrays["bias"] if arrays["bias"].size else np.zeros(4 * units),
        given("peephole", np.zeros((3, units))),
    )
    return arguments, Options(
        mask=given("mask", None),
        cell_clip=cell_clip,
        input_dropout=given("input_dropout", 1.0),
        recurrent_dropout=given("recurrent_dropout", 1.0),
        **options,
    )


@settings(max_examples=400)
@given(st.data())
def test_layer(data):
    """Forward and backward against the oracle, with any mask, dropout masks and absent inputs."""
    draw = data.draw
    sizes = extents(*(draw(st.integers(low, 5)) for low in (1, 1, 0, 1)))
    arrays = draw_layer(draw, sizes)
    options = {
        "go_backwards": draw(st.booleans()),
        "zero_output_for_mask": draw(st.booleans()),
    }
    cell_clip = draw(st.sampled_from([0.0, 0.25]))
    sequences = draw(st.booleans())
    attributes = {**options, "cell_clip": cell_clip, "return_sequences": sequences}
    trained = call("keras_lstm", **arrays, **attributes, training=True)
    arguments, oracle_options = oracle_arguments(arrays, cell_clip, **options)
    want = keras_lstm(arguments, oracle_options)
    shown = want._replace(outputs=want.outputs if sequences else want.outputs[:, -1:])
    assert_results(trained[:3], shown)
    inference = call("keras_lstm", **arrays, **attributes, training=False)
    for a, b in zip(inference[:3], trained[:3], strict=True):
        np.testing.assert_array_equal(a, b)

    rng = np.random.default_rng(0)
    upstream = Results(*(rng.normal(size=a.shape) for a in shown))
    got = call(
        "keras_lstm_grad",
        **arrays,
        output=trained[0],
        reserve=trained[3],
        output_grad=upstream.outputs,
        final_h_grad=upstream.h,
        final_c_grad=upstream.c,
        **attributes,
    )
    if not sequences:
        whole = np.zeros_like(want.outputs)
        whole[:, -1:] = upstream.outputs
        upstream = upstream._replace(outputs=whole)
    gradients = keras_lstm_backward(arguments, upstream, oracle_options)
    x, h0, c0, kernel, recurrent_kernel, bias, peephole = gradients
    if not arrays["bias"].size:
        bias = np.zeros(0)
    if not arrays["peephole"].size:
        peephole = np.zeros(0)
    assert_results(got, [x, h0, c0, kernel, recurrent_kernel, bias, peephole])


@pytest.mark.parametrize("return_sequences", [False, True])
def test_reserve_is_written(return_sequences):
    """Also what belongs to masked steps: no number in an output is what memory held before."""
    arrays = {name: np.ones([0], np.float64) for name in LAYER}
    sizes = {**extents(40, 3, 2, 5), "3": 3, "4": 4}
    for name in set(LAYER) - set(OPTIONAL):
        arrays[name] = np.full([sizes[d] for d in LAYER[name]], 0.5)
    arrays["mask"] = np.arange(40) % 3 == np.zeros((3, 1))
    options = {"go_backwards": False, "zero_output_for_mask": False, "cell_clip": 0.0}

    def reserve():
        return call(
            "keras_lstm", **arrays, **options, return_sequences=return_sequences, training=True
        )[3]

    shape = tuple(reserve().shape)
    for _ in range(5):
        leave_nan_in_memory([shape] * 5, tf.float64)
        assert np.isfinite(reserve()).all()


def spoil(draw: Any, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """None, one or two of the arrays with another shape."""
    wrong = dict(arrays)
    for name in draw(st.lists(st.sampled_from(sorted(arrays)), max_size=2)):
        shape = draw(wrong_shape(arrays[name].shape))
        wrong[name] = np.full(shape, 0.5).astype(arrays[name].dtype)
    return wrong


@settings(max_examples=1000)
@given(st.data())
def test_wrong_layers(data):
    """Inputs of any shape, and for the gradient a reserve of any size, made with another mask or
    without training."""
    draw = data.draw
    sizes = extents(*(draw(st.integers(0, 4)) for _ in range(4)))
    arrays = spoil(draw, draw_layer(draw, sizes))
    flags = ("go_backwards", "zero_output_for_mask", "return_sequences", "training")
    flags = {name: draw(st.booleans()) for name in flags}
    time = sizes["T"] if flags["return_sequences"] else 1
    rows = np.full((sizes["B"], time, sizes["H"]), 0.5)
    state = np.full((sizes["B"], sizes["H"]), 0.5)
    given = {"output": rows, "output_grad": rows, "final_h_grad": state, "final_c_grad": state}
    given = spoil(draw, given)
    reserve = draw(st.one_of(st.none(), st.integers(0, 500)))
    other_mask = draw(st.booleans())

    try:
        results = call("keras_lstm", **arrays, **flags, cell_clip=0.0)
    except tf.errors.InvalidArgumentError:
        return
    for k, a in enumerate(results):
        assert np.isfinite(a).all(), k
    given["reserve"] = results[3] if reserve is None else np.full(reserve, 0.5)
    if other_mask:
        arrays["mask"] = ~arrays["mask"]
    del flags["training"]
    try:
        gradients = call("keras_lstm_grad", **arrays, **given, **flags, cell_clip=0.0)
    except tf.errors.InvalidArgumentError:
        return
    differentiable = [name for name in LAYER if name != "mask" and "dropout" not in name]
    for name, a in zip(differentiable, gradients, strict=True):
        assert a.shape == arrays[name].shape and np.isfinite(a).all(), name
