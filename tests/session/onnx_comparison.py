"""Whether a session computes what ONNX Runtime does, with the batch that it has chosen."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from session.onnx_sources import Array, NotComparable, assert_close, call, draw, results
from tf_lstm_ops.inference import Session, from_onnx

Run = Callable[[dict[str, Array]], list[Array]]
LARGEST = 1e6  # beyond, differences of large numbers have few digits
TOLERANCE = 1e-4  # errors of float32 in up to ten layers, relative to the largest element


def compare(session: Session, proto: Any, run: Run) -> None:
    """Compares a session with `run`, of the same model.

    Raises:
      AssertionError: they differ.
      NotComparable: the model has no batch that a test can change, or numbers are not finite.
    """
    places = batch_axes(proto)
    if None in places.values():  # frames of one sequence
        feeds = draw(proto, 5)
        given = {name: feeds[name][None] for name in places}
        for got, want in zip(call(session, given), map(_checked, run(feeds)), strict=True):
            assert_close(got.reshape(want.shape), want, TOLERANCE)
        return
    sizes = {tensor_type(proto, name).shape.dim[k].dim_value for name, k in places.items()}
    size = max(sizes)
    if size == 1:  # the session computes each row as the model does
        rows = [draw(proto, 5, seed) for seed in range(3)]
        found = zip(*map(run, rows), strict=True)
        wanted = [_checked(np.stack([y.ravel() for y in ys])) for ys in found]
        given = {
            name: np.stack([np.moveaxis(row[name], k, 0)[0] for row in rows])
            for name, k in places.items()
        }
        for got, want in zip(call(session, given), wanted, strict=True):
            assert_close(got.reshape(want.shape), want, TOLERANCE)
    elif size > 1:
        feeds = draw(proto, 2)
        given = {name: np.moveaxis(feeds[name], k, 0) for name, k in places.items()}
        wanted = [*map(_checked, run(feeds))]
        for got, want in zip(call(session, given), wanted, strict=True):
            assert _is_close_along_an_axis(got, want)
    else:
        for given, found in results(_with_batches(proto, places), run):
            given = {name: given[name] for name in places}
            wanted = [*map(_checked, found)]
            for got, want in zip(call(session, given), wanted, strict=True):
                assert_close(got, want, TOLERANCE)


def _checked(want: Array) -> Array:
    """An output whose elements say something."""
    if not want.size or not np.isfinite(want).all() or np.abs(want).max(initial=0) > LARGEST:
        raise NotComparable("elements are not finite or large, or there are none")
    return want


def batch_axes(proto: Any) -> dict[str, Any]:
    """Which axis of each input that is read is the batch; None without one."""
    _, source = from_onnx.read(proto)
    found = {}
    for given in source.given:
        axes = source.axes[given.name]
        (batch,) = axes.groups[0]
        places = (k for k, product in enumerate(axes.axes) if batch in product)
        found[given.name] = next(places, None)
    return found


def open_shapes(proto: Any) -> dict[str, list[int | None]]:
    """The argument shapes that opens what a file fixes and no layer needs."""
    _, source = from_onnx.read(proto)
    return {
        given.name: from_onnx.inputs.opened(given, source.axes[given.name])
        for given in source.given
    }


def tensor_type(proto: Any, name: str) -> Any:
    return next(x for x in proto.graph.input if x.name == name).type.tensor_type


def _with_batches(proto: Any, places: dict[str, int]) -> Any:
    """The model with the name B at the axes that are the batch."""
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    for name, place in places.items():
        dims = tensor_type(changed, name).shape.dim
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
