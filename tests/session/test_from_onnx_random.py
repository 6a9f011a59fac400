"""Random ONNX models in a session, beside ONNX Runtime."""

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("onnx", reason="makes and reads the models")
pytest.importorskip("onnxruntime", reason="runs the models")
from session.onnx_comparison import compare, open_shapes
from session.onnx_sources import NotComparable, runtime
from session.random_onnx import RandomOnnx
from tf_lstm_ops.inference import Session

GROUP, COUNT, SLOW_GROUP, SLOW_COUNT = 100, 600, 2000, 60_000


@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(GROUP, COUNT, GROUP))],
)
def test_models(first: int) -> None:
    counts = Counter(check(seed) for seed in range(first, first + GROUP))
    assert counts["accepted"] > 0.6 * GROUP


@pytest.mark.slow
@pytest.mark.parametrize("first", range(COUNT, COUNT + SLOW_COUNT, SLOW_GROUP))
def test_many_models(first: int) -> None:
    for seed in range(first, first + SLOW_GROUP):
        check(seed)


def check(seed: int) -> str:
    """Whether a session accepted the model. If it did, it computes the same."""
    proto = RandomOnnx(np.random.default_rng(seed)).model
    try:
        # Of each second one the session's own comparison, too.
        session = Session.from_onnx(proto, check=seed % 2 == 0, shapes=open_shapes(proto))
    except ValueError as error:
        assert "differs" not in str(error), f"seed {seed}: {error}"
        return "cannot run" if "cannot run" in str(error) else "refused"
    try:
        compare(session, proto, runtime(proto))
    except NotComparable:
        return "not comparable"
    except (AssertionError, ValueError) as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    return "accepted"
