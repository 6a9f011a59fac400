"""Every layer in every context of a call gives the results and gradients of an eager call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from layers.contract import B, Case, I, T, cases, divided

Results = tuple[Any, Any]  # the output and the gradient of the input


def gradient(call: Callable[[Any], Any], x: Any) -> Results:
    """Of the sum of squares."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        output = tf.cast(call(x), tf.float32)
        loss = tf.reduce_sum(output**2)
    return output, tape.gradient(loss, x)


def function(layer: Any, x: Any, folder: Path) -> Results:
    return tf.function(lambda x: gradient(layer, x))(x)


def function_traced_without_a_tape(layer: Any, x: Any, folder: Path) -> Results:
    traced = tf.function(layer)
    traced(x)
    return gradient(traced, x)


def function_of_any_size(layer: Any, x: Any, folder: Path) -> Results:
    spec = tf.TensorSpec([None, None, I], tf.float32)
    return tf.function(lambda x: gradient(layer, x), input_signature=[spec])(x)


def xla(layer: Any, x: Any, folder: Path) -> Results:
    return tf.function(lambda x: gradient(layer, x), jit_compile=True)(x)


def loaded_saved_model(layer: Any, x: Any, folder: Path) -> Results:
    module = tf.Module()
    module.layer = layer
    module.call = tf.function(layer, input_signature=[tf.TensorSpec([B, T, I], tf.float32)])
    tf.saved_model.save(module, str(folder))
    loaded = tf.saved_model.load(str(folder))
    return gradient(lambda x: loaded.call(x), x)  # which needs the object, too


def distributed(layer: Any, x: Any, folder: Path) -> Results:
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        copy = type(layer).from_config(layer.get_config())
        copy.build(x.shape)
        copy.set_weights(layer.get_weights())
    return strategy.run(tf.function(lambda x: gradient(copy, x)), [x])


def map_of_a_dataset(layer: Any, x: Any, folder: Path) -> Results:
    dataset = tf.data.Dataset.from_tensors(x).map(lambda x: gradient(layer, x))
    return next(iter(dataset))


def vectorized_map(layer: Any, x: Any, folder: Path) -> Results:
    def row(x: Any) -> Results:
        output, grad = gradient(layer, x[tf.newaxis])
        return output[0], grad[0]

    return tf.vectorized_map(row, x, fallback_to_while_loop=False)


CONTEXTS = {
    context.__name__: context
    for context in (
        *(function, function_traced_without_a_tape, function_of_any_size, xla),
        *(loaded_saved_model, distributed, map_of_a_dataset, vectorized_map),
    )
}


def refusal(context: str, case: Case) -> str | None:
    """A pattern of the documented error; None where there is none."""
    if context == "loaded_saved_model" and case.variant == "dropout" and not case.stacked:
        return "untracked"  # as in test_roads.py
    if context == "vectorized_map" and not case.fused:
        return "pfor|variant"  # TensorFlow does not vectorize the lists of Keras' own loop
    return None


def without_states(case: Case) -> bool:
    """A stateful layer would begin each call with other states."""
    return not case.stateful


def built(case: Case) -> tuple[Any, Any]:
    """The layer, and the input as a tensor."""
    layer = case.make_model().layers[-2]
    return layer, tf.constant(case.inputs())


# Each context. test_mask has each layer and each variant.
BY_DEFAULT = {
    "function": "GRU-masked_last",
    "function_traced_without_a_tape": "LSTM-masked_both",
    "function_of_any_size": "LSTMCell-masked",
    "xla": "LSTM-activations",
    "loaded_saved_model": "LSTM-projection GRU-dropout",
    "distributed": "StackedGRU-bidirectional",
    "map_of_a_dataset": "LSTM-backwards",
    "vectorized_map": "StackedLSTM-sequences",
}


@pytest.mark.parametrize(
    ("context", "case"), divided(CONTEXTS, filter(without_states, cases()), BY_DEFAULT)
)
def test_context(context, case, tmp_path):
    layer, x = built(case)
    if reason := refusal(context, case):
        with pytest.raises(Exception, match=reason):
            CONTEXTS[context](layer, x, tmp_path)
        return
    expected = gradient(layer, x)
    for got, want in zip(CONTEXTS[context](layer, x, tmp_path), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=case.tolerance)


@pytest.mark.parametrize(
    ("_", "case"),
    divided(
        ["jvp"],
        filter(without_states, cases()),
        {"jvp": "LSTM-plain GRU-masked"},
    ),
)
def test_forward_mode(_, case):
    layer, x = built(case)
    direction = tf.constant(np.random.default_rng(3).normal(size=x.shape), tf.float32)
    with tf.autodiff.ForwardAccumulator(x, direction) as accumulator:
        loss = tf.reduce_sum(tf.cast(layer(x), tf.float32) ** 2)
    want = tf.reduce_sum(gradient(layer, x)[1] * direction)
    # Sums of some fifty products.
    np.testing.assert_allclose(accumulator.jvp(loss), want, rtol=0, atol=50 * case.tolerance)


MASKS = {
    "right": [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]],
    "left": [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]],
    "holes": [[1, 0, 1, 0, 1], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1]],
    "empty": [[0, 0, 0, 0, 0], [1, 0, 1, 1, 0], [0, 0, 0, 0, 0]],
}


@pytest.mark.sampled(20)
@pytest.mark.parametrize("case", filter(without_states, cases()), ids=str)
@pytest.mark.parametrize("mask", MASKS)
def test_mask(mask, case):
    """The last valid step's output is that of the valid steps alone, in a batch of one."""
    layer, x = built(case)
    mask = np.array(MASKS[mask], bool)
    got = layer(x, mask=tf.constant(mask))
    for row in range(B):
        steps = tf.boolean_mask(x[row], mask[row])[tf.newaxis]
        alone = layer(steps) if mask[row].any() else None
        if got.shape.rank == 3:
            part = tf.boolean_mask(got[row], mask[row])
            want = part if alone is None else alone[0]
        elif alone is None or (layer_zeroes(case) and not mask[row, -1]):
            part, want = got[row], np.zeros(got.shape[1:])
        else:
            part, want = got[row], alone[0]
        np.testing.assert_allclose(
            np.asarray(part, "float32"), np.asarray(want, "float32"), rtol=0, atol=case.tolerance
        )


def layer_zeroes(case: Case) -> bool:
    """Whether a masked last step has the output zero."""
    return case.settings.options.get("zero_output_for_mask", False)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("case", [c for c in cases() if without_states(c) and c.own], ids=str)
def test_ragged_rows(case):
    layer, x = built(case)
    sizes = [3, 5, 1]
    rows = [x[k : k + 1, :n] for k, n in enumerate(sizes)]
    got = layer(tf.RaggedTensor.from_row_lengths(tf.concat([r[0] for r in rows], 0), sizes))
    for k, row in enumerate(rows):
        want = np.asarray(layer(row)[0], "float32")
        np.testing.assert_allclose(np.asarray(got[k], "float32"), want, rtol=0, atol=case.tolerance)


NOTHING = {"no_rows": [0, T, I], "no_steps": [B, 0, I], "neither": [0, 0, I]}


@pytest.mark.parametrize(
    ("sizes", "case"),
    divided(
        NOTHING,
        [c for c in cases() if without_states(c) and c.own],
        {
            "no_rows": "LSTM-masked_both GRU-plain",
            "no_steps": "LSTM-peephole StackedLSTM-backwards",
            "neither": "GRU-masked_last StackedGRU-bidirectional",
        },
    ),
)
def test_nothing_to_compute(sizes, case):
    layer, _ = built(case)
    x = tf.zeros(NOTHING[sizes])
    for call in layer, tf.function(layer):
        output, grad = gradient(call, x)
        assert not np.any(output) and grad.shape == x.shape
        wanted = x.shape[: output.shape.rank - 1]
        assert output.shape[:-1] == wanted
