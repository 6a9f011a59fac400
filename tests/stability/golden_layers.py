"""Models with every layer of the package, for the golden files."""

from __future__ import annotations

import keras
import tensorflow as tf

from tf_lstm_ops.keras import (
    GRU,
    LSTM,
    Bidirectional,
    GRUCell,
    LSTMCell,
    SimpleRNN,
    StackedGRU,
    StackedLSTM,
)

from .golden_ops import fixed

I, H = 2, 3  # noqa: E741
BATCH, CHUNK = 2, 4


def branches() -> dict[str, keras.layers.Layer]:
    """Layers by name, each with options of its own."""
    sequences = {"return_sequences": True}
    return {
        "lstm": LSTM(H, **sequences),
        "lstm_peephole": LSTM(H, use_peephole=True, cell_clip=0.5, go_backwards=True),
        "lstm_projection": LSTM(
            H, projection_size=2, activation="relu", recurrent_activation="hard_sigmoid"
        ),
        "lstm_norm": LSTM(H, layer_normalization="haste", **sequences),
        "lstm_addons": LSTM(H, layer_normalization="addons"),
        "lstm_dropout": LSTM(H, dropout=0.25, recurrent_dropout=0.25, seed=1, use_bias=False),
        "lstm_both": keras.layers.Bidirectional(LSTM(H, return_sequences=True)),
        "lstm_cell": keras.layers.RNN(LSTMCell(H, use_peephole=True), **sequences),
        "gru": GRU(H, **sequences),
        "gru_norm": GRU(H, layer_normalization="haste"),
        "gru_cell": keras.layers.RNN(GRUCell(H)),
        "stacked_lstm": StackedLSTM(
            H, num_layers=2, bidirectional=True, projection_size=2, **sequences
        ),
        "stacked_gru": StackedGRU(H, num_layers=2, dropout=0.25),
        # Keras sorts the layers by these names. A new layer whose name is the last one does not
        # change the weights of the others.
        "without_reset_after": GRU(H, reset_after=False, go_backwards=True, **sequences),
        "wrapped_gru": Bidirectional(GRU(H), merge_mode="ave"),
        "wrapped_gru_norm": Bidirectional(GRU(H, layer_normalization="haste", **sequences)),
        "wrapped_lstm": Bidirectional(LSTM(H, use_peephole=True, **sequences)),
        "wrapped_lstm_norm": Bidirectional(LSTM(H, layer_normalization="addons"), merge_mode="sum"),
        "wrapped_reset_before": Bidirectional(GRU(H, reset_after=False, **sequences)),
        "wrapped_simple_rnn": Bidirectional(SimpleRNN(H, **sequences)),
        "x_simple_rnn": SimpleRNN(H, activation="relu"),
    }


def layers_model() -> keras.Model:
    """All branches of one masked input; the outputs by name."""
    x = keras.Input((None, I), name="x")
    masked = keras.layers.Masking(name="masking")(x)
    outputs = {}
    for name, layer in branches().items():
        layer.name = name
        outputs[name] = layer(masked)
    return _with_fixed_weights(keras.Model(x, outputs, name="layers"))


def stateful_model() -> keras.Model:
    """Layers that carry their state from call to call."""
    x = keras.Input((CHUNK, I), batch_size=BATCH, name="x")
    h = LSTM(H, stateful=True, return_sequences=True, name="lstm")(x)
    h = StackedGRU(H, num_layers=2, stateful=True, return_sequences=True, name="stack")(h)
    return _with_fixed_weights(keras.Model(x, GRU(H, stateful=True, name="gru")(h)))


def _with_fixed_weights(model: keras.Model) -> keras.Model:
    weights = [w for w in model.weights if w.dtype == "float32"]  # not the seeds of dropout
    for k, weight in enumerate(weights):
        if "state" not in weight.path:
            weight.assign(fixed(k, *weight.shape))
    return model


class Layers(tf.Module):
    """What a SavedModel of the model has: a call, and a step of training that changes nothing."""

    def __init__(self, model: keras.Model) -> None:
        super().__init__()
        self.model = model
        self.seeds = [seed.value for seed in model.non_trainable_variables]  # of dropout

    @tf.function(input_signature=[tf.TensorSpec([None, None, I])])
    def serve(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return self.model(x)

    @tf.function(input_signature=[tf.TensorSpec([None, None, I])])
    def gradients(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """With respect to the input and the weights, without dropout."""
        weights = self.model.trainable_variables
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = self.model(x).values()
            total = tf.add_n([tf.reduce_sum(output) for output in outputs])
        x_grad, *others = tape.gradient(total, [x, *weights])
        return {"x": x_grad, **{f"weight_{k}": grad for k, grad in enumerate(others)}}
