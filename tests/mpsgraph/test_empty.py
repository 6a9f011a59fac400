"""A batch of no rows, and sequences without steps: in each kind of function, and derivatives.

test_forward.py and test_gradients.py compare such calls with the oracle.
"""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from empties import SIZES, assert_zero, derivatives
from tf_lstm_ops import raw_ops

from .cases import Case, random_arguments

CASES = {
    "both ways": Case("bidirectional"),
    "row": Case("reverse", mask="row", input_weight=False),
}


@pytest.mark.sampled
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_results_and_derivatives(rng, name, sizes, training):
    check(rng, name, sizes, training, "eager")


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "sizes", "training", "mode"),
    [
        ("row", {"batch": 0}, True, "unknown sizes"),
        pytest.param("row", {"time": 0}, False, "unknown sizes", marks=pytest.mark.full),
        pytest.param("both ways", {"batch": 0}, True, "known sizes", marks=pytest.mark.slow),
        pytest.param("row", {"batch": 0, "time": 0}, False, "known sizes", marks=pytest.mark.slow),
        pytest.param("both ways", {"time": 0}, True, "known sizes", marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_in_a_function(rng, name, sizes, training, mode):
    check(rng, name, sizes, training, mode)


def check(rng, name, sizes, training, mode):
    """No output depends on an input, so all derivatives are zeros."""
    case = replace(CASES[name], **sizes)
    arguments, mask = random_arguments(rng, case, "float32")
    present = {k: v for k, v in arguments._asdict().items() if v is not None}
    mask = None if mask is None else tf.constant(mask, tf.float32)
    inputs = [tf.constant(v, tf.float32) for v in present.values()]

    def function(*values):
        named = dict(zip(present, values, strict=True))
        outputs = raw_ops.MPSGraphLSTM(**named, mask=mask, training=training, **case.attributes)
        return outputs if training else outputs[:1]

    found = derivatives(function, inputs, mode)
    width = case.directions * case.units
    for result, gates in zip(found.results, (1, 1, 4), strict=False):
        assert_zero(result, (case.time, case.batch, gates * width))
    for gradients in (found.first, found.second):
        for got, like in zip(gradients, inputs, strict=True):
            assert_zero(got, like.shape)


def test_rows_without_steps_take_no_memory():
    """More rows than fit into memory, in both ops, where no tensor has an element for each row."""
    units, rows = 2, 2**40
    weights = {"recurrent_weight": [4 * units, units], "input_weight": [4 * units, 3]}
    inputs = {name: tf.zeros(shape) for name, shape in weights.items()}
    inputs["source"] = tf.zeros([0, rows, 3])
    outputs = raw_ops.MPSGraphLSTM(**inputs, training=True)
    assert [tuple(a.shape) for a in outputs] == [(0, rows, n) for n in (2, 2, 8)]
    gradients = raw_ops.MPSGraphLSTMGradients(
        **inputs,
        z_state=outputs.z_state,
        cell_output_fwd=outputs.cell,
        source_gradient=tf.zeros([0, rows, units]),
    )
    assert tuple(gradients.source.shape) == (0, rows, 3)
    for name, shape in weights.items():
        assert_zero(np.array(getattr(gradients, name)), shape)
