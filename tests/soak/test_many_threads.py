"""A number of threads that no machine has, in a process of its own, which starts 255 threads."""

import subprocess
import sys

import pytest

PROGRAM = """
import hashlib, os, resource, sys
import tensorflow as tf, tf_lstm_ops
x = tf.random.stateless_normal([96, 3, 256], [1, 2])
weights = [tf.random.stateless_normal([k, 128], [k, 3]) for k in (256, 32)]
os.environ["TF_NUM_INTRAOP_THREADS"] = sys.argv[1]  # after TensorFlow's start
limit = 24 << 30  # 65536 times the x of 96 rows after the dropout of each gate are 26 GB
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

layer = tf_lstm_ops.keras.LSTM(32, use_bias=False, dropout=0.5, implementation=1, seed=4)
layer.build(x.shape)
layer.set_weights(weights)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = layer(x, training=True)
for result in (layer(x), y, tape.gradient(y, x)):
    print(hashlib.sha256(result.numpy()).hexdigest())
print(tf_lstm_ops._library.cpu_info()["threads"])
"""


def run(threads: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, threads], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stdout + result.stderr[-2000:]
    return result.stdout.splitlines()


@pytest.mark.full
def test_more_threads_than_a_call_may_have() -> None:
    *many, most = run("65536")
    *one, least = run("1")
    assert many == one
    assert (most, least) == ("256", "1")
