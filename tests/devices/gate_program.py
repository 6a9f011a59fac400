"""What a process with the emulated GPU computes. Not a test itself; see gate.py.

`python gate_program.py TASK MODEL` prints a line of JSON.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels

TIME, BATCH, INPUTS, UNITS = 4, 3, 5, 6


def random(*shape: int) -> Any:
    return tf.constant(np.random.default_rng(shape).standard_normal(shape) / 2, tf.float32)


def block_lstm() -> list[Any]:
    outputs = raw_ops.BlockLSTM(
        seq_len_max=tf.constant(TIME - 1, tf.int64),
        x=random(TIME, BATCH, INPUTS),
        cs_prev=random(BATCH, UNITS),
        h_prev=random(BATCH, UNITS),
        w=random(INPUTS + UNITS, 4 * UNITS),
        **{name: random(UNITS) for name in ("wci", "wcf", "wco")},
        b=random(4 * UNITS),
        use_peephole=True,
    )
    return list(outputs)


def cudnn_rnn(**options: Any) -> list[Any]:
    size = 2 * (4 * UNITS * (UNITS + UNITS) + 8 * UNITS)
    outputs = raw_ops.CudnnRNNV3(
        input=random(TIME, BATCH, UNITS),
        input_h=random(2, BATCH, UNITS),
        input_c=random(2, BATCH, UNITS),
        params=random(size),
        sequence_lengths=tf.constant([TIME, 1, 2], tf.int32),
        **options,
    )
    return list(outputs)[:3]


def lstm_with_weights(**options: Any) -> Any:
    lstm = tf_lstm_ops.keras.LSTM(UNITS, **options)
    lstm.build([None, None, INPUTS])
    lstm.set_weights([random(*w.shape).numpy() for w in lstm.weights])
    return lstm


def layer() -> list[Any]:
    lstm = lstm_with_weights(return_sequences=True, recurrent_dropout=0.0, seed=1)
    x = random(BATCH, TIME, INPUTS)
    mask = tf.constant(np.arange(BATCH * TIME).reshape(BATCH, TIME) % 3 > 0)

    @tf.function
    def gradients(x: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = lstm(x, mask=mask)
        return [y, *tape.gradient(y, [x, *lstm.trainable_variables])]

    found.update(op.type for op in gradients.get_concrete_function(x).graph.get_operations())
    return gradients(x)


def layer_without_gpu_kernel() -> list[Any]:
    lstm = lstm_with_weights(projection_size=2, activation="softsign")
    return [lstm(random(BATCH, TIME, INPUTS))]


def dropout_between_layers() -> list[Any]:
    return cudnn_rnn(dropout=0.5, seed=1, seed2=2)


CALLS: list[Callable[[], list[Any]]] = [
    block_lstm,
    cudnn_rnn,
    layer,
    layer_without_gpu_kernel,
    dropout_between_layers,
]
found: set[str] = set()  # the ops in the layer's trace


def difference(got: list[Any], want: list[Any]) -> float:
    pairs = zip(got, want, strict=True)
    return max(float(np.abs(np.asarray(g) - np.asarray(w)).max()) for g, w in pairs)


def on(device: str, call: Callable[[], list[Any]]) -> list[Any]:
    with tf.device(device):
        return call()


def check(model: str) -> dict[str, Any]:
    """How far the results on the GPU are from those of `save`, and what made them."""
    loaded = tf.saved_model.load(model)
    # TensorFlow's own op drops on an NVIDIA GPU; it has no kernel here.
    status = _gpu.status()
    calls = [c for c in CALLS if c is not dropout_between_layers or not (status.on and status.cuda)]
    differences = {
        call.__name__: difference(on("GPU:0", call), loaded.results[call.__name__])
        for call in calls
    }
    with tf.device("GPU:0"):
        got = loaded.f(random(BATCH, TIME, INPUTS))
    differences["saved_model"] = difference([got], [loaded.expected])
    registered = kernels.get_registered_kernels_for_op("TfLstmOps>CudnnRNNV3").kernel
    return {
        "state": status.state,
        "registered": any(kernel.device_type == "GPU" for kernel in registered),
        "fused": any(op.startswith("TfLstmOps>") for op in found),
        "differences": differences,
    }


def errors(model: str) -> list[str]:
    """The errors of calls that the kernels refuse, eager and traced."""
    wrong = tf.constant(TIME + 1, tf.int64)

    def call() -> Any:
        with tf.device("GPU:0"):
            zeros = {"cs_prev": [1, 2], "h_prev": [1, 2], "w": [5, 8], "b": [8], "x": [TIME, 1, 3]}
            arguments = {name: tf.zeros(shape) for name, shape in zeros.items()}
            arguments |= {name: tf.zeros([2]) for name in ("wci", "wcf", "wco")}
            return raw_ops.BlockLSTM(seq_len_max=wrong, **arguments)

    messages = []
    for function in (call, tf.function(call)):
        try:
            function()
        except tf.errors.InvalidArgumentError as error:
            messages.append(error.message)
    return messages


def save(model: str) -> None:
    """The CPU engine's results, and a SavedModel with fused ops, of which KerasGRU has no GPU
    kernel. Run it without a GPU."""
    module = tf.Module()
    lstm = lstm_with_weights(return_sequences=True)
    gru = tf_lstm_ops.keras.GRU(UNITS)
    x = random(BATCH, TIME, INPUTS)
    module.expected = tf.Variable(gru(lstm(x)))
    module.weights = lstm.trainable_variables + gru.trainable_variables
    module.f = tf.function(lambda x: gru(lstm(x)), [tf.TensorSpec([None, None, INPUTS])])
    graph = module.f.get_concrete_function().graph
    ops = {op.type for op in graph.get_operations()}
    assert {"TfLstmOps>KerasLSTM", "TfLstmOps>KerasGRU"} <= ops
    module.results = {
        call.__name__: [tf.Variable(result, dtype=tf.float32) for result in call()]
        for call in CALLS
    }
    tf.saved_model.save(module, model)


def record(_: str) -> str:
    """Records a self-test that passed."""
    [device] = tf.config.list_physical_devices("GPU")
    return str(_gpu.write_record(_gpu.machine(device, _library.gpu_path()), []))


if __name__ == "__main__":
    import tf_lstm_ops
    from tf_lstm_ops import _gpu, _library, raw_ops

    keras.utils.set_random_seed(0)
    task = {"check": check, "errors": errors, "save": save, "record": record}[sys.argv[1]]
    print(json.dumps(task(sys.argv[2])))
