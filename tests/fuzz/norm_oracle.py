"""The oracle of layer normalisation in the terms of fuzz.keras."""

from typing import Any, NamedTuple

import numpy as np

from oracle import keras_gru, layer_norm
from oracle.derivatives import Array
from oracle.layer_norm import Arguments, Options, Results

_NONE = np.zeros(0)


class GruArguments(NamedTuple):
    x: Array
    h0: Array
    kernel: Array
    recurrent_kernel: Array
    bias: Array
    input_gamma: Array
    recurrent_gamma: Array

    @property
    def all(self) -> Arguments:
        return Arguments(*self[:2], _NONE, *self[2:], _NONE, _NONE)


def options(
    *,
    zero_output_for_mask: bool,
    epsilon: float,
    carries_normalized_state: bool = False,
    **others: Any,
) -> Options:
    """From the attributes of an op, of which TensorFlow rounds epsilon to float."""
    return Options(
        zero_output=zero_output_for_mask,
        epsilon=float(np.float32(epsilon)),
        carries_n=carries_normalized_state,
        **others,
    )


def gru(arguments: GruArguments, how: Options) -> keras_gru.Results:
    results = layer_norm.layer_norm(arguments.all, how)
    return keras_gru.Results(results.outputs, results.h)


def gru_backward(arguments: GruArguments, grads: Any, how: Options) -> list[Array]:
    results = Results(grads.outputs, grads.h, _NONE)
    found = layer_norm.layer_norm_backward(arguments.all, results, how)
    return [getattr(found, name) for name in GruArguments._fields]
