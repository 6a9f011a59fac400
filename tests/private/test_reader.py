"""Reader: what nobody takes is refused unless it is the default."""

from __future__ import annotations

import numpy as np
import pytest

from tf_lstm_ops._refusal import Refused
from tf_lstm_ops.inference.reader import Reader


def test_what_is_taken_or_a_default_is_no_error() -> None:
    reader = Reader({"a": 1, "b": 2, "c": 3, "d": [4]}, {"b": 2, "c": 4})
    assert (reader.take("a"), reader.take("z", 5), reader.integer("d")) == (1, 5, 4)
    reader.ignore(["c"])
    reader.finish(", ".join)
    assert reader.taken == ["a", "z", "d"]


@pytest.mark.parametrize("defaults", [None, {"b": 3}, {"b": np.zeros(2)}, {"b": None}])
def test_what_nobody_took_is_refused(defaults: dict[str, object] | None) -> None:
    reader = Reader({"a": 1, "b": np.ones(2)}, defaults)
    reader.take("a")
    with pytest.raises(Refused, match=r"^unread: b$"):
        reader.finish(lambda names: f"unread: {', '.join(names)}")


def test_the_only_value() -> None:
    reader = Reader({"mode": "other"})
    reader.require("absent", 3)
    with pytest.raises(Refused, match=r"a session has mode='zeros' only. Received: mode='other'"):
        reader.require("mode", "zeros")
    with pytest.raises(Refused, match=r"size must be an integer. Received: size=1.5"):
        Reader({"size": 1.5}).integer("size")
