"""The ops behind the Keras layers: any mask, dropout factors, absent inputs, foreign reserve."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from oracle import keras_gru, keras_lstm, keras_lstm_v2, keras_simple_rnn, layer_norm
from oracle.derivatives import Array
from oracle.keras_lstm import Options
from tf_lstm_ops import composite, dialects, op_definitions

from . import norm_oracle
from .call import TOLERANCE, Call, Derivatives, Shape
from .draw import choose, happens, is_huge, spoil, uniform, wide

MASKS = ["mask", "input_dropout", "recurrent_dropout"]
OPTIONAL = ["bias", "peephole", "projection", *MASKS]  # absent: [0]
ACTIVATIONS = sorted(keras_lstm_v2.ACTIVATIONS)
# Text of an error about a shape, or about a size that overflows.
WRONG = r"\w( must be rank \d but is rank \d| is empty, has shape|\.dim_size\(\d\) != \w)"
ANY = r"\w"


class Layer(NamedTuple):
    """An op, and its oracle, whose arguments are the differentiable inputs."""

    inputs: dict[str, tuple[str, ...]]
    states: tuple[str, ...]
    arguments: type
    forward: Callable[..., Any]
    backward: Callable[..., Any] | None
    options: Callable[..., Any] = Options  # of masks and attributes
    absent: tuple[str, ...] = ()  # inputs that this oracle does not know

    @property
    def differentiable(self) -> list[str]:
        return [name for name in self.inputs if name not in (*MASKS, *self.absent)]


LSTM = {
    "x": ("B", "T", "I"),
    "mask": ("B", "T"),
    "initial_h": ("B", "P"),
    "initial_c": ("B", "H"),
    "kernel": ("I", "4H"),
    "recurrent_kernel": ("P", "4H"),
    "bias": ("4H",),
    "peephole": ("3", "H"),
    "projection": ("H", "P"),
    "input_dropout": ("4", "B", "I"),
    "recurrent_dropout": ("4", "B", "P"),
}
GENERAL = "KerasLSTM, general"  # the draws with a projection and activations
GRU = {
    "x": ("B", "T", "I"),
    "mask": ("B", "T"),
    "initial_h": ("B", "P"),
    "kernel": ("I", "3H"),
    "recurrent_kernel": ("P", "3H"),
    "bias": ("2", "3H"),
    "input_dropout": ("3", "B", "I"),
    "recurrent_dropout": ("3", "B", "P"),
}
SIMPLE_RNN = {
    **GRU,
    "kernel": ("I", "H"),
    "recurrent_kernel": ("P", "H"),
    "bias": ("H",),
    "input_dropout": ("1", "B", "I"),
    "recurrent_dropout": ("1", "B", "P"),
}
NORMS = {"input_gamma": ("4H",), "recurrent_gamma": ("4H",)}
STATE_NORMS = {"state_gamma": ("H",), "state_beta": ("H",)}


def _with(inputs: dict[str, tuple[str, ...]], norms: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """The inputs of a layer-normalised op."""
    others = {k: v for k, v in inputs.items() if k not in ("peephole", "projection")}
    dropouts = {k: others.pop(k) for k in ("input_dropout", "recurrent_dropout")}
    return {**others, **norms, **dropouts}


LAYERS = {
    "KerasLSTM": Layer(
        LSTM,
        ("h", "c"),
        keras_lstm.Arguments,
        keras_lstm.keras_lstm,
        keras_lstm.keras_lstm_backward,
        absent=("projection",),
    ),
    GENERAL: Layer(LSTM, ("h", "c"), keras_lstm_v2.Arguments, keras_lstm_v2.keras_lstm_v2, None),
    "KerasGRU": Layer(
        GRU, ("h",), keras_gru.Arguments, keras_gru.keras_gru, keras_gru.keras_gru_backward
    ),
    "KerasResetBeforeGRU": Layer(
        {**GRU, "bias": ("3H",)},
        ("h",),
        keras_gru.Arguments,
        keras_gru.keras_gru,
        keras_gru.keras_gru_backward,
    ),
    "KerasSimpleRNN": Layer(
        SIMPLE_RNN,
        ("h",),
        keras_simple_rnn.Arguments,
        keras_simple_rnn.keras_simple_rnn,
        keras_simple_rnn.keras_simple_rnn_backward,
    ),
    "KerasLayerNormLSTM": Layer(
        _with(LSTM, {**NORMS, **STATE_NORMS}),
        ("h", "c"),
        layer_norm.Arguments,
        layer_norm.layer_norm,
        layer_norm.layer_norm_backward,
        norm_oracle.options,
    ),
    "KerasLayerNormGRU": Layer(
        _with(GRU, dict.fromkeys(NORMS, ("3H",))),
        ("h",),
        norm_oracle.GruArguments,
        norm_oracle.gru,
        norm_oracle.gru_backward,
        norm_oracle.options,
    ),
}
OPS = [f"{op}{grad}" for op in LAYERS if op != GENERAL for grad in ("", "Grad")]


class Sizes(NamedTuple):
    time: int
    batch: int
    inputs: int
    units: int
    hidden: int

    def shapes(self, op: str) -> dict[str, Shape]:
        t, b, i, h, p = self
        extent = {"T": t, "B": b, "I": i, "H": h, "P": p, "4H": 4 * h, "3H": 3 * h}
        extent |= {"1": 1, "2": 2, "3": 3, "4": 4}
        return {k: tuple(extent[d] for d in dims) for k, dims in LAYERS[op].inputs.items()}


class Drawn(NamedTuple):
    kind: str  # a key of LAYERS
    sizes: Sizes
    shapes: dict[str, Shape]  # (0,): absent
    attributes: dict[str, Any]
    dtype: str

    @property
    def op(self) -> str:
        return self.kind.partition(",")[0]

    def is_absent(self, name: str) -> bool:
        return name in OPTIONAL and self.shapes[name] == (0,)

    @property
    def is_right(self) -> bool:
        right = self.sizes.shapes(self.kind)
        if is_huge(self.shapes):
            return False
        if self.op != "KerasLSTM" and self.sizes.hidden != self.sizes.units:
            return False
        if self.op == "KerasLSTM":
            is_projected = self.sizes.hidden < self.sizes.units
            is_larger = self.sizes.hidden > self.sizes.units
            if is_larger or is_projected == self.is_absent("projection"):
                return False
        return self.sizes.units > 0 and all(
            self.is_absent(k) or s == right[k] for k, s in self.shapes.items()
        )

    @property
    def errors(self) -> list[str] | None:
        if is_huge(self.shapes):
            return None  # a batch of no rows may have any number of steps
        return [] if self.is_right else [ANY if self.op == "KerasLSTM" else WRONG]


def draw_layer(rng: np.random.Generator) -> Drawn:
    kind = choose(rng, sorted(LAYERS))
    low = 0 if happens(rng, 0.1) else 1
    time, batch, units = (int(rng.integers(low, 6)) for _ in range(3))
    units = choose(rng, [units, units, units, 8, 17]) if units else units
    # A projection makes h smaller than the cell.
    hidden = int(rng.integers(1, units)) if kind == GENERAL and units > 1 else units
    hidden = choose(rng, [hidden, units])
    sizes = Sizes(time, batch, int(rng.integers(0, 6)), units, hidden)
    right = sizes.shapes(kind)
    absent = [k for k in right if k in OPTIONAL and k != "projection" and happens(rng, 0.4)]
    if hidden == units:
        absent.append("projection")
    shapes = {k: (0,) if k in absent else s for k, s in right.items()}
    shapes |= {k: s for k, s in spoil(rng, right).items() if s != right[k]}
    sizes = _sizes_of(shapes, sizes)
    return Drawn(kind, sizes, shapes, _attributes(rng, kind), choose(rng, sorted(TOLERANCE)))


def _sizes_of(shapes: dict[str, Shape], drawn: Sizes) -> Sizes:
    """Those of x and the states, to which all others must fit."""
    x, h, c = shapes["x"], shapes["initial_h"], shapes.get("initial_c", shapes["initial_h"])
    if (len(x), len(h), len(c)) != (3, 2, 2) or is_huge(shapes):
        return drawn
    return Sizes(x[1], x[0], x[2], c[1], h[1])


def _attributes(rng: np.random.Generator, kind: str) -> dict[str, Any]:
    names = ("go_backwards", "zero_output_for_mask", "return_sequences")
    attributes: dict[str, Any] = {name: happens(rng, 0.5) for name in names}
    if kind == "KerasLSTM":
        attributes["cell_clip"] = choose(rng, [0.0, 0.0, 0.25])
    if "Norm" in kind:
        attributes["epsilon"] = choose(rng, [0.25, 1.0])  # smaller ones enlarge errors
    if kind == "KerasLayerNormLSTM":
        attributes["carries_normalized_state"] = happens(rng, 0.5)
    if kind == GENERAL:
        attributes["activation"] = choose(rng, ["tanh", "tanh", *ACTIVATIONS])
        attributes["recurrent_activation"] = choose(rng, ["sigmoid", "sigmoid", *ACTIVATIONS])
    return attributes


def tensors_of(rng: np.random.Generator, drawn: Drawn) -> dict[str, tf.Tensor]:
    tensors = {k: uniform(rng, s, drawn.dtype) for k, s in drawn.shapes.items()}
    mask = tensors["mask"]
    tensors["mask"] = mask > tf.cast(choose(rng, [-0.6, -0.3, 0.0, 0.6]), mask.dtype)
    return tensors


def draw(rng: np.random.Generator) -> Call:
    drawn = draw_layer(rng)
    return (_forward if happens(rng, 0.6) else _gradient)(rng, drawn, tensors_of(rng, drawn))


def _call(op: str, names: list[str], attributes: dict[str, Any], *values: Any) -> Any:
    given = {**dict(zip(names, values, strict=True)), **attributes}
    if composite.plain_ops_required():
        return dialects.COMPOSITES[op](**given)
    return op_definitions.function(op)(**given)


def _forward(rng: np.random.Generator, drawn: Drawn, tensors: dict[str, tf.Tensor]) -> Call:
    attributes = {**drawn.attributes, "training": happens(rng, 0.7)}

    def run(*values: Any) -> Any:
        return _call(drawn.op, list(tensors), attributes, *values)

    is_compared = drawn.is_right and _has_oracle(drawn)
    is_double = drawn.dtype == "float64" and attributes["training"]
    return Call(
        f"own {drawn.op}",
        run,
        list(tensors.values()),
        drawn.errors,
        (lambda: _results(drawn, tensors)) if is_compared else None,
        drawn.dtype,
        derivatives=_derivatives(drawn, tensors) if is_compared and is_double else None,
    )


def _has_oracle(drawn: Drawn) -> bool:
    """The oracle of the general draws knows no dropout. Without steps no oracle has outputs."""
    if drawn.sizes.time == 0:
        return False
    masks = ("input_dropout", "recurrent_dropout")
    return drawn.kind != GENERAL or all(drawn.is_absent(k) for k in masks)


def _oracle(drawn: Drawn, values: dict[str, Array]) -> tuple[Any, Any]:
    """The oracle's arguments, zero where absent, and its options."""
    right = drawn.sizes.shapes(drawn.kind)
    given = {k: np.zeros(right[k]) if drawn.is_absent(k) else values[k] for k in right}
    if drawn.kind == GENERAL and drawn.is_absent("projection"):
        given["projection"] = np.eye(drawn.sizes.units)
    masks = {k: given[k] for k in MASKS if not drawn.is_absent(k)}
    if "mask" in masks:
        masks["mask"] = masks["mask"].astype(bool)
    layer = LAYERS[drawn.kind]
    return layer.arguments(*(given[k] for k in layer.differentiable)), masks


def _run_oracle(drawn: Drawn, values: dict[str, Array]) -> Any:
    arguments, masks = _oracle(drawn, values)
    options = {k: v for k, v in drawn.attributes.items() if k != "return_sequences"}
    if drawn.kind != GENERAL:
        layer = LAYERS[drawn.kind]
        return layer.forward(arguments, layer.options(**masks, **options))
    is_zero = options.pop("zero_output_for_mask")
    results = keras_lstm_v2.keras_lstm_v2(arguments, **masks, **options)
    if is_zero and "mask" in masks:
        mask = masks["mask"][:, :: -1 if options["go_backwards"] else 1]
        results = results._replace(outputs=np.where(mask[:, :, None], results.outputs, 0))
    return results


def _shown(drawn: Drawn) -> slice:
    return slice(None if drawn.attributes["return_sequences"] else -1, None)


def _results(drawn: Drawn, tensors: dict[str, tf.Tensor]) -> list[Array | None]:
    found = _run_oracle(drawn, {k: wide(v) for k, v in tensors.items()})
    return [found.outputs[:, _shown(drawn)], *found[1:], None]


def _derivatives(drawn: Drawn, tensors: dict[str, tf.Tensor]) -> Derivatives | None:
    layer = LAYERS[drawn.kind]
    if layer.backward is None:
        return None
    names = [k for k in layer.differentiable if not drawn.is_absent(k)]
    fixed = {k: wide(v) for k, v in tensors.items()}

    def backward(values: list[Array], upstream: list[Array]) -> list[Array]:
        given = {**fixed, **dict(zip(names, values, strict=True))}
        found = _gradients(drawn, given, upstream)
        return [found[k] for k in names]

    positions = [list(tensors).index(k) for k in names]
    return Derivatives(positions, 1 + len(layer.states), backward)


def _gradients(drawn: Drawn, values: dict[str, Array], upstream: list[Array]) -> dict[str, Array]:
    """Of the differentiable inputs, by the oracle."""
    layer = LAYERS[drawn.kind]
    arguments, masks = _oracle(drawn, values)
    options = {k: v for k, v in drawn.attributes.items() if k != "return_sequences"}
    shape = (drawn.sizes.batch, drawn.sizes.time, drawn.sizes.hidden)
    outputs = np.zeros(shape, np.result_type(*upstream))
    outputs[:, _shown(drawn)] = upstream[0]
    is_gru = len(layer.states) == 1
    results = (keras_gru if is_gru else keras_lstm).Results(outputs, *upstream[1:])
    found = layer.backward(arguments, results, layer.options(**masks, **options))
    return dict(zip(layer.differentiable, found, strict=True))


def _gradient(rng: np.random.Generator, drawn: Drawn, tensors: dict[str, tf.Tensor]) -> Call:
    """The gradient op, with the reserve of the call, of another mask or inference, of any size."""
    layer, sizes, dtype = LAYERS[drawn.kind], drawn.sizes, drawn.dtype
    op = f"{drawn.op}Grad"
    origin = choose(rng, ["its own", "its own", "another mask", "inference", "nowhere"])
    steps = sizes.time if drawn.attributes["return_sequences"] else 1
    right = {"output": (sizes.batch, steps, sizes.hidden)}
    right |= {"output_grad": right["output"]}
    widths = {"h": sizes.hidden, "c": sizes.units}
    right |= {f"final_{s}_grad": (sizes.batch, widths[s]) for s in layer.states}
    shapes = spoil(rng, right)
    more = {k: uniform(rng, s, dtype) for k, s in shapes.items()}
    own_size = None
    if drawn.is_right:
        function = op_definitions.function(drawn.op)
        given = dict(tensors)
        if origin == "another mask" and not drawn.is_absent("mask"):
            given["mask"] = tf.math.logical_not(given["mask"])
        results = function(**given, **drawn.attributes, training=origin != "inference")
        own = function(**tensors, **drawn.attributes, training=True)
        own_size = own.reserve.shape[0]
        if shapes["output"] == right["output"]:
            more["output"] = own.output
        more["reserve"] = results.reserve
    if origin == "nowhere" or not drawn.is_right:
        more["reserve"] = uniform(rng, (int(rng.integers(0, 500)),), dtype)
    is_right = drawn.is_right and shapes == right and tuple(more["reserve"].shape) == (own_size,)
    # A reserve of the right size is taken as the numbers that it holds.
    is_compared = is_right and origin == "its own" and layer.backward is not None
    is_compared = is_compared and sizes.time > 0 and (steps > 0)
    values = {**tensors, **{k: more[k] for k in ("output", "reserve", "output_grad")}}
    values |= {k: more[k] for k in right if k.startswith("final")}

    def run(*given: Any) -> Any:
        return _call(op, list(values), drawn.attributes, *given)

    def want() -> list[Array]:
        upstream = [wide(more["output_grad"])]
        upstream += [wide(more[f"final_{s}_grad"]) for s in layer.states]
        found = _gradients(drawn, {k: wide(v) for k, v in tensors.items()}, upstream)
        names = [k for k in layer.inputs if k not in MASKS]
        return [np.zeros(0) if drawn.is_absent(k) else found[k] for k in names]

    errors = [] if is_right else [ANY]
    return Call(
        f"own {op}", run, list(values.values()), errors, want if is_compared else None, dtype
    )
