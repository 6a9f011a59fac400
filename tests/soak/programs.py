"""Programs that processes of their own run: python programs.py NAME [ARGUMENT …].

Each prints "done" at its end.
"""

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf

from tf_lstm_ops import _library, raw_ops

GIB = 1 << 30


def arguments(time_: int, batch: int, units: int) -> dict[str, Any]:
    """Of BlockLSTM, large enough for a team of threads where the sizes are."""
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> tf.Tensor:
        return tf.constant(rng.uniform(-0.1, 0.1, size=shape), tf.float32)

    found = {"x": draw(time_, batch, units), "w": draw(2 * units, 4 * units)}
    found |= {name: draw(batch, units) for name in ("cs_prev", "h_prev")}
    found |= {name: draw(units) for name in ("wci", "wcf", "wco")}
    return {**found, "b": draw(4 * units), "seq_len_max": tf.constant(time_, tf.int64)}


def call(given: dict[str, Any]) -> bytes:
    return raw_ops.BlockLSTM(**given).h.numpy().tobytes()


def workers() -> int:
    """Threads of the engine's team."""
    found = 0
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/comm") as file:
            found += file.read().strip() == "tf_lstm_ops"
    return found


def no_threads() -> None:
    """The system creates no more threads: the op works on those that there are."""
    tf.config.threading.set_intra_op_parallelism_threads(3)
    given = arguments(20, 16, 128)
    tf.linalg.matmul(given["w"], given["w"], transpose_a=True)  # TensorFlow has its threads
    call(arguments(1, 1, 4))
    assert workers() == 0
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    os.setuid(65534)  # the limit does not hold for root
    failed = []
    try:
        threading.Thread(target=lambda: None).start()
    except RuntimeError:
        failed.append(True)
    assert failed, "the limit has no effect"
    found = {call(given) for _ in range(3)}
    assert workers() == 0
    print(len(found), "result")


def no_memory() -> None:
    """An output that does not fit: an error, after which the process goes on."""
    given = arguments(20, 16, 128)
    before = call(given)
    # What the seven outputs of this call need is more than there will be.
    large = {**given, "seq_len_max": tf.constant(200_000, tf.int64)}
    large["x"] = tf.zeros([200_000, 16, 128])
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + GIB, resource.RLIM_INFINITY))
    try:
        raw_ops.BlockLSTM(**large)  # TensorFlow waits ten seconds before it gives up
    except tf.errors.ResourceExhaustedError as error:
        print("refused", "OOM" in str(error))
    assert call(given) == before


def fork_during_call() -> None:
    """Children that are forked while the team works can use the library."""
    tf.config.threading.set_intra_op_parallelism_threads(2)
    given = arguments(40, 32, 256)
    # Not through TensorFlow, whose own threads are not in a child.
    native = _library._native()
    before, over = call(given), threading.Event()

    def work() -> None:
        while not over.is_set():
            assert call(given) == before

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(10):
            time.sleep(0.01)
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                os._exit(0 if native.tf_lstm_ops_measured_rate(0) > 0 else 3)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        over.set()
        thread.join()
    assert call(given) == before


def interrupt() -> None:
    """SIGINT in calls: KeyboardInterrupt as soon as a call ends, and a process that goes on."""
    given = arguments(400, 32, 256)
    before = call(given)
    begin = time.monotonic()
    call(given)
    one = time.monotonic() - begin
    main = threading.main_thread().ident
    assert main
    # A shell's background job starts with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    caught = 0
    for share in (0.1, 0.5, 0.9):
        timer = threading.Timer(share * one, signal.pthread_kill, (main, signal.SIGINT))
        timer.start()
        try:
            for _ in range(1000):
                call(given)
        except KeyboardInterrupt:
            caught += 1
        timer.join()
    assert caught == 3
    assert call(given) == before


PROGRAMS: dict[str, Callable[[], None]] = {
    f.__name__: f for f in (no_threads, no_memory, fork_during_call, interrupt)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
    print("done")
