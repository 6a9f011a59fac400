"""The trace of a model that tf2onnx converts: recurrent layers as nodes or loops, named outputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _keras_private, _targets, _tf_private, composite
from tf_lstm_ops.export import names, states
from tf_lstm_ops.keras import directions, options, user_objects
from tf_lstm_ops.keras.counterparts import equivalent
from tf_lstm_ops.keras.fused import FusedRNN
from tf_lstm_ops.keras.stacked_rnn import StackedRNN


class Trace:
    """What tf2onnx takes for a ``tf.function``, and for the concrete function of it.

    tf2onnx makes an input of the file of each input of the function. A captured tensor is one, but
    TensorFlow replaces it by its value.

    Args:
      function: the concrete function.
      outputs: the names of its outputs.
      layers: what has the function's variables, which live as long as the trace.

    Attributes:
      inputs: the symbolic arguments of the function, without captured values.
      structured_outputs: its symbolic outputs by the name in the file.
      names: the names of the inputs in the file.
    """

    def __init__(self, function: Any, outputs: Sequence[str], layers: Any = None) -> None:
        self._function, self._kept = function, layers
        self.inputs = _tf_private.arguments(function)
        self.structured_outputs = dict(zip(outputs, function.outputs, strict=True))
        specs = tf.nest.flatten(function.structured_input_signature)
        self.names = [spec.name for spec in specs if isinstance(spec, tf.TensorSpec)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def get_concrete_function(self, *_: Any) -> Trace:
        """The function itself, whatever the arguments.

        Args:
          *_: what tf2onnx passes, the inputs.

        Returns:
          The function.
        """
        return self


def trace(model: keras.Model, specs: Sequence[Any]) -> Trace:
    """Traces a model in inference, from zero states.

    Args:
      model: the model. It does not change.
      specs: its arguments, as `signature.signature` returns them.

    Returns:
      The trace. An output has the name of its key or layer, as `names.of_outputs` makes it.

    Raises:
      ValueError: the model reads a resource that is no variable; the text names the layer.
    """
    flat = tf.nest.flatten(specs)
    found: list[Any] = []

    @tf.function(input_signature=flat, autograph=False)
    def predict(*inputs: Any) -> Any:
        with states.from_zeros(model):  # else the states become constants
            results = model(*tf.nest.pack_sequence_as(list(specs), list(inputs)), training=False)
        found[:] = [results]
        return tf.nest.flatten(results)

    computations = _computations(model)
    with _keras_private.replaced_loops(computations), directions.apart():
        function = predict.get_concrete_function()
    _require_values(model, function)
    taken = [spec.name for spec in tf.nest.flatten(function.structured_input_signature)]
    return Trace(function, names.of_outputs(model, found[0], taken), computations)


def _require_values(model: keras.Model, function: Any) -> None:
    for handle in _tf_private.captured_resources(function):
        layers = _keras_private.layers_of(model)
        owners = [layer.name for layer in layers if handle is _handle_of(layer)]
        raise ValueError(
            f"{f'layer {owners[-1]}' if owners else 'the model'} reads a resource that is not a "
            "variable, such as a table of words. An ONNX file cannot have it. Make a model without "
            "it, whose Input takes what is read from it"
        )


def _handle_of(layer: keras.Layer) -> Any:
    handles = (getattr(value, "resource_handle", None) for value in vars(layer).values())
    return next((handle for handle in handles if handle is not None), None)


def why_loop(layer: keras.layers.RNN) -> str | None:
    """Why a recurrent layer becomes a Loop.

    Args:
      layer: a layer of this package or of Keras.

    Returns:
      The reason; None if it becomes a node.
    """
    ours = layer if isinstance(layer, FusedRNN) else equivalent(layer)
    return ours if isinstance(ours, str) else _why_loop(ours)


def _why_loop(layer: FusedRNN) -> str | None:
    if isinstance(layer, StackedRNN):
        return "it is several layers; LSTM or GRU layers with its weights become nodes"
    return layer.fallback_reason or options.why_not(layer, _targets.ONNX_NODE)


def _computations(model: keras.Model) -> list[tuple[keras.Layer, Callable[..., Any]]]:
    """The layers that compute otherwise than by their own class in the trace, and how."""
    found: list[tuple[Any, Callable[..., Any]]] = []
    with user_objects.known(model):
        for layer in _keras_private.layers_of(model):
            if not isinstance(layer, keras.layers.RNN) or not layer.built:
                continue
            is_loop = why_loop(layer) is not None
            if is_loop and isinstance(layer, FusedRNN):
                found.append((layer, functools.partial(_with_plain_ops, layer)))
            elif not is_loop and not isinstance(layer, FusedRNN):
                new = _counterpart(layer)
                found.append((layer, functools.partial(_keras_private.run_loop, type(new), new)))
    return found


def _with_plain_ops(layer: keras.Layer, *args: Any, **kwargs: Any) -> Any:
    with composite.plain_ops():
        return _keras_private.run_loop(type(layer), layer, *args, **kwargs)


def _counterpart(layer: keras.layers.RNN) -> FusedRNN:
    """The layer of ours with the weights of a stock layer, of whose loop tf2onnx makes a Loop.

    The model need not be made again for it, so its other layers may be of any class.
    """
    new = equivalent(layer)
    assert isinstance(new, FusedRNN)
    new.stateful = False  # the layer itself has the states
    new.build((None, None, layer.cell.kernel.shape[0]))
    new.set_weights(layer.get_weights())
    return new
