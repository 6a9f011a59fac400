"""Our layers compute what stock Keras' compute: results, states, every gradient."""

import itertools
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import (
    FAMILIES,
    GRU,
    LSTM,
    MASKS,
    ONE_BY_DEFAULT,
    Sizes,
    assert_close,
    assert_same,
    copy_weights,
    divided,
    evaluate,
    label,
    make_mask,
    make_pair,
    random_inputs,
    random_weights,
    rounding,
)

# Units below, at, and across the widths of vector registers.
SIZES = [Sizes(2, 5, 3, 1), Sizes(3, 6, 4, 7), Sizes(5, 4, 1, 17), Sizes(2, 7, 2, 33)]


class Case(NamedTuple):
    mask: str
    return_sequences: bool
    go_backwards: bool
    stateful: bool
    use_bias: bool
    zero_output_for_mask: bool
    unroll: bool
    initial_state: bool

    @property
    def options(self) -> dict[str, bool]:
        options = self._asdict()
        del options["mask"], options["initial_state"]
        return options

    def __str__(self) -> str:
        return "-".join([self.mask, *(k for k, v in self._asdict().items() if v is True)])


def unrolled_stock_is_wrong(case: Case) -> bool:
    """Stock's unrolled loop zeroes outputs by the mask in the order of the input, where backwards
    that of the calculation is meant, as in its while loop (test_stock_unrolled_and_backwards)."""
    options = case.unroll, case.go_backwards, case.zero_output_for_mask, case.return_sequences
    return all(options) and case.mask != "none"


CASES = [Case(*choice) for choice in itertools.product(MASKS, *[[False, True]] * 7)]


@pytest.mark.sampled(40)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_stock(case, family, rng):
    sizes = SIZES[rng.integers(len(SIZES))]
    mask = make_mask(case.mask, sizes.batch, sizes.time, rng)
    ours, theirs = make_pair(
        family,
        sizes,
        rng,
        return_state=True,
        dtype="float64",
        stock={"unroll": False} if unrolled_stock_is_wrong(case) else None,
        **case.options,
    )
    assert ours.uses_fused_op
    for _ in range(2):  # the second call of a stateful layer starts from the first one's states
        inputs = random_inputs(sizes, rng, family if case.initial_state else None)
        assert_same(
            evaluate(ours, inputs, mask), evaluate(theirs, inputs, mask), 2 * rounding(sizes)
        )
    for layer in (ours, theirs) if case.stateful else ():
        layer.reset_state()
    assert_same(evaluate(ours, inputs, mask), evaluate(theirs, inputs, mask), rounding(sizes))


def test_stock_unrolled_and_backwards(family, rng):
    """The reason why `test_equals_stock` does not unroll stock there. If this fails, it may."""
    sizes = SIZES[1]
    options = {"go_backwards": True, "zero_output_for_mask": True, "return_sequences": True}
    mask = np.arange(sizes.time) < np.array([[3], [6], [1]])
    unrolled, loop = (
        family.stock(sizes.units, unroll=unroll, dtype="float64", **options)
        for unroll in (True, False)
    )
    inputs = random_inputs(sizes, rng)
    outputs = evaluate(loop, inputs, mask).results[0]
    unrolled.build(inputs[0].shape)
    copy_weights(loop, unrolled)
    # Backwards, the padding comes first.
    np.testing.assert_array_equal((outputs[0] == 0).all(axis=-1), ~mask[0, ::-1])
    assert np.any(evaluate(unrolled, inputs, mask).results[0] != outputs)


@pytest.mark.sampled
@pytest.mark.parametrize("return_state", [False, True])
@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("units", [1, 2, 3, 5, 8, 15, 16, 31, 64, 65])
def test_float32_at_many_sizes(units, return_sequences, return_state, family, rng):
    sizes = Sizes(batch=3, time=4, inputs=int(rng.integers(1, 9)), units=units)
    ours, theirs = make_pair(
        family, sizes, rng, return_sequences=return_sequences, return_state=return_state
    )
    inputs = random_inputs(sizes, rng)
    assert_same(evaluate(ours, inputs), evaluate(theirs, inputs), rounding(sizes, "float32"))


@pytest.mark.sampled
@pytest.mark.parametrize("mask", ["none", "right", "one_row_false", "all_false"])
@pytest.mark.parametrize("go_backwards", [False, True])
def test_one_step(mask, go_backwards, family, rng):
    sizes = Sizes(batch=3, time=1, inputs=2, units=5)
    mask = make_mask(mask, sizes.batch, sizes.time, rng)
    ours, theirs = make_pair(
        family, sizes, rng, return_state=True, go_backwards=go_backwards, dtype="float64"
    )
    inputs = random_inputs(sizes, rng, family)
    assert_same(evaluate(ours, inputs, mask), evaluate(theirs, inputs, mask), rounding(sizes))


@pytest.mark.parametrize(
    ("return_sequences", "go_backwards", "masked", "family"),
    divided(
        itertools.product([False, True], [False, True], [False, True], FAMILIES),
        [(True, True, True, LSTM)],
    ),
    ids=label,
)
def test_functional_model_with_unknown_batch_and_time(
    return_sequences, go_backwards, masked, family, rng
):
    sizes = Sizes(4, 6, 3, 9)
    ours, theirs = make_pair(
        family,
        sizes,
        rng,
        return_sequences=return_sequences,
        go_backwards=go_backwards,
        return_state=True,
        dtype="float64",
    )

    def model(layer):
        x = keras.Input((None, sizes.inputs), dtype="float64")
        mask = keras.Input((None,), dtype="bool")
        if not masked:
            return keras.Model([x], layer(x))
        return keras.Model([x, mask], layer(x, mask=mask))

    ours, theirs = model(ours), model(theirs)
    assert [o.shape for o in ours.outputs] == [o.shape for o in theirs.outputs]
    for batch, time in [(4, 6), (1, 1), (2, 9)]:
        x = rng.normal(size=(batch, time, sizes.inputs))
        inputs = [x, rng.random((batch, time)) < 0.5][: 1 + masked]
        for got, wanted in zip(
            ours.predict(inputs, verbose=0), theirs.predict(inputs, verbose=0), strict=True
        ):
            assert_close(got, wanted, rounding(sizes._replace(batch=batch, time=time)))


@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("return_state", [False, True])
def test_shapes_and_masks_are_inferred_as_stock_does(return_sequences, return_state, family):
    ours, theirs = (
        c(9, return_sequences=return_sequences, return_state=return_state) for c in family.both
    )
    for shape in [(4, 6, 3), (None, 6, 3), (None, None, 3)]:
        assert ours.compute_output_shape(shape) == theirs.compute_output_shape(shape)
        symbolic = [
            tf.nest.map_structure(lambda t: (t.shape, t.dtype), layer(keras.KerasTensor(shape)))
            for layer in (ours, theirs)
        ]
        assert symbolic[0] == symbolic[1]
    x, mask = np.zeros((4, 6, 3)), np.ones((4, 6), bool)
    masks = [layer.compute_mask(x, mask) for layer in (ours, theirs)]
    passed_on = [[m is mask for m in (ms if return_state else [ms])] for ms in masks]
    states = [False for _ in family.states if return_state]
    assert passed_on[0] == passed_on[1] == [return_sequences, *states]


def test_tf_function_keeps_the_static_shape(family):
    layer = family.ours(5, return_sequences=True, return_state=True)
    layer.build((None, None, 3))

    @tf.function(input_signature=[tf.TensorSpec([2, None, 3])])
    def call(x):
        outputs, *states = layer(x)
        assert outputs.shape.as_list() == [2, None, 5]
        assert [s.shape.as_list() for s in states] == [[2, 5] for _ in family.states]
        return outputs

    assert call(tf.zeros([2, 4, 3])).shape == (2, 4, 5)


def two_layers(rnn, input_size: int, rng: np.random.Generator) -> keras.Model:
    """Two layers, both masked."""
    first = rnn(9, return_sequences=True)
    first.supports_masking = True  # Keras 3.16 sets it to False in its own layers
    model = keras.Sequential(
        [
            keras.Input((None, input_size)),
            keras.layers.Masking(),
            first,
            rnn(5, go_backwards=True),
            keras.layers.Dense(3),
        ]
    )
    random_weights(model, rng)
    return model


@pytest.mark.parametrize(
    ("run_eagerly", "family"),
    divided(itertools.product([False, True], FAMILIES), [(False, GRU)], each=2),
    ids=label,
)
def test_fit_follows_stock(run_eagerly, family, rng):
    x = rng.normal(size=(24, 7, 4)).astype("float32")
    lengths = rng.integers(1, 8, size=24)
    x[np.arange(7) >= lengths[:, None]] = 0  # what Masking leaves out
    labels = rng.integers(3, size=24)
    histories, weights = [], []
    for rnn, jit in (family.ours, "auto"), (family.stock, False):
        model = two_layers(rnn, 4, np.random.default_rng(0))
        model.compile(
            keras.optimizers.SGD(0.1, momentum=0.9),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            run_eagerly=run_eagerly,
            jit_compile=False if run_eagerly else jit,
        )
        fit = model.fit(x, labels, batch_size=8, epochs=4, shuffle=False, verbose=0)
        histories.append(fit.history["loss"])
        weights.append([w.numpy() for w in model.weights])
    # 12 steps in float32, each of which adds the rounding of a gradient to the weights.
    bound = 12 * rounding(Sizes(8, 7, 4, 9), "float32")
    assert histories[1][-1] < 0.98 * histories[1][0], "the models do not learn"
    np.testing.assert_allclose(histories[0], histories[1], rtol=bound)
    for got, wanted in zip(*weights, strict=True):
        assert_close(got, wanted, bound)


@pytest.mark.parametrize("family", ONE_BY_DEFAULT, ids=label)
def test_stateful_model_across_batches(family, rng):
    """Train a stateful model in graph mode: the states pass from batch to batch, and reset."""
    x = rng.normal(size=(12, 5, 3)).astype("float32")
    y = rng.normal(size=(12, 4)).astype("float32")
    predictions = []
    for rnn in family.both:
        model = keras.Sequential([keras.Input(batch_shape=(4, 5, 3)), rnn(4, stateful=True)])
        random_weights(model, np.random.default_rng(0))
        model.compile("sgd", "mse", jit_compile=False)
        model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
        carried = model.predict(x, batch_size=4, verbose=0)
        model.layers[-1].reset_state()
        predictions.append((carried, model.predict(x, batch_size=4, verbose=0)))
    for got, wanted in zip(*predictions, strict=True):
        assert_close(got, wanted, 6 * rounding(Sizes(4, 5, 3, 4), "float32"))
    assert np.abs(np.subtract(*predictions[0])).max() > 1e-3, "reset_state changed nothing"


def test_stateful_layer_refuses_another_batch_size(family):
    layer = family.ours(4, stateful=True)
    layer(np.zeros((3, 5, 2), "float32"))
    # Keras 3.8 leaves it to the op, whose message has an underscore.
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=r"batch.size"):
        layer(np.zeros((2, 5, 2), "float32"))
    with pytest.raises(ValueError, match="batch size must be static"):
        family.ours(4, stateful=True).build((None, 5, 2))


def test_unroll_needs_a_known_length(family):
    layer = family.ours(4, unroll=True)
    layer.build((2, None, 3))
    with pytest.raises(ValueError, match="Cannot unroll"):
        tf.function(layer).get_concrete_function(tf.TensorSpec([2, None, 3]))


def test_wrong_states_are_refused(family, rng):
    layer = family.ours(4)
    x = rng.normal(size=(3, 5, 2))
    for shape in [(2, 4), (3, 3)]:
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
            layer(x, initial_state=[np.zeros(shape) for _ in family.states])
    with pytest.raises(ValueError, match=r"ndim=3"):
        layer(x[0])


@pytest.mark.parametrize("merge_mode", ["concat", "sum"])
def test_bidirectional(merge_mode, family, rng):
    sizes = Sizes(3, 6, 4, 7)
    ours, theirs = (
        keras.layers.Bidirectional(
            rnn(sizes.units, return_sequences=True, dtype="float64"),
            merge_mode=merge_mode,
            dtype="float64",
        )
        for rnn in family.both
    )
    for layer in ours, theirs:
        layer.build((sizes.batch, sizes.time, sizes.inputs))
    random_weights(theirs, rng)
    copy_weights(theirs, ours)
    assert isinstance(ours.backward_layer, family.ours)
    inputs = random_inputs(sizes, rng)
    mask = make_mask("holes", sizes.batch, sizes.time, rng)
    got, wanted = evaluate(ours, inputs, mask), evaluate(theirs, inputs, mask)
    assert_close(got.results[0], wanted.results[0], rounding(sizes))
    for name in wanted.gradients:
        assert_close(got.gradients[name], wanted.gradients[name], 2 * rounding(sizes), name)


@pytest.mark.parametrize("family", ONE_BY_DEFAULT, ids=label)
def test_states_pass_from_encoder_to_decoder(family, rng):
    """initial_state as keyword and, in a functional model, as tensors of another layer."""
    x, y = rng.normal(size=(2, 3, 5, 4))
    predictions = []
    for rnn in family.both:
        source, target = (keras.Input((None, 4), dtype="float64") for _ in range(2))
        _, *states = rnn(6, return_state=True, dtype="float64")(source)
        output = rnn(6, dtype="float64")(target, initial_state=states)
        model = keras.Model([source, target], output)
        random_weights(model, np.random.default_rng(0))
        predictions.append(model.predict([x, y], verbose=0))
    assert_close(*predictions, 2 * rounding(Sizes(3, 5, 4, 6)))


def test_states_and_mask_of_one_row_serve_the_batch(family, rng):
    """As in stock Keras, an initial state or a mask of batch size 1 is that of every row."""
    ours, stock = (rnn(5) for rnn in family.both)
    x = rng.normal(size=(3, 4, 2)).astype("float32")
    states = [rng.normal(size=(1, 5)).astype("float32") for _ in family.states]
    mask = np.array([[True, False, True, True]])
    stock.build(x.shape)
    ours.build(x.shape)
    ours.set_weights(stock.get_weights())
    expected = stock(x, initial_state=[np.repeat(s, 3, axis=0) for s in states], mask=mask)
    np.testing.assert_allclose(ours(x, initial_state=states, mask=mask), expected, atol=1e-6)


def test_refuses_three_states(family):
    with pytest.raises(ValueError, match="initial_state must be"):
        family.ours(5)(np.zeros((3, 4, 2), "float32"), initial_state=[np.zeros((3, 5))] * 3)


def test_refuses_a_state_of_another_size(family):
    states = [np.zeros((3, 4))] * len(family.states)
    with pytest.raises(ValueError, match=r"h of initial_state must be \[batch, 5\].*\(3, 4\)"):
        family.ours(5)(np.zeros((3, 4, 2), "float32"), initial_state=states)


def test_one_state_needs_no_list(rng):
    """A GRU's initial state may be a tensor, as in stock."""
    ours, theirs = make_pair(GRU, SIZES[0], rng, dtype="float64")
    x, h0 = random_inputs(SIZES[0], rng, GRU)
    wanted = theirs(x, initial_state=h0).numpy()
    assert_close(ours(x, initial_state=h0).numpy(), wanted, rounding(SIZES[0]))
    np.testing.assert_array_equal(ours(x, initial_state=h0), ours(x, initial_state=[h0]))
