"""Our layer beside stock Keras' with the same weights: results and gradients of both."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

import tf_lstm_ops
from oracle.keras_lstm import Arguments, Options, Results, keras_lstm, keras_lstm_backward

Array = np.ndarray


class Sizes(NamedTuple):
    batch: int
    time: int
    inputs: int
    units: int


class Evaluation(NamedTuple):
    """What a layer returned for an input, and the gradients of `loss` below."""

    results: list[Array]  # output and, with return_state, h and c
    gradients: dict[str, Array]  # by name: x, h0 and c0 (if given), and each trainable weight


INPUTS = ("x", "h0", "c0")
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


def make_pair(
    sizes: Sizes, rng: np.random.Generator, *, stock: dict[str, Any] | None = None, **options: Any
) -> tuple[tf_lstm_ops.keras.LSTM, keras.layers.LSTM]:
    """Our layer and stock's with equal weights and options, but for stock's own in `stock`."""
    ours = tf_lstm_ops.keras.LSTM(sizes.units, **options)
    theirs = keras.layers.LSTM(sizes.units, **{**options, **(stock or {})})
    for layer in ours, theirs:
        layer.build((sizes.batch, sizes.time, sizes.inputs))
    random_weights(theirs, rng)
    copy_weights(theirs, ours)
    return ours, theirs


def copy_weights(source: keras.layers.Layer, target: keras.layers.Layer) -> None:
    for a, b in zip(source.trainable_weights, target.trainable_weights, strict=True):
        b.assign(a)


def random_inputs(sizes: Sizes, rng: np.random.Generator, states: bool) -> list[Array]:
    """x, and h0 and c0 if asked for, in float64."""
    x = rng.normal(size=(sizes.batch, sizes.time, sizes.inputs))
    shape = (sizes.batch, sizes.units)
    return [x, rng.normal(size=shape), rng.normal(size=shape)] if states else [x]


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
    layer: tf_lstm_ops.keras.LSTM, inputs: Sequence[Array], mask: Array | None = None
) -> Evaluation:
    """What `evaluate` should return (in inference), by the NumPy reference."""
    weights = {w.name: w.numpy() for w in layer.trainable_weights}
    sizes = Sizes(*inputs[0].shape, layer.units)
    arguments = Arguments(
        *(inputs if len(inputs) == 3 else [inputs[0], *np.zeros((2, sizes.batch, sizes.units))]),
        weights["kernel"],
        weights["recurrent_kernel"],
        weights.get("bias", np.zeros(4 * sizes.units)),
        weights.get("peephole_kernel", np.zeros((3, sizes.units))),
    )
    options = Options(mask, layer.go_backwards, layer.zero_output_for_mask, layer.cell_clip)
    full = keras_lstm(arguments, options)
    output = full.outputs if layer.return_sequences else full.outputs[:, -1]
    results = [output, full.h, full.c] if layer.return_state else [output]

    outputs_gradient = np.zeros_like(full.outputs)
    outputs_gradient[:, slice(None) if layer.return_sequences else -1] = upstream(output)
    state_gradients = [upstream(s) if layer.return_state else np.zeros_like(s) for s in full[1:]]
    gradients = keras_lstm_backward(arguments, Results(outputs_gradient, *state_gradients), options)
    by_name = gradients._asdict() | {"peephole_kernel": gradients.peephole}
    wanted = [*INPUTS[: len(inputs)], *weights]
    return Evaluation(results, {name: by_name[name] for name in wanted})
