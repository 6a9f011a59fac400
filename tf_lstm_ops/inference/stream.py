"""Stream: a session step by step, with states that stay between calls."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tf_lstm_ops.inference import arrays, native
from tf_lstm_ops.inference.arguments import Spec, contiguous, numbers, struct
from tf_lstm_ops.inference.arrays import Floats
from tf_lstm_ops.inference.opened import Opened

# Elements, 64 KiB. Smaller inputs and outputs go through arrays of the stream: to copy them takes
# less time than to find the addresses of the caller's arrays.
_COPIED = 1 << 14
# Shapes of x whose arrays a stream keeps. Streams have few: one step, and a block.
_CALLS = 4

# Inputs, outputs, error, arguments.
_Call = tuple[list[npt.NDArray[Any]], list[Floats], native.Error, tuple[Any, ...]]


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
      session: the `Session`.
      batch: B, the number of rows, positive.

    Raises:
      ValueError: batch is not positive, or a layer needs more than the steps so far, for instance
        because it reads the sequence backwards.
      TypeError: batch is not an integer.

    Attributes:
      session: the argument.
      batch: the argument.
    """

    def __init__(self, session: Any, batch: int = 1) -> None:
        if isinstance(batch, bool) or not hasattr(batch, "__index__"):
            raise TypeError(f"batch must be an integer. Received: batch={batch!r}")
        if not 1 <= batch < 1 << 31:
            raise ValueError(f"batch must be from 1 to {(1 << 31) - 1}. Received: batch={batch}")
        self.session, self.batch = session, int(batch)
        own: Opened = session._opened
        self._opened = own
        handle = native.owned(self, "stream", own)
        opened = own.handle, self.batch, ctypes.addressof(handle)
        native.call("stream_open", *opened, names=own.names)
        self._handle = handle
        self._run = native.prepared("stream_run_arrays")
        self._calls: dict[Any, _Call] = {}
        self._steps = [_steps_of(spec, self.batch) for spec in own.inputs.specs]

    def __call__(self, x: Any, out: Any = None) -> Any:
        """Computes the next step or steps.

        Several inputs and outputs are lists or dictionaries, as in a call of the session.

        Args:
          x: [B, I], one step; or [B, steps, I], one or more. Anything that NumPy converts to an
            array of real numbers, such as a list or a tensor on the CPU; also an array on the CPU
            with ``__dlpack__`` only. An input with other axes has them behind the steps; indices
            of an embedding are [B] or [B, steps].
          out: float32, C-contiguous, of the shape of the result, which is written to it. Without it
            the call allocates a new array.

        Returns:
          For one step [B, O]. For several steps [B, steps, O] if the session has
          `Session.returns_sequence`, else [B, O], the output after the last step.

        Raises:
          ValueError: a shape is wrong, x is not an array that NumPy can read, an index is out of
            range, or out is not contiguous.
          TypeError: x has no real numbers, or out is not float32.
          RuntimeError: another thread uses the stream.
        """
        if not self._opened.is_single:
            return self._call_several(x, out)
        if type(x) is not np.ndarray or x.dtype.kind not in "fiub":
            x = arrays.as_array("x", x)
        # Without a lock, which an exception of a signal handler could leave locked: the call takes
        # the arrays away and brings them back. The library refuses a second thread.
        call = self._calls.pop(x.shape, None) or self._prepare((x,))
        if call is None:
            return self._run_in_place((x,), out)
        own_xs, own_ys, error, arguments = call
        own_y = own_ys[0]
        if out is not None:
            arrays.checked_out(out, own_y.shape)
        own_xs[0][...] = x
        if code := self._run(*arguments):
            native.fail(code, error, self._opened.names)
        if out is None:
            out = own_y.copy()
        else:
            out[...] = own_y
        if len(self._calls) == _CALLS:
            self._calls.clear()
        self._calls[x.shape] = call
        return out

    def _call_several(self, x: Any, out: Any) -> Any:
        """A call with several inputs or outputs, or with indices."""
        values, key = self._read(x)
        call = self._calls.pop(key, None) or self._prepare(values)
        if call is None:
            return self._run_in_place(values, out)
        own_xs, own_ys, error, arguments = call
        results: Sequence[Floats] = ()
        if out is not None:
            results = self._opened.checked_out(out, [each.shape for each in own_ys], ())
        for own, value in zip(own_xs, values, strict=True):
            own[...] = value
        if code := self._run(*arguments):
            native.fail(code, error, self._opened.names)
        if out is None:
            out = self._opened.outputs.packed([own.copy() for own in own_ys])
        for result, own in zip(results, own_ys, strict=False):
            result[...] = own
        if len(self._calls) == _CALLS:
            self._calls.clear()
        self._calls[key] = call
        return out

    def _read(self, x: Any) -> tuple[Sequence[npt.NDArray[Any]], Any]:
        """The inputs as arrays, and the key of their shapes."""
        given = self._opened.inputs
        values = [
            numbers(spec, label, value)
            for spec, label, value in zip(given.specs, given.labels, given.flat(x), strict=True)
        ]
        return values, tuple(value.shape for value in values)

    def _prepare(self, values: Sequence[npt.NDArray[Any]]) -> _Call | None:
        """Makes what a call with these inputs needs; None if the arrays are not copied."""
        shapes = [value.shape for value in values]
        steps, is_step = self._count_steps(shapes)
        output_shapes = self._output_shapes(steps, is_step)
        if max(map(math.prod, (*shapes, *output_shapes))) > _COPIED:
            return None
        specs = self._opened.inputs.specs
        x = [np.zeros(shape, spec.dtype) for shape, spec in zip(shapes, specs, strict=True)]
        y = [np.zeros(shape, np.float32) for shape in output_shapes]
        error = native.Error()
        return x, y, error, self._arguments(steps, x, y, error)

    def _count_steps(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, bool]:
        """The number of steps of inputs of these shapes, and whether they have no axis of it."""
        found = []
        labels = self._opened.inputs.labels
        for label, spec, shape, steps_of in zip(
            labels, self._opened.inputs.specs, shapes, self._steps, strict=True
        ):
            steps = steps_of(shape)
            if steps is None or steps < 1:
                one = ", ".join(map(str, (self.batch, *spec.shape[2:])))
                several = ", ".join(map(str, (self.batch, "steps", *spec.shape[2:])))
                raise ValueError(
                    f"{label} must have the shape [{one}], or [{several}] with one or more steps. "
                    f"Received: {shape}"
                )
            found.append((steps, len(shape) < len(spec.shape)))
        if len({*found}) > 1:
            raise ValueError(f"all inputs must have equal steps. Received: {[*shapes]}")
        return found[0]

    def _output_shapes(self, steps: int, is_step: bool) -> list[tuple[int, ...]]:
        shapes = []
        for spec in self._opened.outputs.specs:
            is_sequence = len(spec.shape) > 1 and spec.shape[1] is None
            between = () if is_step or not is_sequence else (steps,)
            rest = spec.shape[2:] if is_sequence else spec.shape[1:]
            shapes.append((self.batch, *between, *(size or 0 for size in rest)))
        return shapes

    def _arguments(
        self,
        steps: int,
        x: Sequence[npt.NDArray[Any]],
        y: Sequence[Floats],
        error: native.Error,
    ) -> tuple[Any, ...]:
        """The arguments of tf_lstm_ops_stream_run_arrays."""
        return (
            self._handle,
            *self._structs(self._opened.inputs.specs, steps, x),
            *self._structs(self._opened.outputs.specs, steps, y),
            ctypes.c_void_p(ctypes.addressof(error)),
        )

    def _structs(
        self, specs: Sequence[Spec], steps: int, values: Sequence[npt.NDArray[Any]]
    ) -> tuple[ctypes.c_char_p, ctypes.c_int32]:
        """The structs of arrays, with the axis of steps also where there is one step."""
        content = [
            struct(
                spec,
                tuple(
                    size if size is not None else (self.batch, steps)[axis]
                    for axis, size in enumerate(spec.shape)
                ),
            )
            + native.addresses(arrays.pointer(value), 0)
            for spec, value in zip(specs, values, strict=True)
        ]
        return ctypes.c_char_p(b"".join(content)), ctypes.c_int32(len(content))

    def _run_in_place(self, values: Sequence[npt.NDArray[Any]], out: Any) -> Any:
        """Computes steps from and to the caller's arrays."""
        specs = self._opened.inputs.specs
        steps, is_step = self._count_steps([value.shape for value in values])
        x = [contiguous(spec, value) for spec, value in zip(specs, values, strict=True)]
        shapes = self._output_shapes(steps, is_step)
        if out is None:
            y = [np.empty(shape, np.float32) for shape in shapes]
        else:
            y = self._opened.checked_out(out, shapes, x)
        error = native.Error()
        if code := self._run(*self._arguments(steps, x, y, error)):
            native.fail(code, error, self._opened.names)
        return out if out is not None else self._opened.outputs.packed(y)

    def reset(self, rows: Any = None) -> None:
        """Sets states to the initial states of the model, zeros in most models.

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
        """The states: for each recurrent layer h [B, P] and, of an LSTM, c [B, H]; copies.

        A causal convolution has the last steps of its input, [B, (k - 1) dilation, C].
        """
        flat = np.empty(self._state_size, np.float32)
        native.call("stream_get_state", self._handle, arrays.pointer(flat), flat.size)
        states, start = [], 0
        for shape in self._state_shapes:
            end = start + math.prod(shape)
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
    def _state_shapes(self) -> list[tuple[int, ...]]:
        return [(self.batch, *shape) for shape in self._opened.state_shapes]

    @property
    def _state_size(self) -> int:
        return sum(map(math.prod, self._state_shapes))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Stream cannot be copied or pickled. Open another one, and use set_state")

    def __repr__(self) -> str:
        return f"Stream(batch={self.batch}, session={self.session!r})"


def _steps_of(spec: Spec, batch: int) -> Callable[[tuple[int, ...]], int | None]:
    """A function of the shape of an input, which returns the number of its steps; None: wrong."""
    rank, rest = len(spec.shape), spec.shape[2:]

    def steps(shape: tuple[int, ...]) -> int | None:
        if not shape or shape[0] != batch or shape[len(shape) - len(rest) :] != rest:
            return None
        return {rank - 1: 1, rank: shape[1] if len(shape) > 1 else 0}.get(len(shape))

    return steps
