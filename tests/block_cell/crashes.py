"""Inputs that ended the process in some version of TensorFlow, as data, and a program to run them.

`python crashes.py NAME…` runs each "MODE: CASE" in order and writes one line of JSON for it: [name,
error type or null, message]. If the process dies, the line of the guilty one is missing. The modes
are "eager", "shape inference" and "kernel".
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

SIZES = {"time": 3, "batch": 2, "inputs": 3, "units": 4}


class Case(NamedTuple):
    op: str
    shapes: dict[str, list[int]]  # those that differ from the right ones
    length: int = 1


def one_by_one(prefix: str, op: str, wrong: dict[str, list[list[int]]]) -> dict[str, Case]:
    return {
        f"{prefix} {op} {name}{shape}": Case(op, {name: shape})
        for name, shapes in wrong.items()
        for shape in shapes
    }


STEP_STATE = ["i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"]
SEQUENCE_STATE = ["i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"]
SEQUENCE_OPS = ("BlockLSTM", "BlockLSTMGrad", "BlockLSTMV2", "BlockLSTMGradV2")
OPS = ("LSTMBlockCell", "LSTMBlockCellGrad", *SEQUENCE_OPS)
MATRICES = {name: [[], [2], [1, 2, 4]] for name in ("cs_prev", "h_prev", "w")}
VECTORS = {name: [[], [1, 4]] for name in ("wci", "wcf", "wco", "b")}

CASES: dict[str, Case] = {
    # CVE-2022-29200: LSTMBlockCell looked at sizes before ranks. In 2.21 still so for these.
    **one_by_one(
        "CVE-2022-29200", "LSTMBlockCell", {"x": [[], [2], [1, 2, 3]], **MATRICES, **VECTORS}
    ),
    "CVE-2022-29200 LSTMBlockCell all": Case(
        "LSTMBlockCell",
        {"x": [2], "cs_prev": [], "h_prev": [2], "w": [7], **{name: [] for name in VECTORS}},
    ),
    # CVE-2022-35964: BlockLSTMGradV2 did not check the ranks of eight inputs.
    **one_by_one(
        "CVE-2022-35964",
        "BlockLSTMGradV2",
        {
            "x": [[], [3], [3, 2]],
            **MATRICES,
            **VECTORS,
            **{name: [[], [0], [3, 2]] for name in SEQUENCE_STATE},
        },
    ),
    "CVE-2022-35964 BlockLSTMGradV2 all": Case(
        "BlockLSTMGradV2",
        {name: [] for name in (*MATRICES, *VECTORS)},
    ),
    # CVE-2020-26270: no step at all. Here it is no error.
    **{
        f"CVE-2020-26270 {op} T=0": Case(op, {"x": [0, 2, 3]}, length=0)
        for op in ("BlockLSTM", "BlockLSTMV2")
    },
    **{
        f"CVE-2020-26270 {op} T=0 B=0": Case(
            op, {"x": [0, 0, 3], "cs_prev": [0, 4], "h_prev": [0, 4]}, length=0
        )
        for op in ("BlockLSTM", "BlockLSTMV2")
    },
    # No number of their own; seen in TensorFlow 2.21.
    **one_by_one(
        "open",
        "LSTMBlockCellGrad",
        {"x": [[], [2]], **MATRICES, **VECTORS, **{name: [[], [2], [0]] for name in STEP_STATE}},
    ),
    **one_by_one("open", "BlockLSTM", {"x": [[], [3], [3, 2]], **MATRICES, **VECTORS}),
    **one_by_one("open", "BlockLSTMV2", {"x": [[], [3], [3, 2]], **MATRICES, **VECTORS}),
    **one_by_one(
        "open",
        "BlockLSTMGrad",
        {**MATRICES, **VECTORS, **{name: [[], [0], [3, 2]] for name in SEQUENCE_STATE}},
    ),
    **{
        f"short peephole {op} {name}[{size}]": Case(op, {name: [size]})
        for op in OPS
        for name in ("wci", "wcf", "wco")
        for size in (0, 1, 3)
    },
    **{
        f"seq_len_max {op} {length}": Case(op, {}, length)
        for op in SEQUENCE_OPS
        for length in (-1, 4, 2**40)
    },
    # More dimensions than a shape stores.
    "rank 12 LSTMBlockCell": Case("LSTMBlockCell", {"x": [1] * 12}),
    "rank 12 BlockLSTMGradV2": Case("BlockLSTMGradV2", {"cs": [1] * 12}),
    "seq_len_max BlockLSTM rank 1": Case("BlockLSTM", {"seq_len_max": [1]}),
    "seq_len_max BlockLSTMGradV2 no element": Case("BlockLSTMGradV2", {"seq_len_max": [0]}),
    # Empty inputs all round.
    **{
        f"empty {op}": Case(op, {"x": [3, 0, 0], "cs_prev": [0, 0], "h_prev": [0, 0], "w": [0, 0]})
        for op in SEQUENCE_OPS
    },
}


def run(case: Case, mode: str) -> Any:
    """Calls the op; returns its result or raises its error."""
    from block_cell.contract import arguments, call, right_shapes, specification, trace

    shapes = right_shapes(case.op, **SIZES)
    shapes.update({name: tuple(shape) for name, shape in case.shapes.items()})
    values = arguments(case.op, shapes, case.length)
    if mode == "eager":
        return call(case.op, values, use_peephole=True)
    known = mode == "shape inference"
    return trace(case.op, specification(values, known), use_peephole=True)(*values.values())


def main(names: list[str]) -> None:
    for name in names:
        if name == "abort":  # for the test of the harness
            os.abort()
        error, message = None, ""
        try:
            mode, case = name.split(": ", 1)
            run(CASES[case], mode)
        except Exception as e:
            error, message = type(e).__name__, str(e)
        print(json.dumps([name, error, message]), flush=True)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # the tests folder instead of this one
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main(sys.argv[1:])
