"""Objective-C messages from Python, for the tests of the fake frameworks.

``objects("MPSGraph")("alloc")("init")`` sends messages; an exception becomes an `ObjectiveCError`.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

# MPSDataType of NumPy's types.
DATA_TYPES = {
    "float32": 0x10000020,
    "float16": 0x10000010,
    "bfloat16": 0x90000010,
    "int32": 0x20000020,
    "bool": 0x80000008,
}


class ObjectiveCError(Exception):
    """An Objective-C exception, with its reason."""


class Id:
    """An object; calling it sends a message."""

    def __init__(self, runtime: Runtime, pointer: int) -> None:
        self.runtime, self.pointer = runtime, pointer

    def __call__(self, selector: str, *arguments: Any) -> Id | None:
        """The object that a method returns, or None."""
        pointer = self.integer(selector, *arguments)
        return Id(self.runtime, pointer) if pointer else None

    def integer(self, selector: str, *arguments: Any) -> int:
        """The result of a method that returns an integer or a pointer."""
        return self.runtime.send(self.pointer, selector, *arguments)

    def __iter__(self):
        """The elements of an NSArray."""
        for k in range(self.integer("count")):
            yield self("objectAtIndex:", k)


class Runtime:
    """The library of the fake frameworks."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.fake_class.restype = ctypes.c_void_p
        self._library.fake_send.restype = ctypes.c_char_p
        self._library.fake_count.restype = ctypes.c_long
        self._library.fake_new_pool.restype = ctypes.c_void_p
        self._library.MTLCreateSystemDefaultDevice.restype = ctypes.c_void_p

    @contextlib.contextmanager
    def pool(self) -> Iterator[None]:
        """An autorelease pool."""
        pool = ctypes.c_void_p(self._library.fake_new_pool())
        yield
        self._library.fake_drain(pool)

    def __call__(self, name: str) -> Id:
        """A class."""
        return Id(self, self._library.fake_class(name.encode()))

    def device(self) -> Id:
        return Id(self, self._library.MTLCreateSystemDefaultDevice())

    def count(self, name: str) -> int:
        return self._library.fake_count(name.encode())

    def fail_next_command_buffer(self) -> None:
        self._library.fake_fail_next_command_buffer()

    def send(self, receiver: int, selector: str, *arguments: Any) -> int:
        values = [self._value(a) for a in arguments]
        addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        result = ctypes.c_int64()
        address, name = ctypes.c_void_p(receiver), selector.encode()
        send, to = self._library.fake_send, ctypes.byref(result)
        reason = send(address, name, addresses, len(values), to)
        if reason is not None:
            raise ObjectiveCError(reason.decode())
        return result.value

    def array(self, elements: Sequence[Any]) -> Id:
        """An NSArray of objects, or of NSNumbers."""
        array, number = self("NSMutableArray")("array"), self("NSNumber")
        for one in elements:
            array("addObject:", one if isinstance(one, Id) else number("numberWithLongLong:", one))
        return array

    @staticmethod
    def _value(argument: Any) -> Any:
        if argument is None:
            return ctypes.c_void_p()
        if isinstance(argument, Id):
            return ctypes.c_void_p(argument.pointer)
        return (ctypes.c_double if isinstance(argument, float) else ctypes.c_int64)(argument)


class Graph:
    """An MPSGraph and the values of its placeholders."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.id = runtime("MPSGraph")("alloc")("init")
        self.queue = runtime.device()("newCommandQueue")
        self._owned = [self.id, self.queue]
        self.feeds = runtime("NSMutableDictionary")("dictionary")

    def placeholder(self, value: Any) -> Id:
        array = np.asarray(value)
        data_type = DATA_TYPES[array.dtype.name]
        tensor = self("placeholderWithShape:dataType:name:", array.shape, data_type)
        self.feeds("setObject:forKey:", self.data(self.buffer(array), array), tensor)
        return tensor

    def __call__(self, selector: str, *arguments: Any) -> Id:
        """Adds an operation without a name. Arrays become placeholders, and tuples NSArrays."""
        name = [None] if selector.endswith("name:") else []
        return self.id(selector, *map(self._converted, arguments), *name)

    def _converted(self, argument: Any) -> Any:
        if isinstance(argument, tuple):
            return self.runtime.array([self._converted(a) for a in argument])
        return self.placeholder(argument) if isinstance(argument, np.ndarray) else argument

    def value(self, selector: str, *arguments: Any) -> np.ndarray:
        """The value of an operation."""
        [value] = self.run([self(selector, *arguments)])
        return value

    def buffer(self, array: np.ndarray) -> Id:
        """A new buffer with the values."""
        data = np.ascontiguousarray(array)
        buffer = self.runtime.device()(
            "newBufferWithBytes:length:options:", data.ctypes.data, data.nbytes, 0
        )
        self._owned.append(buffer)
        return buffer

    def data(self, buffer: Id | None, like: np.ndarray) -> Id:
        shape, data_type = self.runtime.array(like.shape), DATA_TYPES[like.dtype.name]
        data = self.runtime("MPSGraphTensorData")("alloc")
        data = data("initWithMTLBuffer:shape:dataType:", buffer, shape, data_type)
        self._owned.append(data)
        return data

    def release(self) -> None:
        """Releases the graph, its queue and all buffers."""
        for owned in self._owned:
            owned("release")

    def results(self, data: dict[Id, Id]) -> Id:
        """A dictionary of tensors and their data."""
        dictionary = self.runtime("NSMutableDictionary")("dictionary")
        for tensor, value in data.items():
            dictionary("setObject:forKey:", value, tensor)
        return dictionary

    def encode(self, data: dict[Id, Id]) -> Id:
        """An uncommitted command buffer with the graph."""
        commands = self.runtime("MPSCommandBuffer")("commandBufferFromCommandQueue:", self.queue)
        self.encode_to(commands, self.results(data), level=0)
        return commands

    def encode_to(self, commands: Id, results: Id, level: int | None) -> None:
        """Encodes the graph with an optimisation level; None: without a descriptor."""
        execution = None
        if level is not None:
            execution = self.runtime("MPSGraphExecutionDescriptor")("new")
            compilation = self.runtime("MPSGraphCompilationDescriptor")("new")
            self._owned += [execution, compilation]
            compilation("setOptimizationLevel:", level)
            execution("setCompilationDescriptor:", compilation)
        name = "encodeToCommandBuffer:feeds:targetOperations:resultsDictionary:executionDescriptor:"
        self(name, commands, self.feeds, None, results, execution)

    def run(self, tensors: Sequence[Id]) -> list[np.ndarray]:
        """The values of tensors."""
        arrays = [np.zeros(shape_of(tensor), type_of(tensor)) for tensor in tensors]
        buffers = [self.buffer(a) for a in arrays]
        data = [self.data(b, a) for b, a in zip(buffers, arrays, strict=True)]
        commands = self.encode(dict(zip(tensors, data, strict=True)))
        commands("commit")
        commands("waitUntilCompleted")
        return [values(b, a) for b, a in zip(buffers, arrays, strict=True)]


def shape_of(tensor: Id) -> tuple[int, ...]:
    return tuple(size.integer("longLongValue") for size in tensor("shape"))


def type_of(tensor: Id) -> np.dtype:
    data_type = tensor.integer("dataType") & 0xFFFFFFFF
    [name] = [name for name, value in DATA_TYPES.items() if value == data_type]
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def values(buffer: Id, like: np.ndarray) -> np.ndarray:
    """The content of a buffer."""
    memory = ctypes.string_at(buffer.integer("contents"), like.nbytes)
    return np.frombuffer(memory, like.dtype).reshape(like.shape)
