"""Ops that no public function names, but that any graph or SavedModel may hold: the gradients of
all seven outputs. tests/fuzz compares them with the oracle, and calls them with wrong shapes.
"""

import numpy as np
import pytest
import tensorflow as tf

from fuzz.block_cell import FULL
from tf_lstm_ops import op_definitions

from .contract import extents


@pytest.mark.parametrize("order", ["", "I", "IIII", "icfo", "ICFOX", "OIFC", "\0\0\0\0"])
@pytest.mark.parametrize("name", FULL)
def test_gate_order(name, order):
    """A string of anything but the two orders."""
    sizes = extents(2, 2, 2, 2)
    zeros = {
        k: np.zeros([sizes[d] for d in dims], np.int64 if k == "seq_len_max" else np.float32)
        for k, dims in FULL[name].items()
    }
    with pytest.raises(tf.errors.InvalidArgumentError, match="gate_order"):
        op_definitions.function(name)(**zeros, use_peephole=False, gate_order=order)
