"""The classes of torch.nn that a session computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tf_lstm_ops import _cells
from tf_lstm_ops._refusal import refuse, require
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_torch import functions, products, shapes
from tf_lstm_ops.inference.from_torch.entry import BTC, TBC, Entry, Kind
from tf_lstm_ops.inference.layers.recurrent import layer_class
from tf_lstm_ops.weights import class_of

_OF_RNN = "RNN_"  # the beginning of the mode of an RNN, behind which its function is


def _recurrent(entry: Entry) -> Sequence[layers.Layer]:
    take, cell = entry.options.take, _cells.BY_COMMON[entry.name]
    options: dict[str, Any] = {"return_sequences": bool(take("return_sequences", True))}
    take("batch_first", False)
    if entry.module is not None:
        mode = take("mode")
        if mode.startswith(_OF_RNN):
            options["activation"] = mode.removeprefix(_OF_RNN).lower()
    elif cell is _cells.SIMPLE_RNN:
        options["activation"] = take("nonlinearity", "tanh")
    first = entry.array("weight_ih_l0")
    entry.array("weight_hh_l0")
    for name in getattr(entry.module, "_flat_weights_names", entry.tensors.values):
        entry.optional(name)
    read = class_of(cell).from_torch(entry.arrays)
    entry.tell(
        input_size=first.shape[1],
        hidden_size=first.shape[0] // len(cell.gates),
        num_layers=read.num_layers,
        bias="bias_ih_l0" in entry.arrays,
        bidirectional=read.directions == 2,
    )
    if cell is _cells.LSTM:
        projection = entry.arrays.get("weight_hr_l0")
        entry.tell(proj_size=0 if projection is None else projection.shape[0])
    return [layer_class(read)(read, **options, name=entry.label)]


def _orders(entry: Entry, rank: int) -> Sequence[str]:
    return (BTC if entry.options.take("batch_first", False) else TBC,)


_RECURRENT = dict.fromkeys(
    _cells.BY_COMMON,
    Kind(
        _recurrent,
        ignored=("proj_size", "dropout"),
        listed=("return_sequences",),
        orders=_orders,
        ranks=(3,),
    ),
)
KINDS: Mapping[str, Kind] = {
    **_RECURRENT,
    **products.KINDS,
    **functions.KINDS,
    **shapes.KINDS,
}


def kind_of(name: str) -> Kind:
    """A class by its name.

    Args:
      name: the name of the class in torch.nn.

    Returns:
      How a session computes it.

    Raises:
      Refused: it does not. The text does not name the module.
    """
    cell = _cells.BY_COMMON.get(name.removesuffix("Cell"))
    if cell is not None and name.endswith("Cell"):
        refuse(
            f"torch.nn.{name} computes one step, and the loop is in your forward. If the loop "
            "gives each output to the next step as it is, pass in its place: "
            f"layers.{cell.keras}({cell.weights}.from_torch(cell), return_sequences=True)"
        )
    require(
        name in KINDS,
        f"a session does not compute torch.nn.{name}. The reference page 'Models of other "
        "programs in sessions' lists the classes",
    )
    return KINDS[name]
