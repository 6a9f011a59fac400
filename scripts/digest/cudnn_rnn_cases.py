"""The cuDNN family: layers, dropout masks, and sizes and conversions of params."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from cases import LARGE, SMALL, TAILS, Case, Draw, Results, Shape, described, internal_ops
from derivatives import second_order

from tf_lstm_ops import raw_ops

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
LENGTHS = {"unsorted": (2, 6, 0, 1, 5), "equal": (4,), "zero": (0,)}
SQUARE = SMALL._replace(inputs=SMALL.units)  # whose input may be skipped


class Model(NamedTuple):
    """A model and how it is called."""

    cell: str
    shape: Shape = SMALL
    layers: int = 1
    directions: int = 1
    num_proj: int = 0
    input_mode: str = "linear_input"
    dropout: float = 0.0
    lengths: str = ""  # a name in LENGTHS; all steps without
    batch_major: bool = False

    def __str__(self) -> str:
        return described(self)

    def scalars(self) -> dict[str, int]:
        sizes = {"num_units": self.shape.units, "input_size": self.shape.inputs}
        return {"num_layers": self.layers, **sizes}

    def attributes(self) -> dict[str, Any]:
        """The attributes that every op of the family has."""
        direction = "bidirectional" if self.directions == 2 else "unidirectional"
        names = {"rnn_mode": self.cell, "input_mode": self.input_mode, "direction": direction}
        return {**names, "dropout": self.dropout, "seed": 3, "seed2": 4}

    def params(self, draw: Draw) -> Any:
        constants = {**self.scalars(), **self.attributes(), "num_proj": self.num_proj}
        (size,) = raw_ops.CudnnRNNParamsSize(**constants, T=draw.dtype, S=tf.int32)
        return draw(int(size), scale=0.6 * self.shape.units**-0.5)

    def arguments(self, draw: Draw) -> dict[str, Any]:
        time, batch, inputs, units = self.shape
        rows, states = [time, batch], [self.layers * self.directions, batch]
        if self.batch_major:
            rows, states = rows[::-1], states[::-1]
        return {
            "input": draw(*rows, inputs),
            "input_h": draw(*states, self.num_proj or units),
            "input_c": draw(*states, units) if self.cell == "lstm" else draw(),
            "params": self.params(draw),
        }

    def of_v3(self) -> dict[str, Any]:
        """The arguments that only V3 has."""
        steps = np.minimum(LENGTHS.get(self.lengths, (self.shape.time,)), self.shape.time)
        lengths = tf.constant(np.resize(steps, self.shape.batch), tf.int32)
        layout = {"num_proj": self.num_proj, "time_major": not self.batch_major}
        return {"sequence_lengths": lengths, **layout}


class Call(NamedTuple):
    model: Model
    version: str = "V3"
    second_order: bool = False
    stock: bool = False

    def case(self) -> Case:
        op = "tf." * self.stock + f"CudnnRNN{self.version}"
        return Case(op, self.model.cell, f"{self.model} {described(self)}", self.run)

    def run(self, draw: Draw) -> Results:
        module = tf.raw_ops if self.stock else raw_ops
        forward = getattr(module, f"CudnnRNN{self.version}")
        backward = getattr(module, f"CudnnRNNBackprop{self.version}")
        given, constants = self.model.arguments(draw), self.model.attributes()
        if self.version == "V3":
            constants |= self.model.of_v3()

        outputs = forward(**given, **constants)._asdict()
        names = ("output", "output_h", "output_c")
        upstream = {f"{name}_backprop": draw(*outputs[name].shape) for name in names}
        results: Results = {
            "forward": [outputs[name] for name in names],
            "backward": backward(**given, **outputs, **upstream, **constants),
            "inference": forward(**given, **constants, is_training=False)[:3],
        }
        if self.model.dropout:
            of_reserve = internal_ops().tf_lstm_ops_cudnn_rnn_dropout_mask
            results["dropout mask"] = of_reserve(reserve_space=outputs["reserve_space"])
        if self.second_order:
            found = second_order(lambda **g: forward(**g, **constants)[:3], given, draw)
            results |= {name: found[name] for name in ("tape", "second order")}
        return results


class Conversion(NamedTuple):
    model: Model
    version: str  # "" or "V2"

    def case(self) -> Case:
        return Case(f"CudnnRNNParams{self.version}", self.model.cell, str(self.model), self.run)

    def counts(self) -> dict[str, int]:
        """The lengths of the lists of weights and of biases."""
        cells = self.model.layers * self.model.directions
        biases = 2 * GATES[self.model.cell] * cells
        if not self.version:
            return {"num_params": biases}
        has_projection = 0 < self.model.num_proj < self.model.shape.units
        return {
            "num_params_weights": biases + cells * has_projection,
            "num_params_biases": biases,
        }

    def run(self, draw: Draw) -> Results:
        constants = {**self.model.scalars(), **self.model.attributes()}
        if self.version:
            constants["num_proj"] = self.model.num_proj
        from_params = getattr(raw_ops, f"CudnnRNNParamsToCanonical{self.version}")
        to_params = getattr(raw_ops, f"CudnnRNNCanonicalToParams{self.version}")
        params = self.model.params(draw)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(params)
            weights, biases = from_params(**constants, **self.counts(), params=params)
            again = to_params(**constants, weights=weights, biases=biases)
        parts = [*weights, *biases]
        return {
            "size": raw_ops.CudnnRNNParamsSize(**constants, T=draw.dtype, S=tf.int64),
            "to canonical": parts,
            "from canonical": again,
            "to canonical, tape": tape.gradient(parts, params, draw.like(parts)),
            "from canonical, tape": tape.gradient(again, parts, draw(*again.shape)),
        }


def _models_of_all_sizes(cell: str) -> Iterator[Model]:
    for shape in (*TAILS, *LARGE):
        yield Model(cell, shape)
        yield Model(cell, shape, 1, 2)
        yield Model(cell, shape, 2, 1 if shape in LARGE else 2, lengths="unsorted", dropout=0.3)
        if cell == "lstm" and shape.units > 1:
            yield Model(cell, shape, 1, 2, num_proj=shape.units // 2, lengths="unsorted")


def _models_with_options(cell: str) -> Iterator[Model]:
    for layers, directions in itertools.product((1, 2, 3), (1, 2)):
        model = Model(cell, SMALL, layers, directions)
        skipping = model._replace(shape=SQUARE, input_mode="skip_input")
        for lengths, batch_major in itertools.product(("", *LENGTHS), (False, True)):
            yield model._replace(lengths=lengths, batch_major=batch_major)
        yield model._replace(dropout=0.4)
        yield model._replace(dropout=0.4, lengths="unsorted", batch_major=True)
        yield skipping
        yield skipping._replace(lengths="unsorted", dropout=0.4)
        for num_proj in (1, 6, SMALL.units) if cell == "lstm" else ():
            yield model._replace(num_proj=num_proj)
            yield model._replace(num_proj=num_proj, lengths="unsorted", dropout=0.4)
            yield skipping._replace(num_proj=num_proj)
    yield from (Model(cell, shape, input_mode="auto_select") for shape in (SMALL, SQUARE))


def _calls(cell: str) -> Iterator[Call]:
    for model in (*_models_of_all_sizes(cell), *_models_with_options(cell)):
        yield Call(model)
    deep = Model(cell, SMALL, 2, 2, dropout=0.4)
    for version in ("", "V2"):
        yield from (Call(Model(cell, shape), version) for shape in TAILS)
        yield Call(deep._replace(shape=SQUARE, input_mode="skip_input"), version)
    for version in ("", "V2", "V3"):
        yield Call(deep, version, stock=True)
        yield Call(deep, version, second_order=True)
    if cell == "lstm":
        yield Call(deep._replace(lengths="unsorted", num_proj=6), second_order=True)


def cases() -> Iterator[Case]:
    for cell in GATES:
        yield from (call.case() for call in _calls(cell))
        for model in _models_with_options(cell):
            if not (model.lengths or model.batch_major):
                versions = ("V2",) if model.num_proj else ("", "V2")
                yield from (Conversion(model, version).case() for version in versions)
