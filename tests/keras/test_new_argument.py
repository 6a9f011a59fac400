"""A new argument of LSTM: code that was not extended refuses it, or computes its loop."""

from typing import Any

import pytest

from tf_lstm_ops import _gpu, _placement, op_definitions
from tf_lstm_ops.export import onnx_trace
from tf_lstm_ops.export.lite import layers as lite
from tf_lstm_ops.keras import LSTM, LSTMCell, StackedLSTM, counterparts, lstm, lstm_cell
from tf_lstm_ops.weights import LSTMWeights


@pytest.fixture
def without_attribute(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A layer with the own argument zoneout_c=0.3, which no op has."""
    names = (*lstm_cell.OWN_ARGUMENTS, "zoneout_c")
    for module in (lstm, lstm_cell):
        monkeypatch.setattr(module, "OWN_ARGUMENTS", names)
    for kind in (LSTM, LSTMCell):
        monkeypatch.setattr(kind, "zoneout_c", None, raising=False)
    layer = LSTM(2)
    layer.zoneout_c = 0.3
    return layer


@pytest.fixture
def layer(without_attribute: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same, with an op that has the attribute."""
    attributes = op_definitions.attributes
    monkeypatch.setattr(op_definitions, "attributes", lambda op: (*attributes(op), "zoneout_c"))
    return without_attribute


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
    assert _placement.has_kernel("KerasLSTM", {"cell_clip": 1.0})
    assert not _placement.has_kernel("KerasLSTM", {"cell_clip": 1.0, "zoneout_c": 0.3})


def test_no_op_that_ignores_it(without_attribute: Any) -> None:
    assert without_attribute.fallback_reason == "zoneout_c has no fused op"


@pytest.mark.parametrize("other", [{"use_peephole": True}, {"recurrent_activation": "relu"}])
def test_the_op_has_it_without_other_options(layer: Any, other: dict[str, Any]) -> None:
    assert layer.fallback_reason is None
    both = LSTM(2, **other)
    both.zoneout_c = 0.3
    assert both.fallback_reason == f"{next(iter(other))} with zoneout_c has no fused op"
