"""The C library of include/tf_lstm_ops.h, by ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import struct
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tf_lstm_ops import _received

API_VERSION = 3
MAX_THREADS = 256

_FILE = pathlib.Path(__file__).absolute().parent.parent / "_lib" / "libtf_lstm_ops_inference.so"

_FAILED_PRECONDITION = 9
_NOT_A_SESSION_FILE = 1  # a reason
_ERRORS: dict[int, type[Exception]] = {
    3: ValueError,  # INVALID_ARGUMENT
    5: OSError,  # NOT_FOUND
    8: MemoryError,  # RESOURCE_EXHAUSTED
    _FAILED_PRECONDITION: RuntimeError,
    12: ValueError,  # UNIMPLEMENTED
    15: ValueError,  # DATA_LOSS
}


class Struct(ctypes.Structure):
    """A struct that begins with its size.

    Args:
      **values: the members but struct_size; others are 0.
    """

    def __init__(self, **values: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(self), **values)


class Error(Struct):
    """tf_lstm_ops_error."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("code", ctypes.c_int32),
        ("text", ctypes.c_char * 248),
        ("reason", ctypes.c_int32),
        ("layer", ctypes.c_int32),
        ("layer_begin", ctypes.c_int32),
        ("layer_end", ctypes.c_int32),
    )

    def __init__(self) -> None:
        super().__init__(layer=-1)

    def message(self, names: Sequence[str]) -> str:
        """The text, with the name of the layer that it is about.

        Args:
          names: of the layers of the session; a file has none.

        Returns:
          The text.
        """
        text = self.text
        if 0 <= self.layer < len(names):
            label = f"layer {self.layer}, {_received.printable(names[self.layer])}".encode()
            text = text[: self.layer_begin] + label + text[self.layer_end :]
        return text.decode("utf-8", "replace")


class NotASessionFileError(ValueError):
    """The library's error for a file or bytes that are not those of a session."""


class Options(Struct):
    """tf_lstm_ops_session_options."""

    _fields_ = (("struct_size", ctypes.c_uint32), ("threads", ctypes.c_int32))


class Info(Struct):
    """tf_lstm_ops_session_info."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("threads", ctypes.c_int32),
        ("input_size", ctypes.c_int64),
        ("output_size", ctypes.c_int64),
        ("state_size", ctypes.c_int64),
        ("returns_sequence", ctypes.c_int32),
        ("can_stream", ctypes.c_int32),
        ("input_count", ctypes.c_int32),
        ("output_count", ctypes.c_int32),
        ("state_count", ctypes.c_int32),
        ("blocking_layer", ctypes.c_int32),
    )


# tf_lstm_ops_array: struct_size, type, rank, mask_type, shape; and the addresses data, mask.
_ARRAY = struct.Struct("<Iiii6q")
_MASK_TYPE = slice(12, 16)
_ADDRESSES = struct.Struct("<QQ")
_SIZE = _ARRAY.size + _ADDRESSES.size
_MAX_RANK = 6
FLOAT32, INT32 = 0, 1
_LENGTHS = 1  # a mask_type

addresses = _ADDRESSES.pack  # of the data and the mask, 0: none


def packed(kind: int, shape: Sequence[int]) -> bytes:
    """A tf_lstm_ops_array without its addresses. To make an object of ctypes would take longer.

    Args:
      kind: FLOAT32 or INT32, or another type of the C header.
      shape: of the array, at most 6 axes.

    Returns:
      The first bytes of the struct.
    """
    rest = (0,) * (_MAX_RANK - len(shape))
    return _ARRAY.pack(_SIZE, kind, len(shape), 0, *shape, *rest)


def with_lengths(content: bytes) -> bytes:
    """A tf_lstm_ops_array whose mask is that of lengths.

    Args:
      content: of `packed`.

    Returns:
      The bytes.
    """
    kind = _LENGTHS.to_bytes(4, "little")
    return content[: _MASK_TYPE.start] + kind + content[_MASK_TYPE.stop :]


EMPTY = packed(FLOAT32, ()) + addresses(0, 0)  # an array that is null


def writable(arrays: Sequence[bytes]) -> ctypes.Array[ctypes.c_char]:
    """Structs tf_lstm_ops_array in memory that the library may write to.

    Args:
      arrays: the structs.

    Returns:
      A buffer.
    """
    content = b"".join(arrays)
    return ctypes.create_string_buffer(content, len(content))


def unpacked(content: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Reads what the library wrote to structs tf_lstm_ops_array.

    Args:
      content: the structs.

    Yields:
      The type and the shape of each.
    """
    for start in range(0, len(content), _SIZE):
        _, kind, rank, _, *shape = _ARRAY.unpack_from(content, start)
        yield kind, tuple(shape[:rank])


def described(kind: str, handle: ctypes.c_void_p, index: int) -> tuple[int, tuple[int, ...], str]:
    """An input, output or state of a session.

    Args:
      kind: "input", "output" or "state".
      handle: the session.
      index: its number.

    Returns:
      The type, the shape with -1 for any size, and the name, which a state does not have.
    """
    array = writable([EMPTY])
    name = ctypes.c_char_p()
    names = () if kind == "state" else (ctypes.addressof(name),)
    call(f"session_get_{kind}", handle, index, ctypes.addressof(array), *names)
    ((number, shape),) = unpacked(array.raw)
    return number, shape, (name.value or b"").decode("utf-8", "replace")


def inferred(
    handle: ctypes.c_void_p, inputs: Sequence[bytes], count: int, names: Sequence[str]
) -> list[tuple[int, ...]]:
    """The shapes of the outputs of a call of a session.

    Args:
      handle: the session.
      inputs: results of `packed` for all inputs.
      count: the number of outputs.
      names: of the layers, for errors.

    Returns:
      The shapes.

    Raises:
      ValueError: the inputs do not fit the session.
    """
    given = b"".join(each + addresses(0, 0) for each in inputs)
    outputs = writable([EMPTY] * count)
    address = ctypes.addressof(outputs)
    call("session_infer_shapes", handle, given, len(inputs), address, count, names=names)
    return [shape for _, shape in unpacked(outputs.raw)]


_POINTER, _INT64, _INT32 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
_ARRAYS = (ctypes.c_char_p, _INT32)  # structs as bytes, and their number
# The arguments of the functions without the last one, `error`.
_ARGUMENTS = {
    "session_open": (ctypes.c_char_p, _POINTER, _POINTER),
    "session_open_data": (_POINTER, ctypes.c_uint64, _POINTER, _POINTER),
    "session_get_info": (_POINTER, _POINTER),
    "session_get_data": (_POINTER, _POINTER, _POINTER),
    "session_get_input": (_POINTER, _INT32, _POINTER, _POINTER),
    "session_get_output": (_POINTER, _INT32, _POINTER, _POINTER),
    "session_get_state": (_POINTER, _INT32, _POINTER),
    "session_infer_shapes": (_POINTER, *_ARRAYS, _POINTER, _INT32),
    "session_run_arrays": (_POINTER, *_ARRAYS, *_ARRAYS),
    "stream_open": (_POINTER, _INT64, _POINTER),
    "stream_run_arrays": (_POINTER, *_ARRAYS, *_ARRAYS),
    "stream_reset": (_POINTER, _POINTER, _INT64),
    "stream_get_state": (_POINTER, _POINTER, _INT64),
    "stream_set_state": (_POINTER, _POINTER, _INT64),
}
_ARGUMENTS_OF_LAYERS = {
    "layer_open": (_POINTER, _POINTER),
    "layer_infer_shapes": (_POINTER, *_ARRAYS, _POINTER, _INT32),
    "layer_forward": (_POINTER, _INT32, *_ARRAYS, _POINTER, _INT32),
    "layer_backward": (_POINTER, _INT32, *_ARRAYS, _POINTER, _INT32),
}


def path() -> pathlib.Path:
    """The path of the library.

    The variable $TF_LSTM_OPS_INFERENCE_LIBRARY replaces the library of the package, for instance by
    one that is built with sanitizers.

    Returns:
      The path that the variable names, or that in the package.
    """
    return pathlib.Path(os.environ.get("TF_LSTM_OPS_INFERENCE_LIBRARY") or _FILE)


@functools.cache
def library() -> ctypes.CDLL:
    """Loads the library.

    Returns:
      The library, with declared functions. They release the lock of the interpreter.

    Raises:
      OSError: the library is missing or cannot be loaded.
      RuntimeError: it has an older interface.
    """
    native = ctypes.CDLL(str(path()))
    functions, kinds = _ARGUMENTS, ["session", "stream"]
    if has_layers(native):
        functions, kinds = {**functions, **_ARGUMENTS_OF_LAYERS}, [*kinds, "layer"]
        native.tf_lstm_ops_layer_argument.argtypes = [_POINTER, _INT32, _INT32]
        native.tf_lstm_ops_layer_argument.restype = ctypes.c_char_p
    for name, arguments in functions.items():
        function = getattr(native, f"tf_lstm_ops_{name}")
        function.argtypes = [*arguments, _POINTER]
        function.restype = ctypes.c_int32
    for kind in kinds:
        function = getattr(native, f"tf_lstm_ops_{kind}_close")
        function.argtypes = [_POINTER]
        function.restype = None
    native.tf_lstm_ops_api_version.restype = ctypes.c_int32
    version = native.tf_lstm_ops_api_version()
    if version < API_VERSION:
        raise RuntimeError(
            f"{path()} has version {version} of its interface, and version {API_VERSION} is needed"
        )
    return native


def has_layers(native: ctypes.CDLL) -> bool:
    """Whether a library has the functions of layers.

    Args:
      native: the library.

    Returns:
      False if it was built for sessions only.
    """
    return hasattr(native, "tf_lstm_ops_layer_open")


def prepared(name: str) -> Any:
    """A function of the library that converts no arguments, which makes its calls faster.

    Args:
      name: its name without the prefix.

    Returns:
      A function of objects of ctypes, of the exact types of its arguments. It returns the code.
    """
    return library()[f"tf_lstm_ops_{name}"]  # a new object, without argtypes


def call(name: str, *arguments: Any, names: Sequence[str] = ()) -> None:
    """Calls a function of the library.

    Args:
      name: its name without the prefix.
      *arguments: those of the function without `error`.
      names: of the layers, for errors.

    Raises:
      ValueError, OSError, MemoryError, RuntimeError: the library's error, with its text.
    """
    error = Error()
    code = getattr(library(), f"tf_lstm_ops_{name}")(*arguments, ctypes.addressof(error))
    if code:
        fail(code, error, names)


def owned(owner: Any, kind: str, keep: Any) -> ctypes.c_void_p:
    """A handle that the library closes when its owner goes.

    It exists before the library opens it. Else an exception of a signal handler that comes when the
    library returns would lose what it opened.

    Args:
      owner: the object.
      kind: "session", "stream" or "layer".
      keep: an object that lives until the handle is closed.

    Returns:
      The handle, NULL, which the library does not close.
    """
    handle, close = ctypes.c_void_p(), getattr(library(), f"tf_lstm_ops_{kind}_close")
    finalizer = weakref.finalize(owner, lambda kept, handle: close(handle), keep, handle)
    # At exit other threads may be in a call still. The system frees the memory.
    finalizer.atexit = False
    return handle


def fail(code: int, error: Error, names: Sequence[str]) -> NoReturn:
    """Raises the exception of a failed call.

    Args:
      code: what the function returned.
      error: what it set.
      names: of the layers.

    Raises:
      ValueError, OSError, MemoryError, RuntimeError: by the code.
    """
    kind = _ERRORS.get(code, RuntimeError)
    if error.reason == _NOT_A_SESSION_FILE:
        kind = NotASessionFileError
    raise kind(error.message(names) or f"the library failed with code {code}")


def content(handle: ctypes.c_void_p) -> npt.NDArray[np.uint8]:
    """The bytes of the file of a session.

    Args:
      handle: the session.

    Returns:
      uint8, read-only. It must not outlive the session.
    """
    data, size = ctypes.c_void_p(), ctypes.c_uint64()
    call("session_get_data", handle, ctypes.addressof(data), ctypes.addressof(size))
    assert data.value
    memory = memoryview((ctypes.c_uint8 * size.value).from_address(data.value))
    found = np.frombuffer(memory, np.uint8)
    found.flags.writeable = False
    return found
