"""MPSGraphLSTM and MPSGraphLSTMGradients."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from cases import LARGE, SMALL, TAILS, Case, Draw, Results, Shape, described
from derivatives import first_order, second_order

from tf_lstm_ops import raw_ops

GATES = ("input", "forget", "cell", "output")
PLACES = (*(f"{gate}_gate_activation" for gate in GATES), "activation")
ACTIVATIONS = ("none", "relu", "tanh", "sigmoid", "hard_sigmoid")
OPTIONAL = ("input_weight", "bias", "init_state", "init_cell", "peephole")
MASKS = ("NW", "1W", "N1", "11", "W", "1")  # shapes, by the batch N and the width W = D*H


class Call(NamedTuple):
    shape: Shape = SMALL
    descriptor: dict[str, Any] = {}  # noqa: RUF012
    mask: str = ""  # one of MASKS, or none
    absent: Sequence[str] = ()  # names in OPTIONAL
    second_order: bool = False

    def case(self) -> Case:
        return Case("MPSGraphLSTM", "lstm", described(self), self.run)

    def run(self, draw: Draw) -> Results:
        given, constants = self._arguments(draw), {**self.descriptor, "mask": self._mask(draw)}
        op = functools.partial(raw_ops.MPSGraphLSTM, **constants)
        derivatives = second_order if self.second_order else first_order
        results = derivatives(functools.partial(op, training=True), given, draw)
        results["inference"] = op(**given)
        # Without training the backward pass runs the forward pass again.
        cell_only = first_order(functools.partial(op, produce_cell=True), given, draw)
        results["produce_cell"] = list(cell_only.values())
        results["MPSGraphLSTMGradients"] = self._gradients(given, constants, results, draw)
        return results

    def _gradients(
        self, given: dict[str, Any], constants: dict[str, Any], results: Results, draw: Draw
    ) -> Any:
        output, cell, z_state = results["forward"]
        upstream = {"source_gradient": draw(*output.shape)}
        if "init_cell" not in self.absent:
            upstream["state_gradient"] = draw(*output.shape[1:])
            upstream["cell_gradient"] = draw(1, *output.shape[1:])
        saved = {"z_state": z_state, "cell_output_fwd": cell}
        return raw_ops.MPSGraphLSTMGradients(**given, **saved, **upstream, **constants)

    def _directions(self) -> int:
        return 2 if self.descriptor.get("bidirectional") else 1

    def _arguments(self, draw: Draw) -> dict[str, Any]:
        time, batch, inputs, units = self.shape
        gates, width = self._directions() * 4 * units, self._directions() * units
        both = [2] if self._directions() == 2 else []
        scale = (inputs + units) ** -0.5
        sizes = {
            "source": [time, batch, gates if "input_weight" in self.absent else inputs],
            "init_state": [batch, width],
            "init_cell": [batch, width],
            "bias": [gates],
            "peephole": [*both, 4 * units],
        }
        given = {
            "recurrent_weight": draw(*both, 4 * units, units, scale=scale),
            "input_weight": draw(gates, inputs, scale=scale),
            # Small, so that no states grow to infinity without activations.
            **{name: draw(*size, scale=0.4) for name, size in sizes.items()},
        }
        return {name: value for name, value in given.items() if name not in self.absent}

    def _mask(self, draw: Draw) -> Any:
        sizes = {"N": self.shape.batch, "W": self._directions() * self.shape.units, "1": 1}
        return draw(*(sizes[letter] for letter in self.mask)) if self.mask else None


def _activations() -> Iterator[dict[str, Any]]:
    """Each activation in each place, then ten of the other combinations."""
    yield from ({place: name} for place, name in itertools.product(PLACES, ACTIVATIONS))
    names = np.random.default_rng(0).choice(ACTIVATIONS, [10, len(PLACES)])
    yield from (dict(zip(PLACES, row, strict=True)) for row in names.tolist())


def _calls() -> Iterator[Call]:
    both, last = {"bidirectional": True}, {"forget_gate_last": True}
    for shape in (*TAILS, *LARGE):
        yield Call(shape)
        yield Call(shape, both, "NW", ["peephole"])
    descriptors: list[dict[str, Any]] = [{}, {"reverse": True}, last, both, {**both, **last}]
    for descriptor in descriptors:
        yield from (Call(SMALL, descriptor, mask) for mask in MASKS)
        yield from (Call(SMALL, descriptor, absent=[name]) for name in OPTIONAL)
        yield Call(SMALL, descriptor, absent=OPTIONAL)
    for descriptor in _activations():
        yield Call(SMALL, descriptor)
        yield Call(SMALL, {**descriptor, **both, **last}, "NW", ["peephole"])
    yield Call(SMALL, {**both, **last}, "NW", second_order=True)


def cases() -> Iterator[Case]:
    return (call.case() for call in _calls())
