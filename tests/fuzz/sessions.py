"""Fuzzes sessions of ONNX models, `tf_lstm_ops.inference.Session.from_onnx`.

    python -m tests.fuzz.sessions --calls 10000 --seed 0

A call depends on the seed and its number only. `--first` continues a run at a call's number.
"""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main("tests.fuzz.sessions", "fuzz.onnx_sessions", __doc__))
