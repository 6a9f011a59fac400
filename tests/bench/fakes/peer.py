"""A peer that computes nothing and behaves as its test wants."""

import os
import sys
import time

from peers.cases import Problem, Row
from peers.frameworks import Prepared


def build(row: Row, problem: Problem, threads: int, *, behaviour: str = "right") -> Prepared:
    assert "tensorflow" not in sys.modules
    print("what a library prints must not reach the parent as an answer")
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        time.sleep(0.001)
        if behaviour == "crashes when timed" and calls > 1:
            sys.stderr.write("its last words\n")
            sys.stderr.flush()
            os._exit(7)
        if behaviour == "holds memory" or (behaviour == "holds memory once" and calls == 1):
            bytearray(os.urandom(1)) * 2**26

    def results(_: None) -> dict:
        return {
            "output": problem.x + {"wrong": 0.01}.get(behaviour, 0),
            "threads": problem.x[0, 0] * threads,
        }

    if behaviour == "raises":
        raise ValueError("no such shape\nand more")
    if behaviour == "crashes when built" and row.units == 8:
        os._exit(3)
    return Prepared(call, results)
