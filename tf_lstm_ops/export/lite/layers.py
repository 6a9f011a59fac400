"""The recurrent layers in a form that TensorFlow's converter knows.

The fused op of TensorFlow Lite keeps its states from one call of the interpreter to the next. A
step before the sequence clears them, so that a file computes what the model computes at every call.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops import _deviation, _keras_private, _targets, composite
from tf_lstm_ops._targets import Effect
from tf_lstm_ops.composite.keras import LAYERS
from tf_lstm_ops.keras import LSTM, StackedGRU, StackedLSTM, op_arguments, options
from tf_lstm_ops.keras.model_layers import located
from tf_lstm_ops.keras.of_cell import LSTMOfCell

FUSED_OP = "UNIDIRECTIONAL_SEQUENCE_LSTM"
UNROLLED_STEPS = 64  # a longer sequence is a loop: the converter's time grows faster than the steps
# The converter takes 36 s for so many steps of 10 units on an AMD EPYC (Zen 5).
INT8_STEPS = 1000
_CLEARED = 1000.0  # a pre-activation of -1000 makes a gate zero in float32

_STOCK = (keras.layers.LSTM, keras.layers.GRU)
_STATES = {
    keras.layers.LSTM: ["h", "c"],
    StackedLSTM: ["h", "c"],
    keras.layers.GRU: ["h"],
    StackedGRU: ["h"],
    keras.layers.SimpleRNN: ["h"],
}


class Recurrent(NamedTuple):
    """A recurrent layer of a model and where it is.

    Attributes:
      path: the names of the layers around it and its own, joined by "/".
      layer: the layer.
      vectorized: whether it is in a TimeDistributed, which vectorizes its computation.
    """

    path: str
    layer: keras.layers.RNN
    vectorized: bool


def recurrent_layers(model: keras.Model) -> Iterator[Recurrent]:
    """The recurrent layers of a model, also those of wrappers and nested models.

    Args:
      model: a Keras model or layer.

    Yields:
      The layers in the model's order.
    """
    for path, layer, parents in located(model, lambda x: isinstance(x, keras.layers.RNN)):
        vectorized = any(isinstance(outer, keras.layers.TimeDistributed) for outer in parents)
        yield Recurrent(path, layer, vectorized)


def state_names(item: Recurrent) -> list[str]:
    """The names of a layer's states in a file: the path and ``h`` or ``c``; of a stack, ``l0_h``.

    Args:
      item: the layer.

    Returns:
      One name for each state.
    """
    count = len(keras.tree.flatten(item.layer.state_size))
    names = next(
        (names for cls, names in _STATES.items() if isinstance(item.layer, cls)),
        [f"state_{n}" for n in range(count)],
    )
    if isinstance(item.layer, StackedLSTM | StackedGRU):
        reads = ["", "_reverse"] if item.layer.bidirectional else [""]
        numbers = range(item.layer.num_layers)
        names = [f"l{n}{end}_{name}" for n in numbers for end in reads for name in names]
    return [f"{item.path.replace('/', '_')}_{name}" for name in names]


class Lowering:
    """What replaces the computation of the recurrent layers while a model is traced.

    Args:
      model: the Keras model.
      loops: whether a layer may be a loop or a fused op; else it is unrolled.
      stateful: whether states are inputs and outputs.

    Attributes:
      forms: how each layer was written, by its path; filled by the trace.
      fused: the layers of the fused ops.
      final: the final states of each layer by its path, if states are inputs and outputs.
      problems: why a layer cannot be written as asked; filled by the trace. An error within a call
        of a layer would reach the user in words of Keras.
    """

    def __init__(self, model: keras.Model, *, loops: bool, stateful: bool) -> None:
        self._items = list(recurrent_layers(model))
        self._loops = loops
        self._stateful = stateful
        self._initial: dict[str, list[Any]] = {}
        self.forms: dict[str, str] = {}
        self.fused: list[Recurrent] = []
        self.final: dict[str, list[Any]] = {}
        self.problems: list[str] = []

    @contextlib.contextmanager
    def active(self, initial: dict[str, list[Any]]) -> Iterator[None]:
        """A context in which the model's layers compute what is to be converted.

        Args:
          initial: the initial states by path; none unless states are inputs and outputs.

        Yields:
          None.
        """
        limit = UNROLLED_STEPS if self._loops else 2**31
        self._initial = initial
        calls = ((item.layer, functools.partial(self._call, item)) for item in self._items)
        with _keras_private.replaced_loops(calls), composite.plain_ops(), composite.unrolled(limit):
            yield

    def _call(
        self, item: Recurrent, sequences: Any, initial_state: Any, mask: Any, training: bool = False
    ) -> Any:
        if self._stateful:
            initial_state = self._streamed(item, initial_state)
        form = self._form(item, sequences.shape, initial_state, mask)
        if self.forms.setdefault(item.path, form) != form:
            self.forms[item.path] += f"; {form}"
        if form == FUSED_OP:
            self.fused.append(item)
            return fused_lstm(item.layer, sequences, f"tf_lstm_ops_fused_{len(self.fused)}")
        layer, unroll = item.layer, item.layer.unroll
        # The inner_loop of the stock classes would try cuDNN first.
        cls = keras.layers.RNN if type(layer) in _STOCK else type(layer)
        try:
            layer.unroll = form.startswith("unrolled")
            results = _keras_private.run_loop(
                cls, layer, sequences, initial_state, mask, training=training
            )
        finally:
            layer.unroll = unroll
        if self._stateful:
            self.final[item.path] = keras.tree.flatten(results[2])
        return results

    def _form(self, item: Recurrent, shape: Any, initial_state: Any, mask: Any) -> str:
        batch, steps = shape[0], shape[1]
        zero = not self._stateful and all(map(_is_zero, keras.tree.flatten(initial_state)))
        can_be_fused = batch is not None and mask is None and zero and not item.vectorized
        if self._loops and can_be_fused and _fusable(item.layer):
            return FUSED_OP
        if steps is not None and steps <= UNROLLED_STEPS:
            return f"unrolled, {steps} steps"
        if self._loops:
            return "WHILE"
        if steps is None:
            self.problems.append(
                f"layer {item.path}: quantize='int8' needs a known number of steps, because the "
                "converter does not quantise loops. Make the model with an Input of a fixed number "
                "of steps, or pass input_signature"
            )
            return "WHILE"
        if steps > INT8_STEPS:
            self.problems.append(
                f"layer {item.path}: quantize='int8' takes at most {INT8_STEPS} steps, because it "
                "writes ops for each of them, which takes the converter long. The layer has "
                f"{steps}. quantize='float16' and 'dynamic' write one loop or op; input_signature "
                "can have fewer steps"
            )
            return "WHILE"
        warnings.warn(
            f"layer {item.path}: quantize='int8' writes ops for each of {steps} steps, because the "
            "converter does not quantise loops. quantize='float16' and 'dynamic' write one loop or "
            "op instead, so the file is smaller",
            stacklevel=2,
        )
        return f"unrolled, {steps} steps"

    def _streamed(self, item: Recurrent, initial_state: Any) -> list[Any]:
        if item.path in self.final:
            self.problems.append(
                f"layer {item.path}: stateful=True needs one state per layer, but the model calls "
                "the layer more than once"
            )
        if not item.layer.stateful and not all(map(_is_zero, keras.tree.flatten(initial_state))):
            self.problems.append(
                f"layer {item.path}: stateful=True makes the states inputs of the file, but the "
                "model computes the layer's initial_state"
            )
        return self._initial[item.path]


def _fusable(layer: keras.Layer) -> bool:
    """Whether the fused op has the layer's equations and the layer returns only what it returns."""
    if type(layer) not in (LSTM, LSTMOfCell, keras.layers.LSTM) or _deviation.of(layer) is not None:
        return False
    return (
        options.why_not(layer, _targets.LITE, (Effect.STEP, Effect.RESULTS, Effect.START)) is None
    )


def _is_zero(value: Any) -> bool:
    constant = tf.get_static_value(value)
    return constant is not None and not np.any(constant)


def fused_lstm(layer: keras.Layer, x: Any, name: str) -> tuple[Any, Any, list[Any]]:
    """An LSTM layer as the function that the converter replaces by the fused op.

    The converter recognises the attribute ``api_implements`` and the order of the arguments, which
    are those of Keras 2. It ignores peepholes and sets a bound of the cell state of its own;
    `flatbuffer.finish` puts the layer's there.

    Args:
      layer: an LSTM layer.
      x: [B, T, I]; B is known.
      name: the name of the function.

    Returns:
      The last output [B, H], all outputs [B, T, H], and no final states: the op has none.
    """
    batch, units = x.shape[0], layer.units
    with tf.init_scope():
        arrays = op_arguments.arrays(layer.cell, "KerasLSTM")
    kernel, recurrent = arrays["kernel"], arrays["recurrent_kernel"]
    bias = arrays.get("bias", np.zeros(4 * units, "float32"))
    peephole = arrays.get("peephole")
    clip = op_arguments.attributes(layer)["cell_clip"]

    def lstm(x: Any, h: Any, c: Any, kernel: Any, recurrent: Any, bias: Any) -> list[Any]:
        absent = tf.zeros([0])
        output, h, c = LAYERS["KerasLSTM"](
            x=x,
            mask=tf.zeros([0], tf.bool),
            **{"initial_h": h, "initial_c": c, "bias": bias},
            **{"kernel": kernel, "recurrent_kernel": recurrent},
            peephole=absent if peephole is None else tf.constant(peephole),
            **dict.fromkeys(("projection", "input_dropout", "recurrent_dropout"), absent),
            cell_clip=clip,
            go_backwards=False,
            zero_output_for_mask=False,
            return_sequences=True,
        )
        return [output[:, -1], output, h, c, tf.constant(0.0)]

    attributes = {"api_implements": f"lstm_{name}", "time_major": False}
    function = tf.function(lstm, autograph=False, experimental_attributes=attributes)
    x, kernel = _with_clearing_step(x[:, ::-1] if layer.go_backwards else x, kernel)
    state, weights = tf.zeros([batch, units]), map(tf.constant, (kernel, recurrent, bias))
    with tf.name_scope(name):
        outputs = function(x, state, state, *weights)[1][:, 1:]
    return outputs[:, -1], outputs, []


def _with_clearing_step(x: Any, kernel: np.ndarray) -> tuple[Any, np.ndarray]:
    """x [B, T, I] and kernel [I, 4H] with one more step in front and one more input.

    The input is zero but in the first step, where it makes the gates i, f and o zero, and so c and
    h. Its weights are as large as the largest of the gate: they do not change the scale of
    quantised weights.
    """
    inputs, columns = kernel.shape
    largest = np.abs(kernel).reshape(inputs, 4, -1).max((0, 2))
    largest = np.where(largest > 0, largest, 1).astype(kernel.dtype)
    row = np.repeat(-largest * [1, 1, 0, 1], columns // 4)  # gates i, f, c, o
    first = np.zeros([x.shape[0], 1, inputs + 1], kernel.dtype)
    first[..., -1] = _CLEARED / largest.min()
    x = tf.concat([first, tf.pad(x, [[0, 0], [0, 0], [0, 1]])], axis=1)
    return x, np.vstack([kernel, row.astype(kernel.dtype)])
