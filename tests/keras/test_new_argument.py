"""A new argument of LSTM: code that was not extended refuses it, or computes its loop."""

from typing import Any, cast

import pytest

import new_arguments
from tf_lstm_ops import _gpu, _placement, _targets
from tf_lstm_ops.export import onnx_trace
from tf_lstm_ops.export.lite import layers as lite
from tf_lstm_ops.keras import LSTM, LSTMCell, StackedLSTM, counterparts, options
from tf_lstm_ops.weights import LSTMWeights


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A layer with the own argument zoneout_c=0.3, which no target lists."""
    option = _targets.Option(_targets.Effect.STEP, is_own=True)
    monkeypatch.setitem(_targets.OPTIONS, "zoneout_c", option)
    monkeypatch.setattr(_targets, "OWN", (*_targets.OWN, "zoneout_c"))
    for kind in (LSTM, LSTMCell):
        new_arguments.add(monkeypatch, kind, "zoneout_c")
    layer = LSTM(2, zoneout_c=0.3)
    layer.cell.zoneout_c = 0.3
    return layer


@pytest.fixture
def layer(unlisted: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same, with an op that has it."""
    monkeypatch.setitem(cast(Any, _targets.CPU.ops["KerasLSTM"]), "zoneout_c", _targets.ANY)
    return unlisted


@pytest.mark.parametrize("name", [n for n, t in _targets.TARGETS.items() if t is not _targets.CPU])
def test_every_other_target_names_it(layer: Any, name: str) -> None:
    target = _targets.TARGETS[name]
    assert "zoneout_c" in str(options.why_not(layer, target))
    assert options.why_not(LSTM(2), target) is None


def test_onnx_has_a_loop(layer: Any) -> None:
    assert onnx_trace._why_loop(layer) == "ONNX' recurrent nodes have no zoneout_c"


def test_litert_has_a_loop(layer: Any) -> None:
    assert lite._fusable(LSTM(2)) and not lite._fusable(layer)


def test_stock_layers_do_not_have_it(layer: Any) -> None:
    assert counterparts.stock(layer) == "keras.layers.LSTM has no zoneout_c=0.3"


def test_stacks_do_not_have_it() -> None:
    with pytest.raises(ValueError, match="zoneout_c"):
        StackedLSTM(2, 2, zoneout_c=0.3)


def test_weights_of_other_formats_do_not_have_it(layer: Any) -> None:
    layer.build((None, None, 3))
    with pytest.raises(ValueError, match="has zoneout_c, which other formats of weights do not"):
        LSTMWeights.from_keras(layer)


def test_cuda_kernels_do_not_have_it(layer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that another machine may load places such a call on the CPU."""
    monkeypatch.setattr(_gpu, "status", lambda: _gpu.Status(True, "forced", "", cuda=True))
    assert _placement._has_kernel("KerasLSTM", {"cell_clip": 1.0})
    assert not _placement._has_kernel("KerasLSTM", {"cell_clip": 1.0, "zoneout_c": 0.3})


def test_no_op_that_ignores_it(unlisted: Any) -> None:
    assert unlisted.fallback_reason == "zoneout_c has no fused op"


def test_the_op_has_it(layer: Any) -> None:
    assert layer.fallback_reason is None
