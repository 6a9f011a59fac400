"""Sessions of files of both exporters of PyTorch."""

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

from session import torch_models  # noqa: E402
from session.onnx_comparison import open_shapes  # noqa: E402
from tf_lstm_ops.inference import Session  # noqa: E402

EXPORTERS = {"TorchScript": False, "dynamo": True}
NAMES = ["x", "h", "c"]


def export(model: Any, path: Path, dynamo: bool, free: bool) -> None:
    """Writes a model, with the sizes of the batch and of time fixed or free."""
    arguments = torch_models.inputs(model, 2, torch_models.STEPS)
    names = NAMES[: len(arguments)]
    sizes = []
    for k, axis in enumerate(torch_models.batch_axes(model)):
        has_steps = k == 0 and not isinstance(model, torch_models.Flat)
        sizes.append({axis: "batch"} | ({1 - axis: "time"} if has_steps else {}))
    if not dynamo:
        given: dict[str, Any] = {"dynamic_axes": dict(zip(names, sizes, strict=True))}
    else:
        dims = {name: torch.export.Dim(name, min=1, max=1000) for name in ("batch", "time")}
        shapes = [{k: dims[name] for k, name in each.items()} for each in sizes]
        given = {"dynamic_shapes": tuple(shapes)}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            arguments,
            path,
            dynamo=dynamo,
            input_names=names,
            **(given if free else {}),
            **({"verbose": False} if dynamo else {}),
        )


@pytest.mark.full
@pytest.mark.parametrize("free", [False, True], ids=["fixed", "free"])
@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("name", torch_models.MODELS)
def test_exported_models(tmp_path: Path, name: str, exporter: str, free: bool) -> None:
    if EXPORTERS[exporter] and importlib.util.find_spec("onnxscript") is None:
        pytest.skip("the exporter needs the package onnxscript")
    model, path = torch_models.make(name), tmp_path / "model.onnx"
    export(model, path, EXPORTERS[exporter], free)
    if name == "forecast time first" and EXPORTERS[exporter]:
        # The first file of a process has a free axis of time, and its size in a Reshape. The second
        # one says that the size is fixed.
        export(model, path, EXPORTERS[exporter], free)
    # The exporter writes one product for each step, also with a free size.
    is_unrolled = name == "forecast rnn" and EXPORTERS[exporter]
    if is_unrolled and not free:
        with pytest.raises(ValueError, match="a session does not compute node"):
            Session.from_onnx(path)
        return
    session = Session.from_onnx(path)
    if session._opened.advice and not is_unrolled:
        assert not free or EXPORTERS[exporter], session.inputs
        session = Session.from_onnx(path, shapes=open_shapes(path))
    steps = torch_models.STEPS if name == "flat" or is_unrolled else 11
    given = torch_models.inputs(model, 3, steps)
    expected = model.double()(*[x.double() if x.is_floating_point() else x for x in given])
    expected = expected if isinstance(expected, tuple) else (expected,)
    arrays = [
        np.moveaxis(x.numpy(), axis, 0)
        for x, axis in zip(given, torch_models.batch_axes(model), strict=True)
    ]
    arrays = [
        x.reshape(len(x), *[size for size in x.shape[1:] if k == 0 or size > 1])
        for k, x in enumerate(arrays)
    ]
    results = session(arrays[0] if len(arrays) == 1 else dict(zip(NAMES, arrays, strict=True)))
    results = [*results.values()] if isinstance(results, dict) else [results]
    for result, wanted in zip(results, expected, strict=True):
        array = wanted.detach().numpy()
        if result.shape != array.shape:  # final states [layers, B, H]
            array = np.moveaxis(array, 1, 0).reshape(result.shape)
        # A few float32 roundings of values around 1, through two layers.
        np.testing.assert_allclose(result, array, rtol=0, atol=2e-6)


def test_a_stream_of_a_file_with_states(tmp_path: Path) -> None:
    model, path = torch_models.make("step"), tmp_path / "step.onnx"
    export(model, path, dynamo=False, free=True)
    output = onnx.load(path).graph.output[0].name
    session = Session.from_onnx(path, outputs=[output], constants={"h": 0, "c": 0})
    x, h, c = torch_models.inputs(model, 1, 9)
    expected = model(x, torch.zeros_like(h), torch.zeros_like(c))[0].detach().numpy()
    stream = session.stream()
    steps = [stream(x[:, k].numpy()) for k in range(9)]
    np.testing.assert_allclose(np.stack(steps, axis=1), expected, rtol=0, atol=1e-6)
