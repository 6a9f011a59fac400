"""Known vulnerabilities of the stock ops of the family, and what is open in TensorFlow 2.21, as
regressions: eager, in shape inference and in the kernel, under both names.

They run in a process of their own, so that a crash is the failure of one test.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

RANKS: dict[str, list[list[int]]] = {
    "input": [[], [3], [5, 3], [1, 5, 3, 3]],
    "input_h": [[], [4], [3, 4], [1, 4, 3, 4]],
    "input_c": [[], [4], [3, 4], [1, 4, 3, 4]],
}
FORWARD = ["CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"]
BACKPROP = ["CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"]
SAVED = ["output", "output_h", "output_c", "output_backprop", "output_h_backprop"]


class Attack(NamedTuple):
    op: str
    shapes: dict[str, list[int]]  # those that differ from the right ones
    names: str  # what the text must hold
    lengths: list[int] | None = None


ATTACKS: dict[str, Attack] = {
    # CVE-2021-41221: shape inference read the dimensions of shapes of any rank.
    **{
        f"CVE-2021-41221 {op} {name}{shape}": Attack(op, {name: shape}, f"{name} must be rank 3")
        for op in (*FORWARD, *BACKPROP)
        for name, shapes in RANKS.items()
        for shape in shapes
    },
    **{
        f"CVE-2021-41221 {op} all": Attack(op, {name: [] for name in RANKS}, "must be rank 3")
        for op in (*FORWARD, *BACKPROP)
    },
    # No number of their own: the sizes of params and the lengths are not checked.
    **{
        f"open {op} params{shape}": Attack(op, {"params": shape}, "params")
        for op in (*FORWARD, *BACKPROP)
        for shape in ([], [0], [1], [735], [737], [23, 32])
    },
    **{
        f"open {op} sequence_lengths[{size}]": Attack(
            op, {"sequence_lengths": [size]}, "sequence_lengths", [1] * size
        )
        for op in (FORWARD[2], BACKPROP[2])
        for size in (0, 1, 2, 4)
    },
    **{
        f"open {op} lengths {lengths}": Attack(op, {}, "sequence_lengths[", lengths)
        for op in (FORWARD[2], BACKPROP[2])
        for lengths in ([5, 6, 5], [-1, 5, 5], [5, 5, 2**31 - 1], [-(2**31), 0, 0])
    },
    # Nor are those of what backward is given.
    **{
        f"open {op} {name}{shape}": Attack(op, {name: shape}, name)
        for op in BACKPROP
        for name in SAVED
        for shape in ([], [0], [1, 1, 1], [5, 3, 0])
    },
    **{
        f"open {op} reserve_space{shape}": Attack(op, {"reserve_space": shape}, "reserve_space")
        for op in BACKPROP
        for shape in ([], [0], [1], [3, 3], [100_000])
    },
}
# Errors of cuDNN that are none here.
ALLOWED = {
    # CVE-2020-26270: no step at all.
    **{f"CVE-2020-26270 {op}": Attack(op, {"input": [0, 3, 3]}, "") for op in FORWARD},
    # Every row without a step.
    **{f"zero lengths {op}": Attack(op, {}, "", [0, 0, 0]) for op in (FORWARD[2], BACKPROP[2])},
}


def run(attack: Attack, mode: str, source: str) -> Any:
    """Calls the op; returns its result or raises its error."""
    import tensorflow as tf

    from cudnn_rnn.cases import Case, arguments, call, specification, trace

    case = Case(layers=2, directions=2)
    wrong = {name: tuple(shape) for name, shape in attack.shapes.items()}
    reserve = wrong.pop("reserve_space", None)
    shapes = {**case.shapes(attack.op), **wrong}
    values = arguments(attack.op, case, shapes=shapes)
    if attack.lengths is not None:
        values["sequence_lengths"] = tf.constant(attack.lengths, tf.int32)
        if (
            not wrong
            and "Backprop" in attack.op
            and min(attack.lengths) == 0 == max(attack.lengths)
        ):
            values = arguments(attack.op, case, lengths=attack.lengths)
    if reserve is not None:
        values["reserve_space"] = tf.zeros(reserve)
    if mode == "eager":
        return call(attack.op, case, values, source)
    specs = specification(values, known=mode == "shape inference")
    return trace(attack.op, case, specs, source=source)(*values.values())


def main(names: list[str]) -> None:
    """Writes one line of JSON for each "SOURCE: MODE: ATTACK": [name, error type or null, message].
    If the process dies, the line of the guilty one is missing."""
    for name in names:
        if name == "abort":  # for the test of the harness
            os.abort()
        error, message = None, ""
        source, mode, attack = name.split(": ", 2)
        try:
            run({**ATTACKS, **ALLOWED}[attack], mode, source)
        except Exception as e:
            error, message = type(e).__name__, str(e)
        print(json.dumps([name, error, message]), flush=True)


class Outcome(NamedTuple):
    error: str | None
    message: str


def run_isolated(names: list[str]) -> dict[str, Outcome]:
    """What each attack gave. After a crash a new process goes on with the next one."""
    outcomes: dict[str, Outcome] = {}
    while len(outcomes) < len(names):
        rest = names[len(outcomes) :]
        process = subprocess.run(
            [sys.executable, __file__, *rest],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
            capture_output=True,
            text=True,
            check=False,
        )
        for line in process.stdout.splitlines():
            name, *outcome = json.loads(line)
            outcomes[name] = Outcome(*outcome)
        if len(outcomes) < len(names):
            guilty = names[len(outcomes)]
            text = f"exit status {process.returncode}: {process.stderr}"
            outcomes[guilty] = Outcome("crash", text)
    return outcomes


# A process for each group. To trace each call takes long; eager code runs the same checks.
BY_DEFAULT = ("own: eager", "stock: eager")
MORE = ("own: shape inference", "stock: shape inference")
ALL = ("own: kernel", "stock: kernel")


@functools.cache
def outcomes_of(runs: tuple[str, ...]) -> dict[str, Outcome]:
    return run_isolated([f"{run}: {name}" for run in runs for name in (*ATTACKS, *ALLOWED)])


@pytest.fixture(
    params=[
        *BY_DEFAULT,
        *(pytest.param(r, marks=pytest.mark.full) for r in MORE),
        *(pytest.param(r, marks=pytest.mark.slow) for r in ALL),
    ]
)
def outcomes(request) -> tuple[str, str, dict[str, Outcome]]:
    """Source, mode, and what each attack gave."""
    run = request.param
    found = outcomes_of(next(group for group in (BY_DEFAULT, MORE, ALL) if run in group))
    prefix = f"{run}: "
    of_run = {k.removeprefix(prefix): v for k, v in found.items() if k.startswith(prefix)}
    return *run.split(": "), of_run


@pytest.mark.parametrize("name", ATTACKS)
def test_is_an_error_that_names_the_argument(outcomes, name):
    """In shape inference of a stock name TensorFlow's own function may speak, of the rank only."""
    source, mode, found = outcomes
    traced = mode == "shape inference"
    allowed = ["InvalidArgumentError", *(["ValueError"] if traced else [])]
    assert found[name].error in allowed, found[name]
    if not (traced and source == "stock" and found[name].error == "ValueError"):
        assert ATTACKS[name].names in found[name].message


@pytest.mark.parametrize("name", ALLOWED)
def test_no_steps_are_no_error(outcomes, name):
    assert outcomes[2][name] == Outcome(None, "")


def test_the_harness_sees_a_crash():
    assert run_isolated(["abort"])["abort"].error == "crash"


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # the tests folder instead of this one
    main(sys.argv[1:])
