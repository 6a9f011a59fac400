"""Known vulnerabilities of the stock ops, and what still ends TensorFlow 2.21, as regressions.

They run in a process of their own, so that a crash is the failure of one test.
"""

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from .contract import length_error, right_shapes, shape_error
from .crashes import CASES, SIZES

SCRIPT = Path(__file__).with_name("crashes.py")


class Outcome(NamedTuple):
    error: str | None
    message: str


def run_isolated(names: list[str]) -> dict[str, Outcome]:
    """What each case gave. After a crash a new process goes on with the next case."""
    outcomes: dict[str, Outcome] = {}
    while len(outcomes) < len(names):
        rest = names[len(outcomes) :]
        run = subprocess.run(
            [sys.executable, SCRIPT, *rest], capture_output=True, text=True, check=False
        )
        for line in run.stdout.splitlines():
            name, *outcome = json.loads(line)
            outcomes[name] = Outcome(*outcome)
        if len(outcomes) < len(names):
            guilty = names[len(outcomes)]
            outcomes[guilty] = Outcome("crash", f"exit status {run.returncode}: {run.stderr}")
    return outcomes


# A process for each mode. To trace each call takes long; eager code runs the same checks.
MODES = [
    "eager",
    pytest.param("shape inference", marks=pytest.mark.full),
    pytest.param("kernel", marks=pytest.mark.slow),
]


@functools.cache
def outcomes_of(mode: str) -> dict[str, Outcome]:
    return run_isolated([f"{mode}: {name}" for name in CASES])


@pytest.fixture(params=MODES)
def outcomes(request) -> tuple[str, dict[str, Outcome]]:
    """Mode, and what each case gave."""
    mode = request.param
    prefix = f"{mode}: "
    return mode, {k.removeprefix(prefix): v for k, v in outcomes_of(mode).items()}


@pytest.mark.parametrize("name", CASES)
def test_is_an_error_that_names_the_argument(outcomes, name):
    mode, found = outcomes
    case = CASES[name]
    shapes = right_shapes(case.op, **SIZES)
    shapes.update({argument: tuple(shape) for argument, shape in case.shapes.items()})
    text = shape_error(case.op, shapes) or length_error(case.op, shapes, case.length)
    if text is None:
        assert found[name] == Outcome(None, "")
    else:
        allowed = ["InvalidArgumentError", *(["ValueError"] if mode == "shape inference" else [])]
        assert found[name].error in allowed, found[name]
        assert text in found[name].message


def test_the_harness_sees_a_crash():
    found = run_isolated(["abort"])
    assert found["abort"].error == "crash"
