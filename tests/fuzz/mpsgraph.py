"""MPSGraph's two ops with all options."""

from typing import Any

import numpy as np
import tensorflow as tf

from mpsgraph.cases import FACTORS, Case
from mpsgraph.test_errors import broken_rules, right_shapes
from oracle.mpsgraph import Arguments, Results, mpsgraph_lstm, mpsgraph_lstm_backward
from tf_lstm_ops import raw_ops

from .call import TOLERANCE, Array, Call, Derivatives
from .draw import choose, happens, is_huge, spoil, uniform, wide

OPS = ["MPSGraphLSTM", "MPSGraphLSTMGradients"]
INPUTS = Arguments._fields


def draw(rng: np.random.Generator) -> Call:
    chosen = {name: choose(rng, values) for name, values in FACTORS.items()}
    sizes = dict(zip(("time", "batch", "inputs"), map(int, rng.integers(1, 5, 3)), strict=True))
    case = Case(**chosen, **sizes, units=choose(rng, [1, 2, 3, 5, 8, 17]))
    op, dtype = choose(rng, OPS), choose(rng, sorted(TOLERANCE))
    right = right_shapes(op, case)
    shapes = spoil(rng, right)
    if any(s == (0,) != right[k] for k, s in shapes.items()):  # absent, and so another case
        shapes = right
    rules = broken_rules(op, case, {"mask": (), **shapes})
    # A spoilt shape may agree with another size that the rules take from the same tensor.
    is_as_drawn = shapes == right
    is_right = is_as_drawn and not rules
    # Of two errors the rules name those of ranks, while the op may find the other one first.
    is_plain = sum(s != right[k] for k, s in shapes.items()) == 1 and not is_huge(shapes)
    errors = [] if is_right else (rules and (rules if is_plain else [r"\w"])) or None
    tensors = {k: uniform(rng, s, dtype) for k, s in shapes.items()}
    if op == "MPSGraphLSTM":
        options = {"produce_cell": happens(rng, 0.7), "training": happens(rng, 0.7)}
        return _forward(case, dtype, tensors, errors, options)
    return _gradients(case, dtype, tensors, errors)


def _values(tensors: dict[str, tf.Tensor]) -> tuple[Arguments, Array | None]:
    found = {k: wide(v) for k, v in tensors.items()}
    return Arguments(*(found.get(k) for k in INPUTS)), found.get("mask")


def _forward(case: Case, dtype: str, tensors: Any, errors: Any, options: dict[str, bool]) -> Call:
    names = list(tensors)

    def run(*values: Any) -> list[Any]:
        given = dict(zip(names, values, strict=True))
        results = raw_ops.MPSGraphLSTM(**given, **case.attributes, **options)
        return [a for a in results if a is not None]

    def want() -> list[Array]:
        arguments, mask = _values(tensors)
        found = mpsgraph_lstm(arguments, case.options(mask))
        has_cell = options["produce_cell"] or options["training"]
        return [found.output, *[found.cell] * has_cell, *[found.z_state] * options["training"]]

    is_right = errors is not None and not errors
    is_differentiated = is_right and dtype == "float64" and options["training"]
    return Call(
        "own MPSGraphLSTM",
        run,
        list(tensors.values()),
        errors,
        want if is_right else None,
        dtype,
        ("known", "unknown", "composite"),
        _derivatives(case, tensors) if is_differentiated else None,
    )


def _derivatives(case: Case, tensors: dict[str, tf.Tensor]) -> Derivatives:
    names = [k for k in INPUTS if k in tensors]
    mask = _values(tensors)[1]

    def backward(values: list[Array], upstream: list[Array]) -> list[Array]:
        arguments = Arguments(**{k: None for k in INPUTS} | dict(zip(names, values, strict=True)))
        options = case.options(mask)
        saved = mpsgraph_lstm(arguments, options)
        output, cell, z_state = upstream
        zeros = np.zeros_like(saved.state)
        given = Results(output, zeros, zeros, cell, z_state)
        found = mpsgraph_lstm_backward(arguments, saved.cell, saved.z_state, given, options)
        return [getattr(found, k) for k in names]

    return Derivatives([list(tensors).index(k) for k in names], 3, backward)


def _gradients(case: Case, dtype: str, tensors: dict[str, tf.Tensor], errors: Any) -> Call:
    names = list(tensors)

    def run(*values: Any) -> list[Any]:
        given = dict(zip(names, values, strict=True))
        results = raw_ops.MPSGraphLSTMGradients(**given, **case.attributes)
        return [a for a in results if a is not None]

    def want() -> list[Array]:
        arguments, mask = _values(tensors)
        found = {k: wide(v) for k, v in tensors.items()}
        output = found["source_gradient"]
        upstream = Results(
            output,
            found["state_gradient"],
            found["cell_gradient"],
            np.zeros_like(output),
            np.zeros_like(found["z_state"]),
        )
        given = arguments, found["cell_output_fwd"], found["z_state"], upstream
        gradients = mpsgraph_lstm_backward(*given, case.options(mask))
        return [a for a in gradients if a is not None]

    is_right = errors is not None and not errors
    return Call(
        "own MPSGraphLSTMGradients",
        run,
        list(tensors.values()),
        errors,
        want if is_right else None,
        dtype,
        # Not as a composite, which computes z_state anew: the one given is of no forward call.
        ("known", "unknown"),
    )
