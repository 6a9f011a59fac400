"""Runs the checks in a child process. It is replaced if a check fails or takes too long."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from tf_lstm_ops import _gpu
from tf_lstm_ops.selftest.check import Result

START_LIMIT = 300.0  # seconds until the child has imported TensorFlow
_WORKER = [sys.executable, "-m", "tf_lstm_ops.selftest.worker"]


class Ended(Exception):
    """The child has ended, or it was ended because its time was over."""


class Child:
    """A child process with the kernels of the device, whether they are on or off here.

    Args:
      device: such as "GPU:0".

    Attributes:
      names: the names of all checks.

    Raises:
      Ended: it does not start.
    """

    def __init__(self, device: str) -> None:
        environment = {
            _gpu.VARIABLE: "1",
            "KERAS_BACKEND": "tensorflow",
            "TF_CUDNN_RESET_RND_GEN_STATE": "1",  # the same dropout mask in every call
        }
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115, closed by `end`
        self._process = subprocess.Popen(
            [*_WORKER, device],
            env={"TF_FORCE_GPU_ALLOW_GROWTH": "true", **os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
        )
        self.names: list[str] = self._answer(START_LIMIT)

    def run(self, number: int, limit: float) -> Result:
        """Runs a check.

        Args:
          number: its index in `names`.
          limit: the time that it may take, in seconds.

        Returns:
          The result.

        Raises:
          Ended: the process ended, or the time was over.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the reason is found below
            self._process.stdin.write(f"{number}\n".encode())
        return Result(**self._answer(limit))

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()
        self._stderr.close()

    def _answer(self, limit: float) -> Any:
        """The next line of JSON."""
        assert self._process.stdout is not None
        end, text = time.monotonic() + limit, b""
        while not text.endswith(b"\n"):
            left = max(end - time.monotonic(), 0)
            if not select.select([self._process.stdout], [], [], left)[0]:
                self.end()
                raise Ended(f"it took longer than {limit:.0f} s")
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            if not part:
                raise Ended(self._reason())
            text += part
        return json.loads(text)

    def _reason(self) -> str:
        """How the process ended, and the last lines that it wrote."""
        status = self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").splitlines()[-10:]
        self.end()
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return "\n".join([f"the process ended ({how})", *lines])


class Event(NamedTuple):
    """What happens to a check.

    Attributes:
      name: of the check.
      result: None before it runs.
      number: of the check, from 1.
      total: the number of all checks.
    """

    name: str
    result: Result | None
    number: int
    total: int


def outcomes(device: str, limit: float) -> Iterator[Event]:
    """Runs all checks.

    Args:
      device: such as "GPU:0".
      limit: the time that a check may take, in seconds.

    Yields:
      An event before each check, and one after it.

    Raises:
      Ended: the child process does not start.
    """
    child: Child | None = Child(device)
    assert child is not None
    try:
        names = child.names
        for number, name in enumerate(names):
            yield Event(name, None, number + 1, len(names))
            child = child or Child(device)
            try:
                result = child.run(number, limit)
            except Ended as ended:
                child, result = None, Result(math.nan, 0.0, str(ended))
            if child and result.error:  # which may leave the device in a bad state
                child.end()
                child = None
            yield Event(name, result, number + 1, len(names))
    finally:
        if child:
            child.end()
