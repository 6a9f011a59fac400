"""The time of a whole model with stock layers and with those of this package."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops.cli import doctor_layers, messages, output
from tf_lstm_ops.cli.doctor_timing import Gain, Sizes, interleaved
from tf_lstm_ops.export.signature import signature
from tf_lstm_ops.export.states import batch_size
from tf_lstm_ops.keras import accelerate, convert_model
from tf_lstm_ops.keras.acceleration import without_acceleration


def examine(
    model: keras.Model, sizes: Sizes, is_measured: bool, is_old: bool = False
) -> dict[str, Any]:
    """Converts a model and measures both.

    Args:
      model: the model. It is compiled; its weights stay the same.
      sizes: what stands for unknown sizes.
      is_measured: whether to measure.
      is_old: whether `load_h5` made it of a file of Keras 1 or 2. Then its layers are those of this
        package already, and the model beside it is the one with stock layers.

    Returns:
      The part "whole_model" of the document of ``tf-lstm-ops doctor --json``.
    """
    batch = batch_size(model) or sizes.batch
    found: dict[str, Any] = {"batch": batch, "replaced": 0, "gain": None, "not_measured": None}
    found["accelerated"] = _accelerated(model, sizes) if is_measured and not is_old else None
    try:
        with output.silence(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            converted = convert_model(model, to="stock" if is_old else "fused")
    except Exception as error:  # a layer of the user's may raise anything
        why = f"convert_model cannot convert the model: {messages.one_line(error)}"
        return {**found, "not_measured": why}
    before, after = (converted, model) if is_old else (model, converted)
    ours = doctor_layers.count_of_ours
    found["replaced"] = ours(after) - ours(before)
    if not found["replaced"]:
        return {**found, "not_measured": "convert_model replaces no layer"}
    if not is_measured:
        return {**found, "not_measured": "--no-timing"}
    weights = model.get_weights()
    gains: dict[str, Any] = {}
    try:
        with output.silence():
            for mode, gain in _measured((before, after), sizes):
                gains[mode] = gain.document()
    except Exception as error:  # a layer of the user's may raise anything
        found["not_measured"] = messages.one_line(error)
    finally:
        model.set_weights(weights)
    return {**found, "gain": gains or None}


def _accelerated(model: keras.Model, sizes: Sizes) -> dict[str, Any] | None:
    """What `accelerate` gains, and for how many layers; None if it has no effect on the model."""
    weights = model.get_weights()
    try:
        with output.silence(), accelerate() as acceleration:
            gains = {mode: gain.document() for mode, gain in _with_and_without(model, sizes)}
            report = acceleration.report()
    except Exception:  # a layer of the user's may raise anything
        return None
    finally:
        model.set_weights(weights)
    return {"layers": report.summary, "gain": gains} if any(row.op for row in report) else None


def _with_and_without(model: keras.Model, sizes: Sizes) -> Iterator[tuple[str, Gain]]:
    """Measures a model without `accelerate` and with it: "predict", then "fit"."""
    inputs = _random_inputs(model, sizes)
    _compile(model)
    targets = tf.nest.map_structure(tf.zeros_like, model(inputs))
    calls = {
        "predict": ("predict_function", lambda: model.predict_on_batch(inputs)),
        "fit": ("train_function", lambda: model.train_on_batch(inputs, targets)),
    }
    for mode, (name, call) in calls.items():
        if mode == "fit" and not model.trainable_variables:
            return
        stock, ours = (_with_function(model, name, call) for _ in range(2))
        with without_acceleration():
            stock()  # traces
        yield mode, interleaved([stock, ours])


def _with_function(model: keras.Model, name: str, call: Callable[[], Any]) -> Callable[[], Any]:
    """A call that keeps a traced function of its own from one time to the next."""
    kept: list[Any] = [None]

    def run() -> Any:
        setattr(model, name, kept[0])
        results = call()
        kept[0] = getattr(model, name)
        return tf.nest.map_structure(tf.convert_to_tensor, results)

    return run


def _measured(models: Sequence[keras.Model], sizes: Sizes) -> Iterator[tuple[str, Gain]]:
    """Measures two models on random inputs."""
    inputs = _random_inputs(models[0], sizes)
    yield "inference", interleaved([_call(model, inputs) for model in models])
    if models[0].trainable_variables:
        yield "fit", interleaved([_step(model, inputs) for model in models])


def _random_inputs(model: keras.Model, sizes: Sizes) -> Any:
    """Inputs of a model."""
    sizes = sizes._replace(batch=batch_size(model) or sizes.batch)
    rng = np.random.default_rng(0)

    def values(spec: tf.TensorSpec) -> tf.Tensor:
        shape = sizes.fill(spec.shape)
        # The ones are indices of any Embedding, without masked steps.
        drawn = rng.normal(size=shape) if spec.dtype.is_floating else np.ones(shape)
        return tf.cast(sizes.pad(drawn), spec.dtype)

    [inputs] = signature(model)
    return tf.nest.map_structure(values, inputs)


def _call(model: keras.Model, inputs: Any) -> Callable[[], Any]:
    call = tf.function(lambda x: model(x, training=False), autograph=False)
    return lambda: call(inputs)


def _compile(model: keras.Model) -> None:
    model.compile(optimizer="adam", loss="mse")


def _step(model: keras.Model, inputs: Any) -> Callable[[], Any]:
    targets = tf.nest.map_structure(tf.zeros_like, model(inputs))
    _compile(model)
    return lambda: tf.constant(model.train_on_batch(inputs, targets))
