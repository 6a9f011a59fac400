"""Session: a chain of layers with frozen weights."""

from __future__ import annotations

import ctypes
import os
from typing import Any, NoReturn

import numpy as np

from tf_lstm_ops import _files, _tensorflow
from tf_lstm_ops.inference import arrays, file, native
from tf_lstm_ops.inference.arrays import Floats
from tf_lstm_ops.inference.stream import Stream


class Session:
    """Computes a model of recurrent layers on the CPU, without TensorFlow.

    The model is a chain of layers: Input, Masking, LSTM, GRU and SimpleRNN of this package and of
    ``keras.layers``, StackedLSTM, StackedGRU, Bidirectional, Dense, TimeDistributed of Dense,
    Activation, and layers that do nothing in inference, such as Dropout. Recurrent layers of this
    package equal ``model(x)`` bit for bit. A stock layer equals the layer of this package with its
    weights bit for bit. Other layers agree within float rounding.

    The weights are copied: later changes of the model do not change the session. Each call starts
    from zero states, also of a layer with ``stateful=True``; a `stream` keeps the states.

    Any number of threads may call a session at the same time. A call releases the interpreter's
    lock. With ``out`` a call allocates no array for the result. If ``x`` is not contiguous
    float32, it is copied.

    >>> import keras, numpy as np
    >>> from tf_lstm_ops.inference import Session
    >>> from tf_lstm_ops.keras import LSTM
    >>> model = keras.Sequential([keras.Input((None, 8)), LSTM(4), keras.layers.Dense(2)])
    >>> session = Session(model)
    >>> session(np.ones((32, 10, 8))).shape
    (32, 2)

    Args:
      model: a built ``keras.Model``, Sequential or functional, or a list of built layers.
      threads: the number of threads of a call, from 1 to 256. They share the work of large batches
        and layers; results do not depend on their number.

    Raises:
      ValueError: the model is not built, is not a chain, or has a layer that a session does not
        compute; or threads is out of range. The message names the layer and the reason.
      TypeError: model is neither a model nor a list of layers, or threads is not an integer.
      ImportError: TensorFlow or Keras is missing. `load` does not need them.

    Attributes:
      input_size: I, the number of features of the input.
      output_size: O, the number of features of the output.
      returns_sequence: whether there is an output for each step, not only the last one.
      can_stream: whether `stream` is possible: no layer reads the sequence backwards.
      state_shapes: the shape of each state without B: h of each recurrent layer, and c after it for
        an LSTM; empty if the session cannot stream.
      threads: the argument.
    """

    _backwards: str | None = None  # the layer that reads backwards; a file has no names

    def __init__(self, model: Any, threads: int = 1) -> None:
        threads = _checked_threads(threads)
        _tensorflow.check()
        from tf_lstm_ops.inference import from_keras

        layers = from_keras.layers_of(model)
        content = file.write(layers)
        source = arrays.pointer(content), content.nbytes
        self._open(threads, "session_open_data", *source, keep=content)
        self._backwards = next((each.name for each in layers if each.is_backwards), None)

    def _open(self, threads: int, function: str, *source: Any, keep: Any = None) -> None:
        """Opens a file by a function of the library and its first arguments."""
        handle, info = native.owned(self, "session", keep), native.Info()
        options = native.Options(threads=threads)
        native.call(function, *source, ctypes.addressof(options), ctypes.addressof(handle))
        native.call("session_get_info", handle, ctypes.addressof(info))
        self._handle = handle
        self._content = content = _content(handle)
        self.input_size, self.output_size = info.input_size, info.output_size
        self.returns_sequence, self.can_stream = bool(info.returns_sequence), bool(info.can_stream)
        self.threads = info.threads
        summary = file.summary(content)
        self._layer_count = summary.layers
        sizes = summary.state_sizes if self.can_stream else ()
        self.state_shapes = [(size,) for size in sizes]

    @classmethod
    def load(cls, path: _files.Path, threads: int = 1) -> Session:
        """Opens a file that `save` wrote. It needs neither TensorFlow nor Keras.

        The file is mapped into memory; no file descriptor stays open. It must not be written to
        while the session exists; `save` replaces it, which is allowed.

        Args:
          path: the file, a regular one: a string, bytes or a path.
          threads: see `Session`.

        Returns:
          The session.

        Raises:
          OSError: the file cannot be read, or is not a regular one.
          ValueError: the file is not valid, or of a later version; or threads is out of range.
          TypeError: path has another type.
        """
        threads = _checked_threads(threads)
        name = _files.checked(path)
        _files.check_readable(name)
        session = cls.__new__(cls)
        try:
            session._open(threads, "session_open", os.fsencode(name))
        except ValueError as error:
            raise ValueError(f"{os.fsdecode(name)}{_explained(error, name)}") from None
        return session

    def save(self, path: _files.Path) -> None:
        """Writes the session to a file, for `load` and for the C library.

        A file at `path` is replaced when the new one is complete. After an error it is unchanged.
        The new file has the permissions of the old one, and its owner where the system allows it.
        At a symbolic link the target is replaced. Other hard links keep the old file.

        If the folder takes no new file, the old one is written to. No session may have it open
        then, and an error may leave it incomplete.

        Args:
          path: the file: a string, bytes or a path.

        Raises:
          OSError: the file cannot be written, or is not a regular one, such as a device or a FIFO.
          TypeError: path has another type.
        """
        _files.write(_files.checked(path), self._content)

    def __call__(self, x: Any, mask: Any = None, out: Floats | None = None) -> Floats:
        """Computes whole sequences from zero states.

        Args:
          x: [B, T, I], anything that NumPy converts to an array of real numbers, such as a list or
            a tensor on the CPU; also an array on the CPU with ``__dlpack__`` only.
          mask: boolean [B, T], False at steps that do not count; None: all count.
          out: float32, C-contiguous, of the shape of the result, which is written to it. Without it
            the call allocates a new array.

        Returns:
          [B, T, O] if `returns_sequence`, else [B, O]. With T = 0 and without `returns_sequence`,
          the output of zero states.

        Raises:
          ValueError: a shape is wrong, x is not an array that NumPy can read, or out is not
            contiguous or shares memory with x.
          TypeError: x or mask has no real numbers, or out is not float32.
          MemoryError: there is no memory.
        """
        x = arrays.as_array("x", x)
        if x.ndim != 3 or x.shape[2] != self.input_size:
            raise ValueError(
                f"x must have the shape [batch, steps, {self.input_size}]. Received: {x.shape}"
            )
        batch, time = x.shape[:2]
        x = arrays.as_floats(x)
        shape = (batch, time) if self.returns_sequence else (batch,)
        out = arrays.checked_out(out, (*shape, self.output_size), x)
        valid = None if mask is None else _checked_mask(mask, batch, time)
        if out.size:
            native.call(
                "session_run",
                *(self._handle, batch, time, arrays.pointer(x)),
                *(None if valid is None else arrays.pointer(valid), arrays.pointer(out), out.size),
            )
        return out

    def stream(self, batch: int = 1) -> Stream:
        """Opens a stream, which computes the model step by step and keeps the states.

        Args:
          batch: B, the number of rows.

        Returns:
          The stream, whose states are zero. Sessions may have any number of streams.

        Raises:
          ValueError: batch is not positive, or a layer reads the sequence backwards.
          MemoryError: there is no memory.
        """
        return Stream(self, batch)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Session cannot be copied or pickled. Use Session.save and Session.load")

    def __repr__(self) -> str:
        return (
            f"Session(layers={self._layer_count}, input_size={self.input_size}, "
            f"output_size={self.output_size}, returns_sequence={self.returns_sequence}, "
            f"threads={self.threads})"
        )


def _checked_threads(threads: Any) -> int:
    if isinstance(threads, bool) or not hasattr(threads, "__index__"):
        raise TypeError(f"threads must be an integer. Received: threads={threads!r}")
    threads = int(threads)
    if not 1 <= threads <= native.MAX_THREADS:
        raise ValueError(
            f"threads must be from 1 to {native.MAX_THREADS}. Received: threads={threads}"
        )
    return threads


def _explained(error: ValueError, path: Any) -> str:
    """An error of the library after the name of the file."""
    if "magic" not in str(error):
        return f": {error}"
    return (
        f" is not a file of Session.save ({error}). For a Keras model: "
        f"Session(keras.models.load_model({os.fspath(path)!r}))"
    )


def _checked_mask(mask: Any, batch: int, time: int) -> file.Array:
    """The mask as the library reads it: not 0 where a step is valid."""
    valid = arrays.as_array("mask", mask)
    if valid.shape != (batch, time):
        raise ValueError(f"mask must have the shape [{batch}, {time}]. Received: {valid.shape}")
    return np.ascontiguousarray(valid, np.bool_).view(np.uint8)


def _content(handle: ctypes.c_void_p) -> file.Array:
    """The bytes of the file of a session. They live as long as the session."""
    data, size = ctypes.c_void_p(), ctypes.c_uint64()
    native.call("session_get_data", handle, ctypes.addressof(data), ctypes.addressof(size))
    assert data.value
    memory = memoryview((ctypes.c_uint8 * size.value).from_address(data.value))
    content = np.frombuffer(memory, np.uint8)
    content.flags.writeable = False
    return content
