"""The C library of sessions through ctypes, with the structs of include/tf_lstm_ops.h.

It needs NumPy only.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from ctypes import POINTER, byref, c_char, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path

import numpy as np

OK, INVALID_ARGUMENT, NOT_FOUND = 0, 3, 5
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNIMPLEMENTED, DATA_LOSS = 8, 9, 12, 15


class Error(ctypes.Structure):
    _fields_ = [
        *(("struct_size", c_uint32), ("code", c_int32), ("text", c_char * 248)),
        *(("reason", c_int32), ("layer", c_int32)),
        *(("layer_begin", c_int32), ("layer_end", c_int32)),
    ]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("threads", c_int32)]


class Info(ctypes.Structure):
    _fields_ = [
        *(("struct_size", c_uint32), ("threads", c_int32)),
        *(("input_size", c_int64), ("output_size", c_int64), ("state_size", c_int64)),
        *(("returns_sequence", c_int32), ("can_stream", c_int32)),
        *(("input_count", c_int32), ("output_count", c_int32)),
        *(("state_count", c_int32), ("blocking_layer", c_int32)),
    ]


class Array(ctypes.Structure):
    _fields_ = [
        *(("struct_size", c_uint32), ("type", c_int32), ("rank", c_int32), ("mask_type", c_int32)),
        *(("shape", c_int64 * 6), ("data", c_void_p), ("mask", c_void_p)),
    ]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.shape[: self.rank])


_FLOATS, _ERROR = c_void_p, POINTER(Error)
_ARRAYS = [c_void_p, POINTER(Array), c_int32, POINTER(Array), c_int32, _ERROR]
FUNCTIONS = {
    "session_open": [c_char_p, POINTER(Options), POINTER(c_void_p), _ERROR],
    "session_open_data": [c_void_p, c_uint64, POINTER(Options), POINTER(c_void_p), _ERROR],
    "session_get_info": [c_void_p, POINTER(Info), _ERROR],
    "session_get_data": [c_void_p, POINTER(c_void_p), POINTER(c_uint64), _ERROR],
    **{
        f"session_run{end}": [
            *(c_void_p, c_int64, c_int64, _FLOATS, c_void_p, _FLOATS, c_int64, _ERROR),
        ]
        for end in ("", "_lengths")
    },
    **{
        f"session_get_{what}": [c_void_p, c_int32, POINTER(Array), POINTER(c_char_p), _ERROR]
        for what in ("input", "output")
    },
    "session_get_state": [c_void_p, c_int32, POINTER(Array), _ERROR],
    "session_infer_shapes": _ARRAYS,
    "session_run_arrays": _ARRAYS,
    "stream_run_arrays": _ARRAYS,
    "stream_open": [c_void_p, c_int64, POINTER(c_void_p), _ERROR],
    "stream_run": [c_void_p, c_int64, _FLOATS, c_int64, _FLOATS, c_int64, _ERROR],
    "stream_reset": [c_void_p, c_void_p, c_int64, _ERROR],
    "stream_get_state": [c_void_p, _FLOATS, c_int64, _ERROR],
    "stream_set_state": [c_void_p, _FLOATS, c_int64, _ERROR],
}


def path() -> Path:
    """The library of the installed package, which is not imported: it may need TensorFlow."""
    override = os.environ.get("TF_LSTM_OPS_INFERENCE_LIBRARY")
    spec = importlib.util.find_spec("tf_lstm_ops")
    assert spec and spec.origin
    return Path(override or Path(spec.origin).parent / "_lib" / "libtf_lstm_ops_inference.so")


def load(path: Path) -> ctypes.CDLL:
    """The library, with the types of its functions."""
    library = ctypes.CDLL(os.fspath(path))
    for name, arguments in FUNCTIONS.items():
        function = getattr(library, f"tf_lstm_ops_{name}")
        function.argtypes, function.restype = arguments, c_int32
    for name in ("session_close", "stream_close"):
        function = getattr(library, f"tf_lstm_ops_{name}")
        function.argtypes, function.restype = [c_void_p], None
    library.tf_lstm_ops_code_text.restype = c_char_p
    library.tf_lstm_ops_selected_instruction_set.restype = c_char_p
    return library


class CallError(Exception):
    """A call failed: its code and its text, and the struct."""

    def __init__(self, error: Error):
        self.error, self.code, self.text = error, error.code, error.text.decode()
        super().__init__(f"{self.code}: {self.text}")


def call(library: ctypes.CDLL, name: str, *arguments) -> None:
    """Calls a function with an error struct behind the arguments."""
    error = Error(struct_size=ctypes.sizeof(Error))
    code = getattr(library, f"tf_lstm_ops_{name}")(*arguments, byref(error))
    assert code == error.code
    if code != OK:
        raise CallError(error)


def aligned(data: bytes) -> np.ndarray:
    """A copy of bytes whose address is a multiple of 64."""
    buffer = np.empty(len(data) + 64, np.uint8)
    copy = buffer[-buffer.ctypes.data % 64 :][: len(data)]
    copy[:] = np.frombuffer(data, np.uint8)
    return copy


def as_struct(array: np.ndarray, mask: np.ndarray | None = None) -> Array:
    """An array of a call. It and its mask, of bytes, must outlive the struct."""
    struct = Array(struct_size=ctypes.sizeof(Array), rank=array.ndim, data=array.ctypes.data)
    struct.type = int(array.dtype == np.int32)
    struct.shape[: array.ndim] = array.shape
    struct.mask = None if mask is None else mask.ctypes.data
    return struct


def empty_structs(count: int) -> ctypes.Array[Array]:
    return (Array * count)(*[Array(struct_size=ctypes.sizeof(Array))] * count)


def call_arrays(
    library: ctypes.CDLL, name: str, handle: c_void_p, inputs: list[Array], y: list[np.ndarray]
) -> None:
    """Calls *_run_arrays, which writes to `y`."""
    outputs = [as_struct(array) for array in y]
    arguments = ((Array * len(inputs))(*inputs), len(inputs))
    call(library, name, handle, *arguments, (Array * len(y))(*outputs), len(y))


class Session:
    """A session of the bytes of a file, or of a path."""

    def __init__(self, library: ctypes.CDLL, source: bytes | Path, threads: int = 1):
        self.library, self.handle = library, c_void_p()
        options = Options(ctypes.sizeof(Options), threads)
        if isinstance(source, bytes):
            self.data = aligned(source)
            arguments = (self.data.ctypes.data, len(source))
            call(library, "session_open_data", *arguments, byref(options), byref(self.handle))
        else:
            path = os.fsencode(source)
            call(library, "session_open", path, byref(options), byref(self.handle))

    def close(self) -> None:
        self.library.tf_lstm_ops_session_close(self.handle)
        self.handle = c_void_p()

    def __del__(self) -> None:
        self.close()

    @property
    def info(self) -> Info:
        info = Info(struct_size=ctypes.sizeof(Info))
        call(self.library, "session_get_info", self.handle, byref(info))
        return info

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        data, size = c_void_p(), c_uint64()
        call(self.library, "session_get_data", self.handle, byref(data), byref(size))
        return ctypes.string_at(data, size.value)

    def __call__(self, x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        x = np.ascontiguousarray(x, np.float32)
        batch, time, _ = x.shape
        info = self.info
        steps = [time] if info.returns_sequence else []
        y = np.full([batch, *steps, info.output_size], np.nan, np.float32)
        mask = None if mask is None else np.ascontiguousarray(mask, np.uint8)
        pointer = None if mask is None else mask.ctypes.data
        arguments = (batch, time, x.ctypes.data, pointer, y.ctypes.data, y.size)
        call(self.library, "session_run", self.handle, *arguments)
        return y

    def run(
        self, inputs: list[np.ndarray], masks: list[np.ndarray | None] | None = None
    ) -> list[np.ndarray]:
        """All outputs from all inputs, which are contiguous and of the type of the input."""
        masks = [None] * len(inputs) if masks is None else masks
        valid = [None if mask is None else np.ascontiguousarray(mask, np.uint8) for mask in masks]
        x = [as_struct(array, mask) for array, mask in zip(inputs, valid, strict=True)]
        found = empty_structs(self.info.output_count)
        arguments = ((Array * len(x))(*x), len(x), found, len(found))
        call(self.library, "session_infer_shapes", self.handle, *arguments)
        y = [np.full(struct.sizes, np.nan, np.float32) for struct in found]
        call_arrays(self.library, "session_run_arrays", self.handle, x, y)
        return y


class Stream:
    def __init__(self, session: Session, batch: int = 1):
        self.session, self.library, self.batch = session, session.library, batch
        self.handle, self.info = c_void_p(), session.info
        call(self.library, "stream_open", session.handle, batch, byref(self.handle))

    def __del__(self) -> None:
        self.library.tf_lstm_ops_stream_close(self.handle)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """x: [batch, steps, I]."""
        x = np.ascontiguousarray(x, np.float32)
        steps = x.shape[1]
        outputs = [steps] if self.info.returns_sequence else []
        y = np.full([self.batch, *outputs, self.info.output_size], np.nan, np.float32)
        arguments = (steps, x.ctypes.data, x.size, y.ctypes.data, y.size)
        call(self.library, "stream_run", self.handle, *arguments)
        return y

    def run(self, inputs: list[np.ndarray], shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
        """All outputs, of these shapes, from all inputs [batch, steps, ...]."""
        y = [np.full(shape, np.nan, np.float32) for shape in shapes]
        x = [as_struct(array) for array in inputs]
        call_arrays(self.library, "stream_run_arrays", self.handle, x, y)
        return y

    def reset(self, rows: list[int] | None = None) -> None:
        array = None if rows is None else np.array(rows, np.int64)
        pointer = None if array is None else array.ctypes.data
        count = 0 if array is None else array.size
        call(self.library, "stream_reset", self.handle, pointer, count)

    @property
    def state(self) -> np.ndarray:
        state = np.full([self.batch * self.info.state_size], np.nan, np.float32)
        arguments = (state.ctypes.data, state.size)
        call(self.library, "stream_get_state", self.handle, *arguments)
        return state

    @state.setter
    def state(self, state: np.ndarray) -> None:
        state = np.ascontiguousarray(state, np.float32)
        arguments = (state.ctypes.data, state.size)
        call(self.library, "stream_set_state", self.handle, *arguments)
