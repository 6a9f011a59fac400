"""Errors that several exports raise, in words for the user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import keras

from tf_lstm_ops import _keras_private

_LINES = 12  # of a message


@contextlib.contextmanager
def in_words(what: str, hint: str = "") -> Iterator[None]:
    """A context of calls of other libraries, which raise many types of errors.

    Args:
      what: what it means that they fail.
      hint: what the user can do.

    Yields:
      None.

    Raises:
      ImportError: a package is not installed.
      ValueError: a call failed.
    """
    try:
        yield
    except ImportError:  # it says what to install
        raise
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        message = "\n".join(lines[:_LINES]) or type(error).__name__
        raise ValueError(f"{what}. Its message: {message}{hint}") from error


class UnknownSteps(ValueError):
    """A file is wrong, and a TimeDistributed with an unknown number of steps can be the cause.

    Args:
      layer: the name of the layer; also an attribute.
      error: what was raised before.
    """

    def __init__(self, layer: str, error: Exception) -> None:
        super().__init__(
            f"{error}\nThe cause can be the TimeDistributed layer {layer}. If the number of its "
            "steps is unknown, Keras traces it for as many steps as the batch has rows. Make the "
            "model with an Input of a fixed number of steps, or pass input_signature"
        )
        self.layer = layer


@contextlib.contextmanager
def with_unknown_steps(model: keras.Model) -> Iterator[None]:
    """A context whose errors name the layer TimeDistributed that can be their cause.

    Keras 3.15 traces it for as many steps as the batch has rows, if their number is unknown.

    Args:
      model: a Keras model.

    Yields:
      None.

    Raises:
      UnknownSteps: a call within the context raises a ValueError, and there is such a layer.
    """
    try:
        yield
    except ValueError as error:
        for layer in _keras_private.layers_of(model):
            if isinstance(layer, keras.layers.TimeDistributed):
                shape = (layer.get_build_config() or {}).get("input_shape")
                if shape and shape[1] is None:
                    raise UnknownSteps(layer.name, error) from error
        raise


def require_float32(model: keras.Model, writes: str, hint: str = "") -> None:
    """Checks that all weights of a model are used in float32.

    Args:
      model: a Keras model.
      writes: what the file has, for the message.
      hint: what else the user can do.

    Raises:
      ValueError: a layer computes in another type.
    """
    for layer in _keras_private.layers_of(model):
        if layer.compute_dtype not in ("float32", None) and layer.weights:
            raise ValueError(
                f"layer {layer.name} computes in {layer.compute_dtype}, and {writes} float32. Make "
                f"the model with dtype='float32' and set the weights{hint}"
            )
