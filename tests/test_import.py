"""`import tf_lstm_ops` loads the package's own modules only, and makes no op function yet."""

import subprocess
import sys

PROGRAM = """
import sys
import keras
import tensorflow as tf

tf.keras.layers  # loaded at its first use
before = set(sys.modules)
import tf_lstm_ops

print(*sorted(set(sys.modules) - before))
print(tf_lstm_ops._library.load.cache_info().currsize)
"""
# What only a command or a benchmark needs: matplotlib, data files, other frameworks.
LATER = ("tf_lstm_ops.bench", "tf_lstm_ops.selftest", "tf_lstm_ops.cli.")


def test_modules_and_op_functions() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    modules, op_functions = run.stdout.splitlines()
    loaded = set(modules.split())
    assert "tf_lstm_ops.raw_ops" in loaded
    # Also none of TensorFlow's generated modules, whose names are digests.
    assert {module.partition(".")[0] for module in loaded} == {"tf_lstm_ops"}
    assert {m for m in loaded if m.startswith(LATER)} == {"tf_lstm_ops.cli.startup"}
    assert op_functions == "0"
