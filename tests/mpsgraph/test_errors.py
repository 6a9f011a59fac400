"""Both ops × every argument × every kind of error: the error names the argument, what was
expected and what came.

Eager, and traced with no shape known: the kernel refuses. A wrong rank that does not depend on
`bidirectional` is found while a function is traced.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from block_cell.contract import wrong_shapes
from tf_lstm_ops import raw_ops

from .cases import GATE_ACTIVATIONS, Case

Shape = tuple[int, ...]
Shapes = dict[str, Shape]

OPS = ["MPSGraphLSTM", "MPSGraphLSTMGradients"]
FINAL = ("state_gradient", "cell_gradient")
REQUIRED = ("source", "recurrent_weight", "source_gradient", "z_state", "cell_output_fwd")
BASES = [Case("bidirectional"), Case(input_weight=False, mask="vector")]
MODES = ["eager", "kernel"]
# Their ranks are the same with one direction and two.
INFERRED = ("source", "input_weight", "bias", "init_state", "init_cell", *REQUIRED[2:])


def right_shapes(op: str, case: Case) -> Shapes:
    """Of the arguments that are there."""
    found = {**case.shapes._asdict(), "mask": case.mask_shape}
    if op == "MPSGraphLSTMGradients":
        steps, width = (case.time, case.batch), case.directions * case.units
        found |= dict.fromkeys(("source_gradient", "cell_output_fwd"), (*steps, width))
        found |= {"z_state": (*steps, 4 * width)}
        found |= dict.fromkeys(FINAL, (case.batch, width))
    return {name: shape for name, shape in found.items() if shape is not None}


def broken_rules(op: str, case: Case, shapes: Shapes) -> list[str]:
    """Patterns of the texts about all that is wrong; an error tells one of them.

    T, N and I are those of source, H that of recurrent_weight.
    """
    right = right_shapes(op, case)
    ranks = {name: len(shape) for name, shape in right.items() if name != "mask"}
    for name in FINAL:
        if len(shapes.get(name, ())) == 3:
            ranks[name] = 3
    wrong = [
        f"{name} must be rank {rank} but is rank {len(shapes[name])}"
        for name, rank in ranks.items()
        if len(shapes[name]) != rank
    ]
    if wrong:
        return wrong
    if shapes["recurrent_weight"][-1] == 0:
        return ["recurrent_weight is empty"]
    time, batch, inputs = shapes["source"]
    units = shapes["recurrent_weight"][-1]
    sizes = {"time": time, "batch": batch, "units": units}
    if case.input_weight:
        sizes["inputs"] = inputs
    want = right_shapes(op, replace(case, **sizes))
    for name in FINAL:
        if ranks.get(name) == 3:
            want[name] = (1, *want[name])
    mask, full = shapes["mask"], (batch, case.directions * units)
    if len(mask) > 2 or any(m not in (1, f) for m, f in zip(mask[::-1], full[::-1], strict=False)):
        shown = re.escape(f"[{','.join(map(str, mask))}]")
        wrong = [rf"mask must broadcast to \[{full[0]},{full[1]}\] but has shape {shown}"]
    return wrong + [
        rf"{name}\.dim_size\({k}\) != [\w *]+: {got} vs. {size}"
        for name, shape in want.items()
        if name != "mask"
        for k, (got, size) in enumerate(zip(shapes[name], shape, strict=True))
        if got != size
    ]


class Fault(NamedTuple):
    op: str
    case: Case
    argument: str
    shape: Shape

    def __str__(self) -> str:
        return f"{self.op}-D{self.case.directions}-{self.argument}{list(self.shape)}"

    @property
    def shapes(self) -> Shapes:
        return {**right_shapes(self.op, self.case), self.argument: self.shape}

    @property
    def rules(self) -> list[str]:
        return broken_rules(self.op, self.case, self.shapes)


def faults() -> Iterator[Fault]:
    """One wrong shape at a time, where it breaks a rule: a longer source is just longer, and an
    optional argument of shape [0] is absent."""
    for op in OPS:
        for case in BASES:
            for argument, right in right_shapes(op, case).items():
                for shape in dict.fromkeys(wrong_shapes(right)):
                    fault = Fault(op, case, argument, shape)
                    is_absent = argument not in REQUIRED and shape == (0,)
                    if not is_absent and fault.rules:
                        yield fault


FAULTS = list(faults())


def values_of(shapes: Shapes, dtype: str = "float32") -> dict[str, tf.Tensor]:
    rng = np.random.default_rng(0)
    return {
        name: tf.constant(rng.uniform(-0.5, 0.5, size=shape), tf.as_dtype(dtype))
        for name, shape in shapes.items()
    }


def call(op: str, case: Case, values: dict[str, Any], **options: Any) -> Any:
    return getattr(raw_ops, op)(**values, **{**case.attributes, **options})


def trace(op: str, case: Case, specs: dict[str, tf.TensorSpec]) -> Any:
    """A traced function of all tensors, in their order: shape inference runs here."""
    names = list(specs)

    def function(*values: tf.Tensor) -> Any:
        found = call(op, case, dict(zip(names, values, strict=True)))
        return [a for a in found if a is not None]

    return tf.function(function).get_concrete_function(*specs.values())


@cache
def traced_without_shapes(op: str, case: Case) -> Any:
    names = right_shapes(op, case)
    return trace(op, case, dict.fromkeys(names, tf.TensorSpec(None, tf.float32)))


def run(op: str, case: Case, values: dict[str, Any], mode: str) -> Any:
    if mode == "eager":
        return call(op, case, values)
    return traced_without_shapes(op, case)(*values.values())


# --- shapes ----------------------------------------------------------------------------------


def assert_tells(error: Exception, fault: Fault) -> None:
    assert any(re.search(rule, str(error)) for rule in fault.rules), (str(error), fault.rules)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_shape(fault):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run(fault.op, fault.case, values_of(fault.shapes), "eager")
    assert_tells(caught.value, fault)


@pytest.mark.parametrize("fault", FAULTS[::5], ids=str)
def test_shape_traced(fault):
    """The same kernel."""
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run(fault.op, fault.case, values_of(fault.shapes), "kernel")
    assert_tells(caught.value, fault)


def is_seen_while_tracing(fault: Fault) -> bool:
    right = right_shapes(fault.op, fault.case)[fault.argument]
    return fault.argument in INFERRED and len(fault.shape) != len(right)


@pytest.mark.parametrize("fault", filter(is_seen_while_tracing, FAULTS), ids=str)
def test_rank_while_tracing(fault):
    specs = {k: tf.TensorSpec(shape, tf.float32) for k, shape in fault.shapes.items()}
    with pytest.raises(ValueError) as caught:
        trace(fault.op, fault.case, specs)
    assert_tells(caught.value, fault)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", BASES, ids=str)
@pytest.mark.parametrize("op", OPS)
def test_right_shapes_are_accepted(op, case, mode):
    """The table proves something only if its starting point is right."""
    assert len(FAULTS) > 300
    shapes = right_shapes(op, case)
    assert not broken_rules(op, case, shapes)
    assert {f.argument for f in FAULTS if (f.op, f.case) == (op, case)} == set(shapes)
    found = run(op, case, values_of(shapes), mode)
    assert all(np.isfinite(a).all() for a in found if a is not None)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(2**62, 0, 20), (0, 2**62, 20), (2**40, 0, 2**40)], ids=str)
@pytest.mark.parametrize("op", OPS)
def test_huge_dimensions(op, shape, mode):
    """A tensor without elements may have sides whose products are beyond int64."""
    case = Case(input_weight=False, init_state=False, init_cell=False, mask="vector")
    values = {**values_of(right_shapes(op, case)), "source": tf.zeros(shape)}
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"source|cell_output|z_state|_grad"):
        run(op, case, values, mode)


# --- types and attributes --------------------------------------------------------------------


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("dtype", ["half", "float64", "int64"])
@pytest.mark.parametrize(
    "op, argument", [(op, name) for op in OPS for name in right_shapes(op, BASES[0])]
)
def test_type(op, argument, dtype, traced):
    """All but one argument have the right type. source decides; if it is the odd one, another is
    named."""
    values = values_of(right_shapes(op, BASES[0]))
    values[argument] = tf.cast(values[argument], dtype)
    specs = {k: tf.TensorSpec(v.shape, v.dtype) for k, v in values.items()}
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        if traced:
            trace(op, BASES[0], specs)
        else:
            call(op, BASES[0], values)
    dtype = values[argument].dtype.name
    if argument == "source":
        assert re.search(rf"\w+ must be {dtype} but is float32", str(caught.value))
    else:
        assert f"{argument} must be float32 but is {dtype}" in str(caught.value)


@pytest.mark.parametrize("dtype", ["int32", "complex64", "bool"])
@pytest.mark.parametrize("op", OPS)
def test_type_that_no_kernel_has(op, dtype):
    one = tf.cast(1, dtype)
    values = {name: tf.fill(shape, one) for name, shape in right_shapes(op, BASES[0]).items()}
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError), match=f"{dtype}|T"):
        call(op, BASES[0], values)


@pytest.mark.parametrize("value", ["", "Tanh", "linear", "\0"])
@pytest.mark.parametrize("attribute", [*GATE_ACTIVATIONS, "activation"])
@pytest.mark.parametrize("op", OPS)
def test_activation(op, attribute, value):
    """TensorFlow's own error: the op's definition lists what is allowed."""
    values = values_of(right_shapes(op, BASES[0]))
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=attribute):
        call(op, BASES[0], values, **{attribute: value})


@pytest.mark.parametrize("dtype", ["half", "bfloat16", "float64"])
@pytest.mark.parametrize("op", OPS)
def test_one_type_is_checked_as_any_other(op, dtype):
    values = values_of(right_shapes(op, BASES[0]), dtype)
    values["bias"] = values["bias"][:-1]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"bias\.dim_size"):
        call(op, BASES[0], values)


def test_size_beyond_int64_in_a_function():
    """The width of the result, which the function would set, is not a size."""
    units = 2**61

    @tf.function
    def function(recurrent_weight):
        return raw_ops.MPSGraphLSTM(
            source=tf.zeros([4, 1, 2]),
            recurrent_weight=recurrent_weight,
            input_weight=tf.zeros([12, 2]),
            training=True,
        )

    with pytest.raises(tf.errors.InvalidArgumentError, match="recurrent_weight"):
        function(tf.zeros([0, units]))
