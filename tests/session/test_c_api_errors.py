"""What the C library of sessions rejects, and with which words."""

import struct
from ctypes import byref, c_uint64, c_void_p

import numpy as np
import pytest

from session import c_library as c
from session import layers
from session import session_file as f


@pytest.fixture(scope="module")
def library():
    return c.load(c.path())


@pytest.fixture
def rng():
    return np.random.default_rng(54)


@pytest.fixture
def session(library, rng):
    return c.Session(library, f.write(layers.chain("lstm", rng)))


def fails(code, text, function, *arguments):
    with pytest.raises(c.CallError) as caught:
        function(*arguments)
    assert caught.value.code == code
    assert text in caught.value.text


HEADER_FIELDS = {"version": 8, "layer_count": 12, "file_size": 16, "input_size": 24}
RECORD_FIELDS = {
    "kind": (0, "I"),
    "cell": (4, "I"),
    "directions": (8, "I"),
    "merge": (12, "I"),
    "activation": (16, "I"),
    "recurrent_activation": (20, "I"),
    "flags": (24, "I"),
    "input_size": (32, "Q"),
    "units": (40, "Q"),
    "hidden_size": (48, "Q"),
    "number": (56, "d"),
    "epsilon": (64, "d"),
    "proj_clip": (232, "d"),
}


def patched(data, offset, layout, value):
    copy = bytearray(data)
    struct.pack_into("<" + layout, copy, offset, value)
    return bytes(copy)


@pytest.mark.parametrize(
    ("field", "value", "code", "text"),
    [
        ("version", 0, c.DATA_LOSS, "version is 0, must be from 1 to 2"),
        ("version", 3, c.UNIMPLEMENTED, "version is 3, this library reads versions up to 2"),
        ("layer_count", 0, c.DATA_LOSS, "layer_count is 0, must be from 1 to 1024"),
        ("layer_count", 1025, c.DATA_LOSS, "layer_count is 1025, must be from 1 to 1024"),
        ("layer_count", 1000, c.DATA_LOSS, "must be at least 256064 for 1000 layers"),
        ("layer_count", 2, c.DATA_LOSS, "layer 1: kind is "),
        ("file_size", 64, c.DATA_LOSS, "file_size is 64, the file has"),
        ("input_size", 0, c.DATA_LOSS, "input_size is 0, must be from 1 to 16777216"),
        ("input_size", 2**24 + 1, c.DATA_LOSS, "input_size is 16777217, must be from 1"),
        (
            "input_size",
            6,
            c.DATA_LOSS,
            "layer 0 (recurrent): its input's last axis is 6, must be 5",
        ),
    ],
)
def test_header(library, rng, field, value, code, text):
    layout = "I" if field in ("version", "layer_count") else "Q"
    data = patched(f.write(layers.chain("lstm", rng)), HEADER_FIELDS[field], layout, value)
    fails(code, text, c.Session, library, data)


LARGEST = "must be from 1 to 16777216"


@pytest.mark.parametrize(
    ("name", "field", "value", "text"),
    [
        ("lstm", "kind", 0, "kind is 0, must be from 1 to 4"),
        ("lstm", "kind", 5, "kind is 5, must be from 1 to 4"),
        ("lstm", "cell", 0, "cell is 0, must be from 1 to 6"),
        ("lstm", "cell", 7, "cell is 7, must be from 1 to 6"),
        ("simple rnn", "activation", 3, "activation is 3, must be from 1 to 2"),
        ("simple rnn", "recurrent_activation", 3, "recurrent_activation is 3, must be 0"),
        ("dense only", "cell", 1, "cell is 1, must be 0"),
        ("lstm", "directions", 0, "directions is 0, must be from 1 to 3"),
        ("lstm", "directions", 4, "directions is 4, must be from 1 to 3"),
        ("dense only", "directions", 1, "directions is 1, must be 0"),
        ("lstm", "merge", 1, "merge is 1, must be 0"),
        ("both", "merge", 0, "merge is 0, must be from 1 to 4"),
        ("both", "merge", 5, "merge is 5, must be from 1 to 4"),
        ("dense only", "merge", 1, "merge is 1, must be 0"),
        ("lstm", "activation", 11, "activation is 11, must be from 0 to 10"),
        ("layer norm gru", "activation", 1, "activation is 1, must be 2"),
        ("dense only", "activation", 12, "activation is 12, must be 0 to 10 or 16 to 34"),
        ("masking", "activation", 1, "activation is 1, must be 0"),
        ("lstm", "recurrent_activation", 11, "recurrent_activation is 11, must be from 0 to 10"),
        ("layer norm gru", "recurrent_activation", 2, "recurrent_activation is 2, must be 3"),
        ("dense only", "recurrent_activation", 1, "recurrent_activation is 1, must be 0"),
        ("lstm", "flags", 5, "flags is 5, may contain the bits of 3 only"),
        ("backwards", "flags", 16, "flags is 16, may contain the bits of 11 only"),
        ("layer norm lstm", "flags", 8, "flags is 8, may contain the bits of 7 only"),
        ("dense only", "flags", 1, "flags is 1, may contain the bits of 0 only"),
        ("lstm", "units", 0, f"units is 0, {LARGEST}"),
        ("lstm", "units", 2**24 + 1, f"units is 16777217, {LARGEST}"),
        ("lstm", "units", 2**63, f"units is 9223372036854775808, {LARGEST}"),
        ("masking", "units", 4, "units is 4, must be 5"),
        ("lstm", "hidden_size", 0, "hidden_size is 0, must be from 1 to 7"),
        ("lstm", "hidden_size", 8, "hidden_size is 8, must be from 1 to 7"),
        ("gru", "hidden_size", 6, "hidden_size is 6, must be 7"),
        ("dense only", "hidden_size", 2, "hidden_size is 2, must be 3"),
        ("lstm", "number", -1.0, "number is -1, must be 0 or a positive finite float"),
        ("lstm", "number", np.nan, "number is nan, must be 0 or"),
        ("masking", "number", np.inf, "number is inf, must be a finite float"),
        ("gru", "number", 1.0, "number is 1, must be 0"),
        ("lstm", "proj_clip", 1.0, "proj_clip is 1, must be 0"),
        ("gru", "proj_clip", 1.0, "proj_clip is 1, must be 0"),
        ("lstm with a projection", "proj_clip", -1.0, "proj_clip is -1, must be 0 or a positive f"),
        ("lstm with a projection", "proj_clip", np.nan, "proj_clip is nan, must be 0 or"),
        ("lstm with a projection", "proj_clip", 1e39, "proj_clip is 1e+39, must be 0 or"),
        ("lstm", "epsilon", 1e-3, "epsilon is 0.001, must be 0"),
        ("layer norm gru", "epsilon", 0.0, "epsilon is 0, must be a positive finite float"),
        ("layer norm gru", "epsilon", np.nan, "epsilon is nan, must be"),
        ("layer norm gru", "epsilon", 1e-300, "epsilon is 1e-300, must be"),
    ],
)
def test_records(library, rng, name, field, value, text):
    offset, layout = RECORD_FIELDS[field]
    data = patched(f.write(layers.chain(name, rng)), 64 + offset, layout, value)
    fails(c.DATA_LOSS, "layer 0: " + text, c.Session, library, data)


@pytest.mark.parametrize(
    ("name", "direction", "array", "offset", "text"),
    [
        ("lstm", 0, "kernel", 0, "is 0, the array must be present"),
        ("lstm", 0, "recurrent_kernel", 0, "is 0, the array must be present"),
        ("lstm", 0, "kernel", 32, "is 32, must be a multiple of 64"),
        ("lstm", 0, "kernel", 256, "is 256, must lie behind the records"),
        ("lstm", 0, "kernel", 2**40, "bytes must end within the file's"),
        ("lstm", 0, "kernel", 2**64 - 64, "its 560 bytes must end within the file's"),
        ("lstm", 0, "recurrent_bias", 320, "must be 0 in this layer"),
        ("lstm", 0, "projection", 320, "must be 0 in this layer"),
        ("lstm", 0, "input_gamma", 320, "must be 0 in this layer"),
        ("lstm", 0, "state_beta", 320, "must be 0 in this layer"),
        ("lstm", 1, "kernel", 320, "of direction 1 is 320, must be 0 in this layer"),
        ("lstm with a projection", 0, "projection", 0, "the array must be present"),
        ("both", 1, "recurrent_kernel", 0, "of direction 1 is 0, the array must be present"),
        ("gru", 0, "peephole", 320, "must be 0 in this layer"),
        ("gru, reset before", 0, "recurrent_bias", 320, "must be 0 in this layer"),
        ("layer norm lstm", 0, "state_gamma", 0, "the array must be present"),
        ("layer norm gru", 0, "recurrent_gamma", 0, "the array must be present"),
        ("layer norm gru", 0, "state_gamma", 320, "must be 0 in this layer"),
        ("dense only", 0, "kernel", 0, "the array must be present"),
        ("dense only", 0, "recurrent_kernel", 320, "must be 0 in this layer"),
        ("masking", 0, "kernel", 640, "must be 0 in this layer"),
    ],
)
def test_arrays(library, rng, name, direction, array, offset, text):
    at = 64 + 72 + 8 * (direction * len(f.ARRAYS) + f.ARRAYS.index(array))
    data = patched(f.write(layers.chain(name, rng)), at, "Q", offset)
    fails(c.DATA_LOSS, f"offset of array {array} of direction", c.Session, library, data)
    fails(c.DATA_LOSS, text, c.Session, library, data)


@pytest.mark.parametrize(("width", "is_valid"), [(5, True), (20, False)])
def test_arrays_that_overlap(library, rng, width, is_valid):
    """Two layers share a kernel. Without a bound a small file could need any amount of memory."""
    layer = layers.dense(rng, width, width, has_bias=False)
    first = f.HEADER.size + 2 * f.RECORD.size
    data = f.write([layer, layer])
    size = first + (len(data) - first) // 2
    second_kernel = f.HEADER.size + f.RECORD.size + 72
    shared = patched(patched(data[:size], 16, "Q", size), second_kernel, "Q", first)
    if is_valid:  # two kernels of 100 bytes in a file of 704
        x = rng.standard_normal((2, 3, width)).astype(np.float32)
        want = c.Session(library, data)(x)
        np.testing.assert_array_equal(c.Session(library, shared)(x), want)
    else:  # two of 1600 bytes in a file of 2176
        text = (
            "layer 1: offset of array kernel of direction 0 is 576, all arrays must not have more"
        )
        fails(c.DATA_LOSS, text, c.Session, library, shared)


@pytest.mark.parametrize("offset", [0, 7, 32, 63, 64 + 28, 64 + 31, 64 + 240, 64 + 255])
def test_magic_and_reserved_bytes(library, rng, offset):
    data = f.write(layers.chain("lstm", rng))
    data = patched(data, offset, "B", data[offset] ^ 1)
    of_types = range(92, 96)  # version 2 has the type of the weights there
    text = "weights is" if offset in of_types else "a reserved byte is not 0"
    text = "magic is not" if offset < 8 else text
    fails(c.DATA_LOSS, text, c.Session, library, data)


def test_order_of_layers(library, rng):
    width = layers.INPUTS
    last = layers.recurrent(rng, f.LSTM, width, width, flags=0)
    for kind, wrong in (
        ("recurrent", layers.recurrent(rng, f.GRU, width, 3)),
        ("masking", layers.masking(width)),
    ):
        data = f.write([last, layers.dense(rng, width, width), wrong])
        text = f"layer 2 ({kind}): its input has 2 axes, must have 3"
        fails(c.DATA_LOSS, text, c.Session, library, data)


@pytest.mark.parametrize("size", [1, 63, 64, 319, 320, 640])
def test_cut_files(library, rng, size, tmp_path):
    data = f.write(layers.chain("lstm", rng))[:size]
    fails(c.DATA_LOSS, "bytes", c.Session, library, data)
    path = tmp_path / "cut"
    path.write_bytes(data)
    fails(c.DATA_LOSS, "bytes", c.Session, library, path)


def test_files_that_cannot_be_read(library, tmp_path):
    fails(c.NOT_FOUND, "cannot open the file", c.Session, library, tmp_path / "none")
    fails(c.NOT_FOUND, "not a regular file", c.Session, library, tmp_path)
    empty = tmp_path / "empty"
    empty.touch()
    fails(c.DATA_LOSS, "the file has 0 bytes", c.Session, library, empty)


def test_random_bytes(library, rng):
    """One or more changed bytes: the file is rejected, or the session runs."""
    names = [
        "lstm with a projection and peepholes",
        "masking, last step",
        "both",
        "layer norm lstm",
    ]
    x = np.ones((1, 2, layers.INPUTS), np.float32)
    opened = 0
    for name in names:
        data = f.write(layers.chain(name, rng))
        records = 64 + 256 * struct.unpack_from("<I", data, 12)[0]
        for _ in range(500):
            copy = bytearray(data)
            for _ in range(rng.integers(1, 4)):
                copy[rng.integers(0, records)] = rng.choice([0, 1, 2, 64, 128, 255])
            try:
                session = c.Session(library, bytes(copy))
            except c.CallError as error:
                assert error.code in (c.DATA_LOSS, c.UNIMPLEMENTED) and error.text
            else:
                opened += 1
                if session.info.input_size == layers.INPUTS:
                    session(x)
    assert opened > 0


def test_null_arguments(library, session):
    null, handle = c_void_p(), c_void_p()
    size = np.zeros(1, np.float32).ctypes.data
    stream = c.Stream(session)
    for text, name, *arguments in (
        ("session is null", "session_open", b"x", None, None),
        ("path is null", "session_open", None, None, byref(handle)),
        ("data is null", "session_open_data", None, 64, None, byref(handle)),
        ("session is null", "session_get_info", null, byref(c.Info(64))),
        ("info is null", "session_get_info", session.handle, None),
        ("session is null", "session_get_data", null, byref(c_void_p()), byref(c_uint64())),
        ("data is null", "session_get_data", session.handle, None, byref(c_uint64())),
        ("size is null", "session_get_data", session.handle, byref(c_void_p()), None),
        ("session is null", "session_run", null, 1, 1, size, None, size, 1),
        ("x is null", "session_run", session.handle, 1, 1, None, None, size, 7),
        ("y is null", "session_run", session.handle, 1, 1, size, None, None, 7),
        ("session is null", "stream_open", null, 1, byref(handle)),
        ("stream is null", "stream_open", session.handle, 1, None),
        ("stream is null", "stream_run", null, 1, size, 5, size, 7),
        ("x is null", "stream_run", stream.handle, 1, None, 5, size, 7),
        ("y is null", "stream_run", stream.handle, 1, size, 5, None, 7),
        ("stream is null", "stream_reset", null, None, 0),
        ("must be 0 because rows is null", "stream_reset", stream.handle, None, 1),
        ("state is null", "stream_get_state", stream.handle, None, 14),
        ("state is null", "stream_set_state", stream.handle, None, 14),
    ):
        fails(c.INVALID_ARGUMENT, text, c.call, library, name, *arguments)
    library.tf_lstm_ops_session_close(None)
    library.tf_lstm_ops_stream_close(None)


def test_wrong_sizes(library, session):
    array = np.zeros(1000, np.float32)
    p, stream = array.ctypes.data, c.Stream(session, 2)
    rows = np.array([0, 2], np.int64)
    for text, name, *arguments in (
        ("batch is -1, must not be negative", "session_run", -1, 1, p, None, p, 7),
        ("time is -2, must not be negative", "session_run", 1, -2, p, None, p, 7),
        ("y_count is 8, must be 7", "session_run", 1, 1, p, None, p, 8),
        ("y_count is 7, must be 42", "session_run", 2, 3, p, None, p, 7),
        ("too large for arrays", "session_run", 2**40, 2**40, p, None, p, 7),
        ("too large for arrays", "session_run", 2**62, 1, p, None, p, 7),
        ("batch is 0, must be 1 or more", "stream_open", 0, byref(c_void_p())),
        ("too large for arrays", "stream_open", 2**60, byref(c_void_p())),
        ("steps is 0, must be 1 or more", "stream_run", 0, p, 0, p, 0),
        ("steps is 4611686018427387904, too large", "stream_run", 2**62, p, 10, p, 14),
        ("x_count is 9, must be 10", "stream_run", 1, p, 9, p, 14),
        ("y_count is 15, must be 14", "stream_run", 1, p, 10, p, 15),
        ("count is -1, must be 0 or more", "stream_reset", rows.ctypes.data, -1),
        ("rows[1] is 2, must be from 0 to 1", "stream_reset", rows.ctypes.data, 2),
        ("count is 14, must be 28", "stream_get_state", p, 14),
        ("count is 29, must be 28", "stream_set_state", p, 29),
    ):
        is_of_session = name in ("session_run", "stream_open")
        handle = session.handle if is_of_session else stream.handle
        fails(c.INVALID_ARGUMENT, text, c.call, library, name, handle, *arguments)


def test_a_failed_call_writes_nothing(library, session, rng):
    stream = c.Stream(session)
    stream(rng.standard_normal((1, 3, 5)))
    state, y = stream.state, np.full(7, 3, np.float32)
    x = np.zeros(5, np.float32)
    arguments = (stream.handle, 1, x.ctypes.data, 5, y.ctypes.data, 6)
    fails(c.INVALID_ARGUMENT, "y_count", c.call, library, "stream_run", *arguments)
    arguments = (session.handle, 1, 1, x.ctypes.data, None, y.ctypes.data, 6)
    fails(c.INVALID_ARGUMENT, "y_count", c.call, library, "session_run", *arguments)
    assert (y == 3).all()
    np.testing.assert_array_equal(stream.state, state)


def test_no_stream_of_a_layer_that_reads_backwards(library, rng):
    for name in ("backwards", "both"):
        session = c.Session(library, f.write(layers.chain(name, rng)))
        fails(c.INVALID_ARGUMENT, "a layer reads the sequence backwards", c.Stream, session)


def test_options(library, rng):
    data = f.write(layers.chain("lstm", rng))
    for threads in (-1, 257):
        text = f"options.threads is {threads}, must be from 0 to 256"
        fails(c.INVALID_ARGUMENT, text, c.Session, library, data, threads)
    assert c.Session(library, data, 256).info.threads == 256
    copy, handle = c.aligned(data), c_void_p()
    arguments = (copy.ctypes.data, len(data))
    for size, code in ((0, c.INVALID_ARGUMENT), (7, c.INVALID_ARGUMENT), (12, c.UNIMPLEMENTED)):
        options = c.Options(size, 1)
        text = f"options.struct_size is {size}"
        arguments_ = (*arguments, byref(options), byref(handle))
        fails(code, text, c.call, library, "session_open_data", *arguments_)
    assert not handle


def test_data_must_be_aligned(library, rng):
    data = f.write(layers.chain("lstm", rng))
    copy, handle = c.aligned(bytes(4) + data), c_void_p()
    arguments = (copy.ctypes.data + 4, len(data), None, byref(handle))
    text = "data is 4 bytes behind a multiple of 64"
    fails(c.INVALID_ARGUMENT, text, c.call, library, "session_open_data", *arguments)


def test_outputs_are_floats(library, session):
    stream, x = c.Stream(session), np.zeros((1, 1, layers.INPUTS), np.float32)
    y = np.full((1, 1, 7), 3, np.int32)
    for name, handle in (
        ("session_run_arrays", session.handle),
        ("stream_run_arrays", stream.handle),
    ):
        arguments = (library, name, handle, [c.as_struct(x)], [y])
        fails(c.INVALID_ARGUMENT, "outputs[0].type is 1, must be 0", c.call_arrays, *arguments)
    assert (y == 3).all()


def test_info_is_written_as_far_as_its_size_goes(library, session):
    info = c.Info(struct_size=16, state_size=-7)
    c.call(library, "session_get_info", session.handle, byref(info))
    assert (info.threads, info.input_size, info.state_size) == (1, 5, -7)
    arguments = (session.handle, byref(c.Info(struct_size=0)))
    text = "info.struct_size is 0, must be 56"
    fails(c.INVALID_ARGUMENT, text, c.call, library, "session_get_info", *arguments)


def test_texts_of_codes(library):
    texts = {code: library.tf_lstm_ops_code_text(code) for code in (0, 3, 5, 8, 9, 12, 15, 99)}
    assert len({*texts.values()}) == len(texts) and all(texts.values())
    assert texts[99] == b"unknown code"


def test_versions_and_instruction_set(library):
    assert library.tf_lstm_ops_api_version() == 3
    assert library.tf_lstm_ops_selected_instruction_set()
