"""tf_lstm_ops.keras: the ops of its layers with every kind of argument, then the layers."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from cases import (
    DTYPES,
    LARGE,
    SMALL,
    TAILS,
    WIDE,
    Case,
    Draw,
    Results,
    Shape,
    described,
    internal_ops,
)
from derivatives import first_order, second_order

import tf_lstm_ops

GATES = {"lstm": 4, "gru": 3, "reset_before_gru": 3}
OPS = {"lstm": "KerasLSTM", "gru": "KerasGRU", "reset_before_gru": "KerasResetBeforeGRU"}
MASKS = ("", "full", "right", "left", "holes", "one row", "nothing")
FLAGS = ("go_backwards", "zero_output_for_mask", "return_sequences")
ACTIVATIONS = (
    *("linear", "relu", "tanh", "sigmoid", "hard_sigmoid", "hard_tanh", "softsign", "elu"),
    *("leaky_relu", "silu", "gelu"),
)
DROPOUT = ("input_dropout", "recurrent_dropout")


def make_mask(kind: str, shape: Shape, rng: np.random.Generator) -> Any:
    """[B, T] boolean; None without a mask."""
    size = shape.batch, shape.time
    if not kind:
        return None
    if kind in ("full", "nothing"):
        return np.full(size, kind == "full")
    valid = rng.random(size) < 0.6
    if kind in ("left", "right"):  # the side of the padding
        valid = np.sort(valid, axis=1)[:, :: 1 if kind == "left" else -1]
    if kind == "one row":
        valid = np.arange(shape.batch)[:, np.newaxis] != np.zeros(shape.time)
    return valid


class Call(NamedTuple):
    cell: str
    shape: Shape = SMALL
    mask: str = ""
    present: Sequence[str] = ("bias",)  # the optional arguments that are given
    options: dict[str, Any] = {}  # noqa: RUF012
    second_order: bool = False

    def case(self) -> Case:
        return Case(OPS[self.cell], self.cell, described(self), self.run)

    def run(self, draw: Draw) -> Results:
        op = getattr(internal_ops(), f"tf_lstm_ops_keras_{self.cell}")
        given, constants = self._arguments(draw)

        def call(training: bool, **values: Any) -> list[Any]:
            results = op(**values, **constants, training=training, **self.options)
            return list(results[:-1])  # the last one is the reserve space

        derivatives = second_order if self.second_order else first_order
        results = derivatives(functools.partial(call, True), given, draw)
        # The second call takes the weights that the first one packed.
        results["inference"] = [call(False, **given) for _ in range(2)]
        return results

    def _arguments(self, draw: Draw) -> tuple[dict[str, Any], dict[str, Any]]:
        """Those that have gradients here, and the others."""
        time, batch, inputs, units = self.shape
        gates, scale = GATES[self.cell], (inputs + units) ** -0.5
        hidden = (units + 1) // 2 if "projection" in self.present else units
        mask = make_mask(self.mask, self.shape, draw.rng)
        given = {
            "x": draw(batch, time, inputs),
            "initial_h": draw(batch, hidden),
            "kernel": draw(inputs, gates * units, scale=scale),
            "recurrent_kernel": draw(hidden, gates * units, scale=scale),
        }
        sizes: dict[str, list[int]] = {
            "bias": [2, 3 * units] if self.cell == "gru" else [gates * units],
            "input_dropout": [gates, batch, inputs],
            "recurrent_dropout": [gates, batch, hidden],
        }
        if self.cell == "lstm":
            given["initial_c"] = draw(batch, units)
            sizes["peephole"] = [3, units]
            sizes["projection"] = [units, hidden]
        optional = {k: draw(*(size if k in self.present else [0])) for k, size in sizes.items()}
        given |= {k: v for k, v in optional.items() if k in self.present and k not in DROPOUT}
        constants = {k: v for k, v in optional.items() if k not in given}
        return given, {**constants, "mask": tf.constant([] if mask is None else mask, tf.bool)}


class Layer(NamedTuple):
    name: str
    mask: str = ""
    options: dict[str, Any] = {}  # noqa: RUF012
    dtypes: Sequence[str] = DTYPES

    def case(self) -> Case:
        cell = self.name.lower()
        return Case(f"keras.{self.name}", cell, described(self), self.run, self.dtypes)

    def run(self, draw: Draw) -> Results:
        options = {"dtype": draw.dtype.name, "recurrent_initializer": "zeros", **self.options}
        layer = getattr(tf_lstm_ops.keras, self.name)(
            SMALL.units, return_state=True, seed=5, **options
        )
        x = draw(SMALL.batch, SMALL.time, SMALL.inputs)
        layer.build(x.shape)
        for weight in layer.trainable_weights:
            weight.assign(draw(*weight.shape, scale=0.3))
        mask = make_mask(self.mask, SMALL, draw.rng)

        def call(training: bool, x: Any, **_weights: Any) -> Any:
            return layer(x, mask=mask, training=training)

        given = {"x": x, **{weight.name: weight.value for weight in layer.trainable_weights}}
        results = first_order(functools.partial(call, True), given, draw)
        return {**results, "inference": call(False, x)}


def _calls(cell: str) -> Iterator[Call]:
    peephole = ("peephole",) if cell == "lstm" else ()
    everything = ("bias", *peephole, *DROPOUT)
    backwards = dict.fromkeys(FLAGS[:2], True)
    for shape in (*TAILS, *LARGE):
        yield Call(cell, shape)
        yield Call(cell, shape, "holes", everything, backwards)
    yield Call(cell, WIDE)
    for flags in itertools.product((False, True), repeat=len(FLAGS)):
        options = dict(zip(FLAGS, flags, strict=True))
        yield from (Call(cell, SMALL, mask, options=options) for mask in MASKS)
    for present in ((), *(("bias", name) for name in (*peephole, *DROPOUT)), everything):
        yield from (Call(cell, SMALL, mask, present) for mask in MASKS)
        if cell == "lstm":
            yield Call(cell, SMALL, "holes", present, {"cell_clip": 0.6})
    yield from _other_lstm_calls() if cell == "lstm" else _other_gru_calls(cell)
    yield Call(cell, SMALL, "holes", everything, backwards, second_order=True)


def _other_lstm_calls() -> Iterator[Call]:
    """With a projection, and with other activations."""
    for shape in (s for s in (SMALL, *TAILS, *LARGE) if s.units > 1):
        yield Call("lstm", shape, "holes", ("bias", "projection"))
    yield Call("lstm", SMALL, "holes", ("bias", "peephole", "projection", *DROPOUT))
    for name in ACTIVATIONS:
        options = {"activation": name, "recurrent_activation": "hard_sigmoid"}
        yield Call("lstm", SMALL, "holes", options=options)
        options = {"activation": "tanh", "recurrent_activation": name, "cell_clip": 0.6}
        yield Call("lstm", TAILS[-1], "", ("bias", "peephole"), options)


def _other_gru_calls(cell: str) -> Iterator[Call]:
    """With other activations."""
    for name in ACTIVATIONS:
        options = {"activation": name, "recurrent_activation": "hard_sigmoid"}
        yield Call(cell, SMALL, "holes", options=options)
        options = {"activation": "tanh", "recurrent_activation": name}
        yield Call(cell, TAILS[-1], "", ("bias", *DROPOUT), options)


def _layers() -> Iterator[Layer]:
    for name in ("LSTM", "GRU"):
        yield from (Layer(name, mask, {"return_sequences": True}) for mask in MASKS)
        yield Layer(name, "right", dict.fromkeys(FLAGS[:2], True))
        yield Layer(name, "holes", {"use_bias": False})
        for implementation in (1, 2):
            rates = {"dropout": 0.3, "recurrent_dropout": 0.4}
            yield Layer(name, "holes", {**rates, "implementation": implementation})
        for policy in ("mixed_float16", "mixed_bfloat16"):
            yield Layer(name, "holes", {"dtype": policy}, ("float32",))
    yield Layer("LSTM", "holes", {"use_peephole": True, "cell_clip": 0.6})
    for form in ("haste", "addons"):
        for mask in MASKS:
            yield Layer("LSTM", mask, {"layer_normalization": form})
        rates = {"recurrent_dropout": 0.4, "implementation": 1}
        yield Layer("LSTM", "holes", {"layer_normalization": form, **rates})
    yield from (Layer("GRU", mask, {"layer_normalization": True}) for mask in MASKS)


def cases() -> Iterator[Case]:
    for cell in GATES:
        yield from (call.case() for call in _calls(cell))
    yield from (layer.case() for layer in _layers())
