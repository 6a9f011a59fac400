"""The conversions of CudnnRNN's params, with counts, sizes and parts that may be wrong."""

import math
from typing import Any

import numpy as np
import tensorflow as tf

from cudnn_rnn.cases import DTYPES, LAYOUT_OPS, SOURCES, TO_CANONICAL, Case, call

from .call import Array, Call
from .cudnn_rnn import draw_case, model_of
from .draw import HUGE, INT32, choose, happens, uniform, wide

OPS = LAYOUT_OPS
SIZES = ("num_layers", "num_units", "input_size")


def draw(rng: np.random.Generator) -> Call:
    op, source = choose(rng, OPS), choose(rng, sorted(SOURCES))
    case, dtype = draw_case(rng, op), choose(rng, DTYPES)
    if op == "CudnnRNNParamsSize":
        return _size(rng, case, source, dtype)
    sizes = dict(zip(SIZES, (case.layers, case.units, case.inputs), strict=True))
    spoilt = choose(rng, [None, None, None, "parts", "size", "count", "projection"])
    if spoilt == "count" and min(len(case.matrices()), len(case.biases())) < 2:
        spoilt = None  # without an array there is no op
    if spoilt == "size":
        sizes[choose(rng, SIZES)] = choose(rng, INT32)
    attributes = {}
    if spoilt == "projection" and op.endswith("V2"):
        attributes["num_proj"] = choose(rng, [-1, -(2**63), *HUGE])
    tensors = {name: tf.constant(size, tf.int32) for name, size in sizes.items()}
    draw_of = _to_canonical if op in TO_CANONICAL else _to_params
    more, options, want = draw_of(rng, op, case, dtype, spoilt)
    tensors |= more
    run = _runner(op, case, source, list(tensors), {**options, **attributes})
    is_right = spoilt is None or (spoilt == "projection" and not attributes)
    # auto_select takes other matrices where input_size becomes num_units; so may sizes that fit.
    is_wrong = spoilt == "count" or (spoilt == "parts" and _has_other_sizes(case, more))
    errors = () if is_right else [r"\w"] if is_wrong else None
    name = f"{source} {op}"
    return Call(name, run, list(tensors.values()), errors, want if is_right else None, dtype)


def _has_other_sizes(case: Case, parts: dict[str, Any]) -> bool:
    """Whether an array has another number of elements."""
    right = [case.params_size()]
    if "params" not in parts:
        right = [math.prod(shape) for shape in (*case.matrices(), *case.biases())]
    return [math.prod(part.shape) for part in parts.values()] != right


def _runner(op: str, case: Case, source: str, names: list[str], options: Any) -> Any:
    def run(*values: Any) -> Any:
        given: dict[str, Any] = dict(zip(names, values, strict=True))
        for part in ("weights", "biases"):
            found = [name for name in names if name.startswith(part)]
            if found:
                given[part] = [given.pop(name) for name in found]
        return call(op, case, given, source, **options)

    return run


def _listed(parts: dict[str, list[Any]]) -> dict[str, Any]:
    return {f"{name}{k}": part for name, found in parts.items() for k, part in enumerate(found)}


def _canonical(case: Case, params: Array) -> list[Array]:
    """The oracle's matrices and biases as the ops list them."""
    layers = model_of(case).split(params)
    skipped = case.skips_input
    matrices: list[Array] = []
    for k, layer in enumerate(layers):
        w = np.zeros((*layer.w.shape[:2], 0)) if skipped and k < case.directions else layer.w
        matrices += [*w, *layer.r]
        if layer.projection.size:
            matrices.append(layer.projection)
    return [*matrices, *(b for layer in layers for b in (*layer.bw, *layer.br))]


def _to_canonical(rng, op, case, dtype, spoilt):
    size = case.params_size()
    if spoilt == "parts":
        size = max(0, size + choose(rng, [-1, 1, 7, -size]))
    params = uniform(rng, (size,), dtype)
    weights, biases = len(case.matrices()), len(case.biases())
    if spoilt == "count":
        weights += choose(rng, [1, 2, -1])
    if op.endswith("V2"):
        counts = {"num_params_weights": weights, "num_params_biases": biases}
    else:
        counts = {"num_params": weights}
    return {"params": params}, counts, lambda: _canonical(case, wide(params))


def _to_params(rng, op, case, dtype, spoilt):
    weights, biases = case.matrices(), case.biases()
    if spoilt == "parts":
        shapes = choose(rng, [weights, biases])
        k = int(rng.integers(len(shapes)))
        shapes[k] = choose(rng, [(case.units + 1,), (), (0, HUGE[-1]), (*shapes[k], 1)])
    if spoilt == "count":
        weights, biases = (weights[1:], biases) if happens(rng, 0.5) else (weights, biases[1:])
    parts = {
        "weights": [uniform(rng, s, dtype) for s in weights],
        "biases": [uniform(rng, s, dtype) for s in biases],
    }

    def want() -> list[Array]:
        flat = [wide(part).ravel() for found in parts.values() for part in found]
        return [np.concatenate(flat)]

    return _listed(parts), {}, want


def _size(rng: np.random.Generator, case: Case, source: str, dtype: str) -> Call:
    sizes = dict(zip(SIZES, (case.layers, case.units, case.inputs), strict=True))
    options = {"T": tf.as_dtype(dtype if dtype != "bfloat16" else "float32"), "S": tf.int64}
    is_right = happens(rng, 0.4)
    if not is_right:
        for _ in range(int(rng.integers(1, 4))):
            sizes[choose(rng, SIZES)] = choose(rng, INT32)
        options["S"] = choose(rng, [tf.int32, tf.int64])
        options["num_proj"] = choose(rng, [0, 1, -1, -(2**63), *HUGE])
    tensors = {name: tf.constant(size, tf.int32) for name, size in sizes.items()}
    return Call(
        f"{source} CudnnRNNParamsSize",
        _runner("CudnnRNNParamsSize", case, source, list(tensors), options),
        list(tensors.values()),
        () if is_right else None,
        (lambda: [np.array([case.params_size()], np.float64)]) if is_right else None,
    )
