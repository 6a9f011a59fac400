"""The reserve of an empty problem is checked on the CPU, which reads its header."""

from dataclasses import replace

import pytest
import tensorflow as tf

from empties import SIZES

from .cases import Case, arguments, call, outputs_of


def test_reserve_of_other_sizes_is_refused():
    """A reserve of no rows and one of no steps have the same size."""
    no_rows, no_steps = (replace(Case(layers=2, directions=2), **sizes) for sizes in SIZES[:2])
    values = arguments("CudnnRNNBackpropV2", no_steps)
    reserve = outputs_of("CudnnRNNV2", no_rows, "float32")["reserve_space"]
    assert reserve.shape == values["reserve_space"].shape
    with pytest.raises(tf.errors.InvalidArgumentError, match="other shapes, attributes or lengths"):
        call("CudnnRNNBackpropV2", no_steps, {**values, "reserve_space": reserve})
