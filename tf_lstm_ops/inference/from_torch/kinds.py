"""The classes of torch.nn that a session computes."""

from __future__ import annotations

from collections.abc import Mapping

from tf_lstm_ops import _cells
from tf_lstm_ops._refusal import refuse, require
from tf_lstm_ops.inference.from_torch import functions, products, recurrent, shapes
from tf_lstm_ops.inference.from_torch.entry import Kind

KINDS: Mapping[str, Kind] = {
    **recurrent.KINDS,
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
