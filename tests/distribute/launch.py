"""Programs that run side by side and must all succeed."""

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

LIMIT = 300  # seconds; they take less than 20, but replicas that wait for each other do so for ever


def run_together(*commands: list[object], **environment: str) -> list[str]:
    """Runs Python with each command's arguments; returns what each wrote to stdout.

    If one fails, the others, which may wait for it, are ended at once; all are after LIMIT seconds.

    Raises:
      AssertionError: with every program's exit status and stderr.
    """
    with TemporaryDirectory() as folder, ExitStack() as files:
        paths = [
            Path(folder, f"{k}.{name}") for k in range(len(commands)) for name in ("out", "err")
        ]
        streams = [files.enter_context(path.open("wb")) for path in paths]
        outputs, errors = streams[::2], streams[1::2]
        processes = [
            subprocess.Popen(
                [sys.executable, *map(str, command)],
                env={**os.environ, "no_proxy": "127.0.0.1", **environment},
                stdout=output,
                stderr=error,
            )
            for command, output, error in zip(commands, outputs, errors, strict=True)
        ]
        try:
            _wait(processes)
        finally:
            for process in processes:
                process.kill()  # nothing happens to one that has ended
                process.wait()
        written = [path.read_text() for path in paths]
        report = "\n".join(
            f"exit status {process.returncode} of {command}:\n{error}"
            for process, command, error in zip(processes, commands, written[1::2], strict=True)
        )
        assert all(process.returncode == 0 for process in processes), report
        return written[::2]


def _wait(processes: list[subprocess.Popen[bytes]]) -> None:
    """Until all have succeeded, one has failed or the time is up."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        states = [process.poll() for process in processes]
        if None not in states or any(states):
            return
        time.sleep(0.05)


def free_addresses(count: int) -> str:
    """HOST:PORT,... of this machine, which nothing listens at."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return ",".join(f"127.0.0.1:{one.getsockname()[1]}" for one in sockets)
