"""The CudnnRNN family, under own and stock names: forward ops, backward ops with right, foreign and
forged reserve_space, and the op that draws the dropout mask of a call again."""

import functools
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from cudnn_rnn.cases import (
    BACKPROP,
    DTYPES,
    FORWARD,
    GATES,
    SOURCES,
    Case,
    arguments,
    broken_rules,
    call,
    random_tensor,
)
from cudnn_rnn.forged import HEADER, forge
from oracle.cudnn_rnn import Arguments, Model, Results, cudnn_rnn, cudnn_rnn_backward
from tf_lstm_ops import op_definitions

from .call import Array, Call, Derivatives, Shape
from .draw import HUGE, choose, happens, is_huge, spoil, uniform, wide

OPS = [*FORWARD, *BACKPROP, "CudnnRNNDropoutMask"]
INPUTS = Arguments._fields


def draw_case(rng: np.random.Generator, op: str) -> Case:
    """A model that the op can run."""
    units = choose(rng, [1, 2, 3, 4, 8, 9, 17])
    mode = choose(rng, sorted(GATES))
    input_mode = choose(rng, ["linear_input", "skip_input", "auto_select"])
    has_projection = op.endswith(("V3", "ParamsV2", "CanonicalV2")) and mode == "lstm"
    return Case(
        mode=mode,
        layers=int(rng.integers(1, 4)),
        directions=int(rng.integers(1, 3)),
        inputs=units if input_mode == "skip_input" else choose(rng, [1, 2, 3, 8, units]),
        units=units,
        proj=int(rng.integers(0, units + 1)) if has_projection else 0,
        input_mode=input_mode,
        time=int(rng.integers(1, 5)),
        batch=int(rng.integers(1, 5)),
        time_major=happens(rng, 0.5) if op.endswith("V3") else True,
    )


def model_of(case: Case) -> Model:
    return Model(
        case.mode,
        case.inputs,
        case.units,
        case.layers,
        case.directions,
        case.proj,
        case.skips_input,
        case.time_major,
    )


def draw(rng: np.random.Generator) -> Call:
    kind = choose(rng, ["forward", "forward", "backward", "backward", "mask"])
    return {"forward": _forward, "backward": _backward, "mask": _mask}[kind](rng)


# --- forward ---------------------------------------------------------------------------------


def _lengths(rng: np.random.Generator, case: Case) -> list[int]:
    if happens(rng, 0.75):
        return [int(n) for n in rng.integers(0, case.time + 1, case.batch)]
    count = choose(rng, [case.batch, case.batch, case.batch + 1, 0])
    return [
        choose(rng, [-(2**31), -1, 0, case.time, case.time + 1, 2**31 - 1]) for _ in range(count)
    ]


def _length_errors(case: Case, lengths: list[int]) -> list[str]:
    return [
        rf"sequence_lengths\[{k}\] must be between 0 and {case.time} but is {length}"
        for k, length in enumerate(lengths)
        if not 0 <= length <= case.time
    ]


def _forward(rng: np.random.Generator) -> Call:
    op, source = choose(rng, FORWARD), choose(rng, sorted(SOURCES))
    case, dtype = draw_case(rng, op), choose(rng, DTYPES)
    shapes = spoil(rng, case.shapes(op))
    rules = _broken_rules(op, case, shapes)
    is_as_drawn = all(shapes[k] == v for k, v in case.shapes(op).items() if _is_read(case, k))
    tensors = {k: uniform(rng, s, dtype) for k, s in shapes.items() if k != "sequence_lengths"}
    lengths = None
    if "sequence_lengths" in shapes:
        lengths = _lengths(rng, case) if is_as_drawn else [case.time] * case.batch
        tensors["sequence_lengths"] = tf.constant(lengths, tf.int32)
        if not is_as_drawn:
            tensors["sequence_lengths"] = tf.zeros(shapes["sequence_lengths"], tf.int32)
        elif len(lengths) != case.batch:
            rules.append(r"sequence_lengths\.dim_size\(0\) != batch_size")
        rules += _length_errors(case, lengths) if is_as_drawn else []
    dropout = choose(rng, [0.0, 0.0, 0.0, 0.3, 1.0, -0.5, 1.5, float("nan"), float("inf")])
    rules += [] if 0 <= dropout <= 1 else ["dropout"]
    options = {
        "is_training": happens(rng, 0.7),
        "dropout": dropout,
        "seed": choose(rng, [0, 1, -1, 2**63 - 1, -(2**63)]),
    }
    is_right, has_values = not rules, is_as_drawn and not rules and dropout == 0
    has_values = has_values and not is_huge(shapes)
    composites = ["composite"] if source == "own" and not is_huge(shapes) else []
    return Call(
        f"{source} {op}",
        functools.partial(_run, op, case, source, list(tensors), options),
        list(tensors.values()),
        rules,
        functools.partial(_results, case, tensors, lengths, op) if has_values else None,
        dtype,
        ("known", "unknown", *composites),
        _derivatives(case, list(tensors), lengths)
        if is_right and has_values and dtype == "float64" and options["is_training"]
        else None,
        case.result_shapes(op) if is_right and is_as_drawn else None,
    )


def _broken_rules(op: str, case: Case, shapes: dict[str, Shape]) -> list[str]:
    """Patterns of the texts of the rules that these shapes break."""
    if is_huge({k: s for k, s in shapes.items() if _is_read(case, k)}):
        return [r"\w"]  # the text of a size that overflows gives no numbers
    return [re.escape(rule) for rule in broken_rules(op, case, shapes)]


def _is_read(case: Case, name: str) -> bool:
    return case.mode == "lstm" or "_c" not in name


def _run(op: str, case: Case, source: str, names: Any, options: Any, *values: Any) -> Any:
    return call(op, case, dict(zip(names, values, strict=True)), source, **options)


def _results(case: Case, tensors: Any, lengths: Any, op: str) -> list[Array | None]:
    found = cudnn_rnn(model_of(case), Arguments(*(wide(tensors[k]) for k in INPUTS)), lengths)
    return [*found, None] if op == "CudnnRNN" else [*found, None, None]


def _derivatives(case: Case, names: list[str], lengths: Any) -> Derivatives:
    def backward(values: list[Array], upstream: list[Array]) -> Any:
        given = Arguments(*values), Results(*upstream)
        return cudnn_rnn_backward(model_of(case), *given, lengths)

    return Derivatives([names.index(k) for k in INPUTS], 3, backward)


# --- backward --------------------------------------------------------------------------------


def _backward(rng: np.random.Generator) -> Call:
    op, source = choose(rng, BACKPROP), choose(rng, sorted(SOURCES))
    case, dtype = draw_case(rng, op), choose(rng, DTYPES)
    right = case.shapes(op)
    shapes = spoil(rng, right)
    rules = _broken_rules(op, case, shapes)
    ignored = [] if case.mode == "lstm" else [name for name in shapes if "_c" in name]
    is_as_drawn = all(shapes[k] == v for k, v in right.items() if k not in ignored)
    lengths = None
    if op.endswith("V3") and is_as_drawn:
        lengths = [int(n) for n in rng.integers(0, case.time + 1, case.batch)]
    values = arguments(op, case, dtype, lengths, seed=int(rng.integers(2**31)))
    for name, shape in shapes.items():
        if shape != right[name]:
            is_lengths = name == "sequence_lengths"
            values[name] = tf.zeros(shape, tf.int32) if is_lengths else uniform(rng, shape, dtype)
    if not is_as_drawn:
        rules += ["reserve_space", r"sequence_lengths\["]
    reserve, is_its_own = _reserve(rng, values["reserve_space"], op, case, dtype)
    values["reserve_space"] = reserve
    if not is_its_own:
        rules.append("reserve_space")
    elif not rules and happens(rng, 0.05):
        rules.append("reserve_space")
        options = {"dropout": 0.5}
        return _backward_call(op, case, source, values, lengths, rules, dtype, options)
    return _backward_call(op, case, source, values, lengths, rules, dtype, {})


def _backward_call(op, case, source, values, lengths, rules, dtype, options) -> Call:
    has_values = not rules and not is_huge({k: tuple(v.shape) for k, v in values.items()})
    # A pre-activation of relu near zero may have another sign after its rounding to 16 bits.
    has_values &= case.mode != "rnn_relu" or dtype not in ("half", "bfloat16")
    return Call(
        f"{source} {op}",
        functools.partial(_run, op, case, source, list(values), options),
        list(values.values()),
        rules,
        functools.partial(_gradients, case, values, lengths) if has_values else None,
        dtype,
    )


def _gradients(case: Case, values: Any, lengths: Any) -> Any:
    given = Arguments(*(wide(values[k]) for k in INPUTS))
    upstream = Results(*(wide(values[f"{k}_backprop"]) for k in Results._fields))
    return cudnn_rnn_backward(model_of(case), given, upstream, lengths)


def _reserve(
    rng: np.random.Generator, right: tf.Tensor, op: str, case: Case, dtype: str
) -> tuple[tf.Tensor, bool]:
    """The reserve_space of the call or another one, and whether it is that of the call."""
    kind = choose(
        rng, ["right", "right", "right", "size", "rank", "random", "other", "forged", "forged"]
    )
    if kind == "size":
        size = int(rng.integers(0, 2 * right.shape[0]))
        return tf.concat([right, right], axis=0)[:size], size == right.shape[0]
    if kind == "rank":
        return choose(rng, [right[0], right[None], right[:, None]]), False
    if kind == "random":
        return random_tensor(rng, right.shape, dtype), False
    if kind == "other":
        field = choose(rng, ["time", "batch", "layers"])
        other = replace(case, **{field: getattr(case, field) + 1})
        return arguments(op, other, dtype)["reserve_space"], False
    if kind == "forged":
        found = forged(rng, right)
        return tf.constant(found), _same_but_for_the_key(found, right.numpy())
    return right, True


def _same_but_for_the_key(found: Array, right: Array) -> bool:
    """Whether only the key of the dropout mask differs, which no problem determines."""
    header, own = (a[: HEADER.itemsize // a.itemsize].view(HEADER) for a in (found, right))
    names = [k for k in HEADER.names if k not in ("dropout_key", "checksum")]
    return found.shape == right.shape and all(np.array_equal(header[k], own[k]) for k in names)


def forged(rng: np.random.Generator, right: tf.Tensor) -> Array:
    """A reserve_space with one to three fields of the header changed, and the right checksum."""
    fields = {}
    names = [name for name in HEADER.names if name != "checksum"]
    for _ in range(int(rng.integers(1, 4))):
        name = choose(rng, names)
        kind = HEADER[name]
        if kind.kind == "f":
            fields[name] = choose(rng, [0.0, 0.5, 1.0, -1.0, np.nan, np.inf, 1e-45])
        else:
            low, high = (int(getattr(np.iinfo(kind), end)) for end in ("min", "max"))
            drawn = choose(rng, [-1, 0, 1, 2, 3, 4, 8, *HUGE, int(rng.integers(0, 2**62))])
            fields[name] = min(max(drawn, low), high)
    header, size = HEADER.itemsize // right.dtype.size, int(right.shape[0])
    count = choose(rng, [None, None, None, header, max(header, size - 1)])
    if count is not None and happens(rng, 0.5):
        fields["size"] = count
    return forge(right, count, **fields)


def _forged_mask(rng: np.random.Generator, right: tf.Tensor) -> Array:
    """A forged reserve_space with a mask that is small, or too large for any address. TensorFlow's
    allocator waits ten seconds before it refuses what lies between."""
    while True:
        found = forged(rng, right)
        header = found[: HEADER.itemsize // found.itemsize].view(HEADER)[0]
        sizes = [int(header[k]) for k in ("inner_layers", "time", "batch", "width")]
        if not 2**20 < math.prod(sizes) < 2**63:
            return found


def _mask(rng: np.random.Generator) -> Call:
    """The mask of a call whose reserve_space is right or forged. A forged one that is consistent in
    itself gives a mask, too."""
    case, dtype = draw_case(rng, "CudnnRNNV3"), choose(rng, DTYPES)
    values = arguments("CudnnRNNV3", case, dtype, seed=int(rng.integers(2**31)))
    dropout = choose(rng, [0.0, 0.3, 1.0])
    # Without dropout, because an op draws the key of its mask from more than this call's number.
    written = call("CudnnRNNV3", case, values).reserve_space
    key = int(rng.integers(2**62))
    right = tf.constant(forge(written, dropout=dropout, dropout_key=key))
    is_right = happens(rng, 0.3)
    reserve = right if is_right else tf.constant(_forged_mask(rng, right))
    return Call(
        "own CudnnRNNDropoutMask",
        lambda reserve: op_definitions.function("CudnnRNNDropoutMask")(reserve_space=reserve),
        [reserve],
        () if is_right else None,
    )
