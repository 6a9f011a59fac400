"""What the reader of session files rejects in weights of int8."""

import dataclasses
import struct
from typing import Any

import numpy as np
import pytest

from session import c_library as c
from session import graphs, layers
from session import session_file as f

INPUTS, UNITS = 3, 2
SCALES, INTEGERS = 0, 4 * UNITS  # in the bytes of the kernel


@pytest.fixture(scope="module")
def library() -> Any:
    return c.load(c.path())


def dense(inputs: int = INPUTS, weights: int = f.INT8) -> bytes:
    """A file with one layer. Its last array is the kernel."""
    b = graphs.Builder(np.random.default_rng(0), f.Input([inputs]))
    layer = layers.dense(b.rng, inputs, UNITS, has_bias=False)
    return f.write_graph(b.graph(b.one(dataclasses.replace(layer, weights=weights), 0)))


def assert_rejected(library: Any, data: bytes, text: str) -> None:
    with pytest.raises(c.CallError) as caught:
        c.Session(library, data)
    assert caught.value.code == c.DATA_LOSS
    assert caught.value.text == text


def patched(at: int, value: bytes) -> tuple[bytes, int]:
    """A file with other bytes in its kernel, and the offset of the kernel."""
    data = bytearray(dense())
    kernel = len(data) - f.ALIGNMENT
    data[kernel + at : kernel + at + len(value)] = value
    return bytes(data), kernel


def test_the_file_is_valid(library: Any) -> None:
    c.Session(library, dense())


@pytest.mark.parametrize("k", range(INPUTS * UNITS))
def test_minus_128(library: Any, k: int) -> None:
    data, kernel = patched(INTEGERS + k, struct.pack("b", -128))
    message = "offset of array kernel of direction 0 is {}, an integer must not be -128"
    assert_rejected(library, data, f"layer 0: {message.format(kernel)}")


@pytest.mark.parametrize("k", range(UNITS))
@pytest.mark.parametrize("scale", [np.nan, np.inf, -np.inf, -1e-30])
def test_scales(library: Any, k: int, scale: float) -> None:
    data, kernel = patched(SCALES + 4 * k, struct.pack("<f", scale))
    message = "offset of array kernel of direction 0 is {}, a scale must be finite and not negative"
    assert_rejected(library, data, f"layer 0: {message.format(kernel)}")


def test_rows(library: Any) -> None:
    c.Session(library, dense(65536))
    message = "the number of rows of a matrix of int8 is 65537, must be from 1 to 65536"
    assert_rejected(library, dense(65537), f"layer 0: {message}")


def test_types(library: Any) -> None:
    """Of a layer with a product, of another layer, and of version 1."""
    assert_rejected(library, dense(weights=4), "layer 0: weights is 4, must be from 0 to 3")
    first, second = (
        dataclasses.replace(layer, weights=f.INT8)
        for layer in (layers.dense(np.random.default_rng(0), 3, 2), graphs.function_layer("relu"))
    )
    b = graphs.Builder(np.random.default_rng(0), f.Input([3]))
    message = "layer 0: weights is 2, must be 0"
    assert_rejected(library, f.write_graph(b.graph(b.one(second, 0))), message)
    assert_rejected(library, f.write([first]), message)
