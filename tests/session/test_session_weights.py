"""Sessions whose weights are int8 or bfloat16: from every source, and in files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from session import rtneural_models
from session.test_weight_choice import DESCRIBED, LARGE, model, normal
from tf_lstm_ops.inference import Session, layers

TYPES = ["bfloat16", "int8"]


def test_all_layers_have_the_type() -> None:
    session = Session.from_graph(*model(), weights="bfloat16")
    assert {each.type for each in session.weights} == {"bfloat16"}
    assert repr(session).endswith("threads=1, weights='bfloat16')")


def test_small_layers_stay_float32(tmp_path: Path) -> None:
    """The file has the types."""
    session = Session.from_graph(*model(), weights="int8")
    types = {each.name: each.type for each in session.weights}
    assert types == {name: "int8" if name in LARGE else "float32" for name, *_ in DESCRIBED}
    assert repr(session).endswith("weights='int8: 3 of 6 layers, float32: both, rnn, last')")
    session.save(tmp_path / "model")
    loaded = Session.load(tmp_path / "model")
    assert [each.type for each in loaded.weights] == [*types.values()]
    assert "weights='int8: 3 of 6 layers, float32: layer 3, layer 4, layer 6')" in repr(loaded)
    x = np.arange(24).reshape(3, 8)
    np.testing.assert_array_equal(loaded(x), session(x))


@pytest.mark.parametrize("weights", TYPES)
def test_results_are_near(weights: str) -> None:
    x = np.random.default_rng(1).integers(0, 100, (4, 20))
    want = Session.from_graph(*model())(x)
    found = Session.from_graph(*model(), weights=weights)(x)
    # A bfloat16 has 8 bits, an int8 7 bits and a sign, through six layers.
    assert 0 < np.linalg.norm(found - want) < 0.1 * np.linalg.norm(want)


def _chain(weights: str, **_: Any) -> Session:
    return Session([layers.Dense(normal(128, 128))], weights=weights)


def _layers(weights: str, **_: Any) -> Session:
    return Session.from_layers([layers.Dense(normal(128, 128))], weights=weights)


def _keras(weights: str, **_: Any) -> Session:
    import keras

    made = keras.Sequential([keras.Input((None, 128)), keras.layers.Dense(128)])
    return Session(made, weights=weights)


def _onnx(weights: str, **options: Any) -> Session:
    pytest.importorskip("onnxruntime", reason="runs the models")
    from session.test_from_onnx_operators import one

    proto = one("MatMul", normal(128, 128), axes=("B", "T", 128))
    return Session.from_onnx(proto, weights=weights, **options)


def _torch(weights: str, **options: Any) -> Session:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return Session.from_torch(torch.nn.Linear(128, 128), weights=weights, **options)


SOURCES: list[Callable[..., Session]] = [_chain, _layers, _keras, _onnx, _torch]


@pytest.mark.torch
@pytest.mark.parametrize("weights", TYPES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("check", [True, False])
def test_sources(source: Callable[..., Session], weights: str, check: bool) -> None:
    """With a comparison too, whose tolerance is that of float32."""
    (layer,) = source(weights, check=check).weights
    assert layer.type == weights


@pytest.mark.parametrize("weights", TYPES)
def test_rtneural(weights: str) -> None:
    path = sorted(rtneural_models.FOLDER.glob("*.json"))[0]
    assert json.loads(path.read_text())
    session = Session.from_rtneural(path, weights=lambda layer: weights)
    assert {each.type for each in session.weights} == {weights}


@pytest.mark.torch
def test_a_comparison_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from tf_lstm_ops.inference.from_torch import products

    made = layers.Dense

    def wrong(kernel: Any, *rest: Any, **options: Any) -> Any:
        return made(kernel + 0.01, *rest, **options)

    monkeypatch.setattr(products.layers, "Dense", wrong)
    with pytest.raises(ValueError, match="differs from that of the modules in PyTorch"):
        Session.from_torch(torch.nn.Linear(128, 128), weights="int8")


def test_large_scales_do_not_turn_zeros_into_nan() -> None:
    """The product of the scales of the row and of the column exceeds float32."""
    kernel, x = np.zeros((64, 64), np.float32), np.zeros((1, 1, 64), np.float32)
    kernel[0], x[0, 0, 1] = 1e20, 1e30
    session = Session([layers.Dense(kernel, name="dense")], weights={"int8": ["dense"]})
    np.testing.assert_array_equal(session(x), np.zeros((1, 1, 64), np.float32))
