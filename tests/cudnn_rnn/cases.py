"""Calls of the family as data: the shapes that an op takes, tensors of these shapes, the call.

Written from the documented rules, independently of the package, together with the text of every
rule that a call breaks.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import raw_ops

Shape = tuple[int, ...]
Values = dict[str, tf.Tensor]

SOURCES = {"own": raw_ops, "stock": tf.raw_ops}
VERSIONS = ["", "V2", "V3"]
FORWARD = [f"CudnnRNN{version}" for version in VERSIONS]
BACKPROP = [f"CudnnRNNBackprop{version}" for version in VERSIONS]
SEQUENCE_OPS = [*FORWARD, *BACKPROP]
TO_CANONICAL = ["CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2"]
TO_PARAMS = ["CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2"]
LAYOUT_OPS = ["CudnnRNNParamsSize", *TO_CANONICAL, *TO_PARAMS]

DTYPES = ["half", "bfloat16", "float32", "float64"]
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@dataclass(frozen=True)
class Case:
    """A model and the sizes of a batch for it."""

    mode: str = "lstm"
    layers: int = 1
    directions: int = 1
    inputs: int = 3
    units: int = 4
    proj: int = 0
    input_mode: str = "linear_input"
    time: int = 5
    batch: int = 3
    time_major: bool = True

    @property
    def pseudo_layers(self) -> int:
        return self.layers * self.directions

    @property
    def hidden(self) -> int:
        return self.proj if 0 < self.proj < self.units else self.units

    @property
    def skips_input(self) -> bool:
        same = self.inputs == self.units
        return self.input_mode == "skip_input" or (self.input_mode == "auto_select" and same)

    def matrices(self) -> list[Shape]:
        """The shapes of all matrices in the canonical order."""
        found: list[Shape] = []
        for layer in range(self.layers):
            width = self.directions * self.hidden if layer else self.inputs
            if layer == 0 and self.skips_input:
                width = 0
            gates = GATES[self.mode]
            one = [(self.units, width)] * gates + [(self.units, self.hidden)] * gates
            if self.hidden < self.units:
                one.append((self.hidden, self.units))
            found += one * self.directions
        return found

    def biases(self) -> list[Shape]:
        return [(self.units,)] * (2 * GATES[self.mode] * self.pseudo_layers)

    def params_size(self) -> int:
        return sum(math.prod(shape) for shape in (*self.matrices(), *self.biases()))

    def attributes(self, op: str) -> dict[str, Any]:
        """Those that the op has."""
        found: dict[str, Any] = {
            "rnn_mode": self.mode,
            "input_mode": self.input_mode,
            "direction": "bidirectional" if self.directions == 2 else "unidirectional",
        }
        if op.endswith("V3"):
            found["time_major"] = self.time_major
        if op.endswith(("V3", "ParamsV2", "CanonicalV2", "ParamsSize")):
            found["num_proj"] = self.proj
        return found

    def shapes(self, op: str) -> dict[str, Shape]:
        """Of the tensors of a forward or backward op, in their order, but for reserve_space."""
        rows, batch = self.pseudo_layers, self.batch
        outer = (self.time, batch) if self.time_major else (batch, self.time)
        state = (rows, batch) if self.time_major else (batch, rows)
        lstm = self.mode == "lstm"
        found = {
            "input": (*outer, self.inputs),
            "input_h": (*state, self.hidden),
            "input_c": (*state, self.units) if lstm else (),
            "params": (self.params_size(),),
        }
        if op.endswith("V3"):
            found["sequence_lengths"] = (batch,)
        if "Backprop" in op:
            output = (*outer, self.directions * self.hidden)
            for suffix in ("", "_backprop"):
                found[f"output{suffix}"] = output
                found[f"output_h{suffix}"] = found["input_h"]
                found[f"output_c{suffix}"] = found["input_c"]
        return found

    def reserve_size(self, dtype: str, lengths: list[int] | None = None) -> int:
        """Of reserve_space, in elements, as documented."""
        steps = self.time * self.batch if lengths is None else sum(lengths)
        saved = {"lstm": 5, "gru": 4}.get(self.mode, 0) * self.units * self.pseudo_layers
        inner = (self.layers - 1) * self.directions * self.hidden
        return 64 // tf.as_dtype(dtype).size + steps * (saved + inner)

    def result_shapes(self, op: str) -> list[Shape | None]:
        """Of an op's results; None for reserve_space and host_reserved."""
        shapes = self.shapes("BackpropV3")
        if "Backprop" in op:
            return [shapes[name] for name in ("input", "input_h", "input_c", "params")]
        outputs = [shapes[name] for name in ("output", "output_h", "output_c")]
        return [*outputs, None] if op == "CudnnRNN" else [*outputs, None, None]


def random_tensor(rng: np.random.Generator, shape: Shape, dtype: str) -> tf.Tensor:
    return tf.constant(rng.uniform(-0.5, 0.5, size=shape), tf.as_dtype(dtype))


def arguments(
    op: str,
    case: Case,
    dtype: str = "float32",
    lengths: list[int] | None = None,
    shapes: dict[str, Shape] | None = None,
    seed: int = 0,
) -> Values:
    """Tensors with small random elements; of these shapes, or the right ones. Lengths are full
    unless given. A backward op's outputs and reserve_space are those of the right forward call."""
    rng = np.random.default_rng(seed)
    right = case.shapes(op)
    if "Backprop" in op:
        saved = outputs_of(op.replace("Backprop", ""), case, dtype, lengths, seed)
    else:
        saved = {}
    values = {}
    shapes = shapes or right
    for name, shape in shapes.items():
        if name == "sequence_lengths":
            time = shapes["input"][_axes(case)[0]] if len(shapes["input"]) == 3 else case.time
            full = tf.fill(shape, np.int32(time))
            values[name] = full if lengths is None else tf.constant(lengths, tf.int32)
        elif name in saved and shape == right[name]:
            values[name] = saved[name]
        else:
            values[name] = random_tensor(rng, shape, dtype)
    return {**values, **{k: v for k, v in saved.items() if k not in right}}


def outputs_of(
    op: str, case: Case, dtype: str, lengths: list[int] | None = None, seed: int = 0
) -> Values:
    """The named outputs of a training call of a forward op."""
    return call(op, case, arguments(op, case, dtype, lengths, seed=seed))._asdict()


def call(op: str, case: Case, values: Values, source: str = "own", **options: Any) -> Any:
    """The op with the case's attributes; `options` replace or add to them."""
    return getattr(SOURCES[source], op)(**values, **{**case.attributes(op), **options})


def specification(values: Values, known: bool) -> dict[str, tf.TensorSpec]:
    return {k: tf.TensorSpec(v.shape if known else None, v.dtype) for k, v in values.items()}


def trace(op: str, case: Case, specs: dict[str, tf.TensorSpec], **options: Any) -> Any:
    """A traced function of all tensors, in their order: shape inference runs here."""
    names = list(specs)

    def function(*values: tf.Tensor) -> Any:
        return call(op, case, dict(zip(names, values, strict=True)), **options)

    return tf.function(function).get_concrete_function(*specs.values())


@cache
def traced_without_shapes(op: str, case: Case, source: str, **options: Any) -> Any:
    specs = specification(arguments(op, case), known=False)
    return trace(op, case, specs, source=source, **options)


# --- what a call must not break ---------------------------------------------------------------


def broken_rules(op: str, case: Case, shapes: dict[str, Shape]) -> list[str]:
    """The texts of the rules that these shapes break; an error tells one of them."""
    wrong_ranks = [
        f"{name} must be rank {rank} but is rank {len(shapes[name])}"
        for name, rank in _ranks(op).items()
        if len(shapes[name]) != rank
    ]
    return wrong_ranks or [
        *_broken_sizes(case, shapes),
        *_broken_states(case, shapes),
        *_broken_model(case, shapes),
    ]


def _ranks(op: str) -> dict[str, int]:
    """Of what has the same rank in every mode."""
    ranks = {"input": 3, "input_h": 3, "params": 1}
    if op.endswith("V3"):
        ranks["sequence_lengths"] = 1
    if "Backprop" in op:
        ranks |= dict.fromkeys(("output", "output_h", "output_backprop", "output_h_backprop"), 3)
    return ranks


def _brackets(shape: Shape) -> str:
    return f"[{','.join(map(str, shape))}]"


def _axes(case: Case) -> tuple[int, int]:
    """Where time or pseudo-layers are, and where the batch is."""
    return (0, 1) if case.time_major else (1, 0)


def _broken_sizes(case: Case, shapes: dict[str, Shape]) -> Iterator[str]:
    outer, batch = _axes(case)
    for name, sizes in (("input", (2,)), ("input_h", (outer, 2))):
        if 0 in (shapes[name][k] for k in sizes):
            yield f"{name} is empty, has shape: {_brackets(shapes[name])}"
    rows, want = shapes["input_h"][batch], shapes["input"][batch]
    if rows != want:
        yield f"input_h.dim_size({batch}) != batch_size: {rows} vs. {want}"
    if "sequence_lengths" in shapes and shapes["sequence_lengths"] != (want,):
        count = shapes["sequence_lengths"][0]
        yield f"sequence_lengths.dim_size(0) != batch_size: {count} vs. {want}"


def _broken_states(case: Case, shapes: dict[str, Shape]) -> Iterator[str]:
    h, c = shapes["input_h"], shapes["input_c"]
    if case.mode == "lstm" and len(c) != 3:
        yield f"input_c must be rank 3 but is rank {len(c)}"
    elif case.mode == "lstm" and case.proj == 0 and h != c:
        both = f"{_brackets(h)} {_brackets(c)}"
        yield f"input_h and input_c must have the same shape w/o projection: {both}"
    elif case.mode == "lstm" and case.proj and (h[:2] != c[:2] or not h[2] == case.proj <= c[2]):
        both = f"{_brackets(h)} {_brackets(c)}"
        yield f"Invalid input_h and input_c w/ projection size: {case.proj} {both}"


def _broken_model(case: Case, shapes: dict[str, Shape]) -> Iterator[str]:
    """What depends on the model that the shapes stand for, where they stand for one."""
    outer, batch = _axes(case)
    if shapes["input_h"][outer] % case.directions:
        rule = f"must be a multiple of {case.directions}, the number of directions"
        yield f"input_h.dim_size({outer}) {rule}, but is {shapes['input_h'][outer]}"
        return
    if case.mode == "lstm" and len(shapes["input_c"]) != 3:
        return
    found = replace(
        case,
        time=shapes["input"][outer],
        batch=shapes["input"][batch],
        inputs=shapes["input"][2],
        layers=shapes["input_h"][outer] // case.directions,
        units=shapes["input_c" if case.mode == "lstm" else "input_h"][2],
    )
    if found.input_mode == "skip_input" and found.inputs != found.units:
        sizes = f"{found.inputs} vs. {found.units}"
        yield f"input_mode skip_input needs input_size == num_units: {sizes}"
    if shapes["params"] != (found.params_size(),):
        sizes = f"{shapes['params'][0]} vs. {found.params_size()}"
        yield f"params.dim_size(0) != params size: {sizes}"
    for name, want in found.shapes("Backprop").items():
        is_ignored = case.mode != "lstm" and "_c" in name
        if name.startswith("output") and shapes.get(name, want) != want and not is_ignored:
            shown = f"expected {_brackets(want)} but got {_brackets(shapes[name])}"
            yield f"Invalid {name} shape: {shown}"


def sizes_of(case: Case, **more: Any) -> dict[str, Any]:
    sizes = {"num_layers": case.layers, "num_units": case.units, "input_size": case.inputs}
    return {**sizes, **more}
