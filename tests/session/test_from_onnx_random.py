"""Random ONNX models in a session, beside ONNX Runtime."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="makes and reads the models")
pytest.importorskip("onnxruntime", reason="runs the models")
from session.onnx_sources import Array, assert_close, call, draw, results, runtime
from session.random_onnx import RandomOnnx
from tf_lstm_ops.inference import Session, from_onnx

GROUP, COUNT, SLOW_GROUP, SLOW_COUNT = 100, 600, 2000, 60_000
TOLERANCE = 1e-4  # errors of float32 in up to ten layers, relative to the largest element


@pytest.mark.parametrize("first", range(0, COUNT, GROUP))
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
        session = Session.from_onnx(proto, check=seed % 2 == 0)
    except ValueError as error:
        assert "differs" not in str(error), f"seed {seed}: {error}"
        return "cannot run" if "cannot run" in str(error) else "refused"
    try:
        _compare(session, proto)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    return "accepted"


def _compare(session: Session, proto: Any) -> None:
    """With the batch that the session has chosen. Its size may be fixed."""
    places = _batch_axes(proto)
    run = runtime(proto)
    sizes = {proto_input(proto, name).shape.dim[k].dim_value for name, k in places.items()}
    size = max(sizes)
    if size == 1:  # the session computes each row as the model does
        rows = [draw(proto, 1, seed) for seed in range(3)]
        wanted = [np.stack([y.ravel() for y in ys]) for ys in zip(*map(run, rows), strict=True)]
        given = {
            name: np.stack([np.moveaxis(row[name], k, 0)[0] for row in rows])
            for name, k in places.items()
        }
        for got, want in zip(call(session, given), wanted, strict=True):
            assert_close(got.reshape(want.shape), want, TOLERANCE)
    elif size > 1:
        feeds = draw(proto, 2)
        given = {name: np.moveaxis(feeds[name], k, 0) for name, k in places.items()}
        for got, want in zip(call(session, given), run(feeds), strict=True):
            assert _is_close_along_an_axis(got, want)
    else:
        for given, found in results(_with_batches(proto, places), run):
            given = {name: given[name] for name in places}
            for got, want in zip(call(session, given), found, strict=True):
                assert_close(got, want, TOLERANCE)


def _batch_axes(proto: Any) -> dict[str, int]:
    """Which axis of each input that is read is the batch."""
    _, source = from_onnx.read(proto, None, None, None)
    found = {}
    for given in source.given:
        axes = source.axes[given.name]
        (batch,) = axes.groups[0]
        found[given.name] = next(k for k, product in enumerate(axes.axes) if batch in product)
    return found


def proto_input(proto: Any, name: str) -> Any:
    return next(x for x in proto.graph.input if x.name == name).type.tensor_type


def _with_batches(proto: Any, places: dict[str, int]) -> Any:
    """The model with the name B at the axes that are the batch."""
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    for name, place in places.items():
        dims = proto_input(changed, name).shape.dim
        for k, dim in enumerate(dims):
            if k == place:
                dim.dim_param = "B"
            elif dim.dim_param == "B":
                dim.dim_param = "T"
    return changed


def _is_close_along_an_axis(got: Array, want: Array) -> bool:
    for k in range(want.ndim):
        try:
            assert_close(got, np.moveaxis(want, k, 0), TOLERANCE)
        except AssertionError:
            continue
        return True
    return False
