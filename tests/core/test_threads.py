"""The engine's threads: as many as TensorFlow is told to use, and none before they are needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="threads are counted in Linux's /proc"
)

PROGRAM = """
import glob, sys
import tensorflow as tf
import tf_lstm_ops

def workers():
    names = [open(path).read().strip() for path in glob.glob("/proc/self/task/*/comm")]
    return names.count("tf_lstm_ops")

configured = int(sys.argv[1])
if configured:
    tf.config.threading.set_intra_op_parallelism_threads(configured)
print(workers())
T, B, H = 20, 16, 128  # large enough for a team
tf_lstm_ops.raw_ops.BlockLSTM(
    seq_len_max=tf.constant(T, tf.int64), x=tf.ones([T, B, H]), cs_prev=tf.ones([B, H]),
    h_prev=tf.ones([B, H]), w=tf.ones([2 * H, 4 * H]), wci=tf.ones([H]), wcf=tf.ones([H]),
    wco=tf.ones([H]), b=tf.ones([4 * H]),
)
print(workers(), tf_lstm_ops._library.cpu_info()["threads"])
"""


# Each starts TensorFlow anew.
MORE = [(0, "4", 4)]
ALL = [(1, None, 1), (3, None, 3), (0, "1", 1)]


@pytest.mark.full
@pytest.mark.parametrize(
    ("configured", "variable", "threads"),
    [
        (2, "5", 2),
        *(pytest.param(*case, marks=pytest.mark.full) for case in MORE),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ALL),
    ],
)
def test_threads_follow_configuration(configured: int, variable: str | None, threads: int) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TF_NUM_INTRAOP_THREADS"}
    if variable:
        environment["TF_NUM_INTRAOP_THREADS"] = variable
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(configured)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    at_import, after, told = map(int, result.stdout.split())
    assert at_import == 0
    assert (after, told) == (threads - 1, threads)
