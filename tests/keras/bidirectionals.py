"""Layers of both directions, and what tests see of them."""

import numpy as np
import tensorflow as tf

from tf_lstm_ops.keras import GRU, LSTM, Bidirectional

B, T, I, H = 5, 7, 3, 9  # noqa: E741

LAYERS = {
    "lstm": (LSTM, {}),
    "gru": (GRU, {}),
    "reset_before": (GRU, {"reset_after": False}),
    "own": (LSTM, {"use_peephole": True, "cell_clip": 0.4, "projection_size": 4}),
    "activations": (LSTM, {"activation": "relu", "recurrent_activation": "hard_sigmoid"}),
    "norm_lstm": (LSTM, {"layer_normalization": "addons"}),
    "norm_gru": (GRU, {"layer_normalization": True}),
    "no_bias": (LSTM, {"use_bias": False}),
    "dropout": (LSTM, {"dropout": 0.3, "seed": 3}),
    "both_dropouts": (GRU, {"dropout": 0.3, "recurrent_dropout": 0.2, "seed": 3}),
}
MODES = ["concat", "sum", "ave", "mul", None]


def make(kind="lstm", merge_mode="concat", wrapper=Bidirectional, dtype="float32", **options):
    """A built layer with random weights."""
    layer, own = LAYERS[kind]
    start = {"recurrent_initializer": "zeros"}  # Keras has no orthogonal one in bfloat16
    inner = layer(H, dtype=dtype, **{"return_sequences": True, **start, **own, **options})
    made = wrapper(inner, merge_mode=merge_mode, dtype=dtype)
    made.build((B, T, I))
    rng = np.random.default_rng(1)
    made.set_weights([rng.normal(scale=0.5, size=w.shape) for w in made.get_weights()])
    return made


def inputs(dtype="float32"):
    x = np.random.default_rng(2).normal(size=(B, T, I))
    return tf.constant(x, dtype)


def evaluate(layer, x, training=None, **options):
    """Results, and the gradients of a function of all of them."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        results = tf.nest.flatten(layer(x, training=training, **options))
        loss = tf.add_n([tf.reduce_sum(tf.sin(r * (k + 1))) for k, r in enumerate(results)])
    gradients = tape.gradient(loss, [x, *layer.trainable_variables])
    return [np.asarray(value) for value in (*results, *gradients)]


def ops_of(layer, **options):
    """The ops of this package in a graph of a training step."""

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.add_n([tf.reduce_sum(y) for y in tf.nest.flatten(layer(x, **options))])
        return tape.gradient(loss, x)

    graph = step.get_concrete_function(tf.TensorSpec((None, None, I), layer.compute_dtype)).graph
    return sorted(op.type for op in graph.get_operations() if op.type.startswith("TfLstmOps>"))
