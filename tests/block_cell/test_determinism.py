"""The same bits: from run to run, for any number of threads, alone or in a batch, and whatever
stood in the memory before."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from oracle.block_cell import Outputs
from processes import assert_bits_elsewhere, in_environments
from threads import OnThreads

from .bits import results
from .grid import DTYPES, OPS, SEQUENCES, Sizes, call, call_grad, random_inputs, tensors

SCRIPT = Path(__file__).with_name("bits.py")


@pytest.fixture(scope="module")
def bits():
    return results()  # compares repeated runs itself


def test_runs_repeat(bits):
    """`results` runs everything three times and compares; here: that it is not all zero."""
    assert len(bits) == 2 * 4 * (7 + 5 + 7 + 8 + 7 + 8)
    assert all(np.isfinite(a).all() for a in bits.values())
    assert sum(not a.any() for a in bits.values()) == 0


@in_environments
def test_bits_in_another_process(bits, tmp_path, environment):
    assert_bits_elsewhere(SCRIPT, environment, bits, tmp_path)


def rows(values, chosen, axis):
    """The chosen rows of the batch of named tensors that have a batch."""
    return type(values)(*(tf.gather(a, chosen, axis=axis) for a in values))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [Sizes(3, 7, 5, 9), Sizes(4, 33, 20, 64)], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_a_row_alone_has_the_bits_it_has_in_a_batch(rng, name, sizes, dtype):
    """Forward, and in the gradient ops whatever is not summed over the batch."""
    op = OPS[name]
    axis = 1 if op.is_sequence else 0
    inputs = tensors(random_inputs(rng, op, sizes, dtype), dtype)
    saved = call(op, inputs, use_peephole=True)
    gradients = call_grad(op, inputs, saved, saved.cs, saved.h, use_peephole=True)
    fields = {
        True: {"x_grad": 1, "cs_prev_grad": 0, "h_prev_grad": 0},
        False: {"cs_prev_grad": 0, "dicfo": 0},
    }[op.is_sequence]
    last = sizes.batch - 1
    for chosen in ([0], [last], [last // 2, 0], list(range(1, last)), list(range(last, -1, -1))):
        part = inputs._replace(
            x=tf.gather(inputs.x, chosen, axis=axis),
            cs_prev=tf.gather(inputs.cs_prev, chosen),
            h_prev=tf.gather(inputs.h_prev, chosen),
        )
        some = call(op, part, use_peephole=True)
        whole = rows(Outputs(*saved), chosen, axis)
        for field, a, b in zip(Outputs._fields, some, whole, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"{field} of rows {chosen}")
        back = call_grad(op, part, some, some.cs, some.h, use_peephole=True)
        for field, batch_axis in fields.items():
            want = tf.gather(getattr(gradients, field), chosen, axis=batch_axis)
            np.testing.assert_array_equal(
                getattr(back, field), want, err_msg=f"{field} of rows {chosen}"
            )


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_of_a_step_on_any_number_of_threads(rng, dtype):
    """Of a batch that is large enough for threads. 150 units are not a multiple of any vector."""
    op = OPS["LSTMBlockCell"]
    inputs = tensors(random_inputs(rng, op, Sizes(1, 130, 3, 150), dtype), dtype)
    saved = call(op, inputs, use_peephole=True)

    def gradients(**given):
        return call_grad(op, type(inputs)(**given), saved, saved.cs, saved.h, use_peephole=True)

    on_threads = OnThreads(gradients, inputs._asdict())
    found = [on_threads.run(threads) for threads in (1, 2, 3, 7)]
    for other in found[1:]:
        for field, a, b in zip(other._fields, found[0], other, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=field)


@pytest.mark.parametrize("name", SEQUENCES)
def test_steps_have_the_bits_of_the_sequence(rng, name):
    """A sequence cut in two, the second half starting from the states of the first."""
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, Sizes(6, 5, 7, 33), "float32"), "float32")
    whole = call(op, inputs)
    first = call(op, inputs._replace(x=inputs.x[:2]))
    second = call(op, inputs._replace(x=inputs.x[2:], cs_prev=first.cs[-1], h_prev=first.h[-1]))
    for a, b, c in zip(whole, first, second, strict=True):
        np.testing.assert_array_equal(a, tf.concat([b, c], axis=0))
