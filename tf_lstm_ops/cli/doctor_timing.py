"""The shapes of a model's recurrent layers, and the time of a layer beside its replacement."""

from __future__ import annotations

import contextlib
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops import _capacity, _keras_private, _library
from tf_lstm_ops._capacity import Capacity
from tf_lstm_ops.export.signature import signature
from tf_lstm_ops.export.states import batch_size

MODE_SECONDS = 0.4  # of the rounds of inference, and of those of training
MOST_ROUNDS = 25


class Sizes(NamedTuple):
    """What stands for sizes that a model leaves open.

    Attributes:
      batch: the first dimension of all inputs.
      steps: all other dimensions.
      lengths: of the sequences of a batch, in turn; the steps behind are zeros. Empty: no zeros.
    """

    batch: int
    steps: int
    lengths: tuple[int, ...] = ()

    def fill(self, shape: Sequence[int | None]) -> list[int]:
        """Replaces the unknown sizes of a shape.

        Args:
          shape: the shape.

        Returns:
          The shape with known sizes.
        """
        return [
            (self.steps if axis else self.batch) if size is None else size
            for axis, size in enumerate(shape)
        ]

    def pad(self, values: np.ndarray) -> np.ndarray:
        """Replaces the steps behind the lengths by zeros.

        Args:
          values: [B, T, ...], or an array of another rank, which stays.

        Returns:
          An array of the same shape.
        """
        if not self.lengths or values.ndim < 2:
            return values
        lengths = np.resize(self.lengths, len(values))
        valid = np.arange(values.shape[1]) < lengths[:, np.newaxis]
        return values * valid.reshape(valid.shape + (1,) * (values.ndim - 2))


class Call(NamedTuple):
    """How a model calls a layer.

    Attributes:
      input_shape: [B, T, ...].
      output_shape: of the first output.
      has_mask: whether the layer gets a mask.
    """

    input_shape: list[int]
    output_shape: list[int]
    has_mask: bool


class Gain(NamedTuple):
    """The times of a layer, in milliseconds: medians of interleaved rounds.

    Attributes:
      now: of the layer.
      after: of its replacement.
      rounds: the number of rounds.
      ratios: how many times as fast the replacement was in each round.
    """

    now: float
    after: float
    rounds: int
    ratios: tuple[float, ...] = ()

    @property
    def ratio(self) -> float:
        """How many times as fast the replacement is."""
        return self.now / self.after

    def document(self) -> dict[str, Any]:
        """The times for ``--json``.

        Returns:
          ``now_ms``, ``after_ms``, ``ratio``, ``ratio_range`` and ``rounds``.
        """
        ratios = self.ratios or (self.ratio,)
        return {
            "now_ms": self.now,
            "after_ms": self.after,
            "ratio": self.ratio,
            "ratio_range": [min(ratios), max(ratios)],
            "rounds": self.rounds,
        }


def calls(model: keras.Model, layers: Sequence[Any], sizes: Sizes) -> dict[int, Call]:
    """Finds out how a model calls its recurrent layers, by tracing it. Nothing is computed.

    Args:
      model: a model whose inputs are known.
      layers: the layers. Cells are ignored.
      sizes: what stands for unknown sizes.

    Returns:
      The first call of each layer that is called, by the id of the layer.

    Raises:
      Exception: the model cannot be traced; a layer of the user's may raise anything.
    """
    found: dict[int, Call] = {}
    specs = signature(model)
    # With a known number of steps, TimeDistributed would trace its layer for each step.
    if not any(
        isinstance(x, keras.layers.TimeDistributed) for x in _keras_private.layers_of(model)
    ):
        sizes = sizes._replace(batch=batch_size(model) or sizes.batch)
        specs = tf.nest.map_structure(lambda s: tf.TensorSpec(sizes.fill(s.shape), s.dtype), specs)

    def predict(*inputs: Any) -> Any:
        return model(*tf.nest.pack_sequence_as(specs, list(inputs)))

    with _noted([x for x in layers if isinstance(x, keras.layers.RNN)], sizes, found):
        tf.function(predict, autograph=False).get_concrete_function(*tf.nest.flatten(specs))
    return found


def _noted(
    layers: Sequence[Any], sizes: Sizes, found: dict[int, Call]
) -> contextlib.AbstractContextManager[None]:
    """A context in which calls of layers are put into `found`."""

    def noted(layer: keras.Layer, sequences: Any, *args: Any, **kwargs: Any) -> Any:
        results = _keras_private.run_loop(type(layer), layer, sequences, *args, **kwargs)
        output = results[1 if layer.return_sequences else 0]
        mask = kwargs.get("mask", args[1] if len(args) > 1 else None)
        shapes = sizes.fill(sequences.shape), sizes.fill(output.shape)
        found.setdefault(id(layer), Call(*shapes, has_mask=mask is not None))
        return results

    return _keras_private.replaced_loops(
        (layer, functools.partial(noted, layer)) for layer in layers
    )


def capacity() -> Capacity:
    """Measures whether other processes take a part of the processors. It takes about a second.

    Returns:
      The capacity for the threads of a large call, at most one for each core.
    """
    return _capacity.measure(min(_library.cpu_info()["threads"], _capacity.core_count()))


def measure(layer: keras.Layer, replacement: Any, call: Call) -> dict[str, Gain]:
    """Measures a layer and its replacement on random inputs.

    Args:
      layer: a built layer. If it is stateful, its states change.
      replacement: the layer after the change; it is built here.
      call: the shapes.

    Returns:
      The gains in "inference" and in a "training" step: the layer and its gradients.

    Raises:
      Exception: a layer cannot run; one of the user's may raise anything.
    """
    replacement.build(call.input_shape)
    weights = layer.get_weights()
    if [w.shape for w in weights] == [w.shape for w in replacement.weights]:
        replacement.set_weights(weights)
    rng = np.random.default_rng(0)
    x = tf.cast(rng.normal(size=call.input_shape), layer.compute_dtype)
    mask = None
    if call.has_mask:  # the first row ends with padding
        valid = np.ones(call.input_shape[:2], bool)
        valid[:1, call.input_shape[1] * 3 // 4 :] = False
        mask = tf.constant(valid)
    return {
        mode: interleaved([build(part, x, mask) for part in (layer, replacement)])
        for mode, build in (("inference", _inference), ("training", _training))
    }


def _inference(layer: keras.Layer, x: Any, mask: Any) -> Callable[[], Any]:
    call = tf.function(lambda x, mask: layer(x, mask=mask, training=False), autograph=False)
    return lambda: call(x, mask)


def _training(layer: keras.Layer, x: Any, mask: Any) -> Callable[[], Any]:
    @tf.function(autograph=False)
    def step(x: Any, mask: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = tf.nest.flatten(layer(x, mask=mask, training=True))
            loss = tf.add_n([tf.reduce_sum(tf.cast(y, tf.float32)) for y in outputs])
        return tape.gradient(loss, [x, *(v.value for v in layer.trainable_variables)])

    return lambda: step(x, mask)


def interleaved(pair: Sequence[Callable[[], Any]]) -> Gain:
    """Measures two functions in turn.

    Args:
      pair: what is now, and what is after the change; each returns tensors.

    Returns:
      The medians, and the ratio of each round.
    """
    for call in pair:  # traces
        call()
    once = sum(map(_seconds, pair))
    rounds = max(1, min(MOST_ROUNDS, int(MODE_SECONDS / once)))
    seconds: list[list[float]] = [[], []]
    for number in range(rounds):
        for k in (0, 1) if number % 2 == 0 else (1, 0):
            seconds[k].append(_seconds(pair[k]))
    now, after = (1e3 * statistics.median(each) for each in seconds)
    return Gain(now, after, rounds, tuple(a / b for a, b in zip(*seconds, strict=True)))


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    [first, *_] = tf.nest.flatten(call())
    first.numpy()  # a GPU may not have finished yet
    return time.perf_counter() - start
