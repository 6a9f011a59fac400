"""Checks that two versions of the package compute the same bits on the CPU.

Use it before and after a change of the engine, the kernels or the Python package that must not
change any result. Run the first command with the package of the old commit installed, the second
one with the package of the new commit:

    python scripts/digest --output before.json
    python scripts/digest --compare before.json

--only TEXT runs the cases whose name, such as "KerasLSTM lstm float32 shape=T6 B5 I8 H18", contains
the text.

The program computes a SHA-256 digest of the results of each case. The cases cover outputs and
gradients of the ops and of the Keras layers, and the conversions of weights, in all dtypes. The
random inputs of a case depend on its name only. Reserve spaces are not digested.

The program uses the public API and the names of the ops. The digests are the same in every run and
for any number of threads. They depend on the instruction set, on the processor and on the version
of TensorFlow. The environment variable TF_LSTM_OPS_SIMD selects another instruction set.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import pathlib
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import block_cell_cases
import cudnn_rnn_cases
import keras_cases
import mpsgraph_cases
import numpy as np
import tensorflow as tf
import weights_cases
from cases import Case, Draw

from tf_lstm_ops.__main__ import main as command_line

FAMILIES = (
    block_cell_cases.cases,
    cudnn_rnn_cases.cases,
    mpsgraph_cases.cases,
    keras_cases.cases,
    weights_cases.cases,
    block_cell_cases.stock_cases,  # last: they replace kernels of TensorFlow
)
HEADER = ("tf_lstm_ops", "TensorFlow", "NumPy", "instruction set", "threads")
Digests = dict[str, dict[str, str]]  # by group, then by case


def header() -> dict[str, str]:
    """The lines of ``tf-lstm-ops info`` named in HEADER."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        command_line(["info"])
    lines = text.getvalue().splitlines()
    pairs = [(name, line) for name in HEADER for line in lines if line.startswith(f"{name}  ")]
    return {name: line.removeprefix(name).strip() for name, line in pairs}


def digest(results: Any) -> str:
    """SHA-256 of the dtypes, shapes and bytes of all tensors and arrays in a structure."""
    found = hashlib.sha256()
    for value in tf.nest.flatten(results):
        if value is None:
            found.update(b"None")
        else:
            array = np.asarray(value.numpy() if tf.is_tensor(value) else value)
            found.update(f"{array.dtype}{array.shape}".encode())
            found.update(array.tobytes())
    return found.hexdigest()


def digest_of_all(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def name_of(case: Case, dtype: str) -> str:
    return f"{case.op} {case.cell} {dtype} {case.what}"


def run(case: Case, dtype: str) -> dict[str, str]:
    """The digest of each pass."""
    name = name_of(case, dtype)
    try:
        results = case.run(Draw(name, dtype))
    except Exception as error:
        raise RuntimeError(f"the case {name} failed") from error
    return {part: digest(values) for part, values in results.items()}


def run_all(only: str) -> Digests:
    digests: Digests = {}
    start = time.monotonic()
    for family in FAMILIES:
        for case, dtype in ((c, d) for c in family() for d in c.dtypes if only in name_of(c, d)):
            for part, found in run(case, dtype).items():
                group = digests.setdefault(f"{case.op} {case.cell} {dtype} {part}", {})
                if case.what in group:
                    raise ValueError(f"two cases of {case.op} have the name {case.what}")
                group[case.what] = found
        seconds = time.monotonic() - start
        print(f"{family.__module__}.{family.__name__} done after {seconds:.0f} s", file=sys.stderr)
    return digests


def print_digests(digests: Digests) -> None:
    """A line for each group, and the total."""
    width = max(map(len, digests))
    totals = []
    for name, group in digests.items():
        total = digest_of_all(f"{what} {found}" for what, found in group.items())
        totals.append(f"{name} {total}")
        print(f"{name:{width}}  {len(group):5}  {total[:16]}")
    count = sum(map(len, digests.values()))
    print(f"{'total':{width}}  {count:5}  {digest_of_all(totals)}")


def differences(before: Digests, after: Digests) -> Iterator[str]:
    """The cases whose digests differ, and those that only one of the two has."""
    for name in {**before, **after}:
        old, new = before.get(name, {}), after.get(name, {})
        for what in {**old, **new}:
            if what not in old or what not in new:
                yield f"only {'after' if what in new else 'before'}: {name}: {what}"
            elif old[what] != new[what]:
                yield f"differs: {name}: {what}"


def compare(path: pathlib.Path, lines: dict[str, str], digests: Digests) -> int:
    """Prints what differs from the file; returns the exit status."""
    before = json.loads(path.read_text())
    for name, value in before["header"].items():
        if lines.get(name) != value:
            print(f"note: {name} was {value} and is {lines.get(name)}")
    found = list(differences(before["digests"], digests))
    print(*found, f"{len(found)} differences from {path}", sep="\n")
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python scripts/digest", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--output", type=pathlib.Path, help="write the digest of each case here")
    parser.add_argument("--compare", type=pathlib.Path, help="a file that --output wrote")
    parser.add_argument("--only", default="", metavar="TEXT", help="run a part of the cases")
    arguments = parser.parse_args()
    lines = header()
    print(*(f"{name}: {value}" for name, value in lines.items()), sep="\n")
    digests = run_all(arguments.only)
    print_digests(digests)
    if arguments.output:
        content = {"header": lines, "digests": digests}
        arguments.output.write_text(json.dumps(content, indent=1) + "\n")
    return compare(arguments.compare, lines, digests) if arguments.compare else 0


if __name__ == "__main__":
    sys.exit(main())
