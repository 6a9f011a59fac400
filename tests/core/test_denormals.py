"""Denormal numbers: the same bits in any way of calling, on any number of threads.

TensorFlow's threads round denormal numbers to zero. A thread of the team inherits the mode of the
thread that starts it. The results must not depend on which one that was.
"""

import hashlib
import json
import os
import subprocess
import sys

import pytest

SCALES = [1e-37, 3e-38, 1e-38, 1e-40]  # the smallest normal number is 1.2e-38
WAYS = ["eager", "function", "predict"]


def call(way: str, scale: float) -> list[str]:
    """Digests of the outputs and, but for `predict`, of the gradients. Large enough for a team."""
    import keras
    import numpy as np
    import tensorflow as tf

    import tf_lstm_ops

    rng = np.random.default_rng(1)
    batch, time, inputs, units = 33, 6, 20, 130
    shapes = [(batch, time, inputs), (batch, units), (batch, units)]
    given = [(scale * rng.normal(size=s)).astype(np.float32) for s in shapes]
    layer = tf_lstm_ops.keras.LSTM(units, return_sequences=True, use_bias=False)
    layer.build(shapes[0])
    layer.set_weights([rng.normal(size=w.shape) / 8 for w in layer.weights])

    def derive(x: tf.Tensor, h: tf.Tensor, c: tf.Tensor) -> list[tf.Tensor]:
        sources = [x, h, c, *(w.value for w in layer.trainable_weights)]
        with tf.GradientTape() as tape:
            tape.watch(sources[:3])
            y = layer(x, initial_state=[h, c])
            loss = tf.reduce_sum(y * 0.5)
        return [y, *tape.gradient(loss, sources)]

    if way == "predict":
        symbols = [keras.Input(shape[1:]) for shape in shapes]
        model = keras.Model(symbols, layer(symbols[0], initial_state=symbols[1:]))
        results = [model.predict(given, batch_size=batch, verbose=0)]
    else:
        function = tf.function(derive) if way == "function" else derive
        results = [r.numpy() for r in function(*map(tf.constant, given))]
    assert scale < 3e-38 or results[0].any()
    return [hashlib.sha256(r.tobytes()).hexdigest() for r in results]


def digests(threads: int, first: str) -> dict[str, dict[str, list[str]]]:
    """By scale and way of calling, in a new process, whose first call is made in this way."""
    environment = {**os.environ, "TF_NUM_INTRAOP_THREADS": str(threads)}
    command = [sys.executable, __file__, first]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.slow
def test_bits_of_denormal_numbers() -> None:
    runs = [digests(1, "eager"), *(digests(2, first) for first in WAYS)]
    wanted = runs[0]
    for found in runs:
        for scale, by_way in found.items():
            outputs, gradients = wanted[scale]["eager"][:1], wanted[scale]["eager"][1:]
            assert by_way["predict"] == outputs, scale
            for way in ("eager", "function"):
                assert by_way[way] == outputs + gradients, (scale, way)


if __name__ == "__main__":
    order = sorted(WAYS, key=lambda way: way != sys.argv[1])
    print(json.dumps({str(scale): {way: call(way, scale) for way in order} for scale in SCALES}))
