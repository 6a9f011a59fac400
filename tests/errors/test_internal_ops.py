"""Ops that no public function names, but that any graph or SavedModel may hold: the gradients of
all seven outputs, and what stands behind the Keras layers.

Random inputs, as in test_fuzz: right ones give what the oracle says, wrong ones an error.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import block_cell, keras_gru, keras_lstm
from oracle.block_cell import Inputs, Outputs
from oracle.keras_lstm import Options
from tf_lstm_ops import _library

from .contract import SEQUENCE, STEP, Shape, extents
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


@settings(max_examples=100)
@given(st.data())
def test_full_gradients(data):
    check_full_gradients(data)


@pytest.mark.full
@settings(max_examples=250)
@given(st.data())
def test_more_full_gradients(data):
    check_full_gradients(data)


def check_full_gradients(data):
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


# --- the layers ------------------------------------------------------------------------------


class Layer(NamedTuple):
    """The op behind a layer, and its oracle, whose arguments are the differentiable inputs."""

    inputs: dict[str, tuple[str, ...]]
    states: tuple[str, ...]
    attributes: dict[str, st.SearchStrategy]
    arguments: type
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    absent: tuple[str, ...] = ()  # further inputs, always absent

    @property
    def differentiable(self) -> list[str]:
        return [name for name in self.inputs if name not in MASKS]


FLAGS = {"go_backwards": st.booleans(), "zero_output_for_mask": st.booleans()}
MASKS = ["mask", "input_dropout", "recurrent_dropout"]
OPTIONAL = ["bias", "peephole", *MASKS]  # absent: [0]
LAYERS = {
    "keras_lstm": Layer(
        inputs={
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
        },
        states=("h", "c"),
        attributes={**FLAGS, "cell_clip": st.sampled_from([0.0, 0.25])},
        arguments=keras_lstm.Arguments,
        forward=keras_lstm.keras_lstm,
        backward=keras_lstm.keras_lstm_backward,
        absent=("projection",),
    ),
    "keras_gru": Layer(
        inputs={
            "x": ("B", "T", "I"),
            "mask": ("B", "T"),
            "initial_h": ("B", "H"),
            "kernel": ("I", "3H"),
            "recurrent_kernel": ("H", "3H"),
            "bias": ("2", "3H"),
            "input_dropout": ("3", "B", "I"),
            "recurrent_dropout": ("3", "B", "H"),
        },
        states=("h",),
        attributes=FLAGS,
        arguments=keras_gru.Arguments,
        forward=keras_gru.keras_gru,
        backward=keras_gru.keras_gru_backward,
    ),
}


def call_layer(name: str, **arguments: Any) -> Any:
    absent = dict.fromkeys(LAYERS[name.removesuffix("_grad")].absent, np.zeros(0))
    return call(name, **arguments, **absent)


def right_inputs(op: str, *sizes: int) -> dict[str, Shape]:
    """Their shapes for T, B, I and H."""
    extent = extents(*sizes)
    extent |= {"3H": 3 * extent["H"], "2": 2, "3": 3, "4": 4}
    return {k: tuple(extent[d] for d in dims) for k, dims in LAYERS[op].inputs.items()}


def is_absent(name: str, array: np.ndarray) -> bool:
    return name in OPTIONAL and array.shape == (0,)


def are_right(op: str, arrays: dict[str, np.ndarray]) -> bool:
    """Whether the shapes fit together: x and the state, which has units, fix all others."""
    x, state = arrays["x"].shape, arrays["initial_h"].shape
    if len(x) != 3 or len(state) != 2 or state[1] == 0:
        return False
    right = right_inputs(op, x[1], x[0], x[2], state[1])
    return all(is_absent(k, a) or a.shape == right[k] for k, a in arrays.items())


def draw_inputs(draw: Any, op: str, *sizes: int) -> dict[str, np.ndarray]:
    """Right inputs of the op, some of the optional ones absent."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    shapes = right_inputs(op, *sizes)
    arrays = {k: rng.uniform(-0.9, 0.9, size=shape) for k, shape in shapes.items()}
    arrays["mask"] = rng.uniform(size=arrays["mask"].shape) < draw(st.sampled_from([0, 0.5, 0.9]))
    for absent in draw(st.sets(st.sampled_from([k for k in OPTIONAL if k in arrays]))):
        arrays[absent] = np.zeros(0, arrays[absent].dtype)
    return arrays


def oracle_arguments(op: str, shapes: dict[str, Shape], arrays: dict[str, np.ndarray]) -> Any:
    """The arguments, zero where absent, and the masks of Options."""
    present = {k: a for k, a in arrays.items() if not is_absent(k, a)}
    layer = LAYERS[op]
    arguments = (present.get(k, np.zeros(shapes[k])) for k in layer.differentiable)
    return layer.arguments(*arguments), {k: present[k] for k in MASKS if k in present}


@pytest.mark.parametrize("op", LAYERS)
@settings(max_examples=60)
@given(st.data())
def test_layer(op, data):
    check_layer(op, data)


@pytest.mark.full
@pytest.mark.parametrize("op", LAYERS)
@settings(max_examples=120)
@given(st.data())
def test_layer_with_more_inputs(op, data):
    check_layer(op, data)


def check_layer(op, data):
    """Forward and backward against the oracle, with any mask, dropout masks and absent inputs."""
    draw, layer = data.draw, LAYERS[op]
    sizes = [draw(st.integers(low, 5)) for low in (1, 1, 0, 1)]
    arrays = draw_inputs(draw, op, *sizes)
    options = draw(st.fixed_dictionaries(layer.attributes))
    sequences = draw(st.booleans())
    attributes = {**options, "return_sequences": sequences}
    *results, reserve = call_layer(op, **arrays, **attributes, training=True)
    arguments, masks = oracle_arguments(op, right_inputs(op, *sizes), arrays)
    options = Options(**masks, **options)
    want = layer.forward(arguments, options)
    shown = slice(None if sequences else -1, None)  # the steps in the output
    assert_results(results, want._replace(outputs=want.outputs[:, shown]))
    *inference, _ = call_layer(op, **arrays, **attributes, training=False)
    for a, b in zip(inference, results, strict=True):
        np.testing.assert_array_equal(a, b)

    rng = np.random.default_rng(0)
    upstream = want._make(rng.normal(size=a.shape) for a in want)
    got = call_layer(
        f"{op}_grad",
        **arrays,
        output=results[0],
        reserve=reserve,
        output_grad=upstream.outputs[:, shown],
        **{f"final_{state}_grad": getattr(upstream, state) for state in layer.states},
        **attributes,
    )
    if not sequences:
        upstream.outputs[:, :-1] = 0
    gradients = layer.backward(arguments, upstream, options)
    want_grads = [
        np.zeros(0) if is_absent(k, arrays[k]) else gradient
        for k, gradient in zip(layer.differentiable, gradients, strict=True)
    ]
    assert_results(got, [*want_grads, *(np.zeros(0) for _ in layer.absent)])


@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("op", LAYERS)
def test_reserve_is_written(op, return_sequences):
    """Also what belongs to masked steps: no number in an output is what memory held before."""
    arrays = {
        name: np.zeros(0) if name in OPTIONAL else np.full(shape, 0.5)
        for name, shape in right_inputs(op, 40, 3, 2, 5).items()
    }
    arrays["mask"] = np.arange(40) % 3 == np.zeros((3, 1))

    def reserve():
        return call_layer(op, **arrays, return_sequences=return_sequences, training=True)[-1]

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


SHAPE_ERROR = r"\w( must be rank \d but is rank \d| is empty, has shape|\.dim_size\(\d\) != \w)"


def attempt(is_right: bool, op: str, **arguments: Any) -> Any:
    """The finite results of right arguments; None of wrong ones, which are refused."""
    if not is_right:
        with pytest.raises(tf.errors.InvalidArgumentError, match=SHAPE_ERROR):
            call_layer(op, **arguments)
        return None
    results = call_layer(op, **arguments)
    for k, a in enumerate(results):
        assert np.isfinite(a).all(), k
    return results


@pytest.mark.parametrize("op", LAYERS)
@settings(max_examples=60)
@given(st.data())
def test_wrong_layers(op, data):
    check_wrong_layers(op, data)


@pytest.mark.full
@pytest.mark.parametrize("op", LAYERS)
@settings(max_examples=120)
@given(st.data())
def test_more_wrong_layers(op, data):
    check_wrong_layers(op, data)


def check_wrong_layers(op, data):
    """Inputs of any shape, and for the gradient a reserve of any size, made with another mask or
    without training."""
    draw, layer = data.draw, LAYERS[op]
    sizes = time, batch, _, units = [draw(st.integers(0, 4) | st.integers(1, 4)) for _ in range(4)]
    arrays = spoil(draw, draw_inputs(draw, op, *sizes))
    options = draw(st.fixed_dictionaries({**layer.attributes, "return_sequences": st.booleans()}))
    rows = np.full((batch, time if options["return_sequences"] else 1, units), 0.5)
    upstream = {f"final_{state}_grad": np.full((batch, units), 0.5) for state in layer.states}
    given = spoil(draw, {"output": rows, "output_grad": rows, **upstream})
    origin = draw(st.sampled_from(["the same call", "another mask", "inference", "nowhere"]))
    any_size = draw(st.integers(0, 500))

    training = origin != "inference"
    results = attempt(are_right(op, arrays), op, **arrays, **options, training=training)
    if results is None:
        return
    given["reserve"] = np.full(any_size, 0.5) if origin == "nowhere" else results[-1]
    if origin == "another mask":
        arrays["mask"] = ~arrays["mask"]
    output, final, *_, own_reserve = call_layer(op, **arrays, **options, training=True)
    right = dict.fromkeys(upstream, final.shape)
    right |= {"output": output.shape, "output_grad": output.shape, "reserve": own_reserve.shape}
    is_right = all(a.shape == right[k] for k, a in given.items())
    gradients = attempt(is_right, f"{op}_grad", **arrays, **given, **options)
    if gradients is None:
        return
    of_inputs = gradients[: len(layer.differentiable)]
    for name, a in zip(layer.differentiable, of_inputs, strict=True):
        assert a.shape == arrays[name].shape, name
