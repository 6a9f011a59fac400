"""Adds the emulated device to every Python process that has this folder in PYTHONPATH.

On a Mac `import tensorflow` does the same. `tf-lstm-ops selftest` and its child processes thus run
as a user's do.
"""

import os

from tensorflow.python.framework import load_library

load_library.load_pluggable_device_library(os.environ["TF_LSTM_OPS_TEST_PLUGIN"])
