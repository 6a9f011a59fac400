"""What the C library of sessions writes to tf_lstm_ops_error beside code and text."""

import ctypes
import struct
from ctypes import byref, c_void_p

import numpy as np
import pytest

from session import c_library as c
from session import layers
from session import session_file as f

NO_REASON, NOT_A_SESSION_FILE = 0, 1


@pytest.fixture(scope="module")
def library():
    return c.load(c.path())


@pytest.fixture
def rng():
    return np.random.default_rng(54)


def error_of(function, *arguments):
    with pytest.raises(c.CallError) as caught:
        function(*arguments)
    return caught.value.error


@pytest.mark.parametrize("size", [0, 4, 8, 16, 255, 256, 260, 267, 272, 300])
def test_errors_are_written_as_far_as_their_size_goes(library, size):
    memory = (ctypes.c_uint8 * 400)(*[0xEE] * 400)
    error = ctypes.cast(memory, ctypes.POINTER(c.Error))
    error.contents.struct_size = size
    code = library.tf_lstm_ops_session_open(None, None, byref(c_void_p()), error)
    assert code == c.INVALID_ARGUMENT
    written = bytes(memory)[4:]
    if size < 8:
        assert written == b"\xee" * 396
    elif size < 256:
        assert written == struct.pack("<i", code) + b"\xee" * 392
    else:
        assert error.contents.text == b"path is null"
        more = struct.pack("<4i", 0, -1, 0, 0)[: (size - 256) // 4 * 4]
        assert written[252:] == more + b"\xee" * (144 - len(more))
    assert library.tf_lstm_ops_session_open(None, None, byref(c_void_p()), None) == code


@pytest.mark.parametrize("size", [1, 7, 8, 63, 64, 640])
def test_other_bytes_are_not_a_file_of_a_session(library, size):
    error = error_of(c.Session, library, bytes(range(64)) * 10 if size == 640 else b"x" * size)
    assert (error.code, error.reason, error.layer) == (c.DATA_LOSS, NOT_A_SESSION_FILE, -1)


@pytest.mark.parametrize("size", [0, 4, 8, 63, 64, 128])
def test_a_part_of_a_file_has_no_reason(library, rng, size):
    error = error_of(c.Session, library, f.write(layers.chain("lstm", rng))[:size])
    assert (error.code, error.reason, error.layer) == (c.DATA_LOSS, NO_REASON, -1)


def about(error):
    """The layer of an error, and the text around its number."""
    text = error.text
    begin, end = error.layer_begin, error.layer_end
    return error.layer, text[:begin].decode(), text[begin:end].decode(), text[end:].decode()


def test_a_wrong_field_names_its_layer(library, rng):
    data = bytearray(f.write(layers.chain("lstm", rng)))
    struct.pack_into("<I", data, 64 + 4, 99)  # the cell of layer 0
    layer, before, label, behind = about(error_of(c.Session, library, bytes(data)))
    assert (layer, before, label) == (0, "", "layer 0")
    assert behind == ": cell is 99, must be from 1 to 6"


def test_shapes_that_do_not_fit_name_their_layer(library, rng):
    first = layers.recurrent(rng, f.LSTM, layers.INPUTS, 4)
    second = layers.recurrent(rng, f.LSTM, 3, 4)
    error = error_of(c.Session, library, f.write([first, second]))
    layer, before, label, behind = about(error)
    assert (layer, before, label) == (1, "", "layer 1") and behind.startswith(" (recurrent): ")


def test_the_layer_that_cannot_stream_is_named(library, rng):
    first = layers.recurrent(rng, f.LSTM, layers.INPUTS, 4)
    last = layers.recurrent(rng, f.LSTM, 4, 4, directions=f.BACKWARDS)
    session = c.Session(library, f.write([first, last]))
    layer, before, label, behind = about(error_of(c.Stream, session))
    assert before == "the session cannot stream: a layer reads the sequence backwards: "
    assert (layer, label, behind) == (1, "layer 1 of the file, counted from 0", "")


def test_other_errors_are_about_no_layer(library, rng):
    session = c.Session(library, f.write(layers.chain("lstm", rng)))
    assert about(error_of(c.Stream, session, 0)) == (-1, "", "", "batch is 0, must be 1 or more")
