"""Stream: a session step by step, with states that stay between calls."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tf_lstm_ops.inference import arrays, native
from tf_lstm_ops.inference.arrays import Floats

if TYPE_CHECKING:
    from tf_lstm_ops.inference.session import Session

# Elements, 64 KiB. Smaller inputs and outputs go through arrays of the stream: to copy them takes
# less time than to find the addresses of the caller's arrays.
_COPIED = 1 << 14
# Shapes of x whose arrays a stream keeps. Streams have few: one step, and a block.
_CALLS = 4

# Input, output, error, arguments.
_Call = tuple[Floats, Floats, native.Error, tuple[Any, ...]]


class Stream:
    """Computes a session step by step. `Session.stream` makes it.

    One thread at a time may use a stream; another one gets a RuntimeError. Streams of one session
    are independent of each other. A call releases the interpreter's lock. With ``out`` a call
    allocates no array for the result. If ``x`` is not contiguous float32, it is copied. A stream
    keeps arrays of its own for inputs and outputs of at most 64 KiB, and copies them.

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
      session: the session.
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
        if session._backwards is not None:  # of a loaded file the library knows the number only
            raise ValueError(
                "the session cannot stream: a layer reads the sequence backwards: "
                f"{session._backwards}"
            )
        self.session, self.batch = session, int(batch)
        handle = native.owned(self, "stream", session)
        native.call("stream_open", session._handle, self.batch, ctypes.addressof(handle))
        self._handle = handle
        self._run = native.prepared("stream_run")
        self._calls: dict[tuple[int, ...], _Call] = {}

    def __call__(self, x: Any, out: Floats | None = None) -> Floats:
        """Computes the next step or steps.

        Args:
          x: [B, I], one step; or [B, steps, I], one or more. Anything that NumPy converts to an
            array of real numbers, such as a list or a tensor on the CPU; also an array on the CPU
            with ``__dlpack__`` only.
          out: float32, C-contiguous, of the shape of the result, which is written to it. Without it
            the call allocates a new array.

        Returns:
          For one step [B, O]. For several steps [B, steps, O] if the session has
          `Session.returns_sequence`, else [B, O], the output after the last step.

        Raises:
          ValueError: a shape is wrong, x is not an array that NumPy can read, or out is not
            contiguous.
          TypeError: x has no real numbers, or out is not float32.
          RuntimeError: another thread uses the stream.
        """
        if type(x) is not np.ndarray or x.dtype.kind not in "fiub":
            x = arrays.as_array("x", x)
        # Without a lock, which an exception of a signal handler could leave locked: the call takes
        # the arrays away and brings them back. The library refuses a second thread.
        call = self._calls.pop(x.shape, None) or self._prepare(x.shape)
        if call is None:
            return self._run_in_place(x, out)
        own_x, own_y, error, arguments = call
        if out is not None:
            arrays.checked_out(out, own_y.shape, None)
        own_x[...] = x
        if code := self._run(*arguments):
            native.fail(code, error)
        if out is None:
            out = own_y.copy()
        else:
            out[...] = own_y
        if len(self._calls) == _CALLS:
            self._calls.clear()
        self._calls[x.shape] = call
        return out

    def _prepare(self, shape: tuple[int, ...]) -> _Call | None:
        """Makes what a call with x of this shape needs; None if its arrays are not copied."""
        output_shape = self._output_shape(shape)
        if max(math.prod(shape), math.prod(output_shape)) > _COPIED:
            return None
        x, y = np.zeros(shape, np.float32), np.zeros(output_shape, np.float32)
        error = native.Error()
        return x, y, error, self._arguments(x, y, error)

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Checks the shape of x. Returns that of the output."""
        batch, size = self.batch, self.session.input_size
        steps = {2: 1, 3: shape[1]}.get(len(shape), 0) if len(shape) > 1 else 0
        if steps < 1 or (shape[0], shape[-1]) != (batch, size):
            raise ValueError(
                f"x must have the shape [{batch}, {size}], or [{batch}, steps, {size}] with one or "
                f"more steps. Received: {shape}"
            )
        between = shape[1:-1] if self.session.returns_sequence else ()
        return (batch, *between, self.session.output_size)

    def _arguments(self, x: Floats, y: Floats, error: native.Error) -> tuple[Any, ...]:
        """The arguments of tf_lstm_ops_stream_run."""
        steps = x.size // (self.batch * self.session.input_size)
        return (
            *(self._handle, ctypes.c_int64(steps)),
            *(ctypes.c_void_p(arrays.pointer(x)), ctypes.c_int64(x.size)),
            *(ctypes.c_void_p(arrays.pointer(y)), ctypes.c_int64(y.size)),
            ctypes.c_void_p(ctypes.addressof(error)),
        )

    def _run_in_place(self, x: Any, out: Floats | None) -> Floats:
        """Computes steps from and to the caller's arrays."""
        floats = arrays.as_floats(x)
        out = arrays.checked_out(out, self._output_shape(x.shape), floats)
        error = native.Error()
        if code := self._run(*self._arguments(floats, out, error)):
            native.fail(code, error)
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
            native.call("stream_reset", self._handle, None, 0)
            return
        numbers = np.atleast_1d(np.asarray(rows))
        if not numbers.size:
            return
        if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
            raise TypeError(f"rows must be a list of integers. Received: rows={rows!r}")
        if numbers.min() < 0 or numbers.max() >= self.batch:
            raise ValueError(f"rows must be from 0 to {self.batch - 1}. Received: rows={rows!r}")
        numbers = np.ascontiguousarray(numbers, np.int64)
        native.call("stream_reset", self._handle, arrays.pointer(numbers), numbers.size)

    @property
    def state(self) -> list[Floats]:
        """The states: for each recurrent layer h [B, P] and, of an LSTM, c [B, H]; copies."""
        flat = np.empty(self._state_size, np.float32)
        native.call("stream_get_state", self._handle, arrays.pointer(flat), flat.size)
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
            np.concatenate([arrays.as_floats(value).reshape(-1) for value in values], out=flat)
        native.call("stream_set_state", self._handle, arrays.pointer(flat), flat.size)

    @property
    def _state_shapes(self) -> list[tuple[int, int]]:
        return [(self.batch, size) for (size,) in self.session.state_shapes]

    @property
    def _state_size(self) -> int:
        return sum(rows * size for rows, size in self._state_shapes)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Stream cannot be copied or pickled. Open another one, and use set_state")

    def __repr__(self) -> str:
        return f"Stream(batch={self.batch}, session={self.session!r})"
