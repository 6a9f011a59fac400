"""The classes of torch.nn that a session computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tf_lstm_ops._arrays import Array
from tf_lstm_ops.inference.from_torch import functions, products, recurrent, shapes
from tf_lstm_ops.inference.from_torch.entry import Entry, Kind

KINDS: Mapping[str, Kind] = {
    **recurrent.KINDS,
    **products.KINDS,
    **functions.KINDS,
    **shapes.KINDS,
}
_CELLS = {"LSTMCell": "LSTM", "GRUCell": "GRU", "RNNCell": "SimpleRNN"}


def kind_of(label: str, name: str) -> Kind:
    """A class by its name.

    Args:
      label: of the module, for messages.
      name: the name of the class in torch.nn.

    Returns:
      How a session computes it.

    Raises:
      ValueError: it does not.
    """
    if name in _CELLS:
        kind = _CELLS[name]
        weights = "RNNWeights" if kind == "SimpleRNN" else f"{kind}Weights"
        raise ValueError(
            f"{label}: torch.nn.{name} computes one step, and the loop is in your forward. If the "
            "loop gives each output to the next step as it is, pass in its place: "
            f"layers.{kind}({weights}.from_torch(cell), return_sequences=True)"
        )
    if name not in KINDS:
        raise ValueError(
            f"{label}: a session does not compute torch.nn.{name}. The reference page 'Models of "
            "other programs in sessions' lists the classes"
        )
    return KINDS[name]


def entry(
    label: str, name: str, options: Mapping[str, Any], arrays: Mapping[str, Array], module: Any
) -> Entry:
    """A module with its options, as far as they are given, and PyTorch's defaults.

    Args:
      label: for messages.
      name: of the class.
      options: the options.
      arrays: the arrays by their own names.
      module: the module, or None.

    Returns:
      The entry.

    Raises:
      ValueError: the class or an option is unknown, or an array contradicts an option.
    """
    kind = kind_of(label, name)
    unknown = [each for each in options if each not in kind.options and each not in kind.unused]
    if unknown:
        raise ValueError(
            f"{label}: the options of {name} that change results are "
            f"{', '.join(kind.options) or 'none'}. Received: {', '.join(map(str, unknown))}"
        )
    used = {each: value for each, value in options.items() if each in kind.options}
    made = Entry(label, name, {**kind.options, **used}, arrays, module)
    _require_sizes(made, options)
    return made


def _require_sizes(made: Entry, options: Mapping[str, Any]) -> None:
    """Refuses arguments that are not those of the arrays."""
    sizes = KINDS[made.kind].sizes(made) if options else {}
    for each, known in sizes.items():
        given = options.get(each, known)
        if isinstance(given, list | tuple) and len(given) == 1:
            given = given[0]
        if given is not None and given != known:
            made.refuse(f"its arrays have {each}={known!r}. Received: {each}={given!r}")
