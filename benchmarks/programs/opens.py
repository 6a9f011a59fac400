"""Opens and runs files of TensorFlow Lite and SavedModels in a process without this package.

    python benchmarks/programs/opens.py FILE...

It fails if one does not open, or has an op that TensorFlow does not have.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    sys.modules["tf_lstm_ops"] = None  # type: ignore[assignment]  # its import fails
    import tensorflow as tf

    for file in map(Path, sys.argv[1:]):
        if file.is_dir():
            tf.saved_model.load(str(file))
        else:
            interpreter = tf.lite.Interpreter(str(file))
            interpreter.allocate_tensors()
            interpreter.invoke()


if __name__ == "__main__":
    main()
