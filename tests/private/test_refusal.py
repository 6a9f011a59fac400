"""Refused, and the contexts that name what is refused."""

from __future__ import annotations

import pickle

import pytest
import tensorflow as tf

from tf_lstm_ops._refusal import Refusals, Refused, naming, refuse, refused, require, within


def test_the_innermost_context_names_it_once() -> None:
    outer, inner = naming("layer outer", "Do another thing"), naming("layer inner")
    with pytest.raises(Refused) as raised, within("file.onnx"), outer, inner, within("array"):
        refuse("it is unknown")
    assert str(raised.value) == "file.onnx: layer inner: array: it is unknown"


def test_what_to_do_comes_last() -> None:
    with pytest.raises(Refused, match=r"^layer a: why. Keep it$"), naming("layer a", "Keep it"):
        require(False, "why")


def test_other_errors_are_named_if_they_are_of_the_kinds() -> None:
    with pytest.raises(Refused, match=r"^place: key$") as raised, within("place"):
        raise ValueError("key")
    assert isinstance(raised.value.__cause__, ValueError)
    with pytest.raises(Refused, match=r"^place: 'key'$"), naming("place", kinds=(KeyError,)):
        raise KeyError("key")
    with pytest.raises(TypeError), naming("place"), within("place"):
        raise TypeError


def test_a_copy_says_the_same() -> None:
    """Of another process, of autograph and of Keras, which make errors again of their arguments."""
    error = refused("why", "where", "instead")
    assert str(error) == "where: why. instead"
    assert str(pickle.loads(pickle.dumps(error))) == str(type(error)(*error.args)) == str(error)

    @tf.function
    def f() -> None:
        raise refused("why", "where")

    with pytest.raises(ValueError, match="where: why"):
        f()


def test_what_is_true_is_not_refused() -> None:
    require(True, "why")


def refusals_of(texts: list[str]) -> Refusals:
    refusals = Refusals("layers")
    for text in texts:
        with refusals.part():
            refuse(text)
    return refusals


def test_one_refusal_is_its_own() -> None:
    Refusals("layers").finish()
    with pytest.raises(Refused, match=r"^why$"):
        refusals_of(["why", "why"]).finish()
    refusals = Refusals("layers")
    with refusals.part():
        raise UnicodeError("of another class")
    with pytest.raises(UnicodeError, match=r"^of another class$"):
        refusals.finish()
    with pytest.raises(TypeError), refusals.part():
        raise TypeError


def test_several_refusals_are_said_at_once() -> None:
    with pytest.raises(Refused, match=r"^file: 2 layers are refused:\na: b\nc: d$"), within("file"):
        refusals_of(["a: b", "c: d", "a: b"]).finish()
    with pytest.raises(Refused) as raised:
        refusals_of([str(number) for number in range(13)]).finish()
    assert str(raised.value).splitlines() == [
        "13 layers are refused:",
        *map(str, range(10)),
        "and 3 more",
    ]
