"""Adds the emulated device to every Python process that has this folder in PYTHONPATH.

On a Mac `import tensorflow` does the same. `tf-lstm-ops selftest` and its child processes thus run
as a user's do.
"""

import os

from tensorflow.python.framework import load_library

load_library.load_pluggable_device_library(os.environ["TF_LSTM_OPS_TEST_PLUGIN"])

if "TF_LSTM_OPS_TEST_SMALL" in os.environ:  # sizes of the self-test, for an emulation
    import tf_lstm_ops
    from tf_lstm_ops._program import IS_PROGRAM

    if IS_PROGRAM:  # it loads the package later
        tf_lstm_ops._start.load()

    from tf_lstm_ops.selftest import large

    large.SIZES = [large.Size(3, 20, 9, op) for op in ("KerasLSTM", "CudnnRNNV3")]
    large.TIMED = [large.Size(batch, 8, 4) for batch in (1, 2)]
    large.REPEATS = 1
