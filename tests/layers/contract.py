"""The public layers, each in its variants. A new layer is a line of LAYERS, an option of VARIANTS.

`roads` has the ways out of Keras that every layer passes, `contexts` the ways to call it.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, product
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest

from tf_lstm_ops.keras import (
    GRU,
    LSTM,
    Bidirectional,
    GRUCell,
    LSTMCell,
    SimpleRNN,
    StackedGRU,
    StackedLSTM,
)

B, T, I, H = 3, 5, 3, 4  # noqa: E741

_OF_RNN = ("return_sequences", "return_state", "go_backwards", "stateful", "zero_output_for_mask")


def _of_cell(cell: Any) -> Callable[..., Any]:
    """The layer that Keras makes of a cell."""

    def make(units: int, **options: Any) -> Any:
        own = {name: options.pop(name) for name in _OF_RNN if name in options}
        layer = {name: options[name] for name in ("dtype", "trainable") if name in options}
        return keras.layers.RNN(cell(units, **options), **own, **layer)

    return make


LAYERS: dict[str, Callable[..., Any]] = {
    "LSTM": LSTM,
    "GRU": GRU,
    "SimpleRNN": SimpleRNN,
    "StackedLSTM": lambda units, **options: StackedLSTM(units, 2, **options),
    "StackedGRU": lambda units, **options: StackedGRU(units, 2, **options),
    "LSTMCell": _of_cell(LSTMCell),
    "GRUCell": _of_cell(GRUCell),
}
_SINGLE = ("LSTM", "GRU", "LSTMCell", "GRUCell")


class Variant(NamedTuple):
    """Options of a layer, and of which layers."""

    options: dict[str, Any]
    layers: tuple[str, ...] = tuple(LAYERS)
    bidirectional: bool = False
    masked: bool = False


VARIANTS = {
    "plain": Variant({}),
    "sequences": Variant({"return_sequences": True}),
    "bidirectional": Variant({}, bidirectional=True),
    "masked": Variant({"return_sequences": True}, masked=True),
    "masked_last": Variant({"zero_output_for_mask": True}, masked=True),
    "masked_both": Variant({"return_sequences": True}, bidirectional=True, masked=True),
    "backwards": Variant(
        {"go_backwards": True}, ("LSTM", "GRU", "SimpleRNN", "StackedLSTM", "StackedGRU")
    ),
    "stateful": Variant({"stateful": True}),
    "dropout": Variant({"dropout": 0.3}),
    "projection": Variant({"projection_size": 2}, ("LSTM", "StackedLSTM", "LSTMCell")),
    "proj_clip": Variant(
        {"projection_size": 2, "proj_clip": 0.05}, ("LSTM", "StackedLSTM", "LSTMCell")
    ),
    "stacked_clip": Variant({"cell_clip": 0.1}, ("StackedLSTM",)),
    "peephole": Variant({"use_peephole": True, "cell_clip": 0.5}, ("LSTM", "LSTMCell")),
    "normalised": Variant({"layer_normalization": True}, _SINGLE),
    "reset_before": Variant({"reset_after": False}, ("GRU",)),
    "addons": Variant({"layer_normalization": "addons"}, ("LSTM", "LSTMCell")),
    "activations": Variant(
        {"activation": "relu", "recurrent_activation": "hard_sigmoid"}, ("LSTM", "GRU", "LSTMCell")
    ),
    "learned": Variant({"learned_initial_state": True}, ("LSTM", "GRU", "SimpleRNN")),
    "learned_both": Variant(
        {"learned_initial_state": True}, ("LSTM", "GRU", "SimpleRNN"), bidirectional=True
    ),
    "relu": Variant({"activation": "relu"}, ("SimpleRNN",)),
    "bfloat16": Variant({"dtype": "mixed_bfloat16"}),
}


class Case(NamedTuple):
    """A layer in a variant."""

    layer: str
    variant: str

    def __str__(self) -> str:
        return f"{self.layer}-{self.variant}"

    @property
    def settings(self) -> Variant:
        return VARIANTS[self.variant]

    @property
    def stacked(self) -> bool:
        return self.layer.startswith("Stacked")

    @property
    def own(self) -> bool:
        """Whether the layer is of this package, not only its cell."""
        return not self.layer.endswith("Cell")

    @property
    def fused(self) -> bool:
        """Whether the fused op runs, and not Keras' own loop."""
        return self.own

    @property
    def stateful(self) -> bool:
        return self.settings.options.get("stateful", False)

    @property
    def tolerance(self) -> float:
        """Outputs are of size one, sums of some ten products of such numbers."""
        return 2.0**-5 if self.variant == "bfloat16" else 1e-5

    def make_layer(self) -> Any:
        options = dict(self.settings.options)
        both = self.settings.bidirectional
        if both and self.stacked:
            options["bidirectional"] = True
        layer = LAYERS[self.layer](H, **options)
        if not both or self.stacked:
            return layer
        return Bidirectional(layer) if self.own else keras.layers.Bidirectional(layer)

    def make_model(self) -> Any:
        """A model around the layer, with random weights, biases included."""
        batch = B if self.stateful else None
        parts = [keras.Input((T, I), batch_size=batch, name="x")]
        if self.settings.masked:
            parts.append(keras.layers.Masking())
        model = keras.Sequential([*parts, self.make_layer(), keras.layers.Dense(2)])
        rng = np.random.default_rng(1)
        model.set_weights([0.5 * rng.normal(size=w.shape) for w in model.get_weights()])
        return model

    def inputs(self) -> np.ndarray:
        """[B, T, I]; zeros, which are masked, on the right, on the left and within."""
        x = np.random.default_rng(2).normal(size=(B, T, I)).astype("float32")
        if self.settings.masked:
            x[0, 3:] = x[1, :2] = x[2, 2] = 0
        return x


def cases() -> Iterator[Case]:
    """All of them."""
    for variant, settings in VARIANTS.items():
        yield from (Case(layer, variant) for layer in settings.layers)


def divided(names: Iterable[str], grid: Iterable[Case], by_default: dict[str, str]) -> list[Any]:
    """Parameters: each name with each case. `by_default` has the cases of the default run for each
    name. `full` adds cases until every pair of a name, a layer and a variant has occurred. The
    rest is `slow`."""
    names, grid = list(names), list(grid)
    chosen = {
        (name, case) for name in names for case in grid if str(case) in by_default[name].split()
    }
    pairwise = {*chosen, *_covering_pairs(product(names, grid), chosen)}
    found = []
    for name, case in product(names, grid):
        key = (name, case)
        marks = [] if key in chosen else [pytest.mark.full if key in pairwise else pytest.mark.slow]
        found.append(pytest.param(name, case, id=f"{name}-{case}", marks=marks))
    return found


def _covering_pairs(
    calls: Iterable[tuple[str, Case]], chosen: set[tuple[str, Case]]
) -> Iterator[tuple[str, Case]]:
    """The calls that, beside those chosen, are needed for every pair. Greedy: the next call shows
    the most new pairs."""

    def pairs(call: tuple[str, Case]) -> set[Any]:
        return {*combinations((call[0], f"layer {call[1].layer}", call[1].variant), 2)}

    left = {call: pairs(call) for call in calls}
    shown = {pair for call in chosen for pair in left.pop(call)}
    while left:
        best = max(left, key=lambda call: len(left[call] - shown))
        new = left.pop(best) - shown
        if not new:
            return
        shown |= new
        yield best


def reset(model: Any) -> Any:
    """A Keras model with zero states."""
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.RNN):
            layer.reset_state()
    return model
