"""The function of a model that is converted: fixed batch size, flat and named arguments."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tf_lstm_ops import _keras_private
from tf_lstm_ops.export import names, states
from tf_lstm_ops.export.lite.layers import Lowering, Recurrent, recurrent_layers, state_names
from tf_lstm_ops.export.signature import inputs_of


class Traced(NamedTuple):
    """What is converted.

    Attributes:
      function: a concrete function of tensors, in the order of inputs and states. It returns a dict
        of outputs and states.
      inputs: the inputs of the model by name.
      states: the states by name; empty unless they are inputs and outputs.
      outputs: the names of the model's outputs.
      lowering: how the recurrent layers were written.
    """

    function: Any
    inputs: dict[str, tf.TensorSpec]
    states: dict[str, tf.TensorSpec]
    outputs: list[str]
    lowering: Lowering


def trace(
    model: keras.Model, signature: list[Any], batch_size: int | None, *, stateful: bool, loops: bool
) -> Traced:
    """Traces a model for the converter.

    Args:
      model: a built functional or Sequential model.
      signature: the arguments of the model, as `signature.signature` returns them.
      batch_size: the batch size; None: that of each spec, which may be unknown.
      stateful: whether the states of the recurrent layers are inputs and outputs.
      loops: whether a recurrent layer may be a loop or a fused op; else it is unrolled.

    Returns:
      The concrete function and its signature.

    Raises:
      ValueError: a layer cannot be written as asked; the text names it.
    """
    inputs = _input_specs(model, signature, batch_size)
    items = _streamed_layers(model) if stateful else []
    state_specs = {spec.name: spec for item in items for spec in _state_specs(item, batch_size)}
    lowering = Lowering(model, loops=loops, stateful=stateful)

    @tf.function(autograph=False)
    def predict(*tensors: Any) -> dict[str, Any]:
        by_name = dict(zip([*inputs, *state_specs], tensors, strict=True))
        initial = {item.path: [by_name[n] for n in state_names(item)] for item in items}
        with lowering.active(initial):
            results = call(model, [by_name[name] for name in inputs])
        for item in items:
            results |= dict(zip(state_names(item), lowering.final[item.path], strict=True))
        # An output that is an input as it is would have two names in the file.
        return {name: tf.identity(value) for name, value in results.items()}

    function = predict.get_concrete_function(*inputs.values(), *state_specs.values())
    if lowering.problems:
        raise ValueError(lowering.problems[0])
    return Traced(function, inputs, state_specs, output_names(model), lowering)


def call(model: keras.Model, inputs: list[Any]) -> dict[str, Any]:
    """Calls a model for inference, from zero states. Its variables do not change.

    Args:
      model: a functional or Sequential model.
      inputs: its inputs in the order of ``model.inputs``.

    Returns:
      Its outputs by name.
    """
    with states.from_zeros(model):
        structure = keras.tree.pack_sequence_as(_keras_private.functional(model).input, inputs)
        outputs = model(structure, training=False)
    return dict(zip(output_names(model), keras.tree.flatten(outputs), strict=True))


def output_names(model: keras.Model) -> list[str]:
    """The names of a model's outputs in a file, as `names.of_outputs` makes them.

    Args:
      model: a functional or Sequential model.

    Returns:
      One name for each output.
    """
    return names.of_outputs(model, _keras_private.functional(model).output)


def _input_specs(
    model: keras.Model, signature: list[Any], batch_size: int | None
) -> dict[str, tf.TensorSpec]:
    given = keras.tree.flatten(signature)
    if len(given) != len(model.inputs):
        raise ValueError(
            f"input_signature must have {len(model.inputs)} specs, one for each input of the "
            f"model. Received: {len(given)}"
        )
    by_input = dict(zip(map(id, inputs_of(model, signature)), given, strict=True))
    own = names.unique([names.identifier(tensor.name) for tensor in model.inputs])
    specs = {}
    for name, tensor in zip(own, model.inputs, strict=True):
        spec = by_input[id(tensor)]
        for fixed in (tensor.shape[0], spec.shape[0]):
            if batch_size is not None and fixed not in (None, batch_size):
                raise ValueError(
                    f"batch_size must be {fixed}, the batch size of the model's input "
                    f"{tensor.name}. Received: {batch_size}"
                )
        rows = spec.shape[0] if batch_size is None else batch_size
        specs[name] = tf.TensorSpec([rows, *spec.shape[1:]], spec.dtype, name)
    return specs


def _state_specs(item: Recurrent, batch_size: int | None) -> list[tf.TensorSpec]:
    sizes = keras.tree.flatten(item.layer.state_size)
    return [
        tf.TensorSpec([batch_size, size], item.layer.compute_dtype, name)
        for name, size in zip(state_names(item), sizes, strict=True)
    ]


def _streamed_layers(model: keras.Model) -> list[Recurrent]:
    items = list(recurrent_layers(model))
    if not items:
        raise ValueError(
            f"stateful=True needs an LSTM, a GRU or another layers.RNN; {model.name} has none"
        )
    for item in items:
        if item.layer.go_backwards or getattr(item.layer, "bidirectional", False):
            raise ValueError(
                f"layer {item.path}: stateful=True needs layers that read forwards. This one reads "
                "from the last step to the first, so it needs the whole sequence"
            )
        if item.vectorized:
            raise ValueError(
                f"layer {item.path}: stateful=True cannot give the states of a layer in a "
                "TimeDistributed, which has one for each of its steps"
            )
    return items
