"""The child process of `runner`: runs checks as it is told.

``python -m tf_lstm_ops.selftest.worker DEVICE`` first writes a line of JSON to stdout, the names of
all checks. It then reads lines with a number from stdin and answers each with a line of JSON, the
result of the check of this number. What libraries print goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys

import tensorflow as tf

from tf_lstm_ops.selftest import large, ops, programs
from tf_lstm_ops.selftest.check import Check, Result


def _checks(device: str) -> list[Check]:
    """All checks, in the order in which they run."""
    return [check for group in (ops, programs, large) for check in group.checks(device)]


def _result_of(check: Check, device: str) -> Result:
    """The result of a check; an exception becomes an error."""
    try:
        return check.run(device)
    except Exception as error:
        return Result(float("nan"), 0.0, f"{type(error).__name__}: {error}")


def main() -> None:
    """Answers until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    device = sys.argv[1]
    # The CPU has no TF32. `large` also checks calls with it.
    tf.config.experimental.enable_tensor_float_32_execution(False)
    found = _checks(device)
    print(json.dumps([check.name for check in found]), file=answers, flush=True)
    for line in sys.stdin:
        result = _result_of(found[int(line)], device)
        print(json.dumps(result._asdict()), file=answers, flush=True)


if __name__ == "__main__":
    main()
