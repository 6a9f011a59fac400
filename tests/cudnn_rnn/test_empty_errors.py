"""Empty problems on the CPU: their reserve, whose header is read, and sizes that are none."""

from dataclasses import replace

import pytest
import tensorflow as tf

from empties import SIZES
from tf_lstm_ops import raw_ops

from .cases import Case, arguments, call, outputs_of


def test_reserve_of_other_sizes_is_refused():
    """A reserve of no rows and one of no steps have the same size."""
    no_rows, no_steps = (replace(Case(layers=2, directions=2), **sizes) for sizes in SIZES[:2])
    values = arguments("CudnnRNNBackpropV2", no_steps)
    reserve = outputs_of("CudnnRNNV2", no_rows, "float32")["reserve_space"]
    assert reserve.shape == values["reserve_space"].shape
    with pytest.raises(tf.errors.InvalidArgumentError, match="other shapes, attributes or lengths"):
        call("CudnnRNNBackpropV2", no_steps, {**values, "reserve_space": reserve})


def test_size_beyond_int64_in_a_function():
    """The width of the output, which the function would set, is not a size."""

    @tf.function
    def function(input_h):
        return raw_ops.CudnnRNN(
            input=tf.zeros([4, 0, 2]),
            input_h=input_h,
            input_c=input_h,
            params=tf.zeros([3]),
            direction="bidirectional",
        )

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"input_h|overflow"):
        function(tf.zeros([2, 0, 2**62]))
