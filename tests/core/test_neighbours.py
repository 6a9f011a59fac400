"""Calls that are not alone: from several threads, in several sessions, in a forked child, all at
sizes at which a team of threads works, of which a process has one. Each gives its own bits."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import _library

from .calls import CALLS, Call, Results, assert_same_bits, has_team

UNITS = 130
REPEATS = 5


@pytest.fixture(autouse=True)
def two_threads() -> None:
    if _library.cpu_info()["threads"] < 2:
        pytest.skip("needs two threads: set TF_NUM_INTRAOP_THREADS=2")


def test_python_threads(rng: np.random.Generator) -> None:
    """One call has the team, the others work alone meanwhile."""
    calls = [make(rng, UNITS) for make in CALLS.values()]
    wanted = [call.run() for call in calls]
    assert has_team(2)

    def check(pair: tuple[Call, Results]) -> None:
        call, want = pair
        assert_same_bits(call.run(), want)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, list(zip(calls, wanted, strict=True)) * REPEATS))


def test_sessions(rng: np.random.Generator) -> None:
    """Two sessions at once, each with ops that run side by side and threads of its own."""
    calls = [CALLS[name](rng, UNITS) for name in ("BlockLSTM", "CudnnRNNV3 gru", "MPSGraphLSTM")]
    wanted = [call.run() for call in calls]

    def run_session(threads: int) -> list[list[Results]]:
        config = tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=threads, inter_op_parallelism_threads=3
        )
        with tf.Graph().as_default():
            arguments = [{k: a.numpy() for k, a in call.arguments.items()} for call in calls]
            constants = [{k: tf.constant(a) for k, a in given.items()} for given in arguments]
            tensors = [
                call._replace(arguments=given).tensors()
                for call, given in zip(calls, constants, strict=True)
            ]
            with tf.compat.v1.Session(config=config) as session:
                return [session.run(tensors) for _ in range(REPEATS)]

    with ThreadPoolExecutor(2) as pool:
        for runs in pool.map(run_session, (2, 3)):
            for results in runs:
                for got, want in zip(results, wanted, strict=True):
                    assert_same_bits(got, want)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_fork(rng: np.random.Generator) -> None:
    """A child has none of its parent's threads, and makes a team of its own. It runs our op only:
    TensorFlow's own threads are gone in it, too."""
    call = CALLS["BlockLSTM"](rng, UNITS)

    def outputs() -> Results:
        return {str(k): a.numpy() for k, a in enumerate(call.function(**call.arguments))}

    want = outputs()
    assert has_team(2)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(120)  # ends a child that waits for threads it does not have
            assert_same_bits(outputs(), want)
            assert has_team(2)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert_same_bits(outputs(), want)
