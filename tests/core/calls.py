"""One call of each family of ops, forward and all gradients, large enough for a team of threads."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops import raw_ops
from threads import OnThreads

TIME, BATCH, INPUTS = 4, 70, 20
Results = dict[str, np.ndarray]


class Call(NamedTuple):
    function: Callable[..., Sequence[tf.Tensor]]
    arguments: dict[str, tf.Tensor]
    axes: dict[str, int]  # where the batch is, in the arguments that have one
    axis: int  # and in the outputs

    def of_rows(self, rows: Sequence[int]) -> "Call":
        """The call with these rows of the batch alone."""
        chosen = {k: tf.gather(self.arguments[k], rows, axis=at) for k, at in self.axes.items()}
        return self._replace(arguments={**self.arguments, **chosen})

    def tensors(self) -> dict[str, tf.Tensor]:
        """Outputs, and the gradients of the sum of their squares by all arguments."""
        sources = {k: v for k, v in self.arguments.items() if v.dtype.is_floating}
        with tf.GradientTape() as tape:
            tape.watch(sources)
            outputs = self.function(**self.arguments)
            loss = tf.add_n([tf.reduce_sum(a * a) for a in outputs])
        gradients = tape.gradient(loss, sources)
        return {f"{k}": a for k, a in enumerate(outputs)} | gradients

    def run(self) -> Results:
        return {k: a.numpy() for k, a in self.tensors().items()}

    def on_threads(self) -> OnThreads:
        """`run` on any number of threads. A layer's variables are no arguments then."""
        fed = {k: v for k, v in self.arguments.items() if not isinstance(v, tf.Variable)}
        return OnThreads(
            lambda **given: self._replace(arguments={**self.arguments, **given}).tensors(), fed
        )

    def rows_of(self, results: Results, rows: Sequence[int]) -> Results:
        """Of results that have a batch, these rows."""
        axes = {k: self.axis if k.isdigit() else self.axes.get(k) for k in results}
        return {k: np.take(results[k], rows, at) for k, at in axes.items() if at is not None}


def draw(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> tf.Tensor:
    return tf.constant(rng.normal(size=shape) / np.sqrt(shape[-1]), dtype)


def block_lstm(rng: np.random.Generator, units: int) -> Call:
    state, peephole = (BATCH, units), (units,)
    arguments = {
        "x": draw(rng, TIME, BATCH, INPUTS),
        "cs_prev": draw(rng, *state),
        "h_prev": draw(rng, *state),
        "w": draw(rng, INPUTS + units, 4 * units),
        **{name: draw(rng, *peephole) for name in ("wci", "wcf", "wco")},
        "b": draw(rng, 4 * units),
    }

    def function(**values: Any) -> Sequence[tf.Tensor]:
        return raw_ops.BlockLSTM(
            seq_len_max=tf.constant(TIME, tf.int64), use_peephole=True, **values
        )

    return Call(function, arguments, {"x": 1, "cs_prev": 0, "h_prev": 0}, 1)


def keras_lstm(rng: np.random.Generator, units: int) -> Call:
    """With a mask. The weights are the layer's own variables."""
    layer = tf_lstm_ops.keras.LSTM(units, return_sequences=True, return_state=True)
    layer.build((BATCH, TIME, INPUTS))
    for weight in layer.trainable_weights:
        weight.assign(draw(rng, *weight.shape))
    mask = tf.constant(rng.random((BATCH, TIME)) < 0.7)
    arguments = {"x": draw(rng, BATCH, TIME, INPUTS), "mask": mask}
    arguments |= {"h": draw(rng, BATCH, units), "c": draw(rng, BATCH, units)}
    arguments |= {weight.name: weight.value for weight in layer.trainable_weights}

    def function(x: Any, mask: Any, h: Any, c: Any, **_weights: Any) -> Sequence[tf.Tensor]:
        return layer(x, initial_state=[h, c], mask=mask)

    return Call(function, arguments, dict.fromkeys(("x", "mask", "h", "c"), 0), 0)


def cudnn_rnn(rng: np.random.Generator, units: int, mode: str) -> Call:
    gates, outputs = {"lstm": (4, 3), "gru": (3, 2)}[mode]
    state = (1, BATCH, units)
    arguments = {
        "input": draw(rng, TIME, BATCH, INPUTS),
        "input_h": draw(rng, *state),
        "params": draw(rng, gates * units * (INPUTS + units + 2)) * units,
        "sequence_lengths": tf.constant(np.arange(BATCH) % (TIME + 1), tf.int32),
    }
    axes = {"input": 1, "input_h": 1, "sequence_lengths": 0}
    if mode == "lstm":
        arguments["input_c"] = draw(rng, *state)
        axes["input_c"] = 1

    def function(**values: Any) -> Sequence[tf.Tensor]:
        values = {"input_c": tf.zeros([]), **values}  # a GRU has none
        return raw_ops.CudnnRNNV3(rnn_mode=mode, **values)[:outputs]

    return Call(function, arguments, axes, 1)


def mpsgraph_lstm(rng: np.random.Generator, units: int) -> Call:
    arguments = {
        "source": draw(rng, TIME, BATCH, INPUTS),
        "recurrent_weight": draw(rng, 4 * units, units),
        "input_weight": draw(rng, 4 * units, INPUTS),
        "bias": draw(rng, 4 * units),
        "init_state": draw(rng, BATCH, units),
    }

    def function(**values: Any) -> Sequence[tf.Tensor]:
        return raw_ops.MPSGraphLSTM(**values, produce_cell=True, training=True)

    return Call(function, arguments, {"source": 1, "init_state": 0}, 1)


CALLS: dict[str, Callable[[np.random.Generator, int], Call]] = {
    "BlockLSTM": block_lstm,
    "keras.LSTM": keras_lstm,
    "CudnnRNNV3 lstm": lambda rng, units: cudnn_rnn(rng, units, "lstm"),
    "CudnnRNNV3 gru": lambda rng, units: cudnn_rnn(rng, units, "gru"),
    "MPSGraphLSTM": mpsgraph_lstm,
}


def assert_same_bits(got: Results, want: Results) -> None:
    assert got.keys() == want.keys()
    different = [k for k in want if got[k].tobytes() != want[k].tobytes()]
    assert not different


def has_team(threads: int) -> bool:
    """Whether this process has started a team of so many, the caller among them; elsewhere than on
    Linux nobody can tell, and it counts as true."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        return True
    names = [task.read_text().strip() for task in tasks.glob("*/comm")]
    return names.count("tf_lstm_ops") >= threads - 1
