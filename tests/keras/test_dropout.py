"""Dropout and recurrent dropout: the masks that stock Keras draws, on the fused path."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import (
    FAMILIES,
    GATED,
    GRU,
    LSTM,
    ONE_BY_DEFAULT,
    Sizes,
    assert_close,
    assert_same,
    divided,
    evaluate,
    label,
    make_layer,
    make_mask,
    make_pair,
    random_inputs,
    random_weights,
    rounding,
    to_numpy,
)

from tf_lstm_ops import op_definitions

SIZES = Sizes(batch=4, time=5, inputs=6, units=9)

# Stock refuses dropout with implementation=1 unless its cuDNN attempt is switched off.
LOOP = {"use_cudnn": False}

# Dropped values leave fewer terms in a sum; the others are scaled by 1/(1-p) ≤ 2: bound times two.
BOUND = 2 * rounding(SIZES)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("mask", ["none", "right", "holes"])
@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize(
    ("dropout", "recurrent_dropout", "implementation"),
    [(0.5, 0, 1), (0.5, 0, 2), (0, 0.4, 2), (0.3, 0.5, 1), (0.3, 0.5, 2)],
)
def test_training_equals_stock_with_the_same_seed(
    dropout, recurrent_dropout, implementation, go_backwards, mask, family, rng
):
    """Results and gradients of two calls, since the second draws other masks."""
    ours, theirs = make_pair(
        family,
        SIZES,
        rng,
        stock=LOOP,
        dropout=dropout,
        recurrent_dropout=recurrent_dropout,
        implementation=implementation,
        seed=7,
        return_sequences=True,
        return_state=True,
        go_backwards=go_backwards,
        dtype="float64",
    )
    assert ours.uses_fused_op
    mask = make_mask(mask, SIZES.batch, SIZES.time, rng)
    inputs = random_inputs(SIZES, rng, family)
    calls = [evaluate(layer, inputs, mask, training=True) for layer in (ours, theirs) * 2]
    assert_same(calls[0], calls[1], BOUND)
    assert_same(calls[2], calls[3], BOUND)
    assert np.abs(calls[0].results[0] - calls[2].results[0]).max() > 1e-3


@pytest.mark.parametrize("implementation", [1, 2])
@pytest.mark.parametrize("traced", [False, True])
def test_a_state_of_one_row_for_all(traced, implementation, family, rng):
    """Keras draws one row of multipliers then, as it has one row of the state."""
    ours, theirs = make_pair(
        family,
        SIZES,
        rng,
        stock=LOOP,
        dropout=0.3,
        recurrent_dropout=0.4,
        implementation=implementation,
        seed=7,
        dtype="float64",
    )
    x = tf.constant(rng.normal(size=(SIZES.batch, SIZES.time, SIZES.inputs)))
    states = [tf.constant(rng.normal(size=(1, SIZES.units))) for _ in family.states]

    def call(x):
        return ours(x, initial_state=states, training=True)

    got = (tf.function(call) if traced else call)(x)
    want = theirs(x, initial_state=states, training=True)  # its loop cannot be traced with one row
    assert_close(got.numpy(), want.numpy(), BOUND)


@pytest.mark.parametrize("family", GATED, ids=label)
def test_implementation_2_has_no_recurrent_dropout(family, rng):
    """As in stock, where a rate that is set later on finds no masks for each gate."""
    ours, theirs = make_pair(family, SIZES, rng, dtype="float64", seed=7)
    plain = evaluate(ours, inputs := random_inputs(SIZES, rng, family))
    for layer in ours, theirs:
        layer.cell.recurrent_dropout = 0.5
        assert_same(evaluate(layer, inputs, training=True), plain, rounding(SIZES))


@pytest.mark.parametrize("rates", [(1.0, 0.0), (0.0, 1.0)])
def test_a_rate_of_one_is_stocks(rates, family, rng):
    """Which ignores it, or refuses it in older versions of Keras."""
    dropout, recurrent_dropout = rates
    ours, theirs = make_pair(
        family, SIZES, rng, dropout=dropout, recurrent_dropout=recurrent_dropout, dtype="float64"
    )
    inputs = random_inputs(SIZES, rng)
    try:
        wanted = evaluate(theirs, inputs, training=True)
    except ValueError:
        with pytest.raises(ValueError, match="rate"):
            evaluate(ours, inputs, training=True)
    else:
        assert_same(evaluate(ours, inputs, training=True), wanted, rounding(SIZES))


@pytest.mark.parametrize("family", ONE_BY_DEFAULT, ids=label)
def test_inference_is_unaffected(family, rng):
    """No dropout without training; yet stock draws masks then too, so the seed moves on."""
    options = {"return_state": True, "dtype": "float64", "seed": 3}
    ours, theirs = make_pair(family, SIZES, rng, dropout=0.5, recurrent_dropout=0.5, **options)
    plain, _ = make_pair(family, SIZES, rng, **options)
    plain.set_weights([w.numpy() for w in ours.trainable_weights])
    inputs = random_inputs(SIZES, rng, family)
    for _ in range(2):
        for call in {}, {"training": False}:
            got = evaluate(ours, inputs, **call)
            assert_same(got, evaluate(plain, inputs), rounding(SIZES))
            assert_same(got, evaluate(theirs, inputs, **call), rounding(SIZES))
        assert_same(
            evaluate(ours, inputs, training=True),
            evaluate(theirs, inputs, training=True),
            BOUND,
        )


# With gates this open or shut, h' = tanh(tanh(2·h)) or 0 in the LSTM, tanh(2·h) or 0 in the GRU:
# only the mask of the last but one, or of the last gate matters, that of the candidate.
ONE_UNIT = {
    LSTM.name: ([50.0, -50.0, 0.0, 50.0], [0.0, 0.0, 1.0, 0.0]),  # i = o = 1, f = 0
    GRU.name: ([[-50.0, 50.0, 0.0], [0.0, 0.0, 0.0]], [0.0, 0.0, 1.0]),  # z = 0, r = 1
}


@pytest.mark.parametrize("family", GATED, ids=label)
def test_one_mask_serves_all_steps_of_a_sequence(family, rng):
    """What is dropped at one step is dropped at all: with one unit and one path for its state to
    pass on, a sequence keeps its memory throughout or never has any."""
    sizes = Sizes(batch=64, time=4, inputs=1, units=1)
    layer = make_layer(family, sizes, rng, recurrent_dropout=0.5, seed=1, return_state=False)
    cell = layer.cell
    bias, recurrent_kernel = ONE_UNIT[family.name]
    cell.kernel.assign(np.zeros(cell.kernel.shape))
    cell.bias.assign(bias)
    cell.recurrent_kernel.assign([recurrent_kernel])
    states = [np.ones((sizes.batch, 1)) for _ in family.states]
    x = np.zeros((sizes.batch, sizes.time, 1))
    outputs = np.asarray(layer(x, initial_state=states, training=True))
    retained = outputs[:, :, 0] > 0.1
    assert np.all(retained == retained[:, :1])
    assert 16 < retained[:, 0].sum() < 48  # 64 tosses of a coin, within four standard deviations


@pytest.mark.parametrize(
    ("rates", "family"),
    divided(
        itertools.product([(0.5, 0.0), (0.0, 0.5), (0.4, 0.4)], FAMILIES), [((0.4, 0.4), LSTM)]
    ),
    ids=label,
)
def test_fit_draws_the_masks_of_stock(rates, family, rng):
    """Through model.fit, in a tf.function: the seed's state advances step by step."""
    x = rng.normal(size=(16, 5, 6)).astype("float32")
    y = rng.normal(size=(16, 9)).astype("float32")
    losses = []
    for rnn in family.both:
        model = keras.Sequential(
            [keras.Input((None, 6)), rnn(9, dropout=rates[0], recurrent_dropout=rates[1], seed=5)]
        )
        random_weights(model, np.random.default_rng(1))
        model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
        history = model.fit(x, y, batch_size=4, epochs=3, shuffle=False, verbose=0)
        losses.append(history.history["loss"])
    # 12 steps, each of which adds the rounding of a gradient to the weights.
    np.testing.assert_allclose(losses[0], losses[1], rtol=24 * rounding(SIZES, "float32"))
    assert len(set(losses[0])) == 3


@pytest.mark.parametrize("family", ONE_BY_DEFAULT, ids=label)
def test_stateful_with_dropout(family, rng):
    ours, theirs = make_pair(
        family,
        SIZES,
        rng,
        dropout=0.3,
        recurrent_dropout=0.3,
        seed=2,
        stateful=True,
        dtype="float64",
    )
    inputs = random_inputs(SIZES, rng)
    for _ in range(3):
        got, wanted = (evaluate(layer, inputs, training=True) for layer in (ours, theirs))
        assert_close(got.results[0], wanted.results[0], 3 * BOUND)


def test_rates_are_limited_to_their_range(family):
    layer = family.ours(3, dropout=1.5, recurrent_dropout=-0.5)
    assert (layer.dropout, layer.recurrent_dropout) == (1.0, 0.0)


@pytest.mark.parametrize("factors", ["input_dropout", "recurrent_dropout"])
@pytest.mark.parametrize(("op", "gates"), [("KerasLSTM", 4), ("KerasGRU", 3)])
def test_factors_of_each_gate_in_bfloat16(op, gates, factors, rng):
    """The ops take factors for each gate, though a layer's gates share theirs. Products with
    weights in bfloat16 have kernels of their own."""
    batch, time, inputs, units = SIZES
    shapes = {"x": (batch, time, inputs), "initial_h": (batch, units)}
    shapes |= {"kernel": (inputs, gates * units), "recurrent_kernel": (units, gates * units)}
    shapes |= (
        {"initial_c": (batch, units), "peephole": (0,), "projection": (0,)}
        if op == "KerasLSTM"
        else {}
    )
    shapes |= dict.fromkeys(["bias", "input_dropout", "recurrent_dropout"], (0,))
    shapes[factors] = (gates, batch, inputs if factors == "input_dropout" else units)
    values = {k: tf.cast(rng.uniform(-1, 1, shape), "bfloat16") for k, shape in shapes.items()}
    wanted, got = (
        op_definitions.function(op)(
            mask=tf.zeros([0], tf.bool), **{k: tf.cast(v, dtype) for k, v in values.items()}
        )
        for dtype in ("float64", "bfloat16")
    )
    # Some roundings, each of half a unit of 2^-7.
    assert_close(to_numpy(got[0]), to_numpy(wanted[0]), 4 * 2.0**-7)
