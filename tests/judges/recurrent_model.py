"""One Keras model with 35 recurrent layers and every option of them.

The idea is that of the model with which frugally-deep tests its recurrent layers
(`get_test_model_recurrent` of keras_export/generate_test_models.py, MIT): one functional model of
layers that differ in their options, some behind others. The layers here are chosen anew, and no
line is copied. Each layer's results are outputs of the model.
"""

from typing import Any

import keras
import numpy as np
from keras import layers

Array = np.ndarray[Any, Any]
BATCH, STEPS, FEATURES = 3, 9, 4
ONE_STEP, PARTS = (1, 5), (6, 7, 3)


def model() -> keras.Model:
    """The model, in the default type of Keras. Its weights are random."""
    a = keras.Input((STEPS, FEATURES), name="a")
    b = keras.Input(ONE_STEP, name="b")
    c = keras.Input(PARTS, name="c")
    found: list[Any] = []

    def add(layer: Any, *inputs: Any, **states: Any) -> Any:
        results = layer(*inputs, **states)
        found.extend(results if isinstance(results, list | tuple) else [results])
        return results

    full = {"return_sequences": True, "bias_initializer": "random_uniform"}
    x = layers.PReLU()(a)
    # Stacks of bidirectional layers with each way to join them.
    y = add(layers.Bidirectional(layers.LSTM(4, recurrent_activation="relu", **full)), x)
    y = add(
        layers.Bidirectional(
            layers.LSTM(6, activation="elu", recurrent_activation="hard_sigmoid", **full),
            merge_mode="sum",
        ),
        y,
    )
    add(layers.LSTM(10, recurrent_activation="sigmoid"), y)
    y = add(layers.Bidirectional(layers.GRU(5, **full), merge_mode="mul"), x)
    y = add(layers.Bidirectional(layers.GRU(4, reset_after=False, **full), merge_mode="ave"), y)
    add(layers.Bidirectional(layers.SimpleRNN(3), merge_mode="concat"), y)
    add(layers.Bidirectional(layers.LSTM(3, **full), merge_mode=None), y)
    backward = layers.GRU(3, use_bias=False, go_backwards=True, activation="relu")
    add(layers.Bidirectional(layers.GRU(3, use_bias=False), backward_layer=backward), x)
    # Options of the LSTM.
    add(layers.LSTM(5, use_bias=False), x)
    add(layers.LSTM(5, unit_forget_bias=False, go_backwards=True), x)
    add(layers.LSTM(4, go_backwards=True, activation="softsign", **full), x)
    add(layers.LSTM(4, activation="relu", recurrent_activation="hard_sigmoid", unroll=True), x)
    _, h, cell = add(layers.LSTM(4, return_state=True), x)
    add(layers.LSTM(4, activation="linear", **full), x, initial_state=[h, cell])
    add(layers.LSTM(3, dropout=0.3, recurrent_dropout=0.2), x)
    add(layers.LSTM(1), b)
    add(layers.Bidirectional(layers.LSTM(2, return_state=True, **full)), b)
    # Options of the GRU.
    add(layers.GRU(5, use_bias=False), x)
    add(layers.GRU(5, reset_after=False, go_backwards=True), x)
    add(layers.GRU(4, activation="softsign", recurrent_activation="hard_sigmoid", **full), x)
    add(layers.GRU(4, activation="relu", recurrent_activation="sigmoid", reset_after=False), x)
    _, h = add(layers.GRU(4, return_state=True), x)
    add(layers.GRU(4, **full), x, initial_state=h)
    add(layers.GRU(4, reset_after=False, use_bias=False, unroll=True, **full), x)
    add(layers.GRU(1), b)
    # Options of the plain RNN.
    add(layers.SimpleRNN(5, activation="relu"), x)
    add(layers.SimpleRNN(5, use_bias=False, go_backwards=True, **full), x)
    _, h = add(layers.SimpleRNN(4, return_state=True), x)
    add(layers.SimpleRNN(4, activation="sigmoid", **full), x, initial_state=h)
    # Masks: steps of zeros do not count.
    masked = layers.Masking()(a)
    y = add(layers.LSTM(4, **full), masked)
    add(layers.GRU(3, zero_output_for_mask=True, **full), y)
    add(layers.Bidirectional(layers.GRU(3, **full)), masked)
    add(layers.SimpleRNN(3, go_backwards=True), masked)
    # Each part of a sequence of sequences.
    add(layers.TimeDistributed(layers.LSTM(4)), c)
    add(layers.TimeDistributed(layers.Bidirectional(layers.GRU(2, **full))), c)
    add(layers.RNN(layers.LSTMCell(3), **{"return_sequences": True}), x)
    names = [f"y{k:02}" for k in range(len(found))]
    outputs = [
        layers.Activation("linear", name=name)(each)
        for name, each in zip(names, found, strict=True)
    ]
    return keras.Model([a, b, c], outputs)


def inputs(rng: np.random.Generator) -> list[Array]:
    """Random inputs. Some steps of the first one are zeros, at the begin, the end and between."""
    shapes = [(BATCH, STEPS, FEATURES), (BATCH, *ONE_STEP), (BATCH, *PARTS)]
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    a[0, 6:] = 0
    a[1, :2] = 0
    a[2, 4] = 0
    return [a, b, c]


def expected(weights: list[Array], x: list[Array]) -> list[Array]:
    """The outputs of the same model of stock layers in float64."""
    default = keras.config.floatx()
    keras.config.set_floatx("float64")
    try:
        wide = model()
        wide.set_weights(weights)
        return [np.asarray(y) for y in wide([each.astype(np.float64) for each in x])]
    finally:
        keras.config.set_floatx(default)
