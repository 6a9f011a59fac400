"""The block cell's ops, under their own names and, after `stock.override`, under stock's."""

import functools
import re
from typing import Any

import numpy as np
import tensorflow as tf

from block_cell.contract import (
    SEQUENCE,
    SIGNATURES,
    STEP,
    extents,
    length_error,
    right_shapes,
    shape_error,
)
from oracle import block_cell
from oracle.block_cell import Inputs, Outputs, zero_upstream
from tf_lstm_ops import op_definitions, raw_ops

from .call import TOLERANCE, Array, Call, Derivatives
from .draw import HUGE, choose, happens, is_huge, spoil, uniform, wide

STOCK = ["LSTMBlockCell", "LSTMBlockCellGrad", "BlockLSTM", "BlockLSTMGrad"]
ROWS = [*Outputs._fields, *(f"{field}_grad" for field in Outputs._fields)]
FULL = {
    "LSTMBlockCellFullGrad": {**STEP, **dict.fromkeys(ROWS, ("B", "H"))},
    "BlockLSTMFullGrad": {**SEQUENCE, **dict.fromkeys(ROWS, ("T", "B", "H"))},
}
OPS = [*SIGNATURES, *FULL]


def _sizes(rng: np.random.Generator) -> dict[str, int]:
    return {
        "time": int(rng.integers(0, 5)),
        "batch": int(rng.integers(0, 7)),
        "inputs": choose(rng, [0, 1, 2, 3, 7, 16]),
        "units": choose(rng, [0, 1, 1, 2, 3, 4, 5, 8, 9, 16, 17]),
    }


def draw(rng: np.random.Generator) -> Call:
    if happens(rng, 0.15):
        return _full_gradient(rng)
    op, dtype = choose(rng, sorted(SIGNATURES)), choose(rng, sorted(TOLERANCE))
    is_stock = op in STOCK and dtype in ("half", "float32") and happens(rng, 0.5)
    sizes = _sizes(rng)
    shapes = spoil(rng, right_shapes(op, **sizes))
    lengths = [int(rng.integers(0, sizes["time"] + 1))] * 4 + [int(rng.integers(-2, 8)), -(2**63)]
    length = choose(rng, [*lengths, choose(rng, HUGE)])
    options = _options(rng, op)
    tensors = {
        name: tf.fill(shapes[name], tf.constant(length, tf.int64))
        if name == "seq_len_max"
        else uniform(rng, shapes[name], dtype)
        for name in SIGNATURES[op]
    }
    found = shape_error(op, shapes) or length_error(op, shapes, length)
    # The text of a size that overflows gives no numbers.
    texts: list[str] | None = [re.escape(found)] if found else []
    if is_huge(shapes):  # without an element, either is right: 2**63 - 1 rows of no unit
        texts = [r"\w"] if found else None
    function = getattr(tf.raw_ops if is_stock else raw_ops, op)
    is_right = texts == []
    return Call(
        f"{'stock' if is_stock else 'own'} {op}",
        lambda *values: function(**dict(zip(tensors, values, strict=True)), **options),
        list(tensors.values()),
        texts,
        (lambda: _oracle(op, length, options, tensors)) if is_right else None,
        dtype,
        ("known", "unknown") if is_stock else ("known", "unknown", "composite"),
        _derivatives(op, length, options, tensors) if is_right and dtype == "float64" else None,
    )


def _options(rng: np.random.Generator, op: str) -> dict[str, Any]:
    options: dict[str, Any] = {"use_peephole": happens(rng, 0.5)}
    if "Grad" not in op:
        options["cell_clip"] = choose(rng, [-1.0, 0.0, 0.0, 0.25, 3.0])
        if "V2" not in op:
            options["forget_bias"] = choose(rng, [-2.0, 0.0, 1.0])
    return options


def _oracle(op: str, length: int, options: dict[str, Any], tensors: dict[str, Any]) -> Any:
    arrays = {k: wide(v) for k, v in tensors.items() if k != "seq_len_max"}
    inputs = Inputs(*(arrays[name] for name in Inputs._fields))
    options = {"gate_order": "ifco" if "V2" in op else "icfo", **options}
    is_sequence = "seq_len_max" in tensors
    if "Grad" not in op:
        return list(_forward(is_sequence, length, inputs, options))
    saved = Outputs(*(arrays.get(name, arrays["i"]) for name in Outputs._fields))
    upstream = zero_upstream(saved, cs=arrays["cs_grad"], h=arrays["h_grad"])
    if is_sequence:
        return list(block_cell.sequence_backward(length, inputs, saved, upstream, **options))
    d, gates = block_cell.cell_backward(inputs, saved, upstream, **options)
    return [d.cs_prev, gates, d.wci, d.wcf, d.wco]


def _forward(is_sequence: bool, length: int, inputs: Inputs, options: dict[str, Any]) -> Outputs:
    options = {"forget_bias": 0.0, **options}
    if is_sequence:
        return block_cell.sequence(length, inputs, **options)
    return block_cell.cell(inputs, **options)


def _derivatives(op: str, length: int, options: dict[str, Any], tensors: Any) -> Derivatives | None:
    if "Grad" in op:
        return None
    names = list(tensors)
    of_backward = {"gate_order": "ifco" if "V2" in op else "icfo"}
    of_backward["use_peephole"] = options["use_peephole"]
    is_sequence = "seq_len_max" in tensors

    def backward(values: list[Array], upstream: list[Array]) -> Any:
        inputs = Inputs(*values)
        saved = _forward(is_sequence, length, inputs, {**options, **of_backward})
        if is_sequence:
            return block_cell.sequence_backward(
                length, inputs, saved, Outputs(*upstream), **of_backward
            )
        return block_cell.cell_backward(inputs, saved, Outputs(*upstream), **of_backward).inputs

    return Derivatives([names.index(name) for name in Inputs._fields], 7, backward)


def _full_gradient(rng: np.random.Generator) -> Call:
    """The gradients of all seven outputs, which any graph may hold."""
    op = choose(rng, sorted(FULL))
    sizes = extents(*(int(rng.integers(low, 5)) for low in (0, 1, 0, 1)))
    right = {k: tuple(sizes[d] for d in dims) for k, dims in FULL[op].items()}
    shapes = spoil(rng, right)
    length = int(rng.integers(0, sizes["T"] + 1))
    tensors = {
        name: tf.fill(shape, tf.constant(length, tf.int64))
        if name == "seq_len_max"
        else uniform(rng, shape)
        for name, shape in shapes.items()
    }
    order = choose(rng, ["ICFO", "IFCO", "ICFO", "IFCO", "IIII", "", "icfo", "\0\0\0\0"])
    options = {"use_peephole": happens(rng, 0.5), "gate_order": order}
    is_right = shapes == right and order in ("ICFO", "IFCO")
    texts = [] if is_right else ["gate_order"] if shapes == right else [r"\w"]
    run = functools.partial(_run_generated, op, list(tensors), options)
    want = (lambda: _full_oracle(op, length, options, tensors)) if is_right else None
    return Call(f"own {op}", run, list(tensors.values()), texts, want)


def _run_generated(op: str, names: list[str], options: dict[str, Any], *values: Any) -> Any:
    return op_definitions.function(op)(**dict(zip(names, values, strict=True)), **options)


def _full_oracle(op: str, length: int, options: dict[str, Any], tensors: dict[str, Any]) -> Any:
    arrays = {k: wide(v) for k, v in tensors.items()}
    inputs, saved, upstream = (
        cls(*(arrays[f"{k}{suffix}"] for k in cls._fields))
        for cls, suffix in ((Inputs, ""), (Outputs, ""), (Outputs, "_grad"))
    )
    options = {**options, "gate_order": options["gate_order"].lower()}
    if op.startswith("Block"):
        return block_cell.sequence_backward(length, inputs, saved, upstream, **options)
    return block_cell.cell_backward(inputs, saved, upstream, **options).inputs
