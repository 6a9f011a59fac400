"""Arrays of any type, order and place, and numbers that are not finite."""

import numpy as np
import pytest

from session import layers, native_program
from tf_lstm_ops.inference import Session


@pytest.fixture(scope="module", params=["stack with dense", "lstm of 256"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session.load(native_program.write(tmp_path_factory.mktemp("arrays"), request.param))


# The second is too large for the arrays that a stream keeps.
@pytest.fixture(params=[5, 2000])
def x(request: pytest.FixtureRequest, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(2, request.param, layers.INPUTS)).astype(np.float32)


def placed(array: np.ndarray, offset: int) -> np.ndarray:
    """A copy that begins so many bytes behind a multiple of 64."""
    memory = np.zeros(array.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    copy = np.frombuffer(memory.data, array.dtype, array.size, start).reshape(array.shape)
    copy[...] = array
    return copy


def check(session: Session, x: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(session(x), want)
    np.testing.assert_array_equal(session.stream(2)(x), want)


def test_types_and_orders(session: Session, x: np.ndarray) -> None:
    want = session(x)
    frozen = x.copy()
    frozen.flags.writeable = False
    backwards = x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]
    for same in (x.astype(float), x.astype(">f4"), np.asfortranarray(x), frozen, backwards):
        check(session, same, want)
    half = x.astype(np.float16)
    check(session, half, session(half.astype(np.float32)))
    check(session, x > 0, session((x > 0).astype(np.float32)))


@pytest.mark.parametrize("offset", [1, 2, 4, 20, 60])
def test_places(session: Session, x: np.ndarray, offset: int) -> None:
    want = session(x)
    check(session, placed(x, offset), want)
    out = placed(np.zeros_like(want), offset)
    for compute in (session, session.stream(2)):
        if offset % 4:
            with pytest.raises(ValueError, match="out must be C-contiguous, aligned and writeable"):
                compute(x, out=out)
        else:
            np.testing.assert_array_equal(compute(x, out=out), want)


def test_out_beside_and_over_x(session: Session, x: np.ndarray) -> None:
    want = session(x)
    memory = np.zeros(x.size + want.size, np.float32)
    source = memory[: x.size].reshape(x.shape)
    source[...] = x
    beside = memory[x.size :].reshape(want.shape)
    np.testing.assert_array_equal(session(source, out=beside), want)
    if want.size > x.size:
        return
    with pytest.raises(ValueError, match="out must not share memory with x"):
        session(source, out=memory[1 : want.size + 1].reshape(want.shape))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(session: Session, x: np.ndarray, value: float) -> None:
    """They change their own row only, nothing where the step is masked, and end with a reset."""
    want = session(x)
    wrong = x.copy()
    wrong[0, 2, 1] = value
    np.testing.assert_array_equal(session(wrong)[1], want[1])
    stream = session.stream(2)
    np.testing.assert_array_equal(stream(wrong)[1], want[1])
    stream.reset()
    np.testing.assert_array_equal(stream(x), want)
    mask = np.ones(x.shape[:2], bool)
    mask[0, 2] = False
    np.testing.assert_array_equal(session(wrong, mask), session(x, mask))


class OfMasked:
    """Has a masked array as its array."""

    def __init__(self, array: np.ma.MaskedArray) -> None:
        self.array = array

    def __array__(self, dtype: object = None, copy: object = None) -> np.ma.MaskedArray:
        return self.array


@pytest.mark.parametrize("kind", [lambda array: array, OfMasked])
def test_masked_elements_are_refused(session: Session, x: np.ndarray, kind: type) -> None:
    """NumPy keeps a number below the mask, which may be any."""
    masked, stream = np.ma.masked_array(x, mask=True), session.stream(2)
    np.testing.assert_array_equal(session(kind(np.ma.masked_array(x))), session(x))
    for call in (
        lambda: session(kind(masked)),
        lambda: stream(kind(masked)),
        lambda: session(x, kind(masked[..., 0])),
        lambda: stream.set_state([kind(masked[:, 0])] * len(stream.state)),
    ):
        with pytest.raises(TypeError, match=r"must have no masked elements.*value\.filled"):
            call()


@pytest.mark.parametrize("wrong", [[[1, 2], [3]], None, "text", [[1j]], np.zeros(3, "M8[s]")])
def test_errors_name_the_argument(session: Session, wrong: object) -> None:
    stream = session.stream(2)
    for compute in (session, stream):
        with pytest.raises((TypeError, ValueError), match="x must"):
            compute(wrong)
    # The stream is free again.
    stream(np.zeros((2, layers.INPUTS)))
