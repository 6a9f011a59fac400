"""`tf-lstm-ops selftest` with a fake plugin. Not a test itself.

`python selftest_program.py PLUGIN` with TF_LSTM_OPS_METAL_LIBRARY.
"""

import sys

from tensorflow.python.framework import load_library

if __name__ == "__main__":
    load_library.load_pluggable_device_library(sys.argv[1])
    from tf_lstm_ops.__main__ import main

    sys.exit(main(["selftest", "--device", "GPU"]))
