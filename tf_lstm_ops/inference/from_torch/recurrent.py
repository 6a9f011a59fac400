"""LSTM, GRU and RNN of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tf_lstm_ops import _cells
from tf_lstm_ops._refusal import naming
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_torch.entry import BTC, TBC, Entry, Kind
from tf_lstm_ops.inference.layers.recurrent import layer_class
from tf_lstm_ops.weights import class_of


def _build(entry: Entry, order: str) -> Sequence[layers.Layer]:
    with naming(entry.label):
        read = class_of(_cells.BY_COMMON[entry.kind]).from_torch(entry.arrays)
    options: dict[str, Any] = {"return_sequences": bool(entry.options["return_sequences"])}
    if entry.kind == "RNN":
        options["activation"] = entry.options["nonlinearity"]
    return [layer_class(read)(read, **options, name=entry.label)]


def _orders(entry: Entry, rank: int) -> Sequence[str]:
    return (BTC if entry.options["batch_first"] else TBC,)


def _sizes(entry: Entry) -> Mapping[str, Any]:
    arrays = entry.arrays
    rows, inputs = arrays["weight_ih_l0"].shape
    found = {
        "input_size": inputs,
        "hidden_size": rows // len(_cells.BY_COMMON[entry.kind].gates),
        "num_layers": sum(name[:11] == "weight_ih_l" and name[11:].isdigit() for name in arrays),
        "bias": "bias_ih_l0" in arrays,
        "bidirectional": "weight_ih_l0_reverse" in arrays,
    }
    if entry.kind == "LSTM":
        found["proj_size"] = arrays["weight_hr_l0"].shape[0] if "weight_hr_l0" in arrays else 0
    return found


def _kind(**options: Any) -> Kind:
    return Kind(
        _build,
        arrays=("weight_ih_l0", "weight_hh_l0"),
        options={"batch_first": False, "return_sequences": True, **options},
        unused=(
            *("input_size", "hidden_size", "num_layers", "bias", "bidirectional", "proj_size"),
            "dropout",
        ),
        attributes=("mode", "args", "kwargs"),
        orders=_orders,
        ranks=(3,),
        sizes=_sizes,
    )


KINDS = {"LSTM": _kind(), "GRU": _kind(), "RNN": _kind(nonlinearity="tanh")}
