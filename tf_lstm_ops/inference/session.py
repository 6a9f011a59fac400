"""Session: a chain of layers with frozen weights."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import weakref
from typing import Any, NoReturn

import numpy as np

from tf_lstm_ops import _tensorflow
from tf_lstm_ops.inference import arrays, file, native
from tf_lstm_ops.inference.arrays import Floats
from tf_lstm_ops.inference.stream import Stream


class Session:
    """Computes a model of recurrent layers on the CPU, without TensorFlow.

    The model is a chain of layers: Input, Masking, LSTM and GRU of this package and of
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
        self._open(file.write(layers), threads)
        self._backwards = next((each.name for each in layers if each.is_backwards), None)

    def _open(self, content: file.Array, threads: int) -> None:
        """Opens the bytes of a file, which the session keeps."""
        handle, info = ctypes.c_void_p(), native.Info()
        options = native.Options(threads=threads)
        native.call(
            "session_open_data",
            *(arrays.pointer(content), content.nbytes),
            *(ctypes.addressof(options), ctypes.addressof(handle)),
        )
        close = native.library().tf_lstm_ops_session_close
        # The finalizer keeps the bytes until the library has closed the session.
        finalizer = weakref.finalize(self, lambda kept, handle: close(handle), content, handle)
        # At exit other threads may be in a call still. The system frees the memory.
        finalizer.atexit = False
        native.call("session_get_info", handle, ctypes.addressof(info))
        self._content, self._handle = content, handle
        self.input_size, self.output_size = info.input_size, info.output_size
        self.returns_sequence, self.can_stream = bool(info.returns_sequence), bool(info.can_stream)
        self.threads = info.threads
        summary = file.summary(content)
        self._layer_count = summary.layers
        sizes = summary.state_sizes if self.can_stream else ()
        self.state_shapes = [(size,) for size in sizes]

    @classmethod
    def load(cls, path: str | os.PathLike[str], threads: int = 1) -> Session:
        """Opens a file that `save` wrote. It needs neither TensorFlow nor Keras.

        The file is mapped into memory. It must not be written to while the session exists; `save`
        replaces it, which is allowed.

        Args:
          path: the file.
          threads: see `Session`.

        Returns:
          The session.

        Raises:
          OSError: the file cannot be read.
          ValueError: the file is not valid, or of a later version; or threads is out of range.
        """
        threads = _checked_threads(threads)
        session = cls.__new__(cls)
        try:
            session._open(_mapped(path), threads)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}{_explained(error, path)}") from None
        return session

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the session to a file, for `load` and for the C library.

        A file at `path` is replaced when the new one is complete. After an error it is unchanged.

        Args:
          path: the file.

        Raises:
          OSError: the file cannot be written.
        """
        name = os.fspath(path)
        temporary = os.path.join(os.path.dirname(name), f".tf_lstm_ops_{os.urandom(8).hex()}")
        try:
            with open(temporary, "xb") as target:  # its permissions are those of the umask
                target.write(self._content.data)
            os.replace(temporary, name)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.remove(temporary)
            if isinstance(error, OSError):  # the user knows the name of the file only
                error.filename, error.filename2 = name, None
            raise

    def __call__(self, x: Any, mask: Any = None, out: Floats | None = None) -> Floats:
        """Computes whole sequences from zero states.

        Args:
          x: [B, T, I], anything that NumPy converts to an array of real numbers, such as a list, a
            tensor or an array on the CPU with ``__dlpack__``.
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


def _mapped(path: str | os.PathLike[str]) -> file.Array:
    """The bytes of a file, aligned."""
    with open(path, "rb") as source:
        if not os.fstat(source.fileno()).st_size:  # which cannot be mapped
            raise ValueError("the file is empty")
        return np.frombuffer(mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
