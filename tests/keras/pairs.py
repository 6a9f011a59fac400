"""Our layer beside stock Keras' with the same weights: results and gradients of both."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from oracle import keras_gru, keras_lstm, keras_simple_rnn

Array = np.ndarray


class Oracle(NamedTuple):
    """The NumPy reference of a layer."""

    arguments: type
    forward: Callable[..., Any]
    backward: Callable[..., Any]


class Family(NamedTuple):
    """A layer of ours and stock's of the same name."""

    name: str
    states: tuple[str, ...]
    gates: int
    biases: tuple[int, ...]  # (2,) where the state has a bias of its own, else ()
    extras: dict[str, Any]  # arguments that stock lacks, with values other than the default
    norm: dict[str, Any]  # further such arguments, for which there is another op
    oracle: Oracle
    lacks: tuple[str, ...] = ()  # arguments of the other layers, which `make_pair` leaves out

    @property
    def ours(self) -> type[keras.layers.RNN]:
        return getattr(tf_lstm_ops.keras, self.name)

    @property
    def stock(self) -> type[keras.layers.RNN]:
        return getattr(keras.layers, self.name)

    @property
    def both(self) -> tuple[type[keras.layers.RNN], type[keras.layers.RNN]]:
        return self.ours, self.stock


LSTM = Family(
    "LSTM",
    states=("h", "c"),
    gates=4,
    biases=(),
    extras={"use_peephole": True, "cell_clip": 2.5, "projection_size": 2, "proj_clip": 0.5},
    norm={"layer_normalization": "addons", "layer_normalization_epsilon": 0.01},
    oracle=Oracle(keras_lstm.Arguments, keras_lstm.keras_lstm, keras_lstm.keras_lstm_backward),
)
GRU = Family(
    "GRU",
    states=("h",),
    gates=3,
    biases=(2,),
    extras={},
    norm={"layer_normalization": "haste", "layer_normalization_epsilon": 0.01},
    oracle=Oracle(keras_gru.Arguments, keras_gru.keras_gru, keras_gru.keras_gru_backward),
)
SIMPLE_RNN = Family(
    "SimpleRNN",
    states=("h",),
    gates=1,
    biases=(),
    extras={},
    norm={},
    oracle=Oracle(
        keras_simple_rnn.Arguments,
        keras_simple_rnn.keras_simple_rnn,
        keras_simple_rnn.keras_simple_rnn_backward,
    ),
    lacks=("implementation", "use_cudnn"),
)
# What no layer of stock's has.
START = {"learned_initial_state": True}
GATED = (LSTM, GRU)
FAMILIES = (*GATED, SIMPLE_RNN)
# For tests that take long: by default of one layer.
ONE_BY_DEFAULT = (LSTM, *(pytest.param(f, marks=pytest.mark.full) for f in FAMILIES[1:]))


def label(value: Any) -> str:
    """The id of a test's parameter."""
    if isinstance(value, Family):
        return value.name
    return "-".join(value) or "plain" if isinstance(value, dict) else str(value)


def divided(grid: Iterable[tuple], by_default: Sequence[tuple], each: int = 5) -> list[Any]:
    """Parameters: the cases of the grid. Of those that are not run by default, every n-th is
    `full` and the rest `slow`."""
    others = [case for case in grid if case not in by_default]
    marks = [pytest.mark.slow if k % each else pytest.mark.full for k in range(len(others))]
    given = [pytest.param(*case, marks=m) for case, m in zip(others, marks, strict=True)]
    return [*by_default, *given]


class Sizes(NamedTuple):
    batch: int
    time: int
    inputs: int
    units: int


class Evaluation(NamedTuple):
    """What a layer returned for an input, and the gradients of `loss` below."""

    results: list[Array]  # output and, with return_state, the states
    gradients: dict[str, Array]  # by name: x, h0 and c0 (if given), and each trainable weight


INPUTS = ("x", "h0", "c0")  # a GRU has no c0
MASKS = ("none", "right", "left", "holes", "one_row_false", "all_false")


def make_mask(kind: str, batch: int, time: int, rng: np.random.Generator) -> Array | None:
    """A boolean [batch, time]; every row has its own pattern, the first a short one."""
    if kind == "none":
        return None
    valid = np.sort(rng.random((batch, time)) < 0.6, axis=1)  # left-padded
    valid[0, : time // 2] = False
    valid[0, time // 2 :] = True
    match kind:
        case "left":
            return valid
        case "right":
            return valid[:, ::-1].copy()
        case "holes":
            holes = rng.random((batch, time)) < 0.6
            holes[0] = np.arange(time) % 2  # the first step masked
            return holes
        case "one_row_false":
            valid[-1] = False
            return valid[:, ::-1].copy()
        case "all_false":
            return np.zeros((batch, time), bool)
    raise ValueError(kind)


def random_weights(layer: keras.layers.Layer, rng: np.random.Generator) -> None:
    """Every weight, biases included, from a normal distribution: no gradient is trivially zero."""
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))


def make_layer(
    family: Family, sizes: Sizes, rng: np.random.Generator, **options: Any
) -> keras.layers.RNN:
    """Our layer with random weights: in float64, returning all, unless the options say else."""
    options = {"return_sequences": True, "return_state": True, "dtype": "float64", **options}
    layer = family.ours(sizes.units, **options)
    layer.build((sizes.batch, sizes.time, sizes.inputs))
    random_weights(layer, rng)
    return layer


def make_pair(
    family: Family,
    sizes: Sizes,
    rng: np.random.Generator,
    *,
    stock: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[keras.layers.RNN, keras.layers.RNN]:
    """Our layer and stock's with equal weights and options, but for stock's own in `stock`."""
    of_stock = {**options, **(stock or {})}
    options, of_stock = (
        {k: v for k, v in given.items() if k not in family.lacks} for given in (options, of_stock)
    )
    ours = family.ours(sizes.units, **options)
    theirs = family.stock(sizes.units, **of_stock)
    for layer in ours, theirs:
        layer.build((sizes.batch, sizes.time, sizes.inputs))
    random_weights(theirs, rng)
    copy_weights(theirs, ours)
    return ours, theirs


def copy_weights(source: keras.layers.Layer, target: keras.layers.Layer) -> None:
    for a, b in zip(source.trainable_weights, target.trainable_weights, strict=True):
        b.assign(a)


def random_inputs(
    sizes: Sizes, rng: np.random.Generator, family: Family | None = None
) -> list[Array]:
    """x, and the initial states of a family if one is given, in float64."""
    x = rng.normal(size=(sizes.batch, sizes.time, sizes.inputs))
    states = family.states if family else ()
    return [x, *(rng.normal(size=(sizes.batch, sizes.units)) for _ in states)]


def evaluate(
    layer: keras.layers.Layer,
    inputs: Sequence[Array],
    mask: Array | None = None,
    **call: Any,
) -> Evaluation:
    """One call of the layer, and the gradients of Σ_k Σ cos(position)·result_k.

    The upstream gradient thus differs from element to element, and all results count.
    """
    x, *states = [tf.constant(a, layer.compute_dtype) for a in inputs]
    if states:
        call["initial_state"] = states
    weights = layer.trainable_weights
    with tf.GradientTape() as tape:
        tape.watch([x, *states])
        results = tf.nest.flatten(layer(x, mask=mask, **call))
        loss = sum(tf.reduce_sum(tf.cast(upstream(r), r.dtype) * r) for r in results)
    names = [*INPUTS[: len(inputs)], *(w.name for w in weights)]
    sources = [x, *states, *(w.value for w in weights)]
    gradients = tape.gradient(loss, sources, unconnected_gradients="zero")
    return Evaluation(
        [to_numpy(r) for r in results],
        {n: to_numpy(g) for n, g in zip(names, gradients, strict=True)},
    )


def upstream(result: tf.Tensor) -> Array:
    return np.cos(np.arange(np.prod(result.shape))).reshape(result.shape)


def to_numpy(tensor: tf.Tensor) -> Array:
    """In float64, which holds every value of the narrower types."""
    return tf.cast(tensor, tf.float64).numpy()


def rounding(sizes: Sizes, dtype: str = "float64") -> float:
    """The bound that two right evaluations keep to, relative to the largest element.

    A pre-activation is a sum of I+H+1 terms, which the T steps of the recurrence pass on; the
    gradient of a weight sums B·T such values. Either evaluation may be off by one unit roundoff a
    term.
    """
    unit_roundoff = np.finfo(dtype).eps / 2
    return 2 * unit_roundoff * sizes.time * (sizes.batch + sizes.inputs + sizes.units + 1)


def assert_close(got: Array, wanted: Array, bound: float, name: str = "") -> None:
    """Within `bound`, relative to the largest element wanted (or to 1, if all are smaller)."""
    assert got.shape == wanted.shape, name
    scale = max(1.0, np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=bound * scale, err_msg=name)


def assert_same(ours: Evaluation, theirs: Evaluation, bound: float) -> None:
    assert len(ours.results) == len(theirs.results)
    for k, (got, wanted) in enumerate(zip(ours.results, theirs.results, strict=True)):
        assert_close(got, wanted, bound, f"result {k}")
    assert ours.gradients.keys() == theirs.gradients.keys()
    for name, wanted in theirs.gradients.items():
        assert_close(ours.gradients[name], wanted, bound, f"gradient of {name}")


def evaluate_oracle(
    layer: keras.layers.RNN, inputs: Sequence[Array], mask: Array | None = None
) -> Evaluation:
    """What `evaluate` should return (in inference), by the NumPy reference."""
    family = next(f for f in FAMILIES if isinstance(layer, f.ours))
    named = dict(zip(INPUTS, inputs, strict=False))
    named |= {w.name: w.numpy() for w in layer.trainable_weights}
    arguments = oracle_arguments(family, named, layer.units)
    clip = {"cell_clip": layer.cell_clip} if family is LSTM else {}
    options = keras_lstm.Options(mask, layer.go_backwards, layer.zero_output_for_mask, **clip)
    full = family.oracle.forward(arguments, options)
    outputs, *states = full
    output = outputs if layer.return_sequences else outputs[:, -1]
    results = [output, *states] if layer.return_state else [output]

    outputs_grad = np.zeros_like(outputs)
    outputs_grad[:, slice(None) if layer.return_sequences else -1] = upstream(output)
    state_grads = [upstream(s) if layer.return_state else np.zeros_like(s) for s in states]
    result_grads = type(full)(outputs_grad, *state_grads)
    gradients = family.oracle.backward(arguments, result_grads, options)
    return Evaluation(results, {name: getattr(gradients, field(name)) for name in named})


def field(name: str) -> str:
    """The oracle's name of a layer's weight."""
    return "peephole" if name == "peephole_kernel" else name


def oracle_arguments(family: Family, named: dict[str, Array], units: int) -> Any:
    """The oracle's arguments; what the layer lacks is zero."""
    given = {field(name): value for name, value in named.items()}
    state = (len(given["x"]), units)
    bias = (*family.biases, family.gates * units)
    shapes = {"h0": state, "c0": state, "bias": bias, "peephole": (3, units)}
    absent = family.oracle.arguments._fields - given.keys()
    return family.oracle.arguments(**given, **{name: np.zeros(shapes[name]) for name in absent})
