"""Another program in another process, since it crashes at some wrong models."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

LIMIT = 20  # seconds for a call


class NotRun(Exception):
    """The other program refuses a model or a call, or crashes."""


class Runtime:
    """The process, which is started again after a crash.

    Args:
      work: takes requests from a connection, and sends lists of arrays, or a text for an error.
    """

    def __init__(self, work: Callable[[Connection], None] | None = None) -> None:
        self._work = work or _run_onnx
        self._process: Any = None
        self._pipe: Any = None

    def __call__(self, *request: Any) -> list[Any]:
        """The outputs of a model: of ONNX Runtime by its bytes and inputs.

        Raises:
          NotRun: there are none.
        """
        if self._process is None or not self._process.is_alive():
            self._start()
        try:
            self._pipe.send(request)
            if not self._pipe.poll(LIMIT):
                self._process.kill()
                raise NotRun("it takes too long")
            found = self._pipe.recv()
        except (EOFError, OSError, MemoryError) as error:
            self._process.kill()
            self._process.join()
            raise NotRun("it has crashed") from error
        if isinstance(found, str):
            raise NotRun(found)
        return list(found)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = None

    def _start(self) -> None:
        self.close()
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=self._work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()


def _run_onnx(pipe: Connection) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    run_options = onnxruntime.RunOptions()
    run_options.log_severity_level = 4
    last, session = b"", None
    while True:
        data, feeds = pipe.recv()
        try:
            if data != last or session is None:
                session = onnxruntime.InferenceSession(data, options)
                last = data
            pipe.send(session.run(None, feeds, run_options))
        except Exception as error:
            pipe.send(str(error))
