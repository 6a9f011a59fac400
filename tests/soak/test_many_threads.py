"""A number of threads that no machine has, in a process of its own, which starts 255 threads."""

import subprocess
import sys

PROGRAM = """
import os, resource
import numpy as np, tensorflow as tf, tf_lstm_ops
x = tf.random.stateless_normal([96, 3, 256], [1, 2])
weights = [tf.random.stateless_normal([k, 128], [k, 3]) for k in (256, 32)]
os.environ["TF_NUM_INTRAOP_THREADS"] = "65536"  # after TensorFlow's start
limit = 24 << 30  # 65536 times the x of 96 rows after the dropout of each gate are 26 GB
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

def results():
    layer = tf_lstm_ops.keras.LSTM(32, use_bias=False, dropout=0.5, implementation=1, seed=4)
    layer.build(x.shape)
    layer.set_weights(weights)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=True)
    return layer(x), y, tape.gradient(y, x)

many = results()
os.environ["TF_NUM_INTRAOP_THREADS"] = "1"
for a, b in zip(many, results(), strict=True):
    np.testing.assert_array_equal(a, b)
print("done")
"""


def test_more_threads_than_a_call_may_have() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300
    )
    assert result.stdout == "done\n", result.stdout + result.stderr[-2000:]
