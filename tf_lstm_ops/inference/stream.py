"""Stream: a session step by step, with states that stay between calls."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tf_lstm_ops.inference import arrays, native
from tf_lstm_ops.inference.arrays import Floats

if TYPE_CHECKING:
    from tf_lstm_ops.inference.session import Session

# Elements of the input and output of one step that go through arrays of the stream: 64 KiB. A copy
# of them takes less than to find the address of an array.
_COPIED = 1 << 14


class Stream:
    """Computes a session step by step. `Session.stream` makes it.

    One thread at a time may use a stream; another one gets a RuntimeError. Streams of one session
    are independent of each other. A call releases the interpreter's lock. With the argument ``out``
    it allocates no array if ``x`` is one step or contiguous and float32.

    >>> import numpy as np
    >>> from tf_lstm_ops.inference import Session
    >>> from tf_lstm_ops.keras import LSTM
    >>> layer = LSTM(4, return_sequences=True)
    >>> layer.build((None, None, 8))
    >>> stream = Session([layer]).stream()
    >>> stream(np.zeros((1, 8), "float32")).shape  # one step
    (1, 4)
    >>> stream(np.zeros((1, 5, 8), "float32")).shape  # the next five steps
    (1, 5, 4)

    Args:
      session: whose model the stream computes.
      batch: B, the number of rows, positive.

    Raises:
      ValueError: batch is not positive, or a layer reads the sequence backwards.
      TypeError: batch is not an integer.

    Attributes:
      session: the argument.
      batch: the argument.
    """

    def __init__(self, session: Session, batch: int = 1) -> None:
        if isinstance(batch, bool) or not hasattr(batch, "__index__"):
            raise TypeError(f"batch must be an integer. Received: batch={batch!r}")
        if not 1 <= batch < 1 << 31:
            raise ValueError(f"batch must be from 1 to {(1 << 31) - 1}. Received: batch={batch}")
        self.session, self.batch = session, int(batch)
        handle = ctypes.c_void_p()
        native.call("stream_open", session._handle, self.batch, ctypes.addressof(handle))
        close = native.library().tf_lstm_ops_stream_close
        # The finalizer keeps the session until the library has closed the stream.
        weakref.finalize(self, lambda kept, handle: close(handle), session, handle)
        self._handle = handle
        self._lock = threading.Lock()
        self._prepare_step()

    def _prepare_step(self) -> None:
        """Makes the arrays and the arguments of calls of one step."""
        sizes = [self.batch * size for size in (self.session.input_size, self.session.output_size)]
        self._step_shape = (self.batch, self.session.input_size)
        self._output_shape = (self.batch, self.session.output_size)
        self._copies = max(sizes) <= _COPIED
        self._error = native.Error()
        self._run = native.library().tf_lstm_ops_stream_run
        if self._copies:
            self._x = np.zeros(self._step_shape, np.float32)
            self._y = np.zeros(self._output_shape, np.float32)
            self._arguments = self._run_arguments(1, self._x, self._y)

    def _run_arguments(self, steps: int, x: Floats, y: Floats) -> tuple[Any, ...]:
        return (
            *(self._handle, steps, arrays.pointer(x), x.size, arrays.pointer(y), y.size),
            ctypes.addressof(self._error),
        )

    def __call__(self, x: Any, out: Floats | None = None) -> Floats:
        """Computes the next step or steps.

        Args:
          x: [B, I], one step; or [B, steps, I], one or more. A NumPy array or another one on the
            CPU with ``__dlpack__``. Types other than float32 are converted.
          out: float32, C-contiguous, of the shape of the result, which is written to it. Without it
            the call allocates a new array.

        Returns:
          Of one step [B, O]. Of [B, steps, I]: [B, steps, O] if the session returns a sequence,
          else [B, O], the output after the last step.

        Raises:
          ValueError: an argument has a wrong shape.
          TypeError: an argument has a wrong type.
          RuntimeError: another thread uses the stream.
        """
        if not self._lock.acquire(False):
            raise _in_use()
        try:
            if type(x) is not np.ndarray or x.dtype.kind not in "fiub":
                x = arrays.as_array("x", x)
            if x.shape != self._step_shape or not self._copies:
                return self._run_steps(x, out)
            if out is not None:
                arrays.checked_out(out, self._output_shape, self._x)
            self._x[...] = x
            if code := self._run(*self._arguments):
                native.fail(code, self._error)
            if out is None:
                return self._y.copy()
            out[...] = self._y
            return out
        finally:
            self._lock.release()

    def _run_steps(self, x: Any, out: Floats | None) -> Floats:
        """Computes steps from and to the caller's arrays."""
        batch, size = self._step_shape
        steps = 1 if x.ndim == 2 else x.shape[1] if x.ndim == 3 else 0
        if (*x.shape[:1], *x.shape[-1:]) != self._step_shape or steps < 1:
            raise ValueError(
                f"x must have the shape [{batch}, {size}], or [{batch}, steps, {size}] with one or "
                f"more steps. Received: {x.shape}"
            )
        shape = self._output_shape
        if x.ndim == 3 and self.session.returns_sequence:
            shape = (batch, steps, shape[1])
        floats = arrays.as_floats(x)
        out = arrays.checked_out(out, shape, floats)
        if code := self._run(*self._run_arguments(steps, floats, out)):
            native.fail(code, self._error)
        return out

    def reset(self, rows: Any = None) -> None:
        """Sets states to zero.

        Args:
          rows: the numbers of the rows, from 0 to B - 1; None: all rows.

        Raises:
          ValueError: a row is out of range. No state changes then.
          TypeError: rows are not integers.
          RuntimeError: another thread uses the stream.
        """
        if rows is None:
            return self._locked("stream_reset", None, 0)
        numbers = np.atleast_1d(np.asarray(rows))
        if not numbers.size:
            return None
        if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
            raise TypeError(f"rows must be a list of integers. Received: rows={rows!r}")
        if numbers.min() < 0 or numbers.max() >= self.batch:
            raise ValueError(f"rows must be from 0 to {self.batch - 1}. Received: rows={rows!r}")
        numbers = np.ascontiguousarray(numbers, np.int64)
        return self._locked("stream_reset", arrays.pointer(numbers), numbers.size)

    @property
    def state(self) -> list[Floats]:
        """The states: for each recurrent layer h [B, P] and, of an LSTM, c [B, H]; copies."""
        flat = np.empty(self._state_size, np.float32)
        self._locked("stream_get_state", arrays.pointer(flat), flat.size)
        states, start = [], 0
        for shape in self._state_shapes:
            end = start + shape[0] * shape[1]
            states.append(flat[start:end].reshape(shape).copy())
            start = end
        return states

    def set_state(self, state: Sequence[Any]) -> None:
        """Sets the states.

        Args:
          state: arrays as `state` returns them. Types other than float32 are converted.

        Raises:
          ValueError: the number of arrays or the shape of one is wrong. No state changes then.
          TypeError: an array has no real numbers.
          RuntimeError: another thread uses the stream.
        """
        values = [arrays.as_array(f"state[{n}]", value) for n, value in enumerate(state)]
        if len(values) != len(self._state_shapes):
            raise ValueError(
                f"state must have {len(self._state_shapes)} arrays. Received: {len(values)}"
            )
        for n, (value, shape) in enumerate(zip(values, self._state_shapes, strict=True)):
            if value.shape != shape:
                raise ValueError(f"state[{n}] must have the shape {shape}. Received: {value.shape}")
        flat = np.empty(self._state_size, np.float32)
        if values:
            np.concatenate([value.reshape(-1) for value in values], out=flat, casting="unsafe")
        self._locked("stream_set_state", arrays.pointer(flat), flat.size)

    @property
    def _state_shapes(self) -> list[tuple[int, int]]:
        return [(self.batch, size) for (size,) in self.session.state_shapes]

    @property
    def _state_size(self) -> int:
        return sum(rows * size for rows, size in self._state_shapes)

    def _locked(self, name: str, *arguments: Any) -> None:
        """Calls a function of the library on the stream."""
        if not self._lock.acquire(False):
            raise _in_use()
        try:
            native.call(name, self._handle, *arguments)
        finally:
            self._lock.release()

    def __repr__(self) -> str:
        return f"Stream(batch={self.batch}, session={self.session!r})"


def _in_use() -> RuntimeError:
    return RuntimeError("another thread uses the stream; one thread at a time may use it")
